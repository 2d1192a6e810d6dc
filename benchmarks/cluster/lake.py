"""A lake that is made by rule, and of which it is known exactly which columns join.

Cells are words of whole numbers, drawn from a vocabulary in which some are frequent. Whatever is
said about the lake is counted on these numbers, and no code of pexeso takes part.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_SYLLABLES = pa.array(
    [f"{consonant}{vowel}" for consonant in "bcdfghjklmnpqrstvwxz" for vowel in "aeiou"]
)
_ENDINGS = pa.array(["", "n", "rs", "lin", "tmar"])
_PLACES = 5
_FACTOR, _SHIFT = 6_180_339_887, 2_718_281_828  # the factor has no divisor in common with 10

N_WORDS = len(_SYLLABLES) ** _PLACES
"""How many numbers have a word of their own."""

WAYS = (
    "{}",
    "{} in capitals",
    "{} with a capital",
    " {} ",
    "{}.",
    '"{}"',
)
"""How a word is written in a cell. The normaliser reads all of them as the same value."""

PLAIN_SHARE = 0.75
"""Of cells that hold the word as it is; the other ways share the rest."""


def words_of(ids: np.ndarray) -> pa.StringArray:
    """Return the word of each number: five syllables that name it, and an ending."""
    scrambled = (ids * _FACTOR + _SHIFT) % N_WORDS
    parts = [_SYLLABLES.take(pa.array(scrambled // 100**power % 100)) for power in range(_PLACES)]
    return pc.binary_join_element_wise(*parts, _ENDINGS.take(pa.array(ids % len(_ENDINGS))), "")


def written(words: pa.StringArray, draws: np.random.Generator) -> pa.StringArray:
    """Return words as people write them in cells; see `WAYS`."""
    others = (1 - PLAIN_SHARE) / (len(WAYS) - 1)
    way = draws.choice(len(WAYS), len(words), p=[PLAIN_SHARE, *[others] * (len(WAYS) - 1)])
    return pc.choose(
        pa.array(way),
        words,
        pc.ascii_upper(words),
        pc.ascii_capitalize(words),
        pc.binary_join_element_wise("", words, "", " "),
        pc.binary_join_element_wise(words, ".", ""),
        pc.binary_join_element_wise('"', words, '"', ""),
    )


def needed(min_joinability: float, n_values: int) -> int:
    """Return how many of the values of a query column must match, in whole numbers."""
    return max(1, math.ceil(Fraction(str(min_joinability)) * n_values))


class Truth:
    """Counts the values of query columns in the columns of a lake."""

    def __init__(self, queries: Sequence[np.ndarray], min_joinability: float) -> None:
        ids = np.concatenate(queries)
        owners = np.repeat(np.arange(len(queries)), [len(query) for query in queries])
        order = np.argsort(ids, kind="stable")
        self._ids, self._owners = ids[order], owners[order]
        self._needed = np.array([needed(min_joinability, len(query)) for query in queries])
        self._matches: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, columns: np.ndarray, ids: np.ndarray) -> int:
        """Count in whole columns; return how many pairs of column and value there are."""
        n_ids = int(ids.max()) + 1
        keys = np.unique(columns * n_ids + ids)
        columns, ids = np.divmod(keys, n_ids)
        first = np.searchsorted(self._ids, ids, "left")
        n_owners = np.searchsorted(self._ids, ids, "right") - first
        hits = np.flatnonzero(n_owners)
        repeats = n_owners[hits]
        within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        owners = self._owners[np.repeat(first[hits], repeats) + within]
        n_queries = len(self._needed)
        both, matched = np.unique(
            np.repeat(columns[hits], repeats) * n_queries + owners, return_counts=True
        )
        column, query = np.divmod(both, n_queries)
        joinable = matched >= self._needed[query]
        self._matches.append((query[joinable], column[joinable], matched[joinable]))
        return len(keys)

    def table(self) -> pa.Table:
        """Return all that join: ``query``, ``column``, ``matched``; by query and column."""
        parts = zip(*self._matches, strict=True)
        query, column, matched = (np.concatenate(part) for part in parts)
        order = np.lexsort((column, query))
        return pa.table({"query": query[order], "column": column[order], "matched": matched[order]})


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
    """What a lake is made from."""

    columns: int
    queries: int
    planted: int
    min_joinability: float
    seed: int

    @property
    def ids(self) -> int:
        return self.columns * IDS_PER_COLUMN


@dataclass(frozen=True)
class Chunk:
    """Some tables: the numbers of all their cells, column after column.

    Attributes
    ----------
    ids : numpy.ndarray, int64
        Of all cells.
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
    """Return the path of a table below the lake."""
    return f"{table // TABLES_IN_FOLDER:04}/t{table:07}.parquet"


def column_name(column: int) -> str:
    """Return the header of a column that is counted through the lake."""
    return f"c{column % WIDTH:02}"


def query_ids(settings: Settings) -> list[np.ndarray]:
    """Return the numbers of each query column, all different."""
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
    """Write lake, query columns and truth, unless they are there; return what is known of them."""
    about = folder / ABOUT
    made_from = {**asdict(settings), "format": FORMAT}
    if about.exists():
        known = json.loads(about.read_text(encoding="utf-8"))
        if known["settings"] == made_from:
            return known
    shutil.rmtree(folder, ignore_errors=True)
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
