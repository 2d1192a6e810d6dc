"""``pexeso search --how``: the same query by overlap, by containment, or by all evidence in one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from pexeso.cli.equal_text import value_lines, write_equal_text
from pexeso.cli.options import Asked
from pexeso.cli.output import MAX_NAME, count, table_lines, talk, write_csv, write_json, write_json_line
from pexeso.cli.report import pair_lines, percent
from pexeso.wording import plain

if TYPE_CHECKING:
    from pexeso.every_way import CombinedMatch, CombinedResult
    from pexeso.queries import QueryColumn

MEANING = "meaning"
HOWS = (MEANING, "overlap", "containment", "all")

_OF_EVERY_WAY = ("k", "exclude_self")
_INDENT = "    "


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
    """Answer ``pexeso search`` in a way that is not by meaning alone, and write what is found.

    Raises
    ------
    click.UsageError
        An option was given that the way has no use for.
    """
    if how == "all":
        results = [_every_way(index, query, asked) for query in queries]
        _write_combined(results, form, name_queries, with_values, n_values if with_values else 0)
        return
    found = [_equal_text(how, index, query, asked) for query in queries]
    write_equal_text(found, form, name_queries, n_values if with_values else 0, with_values=with_values)


def _equal_text(how: str, index: str, query: QueryColumn, asked: Asked):
    from pexeso.equal_text.opening import open_token_sets

    usable = (*_OF_EVERY_WAY, *(("min_joinability",) if how == "containment" else ()))
    given = [each.name for each in fields(Asked) if getattr(asked, each.name) != each.default]
    useless = [f"--{name.replace('_', '-')}" for name in given if name not in usable]
    if useless:
        raise click.UsageError(
            f"--how {how} compares equal texts and has no use for {', '.join(useless)}: leave it out."
        )
    opened = open_token_sets(index)
    chosen = {} if asked.k is None else {"k": asked.k}
    if how == "overlap":
        return opened.overlap(query, exclude_self=asked.exclude_self, **chosen)
    if asked.min_joinability is not None:
        chosen["min_containment"] = asked.min_joinability
    return opened.contain(query, exclude_self=asked.exclude_self, **chosen)


def _every_way(index: str, query: QueryColumn, asked: Asked) -> CombinedResult:
    from pexeso.every_way import search_every_way

    return search_every_way(asked.open(index), query, **asked.to_search())


def _write_combined(
    results: Sequence[CombinedResult], form: str, name_queries: bool, with_values: bool, n_values: float
) -> None:
    from pexeso.every_way import FIELDS

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
    names = ("share", "by meaning", "by equal text", "table", "column")
    header, *lines = table_lines(names, rows, ">>><<", most=MAX_NAME)
    click.echo(header)
    for line, match in zip(lines, result, strict=True):
        click.echo(line)
        if n_values and match.meaning is not None:
            click.echo("\n".join(pair_lines(match.meaning.pairs(), n_values)))
        elif n_values and match.equal_text is not None:
            click.echo("\n".join(value_lines(match.equal_text.shared(), n_values)))


def _evidence(match: CombinedMatch, asked: int) -> tuple[str, str, str]:
    """Write the share that a column is ranked by, the rows that match by meaning, and the values that it shares."""
    meaning, equal = match.meaning, match.equal_text
    return (
        percent(match.share),
        "" if meaning is None else f"{meaning.matched:,}/{meaning.total:,} rows",
        "" if equal is None else f"{equal.overlap:,}/{asked:,} values",
    )
