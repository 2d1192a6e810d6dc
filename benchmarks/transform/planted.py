"""The part ``planted``: seconds, memory and F where the rule is known, by the number of rows."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from benchmarks.memory import peak_memory
from benchmarks.transform.scores import counted
from pexeso.errors import InputError
from pexeso.transform.joins.joined import TransformJoin
from pexeso.transform.joins.learned import learn_transformation
from pexeso.transform.transformation import KINDS

# Pairs of tables whose rule is known: names, e-mails, dates, codes and paths of made-up people.
#
# Both tables have a column ``id`` by which a true pair is known; it is no part of the key. A share
# of the keys has a partner in the other table, and the rows of the target are in another order.
# Distinct people have distinct keys.

_SYLLABLES = pa.array([first + last for first in "bdfgklmnprstv" for last in "aeiou"])
_ENDINGS = pa.array(["", "n", "rs", "lla"])
"""Of words, so that they differ in length; no syllables look like one."""

_FIRST, _LAST = 2, 3
"""Syllables of a first and of a last name."""

_STEMS = len(_SYLLABLES) ** (_FIRST + _LAST)
_N_PEOPLE = _STEMS * len(_ENDINGS) ** 2

_FIRST_DAY, _N_DAYS = np.datetime64("1000-01-01"), 3_287_182
"""Days of the years 1000 to 9999."""

_SECONDS = 86_400

Columns = dict[str, pa.Array]


@dataclass(frozen=True)
class People:
    """People, by number.

    Attributes
    ----------
    numbers : int64 (n,)
        Distinct.
    """

    numbers: np.ndarray
    rng: np.random.Generator

    @property
    def first(self) -> pa.Array:
        return _word(self.numbers, _FIRST, self.numbers // _STEMS)

    @property
    def last(self) -> pa.Array:
        """Last names: with the first name, they tell people apart."""
        endings = self.numbers // (_STEMS * len(_ENDINGS))
        return _word(self.numbers // len(_SYLLABLES) ** _FIRST, _LAST, endings)

    @property
    def year(self) -> pa.Array:
        return pa.array(self._drawn(120) + 1900).cast(pa.string())

    @property
    def ending(self) -> pa.Array:
        return _ENDINGS.take(pa.array(self._drawn(len(_ENDINGS))))

    def words(self, n_words: int) -> pa.Array:
        limit = len(_SYLLABLES) ** 3
        parts = [_word(self._drawn(limit), 3, self._drawn(len(_ENDINGS))) for _ in range(n_words)]
        return _joined(parts, " ")

    def _drawn(self, below: int) -> np.ndarray:
        return self.rng.integers(0, below, len(self.numbers))


def _word(numbers: np.ndarray, n_syllables: int, endings: np.ndarray) -> pa.Array:
    """Return capitalised words of syllables, the digits of numbers, and an ending."""
    digits = [
        _SYLLABLES.take(pa.array(numbers // len(_SYLLABLES) ** exponent % len(_SYLLABLES)))
        for exponent in range(n_syllables)
    ]
    ending = _ENDINGS.take(pa.array(endings % len(_ENDINGS)))
    return pc.utf8_capitalize(_joined([*digits, ending]))


def _joined(parts: Sequence[pa.Array | str], separator: str = "") -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)


Make = Callable[[People], tuple[Columns, pa.Array]]
"""From people to the columns of the source's key and the target's key."""


def _email(people: People) -> tuple[Columns, pa.Array]:
    first, last = people.first, people.last
    mail = [pc.utf8_lower(first), ".", pc.utf8_lower(last), "@school.example.org"]
    return {"name": _joined([first, last], " ")}, _joined(mail)


def _reversed(people: People) -> tuple[Columns, pa.Array]:
    first, last = people.first, people.last
    listed = _joined([last, ", ", first, " (", people.year, ")"])
    return {"listed": listed}, _joined([first, last], " ")


def _citation(people: People) -> tuple[Columns, pa.Array]:
    authors = _joined([people.first, people.last], " ")
    columns = {"authors": authors, "title": people.words(4), "year": people.year}
    return columns, _joined(list(columns.values()), " ")


def _path(people: People) -> tuple[Columns, pa.Array]:
    numbers = pa.array(people.numbers % 10**10).cast(pa.string())
    code = _joined([pc.utf8_upper(_word(people.numbers, 2, 0 * people.numbers)), "-", numbers])
    path = ["/data/", pc.utf8_lower(people.words(1)), "/", code, "/", people.year, "/report.csv"]
    return {"path": _joined(path)}, code


def _date(people: People) -> tuple[Columns, pa.Array]:
    iso = np.datetime_as_string(_FIRST_DAY + people.numbers.astype("timedelta64[D]"))
    days = pa.array(iso.astype(object), pa.string())
    parts = [pc.utf8_slice_codeunits(days, *span) for span in ((8, 10), (5, 7), (0, 4))]
    return {"day": days}, _joined(parts, "/")


def _user_id(people: People) -> tuple[Columns, pa.Array]:
    # The beginnings that are kept tell people apart; what is cut off is drawn.
    first, last = (_joined([name, people.ending]) for name in (people.first, people.last))
    beginnings = [
        pc.utf8_slice_codeunits(name, 0, 2 * n) for name, n in ((first, _FIRST), (last, _LAST))
    ]
    return {"first": first, "last": last}, pc.utf8_lower(_joined(beginnings))


def _time(people: People) -> tuple[Columns, pa.Array]:
    seconds = people.numbers
    parts = seconds // 3600, seconds // 60 % 60, seconds % 60
    cells = [pa.array(part).cast(pa.string()) for part in parts]
    return dict(zip(("hour", "minute", "second"), cells, strict=True)), _joined(cells, ":")


def _name_concat(people: People) -> tuple[Columns, pa.Array]:
    columns = {"first": people.first, "last": people.last}
    return columns, _joined(list(columns.values()))


def _citeseer(people: People) -> tuple[Columns, pa.Array]:
    columns = {
        "year": people.year,
        "title": people.words(5),
        "authors": _joined([people.last, people.first], ", "),
    }
    merged = [columns["authors"], ". ", columns["title"], ". ", columns["year"], "."]
    return columns, _joined(merged)


@dataclass(frozen=True)
class Rule:
    """How the key of the target is derived."""

    make: Make
    n_keys: int = _N_PEOPLE


RULES = {
    "e-mail": Rule(_email),
    "reversed name": Rule(_reversed),
    "three columns": Rule(_citation),
    "path": Rule(_path, 10**10),
    "date": Rule(_date, _N_DAYS),
}
"""Name to e-mail; ``Last, First (year)`` to the name; authors, title and year together, as in the
source's DBLP; a code in a path; a date with the day first."""

