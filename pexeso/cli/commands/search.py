"""``pexeso search``: the columns of a lake that a column can be joined with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pexeso.cli.commands.search_methods import METHODS, SEMANTIC, search_otherwise
from pexeso.cli.options import Asked, search_settings
from pexeso.cli.output.advice import tell_advice
from pexeso.cli.output.output import MAX_NAME, output_options, talk, write_json, write_json_line
from pexeso.cli.output.pages import page_options, require_page, write_page
from pexeso.cli.output.report import (
    PairsCount,
    found_nothing,
    result_lines,
    stats_line,
    unmatchable,
    write_results_csv,
)
from pexeso.cli.query_columns import read_queries
from pexeso.runtime.formatting import plain

if TYPE_CHECKING:
    from pexeso.results import SearchResult


@click.command()
@click.argument("index", metavar="INDEX")
@click.argument("query", metavar="FILE:COLUMN")
@search_settings
@click.option(
    "--explain",
    "with_pairs",
    is_flag=True,
    help="Show why: what makes the score, and the values that match, with their distances and kinds.",
)
@click.option(
    "--pairs",
    "n_pairs",
    type=PairsCount(),
    default=5,
    metavar="N|all",
    show_default=True,
    help="With --explain in a table: so many pairs of each column; JSON and CSV have all.",
)
@click.option(
    "--rerank/--no-rerank",
    default=True,
    show_default=True,
    help="Order what is found by how likely it can be joined, from all that the two columns say; or by rows that match alone.",
)
@click.option(
    "--all-columns",
    "every_column",
    is_flag=True,
    help="Search with each text column of FILE in turn, with --method by equal values those of numbers too.",
)
@click.option(
    "--method",
    "how",
    type=click.Choice(METHODS),
    default=SEMANTIC,
    show_default=True,
    help="What joins: values alike, equal texts (as in pexeso overlap or contain), or all of these in one list that says which.",
)
@page_options
@output_options("json", "jsonl", "csv")
def search(
    index: str,
    query: str,
    asked: Asked,
    with_pairs: bool,
    n_pairs: float,
    rerank: bool,
    every_column: bool,
    how: str,
    html: str | None,
    overwrite: bool,
    form: str | None,
) -> None:
    """Find the lake columns that a column of yours can be joined with.

    \b
    Example:
      pexeso search lake.pexeso people.csv:company
      pexeso search lake.pexeso people.csv:company -k 3 --explain
      pexeso search lake.pexeso people.csv:company --auto
      pexeso search lake.pexeso people.csv:company --min-joinability 0.3 --json
      pexeso search lake.pexeso people.csv:company --html found.html
      pexeso search lake.pexeso people.csv:company --method all

    FILE is a table: CSV, TSV, Parquet or JSON lines. The text after its last colon names the column; #3 is the one at
    position 3, counted from 0. Without a column, the text column with most distinct values is taken.

    In Python: pexeso.open_index(INDEX).search(values), and .to_html() of that.
    """  # noqa: D301  click reads \b
    require_page(html, overwrite=overwrite)
    if how != SEMANTIC:
        _refuse_what_is_for_meaning(html)
    queries = read_queries(query, every_column, numbers=how != SEMANTIC)
    if how != SEMANTIC:
        values = {"with_values": with_pairs, "n_values": n_pairs}
        search_otherwise(how, index, queries, asked, form=form or "table", name_queries=every_column, **values)
        return
    results = asked.open(index).search_batch(queries, rerank=rerank, **asked.to_search())
    tell_advice(result.options for result in results)
    for result in results:
        for line in unmatchable(result):
            talk(line)
    _write(results, form or "table", every_column, with_pairs, n_pairs)
    if html is not None:
        from pexeso.html.page import results_page

        write_page(results_page(results), html, overwrite=overwrite)
    for result in results:
        talk(stats_line(result, name=every_column))


def _refuse_what_is_for_meaning(html: str | None) -> None:
    if html is not None:
        raise click.UsageError("--html shows what semantic search finds: leave it out, or leave --method out.")
    if click.get_current_context().get_parameter_source("rerank") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--rerank and --no-rerank order what semantic search finds: leave --method out.")


def _write(results: list[SearchResult], form: str, every_column: bool, with_pairs: bool, n_pairs: float) -> None:
    if form == "csv":
        write_results_csv(results, with_pairs=with_pairs, name_queries=every_column)
        return
    for position, result in enumerate(results):
        if form == "json" and not every_column:
            write_json(result.to_dict(explain=with_pairs))
        elif form == "json":
            write_json_line(result.to_dict(explain=with_pairs))
        elif form == "jsonl":
            _write_lines(result, every_column, with_pairs)
        else:
            _write_table(result, position, every_column, n_pairs if with_pairs else 0)


def _write_lines(result: SearchResult, name_query: bool, with_pairs: bool) -> None:
    named: dict[str, Any] = {"query_column": result.query["column"]} if name_query else {}
    for found in result.to_dict(explain=with_pairs)["results"]:
        write_json_line({**named, **found})


def _write_table(result: SearchResult, position: int, name_query: bool, n_pairs: float) -> None:
    if name_query:
        click.echo(f"{'' if position == 0 else chr(10)}{plain(result.query['column'], MAX_NAME)}")
    if len(result):
        click.echo("\n".join(result_lines(result, n_pairs)))
    else:
        talk(found_nothing(result))
