"""How numbers, texts, rows and documents are written, and how results are shown.

A class of results has `_summary`, a line where it is printed, and `_shown`, a small table in a
notebook, and gets the rest from `Shown`.
"""

from __future__ import annotations

import csv
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

# Longest value shown in an error, in characters.
MAX_SHOWN = 80

# Longest value shown in a table for people, in characters; longer ones are cut, with their
# length.
MAX_CELL = 72


def percent(share: float) -> str:
    """Write a share; never 100 % or 0 % where it is not."""
    tenths = round(1000 * share)
    if 0 < share < 1:
        tenths = min(max(tenths, 1), 999)
    return f"{tenths / 10:.1f} %"


def figure(number: float) -> str:
    """Return a measure with four digits, large ones as whole numbers.

    >>> figure(0.91829), figure(23943.7)
    ('0.9183', '23,944')
    """
    return f"{number:,.0f}" if number >= 10_000 else f"{number:.4g}"


def cells_of(letter: str) -> int:
    """Return how many cells a letter takes: a wide one two, a mark on another letter none."""
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def plain(text: str, limit: int = MAX_CELL) -> str:
    """Convert a text to a safe and short form for display.

    Control characters are escaped. A long text is cut, and its length is added.
    """
    return _escaped(text, limit, _is_control)


def cell_text(cell: Any) -> str:
    r"""Return the text of a cell; of bytes that are UTF-8, the text that they are.

    >>> cell_text(1.5), cell_text("é".encode()), cell_text(b"\xff")
    ('1.5', 'é', "b'\\xff'")
    """
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            pass
    return str(cell)


def is_hidden(letter: str) -> bool:
    """Return whether a character is not seen, or changes how those around it are seen."""
    return not letter.isprintable() and unicodedata.category(letter) != "Zs"


def visible(text: str, limit: int) -> str:
    r"""Write every character that is not seen by its number, and cut a long text, saying so.

    >>> visible("a\u202eb", 80), visible("abcdefgh" * 9, 20)
    ('a\\u202eb', 'abcdefgh… (72 chars)')
    """
    return _escaped(text, limit, is_hidden)


def _is_control(letter: str) -> bool:
    # Line separators and marks that turn the direction of writing would spoil what is around them.
    return (
        unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Cs")
        or letter in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def _escaped(text: str, limit: int, is_odd: Callable[[str], bool]) -> str:
    if len(text) > limit:
        note = f"… ({len(text):,} chars)"
        text = text[: max(1, limit - len(note))] + note
    if text.isprintable():  # no odd character is
        return text
    return "".join(
        letter.encode("unicode_escape").decode("ascii") if is_odd(letter) else letter
        for letter in text
    )


def plain_scalar(value: Any) -> Any:
    """Return a numpy scalar as a number or truth value of Python, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def shown(value: Any) -> str:
    """Return how an error shows a value that it refuses, in at most some 80 characters."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length():,} bits"
    text = repr(value).replace("\n", " ")  # of a table
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


_CODED = re.compile(r"[%/\\:\x00-\x1f\x7f]")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def first_line(error: BaseException) -> str:
    r"""Return the first line that an error says, without its full stop; its class if it is mute.

    >>> first_line(ValueError("Too short.\nIn the reader.")), first_line(EOFError())
    ('Too short', 'EOFError')
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" .") if lines else type(error).__name__


def coded_name(name: str) -> str:
    """Return the name of a table inside a file or database as a path has it.

    Signs that mean something in a path, and the colon before a column, are written as in an URL.
    """
    return _CODED.sub(lambda sign: f"%{ord(sign[0]):02X}", name)


def format_bytes(n_bytes: int) -> str:
    """Write a number of bytes with one decimal in the largest unit that keeps it at 1 or more."""
    if n_bytes < 1024:
        return f"{n_bytes} byte" if n_bytes == 1 else f"{n_bytes} bytes"
    step = min((n_bytes.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{n_bytes / 1024**step:.1f} {_UNITS[step]}"


def human_bytes(n_bytes: float) -> str:
    """Write a number of bytes for people, in decimal units as disks are sold."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000
        if n_bytes < 999.95:
            return f"{n_bytes:.1f} {unit}"
    return f"{n_bytes / 1000:,.1f} TB"


# What lines end in for Python's writer, so that it quotes a cell with a carriage return or a line
# feed: before 3.13 it quotes one only where lines end in it.
WRITTEN_END = "\r\n"


class RowEnds:
    """Text stream for a writer whose lines end in `WRITTEN_END`: each of them gets a line feed."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def write(self, row: str) -> None:
        """Pass a row on; what csv and pandas write in a call is one."""
        self._write(f"{row.removesuffix(WRITTEN_END)}\n")


def csv_row(cells: Iterable[Any]) -> str:
    """Return cells as a line of CSV, with a line feed at its end."""
    rows: list[str] = []
    csv.writer(RowEnds(rows.append), lineterminator=WRITTEN_END).writerow(cells)
    return rows[0]


def plain_json(value: Any) -> Any:
    """Return a value as plain JSON: null for what is no finite number, texts for other types.

    >>> plain_json({"share": float("nan"), "at": [b"x", 1]})
    {'share': None, 'at': ['x', 1]}
    """
    if isinstance(value, dict):
        return {str(name): plain_json(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else cell_text(value)


def json_line(document: Any) -> str:
    """Return a document on one line, without a line feed."""
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(plain_json(document), ensure_ascii=False, allow_nan=False)


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
    """Return a small table of HTML without any style, so that it looks as the notebook does."""
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
    """Return names and rows of a table of facts, a row each; see `Shown._shown`."""
    return ["", ""], [list(fact) for fact in facts.items()]


def many(number: int, noun: str) -> str:
    """Write a number of things."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def named(names: Sequence[str], limit: int = 3) -> str:
    """Write the first of some names, so that they can be printed."""
    dots = " ..." if len(names) > limit else ""
    return (", ".join(map(plain, names[:limit])) or "none") + dots


def listed_names(names: Sequence[str], limit: int = 20, write: Callable[[str], str] = repr) -> str:
    """Write the first of some names, and how many more there are."""
    some = ", ".join(map(write, names[:limit])) or "none"
    return f"{some} and {len(names) - limit:,} more" if len(names) > limit else some


def either(choices: Iterable[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


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
