"""What is known of the columns of a file without its rows: footers of Parquet, or a scan.

R2D2 (section 5, MMP) takes bounds from the footers of Parquet, once a file. What a footer says can
be less than it seems: bounds of texts may be cut, INT96 and long texts have none, and one of a
column of floats is not to be relied on where NaN may be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.lake.readers.typed import JSON, TypedRows, open_parquet, parquet_rows
from pexeso.redundancy.column_stats import Bound, ColumnStats, merged, scan_stats
from pexeso.redundancy.pieces import ColumnFacts
from pexeso.redundancy.schema_tokens import Token, leaf_types, leaves
from pexeso.redundancy.type_families import family, is_list

_NANOSECONDS = {"milliseconds": 1_000_000, "microseconds": 1000, "nanoseconds": 1}

_SCANNED = ("int", "decimal", "date", "timestamp", "timestamp_ntz")
"""Families whose values are looked at where footers say nothing of their bounds."""


def facts_of_parquet(shown: str, path: str, *, scan: bool = True) -> tuple[int, list[ColumnFacts]]:
    """Return the number of rows of a Parquet file, and what is known of its columns."""
    file = open_parquet(path)
    schema, metadata = file.schema_arrow, file.metadata
    column_stats: dict[Token, ColumnStats] = {}
    kinds = dict(leaf_types(schema))
    for token, number in _flat_leaves(schema):
        column_stats[token] = _of_footers(metadata, number, kinds[token])
    if scan:
        blind = [
            token[0]
            for token, kind in kinds.items()
            if len(token) == 1 and family(kind) in _SCANNED and _is_blind(column_stats[token])
        ]
        if blind:
            for token, stats in _scanned(parquet_rows(shown, path), set(blind)).items():
                column_stats[token] = stats
    facts = [
        ColumnFacts(token, family(kind), column_stats.get(token, ColumnStats()), 0, 0)
        for token, kind in kinds.items()
    ]
    return metadata.num_rows, facts


def facts_of_rows(batches: Iterable[TypedRows]) -> tuple[int, list[ColumnFacts]]:
    """Return the number of rows of a table, and what a scan tells of its columns."""
    n_rows = 0
    kinds: dict[Token, str] = {}
    parts: dict[Token, list[ColumnStats]] = {}
    for batch in batches:
        for leaf in leaves(batch.names, batch.columns):
            some = parts.setdefault(leaf.token, [])
            if not some and n_rows:  # rows before the first that has this column
                some.append(scan_stats(pa.nulls(n_rows)))
            some.append(scan_stats(leaf.values))
            kinds[leaf.token] = JSON if batch.is_json else family(leaf.values.type)
        n_rows += batch.n_rows
    return n_rows, [
        ColumnFacts(token, kinds[token], merged(some), 0, 0) for token, some in parts.items()
    ]


def _is_blind(stats: ColumnStats) -> bool:
    exact = stats.min_witness and stats.max_witness and stats.min_cover and stats.max_cover
    return not exact and not stats.all_null


def _scanned(batches: Iterator[TypedRows], names: set[str]) -> dict[Token, ColumnStats]:
    parts: dict[Token, list[ColumnStats]] = {}
    for batch in batches:
        for name, values in zip(batch.names, batch.columns, strict=True):
            if name in names:
                parts.setdefault((name,), []).append(scan_stats(values))
    return {token: merged(some) for token, some in parts.items()}


def _flat_leaves(schema: pa.Schema) -> Iterator[tuple[Token, int]]:
    """Yield the tokens outside of lists and maps, and which column of Parquet each is."""
    first = 0
    for field in schema:
        yield from _flat_of((field.name,), field.type, first)
        first += _n_leaves(field.type)


def _flat_of(path: Token, kind: pa.DataType, first: int) -> Iterator[tuple[Token, int]]:
    if pa.types.is_struct(kind) and kind.num_fields:
        for field in kind:
            yield from _flat_of((*path, field.name), field.type, first)
            first += _n_leaves(field.type)
    elif not is_list(kind) and not pa.types.is_map(kind):
        yield path, first


def _n_leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _n_leaves(kind.storage_type)
    if pa.types.is_map(kind):
        return _n_leaves(kind.key_type) + _n_leaves(kind.item_type)
    if is_list(kind):
        return _n_leaves(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_n_leaves(field.type) for field in kind)
    return 1


def _of_footers(metadata: pq.FileMetaData, number: int, kind: pa.DataType) -> ColumnStats:
    leaf = metadata.schema.column(number)
    parts = [
        _of_chunk(metadata.row_group(group).column(number), leaf, kind)
        for group in range(metadata.num_row_groups)
    ]
    return merged(parts) if parts else scan_stats(pa.nulls(0))


def _of_chunk(chunk: Any, leaf: Any, kind: pa.DataType) -> ColumnStats:
    statistics = chunk.statistics
    if statistics is None:
        return ColumnStats()
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls is not None and nulls == chunk.num_values:
        return ColumnStats(null_count=nulls, all_null=True, nan=False)
    of_floats = pa.types.is_floating(kind)
    lowest = highest = None
    if statistics.has_min_max:
        lowest, highest = (
            _bound(raw, leaf, kind) for raw in (statistics.min_raw, statistics.max_raw)
        )
    # The bounds of texts may be cut: nothing says that they are values.
    witness = not isinstance(lowest, bytes)
    has_value = lowest is not None or highest is not None or (nulls is not None and not of_floats)
    return ColumnStats(
        lowest,
        highest,
        min_witness=witness and lowest is not None,
        max_witness=witness and highest is not None,
        min_cover=lowest is not None,
        max_cover=highest is not None,
        null_count=nulls,
        has_value=has_value,
        nan=None if of_floats else False,
    )


def _bound(raw: Any, leaf: Any, kind: pa.DataType) -> Bound | None:
    """Return a bound of a footer in the form of `pexeso.redundancy.column_stats.scan_stats`."""
    types, physical = pa.types, leaf.physical_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_decimal(kind):
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        exact = Fraction(unscaled, 10**leaf.scale)
        return exact.numerator if exact.denominator == 1 else exact
    if types.is_unsigned_integer(kind):
        return int(raw) % (1 << kind.bit_width)
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_date32(kind):
        return int(raw)
    if types.is_timestamp(kind) or types.is_time(kind):
        factor = _NANOSECONDS.get(_unit(leaf))
        return None if factor is None or physical == "INT96" else int(raw) * factor
    if types.is_float32(kind) or types.is_float64(kind):
        return None if raw != raw else float(raw)  # NaN differs from itself
    if physical == "BYTE_ARRAY" or types.is_fixed_size_binary(kind):
        return raw if isinstance(raw, bytes) else None
    return None


def _unit(leaf: Any) -> str | None:
    logical_type = json.loads(leaf.logical_type.to_json())
    return logical_type.get("timeUnit")
