"""Runs of rows of mapped arrays, asked for all at once before they are read.

A posting list or the end of a set is one run of rows. Read one after the other each would wait for
the disk; asked for together they wait once (`pexeso.store.paging`).
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping

import numpy as np

from pexeso.store.paging import FEW_FAULTS, PAGE_BYTES, FaultWatch, MappedPages, usage

_MOST_BYTES = 128 << 10
"""Systems read no more than this ahead for one request, unless they are set up otherwise."""

_BLOCK_BYTES = 512
"""What systems count reads in."""


class DiskWatch(FaultWatch):
    """Watch for recent reads from a disk by this process.

    Reads of requested pages count too, even if nothing had to wait for a missing page.
    """

    def restart(self) -> None:
        """Forget what was read until now."""
        super().restart()
        self._read = usage("ru_inblock")

    def missing(self) -> bool:
        """Return whether more than a few pages were read since the start."""
        return (
            super().missing()
            or usage("ru_inblock") - self._read > FEW_FAULTS * PAGE_BYTES // _BLOCK_BYTES
        )


class MappedRuns(MappedPages):
    """Arrays of which runs of rows are read; those that are not mapped files are passed over.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        From now on the system reads of the mapped ones what is touched, and no neighbours.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__(arrays, DiskWatch())
        self._watch.restart()
        self._first = self._requests_from_start = True

    def restart(self) -> None:
        """Begin a search, and decide whether pages are requested from the start.

        They are if this is the first search, or if some were missing in the search before.
        Otherwise they are requested once some are missing.
        """
        self._requests_from_start = self._watch.missing() or self._first
        self._first = False
        self._watch.restart()

    @property
    def requests_pages(self) -> bool:
        """Whether pages are asked for."""
        return bool(self._arrays) and (self._requests_from_start or self._watch.missing())

    def want(self, name: str, begins: np.ndarray, ends: np.ndarray) -> None:
        """Request runs of rows from the system without waiting for them.

        Nothing is requested if no pages were missing recently.

        Parameters
        ----------
        begins, ends : int64 (n,)
            Run r is rows ``begins[r]`` to ``ends[r]``; what lies outside the array is passed over.
        """
        array = self._arrays.get(name)
        if array is None or not len(begins) or not self.requests_pages:
            return
        for first, n_bytes in _requests(begins, ends, array):
            array.base.madvise(mmap.MADV_WILLNEED, first, n_bytes)


def _requests(begins: np.ndarray, ends: np.ndarray, array: np.ndarray) -> list[tuple[int, int]]:
    """Return the read requests as (first byte, bytes), in whole pages without repetition.

    No request exceeds what the system reads for one request.
    """
    row_bytes, offset, n_bytes = array.strides[0], array.offset, array.offset + array.nbytes
    requests, reached = [], 0
    for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        first = max(reached, (offset + begin * row_bytes) // PAGE_BYTES * PAGE_BYTES)
        last = min(n_bytes, offset + end * row_bytes)
        requests += [
            (position, min(_MOST_BYTES, last - position))
            for position in range(first, last, _MOST_BYTES)
        ]
        reached = max(reached, -(-last // PAGE_BYTES) * PAGE_BYTES)
    return requests
