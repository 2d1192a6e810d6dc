"""An Arrow table as a DataFrame of pandas that holds the same cells."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.typed.value_texts import is_text

if TYPE_CHECKING:
    import pandas as pd

_FIRST_DAY, _LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))


def in_pandas(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a DataFrame of pandas.

    Whole numbers are ``Int64`` or ``UInt64`` whether or not some are missing, so that none is
    rounded and types do not depend on the cells. Missing texts are NaN, and nested cells are lists
    and dictionaries of Python. Times of day in nanoseconds, finer than those of Python, are texts,
    and so are the dates of a column with one outside the years 1 to 9999, which Python has.

    Examples
    --------
    >>> in_pandas(pa.table({"n": [2**60 + 1, None]}))["n"].tolist()
    [1152921504606846977, <NA>]
    """
    import pandas as pd

    cells_at = {at: _cells(column) for at, column in enumerate(table.columns)}
    apart = {at: cells for at, cells in cells_at.items() if cells is not None}
    for at in apart:  # what holds their places is cheap to convert
        table = table.set_column(at, table.column_names[at], pa.nulls(len(table)))
    frame = table.to_pandas(types_mapper=whole_number_type)
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    shown = [at for at, name in enumerate(table.column_names) if name not in index]
    for position, at in enumerate(shown):
        if at in apart:
            cells = pd.Series(apart[at], index=frame.index, dtype=object)
        elif is_text(table.field(at).type) and frame.dtypes.iloc[position].kind == "O":
            # pandas would have None, and writes that otherwise than other missing cells.
            cells = frame.iloc[:, position]
            cells = cells.where(cells.notna(), np.nan)
        else:
            continue
        frame.isetitem(position, cells)
    return frame


def _cells(column: pa.ChunkedArray) -> list[Any] | None:
    """Return the cells of a column that pandas would change or refuse, or None."""
    if pa.types.is_nested(column.type):
        return column.to_pylist()  # by way of NumPy whole numbers beside missing ones are rounded
    if pa.types.is_time64(column.type) and column.type.unit == "ns":
        try:
            return pc.cast(column, pa.time64("us")).to_pylist()
        except pa.ArrowInvalid:
            return pc.cast(column, pa.string()).to_pylist()
    if pa.types.is_date(column.type):
        days = pc.min_max(column.cast(pa.date32()).cast(pa.int32())).as_py()
        if days["min"] is not None and not _FIRST_DAY <= days["min"] <= days["max"] <= _LAST_DAY:
            return pc.cast(column, pa.string()).to_pylist()
    return None


def whole_number_type(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    """Return the pandas type of whole numbers, of which some may be missing; None for others."""
    import pandas as pd

    if not pa.types.is_integer(kind):
        return None
    return pd.UInt64Dtype() if pa.types.is_unsigned_integer(kind) else pd.Int64Dtype()
