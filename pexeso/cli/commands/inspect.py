"""``pexeso info``, ``check``, ``rules``, ``doctor``: contents, integrity, rules, this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from embed.half import ENTRY_BYTES
from pexeso.cli.errors import Failure
from pexeso.cli.options import complete_path, field_option, index_argument, takes
from pexeso.cli.output.build_report import group_lines, listing_lines, report_lines, total
from pexeso.cli.output.output import (
    MAX_NAME,
    heading,
    human_bytes,
    output_options,
    plain,
    table_lines,
    talk,
    write_json,
    write_json_with_rows,
)
from pexeso.cli.output.progress import counted_progress
from pexeso.runtime.shown import many
from pexeso.service.requests import CheckRequest, DoctorRequest, InfoRequest, RulesRequest
from pexeso.service.verbs import run

if TYPE_CHECKING:
    from pexeso.diagnostics.info import IndexInfo
    from pexeso.diagnostics.reason_listing import ReasonListing

MAX_GROUPS_SHOWN = 20
MAX_PARTITIONS_SHOWN = 20
MAX_MAPS_SHOWN = 3
_PARTITION_COLUMNS = ("columns", "values", "postings", "cells", "bytes")
_SPARSE_PARTITION_COLUMNS = ("columns", "values", "postings", "words", "keys", "bytes")
_SHARD_COLUMNS = ("columns", "tokens", "pairs", "deleted", "bytes")
_ROW_COLUMNS = ("tables", "rows", "cells", "values", "deleted", "bytes")
_EQUAL_TEXT = ("overlap", "containment")


@click.command()
@index_argument
@click.option(
    "--report", is_flag=True, help="Tell what the stages of the last build or update did."
)
@field_option(InfoRequest, "left_out", "List every file and column left out, with the reason.")
@field_option(InfoRequest, "notes", "List what was repaired or guessed while reading tables.")
@output_options("json")
@takes(InfoRequest)
def info(request: InfoRequest, form: str | None) -> None:
    """Show what is in an index, and what was left out and why.

    \b
    Example:
      pexeso info lake.pexeso
      pexeso info lake.pexeso --left-out
      pexeso info lake.pexeso --report

    In Python: pexeso.open_index(INDEX).info(), .left_out() and .notes().
    """  # noqa: D301  click reads \b
    found = run(request)
    if request.left_out or request.notes:
        _write_listing(request, found, form)
    elif form == "json":
        write_json(found.to_dict())
    else:
        click.echo("\n".join((report_lines if request.report else info_lines)(found)))


def _write_listing(request: InfoRequest, listing: ReasonListing, form: str | None) -> None:
    """Write a listing a row at a time."""
    if form == "json":
        groups = [group.to_dict() for group in listing.groups]
        write_json_with_rows({"groups": groups}, "rows", (row.to_dict() for row in listing))
        return
    for line in listing_lines(listing):
        click.echo(line)
    n_repaired = listing.count_repaired()
    repaired = f"{many(n_repaired, 'table')} repaired while reading"
    if request.notes:
        talk(f"{repaired}, {many(len(listing), 'note')}.")
        return
    talk(f"{total(listing.groups).capitalize()} left out.")
    if n_repaired:
        talk(f"{repaired}; 'pexeso info {plain(request.index, MAX_NAME)} --notes' lists what.")


def info_lines(found: IndexInfo) -> list[str]:
    """Lay out a summary of an index for people."""
    at_most = "at most " if found.counts_are_bounds else ""
    facts = [
        ("index", f"{found.path} ({human_bytes(found.bytes)})"),
        ("written", f"{found.created} by {found.written_by}"),
        ("lake", found.lake),
        ("files", f"{found.files:,}, of which {found.tables:,} are tables"),
        ("columns", f"{found.columns:,}, of which {found.columns_indexed:,} are indexed"),
        (
            "values",
            f"{at_most}{found.values:,} distinct, in {at_most}"
            f"{many(found.postings, '(column, value) pair')}",
        ),
        *([("aliases", many(found.aliases, "value"))] if found.aliases else []),
        *_model_facts(found.of_parts),
        ("partitions", f"{len(found.partitions):,}"),
        *_further_models(found),
        *([("equal text", _equal_text(found))] if found.token_sets else []),
        *([("composite", _rows(found))] if found.row_keys else []),
        *([("redundancy", _hashed(found))] if found.row_hashes else []),
    ]
    lines = [f"{name:<12}{plain(value, MAX_NAME)}" for name, value in facts]
    shown = _PARTITION_COLUMNS if found.letters is None else _SPARSE_PARTITION_COLUMNS
    lines += ["", *_numbered_lines("partition", found.partitions, shown)]
    if found.token_sets:
        lines += ["", *_numbered_lines("shard", found.token_sets, _SHARD_COLUMNS)]
    if found.row_keys:
        lines += ["", *_numbered_lines("rows", found.row_keys, _ROW_COLUMNS)]
    return [*lines, *_left_out_lines(found)]


def _left_out_lines(found: IndexInfo) -> list[str]:
    """Lay out what was left out, by reason, and say how to see all of it, and what was repaired."""
    lines = []
    if found.left_out:
        lines += ["", f"Left out (--left-out lists all): {total(found.left_out)}"]
        lines += group_lines(found.left_out, MAX_GROUPS_SHOWN)
    if found.repaired:
        repaired = many(found.repaired, "table")
        lines += ["", f"Repaired while reading (--notes lists all): {repaired}"]
    return lines


def _model_facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about a model and the search of its vectors."""
    if found["letters"] is None:
        return [
            ("model", f"{found['model']}, {found['dimensions']} dimensions{_bits(found)}"),
            ("metric", f"{found['metric']}, {_map(found)}"),
        ]
    words = sum(partition["words"] for partition in found["partitions"])
    return [
        ("model", f"{found['model']}, {many(words, 'word')}"),
        ("metric", "euclidean, posting lists of pairs of letters"),
    ]


