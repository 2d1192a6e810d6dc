"""Paging of mapped arrays: only the pages used are read, and they are requested in advance."""

from __future__ import annotations

import mmap
from collections.abc import Mapping

import numpy as np

FEW_FAULTS = 8
"""Pages that a process may find missing now and then, as its own code does when a function first
runs."""

PAGE_BYTES = mmap.PAGESIZE


class FaultWatch:
    """Tells whether this process had to wait for a disk lately."""

    def __init__(self) -> None:
        self._before = usage("ru_majflt")

    def restart(self) -> None:
        """Forget the pages that were missing until now."""
        self._before = usage("ru_majflt")

    def missing(self) -> bool:
        """Return whether more than a few pages were missing since the start."""
        return usage("ru_majflt") - self._before > FEW_FAULTS


class MappedPages:
    """The pages of some arrays that are mapped files.

    A system that finds a page missing reads its neighbours too, some megabytes of them where it is
    set up for films and backups. A search touches a page here and a page there, so it is told not
    to: the arrays are marked as read at random.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        What `Store.partition` gave; arrays that are not mapped are passed over.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], watch: FaultWatch) -> None:
        self._watch = watch
        self._arrays = {
            name: array
            for name, array in arrays.items()
            if isinstance(array, np.memmap)
            and isinstance(array.base, mmap.mmap)
            and hasattr(array.base, "madvise")
        }
        for array in self._arrays.values():
            array.base.madvise(mmap.MADV_RANDOM)

    def missing(self) -> bool:
        """Return whether pages were missing lately: else nothing need be asked for."""
        return self._watch.missing()

    def want(self, name: str, rows: np.ndarray) -> None:
        """Ask the system to read the pages of some rows, all at once, and wait for none.

        Parameters
        ----------
        name : str
            Of the array; nothing is done where it is not mapped.
        rows : int (n,)
            Rows of its first axis; those that are not there are passed over.
        """
        array = self._arrays.get(name)
        if array is None:
            return
        for first, last in page_runs(rows, len(array), array.strides[0], array.offset):
            array.base.madvise(
                mmap.MADV_WILLNEED, first * PAGE_BYTES, (last + 1 - first) * PAGE_BYTES
            )


def page_runs(rows: np.ndarray, n_rows: int, row_bytes: int, offset: int) -> list[tuple[int, int]]:
    """Return the pages that rows of a file lie on, as runs (first, last).

    Parameters
    ----------
    rows : int (n,)
        Best ascending; those that are not there are passed over.
    """
    rows = np.asarray(rows, np.int64)  # bytes of a file are more than int32 counts
    if not len(rows):
        return []
    if (
        rows[0] < 0 or rows[-1] >= n_rows or (rows[1:] < rows[:-1]).any()
    ):  # numbers of a file may be anything
        return page_runs(np.sort(rows[(rows >= 0) & (rows < n_rows)]), n_rows, row_bytes, offset)
    if rows[-1] - rows[0] == len(rows) - 1:
        end = offset + (int(rows[-1]) + 1) * row_bytes
        return [((offset + int(rows[0]) * row_bytes) // PAGE_BYTES, max(0, end - 1) // PAGE_BYTES)]
    begin = offset + rows * row_bytes
    first, last = begin // PAGE_BYTES, (begin + max(1, row_bytes) - 1) // PAGE_BYTES
    cuts = np.flatnonzero(first[1:] > last[:-1] + 1) + 1
    return list(
        zip(
            first[np.r_[0, cuts]].tolist(),
            last[np.r_[cuts - 1, len(last) - 1]].tolist(),
            strict=True,
        )
    )


def usage(field: str) -> int:
    """Return what the system counts of this process (`resource.getrusage`).

    It is 0 on a system that does not tell.
    """
    try:
        import resource
    except ModuleNotFoundError:  # not a Unix
        return 0
    return getattr(resource.getrusage(resource.RUSAGE_SELF), field)
