"""The names of a shard's sets: the table and the label of each, in that order, so that a table is found by halving."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.store.texts import Texts, take_texts


@dataclass(frozen=True)
class SetNames:
    """Names of n sets, ascending by table, then label, by code point.

    Attributes
    ----------
    tables, labels : (n,) texts
        May be memory-mapped.
    """

    tables: Texts
    labels: Texts

    def __len__(self) -> int:
        return len(self.tables)

    def of(self, numbers: np.ndarray) -> list[tuple[str, str]]:
        """Return (table, label) of some sets."""
        tables, labels = (take_texts(texts, numbers).to_pylist() for texts in (self.tables, self.labels))
        return list(zip(tables, labels, strict=True))

    def rows_of(self, table: str) -> tuple[int, int]:
        """Return the first set of a table and the one after its last; twice the same where it has none."""
        wanted = pa.array([table], pa.large_string())
        first, end = self._bounds(wanted, before=True), self._bounds(wanted, before=False)
        return int(first[0]), int(end[0])

    def rows_of_tables(self, tables: pa.Array) -> np.ndarray:
        """Return the numbers of all sets of some tables, int64, ascending; a step of the search is taken for all tables at once."""
        wanted = tables.cast(pa.large_string())
        first, end = self._bounds(wanted, before=True), self._bounds(wanted, before=False)
        lengths = end - first
        starts = np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        return np.sort(starts + np.arange(lengths.sum()))

    def _bounds(self, wanted: pa.Array, *, before: bool) -> np.ndarray:
        """Count the sets whose table is less than each wanted one, or not greater."""
        is_left = pc.less if before else pc.less_equal
        low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(self), np.int64)
        for _ in range(len(self).bit_length() if len(wanted) else 0):
            middle = np.minimum((low + high) // 2, len(self) - 1)
            left = is_left(take_texts(self.tables, middle), wanted).to_numpy(zero_copy_only=False)
            searching = low < high
            low = np.where(searching & left, middle + 1, low)
            high = np.where(searching & ~left, middle, high)
        return low
