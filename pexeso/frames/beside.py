"""Columns of Arrow put behind those of a table, which stays of the kind that it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.frames.in_pandas import in_pandas
from pexeso.frames.tables import to_polars


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

    # Without its metadata, which may name columns of a file as an index.
    beside = in_pandas(added.replace_schema_metadata(None))
    series = [beside.iloc[:, at].set_axis(table.index) for at in range(beside.shape[1])]
    return pd.concat([table, *series], axis=1)