SYNTHETIC = {
    "UserID": Rule(_user_id, _STEMS),
    "Time": Rule(_time, _SECONDS),
    "NameConcat": Rule(_name_concat),
    "Citeseer": Rule(_citeseer),
}
"""The four cases of the source: texts of fixed length, hour, minute and second, names together, and
columns that are merged in another order."""


@dataclass(frozen=True)
class PlantedPair:
    """Two tables and the rule between them."""

    source: pa.Table
    target: pa.Table
    columns: tuple[str, ...]
    n_true: int


def planted_pair(rule: Rule, n_rows: int, *, share: float = 0.5, seed: int = 0) -> PlantedPair:
    """Draw two tables of so many rows."""
    n_true = round(share * n_rows)
    n_people = 2 * n_rows - n_true
    if n_people > rule.n_keys:
        raise InputError(f"The rule has {rule.n_keys:,} keys, and {n_people:,} are asked for.")
    rng = np.random.default_rng(seed)
    people = People(_distinct(rng, n_people, rule.n_keys), rng)
    columns, key = rule.make(people)
    first = np.arange(n_rows)
    last = rng.permutation(np.arange(n_people - n_rows, n_people))
    source = {name: cells.take(pa.array(first)) for name, cells in columns.items()}
    target = {"key": key.take(pa.array(last))}
    return PlantedPair(
        pa.table({**source, "id": first}), pa.table({**target, "id": last}), tuple(columns), n_true
    )


