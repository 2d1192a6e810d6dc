"""Query columns of a lake, and for each column of the lake whether it can be joined with them.

Beside the data sets of `benchmarks.effectiveness.sets` there are three that are made of shared
data:

- ``transform``: the key of one half of a real table is asked, whose partner is derived from it. The
  cases of two web tables, which `wikitables` has too, and those of two-column keys are left out.
- ``misspelt-fivethirtyeight`` and ``misspelt-pudding``: distinct values of a column of a lake are
  asked, a share of them misspelt, and sometimes values of other columns among them. Columns that
  hold the values as they were spelt before can be joined. Everything is drawn with a seed.

Truth by equal text says nothing about other spellings in these three. So a pair that is found and
not known to be right is not judged where 30 % of the values may be the same as a value of the other
column in another spelling (`benchmarks.effectiveness.lexical.misspelt.may_be_same`).
"""

from __future__ import annotations

import csv
import json
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.effectiveness.judged import (
    BY_MEANING,
    MIN_JOINABILITY,
    MIN_MATCHES,
    NEGATIVE,
    NOT_JUDGED,
    NOT_JUDGED_JOINABILITY,
    NOT_JUDGED_MATCHES,
    distinct_cells,
    fold,
    incidence,
    pairs_by_text,
)
from benchmarks.effectiveness.lexical.data import judged_partners
from benchmarks.effectiveness.lexical.misspelt import SHORTEST, may_be_same, misspell
from benchmarks.effectiveness.sets import DATA, SHARED, shared_set
from pexeso.errors import InputError
from pexeso.lake.choose import ColumnRules, reason_left_out
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.sniff import ColumnProfile, profile_columns

MISSPELT, TRANSFORM = "misspelt-", "transform"
SETS = (*DATA, TRANSFORM, f"{MISSPELT}fivethirtyeight", f"{MISSPELT}pudding")

N_ASKED = 100
"""Most columns of a lake that are asked with misspelt values."""

MIN_VALUES, MAX_VALUES = 8, 60
MISSPELT_SHARES = (0.2, 0.6, 1.0)
FOREIGN_SHARES = (0.0, 0.0, 0.25, 0.6, 1.5)
"""Shares of the values of a query column that are misspelt, and of foreign ones that are added."""

PREFIX = 4
"""Values that may be the same are looked for among those with a word of the same beginning."""

Key = tuple[str, int]
Normalise = Callable[[Sequence[pa.StringArray]], list[list[str]]]
"""From the cells of columns to their distinct normalised values."""


@dataclass(frozen=True)
class AskedLake:
    """Query columns and their truth.

    Attributes
    ----------
    name : str
    lake : Path
        The folder of tables.
    keys : list of (str, int)
        Table and position of each judged column, n of them.
    queries : list of pyarrow.StringArray
        The query columns, q of them.
    labels : int8 (q, n)
        Classes of `benchmarks.effectiveness.judged`.
    originals : list of pyarrow.StringArray or None
        The values of query columns as they were before they were misspelt, where pairs that are
        found must be looked at once more; see `without_doubtful`.
    """

    name: str
    lake: Path
    keys: list[Key]
    queries: list[pa.StringArray]
    labels: np.ndarray
    originals: list[pa.StringArray] | None = None


