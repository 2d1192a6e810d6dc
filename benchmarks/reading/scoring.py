"""When a table is read as it should be: names and all cells are those of the truth."""

from __future__ import annotations

import re
from collections.abc import Sequence

Row = Sequence[str]

_NO_NAME = re.compile(r"(?:column|col|unnamed|field|x|v|c)?[_: #]*[0-9]*", re.IGNORECASE)


def same_cells(found: Sequence[Row], truth: Sequence[Row]) -> bool:
    """Return whether rows have the same cells, white space around them and its kind left aside.

    Cells beyond the longer row of a pair count as empty.
    """
    return len(found) == len(truth) and all(map(same_row, found, truth))


def same_row(found: Row, truth: Row) -> bool:
    """Return whether two rows have the same cells; missing ones at the end are empty."""
    width = max(len(found), len(truth))
    return _plain(found, width) == _plain(truth, width)


def same_names(found: Row, truth: Row | None) -> bool:
    """Return whether names are those of the truth.

    A table without a header may have names that say no more than a number, as each reader gives
    them.
    """
    if truth is None:
        return all(_NO_NAME.fullmatch(name.strip()) for name in found)
    return same_row(found, truth)


def _plain(row: Row, width: int) -> list[str]:
    return [" ".join(cell.split()) for cell in row] + [""] * (width - len(row))
