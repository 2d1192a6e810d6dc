"""What a table of results shows beside the measures: copies, the columns a join brings, the rest.

And what is said where nothing was found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from pexeso.faces.cli.output.output import MAX_NAME, display_width, plain, table_lines
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.lake.left_out.groups import ReasonGroup
    from pexeso.results.column_matches import ColumnMatch, ColumnMatches, Hints, Matches

BRINGS_WIDTH, MIN_BRINGS_WIDTH = 40, 16
"""Characters for the names of what a join brings, fewer on a narrow terminal, but not below the
second."""

MAX_LABEL = 24
"""Longest label among these."""

MAX_COPIES_NAMED = 5
"""Copies of a column that are named."""

_INDENT = "    "
_POSITION = re.compile(r"#[0-9]+", re.ASCII)

Table = tuple[Sequence[str], Sequence[Sequence[str]], str]


def with_beside(table: Table, result: ColumnMatches[Any]) -> Table:
    """Return a table of columns found with their copies, where there are any, and what they bring.

    On a terminal the last column is as wide as there is room, within bounds.
    """
    names, rows, align = table
    if any(match.copies for match in result):
        copies = [f"+{len(match.copies):,}" if match.copies else "" for match in result]
        names, align = (*names, "copies"), f"{align}>"
        rows = [(*row, cell) for row, cell in zip(rows, copies, strict=True)]
    width = BRINGS_WIDTH
    if sys.stdout.isatty():
        used = max(map(display_width, table_lines(names, rows, align, limit=MAX_NAME)))
        width = get_terminal_size().columns - used - 2
    width = min(max(width, MIN_BRINGS_WIDTH), BRINGS_WIDTH)
    brings = [brought(match.brings, width) for match in result]
    if not any(brings):
        return names, rows, align
    rows = [(*row, cell) for row, cell in zip(rows, brings, strict=True)]
    return (*names, "brings"), rows, f"{align}<"


def brought(labels: Sequence[str], width: int) -> str:
    """Write the first labels that fit into a width, and how many more there are.

    Examples
    --------
    >>> brought(["born", "died", "country", "field"], 40)
    'born, died, country, field'
    >>> brought(["born", "died", "country", "field"], 20)
    'born, died, +2 more'

    Columns without a name of their own are counted alone:

    >>> brought(["#1", "born", "#3"], 40), brought(["#1"], 40)
    ('born, +2 more', '1 column')
    """
    shown = [_short(label) for label in labels if not _POSITION.fullmatch(label)]
    for n_shown in range(len(shown), 0, -1):
        n_more = len(labels) - n_shown
        text = ", ".join([*shown[:n_shown], *([f"+{n_more:,} more"] if n_more else [])])
        if display_width(text) <= width:
            return text
    return many(len(labels), "column") if labels else ""


def copies_line(match: ColumnMatch) -> list[str]:
    """Name the first copies of a column found."""
    if not match.copies:
        return []
    named = [f"{copy.table}:{copy.column}" for copy in match.copies[:MAX_COPIES_NAMED]]
    n_more = len(match.copies) - len(named)
    rest = [f"and {n_more:,} more (--no-fold-copies lists each)"] if n_more else []
    return [f"{_INDENT}same values: {plain(', '.join([*named, *rest]), MAX_NAME)}"]


def rest_lines(result: Matches[Any]) -> list[str]:
    """Return the line about what was found beyond those shown, and how to see them."""
    lines = []
    twice = f"-k {2 * max(len(result), 1)}"
    if getattr(result.options, "min_joinability", 0) is not None:
        twice += ", or -k all"
    if result.n_more:
        lines.append(f"and {many(result.n_more, f'more {result.noun}')} ({twice})")
    elif result.n_more is None:
        lines.append(f"and there may be more {result.noun}s ({twice})")
    if any(match.copies for match in result):
        lines.append("copies hold the same values, or nearly (--no-fold-copies lists each)")
    return lines


def hint_lines(hints: Hints) -> list[str]:
    """Lay out what helps where nothing was found."""
    lines = []
    if hints.nearest:
        rows = [
            (
                percent(near_column.share),
                f"{near_column.matched:,}/{near_column.total:,}",
                "" if near_column.max_distance is None else f"{near_column.max_distance:.3g}",
                near_column.table,
                near_column.column,
            )
            for near_column in hints.nearest
        ]
        names = ("reaches", "matched", "within distance", "table", "column")
        align = ">>><<"
        if not any(row[2] for row in rows):
            rows = [(*row[:2], *row[3:]) for row in rows]
            names, align = ("has", "values", "table", "column"), ">><<"
        lines = ["Nearest:", *(f"{_INDENT}{line}" for line in table_lines(names, rows, align))]
    columns, files = (
        [group for group in hints.left_out if group.kind == kind] for kind in ("columns", "tables")
    )
    left_out = [*_left_out(columns, 2), *_left_out(files, 1)]
    if left_out:
        lines += ["Not in this index (pexeso info --left-out lists all):", *left_out]
    if any(group.reason == "numbers" for group in columns):
        lines.append("Columns of numbers join by equal values: pexeso search --method overlap.")
    return lines


def _left_out(groups: Sequence[ReasonGroup], limit: int) -> list[str]:
    """Write the largest groups of what was left out, and how many are in others."""
    lines = [f"{_INDENT}{group.counted()}: {plain(group.reason)}" for group in groups[:limit]]
    n_more = sum(group.count for group in groups[limit:])
    noun = "more column" if groups and groups[0].kind == "columns" else "more file"
    return [*lines, f"{_INDENT}{many(n_more, noun)}"] if n_more else lines


def _short(label: str) -> str:
    text = plain(label)
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"
