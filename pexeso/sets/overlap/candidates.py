"""Candidates: sets that posting lists have named and that were not read yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pexeso.sets.overlap.index.reading import PostingList
from pexeso.sets.overlap.index.sets import OverlapIndex

Takes = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

_UNSEEN, _DONE = 0, -1
_NUMBER, _COUNT, _FIRST, _END, _SIZE = range(5)


class Candidates:
    """Candidates of one query as columns, in the order in which they were met.

    Attributes
    ----------
    number : int64 (w,)
        Numbers of sets, which ascend as their ids do.
    count : int64 (w,)
        Query tokens matched so far (cnt).
    first : int64 (w,)
        The place in the query, from 1, of the first match (i0).
    end : int64 (w,)
        The number of the set's tokens up to the latest match (j).
    size : int64 (w,)

    Notes
    -----
    What was once read or dropped does not come back. Memory that is never touched is not taken:
    four bytes a set of the index are asked for.
    """

    def __init__(self, index: OverlapIndex) -> None:
        self._columns = np.empty((5, 0), np.int64)
        self._slots = np.zeros(index.n_sets, np.int32)

    def __len__(self) -> int:
        return self._columns.shape[1]

    number = property(lambda self: self._columns[_NUMBER])
    count = property(lambda self: self._columns[_COUNT])
    first = property(lambda self: self._columns[_FIRST])
    end = property(lambda self: self._columns[_END])
    size = property(lambda self: self._columns[_SIZE])

    def forbid(self, numbers: np.ndarray) -> None:
        """Let sets never become candidates."""
        self._slots[numbers] = _DONE

    def add(
        self,
        postings: PostingList,
        lengths: np.ndarray,
        starts: np.ndarray,
        weights: np.ndarray,
        takes: Takes | None,
    ) -> None:
        """Take posting lists in.

        Parameters
        ----------
        lengths, starts, weights : int64 (m,)
            Entries of each list, the place in the query of the first token that it stands for, and
            the number of tokens.
        takes
            From the places in the query up to which sets were met, the tokens of these sets that
            are left, numbers and matches, int64 (w,) each, to whether they can still enter the
            answer. Those that cannot are done before they are candidates. None: sets that were not
            seen before cannot.
        """
        ends = np.cumsum(lengths)
        slots = self._slots[postings.sets]
        if takes is not None:
            rows = np.flatnonzero(slots == _UNSEEN)
            if len(rows):
                block = np.searchsorted(ends, rows, side="right")
                self._meet(postings, rows, starts[block], weights[block], takes)
                slots[rows] = self._slots[postings.sets[rows]]
        live = np.flatnonzero(slots > 0)
        positions = slots[live] - 1
        np.add.at(self.count, positions, weights[np.searchsorted(ends, live, side="right")])
        # Positions ascend with the place in the query: of several the last one written is the
        # latest match.
        self.end[positions] = postings.positions[live] + 1

    def _meet(
        self,
        postings: PostingList,
        rows: np.ndarray,
        first: np.ndarray,
        weight: np.ndarray,
        takes: Takes,
    ) -> None:
        """Make candidates of sets in these rows, none of which was seen before."""
        sets, begin, size = (
            postings.sets[rows],
            postings.positions[rows].astype(np.int64) + 1,
            postings.sizes[rows],
        )
        # Where a set is met again the bound is no higher: one that cannot enter where it is first
        # met cannot enter there either.
        indices = np.flatnonzero(takes(first + weight - 1, size - begin, sets, weight))
        self._slots[sets] = _DONE
        sets = sets[indices]
        turn = np.arange(len(sets), dtype=np.int32)
        self._slots[sets[::-1]] = turn[::-1]  # the first of equal ones is written last
        new = self._slots[sets] == turn
        indices, sets = indices[new], sets[new]
        size, first = size[indices], first[indices]
        zero = np.zeros(len(sets), np.int64)
        self._slots[sets] = np.arange(len(self) + 1, len(self) + len(sets) + 1)
        new_columns = np.stack([sets, zero, first, zero, size])
        self._columns = np.concatenate([self._columns, new_columns], axis=1)

    def keep(self, kept: np.ndarray) -> None:
        """Drop the candidates where a bool (w,) is False."""
        if kept.all():
            return
        self._slots[self.number[~kept]] = _DONE
        self._columns = self._columns.take(np.flatnonzero(kept), axis=1)
        self._slots[self.number] = np.arange(1, len(self) + 1)
