"""How a table can be rebuilt from one that holds its rows: a selection, and its Spark SQL.

The rows of the parent that the child has are known by their hashes. What tells them from the others
is looked for among conditions on single columns: a list of values, or a range. Each is as tight as
the rows to be selected allow, so that a conjunction of such conditions is found if there is one.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.typed.value_texts import plain
from pexeso.redundancy.row_hashes import counted_rows, places_of

MAX_LISTED = 100  # values of a condition
MAX_CONDITIONS = 4

_MAX_PRECISION = 38  # digits of Spark's longest decimals
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"


@dataclass(frozen=True)
class Condition:
    """What the cells of a column have to be."""

    column: str
    kind: pa.DataType  # pa.DataType: of the values
    # tuple or None: The cell is one of these; None for a range
    values: tuple[Any, ...] | None = None
    # The range, both inclusive; None where it is open. Where both are, any cell will do that is not
    # missing.
    low: Any = None
    high: Any = None
    with_missing: bool = False  # A missing cell will do as well
    as_number: bool = False  # The text is compared as a number


@dataclass(frozen=True)
class Transformation:
    """A selection of columns, under new names, and of rows that meet all conditions."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    conditions: tuple[Condition, ...] = ()
    distinct: bool = False


def find_transformation(
    parent: Mapping[str, pa.Array],
    parent_rows: np.ndarray,
    child_rows: np.ndarray,
    columns: Sequence[str],
    names: Sequence[str] | None = None,
) -> Transformation | None:
    """Find how a child is rebuilt from a parent, by hashes of rows: uint64 (n, 2), (m, 2)."""
    whole = Transformation(tuple(columns), tuple(columns if names is None else names))
    if not len(child_rows) and len(parent_rows):
        return replace(whole, conditions=(Condition(columns[0], pa.null(), ()),))
    parent = {name: _decoded(cells) for name, cells in parent.items() if name}
    ours = counted_rows(child_rows)
    positions = places_of(parent_rows, ours)
    in_child = positions >= 0
    parent_counts = np.bincount(positions[in_child], minlength=len(ours))
    if (parent_counts < ours.counts).any():
        return None
    several = parent_counts > ours.counts
    if several.any() and (ours.counts == 1).all():
        conditions = _conditions(parent, in_child, ~in_child)
        if conditions is not None:
            return replace(whole, conditions=conditions, distinct=True)
    certain = in_child.copy()
    certain[in_child] = ~several[positions[in_child]]
    conditions = _conditions(parent, certain, ~in_child)
    if conditions is None:
        return None
    chosen = positions[rows_of(conditions, parent, len(positions))]
    right = (np.bincount(chosen, minlength=len(ours)) == ours.counts).all()
    return replace(whole, conditions=conditions) if right else None


def rows_of(
    conditions: Sequence[Condition], parent: Mapping[str, pa.Array], n_rows: int
) -> np.ndarray:
    """Return which rows meet all conditions: bool (n,)."""
    mask = np.ones(n_rows, bool)
    for condition in conditions:
        mask &= _met(condition, parent[condition.column])
    return mask


def _met(condition: Condition, cells: pa.Array) -> np.ndarray:
    values = cells.cast(pa.float64()) if condition.as_number else _decoded(cells)
    mask = values.is_valid()
    if condition.values == ():
        mask = pa.repeat(False, len(values))
    elif condition.values is not None:
        listed = pa.array(condition.values, condition.kind)
        mask = pc.and_(mask, pc.is_in(values, value_set=listed))
    for bound, compare in ((condition.low, pc.greater_equal), (condition.high, pc.less_equal)):
        if bound is not None:
            mask = pc.and_(mask, compare(values, pa.scalar(bound, condition.kind)))
    if condition.with_missing:
        mask = pc.or_(mask.fill_null(False), values.is_null())
    return mask.fill_null(False).to_numpy(zero_copy_only=False)


def _decoded(cells: pa.Array) -> pa.Array:
    """Return cells as values of a type that all functions of Arrow know, each written out."""
    cells = plain(cells)
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _conditions(
    parent: Mapping[str, pa.Array], take: np.ndarray, leave: np.ndarray
) -> tuple[Condition, ...] | None:
    """Find few conditions that all rows to take meet, and no row to leave out."""
    if not leave.any():
        return ()
    if not take.any():
        return None
    left = leave.copy()
    candidates = [
        (condition, ~_met(condition, parent[condition.column]))
        for condition in _candidates(parent, take)
    ]
    chosen: list[Condition] = []
    while left.any():
        gains = [int((out & left).sum()) for _, out in candidates]
        if len(chosen) == MAX_CONDITIONS or not any(gains):
            return None
        best, out = candidates[int(np.argmax(gains))]  # the first of those that leave out most
        chosen.append(best)
        left &= ~out
    return tuple(_simplified(chosen, parent, leave))


