"""Columns of Arrow put behind those of a table, which stays of the kind that it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.lake.frames.in_pandas import in_pandas
from pexeso.lake.frames.tables import to_polars
from pexeso.lake.readers.plain_arrays import plain
from pexeso.store.io.wide_offsets import wide_for


def take_rows(table: Any, kind: str, rows: np.ndarray) -> Any:
    """Return rows of a table, in a new order; those of pandas are numbered from 0.

    Parameters
    ----------
    rows : int64 (r,)
    """
    if kind == "pandas":
        return table.iloc[rows].reset_index(drop=True)
    return take_cells(table, pa.array(rows)) if kind == "arrow" else table[rows]


def take_cells(table: pa.Table, rows: pa.Int64Array) -> pa.Table:
    """Return rows of an Arrow table, in a new order.

    See `take_column_cells` for the types of its columns.
    """
    columns = [take_column_cells(column, rows) for column in table.columns]
    fields = [
        field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, table.schema.metadata))


def take_column_cells(column: pa.ChunkedArray, rows: pa.Int64Array) -> pa.ChunkedArray:
    """Return cells of a column, in a new order; missing where a row is null.

    Texts and bytes get offsets of 64 bits where they are too many for 32. Views and runs, of which
    Arrow takes no rows, become arrays of ordinary types.
    """
    column = wide_for(column, rows)
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:
        chunks = [plain(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]]
        return pa.chunked_array(chunks).take(rows)


def put_beside(table: Any, kind: str, added: pa.Table) -> Any:
    """Put columns behind those of a table; one of pandas keeps its index."""
    if kind == "polars":
        return table.hstack(to_polars(added).get_columns())
    if kind == "arrow":
        for field, column in zip(added.schema, added.columns, strict=True):
            table = table.append_column(field, column)
        return table
    import pandas as pd

    # Without its metadata, which may name columns of a file as an index.
    beside = in_pandas(added.replace_schema_metadata(None))
    series = [beside.iloc[:, at].set_axis(table.index) for at in range(beside.shape[1])]
    return pd.concat([table, *series], axis=1)
