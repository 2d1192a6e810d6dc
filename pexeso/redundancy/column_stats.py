"""What is known of the values of a column: bounds, missing cells, NaN.

A bound of a child can only refute containment where it is a *witness*, a value that is there; one
of a parent where it is a *cover*, which no value exceeds (R2D2's min-max pruning, MMP, made sound
for what is known in part). Bounds are exact: numbers as whole numbers, fractions or doubles, times
as nanoseconds, texts as their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.typed.value_texts import plain

Bound = int | float | Fraction | bytes

MAX_BOUND_BYTES = 64  # longer texts are cut: they are covers then, not witnesses

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


@dataclass(frozen=True)
class ColumnStats:
    """What is known of the values of a column; what is not known never refutes anything."""

    # int, float, Fraction, bytes or None: of the values that are neither missing nor NaN; None
    # where it is not known, or where there are none
    min: Bound | None = None
    max: Bound | None = None
    # Whether it is the value of a row
    min_witness: bool = False
    max_witness: bool = False
    # Whether no value lies beyond
    min_cover: bool = False
    max_cover: bool = False
    null_count: int | None = None  # Missing cells, where they are known
    has_value: bool = False  # A value is known that is neither missing nor NaN
    all_null: bool = False  # It is known that all cells are missing
    nan: bool | None = None  # bool or None: whether a value is NaN, where it is known

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "min": _to_json(self.min), "max": _to_json(self.max)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ColumnStats:
        return cls(**{**fields, "min": _from_json(fields["min"]), "max": _from_json(fields["max"])})


def _to_json(bound: Bound | None) -> int | list[str] | None:
    if isinstance(bound, Fraction):
        return ["fraction", str(bound)]
    if isinstance(bound, float | bytes):
        return [type(bound).__name__, bound.hex()]
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
    if pa.types.is_dictionary(values.type):
        stats = scan_stats(values.dictionary.take(values.indices.unique().drop_null()))
        nulls = values.dictionary.take(values.indices).null_count
        return replace(stats, null_count=nulls, all_null=nulls == len(values))
    nulls, nan = values.null_count, False
    known = values.drop_null() if nulls else values
    if pa.types.is_floating(values.type) and len(known):
        known = known.cast(pa.float64())
        is_nan = pc.is_nan(known)
        nan = bool(pc.any(is_nan).as_py())
        known = known.filter(pc.invert(is_nan)) if nan else known
    low, high = _bounds(known) if len(known) else (None, None)
    stats = ColumnStats(
        low,
        high,
        min_witness=low is not None,
        max_witness=high is not None,
        min_cover=low is not None,
        max_cover=high is not None,
        null_count=nulls,
        has_value=len(known) > 0,
        all_null=nulls == len(values),
        nan=nan,
    )
    if isinstance(low, bytes) and len(low) > MAX_BOUND_BYTES:
        stats = replace(stats, min=low[:MAX_BOUND_BYTES], min_witness=False)
    if isinstance(high, bytes) and len(high) > MAX_BOUND_BYTES:
        above = _after(high[:MAX_BOUND_BYTES])
        stats = replace(stats, max=above, max_witness=False, max_cover=above is not None)
    return stats


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
        known = known.cast(pa.int32() if types.is_time32(kind) else pa.int64())
        factor = _NANOSECONDS[kind.unit]
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
    return value if isinstance(value, float | bytes) else whole_or_fraction(Fraction(value))


def whole_or_fraction(exact: Fraction) -> int | Fraction:
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
