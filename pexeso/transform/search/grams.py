"""Pieces of q letters of texts as numbers, and what columns share.

A piece is the place of q letters in a row (a q-gram). A text of fewer letters is one piece by
itself, which is looked for inside longer texts too, if it has at least `MIN_LETTERS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.transform.loops")

# Letters of a piece.
Q = loops.Q

# Letters of a text that is shorter than a piece.
MIN_LETTERS = loops.MIN_LETTERS

# Pairs of a query value and a value of the column that may share a telling piece, inclusive.
MAX_HOLDERS = 16

# Pieces of a query value that count: more of them make a pair no surer.
MOST_PIECES = 8


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
