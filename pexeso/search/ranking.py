"""The columns that a search has found so far, best first.

They are ordered by count, then by the names of table and column.

Column ids are no part of the order. An update gives new columns later ids, and the same lake must
give the same answer however its index came to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.store.texts import Texts, require_sound, take_texts

ORDER = [
    ("matched", "descending"),
    ("table", "ascending"),
    ("label", "ascending"),
    ("column_id", "ascending"),
]
"""UTF-8 sorts by code point.

Ids decide between columns of one name, of which an index has at most one that is not deleted.
"""

_SCHEMA = pa.schema(
    [
        ("matched", pa.int64()),
        ("table", pa.large_string()),
        ("label", pa.large_string()),
        ("column_id", pa.int64()),
        ("partition", pa.int64()),
        ("position", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Hit:
    """A found column: its location, and the number of query values, or rows, that match it.

    It has its name if the search has looked that up.
    """

    column_id: int
    matched: int
    partition: int
    position: int
    table: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class ColumnNames:
    """What the columns of a partition are called; mapped files, of which what is looked up is read.

    Attributes
    ----------
    ids : int64 (C,)
    tables, labels : Texts, C of each
    """

    ids: np.ndarray
    tables: Texts
    labels: Texts

    @cached_property
    def sound_tables(self) -> Texts:
        """The tables, all of them looked at once, so that they can be compared as a whole."""
        require_sound(self.tables)
        return self.tables


class Ranking:
    """The best columns over the partitions searched so far.

    Parameters
    ----------
    k : int, optional
        Keep no more than so many; all by default.

    Notes
    -----
    Names are read for columns that can be among the best alone: with `k`, for those that match at
    least as often as the k-th.
    """

    def __init__(self, k: int | None = None) -> None:
        self._k = k
        self._parts: list[pa.Table] = [_SCHEMA.empty_table()]

    @property
    def floor(self) -> int:
        """Return the count of the k-th column, the minimum for a further column.

        It is 0 while there are fewer than `k` columns, or if all are kept.
        """
        best = self._parts[0]
        return (
            best["matched"][self._k - 1].as_py()
            if self._k is not None and len(best) == self._k
            else 0
        )

    def add(self, number: int, names: ColumnNames, columns: np.ndarray, counts: np.ndarray) -> None:
        """Add what a partition gave.

        Parameters
        ----------
        number : int
            Of the partition.
        names : ColumnNames
            Of all its columns.
        columns, counts : int64 (r,)
            Columns of the partition, each once, and the query values, or rows, that match them.
        """
        columns, counts = self._enough(columns, counts)
        if not len(columns):
            return
        positions = pa.array(columns, pa.int64())
        table, label = (
            take_texts(texts, columns).cast(pa.large_string())
            for texts in (names.tables, names.labels)
        )
        ids = pa.array(names.ids[columns], pa.int64())
        partition = pa.array(np.full(len(columns), number), pa.int64())
        self._parts.append(
            pa.table(
                [pa.array(counts, pa.int64()), table, label, ids, partition, positions],
                schema=_SCHEMA,
            )
        )
        if self._k is not None:
            self._merge()

    def hits(self) -> list[Hit]:
        """Return the columns, best first."""
        self._merge()
        fields = ("column_id", "matched", "partition", "position", "table", "label")
        return [
            Hit(*row)
            for row in zip(*(self._parts[0][name].to_pylist() for name in fields), strict=True)
        ]

    def _enough(self, columns: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drop the columns with fewer matches than the k-th of all, those so far included."""
        if self._k is None:
            return columns, counts
        known = np.concatenate([self._parts[0]["matched"].to_numpy(), counts])
        if len(known) <= self._k:
            return columns, counts
        mask = counts >= np.partition(known, len(known) - self._k)[len(known) - self._k]
        return columns[mask], counts[mask]

    def _merge(self) -> None:
        """Bring everything into one order, and keep the best."""
        if len(self._parts) == 1:
            return
        every = pa.concat_tables(self._parts)
        self._parts = [every.take(pc.sort_indices(every, ORDER)[: self._k])]
