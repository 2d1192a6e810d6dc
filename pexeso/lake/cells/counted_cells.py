"""Distinct cells of many columns in one array, so that small columns share the work of one pass.

A pass over an array costs microseconds before it looks at the first text, and patterns cost
milliseconds to prepare. Columns of a few cells are therefore counted by themselves and then put
behind one another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.cells.missing import is_missing


@dataclass(frozen=True)
class CountedCells:
    """The distinct cells of columns, and how often each occurs.

    Attributes
    ----------
    counts : int64 (n,)
        How often each occurs in its column.
    columns : int64 (n,)
        The column of each, ascending from 0.
    n_columns : int
        Columns, those without cells included.

    Examples
    --------
    >>> found = CountedCells.of([pa.array(["b", " b", "b", None]), pa.array(["b"])])
    >>> found.texts.to_pylist(), found.counts.tolist(), found.columns.tolist()
    (['b', ' b', 'b'], [2, 1, 1], [0, 0, 1])
    >>> trimmed = found.trimmed()
    >>> trimmed.texts.to_pylist(), trimmed.counts.tolist(), trimmed.columns.tolist()
    (['b', 'b'], [3, 1], [0, 1])
    """

    texts: pa.StringArray
    counts: np.ndarray
    columns: np.ndarray
    n_columns: int

    @classmethod
    def of(cls, columns: Sequence[pa.StringArray]) -> CountedCells:
        """Count the cells of columns; nulls are left out, white space is kept."""
        return cls.joined([column.drop_null().value_counts() for column in columns])

    @classmethod
    def joined(cls, counted: Sequence[pa.StructArray]) -> CountedCells:
        """Put counted columns behind one another."""
        texts = [column.field(0) for column in counted]
        counts = [column.field(1) for column in counted]
        sizes = [len(cells) for cells in texts]
        return cls(
            pa.concat_arrays(texts) if texts else pa.array([], pa.string()),
            pa.concat_arrays(counts).to_numpy() if counts else np.zeros(0, dtype=np.int64),
            np.repeat(np.arange(len(sizes)), sizes),
            len(sizes),
        )

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where the cells of each column begin, and the end: int64, shape (n_columns + 1,)."""
        return np.searchsorted(self.columns, np.arange(self.n_columns + 1))

    def sums(self, weights: np.ndarray, chosen: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Add up one weight a cell by column, of chosen cells: int64, shape (n_columns,)."""
        sums = np.bincount(self.columns[chosen], weights=weights[chosen], minlength=self.n_columns)
        return sums.astype(np.int64)

    def trimmed(self) -> CountedCells:
        """Remove white space around the cells, and cells that stand for a missing value."""
        trimmed = pc.utf8_trim_whitespace(self.texts)
        kept = ~is_missing(trimmed, self.columns)
        n_bytes = pc.sum(pc.binary_length(trimmed)).as_py()
        if n_bytes == pc.sum(pc.binary_length(self.texts)).as_py() and kept.all():
            return self
        return self.replaced(trimmed, kept)[0]

    def replaced(self, texts: pa.Array, kept: np.ndarray) -> tuple[CountedCells, np.ndarray]:
        """Put another text in the place of each cell, and count equal ones of a column together.

        Returns
        -------
        first : int64
            For each of them, where the first of its cells stands in this object.
        """
        rows = np.flatnonzero(kept)
        encoded = (
            texts if len(rows) == len(kept) else texts.take(pa.array(rows))
        ).dictionary_encode()
        columns, counts = self.columns[rows], self.counts[rows]
        n_texts = len(encoded.dictionary)
        if n_texts == len(rows):
            return CountedCells(encoded.dictionary, counts, columns, self.n_columns), rows
        keys = columns * n_texts + encoded.indices.to_numpy()
        _, first, cell = np.unique(keys, return_index=True, return_inverse=True)
        totals = np.bincount(cell, weights=counts, minlength=len(first)).astype(np.int64)
        order = np.argsort(first, kind="stable")
        first = first[order]
        merged = encoded.dictionary.take(encoded.indices.take(pa.array(first)))
        return CountedCells(merged, totals[order], columns[first], self.n_columns), rows[first]

    def only(self, columns: Sequence[int]) -> CountedCells:
        """Return the cells of some columns, ascending, which are then numbered from 0."""
        number = np.full(self.n_columns, -1)
        number[np.asarray(columns, dtype=np.int64)] = np.arange(len(columns))
        new_columns = number[self.columns]
        rows = np.flatnonzero(new_columns >= 0)
        texts = self.texts if len(rows) == len(new_columns) else self.texts.take(pa.array(rows))
        return CountedCells(texts, self.counts[rows], new_columns[rows], len(columns))

    def slices(self, *arrays: pa.Array) -> Iterator[tuple[pa.Array, ...]]:
        """Cut arrays with one entry a cell into those of each column."""
        offsets = self.offsets.tolist()
        for start, end in pairwise(offsets):
            yield tuple(array.slice(start, end - start) for array in arrays)
