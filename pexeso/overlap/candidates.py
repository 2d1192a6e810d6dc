"""Candidates: sets that posting lists have named and that were not read yet."""

from __future__ import annotations

import numpy as np

from pexeso.overlap.reading import OverlapSource, PostingList

_UNSEEN, _DONE = 0, -1
_NUMBER, _ID, _COUNT, _FIRST, _BEGIN, _END, _SIZE = range(7)


class Candidates:
    """Candidates of one query as columns, in the order in which they were met.

    Parameters
    ----------
    source
        The index.

    Attributes
    ----------
    number, ids : int64 (w,)
    count : int64 (w,)
        Query tokens matched so far (cnt).
    first : int64 (w,)
        The place in the query, from 1, of the first match (i0).
    begin : int64 (w,)
        The number of the set's tokens up to that match (j0). Where several tokens of a duplicate group are matched at once others may lie between them,
        so it may be too high; no bound uses it.
    end : int64 (w,)
        The number of the set's tokens up to the latest match (j).
    size : int64 (w,)

    Notes
    -----
    What was once read or dropped does not come back. Memory that is never touched is not taken: four bytes a set of the index are asked for.
    """

    def __init__(self, source: OverlapSource) -> None:
        self._source = source
        self._columns = np.empty((7, 0), np.int64)
        self._slots = np.zeros(source.n_sets, np.int32)

    def __len__(self) -> int:
        return self._columns.shape[1]

    number = property(lambda self: self._columns[_NUMBER])
    ids = property(lambda self: self._columns[_ID])
    count = property(lambda self: self._columns[_COUNT])
    first = property(lambda self: self._columns[_FIRST])
    begin = property(lambda self: self._columns[_BEGIN])
    end = property(lambda self: self._columns[_END])
    size = property(lambda self: self._columns[_SIZE])

    def forbid(self, numbers: np.ndarray) -> None:
        """Let sets never become candidates."""
        self._slots[numbers] = _DONE

    def add(self, lists: list[tuple[PostingList, int, int]]) -> None:
        """Take posting lists in.

        Parameters
        ----------
        lists : list of (PostingList, int, int)
            With the place in the query of the first token that each stands for, and the number of tokens; ascending by place.
        """
        weights = np.repeat([weight for _, _, weight in lists], [len(found.sets) for found, _, _ in lists])
        starts = np.repeat([start for _, start, _ in lists], [len(found.sets) for found, _, _ in lists])
        sets, positions, sizes = (np.concatenate([found[axis] for found, _, _ in lists]) for axis in range(3))
        slots = self._slots[sets]
        if (slots == _DONE).any():
            kept = slots != _DONE
            weights, starts, sets, positions, sizes, slots = (
                column[kept] for column in (weights, starts, sets, positions, sizes, slots)
            )
        if (slots == _UNSEEN).any():
            rows = np.flatnonzero(slots == _UNSEEN)
            new, earliest = np.unique(sets[rows], return_index=True)
            rows = rows[earliest]
            begin = np.maximum(1, positions[rows] + 2 - weights[rows])
            zero = np.zeros(len(new), np.int64)
            self._slots[new] = np.arange(len(self) + 1, len(self) + len(new) + 1)
            met = np.stack([new, self._source.ids_of(new), zero, starts[rows], begin, zero, sizes[rows]])
            self._columns = np.concatenate([self._columns, met], axis=1)
            slots = self._slots[sets]
        np.add.at(self.count, slots - 1, weights)
        np.maximum.at(self.end, slots - 1, positions.astype(np.int64) + 1)

    def keep(self, kept: np.ndarray) -> None:
        """Drop the candidates where a bool (w,) is False."""
        if kept.all():
            return
        self._slots[self.number[~kept]] = _DONE
        self._columns = self._columns[:, kept]
        self._slots[self.number] = np.arange(1, len(self) + 1)
