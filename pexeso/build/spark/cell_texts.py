"""Cells of Spark tables as the texts that they have in files and in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pexeso.lake.typed.value_texts import in_utc, value_texts

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def cell_text(value: Column, kind: DataType) -> Column:
    """Convert values to text as a file of the same type gives them.

    Parameters
    ----------
    kind : pyspark.sql.types.DataType
        Its type. Spark writes floats in its own way, such as 1.0E7, decimals in one that hangs on
        the session, and points of time in the time zone of the session, without naming it. So all
        of them go through `value_texts` in tasks of Python; all else is cast in Spark. Wrong bytes
        of a text become the replacement character.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql import types

    as_in_files = (
        types.FloatType,
        types.DoubleType,
        types.DecimalType,
        types.TimestampType,
        types.TimestampNTZType,
    )
    if isinstance(kind, as_in_files):
        return sql.arrow_udf(_texts, "string")(value)
    return sql.make_valid_utf8(value.cast("string"))


def _texts(values: pa.Array) -> pa.Array:
    return value_texts(in_utc(values), pa.string())
