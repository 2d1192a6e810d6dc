"""Columns of Arrow put behind those of a table, which stays of the kind that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.frames.tables import to_polars

if TYPE_CHECKING:
    import pandas as pd


def take_rows(table: Any, kind: str, rows: np.ndarray) -> Any:
    """Return rows of a table, in a new order; those of pandas are numbered from 0.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or polars.DataFrame
    kind : {"pandas", "arrow", "polars"}
    rows : int64 (r,)
    """
    if kind == "pandas":
        return table.iloc[rows].reset_index(drop=True)
    return table.take(pa.array(rows)) if kind == "arrow" else table[rows]


def put_beside(table: Any, kind: str, added: pa.Table) -> Any:
    """Put columns behind those of a table; one of pandas keeps its index.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or polars.DataFrame, n rows
    kind : {"pandas", "arrow", "polars"}
    added : pyarrow.Table, n rows
        Its names are none of those of the table.
    """
    if kind == "polars":
        return table.hstack(to_polars(added).get_columns())
    if kind == "arrow":
        for field, column in zip(added.schema, added.columns, strict=True):
            table = table.append_column(field, column)
        return table
    import pandas as pd

    columns = zip(added.column_names, added.columns, strict=True)
    series = [_as_series(column, name).set_axis(table.index) for name, column in columns]
    return pd.concat([table, *series], axis=1)


def _as_series(column: pa.ChunkedArray, name: str) -> pd.Series:
    """Convert a column to a pandas series.

    Missing text cells are NaN, whole numbers may be missing, and lists remain lists.
    """
    import pandas as pd

    if pa.types.is_integer(column.type):
        return column.to_pandas(types_mapper={column.type: pd.Int64Dtype()}.get).rename(name)
    if pa.types.is_list(column.type):
        return pd.Series(column.to_pylist(), dtype=object, name=name)
    # pandas would have None, and writes that otherwise than other missing cells.
    cells = column.to_pandas().rename(name)
    return cells.where(cells.notna(), np.nan) if pa.types.is_string(column.type) else cells