def _candidates(parent: Mapping[str, pa.Array], take: np.ndarray) -> Iterator[Condition]:
    rows = pa.array(take)
    lists, ranges = [], []
    for name, values in parent.items():
        kind = values.type
        if not _is_readable(kind) or not _fits_python(values):
            continue
        some = values.filter(rows)
        known, with_missing = some.drop_null(), bool(some.null_count)
        if not len(known):
            if _is_comparable(kind) or pa.types.is_boolean(kind):
                yield Condition(name, kind, (), with_missing=True)
            continue
        if _is_listable(kind):
            distinct = known.unique()
            if len(distinct) == 1:
                yield Condition(name, kind, tuple(distinct.to_pylist()), with_missing=with_missing)
                continue
            if len(distinct) <= MAX_LISTED:
                listed = tuple(sorted(distinct.to_pylist()))
                lists.append(Condition(name, kind, listed, with_missing=with_missing))
        if _is_text(kind) and _are_numbers(values):
            numbers = pc.min_max(known.cast(pa.float64())).as_py().values()
            range_ = Condition(name, pa.float64(), None, *numbers, with_missing, as_number=True)
            ranges.append(range_)
        elif _is_comparable(kind) and not _has_nan(values):
            bounds = pc.min_max(known).as_py().values()
            ranges.append(Condition(name, kind, None, *bounds, with_missing))
        elif not with_missing and values.null_count:
            ranges.append(Condition(name, kind))
    yield from ranges
    yield from lists


def _is_readable(kind: pa.DataType) -> bool:
    """Return whether Spark reads columns of a type from Parquet at all."""
    types = pa.types
    if types.is_decimal(kind):
        return 0 <= kind.scale <= kind.precision <= _MAX_PRECISION
    if types.is_timestamp(kind):
        return kind.unit != "ns"
    return not (types.is_time(kind) or types.is_float16(kind) or types.is_interval(kind))


def _fits_python(values: pa.Array) -> bool:
    """Return whether Python and SQL can write all values: years of four digits, texts in UTF-8."""
    kind = values.type
    try:
        if _is_text(kind):
            values.validate(full=True)  # a file may hold any bytes where texts should be
        elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            pc.min_max(values).as_py()
    except (pa.ArrowInvalid, OverflowError, ValueError):
        return False
    return True


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _are_numbers(values: pa.Array) -> bool:
    known = values.drop_null().unique()
    return len(known) > 0 and pc.all(pc.match_substring_regex(known, _NUMBER)).as_py()


def _has_nan(values: pa.Array) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _is_listable(kind: pa.DataType) -> bool:
    """Return whether equal values of a type are equal to SQL, whatever their form."""
    types = pa.types
    is_date_or_boolean = types.is_boolean(kind) or types.is_date32(kind)
    is_number = types.is_integer(kind) or types.is_decimal(kind)
    return is_number or is_date_or_boolean or _is_text(kind)


def _is_comparable(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_floating(kind):
        return not types.is_float16(kind)
    return types.is_timestamp(kind) or (_is_listable(kind) and not types.is_boolean(kind))


def _simplified(
    chosen: Sequence[Condition], parent: Mapping[str, pa.Array], leave: np.ndarray
) -> list[Condition]:
    """Open ranges and drop conditions where that lets no row in that is to be left out."""
    simplified = list(chosen)

    def good(conditions: Sequence[Condition]) -> bool:
        return not (rows_of(conditions, parent, len(leave)) & leave).any()

    for index in reversed(range(len(simplified))):
        without = simplified[:index] + simplified[index + 1 :]
        if without and good(without):
            simplified = without
            continue
        for side in ("low", "high"):
            condition = simplified[index]
            if None not in (condition.low, condition.high):
                opened = simplified.copy()
                opened[index] = replace(condition, **{side: None})
                if good(opened):
                    simplified = opened
    return simplified


_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"}
)


def to_sql(
    transformation: Transformation, parent: str, casts: Mapping[str, str] | None = None
) -> str:
    """Write a selection as a statement of Spark SQL.

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
    pairs = zip(transformation.columns, transformation.names, strict=True)
    columns = ", ".join(_column(ours, alias, (casts or {}).get(ours)) for ours, alias in pairs)
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

    >>> sql_type(pa.int32()), sql_type(pa.dictionary(pa.int8(), pa.string()))
    ('INT', 'STRING')
    """
    types = pa.types
    if types.is_dictionary(kind):
        return sql_type(kind.value_type)
    if _is_text(kind) or types.is_string_view(kind):
        return "STRING"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "BINARY"
    if types.is_decimal(kind) and _is_readable(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    return _TYPES.get(str(kind))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _condition(condition: Condition) -> str:
    column, kind = quoted(condition.column), condition.kind
    missing = f"{column} IS NULL"
    value = f"CAST({column} AS DOUBLE)" if condition.as_number else column
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
        if low is None and high is None:
            return f"{column} IS NOT NULL"
        if low == high:
            text = f"{value} = {low}"
        elif low is not None and high is not None:
            text = f"{value} BETWEEN {low} AND {high}"
        else:
            text = f"{value} >= {low}" if high is None else f"{value} <= {high}"
    return f"({text} OR {missing})" if condition.with_missing else text


def literal(value: Any, kind: pa.DataType) -> str:
    """Write a value so that SQL reads exactly that value."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value) if -(2**63) < value < 2**63 else f"CAST('{value}' AS DECIMAL(20, 0))"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({kind.precision}, {max(0, kind.scale)}))"
    if isinstance(value, dt.datetime):
        if kind.tz is None:
            return f"TIMESTAMP_NTZ'{value.replace(tzinfo=None).isoformat(' ')}'"
        return f"TIMESTAMP'{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ')}+00:00'"
    if isinstance(value, dt.date):
        return f"DATE'{value.isoformat()}'"
    return "'" + str(value).translate(_ESCAPES) + "'"
