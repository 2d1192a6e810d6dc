"""What people said about a query column, and counts of columns that take it into account.

A column of which a person rejected the join is left out of a search like a deleted one. A column
of which values were judged is left out too, and counted by itself: a rejected pair of values is no
match, an accepted one is a match at distance 0, and of other pairs the distance decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.parts.metadata import encode_values
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import Goal, Lemma, Vectors
from pexeso.lake.judgements import ANY, Column, Judgements
from pexeso.options import LEMMAS, SearchOptions
from pexeso.semantic.partition_loader import PartitionLoader, posting_arrays
from pexeso.store.arrays import take_texts

if TYPE_CHECKING:
    from embed.protocol import Embedder
    from pexeso.semantic.encoded_query import EncodedQuery

CHUNK_SIZE = 64
"""Columns that are counted at a time, by the pairs of their values."""

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Column, query value, posting, distance and cost of pairs; see `VectorSpace.column_pairs`."""


@dataclass(frozen=True)
class JudgedPair:
    """A value of a query column, by its position, and the text and normalised text of another."""

    value: int
    text: str
    key: str | None
    is_match: bool

    def is_of(self, texts: pa.Array, keys: pa.Array) -> np.ndarray:
        """Return which texts, or their normalised forms, are the other value's: bool (n,)."""
        is_same = pc.equal(texts, self.text)
        if self.key is not None:
            is_same = pc.or_(is_same, pc.equal(keys, self.key))
        return is_same.to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class QueryJudgements:
    """What is known of one query column."""

    rejected: frozenset[Column]
    pairs: Mapping[Column, tuple[JudgedPair, ...]]
    for_all: tuple[JudgedPair, ...]  # of columns for which the same values were not judged
    sought: Vectors | None  # of the values of `for_all` that lake columns may have

    def pairs_of(self, column: Column) -> tuple[JudgedPair, ...]:
        return (*self.for_all, *self.pairs.get(column, ()))


def with_judgements(
    query: EncodedQuery, column: Column | None, judgements: Judgements, embedder: Embedder
) -> EncodedQuery:
    """Return an encoded query with what the judgements say about its column."""
    rejected, named = judgements.rejected(column), judgements.value_pairs(column)
    known = query.judged is not None
    if not rejected and not named:
        return replace(query, judged=None) if known else query
    others, ours, theirs, are_matches = zip(*named, strict=True) if named else ((),) * 4
    values, keys = _positions(query, ours), _normalised(query, theirs)
    pairs: dict[Column, list[JudgedPair]] = {}
    for other, *pair in zip(others, values, theirs, keys, are_matches, strict=True):
        if pair[0] >= 0:
            pairs.setdefault(other, []).append(JudgedPair(*pair))
    by_column = {other: tuple(some) for other, some in pairs.items()}
    for_all = by_column.pop(ANY, ())
    if not rejected and not by_column and not for_all:
        return replace(query, judged=None) if known else query
    texts = sorted({pair.key for pair in for_all if pair.key is not None})
    sought = encode_values(embedder, pa.array(texts, pa.string())) if texts else None
    return replace(query, judged=QueryJudgements(rejected, by_column, for_all, sought))


def _normalised(query: EncodedQuery, texts: Sequence[str]) -> list[str | None]:
    """Return the normalised form of texts, each as if its column had no other."""
    if query.normaliser is None or not texts:
        return list(texts)
    normalised = query.normaliser.normalise_distinct(
        pa.array(texts, pa.string()), np.arange(len(texts))
    )
    return normalised.to_pylist()


def _positions(query: EncodedQuery, texts: Sequence[str]) -> list[int]:
    """Return the positions of texts among the values of a query, -1 where it has none of them."""
    if not texts:
        return []
    cells = query.column.values
    rows = pc.index_in(pa.array(texts, cells.type), value_set=cells)
    by_cell = query.value_of_row.take(rows)
    normalised = pa.array(_normalised(query, texts), query.values.type)
    by_value = pc.index_in(normalised, value_set=query.values, skip_nulls=True)
    positions = pc.coalesce(by_cell, by_value.cast(pa.int64()))
    return pc.fill_null(positions, -1).to_pylist()


