"""Random tables of typed columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SMALLEST, _LARGEST = 5, 12
_FIRST_DAY, _DAYS = 14_610, 9_000
"""2010-01-01 and the days from there on, counted from 1970-01-01."""

_SECONDS_A_DAY = 86_400
_SYLLABLES = [first + last for first in "bdfgklmnprstv" for last in "aeiou"]

KINDS = ("id", "count", "double", "decimal", "date", "timestamp", "instant", "string", "boolean")

_CSV_BYTES = {
    "id": (0.8, 0.28),
    "count": (0.8, 0.28),
    "double": (2.5, 0.22),
    "decimal": (4.0, 0.18),
    "date": (10.5, 0.0),
    "timestamp": (25.7, 0.0),
    "instant": (26.7, 0.0),
    "string": (3.7, 0.31),
    "boolean": (5.3, 0.0),
}
"""What a cell takes at least, and for each bit of the number of distinct values: as measured."""


@dataclass(frozen=True)
class Column:
    """How a column is drawn.

    Attributes
    ----------
    name : str
    kind : str
        One of `KINDS`.
    n_values : int
        At most so many distinct ones.
    nulls : int
        Of a thousand cells.
    """

    name: str
    kind: str
    n_values: int
    nulls: int


def draw_columns(rng: np.random.Generator, root: int) -> list[Column]:
    """Draw the columns of a root: a number of its own for each row, and others of any kind.

    Some names are those of other roots as well.
    """
    others = KINDS[1:]
    columns = [Column(f"id_{root % 3}", "id", 0, 0)]
    for at in range(int(rng.integers(_SMALLEST, _LARGEST))):
        kind = others[at % len(others)] if at < 2 else others[int(rng.integers(len(others)))]
        n_values = 10 ** int(rng.integers(1, 6))
        nulls = int(rng.integers(0, 200)) if rng.integers(2) else 0
        columns.append(Column(f"{kind}_{at}", kind, n_values, nulls))
    return columns


def rows_for(columns: list[Column], n_bytes: float, file_format: str) -> int:
    """Return how many rows of these columns take so many bytes on disk, roughly."""
    n_rows = 1
    # Bytes of a row fall with the rows, as values repeat: a few rounds settle that.
    for _ in range(4):
        distinct = [min(column.n_values or n_rows, n_rows) for column in columns]
        a_row = sum(
            _bytes_a_cell(column.kind, n, n_rows, file_format)
            for column, n in zip(columns, distinct, strict=True)
        )
        n_rows = max(1, int(n_bytes / a_row))
    return n_rows


def table_bytes(table: pa.Table, file_format: str) -> float:
    """Return what a table takes on disk, roughly: it is not written, so no version matters."""
    n_rows = table.num_rows
    return sum(
        n_rows
        * _bytes_a_cell(
            _kind_of(column.type), pc.count_distinct(column).as_py(), n_rows, file_format
        )
        for column in table.columns
    )


def _bytes_a_cell(kind: str, n_distinct: int, n_rows: int, file_format: str) -> float:
    bits = n_distinct.bit_length()
    if file_format == "csv":
        base, a_bit = _CSV_BYTES[kind]
        return base + a_bit * bits
    # A number of the dictionary, and the value's share in it: as measured.
    return 0.2 if kind == "boolean" else 0.1 + bits / 8 + 4 * n_distinct / max(1, n_rows)


def _kind_of(type_: pa.DataType) -> str:
    types = pa.types
    for kind, has in (
        ("count", types.is_integer),
        ("double", types.is_floating),
        ("decimal", types.is_decimal),
        ("date", types.is_date),
        ("timestamp", types.is_timestamp),
        ("boolean", types.is_boolean),
    ):
        if has(type_):
            return kind
    return "string"


def draw_rows(rng: np.random.Generator, columns: list[Column], n_rows: int) -> pa.Table:
    """Draw a table."""
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
        return _words(min(column.n_values, int(number.max()) + 1)).take(pa.array(number, mask=mask))
    return pa.array(number % 2 == 1, mask=mask)


def _decimals(cents: np.ndarray, mask: np.ndarray) -> pa.Array:
    """Return hundredths as decimals, made of their bytes: no float is involved."""
    pairs = np.zeros((len(cents), 2), np.int64)
    pairs[:, 0], pairs[:, 1] = cents, cents >> 63
    valid = pa.py_buffer(np.packbits(~mask, bitorder="little").tobytes())
    buffers = [valid, pa.py_buffer(pairs.astype("<i8").tobytes())]
    return pa.Array.from_buffers(pa.decimal128(14, 2), len(cents), buffers)


def _words(n: int) -> pa.Array:
    """Return the first words of all: of one syllable, of two, and so on."""
    left = np.arange(n, dtype=np.int64) * 7 + 11
    words = np.full(n, "", "U16")
    syllables = np.array(_SYLLABLES)
    while left.any():
        words = np.char.add(words, np.where(left > 0, syllables[left % len(syllables)], ""))
        left //= len(syllables)
    return pa.array(words, pa.string())
