"""Which columns share rare pieces of text with a query column, and how many of its values.

A piece of text that few values of the query and few of a column hold, n times m of them, joins
the right ones with a probability of about 1 / (n m).

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.2. There the pieces are those of two columns, here those of all columns of
a lake, of one length: columns that a program may join with the query share such pieces with many
of its values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.transform.lake_search.gram_loops import (
    MIN_LETTERS,
    Q,
    compare_columns,
    fill_table,
    query_grams,
)

MAX_HOLDERS = 16
"""Pairs of a query value and a value of the column that may share a telling piece, inclusive."""

MOST_PIECES = 8
"""That count of a query value: more of them make a pair no surer."""


@dataclass(frozen=True)
class SharedGrams:
    """What columns share with a query column.

    Attributes
    ----------
    n_values : int64 (c,)
        Query values that share a telling piece with a value of each column, of those that no value
        of it equals.
    n_pieces : int64 (c,)
        Telling pieces of these, at most `MOST_PIECES` of each.
    n_equal : int64 (c,)
        Query values that a value of each column equals.
    partners : int32 (t,)
        For each value of all columns the query value that shares most with it, or -1.
    strengths : int32 (t,)
        Telling pieces that it shares with it.
    """

    n_values: np.ndarray
    n_pieces: np.ndarray
    n_equal: np.ndarray
    partners: np.ndarray
    strengths: np.ndarray


@dataclass(frozen=True)
class QueryGrams:
    """Pieces of the values of a query column, to be looked for in other columns.

    Attributes
    ----------
    texts : pyarrow large_string array
        The distinct values.
    table, numbers : uint64, int32
        Where the number of a piece is found.
    holder_offsets, holders : int64 (g + 1,), int32
        The values that hold each piece; a piece that more than `MAX_HOLDERS` hold is not there.
    """

    texts: pa.Array
    lengths: np.ndarray
    table: np.ndarray
    numbers: np.ndarray
    holder_offsets: np.ndarray
    holders: np.ndarray

    @classmethod
    def of(cls, texts: pa.Array) -> QueryGrams:
        """Collect the pieces of distinct texts, without regard to case."""
        grams, values = query_grams(*_letters(texts))
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
        fill_table(distinct, table, numbers)
        sizes = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
        lengths = np.isin(np.arange(Q), sizes) & (np.arange(Q) >= MIN_LETTERS)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return cls(texts, lengths, table, numbers, offsets, values)

    def compare(self, texts: pa.Array, columns: np.ndarray) -> SharedGrams:
        """Compare columns with the query.

        Parameters
        ----------
        texts : pyarrow string array (t,)
            Distinct values of one column after the other.
        columns : int64 (c + 1,)
            Where the values of each column begin.
        """
        positions = pc.index_in(texts.cast(pa.large_string()), self.texts)
        equal = pc.fill_null(positions, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        partners = np.full(len(texts), -1, np.int32)
        strengths = np.zeros(len(texts), np.int32)
        scores = np.zeros((len(columns) - 1, 2), np.int64)
        compare_columns(
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
        n_equal = np.diff(np.concatenate([[0], np.cumsum(equal >= 0)])[columns])
        return SharedGrams(scores[:, 0], scores[:, 1], n_equal, partners, strengths)


def _letters(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of texts in small letters, and where each begins."""
    small = pc.utf8_lower(texts.cast(pa.large_string()))
    _, offsets, data = small.buffers()
    starts = np.frombuffer(offsets, np.int64)[small.offset : small.offset + len(small) + 1]
    return np.frombuffer(data or b"", np.uint8), starts
