"""Commands that inspect: ``info``, ``check``, ``rules``, ``doctor``, ``keys``, ``tune``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from embed.stored import ENTRY_BYTES
from pexeso.faces.cli.errors import Failure
from pexeso.faces.cli.index import group_lines, total
from pexeso.faces.cli.options import (
    QueryCommand,
    command,
    file_argument,
    index_argument,
    path_argument,
    reading_option,
    takes,
)
from pexeso.faces.cli.output import (
    MAX_NAME,
    counted_progress,
    heading,
    output_options,
    table_lines,
    talk,
    thresholds,
    warn,
    write_answer,
    write_json_with_rows,
)
from pexeso.faces.service.requests import (
    CheckRequest,
    DoctorRequest,
    InfoRequest,
    KeysRequest,
    RulesRequest,
    TuneRequest,
)
from pexeso.faces.service.verbs import run
from pexeso.lake.normalise.rules import RULES
from pexeso.runtime.formatting import human_bytes, many, percent, plain

if TYPE_CHECKING:
    from pexeso.build.diagnostics.info import IndexInfo, ReasonListing
    from pexeso.build.report import BuildReport, StageReport
    from pexeso.composite.candidate_keys import CandidateKey, FoundKeys, Uniqueness
    from pexeso.faces.service.bases import CheckResponse, DoctorResponse, RulesResponse
    from pexeso.lake.left_out import ReasonGroup
    from pexeso.semantic.thresholds.advice import Advice

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
_STAGE_COLUMNS = (
    *("stage", "seconds", "rows in", "rows out", "bytes in", "bytes out"),
    *("tasks", "slowest", "skew"),
)


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
    else:
        write_answer(response, form, report_lines if request.report else info_lines)


def _write_listing(request: InfoRequest, listing: ReasonListing, form: str | None) -> None:
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


def listing_lines(listing: ReasonListing) -> Iterator[str]:
    """Yield a line for each row of a listing, those of a group below a line about it.

    What all rows of a group have in common is in that line alone: a row has what differs.
    """
    noun = "table" if listing.is_of_notes else None
    last = None
    for row in listing:
        group = row.group
        if group is not last:
            if last is not None:
                yield ""
            yield f"{group.counted(noun)}: {plain(group.detail or group.reason, MAX_NAME)}"
            last = group
        difference = _difference(row.reason, group)
        yield f"  {plain(row.name, MAX_NAME)}{'  ' * bool(difference)}{plain(difference, MAX_NAME)}"


def _difference(reason: str, group: ReasonGroup) -> str:
    """Return the words of a reason that the line about its group does not have."""
    words = reason
    if group.detail is not None:
        # The same words, but for numbers, of which none holds a comma and a blank.
        clauses = zip(reason.split(", "), group.detail.split(", "), strict=True)
        words = ", ".join(clause for clause, common in clauses if clause != common)
    return words.removeprefix(f"{group.reason}: ")


def report_lines(report: BuildReport) -> list[str]:
    """Lay out what the stages of a build did: a header, a line for each stage, and their sum."""
    rows = [_stage_row(stage) for stage in report.stages]
    whole = ("all", f"{report.seconds:,.1f}", *[""] * (len(_STAGE_COLUMNS) - 2))
    return table_lines(_STAGE_COLUMNS, [*rows, whole], "<" + ">" * (len(_STAGE_COLUMNS) - 1))


def _stage_row(stage: StageReport) -> tuple[str, ...]:
    numbers = [
        ("{:,}", stage.rows_in),
        ("{:,}", stage.rows_out),
        ("", stage.bytes_in),
        ("", stage.bytes_out),
        ("{:,}", stage.tasks),
        ("{:,.2f} s", stage.slowest_seconds),
        ("{:.1f}", stage.skew),
    ]
    cells = [
        "" if number is None else form.format(number) if form else human_bytes(number)
        for form, number in numbers
    ]
    return (stage.stage, f"{stage.seconds:,.1f}", *cells)


def info_lines(info: IndexInfo) -> list[str]:
    at_most = "at most " if info.counts_are_bounds else ""
    facts = [
        ("index", f"{info.path} ({human_bytes(info.bytes)})"),
        ("written", f"{info.created} by {info.written_by}"),
        ("lake", " as of ".join([info.lake, *filter(None, [info.of_parts.get("as_of")])])),
        ("files", f"{info.files:,}, of which {info.tables:,} are tables"),
        ("columns", f"{info.columns:,}, of which {info.columns_indexed:,} are indexed"),
        (
            "values",
            "hashed, found by equal values alone"
            if "hashed" in info.of_parts
            else f"{at_most}{info.values:,} distinct, in {at_most}"
            f"{many(info.postings, '(column, value) pair')}",
        ),
    ]
    if info.aliases:
        facts.append(("aliases", many(info.aliases, "value")))
    facts += [*_model_facts(info.of_parts), ("partitions", f"{len(info.partitions):,}")]
    for model in info.further_models:
        n_bytes = sum(partition["bytes"] for partition in model["partitions"])
        size = f"{len(model['partitions']):,} ({human_bytes(n_bytes)})"
        facts += [*_model_facts(model), ("partitions", size)]
    facts += _part_facts(info)
    lines = [f"{name:<12}{plain(value, MAX_NAME)}" for name, value in facts]
    shown = _PARTITION_COLUMNS if info.letters is None else _SPARSE_PARTITION_COLUMNS
    lines += ["", *_numbered_lines("partition", info.partitions, shown)]
    if info.token_sets:
        lines += ["", *_numbered_lines("shard", info.token_sets, _SHARD_COLUMNS)]
    if info.row_keys:
        lines += ["", *_numbered_lines("rows", info.row_keys, _ROW_COLUMNS)]
    if info.left_out:
        lines += ["", f"Left out (--left-out lists all): {total(info.left_out)}"]
        lines += group_lines(info.left_out, MAX_GROUPS_SHOWN)
    if info.repaired:
        repaired = many(info.repaired, "table")
        lines += ["", f"Repaired while reading (--notes lists all): {repaired}"]
    return lines


def _model_facts(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    if model["letters"] is None:
        bits = 8 * ENTRY_BYTES[model["vector_precision"]]
        facts = [
            ("model", f"{model['model']}, {model['dimensions']} dimensions of {bits} bits"),
            ("metric", f"{model['metric']}, {_map(model)}"),
        ]
        if model["as_published"]:
            facts.append(("method", _AS_PUBLISHED))
    else:
        words = sum(partition["words"] for partition in model["partitions"])
        facts = [
            ("model", f"{model['model']}, {many(words, 'word')}"),
            ("metric", "euclidean, posting lists of pairs of letters"),
        ]
    if model["word_weights"] == "earlier":
        stale = "of words in an earlier state of the lake (pexeso compact renews them)"
        facts.append(("weights", stale))
    return facts


def _part_facts(info: IndexInfo) -> Iterator[tuple[str, str]]:
    """Yield the lines about the parts for equal values, keys and whole tables."""

    def holds(shards: Sequence[Mapping[str, Any]], *names: str) -> list[str]:
        return [many(sum(shard[f"{name}s"] for shard in shards), name) for name in names]

    def size(shards: Sequence[Mapping[str, Any]]) -> str:
        n_bytes = sum(shard["bytes"] for shard in shards)
        return f"in {many(len(shards), 'shard')} ({human_bytes(n_bytes)})"

    def deleted(shards: Sequence[Mapping[str, Any]]) -> str:
        number = sum(shard["deleted"] for shard in shards)
        return f", {number:,} of them deleted" if number else ""

    if shards := info.token_sets:
        parts = " and ".join(part for part in info.parts if part in _EQUAL_TEXT)
        [columns] = holds(shards, "column")
        pairs = many(sum(shard["pairs"] for shard in shards), "(column, value) pair")
        yield "equal text", f"{parts}: {columns}{deleted(shards)}, {pairs}, {size(shards)}"
    if shards := info.row_keys:
        tables, rows, cells = holds(shards, "table", "row", "cell")
        filters = " and ".join(shards[0]["filters"])
        sorting = f" with {filters}" if filters else ""
        yield "composite", f"{tables}{deleted(shards)}, {rows}, {cells}{sorting}, {size(shards)}"
    if shards := info.row_hashes:
        yield "redundancy", f"{', '.join(holds(shards, 'row', 'cell'))}, {size(shards)}"


def _numbered_lines(noun: str, folders: list[dict[str, Any]], names: tuple[str, ...]) -> list[str]:
    rows = [
        (str(number), *(f"{facts.get(name, 0):,}" for name in names))
        for number, facts in enumerate(folders[:MAX_PARTITIONS_SHOWN])
    ]
    header, *lines = table_lines((noun, *names), rows, ">" * (1 + len(names)))
    lines = [heading(header), *lines]
    n_more = len(folders) - len(rows)
    return [*lines, f"and {many(n_more, f'more {noun}')} (--json lists all)"] if n_more else lines


def _map(model: Mapping[str, Any]) -> str:
    partitions = model["partitions"]
    kinds = Counter(
        (partition.get("map", model["map"]), partition.get("coordinates", 0))
        for partition in partitions
    )
    words = [
        f"projected on {n - 1} axes" if kind == "projection" else f"{n} pivot{'s' * (n != 1)}"
        for (kind, n), _ in kinds.most_common(MAX_MAPS_SHOWN)
    ]
    others = len(kinds) - len(words)
    trials = any((partition.get("choice") or {}).get("trials") for partition in partitions)
    levels = sorted({partition["levels"] for partition in partitions if "levels" in partition})
    depth = f" of {_range(levels)} levels" if levels else ""
    return (
        ", ".join(words)
        + (f" and {others} others" if others else "")
        + f", {model['cells']}{depth}"
        + (" (chosen by cost)" if trials else "")
    )


def _range(numbers: list[int]) -> str:
    """Write ascending whole numbers as their range."""
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


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
    write_answer(response, form, _check_lines)
    if response.failures:
        raise Failure(
            f"{many(len(response.failures), 'problem')} in the index '{request.index}': do not "
            "search it."
        )


def _check_lines(response: CheckResponse) -> Iterator[str]:
    for problem in response.problems:
        kind = "problem" if problem.is_failure else "note"
        yield f"{kind}: {plain(problem.sentence, MAX_NAME)}"
    if not response.failures:
        yield f"ok: {many(response.n_files, 'file')}, {response.n_bytes:,} bytes"


@command()
@path_argument("folder", metavar="[FOLDER]", default=".")
@output_options("json")
@takes(DoctorRequest)
def doctor(request: DoctorRequest, form: str | None) -> None:
    """Check that this machine has what pexeso needs.

    \b
    Example:
      pexeso doctor

    FOLDER is where an index would be written, by default the current folder. The exit code is 1 if
    something that pexeso needs is missing.
    """  # noqa: D301  click reads \b
    response = run(request)
    write_answer(response, form, _doctor_lines)
    missing = [finding.name for finding in response.findings if finding.ok is False]
    if missing:
        raise Failure(f"pexeso needs {', '.join(missing)} and cannot work without.")
    talk("This machine has everything that pexeso needs.")


def _doctor_lines(response: DoctorResponse) -> Iterator[str]:
    words = {True: "ok", False: "missing", None: "note"}
    rows = [(words[finding.ok], finding.name, finding.detail) for finding in response.findings]
    lines = table_lines(("", "", ""), rows, "<<<", limit=MAX_NAME)
    for line, finding in zip(lines, response.findings, strict=True):
        yield line
        if finding.way_out:
            yield f"{'':9}{finding.way_out}"


@command()
@path_argument("index", metavar="[INDEX]", required=False)
@output_options("json")
@takes(RulesRequest)
def rules(request: RulesRequest, form: str | None) -> None:
    """List the rules by which values are normalised.

    \b
    Example:
      pexeso rules
      pexeso rules lake.pexeso

    Shows which rules are on, by default or in INDEX, with an example of each. pexeso index --rule
    switches them.

    In Python: pexeso.Normaliser().rules, pexeso.open_index(INDEX).normaliser.
    """  # noqa: D301  click reads \b
    write_answer(run(request), form, _rule_lines)


def _rule_lines(response: RulesResponse) -> list[str]:
    rows = [
        (
            "on" if rule.name in response.on else "off",
            rule.name,
            rule.examples[0][0],
            f"is not {rule.examples[0][1]}" if rule.tells_apart else rule.examples[0][1],
        )
        for rule in RULES
    ]
    lines = table_lines(("", "rule", "for example", "becomes"), rows, "<<<<", limit=MAX_NAME)
    extra = f"Words of its own: {len(response.extra):,} (--json lists them)."
    return [*lines, "", extra] if response.extra else lines


@click.command(cls=QueryCommand)
@file_argument("table", metavar="FILE")
@reading_option()
@output_options("json")
@takes(KeysRequest)
def keys(request: KeysRequest, form: str | None) -> None:
    """Propose keys for a table: columns that identify its rows.

    \b
    Example:
      pexeso keys gdp.csv
      pexeso keys gdp.csv --max-columns 4 --json

    A proposed key has as few columns as possible: "why" shows the best key that is left without one
    of them (--json: every smaller combination). A key is unique if every row has all its values and
    no two rows have the same; it is nearly unique if that holds for the share --nearly. Rows that
    repeat another one in all columns are left out. Columns of decimal or formatted numbers, spread
    whole numbers (such as populations), row numbers and free text are rarely keys: keys with such
    a column come last.

    In Python: pexeso.find_keys(FILE).
    """  # noqa: D301  click reads \b
    proposal = run(request)
    write_answer(proposal, form, key_lines)
    if form != "json":
        talk(_row_counts(proposal))
    for note in proposal.notes:
        warn(f"Note: {note}")


def key_lines(proposal: FoundKeys) -> list[str]:
    if proposal.reason is not None:
        return [f"No key: {proposal.reason}"]
    rows = [
        (key.spec, key.kind, percent(key.uniqueness), f"{key.missing:,}", _key_reason(key))
        for key in proposal.keys
    ]
    names = ("key", "kind", "unique", "missing", "why")
    header, *lines = table_lines(names, rows, "<<>><", limit=MAX_NAME)
    return [heading(header), *lines]


def _key_reason(key: CandidateKey) -> str:
    """Return the reasons against a key, and what is repeated without one of its columns."""
    parts = [f"{column} has {what}" for column, what in key.rarely_keys.items()]
    if key.repeated:
        parts.append(f"{many(key.repeated, 'row')} repeated{_example(key)}")
    parts_less_one = [part for part in key.smaller if len(part.columns) == len(key.columns) - 1]
    if parts_less_one:
        best = max(parts_less_one, key=lambda part: part.distinct)
        (without,) = set(key.columns) - set(best.columns)
        parts.append(f"without {without} {percent(best.uniqueness)}{_example(best)}")
    return "; ".join(parts)


def _example(part: Uniqueness) -> str:
    if not part.example:
        return ""
    return f", such as {', '.join(map(plain, part.example))} in {many(part.example_rows, 'row')}"


def _row_counts(proposal: FoundKeys) -> str:
    counts = [
        (proposal.empty_rows, "empty"),
        (proposal.duplicate_rows, "equal to an earlier one in all columns"),
    ]
    left_out = ", ".join(f"{number:,} {what}" for number, what in counts if number)
    return f"{many(proposal.rows, 'row')}{f'; left out: {left_out}' if left_out else ''}"


@command()
@index_argument
@path_argument("labels", metavar="[LABELS.csv]", required=False)
@reading_option(of="LABELS.csv")
@output_options("json")
@takes(TuneRequest)
def tune(request: TuneRequest, form: str | None) -> None:
    """Choose thresholds from pairs that you have labelled.

    \b
    Example:
      pexeso tune lake.pexeso labels.csv
      pexeso tune lake.pexeso labels.csv --min-precision 0.95
      pexeso tune lake.pexeso

    \b
    LABELS.csv has pairs of values, which choose the distance:
      query_value,lake_value,same
      "CURIE, Marie",Marie Curie,yes
      "CURIE, Marie",Pierre Curie,no
    \b
    or pairs of columns, which choose the share of values too:
      query_column,lake_column,same
      people.csv:company,business/firms.csv:name,yes
      people.csv:company,geo/cities.csv:city,no

    Without LABELS.csv it takes the columns that you judged with pexeso judge.

    Some labels must be yes and some no; pairs that are hard to decide help most. A handful is
    enough: where they leave a choice, pexeso takes what search --auto would choose. The result
    says how certain it is.

    In Python: pexeso.open_index(INDEX).tune(labels).
    """  # noqa: D301  click reads \b
    write_answer(run(request), form, advice_lines)


def advice_lines(advice: Advice) -> list[str]:
    """Lay out advice for people: the options to use, and the reason."""
    return [
        thresholds(advice.max_distance, advice.min_joinability),
        advice.why[:1].upper() + advice.why[1:],
    ]
