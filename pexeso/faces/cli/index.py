"""Commands that write an index, and ``pexeso estimate``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pexeso.faces.cli.options import (
    column_types_option,
    command,
    index_argument,
    path_argument,
    read_names,
    takes,
)
from pexeso.faces.cli.output import (
    MAX_NAME,
    counted_progress,
    output_options,
    run_stages,
    table_lines,
    talk,
    write_answer,
)
from pexeso.faces.service.index_requests import (
    AddModelRequest,
    AddPartsRequest,
    AppendRequest,
    BuildRequest,
    CompactRequest,
    DeleteRequest,
    EstimateRequest,
)
from pexeso.faces.service.requests import InfoRequest
from pexeso.faces.service.verbs import run
from pexeso.runtime.formatting import human_bytes, many, plain

if TYPE_CHECKING:
    from pexeso.build.diagnostics.estimate import Estimate
    from pexeso.build.diagnostics.info import IndexInfo
    from pexeso.build.report import Update
    from pexeso.build.updates import Added
    from pexeso.lake.left_out import ReasonGroup

# Groups of files, and as many of columns, that a build names.
MAX_GROUPS = 8

lake_argument = path_argument("lake", metavar="LAKE")


@command()
@lake_argument
@index_argument
@output_options("json")
@column_types_option
@takes(BuildRequest, without=("seed",))
def index(request: BuildRequest, form: str | None) -> None:
    """Build an index of all tables in a folder.

    \b
    Example:
      pexeso index my_folder lake.pexeso

    LAKE is a folder of tables (CSV, Excel, SQLite, JSON, Parquet ...), searched with all its
    sub-folders, or a single table, or a table or database of Spark's catalog. INDEX is the folder
    to write; it must be absent or empty. Both may be URLs, such as s3://bucket/lake. Files that
    cannot be read are left out and counted by reason; pexeso info INDEX --left-out lists them. To
    resume an interrupted build, run the same command again.

    In Python: pexeso.build_index(LAKE, INDEX).
    """  # noqa: D301  click reads \b
    unfinished = "was not written, what it held before is as it was"
    info, seconds = run_stages(request, request.index, unfinished)
    write_answer(info, form)
    talk(build_summary(info, seconds))


@command()
@index_argument
@path_argument("lake", metavar="[LAKE]", required=False)
@output_options("json")
@takes(AppendRequest)
def append(request: AppendRequest, form: str | None) -> None:
    """Add the tables of the lake that are new or have changed.

    \b
    Example:
      pexeso append lake.pexeso
      pexeso append lake.pexeso --delete-missing

    Only new and changed files are read. If the lake has moved, LAKE is its new place. Searches
    continue in the meantime; those that start later see the update.

    In Python: pexeso.open_index(INDEX).append().
    """  # noqa: D301  click reads \b
    update, seconds = run_stages(request, request.index)
    n_files = run(InfoRequest.of(index=request.index)).files
    _report_update(update, form, append_summary(update, n_files), seconds)
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

    Name tables as pexeso search prints them. Their files are not touched: if they are still in the
    lake, the next pexeso append adds them again.

    In Python: pexeso.open_index(INDEX).delete(TABLES).
    """  # noqa: D301  click reads \b
    started = time.perf_counter()
    update = run(request)
    columns = many(update.columns_deleted, "indexed column")
    text = f"Deleted {many(update.deleted, 'table')} with {columns}; pexeso compact frees the space"
    _report_update(update, form, text, time.perf_counter() - started)


@command()
@index_argument
@output_options("json")
@takes(CompactRequest)
def compact(request: CompactRequest, form: str | None) -> None:
    """Merge small partitions and purge deleted columns.

    \b
    Example:
      pexeso compact lake.pexeso

    The lake is not read. Answers stay the same; they are faster if there were many small
    partitions.

    In Python: pexeso.open_index(INDEX).compact().
    """  # noqa: D301  click reads \b
    update, seconds = run_stages(request, request.index)
    _report_update(update, form, compact_summary(update), seconds)


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

    MODEL is as for pexeso index --model. The new model embeds the values that the index holds; no
    table is read again, and the other models stay. Searches with the new model (--model) answer as
    if the index had been built with it, and later updates keep it up to date.

    In Python: pexeso.open_index(INDEX).add_model(MODEL).
    """  # noqa: D301  click reads \b
    update, seconds = run_stages(request, request.index)
    text = f"Added {request.model} with {many(update.partitions_added, 'partition')}"
    _report_update(update, form, text, seconds)


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

    PART is as for pexeso index --include: composite for keys of several columns; redundancy for
    pexeso redundancy; overlap for equal values; containment, which includes overlap; bands, which
    replace long lists of equal values by signatures. The tables of the lake are read once more,
    unless the index has overlap and you add containment. Tables that have changed since the index
    was written are left out until pexeso append. Later updates keep the part up to date.

    In Python: pexeso.open_index(INDEX).add_parts(["composite"]).
    """  # noqa: D301  click reads \b
    added, seconds = run_stages(request, request.index)
    _report_update(added, form, added_summary(added), seconds)


