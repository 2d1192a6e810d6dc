"""How a table can be rebuilt from one that holds its rows: a selection of columns and rows.

The rows of the parent that the child has are known by their hashes. What tells them from the others
is looked for among conditions on single columns: a list of values, or a range. Each is as tight as
the rows to be selected allow, so that a conjunction of such conditions is found if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.readers.plain_arrays import plain
from pexeso.redundancy.containment import counted_rows, places_of

MAX_LISTED = 100
"""Most values of a condition."""

MAX_CONDITIONS = 4

_MAX_PRECISION = 38
"""Digits of Spark's longest decimals."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"


@dataclass(frozen=True)
class Condition:
    """What is asked of the cells of a column.

    Attributes
    ----------
    column : str
    values : tuple or None
        The cell is one of these; None for a range.
    low, high
        The range, both inclusive; None where it is open. Where both are, any cell will do that is
        not missing.
    with_missing : bool
        A missing cell will do as well.
    as_number : bool
        The text is compared as a number.
    kind : pa.DataType
        Of the values.
    """

    column: str
    kind: pa.DataType
    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None
    with_missing: bool = False
    as_number: bool = False


@dataclass(frozen=True)
class Transformation:
    """A selection of columns and rows of a parent.

    Attributes
    ----------
    columns : tuple of str
        Of the result, in its order, by the names of the parent.
    names : tuple of str
        What the result calls them.
    conditions : tuple of Condition
        A row has to meet all of them.
    distinct : bool
        Equal rows are one.
    """

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
    """Find how a child can be rebuilt from a parent, as often as each row stands in it.

    Parameters
    ----------
    parent_rows, child_rows : uint64 (n, 2), uint64 (m, 2)
        Hashes of rows on the columns of the child.

    Returns
    -------
    Transformation or None
        None where no selection of this kind gives the rows.

    Examples
    --------
    >>> from pexeso.redundancy.row_hashes import hashed_column, row_hashes
    >>> a, b = pa.array([1, 2, 3]), pa.array(["x", "y", "x"])
    >>> def rows(values):
    ...     return row_hashes(len(values), [hashed_column(values)], ["a"])
    >>> found = find_transformation({"a": a, "b": b}, rows(a), rows(pa.array([3, 1])), ["a"])
    >>> found.conditions[0].column, found.conditions[0].values
    ('b', ('x',))
    """
    whole = Transformation(tuple(columns), tuple(columns if names is None else names))
    if not len(child_rows) and len(parent_rows):
        return replace(whole, conditions=(Condition(columns[0], pa.null(), ()),))
    parent = {name: _plain(cells) for name, cells in parent.items() if name}
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
    values = _numbers(cells) if condition.as_number else _plain(cells)
    if condition.values == ():
        mask = pa.repeat(False, len(values))
    elif condition.values is not None:
        mask = pc.is_in(values, value_set=pa.array(condition.values, condition.kind))
        mask = pc.and_(mask, values.is_valid())
    else:
        mask = values.is_valid()
        for bound, compare in ((condition.low, pc.greater_equal), (condition.high, pc.less_equal)):
            if bound is not None:
                mask = pc.and_(mask, compare(values, pa.scalar(bound, condition.kind)))
    if condition.with_missing:
        mask = pc.or_(mask.fill_null(False), values.is_null())
    return mask.fill_null(False).to_numpy(zero_copy_only=False)


def _plain(cells: pa.Array) -> pa.Array:
    """Return cells as values of a type that all functions of Arrow know, each written out."""
    cells = plain(cells)
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def _numbers(cells: pa.Array) -> pa.Array:
    return cells.cast(pa.float64())


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
    while left.any() and len(chosen) < MAX_CONDITIONS and candidates:
        gains = [int((out & left).sum()) for _, out in candidates]
        best = int(np.argmax(gains))  # the first of those that leave out most
        if not gains[best]:
            return None
        chosen.append(candidates[best][0])
        left &= ~candidates[best][1]
    if left.any():
        return None
    return tuple(_simplified(chosen, parent, leave))


def _candidates(parent: Mapping[str, pa.Array], take: np.ndarray) -> Iterator[Condition]:
    """Yield the tightest conditions that all rows to take meet, simple ones first."""
    rows = pa.array(take)
    lists, ranges = [], []
    for name, values in parent.items():
        kind = values.type
        if not _is_readable(kind) or not _fits_python(values):
            continue
        some = values.filter(rows)
        known = some.drop_null()
        with_missing = bool(some.null_count)
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
            low, high = _least_and_most(_numbers(known))
            ranges.append(
                Condition(name, pa.float64(), None, low, high, with_missing, as_number=True)
            )
        elif _is_comparable(kind) and not _has_nan(values):
            ranges.append(Condition(name, kind, None, *_least_and_most(known), with_missing))
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
    if _is_text(values.type):
        try:
            values.validate(full=True)  # a file may hold any bytes where texts should be
        except pa.ArrowInvalid:
            return False
        return True
    if not (pa.types.is_timestamp(values.type) or pa.types.is_date(values.type)):
        return True
    try:
        pc.min_max(values).as_py()
    except (OverflowError, ValueError):
        return False
    return True


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _least_and_most(known: pa.Array) -> tuple[Any, Any]:
    extremes = pc.min_max(known).as_py()
    return extremes["min"], extremes["max"]


def _are_numbers(values: pa.Array) -> bool:
    known = values.drop_null().unique()
    return len(known) > 0 and pc.all(pc.match_substring_regex(known, _NUMBER)).as_py()


def _has_nan(values: pa.Array) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _is_listable(kind: pa.DataType) -> bool:
    """Return whether equal values of a type are equal to SQL, whatever their form."""
    types = pa.types
    return (
        types.is_integer(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_boolean(kind)
        or types.is_date32(kind)
        or types.is_decimal(kind)
    )


def _is_comparable(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(kind):
        return True
    return (_is_listable(kind) and not types.is_boolean(kind)) or (
        types.is_floating(kind) and not types.is_float16(kind)
    )


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
            if condition.values is None and None not in (condition.low, condition.high):
                opened = [
                    *simplified[:index],
                    replace(condition, **{side: None}),
                    *simplified[index + 1 :],
                ]
                if good(opened):
                    simplified = opened
    return simplified
