"""Lakes of tables derived from each other, drawn from a seed.

Tables are roots, drawn at random, and tables derived from a root or from the last one that was
derived from it. What a table was derived from is recorded, but which tables hold which is for the
oracle to say: a filter can keep the same rows twice and noise can change nothing.

The same seed brings the same tables on every machine: draws are whole numbers, every operation on
floats is one that IEEE 754 rounds exactly, and the sizes of tables do not depend on Arrow's files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.token_sets import syllable_words
from pexeso.errors import InputError

_SMALLEST, _LARGEST = 5, 12
_FIRST_DAY, _DAYS = 14_610, 9_000
"""2010-01-01 and the days from there on, counted from 1970-01-01."""

_SECONDS_A_DAY = 86_400

KINDS = ("id", "count", "double", "decimal", "date", "timestamp", "instant", "string", "boolean")


@dataclass(frozen=True)
class Column:
    """How a column is drawn."""

    name: str
    kind: str
    n_values: int
    nulls: int


def draw_columns(rng: np.random.Generator, root: int) -> list[Column]:
    """Draw the columns of a root: a number of its own for each row, and others of any kind."""
    others = KINDS[1:]
    columns = [Column(f"id_{root % 3}", "id", 0, 0)]
    for at in range(int(rng.integers(_SMALLEST, _LARGEST))):
        kind = others[at % len(others)] if at < 2 else others[int(rng.integers(len(others)))]
        n_values = 10 ** int(rng.integers(1, 6))
        nulls = int(rng.integers(0, 200)) if rng.integers(2) else 0
        columns.append(Column(f"{kind}_{at}", kind, n_values, nulls))
    return columns


def rows_for(columns: list[Column], n_bytes: float) -> int:
    """Return how many rows of these columns take so many bytes on disk, roughly."""
    n_rows = 1
    # Bytes of a row fall with the rows, as values repeat: a few rounds settle that.
    for _ in range(4):
        distinct = [min(column.n_values or n_rows, n_rows) for column in columns]
        a_row = sum(
            _bytes_a_cell(column.kind == "boolean", n, n_rows)
            for column, n in zip(columns, distinct, strict=True)
        )
        n_rows = max(1, int(n_bytes / a_row))
    return n_rows


def table_bytes(table: pa.Table) -> float:
    """Return what a table takes on disk, roughly: it is not written, so no version matters."""
    n_rows = table.num_rows
    return sum(
        n_rows * _bytes_a_cell(pa.types.is_boolean(column.type), n_distinct, n_rows)
        for column in table.columns
        for n_distinct in [pc.count_distinct(column).as_py()]
    )


def _bytes_a_cell(is_boolean: bool, n_distinct: int, n_rows: int) -> float:
    if is_boolean:
        return 0.2
    # A number of the dictionary, and the value's share in it: as measured.
    return 0.1 + n_distinct.bit_length() / 8 + 4 * n_distinct / max(1, n_rows)


def draw_rows(rng: np.random.Generator, columns: list[Column], n_rows: int) -> pa.Table:
    return pa.table({column.name: _cells(rng, column, n_rows) for column in columns})


def _cells(rng: np.random.Generator, column: Column, n_rows: int) -> pa.Array:
    if column.kind == "id":
        return pa.array(rng.permutation(n_rows) + 1)
    # The product of two draws: small numbers are frequent, and no power is needed.
    draws = rng.integers(0, column.n_values, (2, n_rows))
    number = draws[0] * draws[1] // column.n_values
    mask = rng.integers(0, 1000, n_rows) < column.nulls
    if column.kind == "count":
        return pa.array(number, mask=mask)
    if column.kind == "double":
        return pa.array(number / 100, mask=mask)
    if column.kind == "decimal":
        return _decimals(number * 7, mask)
    if column.kind == "date":
        return pa.array((_FIRST_DAY + number % _DAYS).astype(np.int32), pa.int32(), mask=mask).cast(
            pa.date32()
        )
    if column.kind in ("timestamp", "instant"):
        zone = "UTC" if column.kind == "instant" else None
        seconds = _FIRST_DAY * _SECONDS_A_DAY + number * 6_007
        return pa.array(seconds * 1_000_000, mask=mask).cast(pa.timestamp("us", zone))
    if column.kind == "string":
        words = syllable_words(np.arange(min(column.n_values, int(number.max()) + 1)) * 7 + 11)
        return pa.array(words, pa.string()).take(pa.array(number, mask=mask))
    return pa.array(number % 2 == 1, mask=mask)


def _decimals(cents: np.ndarray, mask: np.ndarray) -> pa.Array:
    """Return hundredths as decimals, made of their bytes: no float is involved."""
    pairs = np.zeros((len(cents), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = cents, cents >> 63
    valid = pa.py_buffer(np.packbits(~mask, bitorder="little").tobytes())
    buffers = [valid, pa.py_buffer(pairs.astype("<i8").tobytes())]
    return pa.Array.from_buffers(pa.decimal128(14, 2), len(cents), buffers)


# What derives a table from another: filters, projections, added rows and columns, noise, copies.
#
# Floats are used only in ways that IEEE 754 rounds exactly, so that all machines agree.

_TRIES = 20
_MOST_PREDICATES, _MOST_NEW_COLUMNS, _MOST_NOISY_COLUMNS = 3, 3, 2
_UNIFORMS = 12
"""So many uniform draws add up to one that is as good as normal."""

Ranks = dict[str, int]
"""Of the columns of a root, how likely a filter is one on them: 1 is the most likely."""


@dataclass(frozen=True, eq=False)
class Derived:
    """A table, and whether the source holds it (down), it the source (up), both, or none."""

    table: pa.Table
    expected: str


def root_ranks(rng: np.random.Generator, root: pa.Table) -> Ranks:
    """Rank the columns of a root at random."""
    order = rng.permutation(root.num_columns).tolist()
    return {root.column_names[column]: rank + 1 for rank, column in enumerate(order)}


def zipf_draw(rng: np.random.Generator, n: int) -> int:
    """Draw a number below `n`, its rank by Zipf's law with exponent 1.5."""
    ranks = np.arange(1, n + 1, dtype=np.float64)
    # A square root is rounded exactly, a power is not.
    bounds = np.cumsum((2.0**40 / (ranks * np.sqrt(ranks))).astype(np.int64) + 1)
    return int(np.searchsorted(bounds, int(rng.integers(bounds[-1])), side="right"))


