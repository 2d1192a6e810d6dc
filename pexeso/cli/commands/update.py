"""``pexeso append``, ``delete`` and ``compact``: bring an index up to date with its lake."""

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
    from pexeso.build.job import Update


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("lake", metavar="[LAKE]", required=False)
@click.option("--delete-missing", is_flag=True, help="Delete the tables whose files are gone from the lake.")
@click.option(
    "--compare",
    type=click.Choice(("modified", "content")),
    default="modified",
    show_default=True,
    help="What tells that a file is as it was: its size and time of change, or its content, which is read then.",
)
@spark_options
@log_json_option
@output_options("json")
def append(
    index: str,
    lake: str | None,
    delete_missing: bool,
    compare: str,
    master: str | None,
    conf: dict[str, str],
    form: str | None,
) -> None:
    """Add the tables of the lake that are new or have changed.

    \b
    Example:
      pexeso append lake.pexeso
      pexeso append lake.pexeso --delete-missing

    Costs a listing of the lake, and beyond that only what is new. LAKE is where the lake is now, if it has moved. Searches
    go on meanwhile, and see the update when they are started after it.

    In Python: pexeso.open_index(INDEX).append().
    """  # noqa: D301  click reads \b
    from pexeso.build.append import append as append_tables

    started = time.perf_counter()
    try:
        with stage_progress() as progress:
            done = append_tables(
                index,
                lake,
                delete_missing=delete_missing,
                compare=compare,
                master=master,
                conf=conf,
                progress=progress,
            )
    except KeyboardInterrupt as error:
        raise Interrupted(_unfinished(index)) from error
    _tell(done, form, append_summary(done), started)


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("tables", metavar="TABLE...", nargs=-1, required=True)
@output_options("json")
def delete(index: str, tables: tuple[str, ...], form: str | None) -> None:
    """Delete tables from an index.

    \b
    Example:
      pexeso delete lake.pexeso sales/2019.csv

    Tables are named as pexeso search prints them. Their files are not touched; the next pexeso append adds them again where
    they are still in the lake.

    In Python: pexeso.open_index(INDEX).delete(TABLES).
    """  # noqa: D301  click reads \b
    from pexeso.build.delete import delete as delete_tables

    started = time.perf_counter()
    done = delete_tables(index, tables)
    said = f"Deleted {count(done.deleted, 'table')} with {count(done.columns_deleted, 'indexed column')}; pexeso compact frees the room"
    _tell(done, form, said, started)


@click.command()
@click.argument("index", metavar="INDEX")
@click.option("--all", "everything", is_flag=True, help="Divide all columns into partitions anew.")
@spark_options
@log_json_option
@output_options("json")
def compact(index: str, everything: bool, master: str | None, conf: dict[str, str], form: str | None) -> None:
    """Rewrite what updates have left small or full of deleted columns.

    \b
    Example:
      pexeso compact lake.pexeso

    Reads nothing of the lake. Answers stay the same, and come faster where there were many small partitions.

    In Python: pexeso.open_index(INDEX).compact().
    """  # noqa: D301  click reads \b
    from pexeso.build.compact import compact as compact_index

    started = time.perf_counter()
    try:
        with stage_progress() as progress:
            done = compact_index(index, everything=everything, master=master, conf=conf, progress=progress)
    except KeyboardInterrupt as error:
        raise Interrupted(_unfinished(index)) from error
    _tell(done, form, compact_summary(done), started)


def compact_summary(done: Update) -> str:
    """Say in a few words what a compaction did."""
    if not done.committed:
        return "There was nothing to compact"
    rewritten = f"Rewrote {count(done.partitions_rewritten, 'partition')} as {done.partitions_added:,}"
    if not done.shards_rewritten:
        return rewritten
    return f"{rewritten}, and {count(done.shards_rewritten, 'shard')} of token sets as {done.shards_added:,}"


def append_summary(done: Update) -> str:
    """Say in a few words what an append did."""
    kept = [f"{count(done.unchanged, 'table')} unchanged"]
    if done.missing:
        kept.append(f"{count(done.missing, 'table')} no longer in the lake (--delete-missing deletes them)")
    if not done.committed:
        return f"Nothing to append: {', '.join(kept)}"
    parts = [f"{done.new:,} new", f"{done.changed:,} changed", *([f"{done.deleted:,} deleted"] if done.deleted else [])]
    return f"Appended: {', '.join(parts)}; {', '.join(kept)}. {count(done.columns_added, 'column')} more indexed, {done.columns_deleted:,} fewer"


def _tell(done: Update, form: str | None, said: str, started: float) -> None:
    if form == "json":
        write_json(done.to_dict())
    talk(f"{said}; generation {done.generation}, {time.perf_counter() - started:.1f} s.")


def _unfinished(index: str) -> str:
    return (
        f"Interrupted: '{index}' is as it was, and what is finished is kept for the next run. Go on: {command_again()}"
    )