@command()
@lake_argument
@output_options("json")
@column_types_option
@takes(EstimateRequest, without=("value_vectors", "metric", "aliases", "normaliser", "seed"))
def estimate(request: EstimateRequest, form: str | None) -> None:
    """Estimate the time, memory and disk space of an index.

    \b
    Example:
      pexeso estimate my_folder

    Reads a sample of the files, at most 200 files and 64 MiB, and measures how fast this machine
    is. Counts are exact if the sample is the whole lake; everything else is a rough figure, and
    the time assumes that the machine stays as busy as it is now. The options are those of pexeso
    index that affect the cost.

    In Python: pexeso.build.diagnostics.estimate.estimate_build(LAKE), after import
    pexeso.build.diagnostics.estimate.
    """  # noqa: D301  click reads \b
    with counted_progress("sampling", unit=" files") as progress:
        write_answer(run(request, progress=progress), form, estimate_lines)


def _report_update(update: Update | Added, form: str | None, text: str, seconds: float) -> None:
    write_answer(update, form)
    talk(f"{text}; generation {update.generation}, {seconds:.1f} s.")


def compact_summary(done: Update) -> str:
    if not done.committed:
        return "There was nothing to compact"
    rewritten = [
        f"Rewrote {many(done.partitions_rewritten, 'partition')} as {done.partitions_added:,}"
    ]
    for name, what in (("", "token sets"), ("row_", "rows"), ("hash_", "hashed cells")):
        if number := getattr(done, f"{name}shards_rewritten"):
            n_added = getattr(done, f"{name}shards_added")
            rewritten.append(f"{many(number, 'shard')} of {what} as {n_added:,}")
    return ", and ".join(rewritten)


def append_summary(done: Update, n_files: int) -> str:
    """Return in a few words what an append did, given the number of files in the index now."""
    unchanged = n_files - done.new - done.changed - done.missing - done.closed
    notes = [f"{many(unchanged, 'file')} unchanged"]
    if done.missing:
        notes.append(
            f"{many(done.missing, 'file')} no longer in the lake (--delete-missing deletes them)"
        )
    if done.closed:
        notes.append(f"{many(done.closed, 'table')} in what cannot be opened, left as they are")
    if not done.committed:
        return f"Nothing to append: {', '.join(notes)}"
    parts = [f"{done.new:,} new", f"{done.changed:,} changed"]
    if done.deleted:
        parts.append(f"{done.deleted:,} deleted")
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


def added_summary(added: Added) -> str:
    totals, holds = added.of_parts, []
    if "pairs" in totals:
        holds.append(f"{many(totals['columns'], 'column')} with {many(totals['pairs'], 'value')}")
    if "cells" in totals:
        holds.append(f"{many(totals['tables'], 'table')} with {many(totals['rows'], 'row')}")
    if "hashed_cells" in totals:
        holds.append(f"hashes of {many(totals['hashed_cells'], 'cell')}")
    parts = f"the index has {' and '.join(added.parts)}"
    if not added.committed:
        return f"There was nothing to add: {parts} ({', '.join(holds)})"
    left_out = (
        f"; {many(added.left_out, 'table')} that changed since the index was written are left "
        "out until pexeso append"
        if added.left_out
        else ""
    )
    return f"Added: {parts} now ({', '.join(holds)}){left_out}"


def build_summary(info: IndexInfo, seconds: float) -> str:
    """Return in a few words what was indexed and what was not, and why."""
    columns = f"{many(info.columns_indexed, 'column')} and {many(info.values, 'distinct value')}"
    if "hashed" in info.of_parts:
        n_columns = sum(shard["columns"] for shard in info.token_sets)
        columns = f"{many(n_columns, 'column')} of hashed values"
    indexed = (
        f"Indexed {many(info.tables, 'table')}, {columns} into '{info.path}' "
        f"({human_bytes(info.bytes)}) in {seconds:.1f} s."
    )
    return "\n".join((indexed, *left_out_lines(info.left_out, info.path)))


def left_out_lines(groups: Sequence[ReasonGroup], path: object) -> list[str]:
    """Lay out what a build or an append left out, and the command that lists all of it."""
    if not groups:
        return []
    listing = f"'pexeso info {plain(str(path), MAX_NAME)} --left-out' lists each with its reason."
    return [f"Left out: {total(groups)}", *group_lines(groups, MAX_GROUPS), listing]


