"""What reading one table may take: bytes unpacked, cells and processor time.

A small file can stand for any number of bytes and cells, or for work without end. Each reader asks
its budget before it sets memory aside, and between pieces. All bounds follow from the size of the
file as it is stored, so that whoever sends a small file has a small budget.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from pexeso.errors import TableReadError

DEFAULT_MAX_BYTES = 1 << 30
"""Largest file that is read, in bytes after decompression, unless told otherwise: 1 GiB."""

MAX_RATIO, MIN_UNPACKED_BYTES = 250, 32 << 20
"""A file may unpack to so many times its size, and to so many bytes in any case."""

CELLS_A_BYTE, MIN_CELLS = 4, 32 << 20
"""A table may have so many cells for each byte of its file, and so many in any case.

A cell takes a byte of a text at least, if only a delimiter; in a table of the filled-in ends of
short rows, of objects without most of the keys, or of nulls, it takes none.
"""

MIN_SECONDS, SECONDS_A_MIB = 10, 4
"""Reading may take so many seconds of processor time, and so many more for each MiB."""

_Item = TypeVar("_Item")


class ReadingBudget:
    """The bounds of reading one table; its clock runs from when it is made.

    Parameters
    ----------
    n_bytes : int
        Size of the file as it is stored.

    Examples
    --------
    >>> budget = ReadingBudget("a.csv.gz", 1 << 20)
    >>> budget.max_unpacked >> 20, budget.max_seconds
    (250, 14)
    """

    def __init__(self, shown: str, n_bytes: int, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.shown, self.n_bytes, self.max_bytes = shown, n_bytes, max_bytes
        self._since, self._spent = time.thread_time(), 0.0

    @property
    def max_unpacked(self) -> int:
        """Bytes that it may unpack to."""
        return min(self.max_bytes, max(MAX_RATIO * self.n_bytes, MIN_UNPACKED_BYTES))

    @property
    def max_seconds(self) -> int:
        """Processor time that reading may take, in seconds."""
        return MIN_SECONDS + SECONDS_A_MIB * (self.n_bytes >> 20)

    def check_unpacked(self, n_bytes: int) -> None:
        """Raise `TableReadError` for more bytes than the file may unpack to."""
        if n_bytes > self.max_bytes:
            raise TableReadError(
                f"{self.shown} holds more than {self.max_bytes:,} bytes, the most that is read "
                "(max_bytes)."
            )
        if n_bytes > self.max_unpacked:
            raise TableReadError(
                f"{self.shown} is refused: its {self.n_bytes:,} bytes unpack to more than "
                f"{self.max_unpacked:,}; unpack it yourself if that is meant."
            )

    def check_unpacked_columns(self, n_bytes: float) -> None:
        """Raise `TableReadError` where columns come to more bytes than a table may have."""
        if n_bytes > self.max_bytes:
            raise TableReadError(
                f"{self.shown} unpacks to more than {self.max_bytes:,} bytes, the most that is "
                "read (max_bytes)."
            )

    def check_cells(self, n_rows: int, n_columns: int, n_unpacked: int = 0) -> None:
        """Raise `TableReadError` for more cells than a table of so many bytes has.

        Parameters
        ----------
        n_rows, n_columns : int
        n_unpacked : int
            Bytes of the text, where the file is packed.
        """
        n_bytes = max(self.n_bytes, n_unpacked)
        if n_rows * max(1, n_columns) > max(CELLS_A_BYTE * n_bytes, MIN_CELLS):
            raise TableReadError(
                f"{self.shown} has almost no cells: it comes to more than {n_rows:,} rows of "
                f"{n_columns:,} columns, and has {n_bytes:,} bytes."
            )

    def is_over(self) -> bool:
        """Return whether reading has taken too long."""
        return self._spent + time.thread_time() - self._since > self.max_seconds

    def check_seconds(self) -> None:
        """Raise `TableReadError` where reading has taken too long."""
        if self.is_over():
            raise self.out_of_time()

    def out_of_time(self) -> TableReadError:
        """Return the error of a table whose reading takes too long."""
        return TableReadError(
            f"{self.shown} cannot be read: after {self.max_seconds:,} seconds of work there was no "
            "end."
        )

    def paced(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield items; what is done between them by whoever asks takes none of the time."""
        iterator = iter(items)
        while True:
            self._since = time.thread_time()
            try:
                item = next(iterator)
            except StopIteration:
                return
            self.check_seconds()
            self._spent += time.thread_time() - self._since
            yield item
