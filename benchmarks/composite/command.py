"""The command ``python -m benchmarks composite``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.commands import benchmark, setting
from benchmarks.composite.published_filter import PublishedXash
from benchmarks.datasets.tables import folder_tables, unpacked
from benchmarks.datasets.tpch import write_tpch
from benchmarks.machine import pin_threads
from benchmarks.timing import timed_call
from benchmarks.token_sets import syllable_words
from pexeso.composite.row_keys import RowKeys, build_row_keys, filters_of, row_keys_of
from pexeso.composite.search import KeyMatches, KeyQuery, key_query, search_keys
from pexeso.engine.lists import offsets_of
from pexeso.errors import InputError, LakeError, PexesoError
from pexeso.lake.tokens import key_texts
from pexeso.registry import DEFAULT_FILTERS

MOST_ROWS, LEAST_ROWS = 2000, 5
_TRIES = 100


@dataclass(frozen=True, eq=False)
class Question:
    """A key of a table of the lake, and that table, which is no answer."""

    query: KeyQuery
    table: int


def table_texts(rows: RowKeys, table: int, columns: list[int]) -> list[pa.Array]:
    """Return the cells of columns of a table, null where one is missing."""
    begin, end = rows.table_cells[table : table + 2].tolist()
    cells = rows.cells[begin:end].reshape(-1, int(rows.widths[table]))
    return [
        rows.values.take(pa.array(cells[:, column], mask=cells[:, column] < 0))
        for column in columns
    ]


def drawn_questions(rows: RowKeys, m: int, n: int, *, seed: int = 0) -> list[Question]:
    """Draw tables, and m columns of each, all alike; at most `MOST_ROWS` rows of a table."""
    rng = np.random.default_rng(seed)
    usable = np.flatnonzero((rows.widths >= m) & (np.diff(rows.table_rows) >= LEAST_ROWS))
    questions: list[Question] = []
    for _ in range(_TRIES * n if len(usable) else 0):
        table = int(rng.choice(usable))
        columns = rng.choice(int(rows.widths[table]), m, replace=False).tolist()
        query = key_query([texts[:MOST_ROWS] for texts in table_texts(rows, table, columns)])
        if query.n_keys >= 2:
            questions.append(Question(query, table))
        if len(questions) == n:
            return questions
    raise LakeError(f"The lake has no {n:,} keys of {m} columns with 2 to {MOST_ROWS:,} values.")


K, REPEATS = 10, 3

FOUR = ("none", "bloom", "xash", "intersection")
"""What the choice is among."""

_PUBLISHED = "xash-128-ref"
FILTERS = (
    *(f"{name}-{bits}" for name in ("bloom", "xash") for bits in (128, 256, 512)),
    _PUBLISHED,
)
WAYS = {
    "SCR": ("none", None),
    "MCR": ("intersection", None),
    **{name: (name.partition("-")[0], name) for name in FILTERS},
}
"""The paper's ways by name: how rows are sorted out, and the filter that the index then keeps. SCR
reads the lists of one column, MCR those of all columns."""


def with_filters(rows: RowKeys, names: Sequence[str]) -> RowKeys:
    """Return the same lake with filters of rows."""
    width = len(rows.cells) / rows.n_rows
    tables = rows.table_rows, rows.table_columns
    published = [PublishedXash()] if _PUBLISHED in names else []
    filters = filters_of([name for name in names if name != _PUBLISHED], width)
    return row_keys_of(rows.values, rows.cells, *tables, [*filters, *published])


def choice(rows: RowKeys, questions: Sequence[Question]) -> dict[str, Any]:
    """Search by each of `FOUR` and by the one that is chosen, in turn, and compare all answers."""
    rows = with_filters(rows, DEFAULT_FILTERS)
    names = (*FOUR, "auto")
    seconds = np.full((len(questions), len(names)), np.inf)
    chosen = dict.fromkeys(FOUR, 0)
    for at, question in enumerate(questions):
        answers = []
        for _ in range(REPEATS):
            for column, name in enumerate(names):
                matches, elapsed = _timed(rows, question, name)
                seconds[at, column] = min(seconds[at, column], elapsed)
                answers.append(matches.matches)
        chosen[matches.row_filter] += 1
        if any(answer != answers[0] for answer in answers):
            raise PexesoError(f"Query {at}: the filters give different answers.")
    return {
        "queries": len(questions),
        "chosen": chosen,
        **{
            name: {"median_ms": round(1e3 * float(np.median(seconds[:, column])), 3)}
            for column, name in enumerate(names)
        },
    }


def filter_measures(rows: RowKeys, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the paper's measures of each of `WAYS`."""
    result = {}
    for name, (way, filter_name) in WAYS.items():
        lake = with_filters(rows, [] if filter_name is None else [filter_name])
        works, seconds = [], 0.0
        for question in questions:
            matches, elapsed = _timed(lake, question, way)
            works.append(matches.work)
            seconds += elapsed
        precision = [work.precision for work in works if work.precision is not None]
        result[name] = {
            "precision": round(float(np.mean(precision)), 3) if precision else None,
            "deviation": round(float(np.std(precision)), 3) if precision else None,
            "false_positives": sum(work.passed - work.held for work in works),
            "probes": sum(work.probes for work in works),
            "seconds": round(seconds / len(questions), 6),
        }
    return result


def _timed(rows: RowKeys, question: Question, way: str) -> tuple[KeyMatches, float]:
    search = partial(search_keys, row_filter=way, excluded=[question.table])
    seconds, matches = timed_call(search, rows, question.query, K, clock=time.process_time)
    return matches, seconds


REAL = ("wikitables", "baseball", "fivethirtyeight", "pudding")
TPCH, POWER_LAW = "tpch", "power-law"
LAKES = (*REAL, TPCH, POWER_LAW)
SCALE, N_ROWS = 0.1, 1_000_000

