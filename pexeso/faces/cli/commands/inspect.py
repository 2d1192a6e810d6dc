"""``pexeso info``, ``check``, ``rules``, ``doctor``: contents, integrity, rules, this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from embed.half import ENTRY_BYTES
from pexeso.faces.cli.errors import Failure
from pexeso.faces.cli.options import command, complete_path, index_argument, takes
from pexeso.faces.cli.output.build_report import group_lines, listing_lines, report_lines, total
from pexeso.faces.cli.output.output import (
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
from pexeso.faces.cli.output.progress import counted_progress
from pexeso.faces.service.requests import (
    CheckRequest,
    DoctorRequest,
    InfoRequest,
    RulesRequest,
)
from pexeso.faces.service.verbs import run
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.build.diagnostics.info import IndexInfo
    from pexeso.build.diagnostics.reason_listing import ReasonListing

MAX_GROUPS_SHOWN = 20
MAX_PARTITIONS_SHOWN = 20
MAX_MAPS_SHOWN = 3
_PARTITION_COLUMNS = ("columns", "values", "postings", "cells", "bytes")
_SPARSE_PARTITION_COLUMNS = ("columns", "values", "postings", "words", "keys", "bytes")
_SHARD_COLUMNS = ("columns", "tokens", "pairs", "deleted", "bytes")
_ROW_COLUMNS = ("tables", "rows", "cells", "values", "deleted", "bytes")
_AS_PUBLISHED = (
    "as published: means of unit word vectors, pivots, a grid with levels by the cost model, "
    "partitions by JSD"
)
_EQUAL_TEXT = ("overlap", "containment", "bands")


@command()
@index_argument
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
    response = run(request)
    if request.left_out or request.notes:
        _write_listing(request, response, form)
    elif form == "json":
        write_json(response.to_dict())
    else:
        click.echo("\n".join((report_lines if request.report else info_lines)(response)))


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


def info_lines(info: IndexInfo) -> list[str]:
    """Lay out a summary of an index for people."""
    at_most = "at most " if info.counts_are_bounds else ""
    facts = [
        ("index", f"{info.path} ({human_bytes(info.bytes)})"),
        ("written", f"{info.created} by {info.written_by}"),
        ("lake", info.lake),
        ("files", f"{info.files:,}, of which {info.tables:,} are tables"),
        ("columns", f"{info.columns:,}, of which {info.columns_indexed:,} are indexed"),
        (
            "values",
            f"{at_most}{info.values:,} distinct, in {at_most}"
            f"{many(info.postings, '(column, value) pair')}",
        ),
        *([("aliases", many(info.aliases, "value"))] if info.aliases else []),
        *_model_facts(info.of_parts),
        ("partitions", f"{len(info.partitions):,}"),
        *_further_models(info),
        *([("equal text", _equal_text(info))] if info.token_sets else []),
        *([("composite", _rows(info))] if info.row_keys else []),
        *([("redundancy", _hashed(info))] if info.row_hashes else []),
    ]
    lines = [f"{name:<12}{plain(value, MAX_NAME)}" for name, value in facts]
    shown = _PARTITION_COLUMNS if info.letters is None else _SPARSE_PARTITION_COLUMNS
    lines += ["", *_numbered_lines("partition", info.partitions, shown)]
    if info.token_sets:
        lines += ["", *_numbered_lines("shard", info.token_sets, _SHARD_COLUMNS)]
    if info.row_keys:
        lines += ["", *_numbered_lines("rows", info.row_keys, _ROW_COLUMNS)]
    return [*lines, *_left_out_lines(info)]


def _left_out_lines(info: IndexInfo) -> list[str]:
    """Lay out what was left out, by reason, and say how to see all of it, and what was repaired."""
    lines = []
    if info.left_out:
        lines += ["", f"Left out (--left-out lists all): {total(info.left_out)}"]
        lines += group_lines(info.left_out, MAX_GROUPS_SHOWN)
    if info.repaired:
        repaired = many(info.repaired, "table")
        lines += ["", f"Repaired while reading (--notes lists all): {repaired}"]
    return lines


def _model_facts(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about a model and the search of its vectors."""
    if model["letters"] is None:
        return [
            ("model", f"{model['model']}, {model['dimensions']} dimensions{_bits(model)}"),
            ("metric", f"{model['metric']}, {_map(model)}"),
            *([("method", _AS_PUBLISHED)] if model["as_published"] else []),
            *_stale_weights(model),
        ]
    words = sum(partition["words"] for partition in model["partitions"])
    return [
        ("model", f"{model['model']}, {many(words, 'word')}"),
        ("metric", "euclidean, posting lists of pairs of letters"),
        *_stale_weights(model),
    ]


