"""A column as numbers or as text, and whether two columns say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.joins.aggregation import Groups, aggregated, read_numbers
from pexeso.lake.frames.columns import arrow_column, texts_of_cells
from pexeso.lake.frames.tables import NOT_OF_ARROW
from pexeso.store.io.wide_offsets import take_wide

NUMBER = "number"
TEXT = "text"

COMPARED_ROWS = 10_000
"""Most rows by which columns are compared: so many, spread evenly, tell whether nine rows in ten
are the same."""

FEW_NUMBERS = 10
"""A target with more different numbers than this is one of amounts; with fewer, equal numbers in
two columns may be chance."""

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Column:
    """A column of n rows.

    Attributes
    ----------
    kind : {"number", "text"}
    cells : pyarrow.DoubleArray or pyarrow.StringArray (n,)
        Null where there is no cell.
    """

    kind: str
    cells: pa.Array

    @property
    def filled(self) -> int:
        """Rows with a cell."""
        return len(self.cells) - self.cells.null_count

    @property
    def distinct(self) -> int:
        """Different cells."""
        return pc.count_distinct(self.cells).as_py()

    def take(self, rows: pa.Array) -> Column:
        """Return the column for these rows; null rows have no cell."""
        return Column(self.kind, take_wide(self.cells, rows))


def kind_of(cells: pa.StringArray, min_number_fraction: float) -> str:
    """Return whether cells hold numbers; those that are empty do not count."""
    present = len(cells) - cells.null_count
    numbers = read_numbers(cells)
    return (
        NUMBER
        if present and len(cells) - numbers.null_count >= min_number_fraction * present
        else TEXT
    )


def column_of_values(values: Any, min_number_fraction: float) -> Column:
    """Read a column of the user's table.

    Numbers are taken as they are; all else is read through its text, as cells of the lake are.
    """
    numbers = _numbers_of(values)
    if numbers is not None:
        return Column(NUMBER, numbers)
    texts = trimmed(texts_of_cells(values))
    kind = kind_of(texts, min_number_fraction)
    return Column(kind, read_numbers(texts) if kind == NUMBER else texts)


def _numbers_of(values: Any) -> pa.DoubleArray | None:
    """Return a column of a numeric type as float64, or None for other types.

    Values that are not finite become null.
    """
    try:
        array = arrow_column(values)
    except NOT_OF_ARROW:
        return None  # mixed types, of which texts can be made all the same
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return None
    cells = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    cells = pc.cast(cells, pa.float64(), safe=False)
    return pc.if_else(pc.is_finite(cells), cells, pa.scalar(None, pa.float64()))


def trimmed(cells: pa.StringArray) -> pa.StringArray:
    """Leave out white space around cells, and make those of nothing else null."""
    cells = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)


def column_of_lists(lists: pa.ListArray, min_number_fraction: float) -> Column:
    """Make one cell of each row's: the mean of numbers, the first text."""
    cells, parents = trimmed(pc.list_flatten(lists)), pc.list_parent_indices(lists)
    present = pc.is_valid(cells)
    cells, parents = cells.filter(present), parents.filter(present).to_numpy(zero_copy_only=False)
    kind = kind_of(cells, min_number_fraction)
    groups = Groups.of(parents)
    values = aggregated(cells, groups, "mean" if kind == NUMBER else "first")
    position = np.full(len(lists), -1, dtype=np.int64)
    position[parents[groups.starts]] = np.arange(len(groups))
    return Column(kind, take_wide(values, pa.array(position, mask=position < 0)))


def column_by_key(column: Column, key: pa.Int32Array) -> Column:
    """Compute, for each row, the aggregate of the rows of its key.

    This is what a join with the same table would bring back.
    """
    keys = pc.fill_null(key, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(keys, kind="stable")
    order = order[
        (keys[order] >= 0) & column.cells.is_valid().to_numpy(zero_copy_only=False)[order]
    ]
    groups = Groups.of(keys[order])
    if column.kind == TEXT:
        values = column.cells.take(pa.array(order[groups.starts]))
    else:
        numbers = column.cells.to_numpy(zero_copy_only=False)[order]
        means = np.bincount(groups.of_row, weights=numbers, minlength=len(groups)) / np.bincount(
            groups.of_row
        )
        values = pa.array(means.astype(np.float64))
    position = np.full(
        int(keys.max(initial=-1)) + 2, -1, dtype=np.int64
    )  # the last is that of rows without a key
    position[keys[order][groups.starts]] = np.arange(len(groups))
    rows = position[keys]
    return Column(column.kind, take_wide(values, pa.array(rows, mask=rows < 0)))


def compared_rows(n_rows: int) -> np.ndarray:
    """Return the rows, at most `COMPARED_ROWS`, for comparing the columns of a table; int64."""
    return np.linspace(0, n_rows - 1, min(n_rows, COMPARED_ROWS)).astype(np.int64)


@dataclass(frozen=True)
class Compared:
    """Some rows of a column, in a form for quick comparison.

    The values are numbers, or hashes of text in lower case; NaN and 0 where there is no cell.
    """

    kind: str
    values: np.ndarray

    @classmethod
    def of(cls, column: Column) -> Compared:
        """Take at most `COMPARED_ROWS` rows, the same for all columns of a table."""
        cells = column.cells.take(pa.array(compared_rows(len(column.cells))))
        if column.kind == NUMBER:
            return cls(NUMBER, cells.to_numpy(zero_copy_only=False).astype(np.float64))
        from pandas.util import hash_array

        encoded = pc.utf8_lower(cells).dictionary_encode()
        hashes = hash_array(
            np.append(encoded.dictionary.to_numpy(zero_copy_only=False), "").astype(object)
        )
        hashes[-1] = 0
        positions = pc.fill_null(encoded.indices, len(hashes) - 1).to_numpy(zero_copy_only=False)
        return cls(TEXT, hashes[positions])

    @property
    def filled(self) -> np.ndarray:
        """Bool: rows with a cell."""
        return ~np.isnan(self.values) if self.kind == NUMBER else self.values != 0

    def same_in(self, other: Compared) -> np.ndarray:
        """Bool: the rows in which both have a cell, and the same."""
        if self.kind != other.kind:
            return np.zeros(len(self.values), dtype=bool)
        if self.kind == TEXT:
            return self.filled & (self.values == other.values)
        scale = np.maximum(np.abs(self.values), np.abs(other.values))
        with np.errstate(invalid="ignore"):
            return np.abs(self.values - other.values) <= _TOLERANCE * scale

    def says_the_same(self, other: Compared, min_fraction: float) -> bool:
        """Return whether enough of the rows with a cell in either have the same in both."""
        either = np.count_nonzero(self.filled | other.filled)
        return bool(either) and np.count_nonzero(self.same_in(other)) >= min_fraction * either
