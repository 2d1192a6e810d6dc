"""Output of commands: shared output options, tables for people, JSON and CSV, and messages.

JSON and CSV are for programs; messages go to stderr.
"""

from __future__ import annotations

import itertools
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pexeso.faces.cli.options import cli_option
from pexeso.faces.cli.output.streams import styled
from pexeso.faces.service.json_text import json_line, json_pieces, json_text
from pexeso.faces.service.schema import OUTPUT
from pexeso.lake.frames.writing import without_formula
from pexeso.runtime.formatting import MAX_CELL, plain
from pexeso.runtime.formatting import human_bytes as human_bytes
from pexeso.store.io.csv_rows import csv_row

if TYPE_CHECKING:
    from pexeso.faces.service.bases import QueryRequest

Command = TypeVar("Command", bound=Callable[..., Any])

MAX_NAME = 1000
"""The same for names, paths and sentences, which one may want to copy."""

_FORMULAS = "pexeso.escape_formulas"

_HELP = {
    "json": "Print one JSON document.",
    "jsonl": "Print JSON lines, one result a line.",
    "csv": "Print CSV with a header.",
}


def output_options(*forms: str) -> Callable[[Command], Command]:
    """Add output options as the parameter `form`.

    The options are those named, of ``--json``, ``--jsonl``, ``--csv``; without one the command
    prints aligned text for people.
    """

    def decorate(command: Command) -> Command:
        for form in reversed(forms):
            command = cli_option(
                f"--{form}",
                "form",
                flag_value=form,
                default=None,
                group=OUTPUT,
                help=_HELP[form],
            )(command)
        return escape_formulas_option(command) if "csv" in forms else command

    return decorate


def escape_formulas_option(command: Command) -> Command:
    """Add ``--escape-formulas``, which all that the command writes as CSV then follows."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        context.find_root().meta[_FORMULAS] = value

    return cli_option(
        "--escape-formulas",
        is_flag=True,
        group=OUTPUT,
        expert=True,
        expose_value=False,
        callback=remember,
        help="In CSV: put ' before cells that a spreadsheet would run as a formula.",
    )(command)


def escapes_formulas() -> bool:
    """Return whether the command that is running was given ``--escape-formulas``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(_FORMULAS))


def write_data(text: str) -> None:
    """Write a text to stdout unchanged.

    click would remove escape sequences where stdout is no terminal.
    """
    click.echo(text, nl=False, color=True)


def talk(message: str) -> None:
    """Write a line on stderr."""
    click.echo(message, err=True)


def warn(message: str) -> None:
    """Write a line on stderr that one should not pass over: yellow on a terminal."""
    talk(styled(message, err=True, fg="yellow"))


def heading(line: str) -> str:
    """Return the header of a table for stdout: bold on a terminal."""
    return styled(line, bold=True)


def tell_column(request: QueryRequest, result: Any) -> None:
    """Say which column was taken, where the request named a file alone."""
    if request.column is None and not getattr(request, "all_columns", False):
        talk(f"No column was named: searching with {result.query['column']!r}.")


def is_terminal() -> bool:
    """Return whether stderr is a terminal, so that a progress bar makes sense."""
    return sys.stderr.isatty()


def write_json(document: Any) -> None:
    """Write a document on stdout: its outer object, and the lists in it, one entry a line."""
    write_data(f"{json_text(document)}\n")


def write_json_with_rows(document: dict[str, Any], name: str, rows: Iterable[Any]) -> None:
    """Write a document on stdout as `write_json` does, and in it, last, a list of any length.

    The list is written an entry at a time; memory does not grow with it.
    """
    for piece in json_pieces(document, name, rows):
        write_data(piece)


def write_json_line(document: Any) -> None:
    """Write a document on stdout on one line."""
    write_data(f"{json_line(document)}\n")


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table on stdout as CSV, a row at a time."""
    escape = escapes_formulas()
    for row in itertools.chain((columns,), rows):
        write_data(csv_row(map(without_formula, row) if escape else row))


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], align: str, *, limit: int = MAX_CELL
) -> list[str]:
    """Lay out a table for people.

    It has the header, unless all its names are empty, and a line for each row.

    `align` has ``<`` or ``>`` for each column; a cell has `limit` characters at most.

    Examples
    --------
    >>> table_lines(["n", "what"], [["7", "apples"], ["12", "pears"]], "><")
    [' n  what', ' 7  apples', '12  pears']
    """
    shown = [[plain(cell, limit) for cell in row] for row in (columns, *rows)]
    # A longer cell is shown in full and moves what follows it in its own row, not in all others.
    widths = [
        max((width for width in map(display_width, cells) if width <= MAX_CELL), default=0)
        for cells in zip(*shown, strict=True)
    ]
    lines = [
        "  ".join(
            _pad(cell, width, side) for cell, width, side in zip(row, widths, align, strict=True)
        ).rstrip()
        for row in shown
    ]
    return lines if any(columns) else lines[1:]


def display_width(text: str) -> int:
    """Count the terminal cells that a text takes.

    A wide letter takes two, a mark on a letter none.
    """
    if text.isascii():
        return len(text)
    return sum(_cells(letter) for letter in text)


def _pad(text: str, width: int, side: str) -> str:
    space = " " * max(0, width - display_width(text))
    return text + space if side == "<" else space + text


def _cells(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