def _stale_weights(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    if model["word_weights"] != "earlier":
        return []
    return [("weights", "of words in an earlier state of the lake (pexeso compact renews them)")]


def _bits(model: Mapping[str, Any]) -> str:
    return f" of {8 * ENTRY_BYTES[model['vector_precision']]} bits"


def _further_models(info: IndexInfo) -> Iterator[tuple[str, str]]:
    """Yield the lines about the models that searches may name."""
    for model in info.further_models:
        yield from _model_facts(model)
        n_bytes = sum(partition["bytes"] for partition in model["partitions"])
        yield "partitions", f"{len(model['partitions']):,} ({human_bytes(n_bytes)})"


def _equal_text(info: IndexInfo) -> str:
    """Tell of the parts for equal text: which, and the columns that they find."""
    columns, deleted, pairs = (
        sum(shard[name] for shard in info.token_sets) for name in ("columns", "deleted", "pairs")
    )
    removed = f", {deleted:,} of them deleted" if deleted else ""
    where = (
        f"in {many(len(info.token_sets), 'shard')} "
        f"({human_bytes(sum(shard['bytes'] for shard in info.token_sets))})"
    )
    return (
        f"{' and '.join(part for part in info.parts if part in _EQUAL_TEXT)}: "
        f"{many(columns, 'column')}{removed}, "
        f"{many(pairs, '(column, value) pair')}, {where}"
    )


def _hashed(info: IndexInfo) -> str:
    """Summarise the part for redundant tables."""
    rows, cells, n_bytes = (
        sum(shard[name] for shard in info.row_hashes) for name in ("rows", "cells", "bytes")
    )
    return (
        f"{many(rows, 'row')}, {many(cells, 'cell')}, in "
        f"{many(len(info.row_hashes), 'shard')} ({human_bytes(n_bytes)})"
    )


def _rows(info: IndexInfo) -> str:
    """Summarise the part for composite keys: its tables, rows and cells."""
    tables, deleted, rows, cells, n_bytes = (
        sum(shard[name] for shard in info.row_keys)
        for name in ("tables", "deleted", "rows", "cells", "bytes")
    )
    removed = f", {deleted:,} of them deleted" if deleted else ""
    filters = info.row_keys[0]["filters"]
    sorting = f" with {' and '.join(filters)}" if filters else ""
    return (
        f"{many(tables, 'table')}{removed}, {many(rows, 'row')}, {many(cells, 'cell')}{sorting}, "
        f"in {many(len(info.row_keys), 'shard')} ({human_bytes(n_bytes)})"
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


@command()
@index_argument
@output_options("json")
@takes(CheckRequest)
def check(request: CheckRequest, form: str | None) -> None:
    """Compare every byte of an index with its checksums.

    \b
    Example:
      pexeso check lake.pexeso

    The exit code is 1 if a byte has changed since it was written.

    In Python: pexeso.open_index(INDEX).check().
    """  # noqa: D301  click reads \b
    with counted_progress("checking", unit="B", unit_scale=True) as progress:
        response = run(request, progress=progress)
    if form == "json":
        write_json(response.to_dict())
    else:
        for problem in response.problems:
            click.echo(
                f"{'problem' if problem.is_failure else 'note'}: "
                f"{plain(problem.sentence, MAX_NAME)}"
            )
        if not response.failures:
            click.echo(f"ok: {many(response.n_files, 'file')}, {response.n_bytes:,} bytes")
    if response.failures:
        raise Failure(
            f"{many(len(response.failures), 'problem')} in the index '{request.index}': do not "
            "search it."
        )


@command()
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
    response = run(request)
    findings = response.findings
    if form == "json":
        write_json(response.to_dict())
    else:
        words = {True: "ok", False: "missing", None: "note"}
        rows = [(words[finding.ok], finding.name, finding.detail) for finding in findings]
        for line, finding in zip(
            table_lines(("", "", ""), rows, "<<<", limit=MAX_NAME), findings, strict=True
        ):
            click.echo(line)
            if finding.way_out:
                click.echo(f"{'':9}{finding.way_out}")
    missing = [finding.name for finding in findings if finding.ok is False]
    if missing:
        raise Failure(f"pexeso needs {', '.join(missing)} and cannot work without.")
    talk("Everything that pexeso needs is there.")


def _map(model: Mapping[str, Any]) -> str:
    """Tell the maps in use, the most frequent first."""
    kinds = Counter(
        (partition.get("map", model["map"]), partition.get("coordinates", 0))
        for partition in model["partitions"]
    )
    words = [
        f"projected on {n - 1} axes" if kind == "projection" else f"{n} pivot{'s' * (n != 1)}"
        for (kind, n), _ in kinds.most_common(MAX_MAPS_SHOWN)
    ]
    others = len(kinds) - len(words)
    how = (
        " (chosen by cost)"
        if any((partition.get("choice") or {}).get("trials") for partition in model["partitions"])
        else ""
    )
    levels = sorted(
        {partition["levels"] for partition in model["partitions"] if "levels" in partition}
    )
    depth = f" of {_range(levels)} levels" if levels else ""
    return (
        ", ".join(words)
        + (f" and {others} others" if others else "")
        + f", {model['cells']}{depth}{how}"
    )


def _range(numbers: list[int]) -> str:
    """Write ascending whole numbers as their range.

    Examples
    --------
    >>> _range([4]), _range([4, 5, 7])
    ('4', '4 to 7')
    """
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


@command()
@click.argument("index", metavar="[INDEX]", required=False, shell_complete=complete_path)
@output_options("json")
@takes(RulesRequest)
def rules(request: RulesRequest, form: str | None) -> None:
    """List the rules by which values are normalised.

    \b
    Example:
      pexeso rules
      pexeso rules lake.pexeso

    Shows which rules are on by default, or in INDEX, each with an example and its result; pexeso
    index switches them with --rule.

    In Python: pexeso.Normaliser().rules, pexeso.open_index(INDEX).normaliser.
    """  # noqa: D301  click reads \b
    from pexeso.lake.normalise.rules import RULES

    response = run(request)
    if form == "json":
        write_json(response.to_dict())
        return
    rows = [
        ("on" if rule.name in response.on else "off", rule.name, *rule.examples[0])
        for rule in RULES
    ]
    for line in table_lines(("", "rule", "for example", "becomes"), rows, "<<<<", limit=MAX_NAME):
        click.echo(line)
    if response.extra:
        click.echo(f"\nWords of its own: {len(response.extra):,} (--json lists them).")
