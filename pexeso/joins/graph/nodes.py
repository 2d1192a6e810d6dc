"""The columns of a lake as nodes of its join graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from pexeso.results.copies import ColumnSets, fold
from pexeso.store.io.wide_offsets import take_wide


@dataclass(frozen=True, eq=False)
class Nodes:
    """The n columns of a lake between which edges are looked for, by table, then name.

    Attributes
    ----------
    totals : int64 (n,)
        Distinct values.

    Notes
    -----
    Memory: the names, and 9 bytes for each column.
    """

    tables: pa.LargeStringArray
    labels: pa.LargeStringArray
    totals: np.ndarray
    unique: np.ndarray

    def __len__(self) -> int:
        return len(self.totals)

    def take(self, rows: np.ndarray) -> Nodes:
        """Return some of the columns."""
        at = pa.array(rows, pa.int64())
        return Nodes(
            take_wide(self.tables, at),
            take_wide(self.labels, at),
            self.totals[rows],
            self.unique[rows],
        )


@dataclass(frozen=True, eq=False)
class Folded:
    """Which columns stand for others.

    Attributes
    ----------
    first_of : int64 (n,)
        For each column the one that stands for it: itself, or an earlier one.
    """

    first_of: np.ndarray

    @classmethod
    def none(cls, n: int) -> Folded:
        """Return that each column stands for itself."""
        return cls(np.arange(n))

    @classmethod
    def of(cls, sets: ColumnSets) -> Folded:
        """Return which columns are copies of earlier ones."""
        return cls(fold(sets))

    @cached_property
    def kept(self) -> np.ndarray:
        """The columns that stand for themselves: int64 (m,), ascending."""
        return np.flatnonzero(self.first_of == np.arange(len(self.first_of)))

    @property
    def n_copies(self) -> np.ndarray:
        """For each of `kept` how many others it stands for: int64 (m,)."""
        return np.bincount(self.first_of, minlength=len(self.first_of))[self.kept] - 1

    def copies(self, nodes: Nodes) -> pa.Table:
        """Return the columns that others stand for: ``table, column, of_table, of_column``."""
        positions = np.flatnonzero(self.first_of != np.arange(len(self.first_of)))
        copies, first = nodes.take(positions), nodes.take(self.first_of[positions])
        return pa.table(
            {
                "table": copies.tables,
                "column": copies.labels,
                "of_table": first.tables,
                "of_column": first.labels,
            }
        )
