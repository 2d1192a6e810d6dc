"""Lists of numbers, one after the other, as arrays: the values of columns, the rows of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.runtime.ranges import ranges


@dataclass(frozen=True)
class Lists:
    """Rows of numbers: row i is ``members[offsets[i]:offsets[i + 1]]``.

    Attributes
    ----------
    offsets : numpy.ndarray of shape (n + 1,), int64
    members : numpy.ndarray, int32
    """

    offsets: np.ndarray
    members: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        """Return the members of one row, int64."""
        return self.members[self.of(np.array([row]))[1]].astype(np.int64)

    def sizes(self, rows: np.ndarray) -> np.ndarray:
        """Return how many members some rows have, int64."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions in `members` of some rows, and the row of each as a position.

        Returns
        -------
        owner, position : numpy.ndarray, int64

        Raises
        ------
        IndexCorruptError
            A row leads out of the members.
        """
        first, last = self.offsets[rows], self.offsets[rows + 1]
        if ((first < 0) | (last < first) | (last > len(self.members))).any():
            raise IndexCorruptError(
                "The offsets of an inverted index in a partition lead out of it: 'pexeso check' "
                "lists the damage; restore the index, or build it again."
            )
        owner = np.repeat(np.arange(len(rows)), last - first)
        return owner, ranges(first, last - first)
