"""When a table is read as it should be: names and all cells are those of the truth.

What is a convention, and not a mistake, is left aside for all readers alike:

- White space around cells, and its kind within them.
- Rows without any value. The truths of Pollock's survey have none, though 20 of its files do.
- Cells beyond the longer row of a pair: they are empty.
- How often a name is said that stands in several rows of a header ("DATE" is "DATE DATE").
- Names that say no more than a number, where a file has no header.
- What becomes of a file without any name or row: a reader may refuse it, or read no row.

Of a file with one damaged row all rows but one must be right, its header counted as a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Row = Sequence[str]

ReadTable = tuple[list[str], list[list[str]]]

_NO_NAME = re.compile(r"(?:column|col|unnamed|field|x|v|c)?[_: #]*[0-9]*", re.IGNORECASE)


def same_cells(rows: Sequence[Row], truth: Sequence[Row]) -> bool:
    """Return whether the rows that have a value have the same cells."""
    return n_wrong_rows(rows, truth) == 0


def n_wrong_rows(rows: Sequence[Row], truth: Sequence[Row]) -> int | None:
    """Return how many of the rows that have a value differ; None if more or fewer have one."""
    ours, true_rows = list(filter(_has_value, rows)), list(filter(_has_value, truth))
    if len(ours) != len(true_rows):
        return None
    return sum(not same_row(*pair) for pair in zip(ours, true_rows, strict=True))


def same_row(row: Row, truth: Row) -> bool:
    """Return whether two rows have the same cells; missing ones at the end are empty."""
    width = max(len(row), len(truth))
    return _plain(row, width) == _plain(truth, width)


def same_names(names: Row, truth: Row | None) -> bool:
    """Return whether names are those of the truth.

    A table without a header may have names that say no more than a number, as each reader gives
    them.
    """
    if truth is None:
        return all(_NO_NAME.fullmatch(name.strip()) for name in names)
    width = max(len(names), len(truth))
    return list(map(_once, _plain(names, width))) == list(map(_once, _plain(truth, width)))


def is_right(
    table: ReadTable | None, names: Row | None, rows: Sequence[Row], n_allowed: int
) -> bool:
    """Return whether a file is read as its truth says.

    Parameters
    ----------
    table
        Names and rows as read; None where the reader refuses the file.
    names, rows
        The truth. `names` is None where there is no header.
    n_allowed
        Rows that may differ, the header among them.
    """
    if table is None:
        return names is None and not rows
    n_wrong = n_wrong_rows(table[1], rows)
    if n_wrong is None:
        return False
    if names is None and not rows:
        return True
    return n_wrong + (not same_names(table[0], names)) <= n_allowed


def _has_value(row: Row) -> bool:
    return any(cell.strip() for cell in row)


def _once(name: str) -> str:
    """Return a name that says the same words again and again with these words once."""
    words = name.split()
    for n in range(1, len(words) // 2 + 1):
        if len(words) % n == 0 and words[:n] * (len(words) // n) == words:
            return " ".join(words[:n])
    return name


def _plain(row: Row, width: int) -> list[str]:
    return [" ".join(cell.split()) for cell in row] + [""] * (width - len(row))