def asked_lake(name: str, place: Path, shared: Path = SHARED, *, strict: bool = False) -> AskedLake:
    """Read one of `SETS`; its tables are unpacked into `place`, an empty folder.

    Parameters
    ----------
    name : str
    place, shared : Path
    strict : bool
        Whether pairs that have nearly enough equal texts in common are wrong; else they are not
        judged. It is the truth of the other tables of the page.

    Raises
    ------
    InputError
        It is not on this machine.
    """
    if name.startswith(MISSPELT):
        return misspelt_lake(name, _unpacked(shared, name.removeprefix(MISSPELT), "tables", place))
    if name == TRANSFORM:
        return _transform(_unpacked(shared, name, "cases", place) / name)
    truth = shared_set(name, place, shared)
    judged = truth.judged if truth.partners is None else judged_partners(truth.partners, truth)
    n = judged.n_columns
    queries = np.arange(n) if judged.allowed_queries is None else judged.allowed_queries
    labels = np.stack([judged.classes(np.full(n, query), np.arange(n)) for query in queries])
    keys = judged.keys
    if truth.partners is None and not strict:
        # Between a negative and a positive pair there is a band that is not judged, by text too.
        doubtful = np.zeros(n * n, bool)
        doubtful[pairs_by_text(judged.texts, NOT_JUDGED_MATCHES, NOT_JUDGED_JOINABILITY)] = True
        labels[(labels == NEGATIVE) & doubtful.reshape(n, n)[queries]] = NOT_JUDGED
    if truth.partners is not None:
        # The keys of partners have no positions: text columns are listed in the order of the lake.
        # A licence beside the tables may read as one; the truth is of files of commas alone.
        keys = [
            key
            for key, profile, _ in _columns(truth.lake)
            if profile.kind == "text" and key[0].endswith(".csv")
        ]
        tables = np.array([table for table, _ in keys])
        labels[tables[queries][:, None] == tables[None]] = NOT_JUDGED
    return AskedLake(name, truth.lake, keys, [judged.texts[query] for query in queries], labels)


def _unpacked(shared: Path, name: str, archive: str, folder: Path) -> Path:
    path = shared / name / f"{archive}.tar.gz"
    if not path.is_file():
        raise InputError(
            f"The data set {name} is not on this machine: there is no {name}/{path.name} in "
            f"{shared}."
        )
    with tarfile.open(path) as tables:
        tables.extractall(folder / "lake", filter="data")
    return folder / "lake"


def _columns(lake: Path) -> list[tuple[Key, ColumnProfile, pa.StringArray]]:
    """Return key, profile and distinct cells of each column."""
    profiles = []
    for file in find_tables(lake)[0]:
        columns = read_table(file.path).columns
        table = Path(file.path).relative_to(lake).as_posix()
        for position, (cells, profile) in enumerate(
            zip(columns, profile_columns(columns), strict=True)
        ):
            profiles.append(((table, position), profile, distinct_cells(cells)))
    return profiles


def _labels(common: np.ndarray, n_values: int) -> np.ndarray:
    """Return the classes of columns that hold so many of the values of a query column."""
    labels, share = np.zeros(len(common), np.int8), common / n_values
    labels[(common >= NOT_JUDGED_MATCHES) & (share >= NOT_JUDGED_JOINABILITY)] = NOT_JUDGED
    labels[(common >= MIN_MATCHES) & (share >= MIN_JOINABILITY)] = BY_MEANING
    return labels


def misspelt_lake(name: str, lake: Path, seed: int = 0) -> AskedLake:
    """Draw columns of a lake and ask for them with misspelt values."""
    columns = [
        (key, cells)
        for key, profile, cells in _columns(lake)
        if reason_left_out(profile, ColumnRules()) is None and len(cells) >= MIN_MATCHES
    ]
    texts = [cells.to_pylist() for _, cells in columns]
    folded = [[form for text in column if (form := fold(text))] for column in texts]
    vocabulary, held = incidence(folded)
    number = {value: position for position, value in enumerate(vocabulary)}
    everything = [text for column in texts for text in column]
    generator, seen = np.random.default_rng(seed), set()
    queries, originals, labels = [], [], []
    for position in generator.permutation(len(columns)):
        words = [text for text in texts[position] if sum(map(str.isalpha, text)) >= SHORTEST]
        values = frozenset(folded[position])
        if len(words) < MIN_VALUES or values in seen or len(queries) == N_ASKED:
            continue
        seen.add(values)
        n = min(len(words), int(generator.integers(MIN_VALUES, MAX_VALUES + 1)))
        sample = [words[word_index] for word_index in generator.permutation(len(words))[:n]]
        n_foreign = int(generator.choice(FOREIGN_SHARES) * n)
        foreign = [everything[at] for at in generator.integers(len(everything), size=n_foreign)]
        share = generator.choice(MISSPELT_SHARES)
        spelt = [
            _misspelt(text, generator) if generator.random() < share else text for text in sample
        ]
        known = sorted({number[form] for text in (*sample, *foreign) if (form := fold(text))})
        queries.append(pa.array([*spelt, *foreign], pa.string()))
        originals.append(pa.array([*sample, *foreign], pa.string()))
        labels.append(_labels(np.asarray(held[:, known].sum(1)).ravel(), len(known)))
    return AskedLake(name, lake, [key for key, _ in columns], queries, np.stack(labels), originals)


