"""The types that the columns of a found table have in a Spark DataFrame.

They are those of its file, as in a join in memory, or the nearest that Spark has; a column is text
where Spark has none, or where a cell does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

_NEAREST = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
_SAME = frozenset(
    {
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.float32(), pa.float64(), pa.date32()),
    }
)
_MOST_DIGITS = 38


def spark_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type by which Spark gets values of a type; None where it has none.

    Examples
    --------
    >>> spark_type(pa.uint16()), spark_type(pa.timestamp("ns")), spark_type(pa.time32("s"))
    (DataType(int32), TimestampType(timestamp[us]), None)
    """
    types = pa.types
    if kind in _SAME:
        return kind
    if kind in _NEAREST:
        return _NEAREST[kind]
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision <= _MOST_DIGITS
        return pa.decimal128(kind.precision, kind.scale) if fits else None
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = spark_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if types.is_struct(kind):
        inner = [(field.name, spark_type(field.type)) for field in kind]
        return None if any(inner_type is None for _, inner_type in inner) else pa.struct(inner)
    return None


def spark_columns(rows: pa.Table, typed: Sequence[pa.ChunkedArray] | None) -> list[pa.ChunkedArray]:
    """Return the columns of a table as Spark gets them."""
    if typed is None:
        return rows.columns
    return [_cast(*pair) for pair in zip(typed, rows.columns, strict=True)]


def _cast(column: pa.ChunkedArray, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = spark_type(column.type)
    if kind is None:
        return texts
    # Spark's timestamps have microseconds: what is finer is cut off, as where Spark reads the file.
    is_finer = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    try:
        return column.cast(kind, safe=not is_finer)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return texts
