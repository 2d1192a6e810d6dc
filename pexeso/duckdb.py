"""Joins by similar values in the SQL of DuckDB."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from pexeso.runtime.extras import require
from pexeso.two_tables import fuzzy_join

_PAIRS = pa.list_(
    pa.struct(
        [("left_value", pa.string()), ("right_value", pa.string()), ("distance", pa.float64())]
    )
)

# A row is a struct, whose fields a text can name. The rows are joined by DuckDB, which need not
# hold them; pexeso has the distinct values alone.
_MACRO = """
CREATE OR REPLACE TEMP MACRO pexeso_join(
    left_table, right_table, left_column, right_column, max_distance := NULL
) AS TABLE
WITH pairs AS (
    SELECT unnest(pexeso_pairs(
        (SELECT list(DISTINCT struct_extract(l, left_column)::VARCHAR)
         FROM query_table(left_table) AS l),
        (SELECT list(DISTINCT struct_extract(r, right_column)::VARCHAR)
         FROM query_table(right_table) AS r),
        max_distance::DOUBLE
    )) AS pair
)
SELECT l.*, r.*, pair.distance AS match_distance
FROM query_table(left_table) AS l
LEFT JOIN pairs ON struct_extract(l, left_column)::VARCHAR = pair.left_value
LEFT JOIN query_table(right_table) AS r
ON struct_extract(r, right_column)::VARCHAR = pair.right_value
"""


def register(connection: Any) -> None:
    """Add the table function ``pexeso_join`` to a connection of DuckDB, until that is closed.

    ``pexeso_join(LEFT, RIGHT, LEFT_COLUMN, RIGHT_COLUMN, max_distance := NULL)`` takes the names of
    two tables or views, and of a column of either. It has all rows of the left table, the columns
    of both, and ``match_distance``: each value is joined with the nearest ones of the right column,
    as `pexeso.fuzzy_join` does, and with none beyond `max_distance`. Values are compared as DuckDB
    writes them as text.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection

    Raises
    ------
    MissingPackageError
        Duckdb is not installed.

    Examples
    --------
    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> register(connection)
    >>> _ = connection.execute("CREATE TABLE mine AS SELECT 'Kobenhavn' AS city")
    >>> _ = connection.execute("CREATE TABLE codes AS SELECT 'København' AS town, 'DK' AS code")
    >>> connection.sql("FROM pexeso_join('mine', 'codes', 'city', 'town')").fetchall()
    [('Kobenhavn', 'København', 'DK', 0.0)]
    """
    duckdb = require("duckdb", "A join in the SQL of DuckDB")
    texts = duckdb.list_type("VARCHAR")
    pair = {"left_value": "VARCHAR", "right_value": "VARCHAR", "distance": "DOUBLE"}
    pairs = duckdb.list_type(duckdb.struct_type(pair))
    with suppress(duckdb.InvalidInputException):  # there is none yet
        connection.remove_function("pexeso_pairs")
    connection.create_function(
        "pexeso_pairs",
        _pairs,
        [texts, texts, "DOUBLE"],
        pairs,
        type="arrow",
        null_handling="special",
    )
    connection.execute(_MACRO)


def _pairs(left: pa.ChunkedArray, right: pa.ChunkedArray, max_distance: pa.ChunkedArray) -> Any:
    """Return the pairs of values for each row of lists: one row, but where a query has more."""
    rows = zip(left, right, max_distance.to_pylist(), strict=True)
    return pa.array([_nearest_pairs(*row) for row in rows], _PAIRS)


def _nearest_pairs(
    left: pa.ListScalar, right: pa.ListScalar, max_distance: float | None
) -> list[dict[str, Any]]:
    empty = pa.array([], pa.string())
    ours, theirs = (empty if side.values is None else side.values for side in (left, right))
    if ours.null_count == len(ours) or theirs.null_count == len(theirs):
        return []
    joined = fuzzy_join(
        pa.table({"left_value": ours}),
        pa.table({"right_value": theirs}),
        left_on="left_value",
        right_on="right_value",
        max_distance=max_distance,
        how="inner",
        provenance=("distance",),
        many_to_many=True,
    )
    return joined.rename_columns({"match_distance": "distance"}).to_pylist()