def _distinct(rng: np.random.Generator, n: int, below: int) -> np.ndarray:
    """Return distinct numbers, in any order."""
    if 2 * n > below:
        return rng.permutation(below)[:n]
    numbers = np.empty(0, np.int64)
    while len(numbers) < n:
        numbers = np.unique(np.concatenate([numbers, rng.integers(0, below, n)]))
    return rng.permutation(numbers)[:n]


SIZES = tuple(10**power for power in range(2, 7))
MAX_ROWS = 10_000
SYNTHETIC_ROWS = 1_000


def measured_planted(
    *, seed: int = 0, max_rows: int = MAX_ROWS, share: float = 0.5, repeats: int = 3
) -> dict[str, Any]:
    """Learn all rules, at all of `SIZES` up to one."""
    sizes = [size for size in SIZES if size <= max_rows]
    rows = [
        measured_pair(name, rule, size, share=share, seed=seed, repeats=repeats)
        for name, rule in RULES.items()
        for size in sizes
    ]
    synthetic = [
        measured_pair(name, rule, min(SYNTHETIC_ROWS, max_rows), share=1, seed=seed, repeats=1)
        for name, rule in SYNTHETIC.items()
    ]
    return {"share": share, "planted": rows, "synthetic": synthetic}


def measured_pair(
    name: str, rule: Rule, n_rows: int, *, share: float = 0.5, seed: int = 0, repeats: int = 1
) -> dict[str, Any]:
    """Learn one rule from two tables, and join them by it."""
    pair = planted_pair(rule, n_rows, share=share, seed=seed)
    runs = [_learned(pair, seed) for _ in range(repeats if n_rows < MAX_ROWS else 1)]
    joined, _, peak_bytes = runs[0]
    counts = np.bincount(joined.rule.kinds, minlength=len(KINDS)).tolist()
    return {
        "rule": name,
        "rows": n_rows,
        **scores_of(joined, pair),
        "kinds": dict(zip(KINDS, counts, strict=True)),
        "program": joined.program,
        "seconds": statistics.median(seconds for _, seconds, _ in runs),
        "join_seconds": _join_seconds(joined, pair),
        "peak_bytes": peak_bytes,
    }


def _learned(pair: PlantedPair, seed: int) -> tuple[TransformJoin, float, int | None]:
    gc.collect()
    with peak_memory(torch.device("cpu")) as peak:
        started = time.process_time()
        joined = learn_transformation(
            pair.source, pair.target, columns=pair.columns, target_columns=["key"], seed=seed
        )
        seconds = time.process_time() - started
    return joined, seconds, peak.n_bytes


def scores_of(joined: TransformJoin, pair: PlantedPair) -> dict[str, Any]:
    """Return the scores of the joined rows, and F without what is joined as nearly equal."""
    table = joined.table(how="inner", many_to_many=True)
    right = pc.equal(table["id"], table["id 2"])
    exact = pc.not_equal(table["match_kind"], "fuzzy")
    n_right, n_exact = pc.sum(right).as_py() or 0, pc.sum(exact).as_py() or 0
    n_both = pc.sum(pc.and_(right, exact)).as_py() or 0
    return {
        **counted(n_right, table.num_rows, pair.n_true),
        "f_without_fuzzy": counted(n_both, n_exact, pair.n_true)["f"],
    }


def _join_seconds(joined: TransformJoin, pair: PlantedPair) -> float | None:
    """Return the seconds that a stored program takes, to the joined table."""
    if joined.program is None:
        return None
    with TemporaryDirectory(prefix="pexeso-transform-") as folder:
        path = Path(folder) / "program.json"
        joined.save(path)
        started = time.process_time()
        learn_transformation(
            pair.source,
            pair.target,
            columns=pair.columns,
            target_columns=["key"],
            program=path,
            fuzzy=False,
        ).table(how="inner", many_to_many=True)
        return time.process_time() - started