def group_lines(groups: Sequence[ReasonGroup], limit: int) -> list[str]:
    """Lay out groups by kind: how many, why, and examples; those beyond `limit` are counted."""
    rows = []
    for kind in dict.fromkeys(group.kind for group in groups):
        of_kind = [group for group in groups if group.kind == kind]
        # One more group takes no more room than the line that would count it.
        n_shown = limit if len(of_kind) > limit + 1 else len(of_kind)
        reasons = [(group, f"{group.reason} ({group.named()})") for group in of_kind[:n_shown]]
        if rest := of_kind[n_shown:]:
            others = replace(rest[0], count=sum(group.count for group in rest))
            reasons.append((others, f"for {many(len(rest), 'other reason')}"))
        rows += [(*group.counted().split(" ", 1), text) for group, text in reasons]
    return [f"  {line}" for line in table_lines(("",) * 3, rows, "><<", limit=MAX_NAME)]


def total(groups: Sequence[ReasonGroup]) -> str:
    """Write how many are in groups together, such as ``2 files and 5 columns``."""
    totals: dict[str, ReasonGroup] = {}
    for group in groups:
        before = totals[group.kind].count if group.kind in totals else 0
        totals[group.kind] = replace(group, count=group.count + before)
    return " and ".join(group.counted() for group in totals.values()) or "nothing"


def estimate_lines(costs: Estimate) -> list[str]:
    about = "" if costs.exact else "about "
    formats = ", ".join(f"{facts['files']:,} {name}" for name, facts in costs.by_format.items())
    formats += f", {costs.skipped:,} other" if costs.skipped else ""
    facts = [
        (
            "lake",
            f"{costs.lake}: {many(costs.files, 'file')}, {human_bytes(costs.bytes)} ({formats})",
        ),
        ("tables", f"{about}{costs.tables:,}"),
        (
            "columns",
            f"{about}{costs.columns:,}, of which {about}{costs.columns_indexed:,} will be indexed",
        ),
        (
            "values",
            f"{about}{costs.values:,} distinct, in "
            f"{about}{many(costs.postings, '(column, value) pair')}",
        ),
        (
            "index",
            f"about {human_bytes(costs.index_bytes)} on disk, of which the model "
            f"{human_bytes(costs.model_bytes)}; {many(costs.partitions, 'partition')}",
        ),
        *(
            (
                "and",
                f"the model {model['model']}, {human_bytes(model['model_bytes'])}; "
                f"{many(model['partitions'], 'partition')}",
            )
            for model in costs.further_models
        ),
        *_part_lines(costs, about),
        ("memory", f"about {human_bytes(costs.memory_bytes)} with {many(costs.cores, 'core')}"),
        ("time", _time(costs.seconds)),
    ]
    width = max(len(name) for name, _ in facts) + 2
    lines = [f"{name:<{width}}{plain(value, MAX_NAME)}" for name, value in facts]
    if costs.exact:
        basis = f"Counted in all {many(costs.files, 'file')}; bytes, memory and time are rough."
    else:
        share = costs.sampled_bytes / max(1, costs.bytes)
        basis = (
            f"From {costs.sampled_files:,} of {many(costs.files, 'file')} ({100 * share:.2g} % "
            "of the bytes): a rough figure."
        )
    return [*lines, "", basis]


def _part_lines(costs: Estimate, about: str) -> Iterator[tuple[str, str]]:
    """Yield the lines about the parts for equal values, keys and whole tables."""

    def size(part: dict[str, Any]) -> str:
        return f"of the index about {human_bytes(part['bytes'])} in {many(part['shards'], 'shard')}"

    equal = costs.equal_text
    if equal["parts"]:
        yield (
            "equal text",
            f"{' and '.join(equal['parts'])}: {about}{many(equal['columns'], 'column')}, "
            f"{about}{equal['tokens']:,} distinct values in "
            f"{about}{many(equal['pairs'], '(column, value) pair')}; {size(equal)}",
        )
    for name in ("composite", "redundancy"):
        part = getattr(costs, name)
        if part["cells"]:
            holds = f"{about}{many(part['rows'], 'row')}, {about}{many(part['cells'], 'cell')}"
            yield name, f"{holds}; {size(part)}"


def _time(seconds: dict[str, float]) -> str:
    whole = sum(seconds.values())
    about = f"{whole:.0f} seconds" if whole < 120 else f"{whole / 60:,.0f} minutes"
    stages = ", ".join(f"{stage} {value:,.0f} s" for stage, value in seconds.items())
    return f"about {about} ({stages})"