def _bits(found: Mapping[str, Any]) -> str:
    return f" of {8 * ENTRY_BYTES[found['vector_precision']]} bits"


def _further_models(found: IndexInfo) -> Iterator[tuple[str, str]]:
    """Yield the lines about the models that searches may name."""
    for each in found.further_models:
        yield from _model_facts(each)
        n_bytes = sum(partition["bytes"] for partition in each["partitions"])
        yield "partitions", f"{len(each['partitions']):,} ({human_bytes(n_bytes)})"


def _equal_text(found: IndexInfo) -> str:
    """Tell of the parts for equal text: which, and the columns that they find."""
    columns, deleted, pairs = (
        sum(shard[name] for shard in found.token_sets) for name in ("columns", "deleted", "pairs")
    )
    gone = f", {deleted:,} of them deleted" if deleted else ""
    where = (
        f"in {many(len(found.token_sets), 'shard')} "
        f"({human_bytes(sum(shard['bytes'] for shard in found.token_sets))})"
    )
    return (
        f"{' and '.join(part for part in found.parts if part in _EQUAL_TEXT)}: "
        f"{many(columns, 'column')}{gone}, "
        f"{many(pairs, '(column, value) pair')}, {where}"
    )


def _hashed(found: IndexInfo) -> str:
    """Summarise the part for redundant tables."""
    rows, cells, n_bytes = (
        sum(shard[name] for shard in found.row_hashes) for name in ("rows", "cells", "bytes")
    )
    return (
        f"{many(rows, 'row')}, {many(cells, 'cell')}, in "
        f"{many(len(found.row_hashes), 'shard')} ({human_bytes(n_bytes)})"
    )


def _rows(found: IndexInfo) -> str:
    """Summarise the part for composite keys: its tables, rows and cells."""
    tables, deleted, rows, cells, n_bytes = (
        sum(shard[name] for shard in found.row_keys)
        for name in ("tables", "deleted", "rows", "cells", "bytes")
    )
    gone = f", {deleted:,} of them deleted" if deleted else ""
    filters = found.row_keys[0]["filters"]
    sorting = f" with {' and '.join(filters)}" if filters else ""
    return (
        f"{many(tables, 'table')}{gone}, {many(rows, 'row')}, {many(cells, 'cell')}{sorting}, "
        f"in {many(len(found.row_keys), 'shard')} ({human_bytes(n_bytes)})"
    )


def _numbered_lines(noun: str, folders: list[dict[str, Any]], names: tuple[str, ...]) -> list[str]:
    """Lay out what is in each partition or shard."""
    rows = [
        (str(number), *(f"{facts.get(name, 0):,}" for name in names))
        for number, facts in enumerate(folders[:MAX_PARTITIONS_SHOWN])
    ]
    header, *lines = table_lines((noun, *names), rows, ">" * (1 + len(names)))
    lines = [heading(header), *lines]
    n_more = len(folders) - len(rows)
    return [*lines, f"and {many(n_more, f'more {noun}')} (--json lists all)"] if n_more else lines


