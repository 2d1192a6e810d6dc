"""How results are shown: a line where they are printed, a small table in a notebook.

A class of results has `_summary` and `_shown`, and gets the rest from `Shown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from pexeso.runtime.formatting import plain

# Most rows of a table in a notebook.
MAX_ROWS = 20

# Most columns of a table in a notebook.
MAX_COLUMNS = 20

_MAX_ITEMS = 5


class Shown:
    """A result that is shown in a line, and in a notebook as a small table.

    A dataclass that takes this over is made with ``repr=False``.
    """

    def _summary(self) -> str:
        """Return the result in a line."""
        raise NotImplementedError

    def _shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Return the names of the columns of the small table, and its rows."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _repr_html_(self) -> str:
        """Return what notebooks show: the line, and the first 20 rows of a small table."""
        return html_table(self._summary(), *self._shown())


def html_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a small table of HTML without any style, so that it looks as the notebook does.

    Examples
    --------
    >>> html_table("1 row", ["a"], [["<b>"]])
    '<table><caption>1 row</caption><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """  # noqa: E501  what is printed is one line
    head = "".join(f"<th>{escape(plain(name))}</th>" for name in names[:MAX_COLUMNS])
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row[:MAX_COLUMNS])}</tr>"
        for row, _ in zip(rows, range(MAX_ROWS), strict=False)
    )
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def facts_table(facts: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Return names and rows of a table of facts, a row each; see `Shown._shown`.

    Examples
    --------
    >>> facts_table({"rows": 3})
    (['', ''], [['rows', 3]])
    """
    return ["", ""], [list(fact) for fact in facts.items()]


def many(number: int, noun: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> many(1, "row"), many(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def named(names: Sequence[str], limit: int = 3) -> str:
    """Write the first of some names, so that they can be printed.

    Examples
    --------
    >>> named(["a", "b", "c", "d"]), named([])
    ('a, b, c ...', 'none')
    """
    dots = " ..." if len(names) > limit else ""
    return (", ".join(map(plain, names[:limit])) or "none") + dots


def _cell(value: Any) -> str:
    return escape(plain(_text_of(value)))


def _text_of(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        more = f" and {len(value) - _MAX_ITEMS:,} more" if len(value) > _MAX_ITEMS else ""
        return ", ".join(map(_text_of, value[:_MAX_ITEMS])) + more
    return str(value)
