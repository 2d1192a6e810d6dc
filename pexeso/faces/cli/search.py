"""``pexeso search``, ``pexeso batch`` and ``pexeso explain``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pexeso.composite.key_explanation import FanOut, KeyExplanation, UnmatchedKeys
from pexeso.composite.results import CompositeResult
from pexeso.errors import QueryError
from pexeso.faces.cli.errors import Failure, Interrupted, command_again
from pexeso.faces.cli.layouts import ALIKE, COMPOSITE, TRANSFORMED, incomplete_rows
from pexeso.faces.cli.options import (
    QueryCommand,
    cli_option,
    command,
    complete_path,
    index_argument,
    query_argument,
    reading_option,
    takes,
)
from pexeso.faces.cli.output import (
    MAX_NAME,
    output_options,
    page_options,
    plain,
    query_progress,
    report_advice,
    report_column,
    require_page,
    search_progress,
    talk,
    warn,
    write_answer,
    write_csv,
    write_json_line,
    write_page,
)
from pexeso.faces.cli.report import (
    COMBINED,
    EQUAL,
    PairsCount,
    hint_lines,
    indented,
    order_lines,
    pair_lines,
    report_work,
    shares,
    unmatchable,
    write_results,
)
from pexeso.faces.cli.two_files import index_of_second
from pexeso.faces.service.requests import BatchRequest, ExplainRequest, SearchRequest
from pexeso.faces.service.schema import OUTPUT
from pexeso.faces.service.verbs import run
from pexeso.lake.columns import spec_of
from pexeso.lake.judgements import REJECTED
from pexeso.results.column_matches import Hints
from pexeso.results.query import lines_of
from pexeso.runtime.formatting import many, percent

if TYPE_CHECKING:
    from pexeso.results.matches import Explanation, Match
    from pexeso.semantic.batch_file import BatchRun, NumberedLine


_LAYOUTS = {"semantic": ALIKE, "transform": TRANSFORMED, "all": COMBINED}


@click.command(cls=QueryCommand)
@index_argument
@query_argument
@cli_option(
    "--pairs",
    "n_shown",
    group=OUTPUT,
    type=PairsCount(),
    default=5,
    metavar="N|all",
    show_default=True,
    help="With --explain: pairs of each column in a table; JSON and CSV have all.",
)
@page_options
@output_options("json", "csv")
@takes(SearchRequest, without=("ignore_missing", "max_candidates"))
def search(
    request: SearchRequest, n_shown: int, html: str | None, overwrite: bool, form: str | None
) -> None:
    """Find the lake columns that your column can be joined with.

    \b
    Example:
      pexeso search lake.pexeso people.csv:company
      pexeso search lake.pexeso people.csv:company -k 3 --explain
      pexeso search lake.pexeso people.csv:company --auto
      pexeso search lake.pexeso people.csv:company --min-joinability 0.3 --json
      pexeso search lake.pexeso people.csv:company --html found.html
      pexeso search lake.pexeso people.csv:company --method all
      pexeso search lake.pexeso people.csv:email --method transform --explain
      pexeso search lake.pexeso gdp.csv:country,year
      pexeso search lake.pexeso gdp.csv --keys auto
      pexeso search lake.pexeso gdp.csv:country~,year --explain

    FILE is a table (CSV, Excel, SQLite, JSON, Parquet ...). If a file has several, book.xlsx#Sheet1
    names one. - is standard input, as in head -n 100 my.csv | pexeso search lake.pexeso -:company.
    COLUMN is a name, or #3 for the column at position 3, counted from 0. Without it, pexeso takes
    the text column with most distinct values.

    --method transform finds columns whose values follow another form. It learns a rule and shows it
    in words ("Obama, Barack (1961-)" becomes "Barack Obama"). pexeso transform learns more from two
    tables, and joins them.

    --method overlap finds the columns that share most values with yours, --method containment those
    that have at least the share --min-joinability of them. Values are compared as texts, so columns
    of numbers and codes join too: 1, "1" and 1.0 are equal, "01" is another value, and case counts.
    Both need a part of the index: pexeso index --include containment, or pexeso add-part INDEX
    containment.

    Several columns separated by commas are a composite key. The search finds tables whose rows have
    the same combinations of values, in any columns. It shows how many keys join, and how many rows
    the join makes from one of yours. Cells are compared as texts, ignoring case and white space.
    This needs a part of the index too: pexeso index --include composite, or pexeso add-part INDEX
    composite. A column marked ~ matches similar values, within --max-distance, in columns that a
    search with that column alone could find.

    In Python: pexeso.open_index(INDEX).search(values), .to_html() of the result, and
    .search_composite(table, columns).
    """  # noqa: D301  click reads \b
    require_page(html, overwrite=overwrite)
    if request.method != "semantic":
        _refuse_what_is_for_semantic_search(request, html, form)
    with search_progress():
        results = run(request).results
    if request.keys is None:
        report_column(request, results[0])
    else:
        query = results[0].query
        talk(f"Searching with the key {', '.join(query.get('columns') or [query['column']])}.")
    for line in (line for result in results for line in order_lines(result)):
        warn(line)
    if isinstance(results[0], CompositeResult):
        _write_composite(results[0], form, n_shown, html, explain=request.explain)
        return
    if request.method == "semantic":
        report_advice(result.options for result in results)
        for result in results:
            for line in unmatchable(result):
                warn(line)
    layout, many = _LAYOUTS.get(request.method, EQUAL), request.all_columns
    write_results(layout, results, form, n_shown, explain=request.explain, name_queries=many)
    if html is not None:
        from pexeso.results.pages.page import results_page

        write_page(results_page(results), html, overwrite=overwrite)
    report_work(layout, results, name_queries=many)


def _write_composite(
    result: CompositeResult, form: str | None, n_shown: int, html: str | None, *, explain: bool
) -> None:
    if html is not None:
        raise click.UsageError(
            "--html shows the results for one column: leave it out for a composite key."
        )
    for line in incomplete_rows(result):
        warn(line)
    write_results(COMPOSITE, [result], form, n_shown, explain=explain, name_queries=False)
    report_work(COMPOSITE, [result], name_queries=False)


def _refuse_what_is_for_semantic_search(
    request: SearchRequest, html: str | None, form: str | None
) -> None:
    if html is not None:
        raise click.UsageError(
            "--html shows results of semantic search: leave out --html or --method."
        )
    if click.get_current_context().get_parameter_source("rerank") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "--rerank and --no-rerank order results of semantic search: leave out --method."
        )
    if request.method == "all" and form == "csv" and request.explain:
        raise click.UsageError(
            "--method all writes one CSV row a column: leave out --explain, or use --json."
        )


STANDARD = "-"


def _file(context: click.Context, option: click.Parameter, name: str) -> str | None:
    return None if name == STANDARD else name


@command()
@index_argument
@click.argument("queries", metavar="QUERIES.jsonl", shell_complete=complete_path)
@cli_option(
    "-o",
    "--output",
    default=STANDARD,
    callback=_file,
    group=OUTPUT,
    metavar="ANSWERS.jsonl",
    help="File of answers; stdout by default.",
)
@reading_option(of="each file that is named")
@takes(BatchRequest, without=("ignore_missing",))
def batch(request: BatchRequest) -> None:
    """Answer many queries, given as JSON lines.

    \b
    Example:
      pexeso batch lake.pexeso queries.jsonl -o answers.jsonl
      pexeso batch lake.pexeso queries.jsonl -o answers.jsonl --resume

    \b
    Lines of QUERIES.jsonl (- reads stdin):
      {"id": "a", "file": "people.csv", "column": "company"}
      {"id": "b", "values": ["Oslo", "Rome"]}
      {"file": "old.csv", "column": "city", "delimiter": ";", "skip_rows": 1}

    Answers are JSON lines in the same order: {"id", "of", "query", "options", "results", "stats"},
    or {"id", "of", "error"} for a line that cannot be used. The other lines are still answered, and
    the exit code is 1. Paths are relative to the current folder.

    With --spark-master the search runs on Spark, with a task for each partition and some of the
    queries. The answers are the same.

    In Python: pexeso.open_index(INDEX).search_batch(queries).
    """  # noqa: D301  click reads \b
    queries, output, live = request.queries, request.output, {}
    if queries == STANDARD:
        if request.resume:
            raise click.UsageError(
                "--resume needs a file of queries: what came from stdin is gone."
            )
        live["lines"] = _from_standard_input()
    live["begin"] = lambda options: report_advice([options])
    try:
        if output is None:
            response = run(request, write=_write, **live)
        else:
            with query_progress(queries) as progress:
                response = run(request, progress=progress, **live)
    except KeyboardInterrupt as error:
        raise Interrupted(_how_to_go_on(queries, output)) from error
    _report(response.run, output)


def _from_standard_input() -> Iterator[NumberedLine]:
    if sys.stdin is None:
        raise QueryError(
            "Standard input is closed. Pipe JSON lines into the command, or name a file."
        )
    return lines_of(sys.stdin.buffer, "The batch on standard input")


def _write(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        write_json_line(answer)
    sys.stdout.flush()


def _how_to_go_on(queries: str, output: str | None) -> str:
    if output is None or queries == STANDARD:
        return f"Interrupted. Run again: {command_again()}"
    again = command_again(add="--resume", drop=("--overwrite",))
    return f"Interrupted; the answers so far are in '{output}'. Go on: {again}"


def _report(run: BatchRun, output: str | None) -> None:
    earlier = f", {run.earlier:,} of them in an earlier run" if run.earlier else ""
    talk(
        f"{many(run.answered, 'line')} answered{earlier}"
        + ("" if output is None else f", in '{output}'")
    )
    if not run.failed:
        return
    for error in run.first_errors:
        talk(f"  {plain(error, MAX_NAME)}")
    n_more = run.failed - len(run.first_errors)
    if n_more:
        talk(f"  and {n_more:,} more, which the answers name")
    raise Failure(f"{run.failed:,} of {many(run.answered, 'line')} could not be used.")


def key_explanation_lines(explanation: KeyExplanation) -> list[str]:
    blocks = (
        _head(explanation),
        _parts(explanation),
        _fan_out(explanation.fan_out),
        _unmatched(explanation),
        _others(explanation),
        _sample(explanation),
    )
    lines: list[str] = []
    for block in blocks:
        if block:
            lines += ["", *block] if lines else block
    return lines


def _head(explanation: KeyExplanation) -> list[str]:
    columns = ", ".join(explanation.columns)
    how = "" if explanation.are_given else ", the columns that join most keys"
    if not explanation.matched_keys and not explanation.are_given:
        how = ", the columns that have most of the values"
    lines = [
        f"{percent(explanation.joinability)} of the keys match ({explanation.matched_keys:,} of "
        f"{explanation.total_keys:,}): {', '.join(explanation.query['columns'])} with {columns} of "
        f"{explanation.table}{how}."
    ]
    left_out = explanation.query["rows_without_key"]
    if left_out:
        has = "has" if left_out == 1 else "have"
        lines.append(f"{many(left_out, 'row')} of your table {has} no key: a part of it is empty.")
    return lines


def _parts(explanation: KeyExplanation) -> list[str]:
    rows = [
        (
            part.column,
            part.lake_column,
            percent(part.matched / part.total if part.total else 0.0),
            f"{part.matched:,} of {many(part.total, 'value')}",
        )
        for part in explanation.parts
    ]
    return ["Each column alone:", *indented(rows, "<<><", ("yours", "the lake's", "matched", ""))]


def _fan_out(fan_out: FanOut) -> list[str]:
    if fan_out.relation is None:
        return []
    lines = [
        f"{many(fan_out.rows, 'row')} of your table and {fan_out.lake_rows:,} of the lake's make "
        f"{many(fan_out.joined_rows, 'joined row')} ({fan_out.relation})."
    ]
    if fan_out.examples:
        rows = [
            (spec_of(example.key), f"{example.rows:,}", f"{example.lake_rows:,}")
            for example in fan_out.examples
        ]
        lines += indented(rows, "<>>", ("repeated key", "your rows", "the lake's rows"))
    return lines


def _unmatched(explanation: KeyExplanation) -> list[str]:
    left = explanation.total_keys - explanation.matched_keys
    if not left:
        return []
    lines = [f"{many(left, 'key')} without a match:"]
    for group in explanation.unmatched:
        lines.append(f"  {many(group.keys, 'key')}: {_why(group)}")
        rows = [
            (
                spec_of(example.key),
                "" if example.nearest is None else spec_of(example.nearest),
                f"{example.parts} of {len(example.key)}" if example.parts else "none",
            )
            for example in group.examples
        ]
        lines += indented(rows, "<<<", ("key", "nearest row", "parts in it"))
    return lines


def _why(group: UnmatchedKeys) -> str:
    if not group.missing:
        return "every part exists, but in different rows"
    n_parts = len(group.there) + len(group.missing)
    if not group.there:
        return f"none of the {n_parts} parts exists"
    verb, missing = "exists" if len(group.there) == 1 else "exist", " and ".join(group.missing)
    return f"{len(group.there)} of {n_parts} parts {verb}; no row has the {missing}"


def _others(explanation: KeyExplanation) -> list[str]:
    if not explanation.others:
        return []
    rows = [
        (", ".join(other.columns), many(other.matched_keys, "key")) for other in explanation.others
    ]
    return [
        f"Other columns of {explanation.table} that match as many keys, or nearly:",
        *indented(rows, "<>", ("", "")),
    ]


def _sample(explanation: KeyExplanation) -> list[str]:
    sample = explanation.sample
    if not sample.rows:
        return []
    names = (*sample.columns, "|", *sample.lake_columns)
    rows = [(*map(_shown, ours), "|", *map(_shown, lake_cells)) for ours, lake_cells in sample.rows]
    return ["The first joined rows:", *indented(rows, "<" * len(names), names)]


def _shown(cell: str | None) -> str:
    return "" if cell is None else cell


# Carrying words in a table for people; JSON has ten.
N_WORDS = 6

# Texts that are shown as they are compared.
N_FORMS = 10

_REASONS = {
    "unknown": "the model knows nothing about it",
    "empty": "nothing is left of it without punctuation",
}


@click.command(cls=QueryCommand)
@index_argument
@query_argument
@click.argument("lake_column", metavar="[TABLE:COLUMN]", required=False)
@page_options
@output_options("json", "csv")
@takes(ExplainRequest, without=("device", "memory_budget", "ignore_missing"))
def explain(request: ExplainRequest, html: str | None, overwrite: bool, form: str | None) -> None:
    """Explain why your column and a lake column match or not.

    \b
    Example:
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name --html why.html
      pexeso explain people.csv:company firms.csv:name

    Shows every pair of matching values (of more than 100,000 the nearest of each value; --csv lists
    all) with its distance and its kind: exact (equal cells), alias
    (equal by the index's table of aliases), spelling (the letters are alike) or similar (only the
    model finds them alike; meaning in JSON and CSV). Names the words that contribute most and, for
    each value without a match, the nearest value of the lake column. TABLE:COLUMN is a column of
    the lake as pexeso search prints it; without it explain takes the column that search lists
    first. Two files are compared without an index, as by pexeso join.

    FILE:COLUMN,COLUMN is a key of several columns. It is compared with TABLE:COLUMN,COLUMN, or, for
    TABLE alone, with the columns that match most keys: pexeso explain lake.pexeso
    games.csv:year,city sport/summer_olympics.csv:year,city. Shows how many values each column
    shares, how many keys the rows share, and which parts of the other keys the table has.

    In Python: pexeso.open_index(INDEX).explain(values, table, column) and .to_html() of the result;
    for a key .explain_composite(table, columns, lake_table, lake_columns).
    """  # noqa: D301  click reads \b
    require_page(html, overwrite=overwrite)
    with index_of_second(request) as request:
        with search_progress():
            explanation = run(request)
        if isinstance(explanation, KeyExplanation):
            _write_key(explanation, html, form)
            return
        report_column(request, explanation)
        if request.lake_column is None:
            match = explanation.match
            talk(plain(f"The lake's column is {match.table}:{match.column}.", MAX_NAME))
        report_advice([explanation.options])
        if form == "csv":
            write_csv(
                ("query_value", "lake_value", "distance", "matches", "kind"), _csv_rows(explanation)
            )
        else:
            write_answer(explanation, form, explanation_lines)
        _report_readings(explanation)
        if explanation.is_rejected:
            talk(REJECTED)
        if explanation.note is not None:
            talk(plain(explanation.note, MAX_NAME))
        if html is not None:
            from pexeso.results.pages.page import explanation_page

            write_page(explanation_page(explanation), html, overwrite=overwrite)


def _write_key(explanation: KeyExplanation, html: str | None, form: str | None) -> None:
    if html is not None or form == "csv":
        raise click.UsageError(
            f"{'--csv' if html is None else '--html'} shows pairs of similar values. Where "
            "equal ones are joined (numbers, ids, several columns) the explanation is a text, or "
            "JSON: take --json."
        )
    write_answer(explanation, form, key_explanation_lines)
    _report_readings(explanation)


def _report_readings(explanation: Explanation | KeyExplanation) -> None:
    for line in hint_lines(Hints(readings=explanation.readings)):
        talk(line)


def explanation_lines(explanation: Explanation) -> list[str]:
    match, limit = explanation.match, explanation.options.max_distance
    lines = [
        f"{percent(match.joinability)} of the {match.joinability_of} match ({match.matched:,} of "
        f"{match.total:,}) within distance {limit:g}."
    ]
    pairs = match.listed_pairs()
    if pairs:
        lines += [
            f"Of these {match.joinability_of}: {shares(match.kinds())}.",
            *_contributions_line(match),
        ]
        lines += ["", f"{many(match.n_pairs, 'matching pair')}:", *pair_lines(pairs)]
        if left_out := match.n_pairs - len(pairs):
            lines.append(
                f"    and {many(left_out, 'more pair')}: these are the nearest of each value, and "
                "--csv lists all"
            )
        forms = match.forms()
        if forms:
            shown = list(forms.items())[:N_FORMS]
            lines += ["", "Compared as:", *indented([(text, form) for text, form in shown], "<<")]
            if left_out := len(forms) - len(shown):
                lines.append(f"    and {many(left_out, 'more text')} (--json)")
    if explanation.unmatched:
        rows = [
            (unmatched.query, "", _REASONS[unmatched.reason], "")
            if unmatched.reason in _REASONS
            else (
                unmatched.query,
                "is not" if unmatched.reason == "apart" else "nearest",
                unmatched.value or "",
                unmatched.because or ""
                if unmatched.reason == "apart"
                else f"{unmatched.distance or 0:.3f}",
            )
            for unmatched in explanation.unmatched
        ]
        lines += ["", f"{many(len(explanation.unmatched), 'value')} without a match:"]
        lines += indented(rows, "<<<>")
    return lines


def _csv_rows(explanation: Explanation) -> Iterator[tuple[object, ...]]:
    for pair in explanation.match.streamed_pairs():
        yield pair.query, pair.value, pair.distance, True, pair.kind
    for unmatched in explanation.unmatched:
        yield unmatched.query, unmatched.value, unmatched.distance, False, ""


def _contributions_line(match: Match) -> list[str]:
    contributions = match.word_contributions(N_WORDS)
    if not contributions.words:
        return []
    words = ", ".join(f"{plain(word.label)} {percent(word.share)}" for word in contributions.words)
    more = contributions.n_words - len(contributions.words)
    rest = f", and {many(more, 'more word')}" if more else ""
    return [f"Word contributions: {words}{rest}{contributions.extent}."]
