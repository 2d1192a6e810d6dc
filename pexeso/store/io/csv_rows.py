"""Rows of CSV that every reader takes apart again: lines end in a line feed, cells may hold any.

Before 3.13 Python's writer quotes a cell with a carriage return only where lines end in one, and
readers take a bare one for the end of a row.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from typing import Any

WRITTEN_END = "\r\n"
"""What lines end in for the writer, so that it quotes both."""


class RowEnds:
    r"""Text stream for a writer whose lines end in `WRITTEN_END`: each of them gets a line feed.

    Examples
    --------
    >>> rows = []
    >>> csv.writer(RowEnds(rows.append), lineterminator=WRITTEN_END).writerow(["a\rb", "c"])
    >>> rows
    ['"a\rb",c\n']
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def write(self, row: str) -> None:
        """Pass a row on; what csv and pandas write at once is one."""
        self._write(f"{row.removesuffix(WRITTEN_END)}\n")


def csv_row(cells: Iterable[Any]) -> str:
    r"""Return cells as a line of CSV, with a line feed at its end.

    Examples
    --------
    >>> csv_row(["city, state", 3, None])
    '"city, state",3,\n'
    """
    rows: list[str] = []
    csv.writer(RowEnds(rows.append), lineterminator=WRITTEN_END).writerow(cells)
    return rows[0]
