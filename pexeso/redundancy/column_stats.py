"""What is known of the values of a column: bounds, missing cells, NaN.

A bound of a child can only refute containment where it is a *witness*, a value that is there; one
of a parent where it is a *cover*, which no value exceeds (R2D2's min-max pruning, MMP, made sound
for what is known in part). Bounds are exact: numbers as whole numbers, fractions or doubles, times
as nanoseconds, texts as their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.readers.plain_arrays import plain

Bound = int | float | Fraction | bytes

MAX_BOUND_BYTES = 64
"""Longer texts are cut: they are covers then, not witnesses."""

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


@dataclass(frozen=True)
class ColumnStats:
    """What is known of the values of a column; what is not known never refutes anything.

    Attributes
    ----------
    min, max : int, float, Fraction, bytes or None
        Of the values that are neither missing nor NaN; None where it is not known, or where there
        are none.
    min_witness, max_witness : bool
        Whether it is the value of a row.
    min_cover, max_cover : bool
        Whether no value lies beyond.
    null_count : int or None
        Missing cells, where they are known.
    has_value : bool
        A value is known that is neither missing nor NaN.
    all_null : bool
        It is known that all cells are missing.
    nan : bool or None
        Whether a value is NaN, where it is known.
    """

    min: Bound | None = None
    max: Bound | None = None
    min_witness: bool = False
    max_witness: bool = False
    min_cover: bool = False
    max_cover: bool = False
    null_count: int | None = None
    has_value: bool = False
    all_null: bool = False
    nan: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {**vars(self), "min": _to_json(self.min), "max": _to_json(self.max)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ColumnStats:
        """Return what `to_json` gave."""
        return cls(**{**fields, "min": _from_json(fields["min"]), "max": _from_json(fields["max"])})


def _to_json(bound: Bound | None) -> int | list[str] | None:
    if isinstance(bound, Fraction):
        return ["fraction", str(bound)]
    if isinstance(bound, float):
        return ["float", bound.hex()]
    if isinstance(bound, bytes):
        return ["bytes", bound.hex()]
    return bound


def _from_json(bound: Any) -> Bound | None:
    if not isinstance(bound, list):
        return bound
    kind, text = bound
    return {"fraction": Fraction, "float": float.fromhex, "bytes": bytes.fromhex}[kind](text)


def scan_stats(values: pa.Array) -> ColumnStats:
    """Return the statistics of values, all of which are looked at.

    Examples
    --------
    >>> found = scan_stats(pa.array([3.0, None, float("nan")]))
    >>> found.min, found.max, found.null_count, found.nan
    (3.0, 3.0, 1, True)
    """
    values = plain(values)
    kind = values.type
    nulls = values.null_count
    if pa.types.is_dictionary(kind):
        used = values.indices.unique().drop_null()
        stats = scan_stats(values.dictionary.take(used))
        missing = values.dictionary.take(values.indices).null_count
        return _with_nulls(stats, missing, len(values))
    known = values.drop_null() if nulls else values
    nan = False
    if pa.types.is_floating(kind) and len(known):
        known = known.cast(pa.float64())
        is_nan = pc.is_nan(known)
        nan = bool(pc.any(is_nan).as_py())
        known = known.filter(pc.invert(is_nan)) if nan else known
    low = high = None
    if len(known):
        low, high = _bounds(known)
    return _with_nulls(_bounded(low, high, bool(len(known)), nan), nulls, len(values))


def _with_nulls(stats: ColumnStats, nulls: int, n: int) -> ColumnStats:
    return ColumnStats(**{**vars(stats), "null_count": nulls, "all_null": nulls == n})


def _bounded(low: Bound | None, high: Bound | None, has_value: bool, nan: bool) -> ColumnStats:
    min_witness = min_cover = low is not None
    max_witness = max_cover = high is not None
    if isinstance(low, bytes) and len(low) > MAX_BOUND_BYTES:
        low, min_witness = low[:MAX_BOUND_BYTES], False
    if isinstance(high, bytes) and len(high) > MAX_BOUND_BYTES:
        high, max_witness = _after(high[:MAX_BOUND_BYTES]), False
        max_cover = high is not None
    return ColumnStats(
        low, high, min_witness, max_witness, min_cover, max_cover, None, has_value, False, nan
    )


def _after(prefix: bytes) -> bytes | None:
    """Return the least bytes above all that begin so; None where there are none."""
    shorter = prefix.rstrip(b"\xff")
    return shorter[:-1] + bytes([shorter[-1] + 1]) if shorter else None


def _bounds(known: pa.Array) -> tuple[Bound | None, Bound | None]:
    kind, types = known.type, pa.types
    factor = 1
    if types.is_string(kind) or types.is_large_string(kind):
        known = known.cast(pa.large_string()).cast(pa.large_binary())  # may be no UTF-8
    elif types.is_fixed_size_binary(kind):
        known = known.cast(pa.large_binary())
    elif types.is_duration(kind):
        known = known.cast(pa.int64())
    elif types.is_date(kind):
        known = known.cast(pa.date32()).cast(pa.int32())
    elif types.is_timestamp(kind):
        known, factor = known.cast(pa.int64()), _NANOSECONDS[kind.unit]
    elif types.is_time(kind):
        whole = known.cast(pa.int32() if types.is_time32(kind) else pa.int64())
        known, factor = whole.cast(pa.int64()), _NANOSECONDS[kind.unit]
    elif types.is_boolean(kind):
        known = known.cast(pa.int8())
    elif not (
        types.is_integer(kind)
        or types.is_decimal(kind)
        or types.is_floating(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    ):
        return None, None
    extremes = pc.min_max(known).as_py()
    return _as_bound(extremes["min"], factor), _as_bound(extremes["max"], factor)


def _as_bound(value: Any, factor: int) -> Bound:
    if isinstance(value, int):
        return value * factor
    if isinstance(value, float | bytes):
        return value
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else exact


def merged(parts: Sequence[ColumnStats]) -> ColumnStats:
    """Return what is known of the values of several runs of rows together.

    Examples
    --------
    >>> both = merged([scan_stats(pa.array([1, 5])), scan_stats(pa.array([None, 9]))])
    >>> both.min, both.max, both.null_count
    (1, 9, 1)
    """
    if len(parts) == 1:
        return parts[0]
    bounds: dict[str, Any] = {}
    for name, choose in (("min", min), ("max", max)):
        known = [part for part in parts if getattr(part, name) is not None]
        chosen = choose(known, key=lambda part, name=name: getattr(part, name), default=None)
        bounds[name] = None if chosen is None else getattr(chosen, name)
        bounds[f"{name}_witness"] = chosen is not None and getattr(chosen, f"{name}_witness")
        bounds[f"{name}_cover"] = chosen is not None and all(
            getattr(part, f"{name}_cover") or part.all_null for part in parts
        )
    counts = [part.null_count for part in parts]
    nans = {part.nan for part in parts if not part.all_null}
    return ColumnStats(
        **bounds,
        null_count=None if None in counts else sum(filter(None, counts)),
        has_value=any(part.has_value for part in parts),
        all_null=all(part.all_null for part in parts),
        nan=True if True in nans else None if None in nans else False,
    )


def refutes(child: ColumnStats, parent: ColumnStats) -> str | None:
    """Return which rule shows that values of a child are missing in its parent, if one does.

    Both columns have compatible types. Rules: ``bounds``, ``nulls``, ``nan``.
    """
    if child.has_value and parent.all_null:
        return "bounds"
    for name, sign, other in (("min", 1, "max"), ("max", -1, "min")):
        ours, parent_bound = getattr(child, name), getattr(parent, name)
        if parent_bound is None or not getattr(parent, f"{name}_cover"):
            continue
        if (
            ours is not None
            and getattr(child, f"{name}_witness")
            and _before(ours, parent_bound, sign)
        ):
            return "bounds"
        far = getattr(child, other)
        if (
            child.has_value
            and far is not None
            and getattr(child, f"{other}_cover")
            and _before(far, parent_bound, sign)
        ):
            return "bounds"
    if child.null_count and parent.null_count == 0:
        return "nulls"
    if child.nan is True and parent.nan is False:
        return "nan"
    return None


def _before(ours: Any, other: Any, sign: int) -> bool:
    return ours < other if sign > 0 else ours > other
