"""``pexeso append``, ``delete``, ``compact``, ``add-model``, ``add-part``: updates of an index."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from pexeso.faces.cli.options import (
    command,
    complete_path,
    index_argument,
    read_names,
    takes,
)
from pexeso.faces.cli.output.build_report import left_out_lines
from pexeso.faces.cli.output.output import output_options, talk, write_json
from pexeso.faces.cli.output.progress import run_stages
from pexeso.faces.service.index_requests import (
    AddModelRequest,
    AddPartsRequest,
    AppendRequest,
    CompactRequest,
    DeleteRequest,
)
from pexeso.faces.service.verbs import run
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.build.add_part import Added
    from pexeso.build.report import Update


@command()
@index_argument
@click.argument("lake", metavar="[LAKE]", required=False, shell_complete=complete_path)
@output_options("json")
@takes(AppendRequest)
def append(request: AppendRequest, form: str | None) -> None:
    """Add the tables of the lake that are new or have changed.

    \b
    Example:
      pexeso append lake.pexeso
      pexeso append lake.pexeso --delete-missing

    The cost is a listing of the lake and reading what is new. LAKE is where the lake is now, if it
    has moved. Searches continue meanwhile; those that start later see the update.

    In Python: pexeso.open_index(INDEX).append().
    """  # noqa: D301  click reads \b
    update, seconds = run_stages(request)
    _tell(update, form, append_summary(update), seconds)
    for line in left_out_lines(update.left_out, request.index):
        talk(line)


@command()
@index_argument
@click.argument("tables", metavar="TABLE...", nargs=-1, required=True)
@output_options("json")
@takes(DeleteRequest)
def delete(request: DeleteRequest, form: str | None) -> None:
    """Delete tables from an index.

    \b
    Example:
      pexeso delete lake.pexeso sales/2019.csv

    Tables are named as pexeso search prints them. Their files are not touched; the next pexeso
    append adds them again where they are still in the lake.

    In Python: pexeso.open_index(INDEX).delete(TABLES).
    """  # noqa: D301  click reads \b
    started = time.perf_counter()
    update = run(request)
    columns = many(update.columns_deleted, "indexed column")
    text = f"Deleted {many(update.deleted, 'table')} with {columns}; pexeso compact frees the space"
    _tell(update, form, text, time.perf_counter() - started)


@command()
@index_argument
@output_options("json")
@takes(CompactRequest)
def compact(request: CompactRequest, form: str | None) -> None:
    """Merge small partitions and purge deleted columns.

    \b
    Example:
      pexeso compact lake.pexeso

    The lake is not read. Answers stay the same, and come faster where there were many small
    partitions.

    In Python: pexeso.open_index(INDEX).compact().
    """  # noqa: D301  click reads \b
    update, seconds = run_stages(request)
    _tell(update, form, compact_summary(update), seconds)


@command("add-model")
@index_argument
@click.argument("model", metavar="MODEL,...")
@output_options("json")
@takes(AddModelRequest)
def add_model(request: AddModelRequest, form: str | None) -> None:
    """Add a model to an existing index.

    \b
    Example:
      pexeso add-model lake.pexeso fasttext

    MODEL is what pexeso index --model takes. The values that the index holds are embedded by it; no
    table is read again, and the models there stay as they are. Searches by the new model (--model)
    answer as if the index had been built with it, and later updates keep it up to date.

    In Python: pexeso.open_index(INDEX).add_model(MODEL).
    """  # noqa: D301  click reads \b
    update, seconds = run_stages(request)
    text = f"Added {request.model} with {many(update.partitions_added, 'partition')}"
    _tell(update, form, text, seconds)


@command("add-part")
@index_argument
@click.argument("parts", metavar="PART,...", callback=read_names)
@output_options("json")
@takes(AddPartsRequest)
def add_part(request: AddPartsRequest, form: str | None) -> None:
    """Add a part to an existing index.

    \b
    Example:
      pexeso add-part lake.pexeso composite

    PART is what pexeso index --include takes: composite for keys of several columns; redundancy for
    pexeso redundancy; overlap for equal values; containment, which brings overlap; bands of
    signatures, which are read in place of long posting lists. The tables of the lake are read once
    more, unless the index has overlap and containment is added; those that have changed since the
    index was written are left out until pexeso append. Later updates keep the part up to date.

    In Python: pexeso.open_index(INDEX).add_parts(["composite"]).
    """  # noqa: D301  click reads \b
    added, seconds = run_stages(request)
    _tell(added, form, added_summary(added), seconds)


def compact_summary(done: Update) -> str:
    """Return in a few words what a compaction did."""
    if not done.committed:
        return "There was nothing to compact"
    rewritten = [
        f"Rewrote {many(done.partitions_rewritten, 'partition')} as {done.partitions_added:,}"
    ]
    if done.shards_rewritten:
        shards = many(done.shards_rewritten, "shard")
        rewritten.append(f"{shards} of token sets as {done.shards_added:,}")
    if done.row_shards_rewritten:
        shards = many(done.row_shards_rewritten, "shard")
        rewritten.append(f"{shards} of rows as {done.row_shards_added:,}")
    if done.hash_shards_rewritten:
        shards = many(done.hash_shards_rewritten, "shard")
        rewritten.append(f"{shards} of hashed cells as {done.hash_shards_added:,}")
    return ", and ".join(rewritten)


def append_summary(done: Update) -> str:
    """Return in a few words what an append did."""
    notes = [f"{many(done.unchanged, 'table')} unchanged"]
    if done.missing:
        notes.append(
            f"{many(done.missing, 'table')} no longer in the lake (--delete-missing deletes them)"
        )
    if done.closed:
        notes.append(f"{many(done.closed, 'table')} in what cannot be opened, left as they are")
    if not done.committed:
        return f"Nothing to append: {', '.join(notes)}"
    parts = [
        f"{done.new:,} new",
        f"{done.changed:,} changed",
        *([f"{done.deleted:,} deleted"] if done.deleted else []),
    ]
    reread = (
        f"{many(done.reread, 'table')} of formats that pexeso reads in another way than when they "
        "were indexed, read again. "
        if done.reread
        else ""
    )
    return (
        f"Appended: {', '.join(parts)}; {', '.join(notes)}. {reread}"
        f"{many(done.columns_added, 'column')} more indexed, {done.columns_deleted:,} fewer"
    )


def _tell(update: Update | Added, form: str | None, text: str, seconds: float) -> None:
    if form == "json":
        write_json(update.to_dict())
    talk(f"{text}; generation {update.generation}, {seconds:.1f} s.")


def _held(totals: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the parts hold that were asked for."""
    if "pairs" in totals:
        yield f"{many(totals['columns'], 'column')} with {many(totals['pairs'], 'value')}"
    if "cells" in totals:
        yield f"{many(totals['tables'], 'table')} with {many(totals['rows'], 'row')}"
    if "hashed_cells" in totals:
        yield f"hashes of {many(totals['hashed_cells'], 'cell')}"


def added_summary(added: Added) -> str:
    """Return in a few words what was added."""
    has = ", ".join(_held(added.of_parts))
    if not added.committed:
        return f"There was nothing to add: the index has {' and '.join(added.parts)} ({has})"
    left_out = (
        f"; {many(added.left_out, 'table')} that changed since the index was written are left "
        "out until pexeso append"
        if added.left_out
        else ""
    )
    return f"Added: the index has {' and '.join(added.parts)} now ({has}){left_out}"
