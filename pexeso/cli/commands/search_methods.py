"""``pexeso search --method``: the same query by overlap, by containment, or by all evidence in one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from pexeso.cli.commands.equal_text import explained_lines, value_lines, write_equal_text
from pexeso.cli.options import Asked
from pexeso.cli.output.output import MAX_NAME, count, table_lines, talk, write_csv, write_json, write_json_line
from pexeso.cli.output.report import pair_lines, percent
from pexeso.runtime.formatting import plain

if TYPE_CHECKING:
    from pexeso.answers.combined import CombinedMatch, CombinedResult
    from pexeso.index import Index
    from pexeso.search.query import QueryColumn

SEMANTIC = "semantic"
METHODS = (SEMANTIC, "overlap", "containment", "all")

_OF_EVERY_WAY = ("k", "exclude_self")
_OPTION_OF = {"counts": "--early-stop"}
_PAIRS_OPTION = "--pairs"


def search_otherwise(
    how: str,
    index: str,
    queries: Sequence[QueryColumn],
    asked: Asked,
    *,
    form: str,
    name_queries: bool,
    with_values: bool,
    n_values: float,
) -> None:
    """Answer ``pexeso search`` in a way other than semantic search alone, and write what is found.

    Raises
    ------
    click.UsageError
        An option was given that the way has no use for.
    """
    from pexeso.token_search.opening import open_token_sets

    shown = n_values if with_values else 0
    if how == "all":
        if form == "csv" and with_values:
            raise click.UsageError("--method all writes one row a column as CSV: leave --explain out, or take --json.")
        opened = asked.open(index)
        _write_combined([_every_way(opened, each, asked) for each in queries], form, name_queries, with_values, shown)
        return
    chosen = _chosen(how, asked)
    opened = open_token_sets(index)
    search = opened.overlap if how == "overlap" else opened.contain
    found = [search(query, **chosen) for query in queries]
    write_equal_text(found, form, name_queries, shown, with_values=with_values, option=_PAIRS_OPTION)


def _chosen(how: str, asked: Asked) -> dict[str, Any]:
    """Return the arguments of `Index.overlap` or `Index.contain`."""
    usable = (*_OF_EVERY_WAY, *(("min_joinability",) if how == "containment" else ()))
    given = [each.name for each in fields(Asked) if getattr(asked, each.name) != each.default]
    useless = [_OPTION_OF.get(name, f"--{name.replace('_', '-')}") for name in given if name not in usable]
    if useless:
        raise click.UsageError(
            f"--method {how} compares equal texts and has no use for {', '.join(useless)}: leave {'it' if len(useless) == 1 else 'them'} out."
        )
    found = {"k": asked.k, "min_containment": asked.min_joinability}
    given_ones = {name: value for name, value in found.items() if value is not None}
    return {"exclude_self": asked.exclude_self, **given_ones}


def _every_way(index: Index, query: QueryColumn, asked: Asked) -> CombinedResult:
    from pexeso.answers.combined import search_combined

    return search_combined(index, query, **asked.to_search())


def _write_combined(
    results: Sequence[CombinedResult], form: str, name_queries: bool, with_values: bool, n_values: float
) -> None:
    from pexeso.answers.combined import FIELDS

    if form == "csv":
        named = ("query_column",) if name_queries else ()
        write_csv((*named, *FIELDS), (row for result in results for row in _csv_rows(result, name_queries)))
    for position, result in enumerate(results):
        if form == "json":
            (write_json_line if name_queries else write_json)(result.to_dict(explain=with_values))
        elif form == "jsonl":
            named_line = {"query_column": result.query["column"]} if name_queries else {}
            for match in result:
                write_json_line({**named_line, **match.to_dict(explain=with_values)})
        elif form == "table":
            if name_queries:
                click.echo(f"{'' if position == 0 else chr(10)}{plain(result.query['column'])}")
            _write_table(result, n_values)
    for result in results:
        talk(f"{plain(result.query['column']) + ': ' if name_queries else ''}{count(len(result), 'column')}")


def _csv_rows(result: CombinedResult, name_queries: bool):
    for match in result:
        told = {**match.to_dict(), "found_by": " ".join(match.found_by)}
        yield (*((result.query["column"],) if name_queries else ()), *told.values())


def _write_table(result: CombinedResult, n_values: float) -> None:
    if not len(result):
        talk("No column was found in any way. Try a larger --max-distance, or a smaller --min-joinability.")
        return
    rows = [(*_evidence(match, result.query["values"]), match.table, match.column) for match in result]
    names = ("share", "semantic", "equal values", "table", "column")
    header, *lines = table_lines(names, rows, ">>><<", most=MAX_NAME)
    below = [_why(match, n_values) if n_values else [] for match in result]
    click.echo("\n".join([header, *explained_lines(lines, below)]))


def _why(match: CombinedMatch, n_values: float) -> list[str]:
    """Lay out the pairs that match semantically, which the shared values are among; without any, the shared values."""
    if match.meaning is not None:
        return pair_lines(match.meaning.pairs(), n_values)
    return [] if match.equal_text is None else value_lines(match.equal_text.shared(), n_values, _PAIRS_OPTION)


def _evidence(match: CombinedMatch, asked: int) -> tuple[str, str, str]:
    """Write the share that a column is ranked by, the rows that match semantically, and the values that it shares."""
    meaning, equal = match.meaning, match.equal_text
    return (
        percent(match.share),
        "" if meaning is None else f"{meaning.matched:,}/{meaning.total:,} rows",
        "" if equal is None else f"{equal.overlap:,}/{asked:,} values",
    )
