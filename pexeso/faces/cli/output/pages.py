"""The option ``--html``: what a command found, as a page in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from pexeso.faces.cli.options import cli_option
from pexeso.faces.cli.output.output import human_bytes, talk
from pexeso.faces.service.schema import OUTPUT
from pexeso.store.io.whole_files import require_free, written_whole

Command = TypeVar("Command", bound=Callable[..., Any])


def page_options(command: Command) -> Command:
    """Add ``--html`` and ``--overwrite``, as the parameters `html` and `overwrite`."""
    overwrite = cli_option(
        "--overwrite",
        is_flag=True,
        group=OUTPUT,
        help="With --html: replace an existing file PAGE.",
    )
    return html_option(overwrite(command))


html_option = cli_option(
    "--html",
    group=OUTPUT,
    metavar="PAGE",
    help="Also write a page for the browser: one file, which loads nothing else.",
)


def require_page(html: str | None, *, overwrite: bool) -> None:
    """Refuse, before any work is done, a page that could not be written in the end."""
    if html is None:
        if overwrite:
            raise click.UsageError("--overwrite is for the file of --html, and none was named.")
        return
    if not html:
        raise click.UsageError("--html needs the name of a file, such as --html report.html.")
    require_free(html, overwrite=overwrite)


def write_page(pieces: Iterator[str], html: str, *, overwrite: bool) -> None:
    """Write a page piece by piece to its file, and report where it is.

    The file is written completely or not at all.
    """
    with (
        written_whole(html, overwrite=overwrite) as temporary,
        temporary.open("w", encoding="utf-8") as stream,
    ):
        for piece in pieces:
            stream.write(piece)
    talk(f"Page for the browser: '{html}' ({human_bytes(Path(html).stat().st_size)})")