@click.command()
@index_argument
@output_options("json")
@takes(CheckRequest)
def check(request: CheckRequest, form: str | None) -> None:
    """Compare every byte of an index with its checksums.

    \b
    Example:
      pexeso check lake.pexeso

    Ends with exit code 1 where a byte is not as it was written.

    In Python: pexeso.open_index(INDEX).check().
    """  # noqa: D301  click reads \b
    with counted_progress("checking", unit="B", unit_scale=True) as progress:
        found = run(request, progress=progress)
    if form == "json":
        write_json(found.to_dict())
    else:
        for problem in found.problems:
            click.echo(
                f"{'problem' if problem.is_failure else 'note'}: "
                f"{plain(problem.sentence, MAX_NAME)}"
            )
        if not found.failures:
            click.echo(f"ok: {many(found.n_files, 'file')}, {found.n_bytes:,} bytes")
    if found.failures:
        raise Failure(
            f"{many(len(found.failures), 'problem')} in the index '{request.index}': do not "
            "search it."
        )


@click.command()
@click.argument("folder", metavar="[FOLDER]", default=".", shell_complete=complete_path)
@output_options("json")
@takes(DoctorRequest)
def doctor(request: DoctorRequest, form: str | None) -> None:
    """See whether this machine has what pexeso needs.

    \b
    Example:
      pexeso doctor

    FOLDER is where an index would be written, the current one by default. Ends with exit code 1
    where something that pexeso needs is missing.
    """  # noqa: D301  click reads \b
    found = run(request)
    findings = found.findings
    if form == "json":
        write_json(found.to_dict())
    else:
        words = {True: "ok", False: "missing", None: "note"}
        rows = [(words[finding.ok], finding.name, finding.detail) for finding in findings]
        for line, finding in zip(
            table_lines(("", "", ""), rows, "<<<", most=MAX_NAME), findings, strict=True
        ):
            click.echo(line)
            if finding.way_out:
                click.echo(f"{'':9}{finding.way_out}")
    missing = [finding.name for finding in findings if finding.ok is False]
    if missing:
        raise Failure(f"pexeso needs {', '.join(missing)} and cannot work without.")
    talk("Everything that pexeso needs is there.")


def _map(found: Mapping[str, Any]) -> str:
    """Tell the maps in use, the most frequent first."""
    kinds = Counter(
        (each.get("map", found["map"]), each.get("coordinates", 0)) for each in found["partitions"]
    )
    words = [
        f"projected on {n - 1} axes" if kind == "projection" else f"{n} pivot{'s' * (n != 1)}"
        for (kind, n), _ in kinds.most_common(MAX_MAPS_SHOWN)
    ]
    others = len(kinds) - len(words)
    how = (
        " (chosen by cost)"
        if any((each.get("choice") or {}).get("trials") for each in found["partitions"])
        else ""
    )
    levels = sorted({each["levels"] for each in found["partitions"] if "levels" in each})
    depth = f" of {_range(levels)} levels" if levels else ""
    return (
        ", ".join(words)
        + (f" and {others} others" if others else "")
        + f", {found['cells']}{depth}{how}"
    )


def _range(numbers: list[int]) -> str:
    """Write ascending whole numbers as their range.

    Examples
    --------
    >>> _range([4]), _range([4, 5, 7])
    ('4', '4 to 7')
    """
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


@click.command()
@click.argument("index", metavar="[INDEX]", required=False, shell_complete=complete_path)
@output_options("json")
@takes(RulesRequest)
def rules(request: RulesRequest, form: str | None) -> None:
    """List the rules by which values are normalised.

    \b
    Example:
      pexeso rules
      pexeso rules lake.pexeso

    Tells which are on by default, or which INDEX was built with. Each stands with an example and
    what becomes of it; pexeso index and estimate switch them with --rule and --no-rule.

    In Python: pexeso.Normaliser().rules, pexeso.open_index(INDEX).normaliser.
    """  # noqa: D301  click reads \b
    from pexeso.lake.normalise.rules import RULES

    found = run(request)
    if form == "json":
        write_json(found.to_dict())
        return
    rows = [
        ("on" if rule.name in found.on else "off", rule.name, *rule.examples[0]) for rule in RULES
    ]
    for line in table_lines(("", "rule", "for example", "becomes"), rows, "<<<<", most=MAX_NAME):
        click.echo(line)
    if found.extra:
        click.echo(f"\nWords of its own: {len(found.extra):,} (--json lists them).")
