"""``-`` in the place of a query file: the table is read from standard input.

Commands read a query file more than once, such as for the rows that a page shows. So what is piped
in goes into a temporary file first, and that file becomes the process's standard input, which can
be opened by its name again and again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from typing import IO

import click

from pexeso.errors import TableReadError

NAME = "/dev/stdin"
"""The name of standard input in messages and answers: ``-`` is short for it."""

_PIECE_BYTES = 1 << 20


def written_out(params: Sequence[click.Parameter], args: Sequence[str]) -> list[str]:
    """Return arguments with ``-`` and ``-:COLUMN`` for a file written out.

    click would take the latter for an option.
    """
    with_value = {
        name
        for option in params
        if isinstance(option, click.Option) and not option.is_flag and not option.count
        for name in option.opts
    }
    return [
        NAME + text[1:]
        if (text == "-" or text.startswith("-:")) and before not in with_value
        else text
        for before, text in pairwise(["", *args])
    ]


def take_standard_input(context: click.Context, argument: click.Parameter, spec: str) -> str:
    """Return the argument as it is; if it names standard input, let that be read more than once.

    To be the callback of an argument that is ``FILE`` or ``FILE:COLUMN``. Memory: one piece of a
    MiB. The temporary file holds at most one byte more than a table may have; reading the table
    tells whoever gave more.
    """
    if (spec == NAME or spec.startswith(f"{NAME}:")) and not context.resilient_parsing:
        root = context.find_root()
        if not root.meta.get(NAME):  # source and target of one command may both be it
            root.meta[NAME] = True
            _keep(root)
    return spec


def _keep(context: click.Context) -> None:
    """Put a temporary file in the place of standard input, until the command has ended."""
    from pexeso.lake.readers.budget import DEFAULT_MAX_BYTES

    if sys.stdin is None:
        raise TableReadError(
            "Standard input is closed. Pipe a table into the command, or name a file."
        )
    if sys.stdin.isatty():
        click.echo(
            "Reading a table from the terminal; Ctrl-D on a line of its own ends it.", err=True
        )
    try:
        with tempfile.TemporaryFile(prefix="pexeso-") as file:
            _copy(sys.stdin.buffer, file, DEFAULT_MAX_BYTES + 1)
            file.flush()
            before = os.dup(0)
            os.dup2(file.fileno(), 0)
    except OSError as error:
        raise TableReadError(
            f"Standard input cannot be kept in a temporary file: {error.strerror or error}. Make "
            f"room in {tempfile.gettempdir()}, or name a file."
        ) from error
    context.call_on_close(lambda: _put_back(before))


def _copy(source: IO[bytes], target: IO[bytes], limit: int) -> None:
    while limit and (piece := source.read(min(limit, _PIECE_BYTES))):
        target.write(piece)
        limit -= len(piece)


def _put_back(before: int) -> None:
    os.dup2(before, 0)
    os.close(before)