def where(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Keep the rows that meet one to three predicates, neither none nor all of them."""
    known = {name: rank for name, rank in ranks.items() if name in table.column_names}
    names = sorted(known, key=known.__getitem__)
    for _ in range(_TRIES if table.num_rows > 1 and names else 0):
        mask = None
        for _ in range(int(rng.integers(1, _MOST_PREDICATES + 1))):
            name = names[zipf_draw(rng, len(names))]
            predicate = _predicate(rng, table[name].combine_chunks())
            if predicate is not None:
                mask = predicate if mask is None else pc.and_(mask, predicate)
        selection = None if mask is None else table.filter(mask)
        if selection is not None and 0 < selection.num_rows < table.num_rows:
            return Derived(selection.combine_chunks(), "down")
    return shuffle(rng, table, ranks)


def _predicate(rng: np.random.Generator, values: pa.Array) -> pa.Array | None:
    """Return which rows meet a predicate that is drawn; None where a column has no value."""
    present = values.drop_null()
    if pa.types.is_floating(values.type):
        present = present.filter(pc.invert(pc.is_nan(present)))
    if not len(present):
        return None
    value = _frequent(rng, present)
    ways: list[Callable[..., pa.Array] | None] = [pc.equal]
    if _is_number(values.type) or pa.types.is_temporal(values.type):
        ways += [pc.less, pc.greater, None]
    compare = ways[int(rng.integers(len(ways)))]
    if compare is not None:
        return pc.fill_null(compare(values, value), False)
    # Between two values.
    other = _frequent(rng, present)
    low, high = (other, value) if pc.greater(value, other).as_py() else (value, other)
    both = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return pc.fill_null(both, False)


def _frequent(rng: np.random.Generator, present: pa.Array) -> pa.Scalar:
    """Draw a value, its rank by frequency following Zipf's law; of equals the first comes first."""
    counted = pc.value_counts(present)
    order = np.argsort(-counted.field("counts").to_numpy(), kind="stable")
    return counted.field("values")[int(order[zipf_draw(rng, len(order))])]


def project(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Filter rows, then keep 40 to 100 % of the columns."""
    filtered = where(rng, table, ranks)
    min_kept = max(1, -(-table.num_columns * 2 // 5))
    n_kept = int(rng.integers(min_kept, table.num_columns + 1))
    columns = rng.permutation(table.num_columns)[:n_kept].tolist()
    names = [table.column_names[column] for column in columns]
    return Derived(filtered.table.select(names), "down")


def add_rows(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Add 1 to 30 % of rows, each value from its column, drawn independently of the others."""
    if not table.num_rows:
        return shuffle(rng, table, ranks)
    n_added = max(1, table.num_rows * int(rng.integers(1, 31)) // 100)
    columns = [
        column.combine_chunks().take(pa.array(rng.integers(0, table.num_rows, n_added)))
        for column in table.columns
    ]
    added = pa.Table.from_arrays(columns, schema=table.schema)
    whole = pa.concat_tables([table, added]).combine_chunks()
    return Derived(whole, "up")


def add_cols(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Add one to three columns a·x + b·y of numbers, a and b in [-2, 2]."""
    numbers = _number_columns(table)
    if not numbers:
        return shuffle(rng, table, ranks)
    for _ in range(int(rng.integers(1, _MOST_NEW_COLUMNS + 1))):
        x, y = (numbers[int(rng.integers(len(numbers)))] for _ in range(2))
        a, b = (int(number) / 100 for number in rng.integers(-200, 201, 2))
        name = _free_name(table)
        left, right = (pc.multiply(_doubles(table[column]), k) for column, k in ((x, a), (y, b)))
        table = table.append_column(name, pc.add(left, right))
    return Derived(table, "up")


def noise(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Add normal noise to 10 to 100 % of the cells of one or two columns of numbers."""
    numbers = [name for name in _number_columns(table) if not pa.types.is_decimal(table[name].type)]
    if not numbers or not table.num_rows:
        return shuffle(rng, table, ranks)
    clip = bool(rng.integers(2))
    n_columns = min(len(numbers), int(rng.integers(1, _MOST_NOISY_COLUMNS + 1)))
    for column in rng.permutation(len(numbers))[:n_columns].tolist():
        name = numbers[column]
        share = int(rng.integers(10, 101))
        hit = rng.integers(0, 100, table.num_rows) < share
        changed = _noisy(rng, table[name].combine_chunks(), hit, clip)
        table = table.set_column(table.column_names.index(name), name, changed)
    return Derived(table, "none")


def _noisy(rng: np.random.Generator, values: pa.Array, hit: np.ndarray, clip: bool) -> pa.Array:
    present = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    finite = present & np.isfinite(numbers)
    known = numbers[finite]
    # Whole numbers are added up exactly, and the sum of floats is rounded once.
    uniforms = rng.integers(0, 1 << 32, (_UNIFORMS, len(numbers))).sum(axis=0)
    normal = (uniforms - (_UNIFORMS << 31)) / (1 << 32)
    if not len(known):
        return values
    wide = known.astype(np.float64)
    mean = math.fsum(wide.tolist()) / len(wide)
    deviation = math.sqrt(math.fsum(((wide - mean) * (wide - mean)).tolist()) / len(wide))
    change = normal * (0.05 * deviation)
    if numbers.dtype.kind in "iu":
        change = np.rint(change).astype(numbers.dtype)
    changed = (numbers + change).astype(numbers.dtype)
    if clip:
        changed = np.clip(changed, known.min(), known.max())
    changed = np.where(hit & finite, changed, numbers)
    return pa.array(changed, values.type, mask=~present)


def shuffle(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Return the same rows and columns in another order."""
    columns = rng.permutation(table.num_columns).tolist()
    names = [table.column_names[column] for column in columns]
    rows = rng.permutation(table.num_rows)
    shuffled = table.select(names).take(pa.array(rows, pa.int64())).combine_chunks()
    return Derived(shuffled, "both")


def combo(rng: np.random.Generator, table: pa.Table, ranks: Ranks) -> Derived:
    """Do two or three of the others, one after the other."""
    for _ in range(int(rng.integers(2, 4))):
        single = SINGLE[list(SINGLE)[int(rng.integers(len(SINGLE)))]]
        table = single(rng, table, ranks).table
    return Derived(table, "none")


SINGLE: dict[str, Callable[[np.random.Generator, pa.Table, Ranks], Derived]] = {
    "where": where,
    "project": project,
    "add_rows": add_rows,
    "add_cols": add_cols,
    "noise": noise,
    "shuffle": shuffle,
}

CHANGES = {**SINGLE, "combo": combo}
"""By name, all that a table may be derived by."""


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)


def _number_columns(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if _is_number(field.type)]


def _doubles(values: Any) -> Any:
    return pc.cast(values, pa.float64(), safe=False)


def _free_name(table: pa.Table) -> str:
    used_names = {name.lower() for name in table.column_names}
    return next(f"sum_{at}" for at in range(len(used_names) + 1) if f"sum_{at}" not in used_names)


SMALL, MEDIUM, LARGE = 24_000_000, 240_000_000, 2_400_000_000
"""Bytes on disk of the three sizes of lake."""

LINEAGE = ".lineage.json"
"""The file of a lake that says what its tables were derived from; hidden, so it is no table."""

_CODECS = ("snappy", "zstd", "gzip")
_FEWEST_ROWS = 20
_SHARE_OF_ROOT = 0.6
"""Of a root's bytes, what a derived table takes in the mean."""

_WIDEST_RATIO = 8
"""Of two roots, how much larger the largest is than the smallest."""

_FROM_LAST = 3
"""One table in so many is derived from the last derived one instead of from the root."""


@dataclass(frozen=True)
class Lineage:
    """What a table was derived from."""

    table: str
    op: str
    source: str | None
    expected: str
    rows: int
    columns: int


def synthetic_lake(
    folder: Path,
    *,
    n_bytes: int = SMALL,
    n_tables: int = 60,
    n_roots: int = 10,
    seed: int = 0,
) -> list[Lineage]:
    """Write a lake, and what its tables were derived from as `LINEAGE`."""
    if not 1 <= n_roots <= n_tables:
        raise InputError(f"A lake has 1 to {n_tables:,} roots, no more than tables. Got {n_roots}.")
    if n_bytes < 1:
        raise InputError(f"A lake has at least one byte. Got {n_bytes}.")
    folder.mkdir(parents=True, exist_ok=True)
    lineages: list[Lineage] = []
    counts = [(n_tables - n_roots) * (at + 1) // n_roots for at in range(n_roots)]
    counts = np.diff(counts, prepend=0).tolist()
    spent: list[float] = []
    for at, (name, root) in enumerate(_drawn(n_bytes, spent, counts, seed)):
        # Streams of their own: of the tables before, a root depends on the sizes alone.
        rng = np.random.Generator(np.random.PCG64([seed, 1, at]))
        for table, lineage in _family(rng, name, root, counts[at]):
            spent.append(table_bytes(table))
            codec = _CODECS[int(rng.integers(len(_CODECS)))]
            row_group = max(1, table.num_rows // int(rng.integers(1, 5)))
            path = folder / lineage.table
            pq.write_table(table, path, compression=codec, row_group_size=row_group)
            lineages.append(lineage)
    text = json.dumps([asdict(record) for record in lineages], indent=1)
    (folder / LINEAGE).write_text(text + "\n", encoding="utf-8")
    return lineages


def _drawn(
    n_bytes: int, spent: list[float], counts: list[int], seed: int
) -> Iterator[tuple[str, pa.Table]]:
    """Draw root by root, of the bytes that `spent`, which grows meanwhile, leaves."""
    rng = np.random.Generator(np.random.PCG64([seed, 0]))
    weights = rng.integers(1, _WIDEST_RATIO + 1, len(counts)).tolist()
    shares = [weight * (1 + _SHARE_OF_ROOT * n) for weight, n in zip(weights, counts, strict=True)]
    for at, weight in enumerate(weights):
        columns = draw_columns(np.random.Generator(np.random.PCG64([seed, 2, at])), at)
        left = max(0.0, n_bytes - sum(spent))
        n_rows = rows_for(columns, left * weight / sum(shares[at:]))
        rows = np.random.Generator(np.random.PCG64([seed, 3, at]))
        yield f"root-{at:03}.parquet", draw_rows(rows, columns, max(_FEWEST_ROWS, n_rows))


def _family(
    rng: np.random.Generator, name: str, root: pa.Table, n_derived: int
) -> Iterator[tuple[pa.Table, Lineage]]:
    yield root, Lineage(name, "root", None, "none", root.num_rows, root.num_columns)
    ranks = root_ranks(rng, root)
    last, last_name = root, name
    names = list(CHANGES)
    for number in range(n_derived):
        source, source_name = (root, name) if rng.integers(_FROM_LAST) else (last, last_name)
        op = names[int(rng.integers(len(names)))]
        derived: Derived = CHANGES[op](rng, source, ranks)
        stem = name.removesuffix(".parquet")
        last, last_name = derived.table, f"{stem}-{number + 1:03}-{op.replace('_', '-')}.parquet"
        size = last.num_rows, last.num_columns
        yield last, Lineage(last_name, op, source_name, derived.expected, *size)