_DOMAINS, _ATTRIBUTES = 1000, 8
_LARGEST_DOMAIN, _LARGEST_TABLE = 200_000, 20_000
_NOISE = 0.1
_FIRST_YEAR, _YEARS = 1900, 150


def load_lake(name: str, *, scale: float = SCALE, n_rows: int = N_ROWS) -> RowKeys:
    """Load a lake, without super keys."""
    if name == TPCH:
        return build_row_keys(tpch_tables(scale))
    if name == POWER_LAW:
        return power_law_rows(n_rows)
    if name in REAL:
        with unpacked(name) as folder:
            return build_row_keys(compared_tables(folder))
    if not Path(name).is_dir():
        raise LakeError(f"Lakes are {', '.join(LAKES)}, or a folder of tables. Got {name!r}.")
    return build_row_keys(compared_tables(Path(name)))


def compared_tables(folder: Path) -> Iterator[pa.Table]:
    """Read the tables of a folder, cells in the form in which they are compared."""
    for _, table in folder_tables(folder):
        names = [str(number) for number in range(len(table.columns))]
        yield pa.table([key_texts(column) for column in table.columns], names=names)


def tpch_tables(scale: float) -> Iterator[pa.Table]:
    """Make the eight tables of TPC-H."""
    with tempfile.TemporaryDirectory(prefix="pexeso-benchmark-") as folder:
        write_tpch(Path(folder), scale, file_format="csv")
        yield from compared_tables(Path(folder))


def power_law_rows(n_rows: int, *, seed: int = 0) -> RowKeys:
    """Draw a lake whose tables share entities, so that keys of several columns join."""
    if n_rows < 100:
        raise InputError(f"The power-law lake has at least 100 rows. Got {n_rows:,}.")
    rng = np.random.default_rng(seed)
    entities = np.minimum(200 * (1 + rng.pareto(0.8, _DOMAINS)), _LARGEST_DOMAIN)
    sizes = np.maximum(entities[:, None] ** rng.uniform(0.2, 1, (_DOMAINS, _ATTRIBUTES)), 2)
    sizes = sizes.astype(np.int64)
    first_value = offsets_of(sizes.ravel())[:-1].reshape(sizes.shape)
    table_sizes = []
    left = n_rows
    while left:
        table_sizes.append(min(left, int(min(5 * (1 + rng.pareto(0.9)), _LARGEST_TABLE))))
        left -= table_sizes[-1]
    parts, widths = [], []
    for n in table_sizes:
        domain = int(_DOMAINS ** rng.random()) - 1
        columns = rng.permutation(_ATTRIBUTES)[: rng.integers(2, _ATTRIBUTES + 1)]
        drawn = (entities[domain] ** rng.random((n, 1))).astype(np.int64) * np.ones_like(columns)
        other = rng.random(drawn.shape) < _NOISE
        drawn[other] = rng.integers(0, int(entities[domain]), int(other.sum()))
        # What value of an attribute an entity has: any fixed one, and entities side by side differ.
        value = (drawn * 2_654_435_761 >> 7) + drawn * columns
        parts.append((first_value[domain, columns] + value % sizes[domain, columns]).ravel())
        widths.append(len(columns))
    ids, cells = np.unique(np.concatenate(parts), return_inverse=True)
    values, numbers = _texts(ids, first_value.ravel(), sizes.ravel())
    return row_keys_of(
        values,
        numbers[cells],
        offsets_of(np.array(table_sizes, np.int64)),
        offsets_of(np.array(widths, np.int64)),
    )


def _texts(
    ids: np.ndarray, first_value: np.ndarray, sizes: np.ndarray
) -> tuple[pa.Array, np.ndarray]:
    """Return the distinct texts of values in order, and which of them each value is."""
    attribute = np.searchsorted(first_value, ids, side="right") - 1
    years = (sizes[attribute] <= _YEARS) & (attribute % 2 == 0)
    within = (_FIRST_YEAR + ids - first_value[attribute]).astype("U16")
    texts = pa.array(
        np.where(years, within, syllable_words(ids)), pa.large_string()
    ).dictionary_encode()
    order = pc.sort_indices(texts.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return texts.dictionary.take(order), rank[texts.indices.to_numpy()]


@dataclass(frozen=True)
class Settings:
    lakes: tuple[str, ...] = setting((), nargs=-1)
    queries: int = setting(100, "For each number of columns.")
    scale: float = setting(SCALE, "Of TPC-H.")
    rows: int = setting(N_ROWS, "Of the power-law lake.")
    seed: int = setting(11, "Of the keys that are drawn.")


def measured(name: str, settings: Settings) -> dict[str, Any]:
    """Return all measures of a lake."""
    rows = load_lake(name, scale=settings.scale, n_rows=settings.rows)
    result: dict[str, Any] = {
        "tables": rows.n_tables,
        "rows": rows.n_rows,
        "cells": len(rows.cells),
        "values": len(rows.values),
    }
    for m in (2, 3):
        questions = drawn_questions(rows, m, settings.queries, seed=settings.seed)
        result[f"{m} columns"] = {
            "choice": choice(rows, questions),
            "filters": filter_measures(rows, questions),
        }
    return result


@benchmark("composite", Settings)
def composite_command(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Measure searches by composite keys, in LAKES: names, or folders of tables.

    Keys of two and three columns are drawn from the tables of each lake and searched there by every
    filter of rows in turn, in processor time of one thread. All answers must be equal.
    """
    pin_threads(1)
    for name in settings.lakes or LAKES:
        result = {"seed": settings.seed, **measured(name, settings)}
        yield f"composite/{Path(name).name}", result
