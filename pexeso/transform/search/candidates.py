"""Columns of an index that may join a query column by a program, the likeliest first.

The partitions are gone through one after the other, and of each the columns in batches: memory is
needed for the texts of one batch, or of the largest column. Columns are compared by the pieces of
`Q` letters in a row of their texts (q-grams). A text of fewer letters is one piece by itself, which
is looked for inside longer texts too, if it has at least `MIN_LETTERS`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import hash_strings
from pexeso.engine.lists import offsets_of
from pexeso.errors import IndexCorruptError
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import mixed
from pexeso.store.arrays import take_texts
from pexeso.transform.texts import cleaned

if TYPE_CHECKING:
    from pexeso.lake.judgements import Column
    from pexeso.store.local.reader import Store

loops = compiled("pexeso.transform.loops")

# Letters of a piece.
Q = loops.Q

# Letters of a text that is shorter than a piece.
MIN_LETTERS = loops.MIN_LETTERS

# Pairs of a query value and a value of the column that may share a telling piece, inclusive.
MAX_HOLDERS = 16

# Pieces of a query value that count: more of them make a pair no surer.
MOST_PIECES = 8

# Values of columns that are compared at a time; a larger column is compared by itself.
CHUNK_VALUES = 1 << 18

# Query values that must share a telling piece with a column; as few as a program must join.
MIN_VALUES = 3

# Their share of the smaller column, inclusive.
MIN_SHARE = 0.05


@dataclass(frozen=True)
class SharedGrams:
    """What columns share with a query column."""

    # int64 (c,): query values that share a telling piece with a value of each column, of those that
    # no value of it equals
    n_values: np.ndarray
    n_pieces: np.ndarray  # int64 (c,): telling pieces of these, at most `MOST_PIECES` of each
    n_equal: np.ndarray  # int64 (c,): query values that a value of each column equals
    # int32 (t,): for each value of all columns the query value that shares most with it, or -1
    partners: np.ndarray
    strengths: np.ndarray  # int32 (t,): telling pieces that it shares with it


@dataclass(frozen=True)
class QueryGrams:
    """Pieces of the values of a query column, to be looked for in other columns."""

    texts: pa.Array  # pyarrow large_string array: the distinct values
    lengths: np.ndarray
    # uint64, int32: where the number of a piece is found
    table: np.ndarray
    numbers: np.ndarray
    # int64 (g + 1,), int32: the values that hold each piece; a piece that more than `MAX_HOLDERS`
    # hold is not there
    holder_offsets: np.ndarray
    holders: np.ndarray

    @classmethod
    def of(cls, texts: pa.Array) -> QueryGrams:
        grams, values = loops.query_grams(*_letters(texts))
        order = np.lexsort((values, grams))
        grams, values = grams[order], values[order]
        new = np.ones(len(grams), bool)
        new[1:] = (grams[1:] != grams[:-1]) | (values[1:] != values[:-1])
        grams, values = grams[new], values[new]
        distinct, counts = np.unique(grams, return_counts=True)
        rare = counts <= MAX_HOLDERS
        values = values[np.repeat(rare, counts)]
        distinct, counts = distinct[rare], counts[rare]
        size = 1 << max(4, int(4 * len(distinct)).bit_length())
        table, numbers = np.zeros(size, np.uint64), np.zeros(size, np.int32)
        loops.fill_table(distinct, table, numbers)
        sizes = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
        lengths = np.isin(np.arange(Q), sizes) & (np.arange(Q) >= MIN_LETTERS)
        offsets = offsets_of(counts)
        return cls(texts, lengths, table, numbers, offsets, values)

    def compare(self, texts: pa.Array, columns: np.ndarray) -> SharedGrams:
        columns = columns.astype(np.int64, copy=False)
        positions = pc.index_in(texts.cast(pa.large_string()), self.texts)
        equal = pc.fill_null(positions, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        partners = np.full(len(texts), -1, np.int32)
        strengths = np.zeros(len(texts), np.int32)
        scores = np.zeros((len(columns) - 1, 2), np.int64)
        loops.compare_columns(
            *_letters(texts),
            equal,
            columns,
            self.lengths,
            self.table,
            self.numbers,
            self.holder_offsets,
            self.holders,
            len(self.texts),
            MAX_HOLDERS,
            MOST_PIECES,
            partners,
            strengths,
            scores,
        )
        n_equal = np.diff(offsets_of(equal >= 0)[columns])
        return SharedGrams(scores[:, 0], scores[:, 1], n_equal, partners, strengths)


def _letters(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    return string_buffers(pc.utf8_lower(texts.cast(pa.large_string())))


@dataclass(frozen=True)
class Candidate:
    """A column that shares telling pieces of text with the query."""

    score: int
    table: str
    label: str
    # pyarrow large_string array (v,): its distinct values, cleaned, in the order of `order_of`
    texts: pa.Array = field(repr=False)
    # int32 (v,): for each the number of the query value that shares most with it, or -1
    partners: np.ndarray = field(repr=False)
    strengths: np.ndarray = field(repr=False)  # int32 (v,): telling pieces that they share

    def pairs(self, query: pa.Array) -> tuple[list[str], list[str]]:
        at = np.flatnonzero(self.partners >= 0)
        at = at[np.argsort(-self.strengths[at], kind="stable")]
        values = self.texts.take(pa.array(at)).to_pylist()
        return query.take(pa.array(self.partners[at])).to_pylist(), values


def find_candidates(
    store: Store,
    query: QueryGrams,
    limit: int,
    *,
    exclude_table: str | None = None,
    rejected: Collection[Column] = (),
) -> tuple[list[Candidate], int]:
    """Return the columns that share most pieces with a query, and how many were compared."""
    best: list[Candidate] = []
    n_compared = 0
    for number in range(store.n_partitions):
        tables, labels = store.texts(number, "tables"), store.texts(number, "labels")
        for columns, bounds, texts in _batches(store, number):
            shared = query.compare(texts, bounds)
            scores = _scores(query, bounds, shared)
            n_compared += len(columns)
            min_score = best[-1].score if len(best) == limit else 1
            selected = np.flatnonzero(scores >= min_score)
            names = zip(
                take_texts(tables, columns[selected]).to_pylist(),
                take_texts(labels, columns[selected]).to_pylist(),
                strict=True,
            )
            hits = [
                (-int(scores[at]), table, label, at)
                for at, (table, label) in zip(selected.tolist(), names, strict=True)
                if table != exclude_table and (table, label) not in rejected
            ]
            for score, table, label, at in sorted(hits)[:limit]:
                first, end = bounds[at : at + 2].tolist()
                order = order_of(texts[first:end])
                values = first + order
                best.append(
                    Candidate(
                        -score,
                        table,
                        label,
                        texts[first:end].take(pa.array(order)),
                        shared.partners[values],
                        shared.strengths[values],
                    )
                )
            best.sort(key=lambda column: (-column.score, column.table, column.label))
            del best[limit:]
    return best, n_compared


def order_of(texts: pa.Array) -> np.ndarray:
    """Return the order in which programs are learned from texts, by their hashes: int64 (n,).

    It is the same however a partition holds them. Neighbours have nothing in common: of examples
    that begin alike fewer programs are learned.
    """
    return np.argsort(mixed(hash_strings(texts.cast(pa.large_string()))), kind="stable")


def _batches(store: Store, number: int) -> Iterator[tuple[np.ndarray, np.ndarray, pa.Array]]:
    """Yield columns of a partition, bounds of their texts, and their distinct cleaned texts."""
    offsets = store.array(number, "column_values_offsets")
    texts, deleted = store.texts(number, "texts"), store.deleted_mask(number)
    rows = store.array(number, "posting_texts")
    n_columns = len(offsets) - 1
    if n_columns and (offsets[0] != 0 or offsets[-1] != len(rows) or (np.diff(offsets) < 0).any()):
        raise IndexCorruptError(
            f"The columns of partition {number} of '{store.path}' are not those of its texts: "
            "restore the index from a copy, or build it again; 'pexeso check' names the file."
        )
    first = 0
    while first < n_columns:
        last = int(np.searchsorted(offsets, offsets[first] + CHUNK_VALUES, "right")) - 1
        last = min(max(last, first + 1), n_columns)
        columns = np.arange(first, last)
        bounds = np.asarray(offsets[first : last + 1]) - offsets[first]
        of_columns = np.repeat(columns, np.diff(bounds))
        batch_texts = cleaned(take_texts(texts, rows[offsets[first] : offsets[last]]), of_columns)
        first = last
        if deleted is not None and deleted[columns].any():
            left = ~deleted[columns]
            batch_texts = batch_texts.filter(pa.array(np.repeat(left, np.diff(bounds))))
            bounds = offsets_of(np.diff(bounds)[left])
            columns = columns[left]
        yield columns, bounds, batch_texts


def _scores(query: QueryGrams, bounds: np.ndarray, shared: SharedGrams) -> np.ndarray:
    """Return the score of each column, 0 where it is no candidate: int64.

    It is the number of telling pieces times their number for each value of the smaller side, so
    that neither large columns come first, by chance, nor small ones.
    """
    sizes = np.minimum(len(query.texts), np.diff(bounds)) - shared.n_equal
    sizes = np.maximum(sizes, 1)
    enough = np.maximum(MIN_VALUES, MIN_SHARE * sizes)
    scores = (shared.n_pieces**2 << 16) // sizes
    return np.where(shared.n_values >= enough, scores, 0)
