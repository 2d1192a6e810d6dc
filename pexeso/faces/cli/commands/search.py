"""``pexeso search``: the columns of a lake that a column can be joined with."""

from __future__ import annotations

import click
from click.core import ParameterSource

from pexeso.composite.lake.results import CompositeResult
from pexeso.faces.cli.options import QueryCommand, index_argument, query_argument, takes
from pexeso.faces.cli.output.advice import tell_advice
from pexeso.faces.cli.output.output import output_options, talk, tell_column, warn
from pexeso.faces.cli.output.pages import page_options, require_page, write_page
from pexeso.faces.cli.output.progress import search_progress
from pexeso.faces.cli.output.report import (
    ALIKE,
    COMBINED,
    EQUAL,
    shown_option,
    tell_work,
    unmatchable,
    write_results,
)
from pexeso.faces.cli.output.transformed import TRANSFORMED
from pexeso.faces.service.requests import SearchRequest
from pexeso.faces.service.verbs import run

_LAYOUTS = {"semantic": ALIKE, "transform": TRANSFORMED, "all": COMBINED}


@click.command(cls=QueryCommand)
@index_argument
@query_argument
@shown_option("--pairs", "With --explain: pairs of each column in a table; JSON and CSV have all.")
@page_options
@output_options("json", "jsonl", "csv")
@takes(SearchRequest, without=("ignore_missing",))
def search(
    request: SearchRequest, n_shown: int, html: str | None, overwrite: bool, form: str | None
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
      pexeso search lake.pexeso people.csv:email --method transform --explain
      pexeso search lake.pexeso gdp.csv:country,year
      pexeso search lake.pexeso gdp.csv --keys auto
      pexeso search lake.pexeso gdp.csv:country~,year --explain

    FILE is a table (CSV, Excel, SQLite, JSON, Parquet ...). For a file that holds several,
    book.xlsx#Sheet1 names one. - is standard input, as in head -n 100 my.csv | pexeso search
    lake.pexeso -:company. The text after the colon names the column; #3 is the one at position 3,
    counted from 0. Without a column, the text column with most distinct values is taken.

    --method transform finds columns whose values are written differently by one rule. The rule is
    learned and shown in words ("Obama, Barack (1961-)" becomes "Barack Obama"). pexeso transform
    learns more from two tables, and joins them.

    --method overlap finds the columns that share most values with yours, and containment those that
    have at least the share --min-joinability of them. Values are compared as texts, so columns of
    numbers and codes join too: 1, "1" and 1.0 are equal, "01" is another value, and case counts.
    Both need a part of the index: pexeso index --include containment, or pexeso add-part INDEX
    containment.

    Several columns separated by commas are a composite key. The search finds tables whose rows
    contain the same combinations of values, in whatever columns, with the number of keys that each
    joins, its rows, and how many rows a join makes from one. Cells are compared as texts, ignoring
    case and white space. The index needs a part for this: pexeso index --include composite, or
    pexeso add-part INDEX composite. With ~ after a column its values match similar ones, within
    --max-distance, in columns that a search with that column alone could find.

    In Python: pexeso.open_index(INDEX).search(values), .to_html() of that, and
    .search_composite(table, columns).
    """  # noqa: D301  click reads \b
    require_page(html, overwrite=overwrite)
    if request.method != "semantic":
        _refuse_what_is_for_semantic_search(request, html, form)
    with search_progress():
        results = run(request).results
    if request.keys is None:
        tell_column(request, results[0])
    else:
        query = results[0].query
        talk(f"Searching with the key {', '.join(query.get('columns') or [query['column']])}.")
    if isinstance(results[0], CompositeResult):
        _write_composite(results[0], form, n_shown, html, explain=request.explain)
        return
    if request.method == "semantic":
        tell_advice(result.options for result in results)
        for result in results:
            for line in unmatchable(result):
                warn(line)
    layout, many = _LAYOUTS.get(request.method, EQUAL), request.all_columns
    write_results(layout, results, form, n_shown, explain=request.explain, name_queries=many)
    if html is not None:
        from pexeso.results.pages.page import results_page

        write_page(results_page(results), html, overwrite=overwrite)
    tell_work(layout, results, name_queries=many)


def _write_composite(
    result: CompositeResult, form: str | None, n_shown: int, html: str | None, *, explain: bool
) -> None:
    from pexeso.faces.cli.output.composite import COMPOSITE, incomplete_rows

    if html is not None:
        raise click.UsageError(
            "--html shows what is found with one column: leave it out for a composite key."
        )
    for line in incomplete_rows(result):
        warn(line)
    write_results(COMPOSITE, [result], form, n_shown, explain=explain, name_queries=False)
    tell_work(COMPOSITE, [result], name_queries=False)


def _refuse_what_is_for_semantic_search(
    request: SearchRequest, html: str | None, form: str | None
) -> None:
    if html is not None:
        raise click.UsageError(
            "--html shows what semantic search finds: leave it out, or leave --method out."
        )
    if click.get_current_context().get_parameter_source("rerank") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "--rerank and --no-rerank order what semantic search finds: leave --method out."
        )
    if request.method == "all" and form == "csv" and request.explain:
        raise click.UsageError(
            "--method all writes one row a column as CSV: leave --explain out, or take --json."
        )
