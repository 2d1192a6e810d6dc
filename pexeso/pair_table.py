"""The value pairs of one column found, as arrays: some 60 bytes a pair beside its texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from pexeso.kinds import KINDS, KindCounts
from pexeso.results import Pair


@dataclass(frozen=True)
class PairTable:
    """The pairs of a query column and one column of the lake, n of them: in the query's order, nearest first.

    Attributes
    ----------
    texts : pyarrow.StringArray
        The distinct texts of the query column, matched or not, by first appearance.
    text : numpy.ndarray of shape (n,), int64
        Places in `texts`, ascending.
    values, keys : pyarrow string arrays of length n
        Texts of the lake column, as they stand there and as the index holds them.
    distances : numpy.ndarray of shape (n,), float64
        In [0, 1].
    kinds : numpy.ndarray of shape (n,), int8
        Places in `KINDS`.
    """

    texts: pa.StringArray
    text: np.ndarray
    values: pa.Array
    keys: pa.Array
    distances: np.ndarray
    kinds: np.ndarray

    def __len__(self) -> int:
        return len(self.text)

    def take(self, rows: np.ndarray) -> PairTable:
        """Give some of the pairs."""
        return PairTable(
            self.texts,
            self.text[rows],
            self.values.take(pa.array(rows)),
            self.keys.take(pa.array(rows)),
            self.distances[rows],
            self.kinds[rows],
        )

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the pairs of each matched text start: its nearest pair, int64."""
        return np.flatnonzero(np.diff(self.text, prepend=-1))

    @property
    def is_matched(self) -> np.ndarray:
        """Whether each of `texts` has a pair, bool."""
        matched = np.zeros(len(self.texts), dtype=bool)
        matched[self.text] = True
        return matched

    def count_kinds(self, rows_of_text: np.ndarray) -> KindCounts:
        """Count pairs, and rows of the query column, by kind.

        Parameters
        ----------
        rows_of_text : numpy.ndarray, int64
            How many rows of the query column have each of `texts`.
        """
        pairs = np.bincount(self.kinds, minlength=len(KINDS))
        rows = np.zeros(len(KINDS), dtype=np.int64)
        if len(self):
            closest = np.minimum.reduceat(self.kinds, self.starts)
            np.add.at(rows, closest, rows_of_text[self.text[self.starts]])
        return KindCounts(dict(zip(KINDS, pairs.tolist(), strict=True)), dict(zip(KINDS, rows.tolist(), strict=True)))

    def to_pairs(self, most: int | None = None) -> list[Pair]:
        """Give the first `most` pairs, or all, as objects."""
        end = len(self) if most is None else min(most, len(self))
        columns = (
            self.texts.take(pa.array(self.text[:end])).to_pylist(),
            self.values.slice(0, end).to_pylist(),
            self.distances[:end].tolist(),
            self.keys.slice(0, end).to_pylist(),
            (KINDS[kind] for kind in self.kinds[:end].tolist()),
        )
        return [Pair(*each) for each in zip(*columns, strict=True)]
