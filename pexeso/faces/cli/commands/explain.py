"""``pexeso explain``: why two columns match or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.composite.key_explanation import KeyExplanation
from pexeso.faces.cli.options import QueryCommand, index_argument, query_argument, takes
from pexeso.faces.cli.output.advice import tell_advice
from pexeso.faces.cli.output.key_report import key_explanation_lines
from pexeso.faces.cli.output.output import (
    output_options,
    plain,
    table_lines,
    tell_column,
    write_csv,
    write_json,
)
from pexeso.faces.cli.output.pages import page_options, require_page, write_page
from pexeso.faces.cli.output.report import ALL_PAIRS, pair_lines, percent, shares
from pexeso.faces.service.requests import ExplainRequest
from pexeso.faces.service.verbs import run
from pexeso.runtime.shown import many

if TYPE_CHECKING:
    from pexeso.results.matches import Explanation, Match

N_WORDS = 6
"""Carrying words in a table for people; JSON has ten."""

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
    """Explain why a column of yours and one of the lake match or not.

    \b
    Example:
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name --html why.html

    Shows every pair of values that match, with its distance and its kind: exact (the same cell),
    alias (the same by the index's table of aliases), spelling (the same but for case, accents and
    punctuation, or nearly the same letters) or meaning (the model alone).
    Names the words that carry the match and, for each value without a match, the nearest of the
    lake column. TABLE:COLUMN is a column of the lake as pexeso search prints it.

    FILE:COLUMN,COLUMN is a key of several columns, and TABLE:COLUMN,COLUMN what it is compared
    with, or TABLE for the columns that match most keys: pexeso explain lake.pexeso
    games.csv:year,city sport/summer_olympics.csv:year,city. Shows what each column shares for
    itself beside what rows share, and which parts of the other keys are there.

    In Python: pexeso.open_index(INDEX).explain(values, table, column), and .to_html() of that; of a
    key .explain_composite(table, columns, lake_table, lake_columns).
    """  # noqa: D301  click reads \b
    require_page(html, overwrite=overwrite)
    explanation = run(request)
    if isinstance(explanation, KeyExplanation):
        _write_key(explanation, html, form)
        return
    tell_column(request, explanation)
    tell_advice([explanation.options])
    if form == "json":
        write_json(explanation.to_dict())
    elif form == "csv":
        write_csv(
            ("query_value", "lake_value", "distance", "matches", "kind"), _csv_rows(explanation)
        )
    else:
        click.echo("\n".join(explanation_lines(explanation)))
    if html is not None:
        from pexeso.results.pages.page import explanation_page

        write_page(explanation_page(explanation), html, overwrite=overwrite)


def _write_key(explanation: KeyExplanation, html: str | None, form: str | None) -> None:
    if html is not None or form == "csv":
        raise click.UsageError(
            f"{'--csv' if html is None else '--html'} shows pairs of values. The explanation of a "
            "key of several columns is a text, or JSON: take --json."
        )
    if form == "json":
        write_json(explanation.to_dict())
    else:
        click.echo("\n".join(key_explanation_lines(explanation)))


def explanation_lines(explanation: Explanation) -> list[str]:
    """Lay out an explanation for people."""
    match, limit = explanation.match, explanation.options.max_distance
    lines = [
        f"{percent(match.joinability)} of the {match.joinability_of} match ({match.matched:,} of "
        f"{match.total:,}) within distance {limit:g}."
    ]
    pairs = match.pairs()
    if pairs:
        lines += [
            f"Of these {match.joinability_of}: {shares(match.kinds())}.",
            *_contributions_line(match),
        ]
        lines += ["", f"{many(len(pairs), 'matching pair')}:", *pair_lines(pairs, ALL_PAIRS)]
    if explanation.unmatched:
        rows = [
            (unmatched.query, "", _REASONS[unmatched.reason], "")
            if unmatched.reason in _REASONS
            else (
                unmatched.query,
                "nearest",
                unmatched.value or "",
                "" if unmatched.distance is None else f"{unmatched.distance:.3f}",
            )
            for unmatched in explanation.unmatched
        ]
        lines += ["", f"{many(len(explanation.unmatched), 'value')} without a match:"]
        lines += [f"    {line}" for line in table_lines(("", "", "", ""), rows, "<<<>")]
    return lines


def _csv_rows(explanation: Explanation) -> list[tuple[object, ...]]:
    matching = [
        (pair.query, pair.value, pair.distance, True, pair.kind)
        for pair in explanation.match.pairs()
    ]
    return matching + [
        (unmatched.query, unmatched.value, unmatched.distance, False, "")
        for unmatched in explanation.unmatched
    ]


def _contributions_line(match: Match) -> list[str]:
    """Name the words that contribute most to the match, with their shares."""
    contributions = match.word_contributions(N_WORDS)
    if not contributions.words:
        return []
    words = ", ".join(f"{plain(word.label)} {percent(word.share)}" for word in contributions.words)
    more = contributions.n_words - len(contributions.words)
    rest = f", and {many(more, 'more word')}" if more else ""
    return [f"Word contributions: {words}{rest}{contributions.extent}."]