def _misspelt(text: str, generator: np.random.Generator) -> str:
    """Misspell at most two words."""
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= SHORTEST and word.isalpha()]
    for at in generator.permutation(long)[:2]:
        words[at] = misspell(words[at], generator)
    return " ".join(words)


def _transform(folder: Path) -> AskedLake:
    truths, sources = {}, {}
    for case in sorted(path for path in folder.iterdir() if path.is_dir()):
        described = json.loads((case / "case.json").read_text("utf-8"))
        truth, key = _rows(case / "ground_truth.csv"), described["source_key"]
        if described["kind"] == "two web tables" or "source_value" not in truth[0]:
            shutil.rmtree(case)
            continue
        truths[case.name] = truth
        source = read_table(case / "source.csv")
        sources[case.name] = (
            source.columns[source.names.index(key)] if key in source.names else None
        )
        (case / "ground_truth.csv").unlink()
        (case / "case.json").unlink()
    columns = [
        (key, cells)
        for key, profile, cells in _columns(folder)
        if reason_left_out(profile, ColumnRules()) is None
    ]
    held = [{fold(text) for text in cells.to_pylist()} for _, cells in columns]
    texts, labels = [], []
    for case, cells in sources.items():
        if len(values := distinct_cells(cells)) < MIN_MATCHES:
            continue
        partners = defaultdict(set)
        for row in truths[case]:
            partners[fold(row["source_value"])].add(fold(row["target_value"]))
        forms = sorted({form for text in values.to_pylist() if (form := fold(text))})
        common = [sum(not held_.isdisjoint({v, *partners[v]}) for v in forms) for held_ in held]
        labels.append(_labels(np.array(common), len(forms)))
        labels[-1][[table == f"{case}/source.csv" for (table, _), _ in columns]] = NOT_JUDGED
        texts.append(values)
    return AskedLake(TRANSFORM, folder, [key for key, _ in columns], texts, np.stack(labels), texts)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def without_doubtful(
    lake: AskedLake,
    query: np.ndarray,
    candidate: np.ndarray,
    labels: np.ndarray,
    normalise: Normalise,
) -> np.ndarray:
    """Return the classes of pairs that were found, doubtful negative ones not judged.

    Parameters
    ----------
    query, candidate : int64 (n,)
        Query columns and columns of the lake, by number.
    labels : int8 (n,)
    normalise : callable
        The normaliser of the index.
    """
    if lake.originals is None:
        return labels
    labels = labels.copy()
    open_pairs = np.flatnonzero(labels == NEGATIVE)
    originals = normalise(lake.originals)
    needed = np.unique(candidate[open_pairs]).tolist()
    tables = {table: read_table(lake.lake / table).columns for table, _ in lake.keys}
    cells = [tables[table][position] for table, position in (lake.keys[at] for at in needed)]
    others = {at: _Values(values) for at, values in zip(needed, normalise(cells), strict=True)}
    for pair in open_pairs:
        query_values, other = originals[query[pair]], others[candidate[pair]]
        equal = sum(value in other.values for value in query_values)
        if equal >= MIN_MATCHES and equal >= MIN_JOINABILITY * len(query_values):
            labels[pair] = BY_MEANING
        elif sum(map(other.may_hold, query_values)) >= NOT_JUDGED_JOINABILITY * len(query_values):
            labels[pair] = NOT_JUDGED
    return labels


_same = lru_cache(1 << 20)(may_be_same)  # columns of a lake hold the same values often


class _Values:
    """Distinct values, found by the beginnings of their words."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = set(values)
        self._by_prefix: dict[str, set[str]] = defaultdict(set)
        for value in values:
            for word in value.split():
                self._by_prefix[word[:PREFIX]].add(value)

    def may_hold(self, value: str) -> bool:
        near = set().union(*(self._by_prefix.get(word[:PREFIX], ()) for word in value.split()))
        return value in self.values or any(_same(value, other) for other in near)
