"""Tables of pandas and Arrow: their columns by name, and columns put behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pexeso.errors import InputError


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns of a pandas or Arrow table by name, in order."""
    if isinstance(table, pa.Table):
        names, values = list(table.column_names), table.columns
    elif hasattr(table, "iloc") and hasattr(table, "columns"):
        names = [str(name) for name in table.columns]
        values = [table.iloc[:, position] for position in range(len(names))]
    else:
        raise InputError(
            "The table to enrich must be a pandas DataFrame or a pyarrow Table. Got "
            f"{type(table).__name__} instead."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            "Each column of the table to enrich must have a name of its own. Got several of "
            f"{', '.join(map(repr, twice))}."
        )
    if not len(table):
        raise InputError("The table to enrich has no rows.")
    return dict(zip(names, values, strict=True))


def with_columns(table: Any, names: Sequence[str], columns: Sequence[pa.Array]) -> Any:
    """Put columns behind those of a table; a pandas frame keeps its index.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.Table, n rows
    names : sequence of str
        None of them in the table.
    columns : sequence of pyarrow.Array (n,)

    Returns
    -------
    pandas.DataFrame or pyarrow.Table
        As `table`.
    """
    if isinstance(table, pa.Table):
        for name, cells in zip(names, columns, strict=True):
            table = table.append_column(name, cells)
        return table
    import pandas as pd

    series = (cells.to_pandas() for cells in columns)
    # Missing text is NaN, as in joins: pandas would have None, and writes that otherwise than other
    # missing cells.
    added = [each.where(each.notna(), float("nan")).set_axis(table.index) for each in series]
    return pd.concat(
        [table, *(each.rename(name) for each, name in zip(added, names, strict=True))], axis=1
    )
