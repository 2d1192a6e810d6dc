"""``pexeso explain``: why two columns match or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pexeso.composite.key_explanation import KeyExplanation
from pexeso.faces.cli.options import QueryCommand, index_argument, query_argument, takes
from pexeso.faces.cli.output import (
    output_options,
    page_options,
    plain,
    report_advice,
    report_column,
    require_page,
    search_progress,
    talk,
    write_answer,
    write_csv,
    write_page,
)
from pexeso.faces.cli.report import hint_lines, indented, pair_lines, shares
from pexeso.faces.service.requests import ExplainRequest
from pexeso.faces.service.verbs import run
from pexeso.lake.columns import spec_of
from pexeso.results.column_matches import Hints
from pexeso.runtime.formatting import percent
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.composite.key_explanation import FanOut, UnmatchedKeys
    from pexeso.results.matches import Explanation, Match


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
    return [
        "Each column alone:",
        *indented(rows, "<<><", ("yours", "the lake's", "matched", "")),
    ]


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
@click.argument("lake_column", metavar="TABLE:COLUMN")
@page_options
@output_options("json", "csv")
@takes(ExplainRequest, without=("device", "memory_budget", "ignore_missing"))
def explain(request: ExplainRequest, html: str | None, overwrite: bool, form: str | None) -> None:
    """Explain why your column and a lake column match or not.

    \b
    Example:
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name --html why.html

    Shows every pair of matching values (of more than 100,000 the nearest of each value; --csv lists
    all) with its distance and its kind: exact (equal cells), alias
    (equal by the index's table of aliases), spelling (the letters are alike) or similar (only the
    model finds them alike; meaning in JSON and CSV). Names the words that contribute most and, for
    each value without a match, the nearest value of the lake column. TABLE:COLUMN is a column of
    the lake as pexeso search prints it.

    FILE:COLUMN,COLUMN is a key of several columns. It is compared with TABLE:COLUMN,COLUMN, or, for
    TABLE alone, with the columns that match most keys: pexeso explain lake.pexeso
    games.csv:year,city sport/summer_olympics.csv:year,city. Shows how many values each column
    shares, how many keys the rows share, and which parts of the other keys the table has.

    In Python: pexeso.open_index(INDEX).explain(values, table, column) and .to_html() of the result;
    for a key .explain_composite(table, columns, lake_table, lake_columns).
    """  # noqa: D301  click reads \b
    require_page(html, overwrite=overwrite)
    with search_progress():
        explanation = run(request)
    if isinstance(explanation, KeyExplanation):
        _write_key(explanation, html, form)
        return
    report_column(request, explanation)
    report_advice([explanation.options])
    if form == "csv":
        write_csv(
            ("query_value", "lake_value", "distance", "matches", "kind"), _csv_rows(explanation)
        )
    else:
        write_answer(explanation, form, explanation_lines)
    _report_readings(explanation)
    if html is not None:
        from pexeso.results.pages.page import explanation_page

        write_page(explanation_page(explanation), html, overwrite=overwrite)


def _write_key(explanation: KeyExplanation, html: str | None, form: str | None) -> None:
    if html is not None or form == "csv":
        raise click.UsageError(
            f"{'--csv' if html is None else '--html'} shows pairs of values. The explanation of a "
            "key of several columns is a text, or JSON: take --json."
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