def judged_columns(
    scan: PartitionLoader, number: int, query: EncodedQuery
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of a partition that are rejected, and those that are counted alone."""
    judged = query.judged
    if judged is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    names = scan.names(number)
    tables = pa.array(sorted({table for table, _ in (*judged.rejected, *judged.pairs)}))
    is_named = pc.is_in(names.sound_tables, value_set=tables.cast(names.sound_tables.type))
    at = np.flatnonzero(is_named.to_numpy(zero_copy_only=False))
    columns = dict(zip(_names(scan, number, at), at.tolist(), strict=True))
    rejected = [columns[name] for name in judged.rejected if name in columns]
    counted = [columns[name] for name in judged.pairs if name in columns]
    if judged.sought is not None:
        goal = Goal(0.0, 1, None, False, frozenset(map(Lemma, LEMMAS)))
        ones = np.ones(len(judged.sought), np.int64)
        some, _ = scan.space.search(
            scan.on_host(number), judged.sought, ones, len(ones), goal, SearchStats(),
            kernel=scan.look_kernel, max_pairs=scan.max_pairs(number),
        )  # fmt: skip
        counted += some.tolist()
    removed = np.array(rejected, np.int64)
    return removed, np.setdiff1d(np.array(counted, np.int64), removed)


def _names(scan: PartitionLoader, number: int, positions: np.ndarray) -> list[Column]:
    names = scan.names(number)
    both = (take_texts(texts, positions).to_pylist() for texts in (names.tables, names.labels))
    return list(zip(*both, strict=True))


def judged_counts(
    scan: PartitionLoader,
    number: int,
    query: EncodedQuery,
    positions: np.ndarray,
    options: SearchOptions,
    stats: SearchStats,
) -> np.ndarray:
    """Count what of a query matches in some columns of a partition: int64, one for each."""
    weights, counts = query.counted(options.joinability_of), np.zeros(len(positions), np.int64)
    for start in range(0, len(positions), CHUNK_SIZE):
        some = positions[start : start + CHUNK_SIZE]
        pairs = scan.space.column_pairs(
            scan.on_host(number), query.vectors, some, options.max_distance, stats
        )
        (column, value, *_), _ = judged_pairs(
            scan, number, query, some, _names(scan, number, some), pairs, options
        )
        matched = np.unique(column * len(weights) + value)
        np.add.at(counts, start + matched // len(weights), weights[matched % len(weights)])
    return counts


def judged_pairs(
    scan: PartitionLoader,
    number: int,
    query: EncodedQuery,
    positions: np.ndarray,
    names: Sequence[Column],
    pairs: Arrays,
    options: SearchOptions,
) -> tuple[Arrays, np.ndarray]:
    """Return pairs of columns without rejected ones and with accepted ones; mark the latter."""
    column, value, posting, *_ = pairs
    is_kept, accepted = np.ones(len(column), bool), []
    judged, offsets = query.judged, scan.mapped(number).column_lists.offsets
    for at, (position, name) in enumerate(zip(positions.tolist(), names, strict=True)):
        of_column = () if judged is None else judged.pairs_of(name)
        if not of_column:
            continue
        rows = np.arange(*offsets[position : position + 2])
        verdicts = _verdicts(of_column, rows, *posting_arrays(scan, number, rows))
        own = slice(*np.searchsorted(column, [at, at + 1]))
        for (of_query, row), is_match in verdicts.items():
            is_kept[own] &= (value[own] != of_query) | (posting[own] != row)
            if is_match and (query.known[of_query] or not options.ignore_missing):
                accepted.append((at, of_query, row))
    if is_kept.all() and not accepted:
        return pairs, np.zeros(len(column), bool)
    added = np.array(accepted, np.int64).reshape(-1, 3).T
    zeros = np.zeros(len(accepted))
    column, value, posting, distance, cost = (
        np.concatenate([old[is_kept], new])
        for old, new in zip(pairs, (*added, zeros, zeros), strict=True)
    )
    is_accepted = np.arange(len(column)) >= len(column) - len(accepted)
    order = np.lexsort((posting, ~is_accepted, cost, value, column))
    arrays: Any = tuple(array[order] for array in (column, value, posting, distance, cost))
    return arrays, is_accepted[order]


def _verdicts(
    pairs: Sequence[JudgedPair], rows: np.ndarray, texts: pa.Array, keys: pa.Array
) -> dict[tuple[int, int], bool]:
    """Return whether query values match postings; of several judgements the last one holds."""
    verdicts: dict[tuple[int, int], bool] = {}
    for pair in pairs:
        for row in rows[pair.is_of(texts, keys)].tolist():
            verdicts[pair.value, row] = pair.is_match
    return verdicts
