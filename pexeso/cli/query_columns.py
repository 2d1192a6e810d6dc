"""The query columns that commands are given as FILE:COLUMN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pexeso.cli.output import talk

if TYPE_CHECKING:
    from pexeso.queries import QueryColumn


def read_queries(spec: str, every_column: bool) -> list[QueryColumn]:
    """Read the query column of FILE:COLUMN, or all text columns of FILE."""
    from pexeso.errors import QueryError
    from pexeso.queries import read_every_query, read_query, split_spec

    file, column = split_spec(spec)
    if not every_column:
        query = read_query(spec)
        if column is None:
            talk(f"No column was named: searching with {query.column!r}.")
        return [query]
    if column is not None:
        raise click.UsageError(f"--every-column takes a file alone. Got the column {column!r} too.")
    queries = read_every_query(file)
    if not queries:
        raise QueryError(f"'{file}' has no column of text or dates to search with.")
    return queries
