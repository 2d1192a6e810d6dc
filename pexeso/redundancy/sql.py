"""Selections as the text of Spark SQL."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.redundancy.filters import Condition, Transformation

_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"}
)


def to_sql(
    transformation: Transformation, parent: str, casts: Mapping[str, str] | None = None
) -> str:
    """Write a selection as a statement of Spark SQL.

    Examples
    --------
    >>> condition = Condition("year", pa.int64(), None, 1990, 1999)
    >>> to_sql(Transformation(("town",), ("Town",), (condition,)), "all.csv")
    'SELECT `town` AS `Town` FROM `all.csv` WHERE `year` BETWEEN 1990 AND 1999'
    """
    for names in (transformation.columns, transformation.names):
        counts = Counter(name.lower() for name in names)
        for name in names:
            if not name or counts[name.lower()] > 1:
                raise InputError(
                    f"A statement cannot name the column {name!r}: names must differ by more than "
                    "their case, and none can be empty."
                )
    columns = ", ".join(
        _column(ours, alias, (casts or {}).get(ours))
        for ours, alias in zip(transformation.columns, transformation.names, strict=True)
    )
    distinct = "DISTINCT " if transformation.distinct else ""
    text = f"SELECT {distinct}{columns} FROM {quoted(parent)}"
    if transformation.conditions:
        text += " WHERE " + " AND ".join(map(_condition, transformation.conditions))
    return text


def _column(name: str, called: str, cast: str | None) -> str:
    if cast is not None:
        return f"CAST({quoted(name)} AS {cast}) AS {quoted(called)}"
    return quoted(name) if name == called else f"{quoted(name)} AS {quoted(called)}"


_TYPES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint8": "SMALLINT",
    "uint16": "INT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20, 0)",
    "halffloat": "FLOAT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
}


def sql_type(kind: pa.DataType) -> str | None:
    """Return the type that Spark reads from Parquet for one of Arrow; None for nested and others.

    Examples
    --------
    >>> sql_type(pa.int32()), sql_type(pa.dictionary(pa.int8(), pa.string()))
    ('INT', 'STRING')
    """
    types = pa.types
    if types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "STRING"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "BINARY"
    if types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    return _TYPES.get(str(kind))


def quoted(name: str) -> str:
    """Return a name in back-ticks."""
    return "`" + name.replace("`", "``") + "`"


def _condition(condition: Condition) -> str:
    column = quoted(condition.column)
    missing = f"{column} IS NULL"
    value = f"CAST({column} AS DOUBLE)" if condition.as_number else column
    kind = condition.kind
    if condition.values is not None:
        listed = [literal(constant, kind) for constant in condition.values]
        if not listed:
            return missing if condition.with_missing else "FALSE"
        text = f"{value} = {listed[0]}" if len(listed) == 1 else f"{value} IN ({', '.join(listed)})"
    else:
        # A scan of Parquet takes -0.0 for less than 0.0, which are equal: bounds let both in.
        is_float = pa.types.is_floating(kind)
        low, high = (
            None if bound is None else literal(zero if is_float and bound == 0 else bound, kind)
            for bound, zero in ((condition.low, -0.0), (condition.high, 0.0))
        )
        if low is not None and low == high:
            text = f"{value} = {low}"
        elif low is None and high is None:
            return f"{column} IS NOT NULL"
        elif low is not None and high is not None:
            text = f"{value} BETWEEN {low} AND {high}"
        else:
            text = f"{value} >= {low}" if high is None else f"{value} <= {high}"
    return f"({text} OR {missing})" if condition.with_missing else text


def literal(value: Any, kind: pa.DataType) -> str:
    """Write a value so that SQL reads exactly that value.

    Examples
    --------
    >>> literal("Rome", pa.string()), literal(0.1, pa.float64())
    ("'Rome'", "CAST('0.1' AS DOUBLE)")
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value) if -(2**63) < value < 2**63 else f"CAST('{value}' AS DECIMAL(20, 0))"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({kind.precision}, {max(0, kind.scale)}))"
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        if kind.tz is None:
            return f"TIMESTAMP_NTZ'{text}'"
        return f"TIMESTAMP'{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ')}+00:00'"
    if isinstance(value, dt.date):
        return f"DATE'{value.isoformat()}'"
    return "'" + str(value).translate(_ESCAPES) + "'"
