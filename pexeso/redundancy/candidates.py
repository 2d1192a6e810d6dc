"""Pairs of tables that schemas, types, numbers of rows and bounds leave (R2D2: SGB and MMP).

A bound of a child can only refute containment where it is a *witness*, a value that is there; one
of a parent where it is a *cover*, which no value exceeds (R2D2's min-max pruning, MMP, made sound
for what is known in part). Bounds are exact: numbers as whole numbers, fractions or doubles, times
as nanoseconds, texts as their bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.lake.typed.value_texts import plain
from pexeso.redundancy.schema_tokens import NULL, Token, compatible

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
    """Return what is known of the values of several runs of rows together."""
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


BLOCK_PAIRS = 1 << 20

# Schemas with a token are listed up to so many; more of them are the bits of a number.
_LISTED = 64


@dataclass(frozen=True)
class SchemaGraph:
    """Containment among distinct schemas."""

    # list of int64 arrays: Of each distinct schema the tables that have it, ascending
    members: list[np.ndarray]
    # list of (int, int): Numbers of schemas, the wider one first; each schema contains itself
    edges: list[tuple[int, int]]

    @property
    def n_edges(self) -> int:
        """Ordered pairs of different tables of which the first's schema contains the second's."""
        sizes = [len(tables) for tables in self.members]
        return sum(
            sizes[parent] * (sizes[child] - (parent == child)) for parent, child in self.edges
        )

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for parent, child in self.edges:
            parents, children = self.members[parent], self.members[child]
            step = max(1, BLOCK_PAIRS // len(children))
            for begin in range(0, len(parents), step):
                some = parents[begin : begin + step]
                for first in range(0, len(children), BLOCK_PAIRS):
                    others = children[first : first + BLOCK_PAIRS]
                    pairs = np.repeat(some, len(others)), np.tile(others, len(some))
                    apart = pairs[0] != pairs[1]
                    if apart.any():
                        yield pairs[0][apart], pairs[1][apart]


def schema_graph(schemas: Sequence[frozenset[Hashable]]) -> SchemaGraph:
    """Find all containments among the schemas of tables.

    What contains a schema has all of its tokens: an index of the schemas by token, the rarest one
    first, finds the edges of R2D2's clusters with fewer comparisons.
    """
    tables: dict[frozenset[Hashable], list[int]] = {}
    for table, schema in enumerate(schemas):
        tables.setdefault(schema, []).append(table)
    index = _Index(list(tables))
    edges = [(schema, schema) for schema in range(len(tables))]
    # A wider schema is added before those that it contains.
    for schema, tokens in sorted(enumerate(tables), key=lambda entry: -len(entry[1])):
        edges += [(parent, schema) for parent in index.containing(tokens)]
        index.add(schema)
    return SchemaGraph([np.array(some, np.int64) for some in tables.values()], sorted(edges))


class _Index:
    def __init__(self, schemas: Sequence[frozenset[Hashable]]) -> None:
        self._schemas = schemas
        self._n_with = Counter(token for schema in schemas for token in schema)
        self._added: list[int] = []
        self._lists: dict[Hashable, list[int]] = {}
        self._bits: dict[Hashable, int] = {}

    def add(self, schema: int) -> None:
        bit = 1 << len(self._added)
        self._added.append(schema)
        for token in self._schemas[schema]:
            if self._n_with[token] > _LISTED:
                self._bits[token] = self._bits.get(token, 0) | bit
            else:
                self._lists.setdefault(token, []).append(schema)

    def containing(self, schema: frozenset[Hashable]) -> list[int]:
        tokens = sorted(schema, key=self._n_with.__getitem__)
        if tokens and self._n_with[tokens[0]] <= _LISTED:
            near = self._lists.get(tokens[0], [])
            return [other for other in near if schema <= self._schemas[other]]
        bits = (1 << len(self._added)) - 1
        for token in tokens:
            bits &= self._bits.get(token, 0)
            if not bits:
                return []
        data = np.frombuffer(bits.to_bytes(len(self._added) // 8 + 1, "little"), np.uint8)
        positions = np.flatnonzero(np.unpackbits(data, bitorder="little"))
        return [self._added[position] for position in positions.tolist()]


GATES = ("types", "rows", "min_max")  # in the order in which they are applied

_UNKNOWN = -1


# Of the columns of a table their families and statistics.
Known = Mapping[Token, tuple[str, ColumnStats]]


def prune(
    graph: SchemaGraph,
    known: Sequence[Known],
    n_rows: np.ndarray,
    *,
    row_count_gate: bool,
    bounds: bool,
) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
    """Return parents and children of the edges that are left, and how many each gate removed."""
    columns_of = _columns_by_token(known)
    removed = dict.fromkeys(GATES, 0)
    blocks = [np.empty((2, 0), np.int64)]
    for pairs in map(np.stack, graph.blocks()):
        columns = [columns_of[token] for token in known[pairs[1, 0]]]
        for gate in GATES if bounds else GATES[:2]:
            if gate == "rows":
                theirs, ours = n_rows[pairs]
                out = (ours > theirs) & row_count_gate
            else:
                out = np.zeros(pairs.shape[1], bool)
                for column in columns:
                    places = np.searchsorted(column.tables, pairs)
                    out |= column.differ(*places) if gate == "types" else column.refuted(*places)
            removed[gate] += int(out.sum())
            pairs = pairs[:, ~out]
        blocks.append(pairs)
    left = np.concatenate(blocks, axis=1)
    parents, children = left[:, np.lexsort(left[::-1])]
    return parents, children, removed


@dataclass(frozen=True)
class _Columns:
    """The columns of one token as arrays over the tables that have it; bounds are ranks."""

    tables: np.ndarray
    family: np.ndarray
    fits: np.ndarray
    min: np.ndarray
    max: np.ndarray
    flags: dict[str, np.ndarray]
    null_count: np.ndarray
    nan: np.ndarray

    def differ(self, parents: np.ndarray, children: np.ndarray) -> np.ndarray:
        return ~self.fits[self.family[children], self.family[parents]]

    def refuted(self, parents: np.ndarray, children: np.ndarray) -> np.ndarray:
        """Return the pairs whose child has a witness beyond a cover of its parent: bool (p,)."""
        ours = {name: flag[children] for name, flag in self.flags.items()}
        theirs = {name: flag[parents] for name, flag in self.flags.items()}
        out = ours["has_value"] & theirs["all_null"]
        our_min, our_max = self.min[children], self.max[children]
        their_min, their_max = self.min[parents], self.max[parents]
        below = theirs["min_cover"] & (their_min >= 0)
        above = theirs["max_cover"] & (their_max >= 0)
        out |= below & ours["min_witness"] & (our_min >= 0) & (our_min < their_min)
        out |= above & ours["max_witness"] & (our_max >= 0) & (our_max > their_max)
        below &= ours["has_value"] & ours["max_cover"]
        above &= ours["has_value"] & ours["min_cover"]
        out |= below & (our_max >= 0) & (our_max < their_min)
        out |= above & (our_min >= 0) & (our_min > their_max)
        out |= (self.null_count[children] > 0) & (self.null_count[parents] == 0)
        return out | ((self.nan[children] == 1) & (self.nan[parents] == 0))


_FLAGS = ("min_witness", "max_witness", "min_cover", "max_cover", "has_value", "all_null")


def _columns_by_token(known: Sequence[Known]) -> dict[Token, _Columns]:
    tables: dict[Token, list[int]] = {}
    for table, columns in enumerate(known):
        for token in columns:
            tables.setdefault(token, []).append(table)
    return {
        token: _columns(numbers, [known[table][token] for table in numbers])
        for token, numbers in tables.items()
    }


def _columns(tables: Sequence[int], columns: Sequence[tuple[str, ColumnStats]]) -> _Columns:
    names = list(dict.fromkeys(name for name, _ in columns))
    fits = np.array([[compatible(ours, other) for other in names] for ours in names])
    stats = [stat for _, stat in columns]
    family = np.array([names.index(name) for name, _ in columns])
    bounds = np.full((2, len(columns)), _UNKNOWN, np.int64)
    # One order for all types that can be compared; columns without values have no bounds.
    valued = np.array(names) != NULL
    for chosen in {tuple(np.flatnonzero(row & valued).tolist()) for row in fits[valued]}:
        rows = np.flatnonzero(np.isin(family, chosen)).tolist()
        known = {value for row in rows for value in (stats[row].min, stats[row].max)} - {None}
        rank = {value: position for position, value in enumerate(sorted(known))}
        for row in rows:
            bounds[:, row] = [
                rank.get(value, _UNKNOWN) for value in (stats[row].min, stats[row].max)
            ]
    return _Columns(
        np.array(tables, np.int64),
        family,
        fits,
        *bounds,
        {name: np.array([getattr(stat, name) for stat in stats], bool) for name in _FLAGS},
        np.array([_UNKNOWN if stat.null_count is None else stat.null_count for stat in stats]),
        np.array([_UNKNOWN if stat.nan is None else stat.nan for stat in stats], np.int8),
    )
