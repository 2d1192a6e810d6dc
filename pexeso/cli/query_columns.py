"""The query columns that commands are given as FILE:COLUMN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.cli.output.output import talk

if TYPE_CHECKING:
    from pexeso.search.query import QueryColumn


def read_queries(spec: str, every_column: bool, *, numbers: bool = False) -> list[QueryColumn]:
    """Read the query column of FILE:COLUMN, or all columns of FILE: those of text and dates, and with `numbers` of these too."""
    from pexeso.errors import QueryError
    from pexeso.lake.choose import KINDS
    from pexeso.search.query import TEXT_KINDS, read_every_query, read_query, split_spec

    file, column = split_spec(spec)
    if not every_column:
        query = read_query(spec)
        if column is None:
            talk(f"No column was named: searching with {query.column!r}.")
        return [query]
    if column is not None:
        raise click.UsageError(f"--all-columns takes a file alone. Got the column {column!r} too.")
    queries = read_every_query(file, kinds=KINDS if numbers else TEXT_KINDS)
    if not queries:
        raise QueryError(
            f"'{file}' has no column of {'text, dates or numbers' if numbers else 'text or dates'} to search with."
        )
    return queries
