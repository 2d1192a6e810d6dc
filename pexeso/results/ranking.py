"""The columns that a search has found so far, best first.

They are ordered by count, then by the names of table and column.

Column ids are no part of the order. An update gives new columns later ids, and the same lake must
give the same answer however its index came to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np

from pexeso.store.texts import Texts, require_sound, take_texts


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

    Notes
    -----
    Names are read for columns that can be among the best alone: with `k`, for those that match at
    least as often as the k-th.
    """

    def __init__(self, k: int | None = None) -> None:
        self._k = k
        # Tuples in the order of their fields: minus the count, table, label, column id, partition,
        # position. Python orders texts by code points, as UTF-8 does. Ids decide between columns of
        # one name, of which an index has at most one that is not deleted.
        self._rows: list[tuple[int, str, str, int, int, int]] = []

    @property
    def floor(self) -> int:
        """Return the count of the k-th column, the minimum for a further column.

        It is 0 while there are fewer than `k` columns, or if all are kept.
        """
        is_full = self._k is not None and len(self._rows) == self._k
        return -self._rows[-1][0] if is_full else 0

    def add(self, number: int, names: ColumnNames, columns: np.ndarray, counts: np.ndarray) -> None:
        """Add what a partition gave.

        Parameters
        ----------
        columns, counts : int64 (r,)
            Columns of the partition, each once, and the query values, or rows, that match them.
        """
        columns, counts = self._enough(columns, counts)
        if not len(columns):
            return
        tables, labels = (
            take_texts(texts, columns).fill_null("").to_pylist()
            for texts in (names.tables, names.labels)
        )
        ids = names.ids[columns].tolist()
        self._rows += zip(
            (-counts).tolist(), tables, labels, ids, repeat(number), columns.tolist(), strict=False
        )
        if self._k is not None:
            self._rows.sort()
            del self._rows[self._k :]

    def hits(self) -> list[Hit]:
        """Return the columns, best first."""
        return [
            Hit(column_id, -negative, partition, position, table, label)
            for negative, table, label, column_id, partition, position in sorted(self._rows)
        ]

    def _enough(self, columns: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drop the columns with fewer matches than the k-th of all, those so far included."""
        if self._k is None or len(self._rows) + len(columns) <= self._k:
            return columns, counts
        known = np.concatenate([[-row[0] for row in self._rows], counts])
        mask = counts >= np.partition(known, len(known) - self._k)[len(known) - self._k]
        return columns[mask], counts[mask]
