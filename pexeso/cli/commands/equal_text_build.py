"""``pexeso overlap build`` and ``pexeso contain build``: parts for equal text, added to an index that is there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from pexeso.cli.commands.build import stage_progress
from pexeso.cli.errors import Interrupted, command_again
from pexeso.cli.logs import log_json_option
from pexeso.cli.output.output import count, output_options, talk, write_json
from pexeso.cli.spark import spark_options

if TYPE_CHECKING:
    from pexeso.build.add_part import Added


@click.command("build")
@click.argument("index", metavar="INDEX")
@spark_options
@log_json_option
@output_options("json")
def build_overlap(index: str, master: str | None, conf: dict[str, str], form: str | None) -> None:
    """Add the part for overlaps to an index that is there.

    \b
    Example:
      pexeso overlap build lake.pexeso

    The part has all columns, those of numbers too, as sets of values with posting lists. The tables of the lake are read once
    more; those that have changed since the index was written are left out until pexeso append. Later updates keep the part up to
    date.

    In Python: pexeso.open_index(INDEX).add_parts(["overlap"]).
    """  # noqa: D301  click reads \b
    _add(index, "overlap", master, conf, form)


@click.command("build")
@click.argument("index", metavar="INDEX")
@spark_options
@log_json_option
@output_options("json")
def build_containment(index: str, master: str | None, conf: dict[str, str], form: str | None) -> None:
    """Add the part for containment to an index that is there.

    \b
    Example:
      pexeso contain build lake.pexeso

    The part has a signature of each column. It brings the part for overlaps; where the index has that, no table is read again.
    Later updates keep both up to date.

    In Python: pexeso.open_index(INDEX).add_parts(["containment"]).
    """  # noqa: D301  click reads \b
    _add(index, "containment", master, conf, form)


def _add(index: str, part: str, master: str | None, conf: dict[str, str], form: str | None) -> None:
    from pexeso.build.add_part import add_parts

    started = time.perf_counter()
    try:
        with stage_progress() as progress:
            added = add_parts(index, [part], master=master, conf=conf, progress=progress)
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Interrupted: '{index}' is as it was, and what is finished is kept for the next run. Go on: {command_again()}"
        ) from error
    if form == "json":
        write_json(added.to_dict())
    talk(f"{added_summary(added)}; generation {added.generation}, {time.perf_counter() - started:.1f} s.")


def added_summary(added: Added) -> str:
    """Say in a few words what was added."""
    has = f"{count(added.columns, 'column')} with {count(added.pairs, 'value')}"
    if not added.committed:
        return f"There was nothing to add: the index has {' and '.join(added.parts)} ({has})"
    left_out = (
        f"; {count(added.left_out, 'table')} that changed since the index was written are left out until pexeso append"
        if added.left_out
        else ""
    )
    return f"Added: the index has {' and '.join(added.parts)} now ({has}){left_out}"
