"""The data sets with truth, read in one form.

They have judged columns, judged values, and columns with a partner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.datasets.tables import SHARED, shared_archive, unpack
from benchmarks.effectiveness.judged import (
    BY_MEANING,
    BY_TEXT,
    MIN_MATCHES,
    NOT_JUDGED,
    Judged,
    distinct_cells,
    labels_of,
    pairs_by_text,
    read_judged,
)
from benchmarks.effectiveness.partners import PartnerLake, partner_lake
from benchmarks.effectiveness.tasks import NAMES, Task, incidence_of, read_tasks
from pexeso.errors import InputError
from pexeso.lake.choose import profile_column
from pexeso.lake.containers.reader import read_table

# The truth about country names, by their codes.
#
# It states which columns can be joined, and which names are the same country.
#
# Asked are the columns of English names; candidates are all columns of text with at least four
# distinct cells. A pair of columns is *positive* when at least four, and at least half, of the
# query column's distinct names have a name of the same code in the other, or an equal folded text;
# it is *not judged* at a share of 0.3 and three matches or more. Names in another language are not
# judged either: that they match is true, but the claim is about English; nor are columns of codes
# of countries ("FRA"), which stand for the same countries. The other columns (regions, capitals,
# ...) are negative. Pairs within a table are judged here, since one table has five of the eight
# spellings; a column and itself is not.

Column = tuple[str, str]

CODES = "country-codes.csv"
ENGLISH: dict[Column, str] = {
    ("iso3166.csv", "name"): "ISO name",
    ("names_en.csv", "value"): "English name",
    ("gdp.csv", "Country Name"): "World Bank name",
    (CODES, "CLDR display name"): "CLDR name",
    (CODES, "UNTERM English Short"): "UN short name",
    (CODES, "UNTERM English Formal"): "UN formal name",
    (CODES, "official_name_en"): "official name",
    (CODES, "ISO4217-currency_country_name"): "name in the currency list",
}
"""The columns that are asked, and what they are called in results."""

IN_OTHER_LANGUAGES = re.compile(r"(?:official_name_|UNTERM )(?!en$|English)")
"""Columns of `CODES` with names that the truth says nothing about, though they are the same."""

TRUTH = ("name_codes.csv", "join_pairs.csv")


def read_countries(lake: Path, truth: Path) -> tuple[Judged, list[Task]]:
    """Read the columns of the lake with their truth, and the value-level tasks."""
    keys, names, texts = [], [], []
    for path in sorted(lake.glob("*.csv")):
        table = read_table(path)
        for position, (name, cells) in enumerate(zip(table.names, table.columns, strict=True)):
            distinct = distinct_cells(cells)
            if len(distinct) >= MIN_MATCHES and profile_column(cells).kind == "text":
                keys.append((path.name, position))
                names.append((path.name, name))
                texts.append(distinct)
    number = {column: index for index, column in enumerate(names)}
    if missing := [f"{table}:{name}" for table, name in ENGLISH if (table, name) not in number]:
        raise InputError(f"The lake {lake} lacks the column {missing[0]}.")
    judged = _judged(keys, texts, number, truth / TRUTH[1])
    return judged, _tasks(truth / TRUTH[0])


def _judged(
    keys: list[tuple[str, int]], texts: list[pa.StringArray], number: dict[Column, int], path: Path
) -> Judged:
    table = read_table(path)
    rows = dict(zip(table.names, (column.to_pylist() for column in table.columns), strict=True))
    sides = [list(zip(rows[f"table_{side}"], rows[f"column_{side}"], strict=True)) for side in "ab"]
    queries = np.sort([number[column] for column in ENGLISH])
    selected = [row for row, column in enumerate(sides[0]) if column in ENGLISH]
    query, candidate = (
        np.array([number[side[row]] for row in selected], np.int64) for side in sides
    )
    matches, sizes = (
        np.array([int(rows[name][row]) for row in selected]) for name in ("code_matches", "names_a")
    )
    pairs = query * len(keys) + candidate
    others = [
        position
        for (table, name), position in number.items()
        if table == CODES and IN_OTHER_LANGUAGES.match(name)
    ]
    foreign = np.union1d(
        pairs[~np.isin(candidate, queries)], (queries[:, None] * len(keys) + others).ravel()
    )
    by_text = pairs_by_text(texts)
    by_text = by_text[np.isin(by_text // len(keys), queries)]
    labels = labels_of(by_text, pairs, matches, sizes)
    for label in (BY_TEXT, BY_MEANING):
        labels[label] = np.setdiff1d(labels[label], foreign)
    labels[NOT_JUDGED] = np.union1d(labels[NOT_JUDGED], foreign)
    codes = np.flatnonzero([_is_of_codes(column) for column in texts])
    to_codes = (np.arange(len(keys))[:, None] * len(keys) + codes).ravel()
    known = np.concatenate([labels[BY_TEXT], labels[BY_MEANING]])
    labels[NOT_JUDGED] = np.union1d(labels[NOT_JUDGED], np.setdiff1d(to_codes, known))
    return Judged(keys, texts, labels, queries, within_tables=True)


def _is_of_codes(column: pa.StringArray) -> bool:
    """Return whether at least half of the cells are two or three letters."""
    return 2 * (
        pc.sum(pc.match_substring_regex(column, r"^\.?[A-Za-z]{2,3}$")).as_py() or 0
    ) >= len(column)


def _tasks(path: Path) -> list[Task]:
    table = read_table(path)
    tables, columns, names, codes = (
        table.columns[table.names.index(name)] for name in ("table", "column", "name", "alpha3")
    )
    cells: dict[Column, tuple[pa.StringArray, pa.StringArray]] = {}
    for column in ENGLISH:
        mask = pc.and_(pc.equal(tables, column[0]), pc.equal(columns, column[1]))
        cells[column] = names.filter(mask), codes.filter(mask)
    return [_task(query, other, cells) for query, other in permutations(ENGLISH, 2)]


def _task(
    query: Column, other: Column, cells: dict[Column, tuple[pa.StringArray, pa.StringArray]]
) -> Task:
    (texts, codes), (other_texts, other_codes) = cells[query], cells[other]
    positions = pc.index_in(codes, other_codes)
    rows = np.flatnonzero(positions.is_valid().to_numpy(zero_copy_only=False))
    partners = incidence_of(rows, positions.drop_null(), (len(texts), len(other_texts)))
    return Task(
        f"{ENGLISH[query]} -> {ENGLISH[other]}", ENGLISH[query], texts, other_texts, partners
    )


DATA = ("wikitables", "countries", "autofj", "entity-pairs")


@dataclass(frozen=True)
class TruthSet:
    """A lake and what is known about it."""

    name: str
    lake: Path
    judged: Judged | None = None
    tasks: list[Task] = field(default_factory=list)
    partners: PartnerLake | None = None

    @property
    def texts(self) -> list[pa.StringArray]:
        judged = self.judged.texts if self.judged else []
        partners = self.partners.texts if self.partners else []
        return [
            *judged,
            *partners,
            *(column for task in self.tasks for column in (task.queries, task.others)),
        ]


def shared_set(name: str, place: Path, shared: Path = SHARED) -> TruthSet:
    """Unpack and read a data set of `DATA`."""
    kind = "datasets" if name in ("autofj", "entity-pairs") else "tables"
    lake = unpack(shared_archive(name, kind, shared), place / "lake")
    if name == "wikitables":
        return TruthSet(name, lake, read_judged(lake, shared / name / "join_pairs.tsv.gz"))
    return (
        countries_set(lake, place / "truth")
        if name == "countries"
        else tasks_set(name, lake, place / "truth")
    )


def countries_set(lake: Path, truth: Path) -> TruthSet:
    """Read `countries`; the files of its truth are moved out of the lake."""
    truth.mkdir(parents=True, exist_ok=True)
    for name in TRUTH:
        (lake / name).rename(truth / name)
    judged, tasks = read_countries(lake, truth)
    return TruthSet("countries", lake, judged, tasks)


def tasks_set(name: str, lake: Path, truth: Path) -> TruthSet:
    """Read a data set of tasks whose tables are also a lake."""
    tasks = read_tasks(lake)
    truth.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        (lake / task.name / "gt.csv").rename(truth / f"{task.name}.csv")
    return TruthSet(
        name, lake, tasks=tasks, partners=partner_lake(text_columns(lake), NAMES, tasks)
    )


def text_columns(lake: Path) -> Iterator[tuple[str, str, pa.StringArray]]:
    """Return the columns of text of a lake: table, name and cells."""
    for path in sorted(lake.rglob("*.csv")):
        table = read_table(path)
        for name, cells in zip(table.names, table.columns, strict=True):
            if profile_column(cells).kind == "text":
                yield path.relative_to(lake).as_posix(), name, cells
