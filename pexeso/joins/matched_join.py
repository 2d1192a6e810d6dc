"""Join of a match with the user's table.

Pandas and Arrow tables are joined in memory, Spark DataFrames in Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.mapping import JoinMapping, make_mapping
from pexeso.joins.matched_rows import FoundRows, find_rows
from pexeso.joins.options import JoinOptions
from pexeso.joins.tables import Joined, join_table, join_texts
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.rows import read_typed_rows
from pexeso.store.io.location import Location

if TYPE_CHECKING:
    from pathlib import Path

    from pexeso.results.matches import Match
    from pexeso.semantic.encoded_query import EncodedQuery

SPARK_LAKE = "spark:"
"""What the name of a lake begins with that was one of Spark's tables."""


@dataclass(frozen=True)
class Lake:
    """The lake of an index, as far as a join needs it.

    Attributes
    ----------
    max_table_bytes : int
        Tables of more bytes were left out of the index, and are not read.
    """

    where: Path | Location
    normaliser: Normaliser
    max_table_bytes: int
    labels_of: Callable[[str], list[str]]

    @property
    def is_of_spark(self) -> bool:
        """Whether it was one of Spark's tables, which are not read here."""
        return str(self.where).startswith(SPARK_LAKE)


def join_match(
    lake: Lake,
    query: EncodedQuery,
    match: Match,
    table: Any,
    on: str | int | None,
    options: JoinOptions,
    to: str | None = None,
    texts: pa.StringArray | None = None,
) -> Joined:
    """Join a match with a table of the user's; parameters as for `pexeso.Match.join`.

    `texts` are by what rows of a table in memory are joined, in place of the cells of `on`.
    """
    on = on if on is not None else query.column.column
    if hasattr(table, "sparkSession"):
        if to is not None:
            raise InputError(
                f"A Spark DataFrame is joined to a Spark DataFrame: leave out to={to!r}."
            )
        from pexeso.joins.spark import FoundTable, join_frame

        mapping = _mapping(query, match, options)
        labels = lake.labels_of(match.table)
        lake_table = FoundTable(
            lake.where,
            match.table,
            match.column,
            labels,
            lake.normaliser,
            lake.max_table_bytes,
            mapping,
            options,
        )
        return join_frame(table, on, lake_table, query.column.values, from_spark=lake.is_of_spark)
    found_rows = rows_of_match(lake, query, match, options)
    if texts is not None:
        return join_texts(table, texts, found_rows, query.column.values, to=to)
    return join_table(table, on, found_rows, query.column.values, to=to)


def rows_of_match(lake: Lake, query: EncodedQuery, match: Match, options: JoinOptions) -> FoundRows:
    """Read the table of a match, and find its rows that are joined."""
    if lake.is_of_spark:
        raise InputError(
            "The index was built from Spark's tables, which are not read here: give a Spark "
            f"DataFrame to join with '{match.table}'."
        )
    rows, typed = read_typed_rows(lake.where, match.table, max_bytes=lake.max_table_bytes)
    mapping = _mapping(query, match, options)
    try:
        return find_rows(match.table, match.column, rows, mapping, lake.normaliser, options, typed)
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(
            f"'{match.table}' has changed since it was indexed, so bring the index up to date "
            f"(pexeso append). {error}"
        ) from None


def _mapping(query: EncodedQuery, match: Match, options: JoinOptions) -> JoinMapping:
    texts, query_of_text = query.texts
    return make_mapping(
        pa.array(texts, pa.string()), query_of_text, query.values, match.pairs(), options.values
    )
