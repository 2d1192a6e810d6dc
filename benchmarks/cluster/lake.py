"""A lake that is made by rule, and of which it is known exactly which columns join.

Cells are words of whole numbers, drawn from a vocabulary in which some are frequent. Whatever is
said about the lake is counted on these numbers, and no code of pexeso takes part.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cluster.truth import Truth
from benchmarks.cluster.words import words_of, written

WIDTH = 50
"""Columns of a table."""

LEAST_ROWS, MOST_ROWS, ROWS_POWER = 5, 30, 1.7
"""Rows of a table, n of them with a probability of n to the power of -1.7: 11.5 on average."""

IDS_PER_COLUMN, SKEW = 4, 2.5
"""The vocabulary has so many numbers a column; a uniform draw to this power picks one."""

QUERY_SIZES = (4, 6, 10, 15, 20, 30, 40)
SHARES = (1.0, 0.9, 0.75, 0.6, 0.5, 0.45, 0.3, 0.1)
"""Of the values of a query column that a planted column shares, in turn."""

FREQUENT = 5

TABLES_AT_ONCE = 200
TABLES_IN_FOLDER = 1000
FORMAT = 2
"""To be raised when the same settings give another lake."""

LAKE, QUERIES, TRUTH, ABOUT = "lake", "queries.jsonl", "truth.parquet", "about.json"


@dataclass(frozen=True)
class Settings:
    """What a lake is made from.

    Attributes
    ----------
    columns : int
        A multiple of `WIDTH`.
    queries : int
        Query columns.
    planted : int
        Columns for each that are made to share a part of its values.
    min_joinability : float
        Of the columns in the truth.
    seed : int
    """

    columns: int
    queries: int
    planted: int
    min_joinability: float
    seed: int

    @property
    def ids(self) -> int:
        """How many different values there can be."""
        return self.columns * IDS_PER_COLUMN


@dataclass(frozen=True)
class Chunk:
    """Some tables: the numbers of all their cells, column after column.

    Attributes
    ----------
    first : int
        The first table.
    rows : numpy.ndarray
        Of each table.
    ids : numpy.ndarray, int64
        Of all cells.
    starts : numpy.ndarray
        Of each column in them, and the end.
    """

    first: int
    rows: np.ndarray
    ids: np.ndarray
    starts: np.ndarray

    @property
    def columns(self) -> np.ndarray:
        """The column of each cell, counted through the lake."""
        column_numbers = np.arange(len(self.starts) - 1) + self.first * WIDTH
        return np.repeat(column_numbers, np.diff(self.starts))


def table_name(table: int) -> str:
    """Return the path of a table below the lake.

    Examples
    --------
    >>> table_name(1234)
    '0001/t0001234.parquet'
    """
    return f"{table // TABLES_IN_FOLDER:04}/t{table:07}.parquet"


def column_name(column: int) -> str:
    """Return the header of a column that is counted through the lake.

    Examples
    --------
    >>> column_name(57)
    'c07'
    """
    return f"c{column % WIDTH:02}"


def query_ids(settings: Settings) -> list[np.ndarray]:
    """Return the numbers of each query column, all different.

    Every `FREQUENT`th column has the most frequent ones: many columns join it that nobody planted.
    """
    draws = np.random.default_rng([settings.seed, 1])
    sizes = [QUERY_SIZES[number % len(QUERY_SIZES)] for number in range(settings.queries)]
    return [
        draws.permutation(size)
        if number % FREQUENT == FREQUENT - 1
        else _distinct(draws, settings.ids, size)
        for number, size in enumerate(sizes)
    ]


def chunks(settings: Settings) -> Iterator[Chunk]:
    """Draw the lake, `TABLES_AT_ONCE` tables at a time."""
    sizes = np.arange(LEAST_ROWS, MOST_ROWS + 1)
    weights = sizes**-ROWS_POWER
    draws = np.random.default_rng([settings.seed, 0])
    rows = draws.choice(sizes, settings.columns // WIDTH, p=weights / weights.sum())
    planted = _planted(settings, rows)
    for first in range(0, len(rows), TABLES_AT_ONCE):
        some = rows[first : first + TABLES_AT_ONCE]
        starts = np.concatenate([[0], np.cumsum(np.repeat(some, WIDTH))])
        draws = np.random.default_rng([settings.seed, 2, first])
        ids = _drawn(draws, settings.ids, starts[-1])
        for column in range(first * WIDTH, (first + len(some)) * WIDTH):
            if column in planted:
                start = starts[column - first * WIDTH]
                ids[start : start + len(planted[column])] = planted[column]
        # A constant is left out of an index. What is planted is not touched: its numbers differ.
        seconds, firsts = starts[:-1] + 1, starts[:-1]
        ids[seconds] += ids[seconds] == ids[firsts]
        ids[seconds] %= settings.ids
        yield Chunk(first, some, ids, starts)


def _planted(settings: Settings, rows: np.ndarray) -> dict[int, np.ndarray]:
    """Return by column the numbers that it shares with a query column."""
    draws = np.random.default_rng([settings.seed, 3])
    planted: dict[int, np.ndarray] = {}
    for query in query_ids(settings):
        for number in range(settings.planted):
            shared = max(1, round(SHARES[number % len(SHARES)] * len(query)))
            tables = np.flatnonzero(rows >= min(shared, rows.max()))
            table = int(draws.choice(tables))
            column = table * WIDTH + int(draws.integers(WIDTH))
            if column not in planted:
                planted[column] = draws.permutation(query)[: min(shared, rows[table])]
    return planted


def _drawn(draws: np.random.Generator, n_ids: int, size: int) -> np.ndarray:
    return np.minimum((n_ids * draws.random(size) ** SKEW).astype(np.int64), n_ids - 1)


def _distinct(draws: np.random.Generator, n_ids: int, size: int) -> np.ndarray:
    ids = np.empty(0, np.int64)
    while len(ids) < size:
        ids = np.union1d(ids, _drawn(draws, n_ids, size))
    return draws.permutation(ids)[:size]


def make_lake(folder: Path, settings: Settings, tell: Callable[[str], None]) -> dict[str, Any]:
    """Write lake, query columns and truth, unless they are there; return what is known of them.

    A folder of other settings is replaced. The memory that it takes does not grow with the lake,
    but for the truth and a bit of each number.
    """
    about = folder / ABOUT
    made_from = {**asdict(settings), "format": FORMAT}
    if about.exists():
        known = json.loads(about.read_text(encoding="utf-8"))
        if known["settings"] == made_from:
            return known
    shutil.rmtree(folder, ignore_errors=True)
    started, processor = time.perf_counter(), time.process_time()
    queries = query_ids(settings)
    truth = Truth(queries, settings.min_joinability)
    is_used = np.zeros(settings.ids, bool)
    n_cells = n_pairs = 0
    for chunk in chunks(settings):
        n_pairs += truth.add(chunk.columns, chunk.ids)
        n_cells += len(chunk.ids)
        is_used[chunk.ids] = True
        _write(folder / LAKE, chunk, np.random.default_rng([settings.seed, 4, chunk.first]))
        if chunk.first // TABLES_AT_ONCE % 10 == 9:
            tell(f"{(chunk.first + len(chunk.rows)) * WIDTH:,} columns are written")
    answers = truth.table()
    pq.write_table(answers, folder / TRUTH)
    _write_queries(folder / QUERIES, queries, np.random.default_rng([settings.seed, 5]))
    known = {
        "settings": made_from,
        "columns": settings.columns,
        "tables": settings.columns // WIDTH,
        "cells": n_cells,
        "pairs": n_pairs,
        "values": int(is_used.sum()),
        "bytes": sum(path.stat().st_size for path in (folder / LAKE).rglob("*.parquet")),
        "queries": {
            "columns": len(queries),
            "values": sum(map(len, queries)),
            "least": min(map(len, queries)),
            "most": max(map(len, queries)),
        },
        "truth": {
            "answers": answers.num_rows,
            "queries_with_answers": len(answers["query"].unique()),
        },
        "made_in_seconds": round(time.perf_counter() - started, 1),
        "made_in_processor_seconds": round(time.process_time() - processor, 1),
    }
    unfinished = about.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, about)
    return known


def _write(lake: Path, chunk: Chunk, draws: np.random.Generator) -> None:
    cells = written(words_of(chunk.ids), draws)
    for number, n_rows in enumerate(chunk.rows.tolist()):
        starts = chunk.starts[number * WIDTH : (number + 1) * WIDTH].tolist()
        columns = {column_name(at): cells.slice(start, n_rows) for at, start in enumerate(starts)}
        path = lake / table_name(chunk.first + number)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path, use_dictionary=False, write_statistics=False)


def _write_queries(path: Path, queries: list[np.ndarray], draws: np.random.Generator) -> None:
    lines = [
        json.dumps({"id": number, "values": written(words_of(ids), draws).to_pylist()})
        for number, ids in enumerate(queries)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def truth_of(folder: Path) -> list[dict[tuple[str, str], int]]:
    """Return for each query column the columns that join, and how many of its values match."""
    about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    answers: list[dict[tuple[str, str], int]] = [{} for _ in range(about["queries"]["columns"])]
    for row in pq.read_table(folder / TRUTH).to_pylist():
        column = row["column"]
        key = (table_name(column // WIDTH), column_name(column))
        answers[row["query"]][key] = row["matched"]
    return answers
