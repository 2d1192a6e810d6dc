"""Rows as numbers, equal where the values of chosen columns are, and joins counted by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.lake.frames.beside import take_cells

MAX_ROWS = 2**53
"""Sums of counts up to it are exact as doubles."""


def plain_column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the column of a name that stands once in a table, its values not as positions."""
    if table.column_names.count(name) != 1:
        raise ColumnNotFoundError(
            f"The column {name!r} must be in the table once, it is there "
            f"{table.column_names.count(name)} times. Columns: {table.column_names}."
        )
    column = table.column(name)
    is_coded = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_coded else column


def in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, be it of no chunk."""
    whole = column.combine_chunks()
    if not isinstance(whole, pa.ChunkedArray):
        return whole
    return pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)


def column_of(table: pa.Table, name: str) -> pa.Array:
    """Return a column in one piece, of a plain type."""
    column = plain_column(table, name)
    kind = column.type
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_string(kind):
        column = column.cast(pa.large_string())
    elif pa.types.is_floating(kind):
        column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan")), column)
    return in_one_piece(column)


def encoded(column: pa.Array, name: str = "") -> pa.DictionaryArray:
    """Return a column as positions in its distinct values, a missing cell among these."""
    try:
        return pc.dictionary_encode(column, null_encoding="encode")
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"Values of the column {name!r} must be texts, numbers, times or truth values, got "
            f"{column.type}. Flatten it first."
        ) from error


def row_codes(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    """Return a number for each row, equal where all of the named columns are equal."""
    codes = np.zeros(table.num_rows, np.int64)
    for name in names:
        column = encoded(column_of(table, name), name)
        codes = paired_codes(codes, column.indices.to_numpy().astype(np.int64))
    return codes


def paired_codes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a number for each pair of numbers of two arrays, from 0 without gaps."""
    if not len(first):
        return np.zeros(0, np.int64)
    pairs = first * (int(second.max()) + 1) + second
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64)


def key_codes(
    left: pa.Table, right: pa.Table, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for the join key of each row of two tables, equal for equal keys."""
    if not names:
        raise InputError("A join needs at least one column, got none.")
    keys = [{name: column_of(table, name) for name in names} for table in (left, right)]
    for name in names:
        kinds = [key[name].type for key in keys]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"The column {name!r} must have the same type in both tables, got {kinds[0]} and "
                f"{kinds[1]}. Cast one of them."
            )
    both = pa.concat_tables([pa.table(key) for key in keys])
    codes = row_codes(both, names)
    for name in names:
        codes[both.column(name).is_null().to_numpy()] = -1
    return codes[: left.num_rows], codes[left.num_rows :]


def row_weights(n_rows: int, counts: np.ndarray | None) -> np.ndarray:
    """Return how often each row counts, after a check."""
    if counts is None:
        return np.ones(n_rows, np.int64)
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iu" and counts.size:
        raise InputError(
            f"Counts of rows must be whole numbers from 0, got {counts.dtype}. Give an array of "
            "int64."
        )
    if checked_counts(counts, n_rows).sum() > MAX_ROWS:
        raise InputError(f"Counts of rows must add up to {MAX_ROWS} at most. Measure a sample.")
    return counts.astype(np.int64)


def checked_counts(counts: ArrayLike | None, n: int | None = None) -> np.ndarray:
    """Return how often each of some values is there, after a check."""
    if counts is None:
        return np.ones(n or 0)
    counts = np.asarray(counts)
    if counts.ndim != 1 or (n is not None and len(counts) != n):
        expected = "in one dimension" if n is None else f"one count for each of {n} rows"
        raise InputError(f"Counts must be {expected}, got an array of shape {counts.shape}.")
    if counts.size and counts.dtype.kind not in "iufb":
        raise InputError(f"Counts must be numbers from 0, got {counts.dtype}.")
    if counts.size and not (counts.min() >= 0 and counts.max() < np.inf):  # NaN compares as false
        raise InputError(
            f"Counts must be finite numbers from 0, got {counts.min()} to {counts.max()}."
        )
    return counts.astype(np.float64)


def checked_codes(codes: ArrayLike, n: int | None = None) -> np.ndarray:
    """Return the numbers of values, after a check."""
    codes = np.asarray(codes)
    if codes.ndim != 1 or (n is not None and len(codes) != n):
        expected = "one dimension" if n is None else f"shape ({n},)"
        raise InputError(
            f"Numbers of values must be an array of {expected}, one for each row, got the shape "
            f"{codes.shape}."
        )
    if codes.size and (codes.dtype.kind not in "iub" or codes.min() < 0):
        raise InputError(
            f"Numbers of values must be whole numbers from 0, got {codes.dtype} from "
            f"{codes.min()}. Use those of codes.row_codes."
        )
    return codes.astype(np.int64)


def merged_rows(
    table: pa.Table, names: Sequence[str], counts: np.ndarray | None = None
) -> tuple[pa.Table, np.ndarray]:
    """Return the distinct rows of a projection and how often each is there."""
    weights = row_weights(table.num_rows, counts)
    codes = row_codes(table, names)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    sums = np.bincount(codes, weights, minlength=len(first)).astype(np.int64)
    order = np.argsort(first)
    return table.select(list(names)).take(pa.array(first[order])), sums[order]


def join_counts(
    left: pa.Table,
    right: pa.Table,
    on: Sequence[str],
    *,
    left_names: Sequence[str] = (),
    right_names: Sequence[str] = (),
    left_counts: np.ndarray | None = None,
    right_counts: np.ndarray | None = None,
) -> tuple[pa.Table, np.ndarray]:
    """Return the inner join of two tables as distinct rows with counts.

    Memory grows with the distinct rows of the result over the chosen columns and the join key, not
    with its rows. For a join of several tables, pass a result and its counts on.
    """
    chosen = [*on, *left_names, *right_names]
    if len(set(chosen)) < len(chosen):
        raise InputError(f"Columns of a join must have different names, got {chosen}. Rename one.")
    left, left_weights = merged_rows(left, [*on, *left_names], left_counts)
    right, right_weights = merged_rows(right, [*on, *right_names], right_counts)
    matches = KeyMatches(*key_codes(left, right, on))
    left_rows, right_rows = matches.pairs(0, left.num_rows)
    weights, factors = left_weights[left_rows], right_weights[right_rows]
    if (weights.astype(np.float64) * factors).sum() > MAX_ROWS:
        raise InputError(f"A join result must have {MAX_ROWS} rows at most. Join a sample.")
    result = take_cells(left, pa.array(left_rows))
    right_columns = take_cells(right.select(list(right_names)), pa.array(right_rows))
    for name in right_names:
        result = result.append_column(name, right_columns.column(name))
    return result, weights * factors


class KeyMatches:
    """The pairs of rows of two tables with equal keys, to be taken in parts."""

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        order = np.argsort(right, kind="stable")
        self._order = order[right[order] >= 0]
        self._starts = np.searchsorted(right[self._order], left, side="left")
        ends = np.searchsorted(right[self._order], left, side="right")
        self.sizes = ends - self._starts

    def pairs(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of some left rows, by left row and then by right row."""
        sizes, starts = self.sizes[first:last], self._starts[first:last]
        left_rows = np.repeat(np.arange(first, first + len(sizes)), sizes)
        steps = np.arange(len(left_rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return left_rows, self._order[np.repeat(starts, sizes) + steps]
