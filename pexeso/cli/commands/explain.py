"""``pexeso explain``: why two columns match or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.cli.options import distance_settings, index_argument, query_argument, takes
from pexeso.cli.output.advice import tell_advice
from pexeso.cli.output.key_report import key_explanation_lines
from pexeso.cli.output.output import (
    output_options,
    plain,
    table_lines,
    tell_column,
    write_csv,
    write_json,
)
from pexeso.cli.output.pages import page_options, require_page, write_page
from pexeso.cli.output.report import ALL_PAIRS, pair_lines, percent, shares
from pexeso.cli.standard_input import QueryCommand
from pexeso.explain.key_explanation import KeyExplanation
from pexeso.runtime.shown import many
from pexeso.service.requests import ExplainRequest
from pexeso.service.verbs import run

if TYPE_CHECKING:
    from pexeso.results import Explanation, Match

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
@distance_settings
@page_options
@output_options("json", "csv")
@takes(ExplainRequest)
def explain(request: ExplainRequest, html: str | None, overwrite: bool, form: str | None) -> None:
    """Explain why a column of yours and one of the lake match or not.

    \b
    Example:
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name
      pexeso explain lake.pexeso people.csv:company business/firms.csv:name --html why.html

    Shows every pair of values that match, with its distance and its kind: exact (equal but for
    case, accents and punctuation), alias (the same by the index's table of aliases), spelling
    (nearly the same letters) or meaning (the model alone).
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
    found = run(request)
    if isinstance(found, KeyExplanation):
        _write_key(found, html, form)
        return
    tell_column(request, found)
    tell_advice([found.options])
    if form == "json":
        write_json(found.to_dict())
    elif form == "csv":
        write_csv(("query_value", "lake_value", "distance", "matches", "kind"), _csv_rows(found))
    else:
        click.echo("\n".join(explanation_lines(found)))
    if html is not None:
        from pexeso.html.page import explanation_page

        write_page(explanation_page(found), html, overwrite=overwrite)


def _write_key(found: KeyExplanation, html: str | None, form: str | None) -> None:
    if html is not None or form == "csv":
        raise click.UsageError(
            f"{'--csv' if html is None else '--html'} shows pairs of values. The explanation of a "
            "key of several columns is a text, or JSON: take --json."
        )
    if form == "json":
        write_json(found.to_dict())
    else:
        click.echo("\n".join(key_explanation_lines(found)))


def explanation_lines(found: Explanation) -> list[str]:
    """Lay out an explanation for people."""
    match, limit = found.match, found.options.max_distance
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
    if found.unmatched:
        rows = [
            (each.query, "", _REASONS[each.reason], "")
            if each.reason in _REASONS
            else (
                each.query,
                "nearest",
                each.value or "",
                "" if each.distance is None else f"{each.distance:.3f}",
            )
            for each in found.unmatched
        ]
        lines += ["", f"{many(len(found.unmatched), 'value')} without a match:"]
        lines += [f"    {line}" for line in table_lines(("", "", "", ""), rows, "<<<>")]
    return lines


def _csv_rows(found: Explanation) -> list[tuple[object, ...]]:
    matching = [
        (pair.query, pair.value, pair.distance, True, pair.kind) for pair in found.match.pairs()
    ]
    return matching + [
        (each.query, each.value, each.distance, False, "") for each in found.unmatched
    ]


def _contributions_line(match: Match) -> list[str]:
    """Name the words that contribute most to the match, with their shares."""
    found = match.word_contributions(N_WORDS)
    if not found.words:
        return []
    words = ", ".join(f"{plain(word.label)} {percent(word.share)}" for word in found.words)
    more = found.n_words - len(found.words)
    rest = f", and {many(more, 'more word')}" if more else ""
    return [f"Word contributions: {words}{rest}{found.extent}."]
