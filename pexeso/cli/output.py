"""How commands write: the output options they share, tables for people, JSON and CSV for programs, talk on stderr."""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from pexeso.wording import MAX_CELL, plain

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_NAME = 1000
"""The same for names, paths and sentences, which one may want to copy."""

_HELP = {
    "table": "A table to read (the default).",
    "json": "One JSON document.",
    "jsonl": "JSON lines, one result a line.",
    "csv": "CSV with a header.",
}


def output_options(*forms: str) -> Callable[[Command], Command]:
    """Add the options ``-t/--table``, ``--json``, ``--jsonl``, ``--csv``, those named, as the parameter `form`."""

    def decorate(command: Command) -> Command:
        for form in reversed(("table", *forms)):
            names = ["-t", "--table"] if form == "table" else [f"--{form}"]
            # A default of None, filled in by `chosen_form`: click's versions disagree on defaults of such groups.
            command = click.option(*names, "form", flag_value=form, default=None, help=_HELP[form])(command)
        return command

    return decorate


def talk(message: str) -> None:
    """Write a line on stderr."""
    click.echo(message, err=True)


def is_terminal() -> bool:
    """Tell whether stderr is a terminal, so that a progress bar makes sense."""
    return sys.stderr.isatty()


def write_json(document: Any) -> None:
    """Write a document on stdout: its outer object, and the lists in it, one entry a line."""
    click.echo(_laid_out(document) if isinstance(document, dict) else _compact(document))


def write_json_line(document: Any) -> None:
    """Write a document on stdout on one line."""
    click.echo(_compact(document))


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table on stdout as CSV, a row at a time."""
    for row in (columns, *rows):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        click.echo(line.getvalue(), nl=False)


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], align: str, *, most: int = MAX_CELL
) -> list[str]:
    """Lay out a table for people.

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of sequences of str
    align : str
        ``<`` or ``>`` for each column.
    most : int
        Longest text of a cell, in characters; see `plain`.

    Returns
    -------
    list of str
        The header, unless all its names are empty, and a line for each row.

    Examples
    --------
    >>> table_lines(["n", "what"], [["7", "apples"], ["12", "pears"]], "><")
    [' n  what', ' 7  apples', '12  pears']
    """
    shown = [[plain(cell, most) for cell in row] for row in (columns, *rows)]
    widths = [max(map(display_width, cells)) for cells in zip(*shown, strict=True)]
    lines = [
        "  ".join(_pad(cell, width, side) for cell, width, side in zip(row, widths, align, strict=True)).rstrip()
        for row in shown
    ]
    return lines if any(columns) else lines[1:]


def display_width(text: str) -> int:
    """Count the terminal cells that a text takes: two for wide letters, none for marks on a letter.

    Examples
    --------
    >>> display_width("東京"), display_width("Oslo")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(_cells(letter) for letter in text)


def human_bytes(n_bytes: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> human_bytes(999), human_bytes(12_345_678)
    ('999 bytes', '12.3 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000
        if n_bytes < 999.95:
            return f"{n_bytes:.1f} {unit}"
    return f"{n_bytes / 1000:,.1f} TB"


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> count(1, "column"), count(1200, "value")
    ('1 column', '1,200 values')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _compact(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False)


def _laid_out(document: dict[str, Any]) -> str:
    members = []
    for name, value in document.items():
        text = _compact(value)
        if isinstance(value, list) and value:
            entries = ",\n".join(f"    {_compact(entry)}" for entry in value)
            text = f"[\n{entries}\n  ]"
        members.append(f"  {_compact(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}"


def _pad(text: str, width: int, side: str) -> str:
    space = " " * (width - display_width(text))
    return text + space if side == "<" else space + text


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
