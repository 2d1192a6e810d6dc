"""Rows as numbers: equal numbers where the values of chosen columns are equal.

Missing cells are a value equal to itself, NaN too, and 0.0 equals -0.0. Memory: about 40 bytes a
row, next to a copy of a column that comes in chunks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from pexeso.errors import ColumnNotFoundError, InputError

MAX_ROWS = 2**53
"""Sums of counts up to it are exact as doubles."""


def column_of(table: pa.Table, name: str) -> pa.Array:
    """Return a column in one piece, of a plain type.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    name : str
        The name of one of its columns.

    Returns
    -------
    pyarrow.Array
        Dictionaries are decoded, integers are int64 (uint64 stays), texts are large_string.

    Raises
    ------
    ColumnNotFoundError
        If the table has no column, or several columns, of this name.
    """
    if table.column_names.count(name) != 1:
        raise ColumnNotFoundError(
            f"The column {name!r} must be in the table once, it is there "
            f"{table.column_names.count(name)} times. Columns: {table.column_names}."
        )
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_string(kind):
        column = column.cast(pa.large_string())
    elif pa.types.is_floating(kind):
        column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan")), column)
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def encoded(column: pa.Array, name: str = "") -> pa.DictionaryArray:
    """Return a column as positions in its distinct values, a missing cell among these.

    Parameters
    ----------
    column : pyarrow.Array
        The column.
    name : str
        What an error calls it.

    Returns
    -------
    pyarrow.DictionaryArray

    Raises
    ------
    InputError
        If the values are lists, structs or of another type that cannot be compared.
    """
    try:
        return pc.dictionary_encode(column, null_encoding="encode")
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"Values of the column {name!r} must be texts, numbers, times or truth values, got "
            f"{column.type}. Flatten it first."
        ) from error


def row_codes(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    """Return a number for each row, equal where all of the named columns are equal.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    names : sequence of str
        The columns to compare; without any, all rows are equal.

    Returns
    -------
    numpy.ndarray of int64
        Numbers from 0 without gaps.

    Examples
    --------
    >>> table = pa.table({"a": ["x", "x", None, None], "b": [1, 1, 2, 2]})
    >>> codes = row_codes(table, ["a", "b"])
    >>> codes[0] == codes[1], codes[2] == codes[3], codes[0] == codes[2]
    (np.True_, np.True_, np.False_)
    """
    codes = np.zeros(table.num_rows, np.int64)
    for name in names:
        column = encoded(column_of(table, name), name)
        codes = paired_codes(codes, column.indices.to_numpy().astype(np.int64))
    return codes


def paired_codes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a number for each pair of numbers of two arrays, from 0 without gaps.

    Parameters
    ----------
    first, second : numpy.ndarray of int64
        Numbers from 0, below the number of rows each.

    Returns
    -------
    numpy.ndarray of int64
    """
    if not len(first):
        return np.zeros(0, np.int64)
    pairs = first * (int(second.max()) + 1) + second
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64)


def key_codes(
    left: pa.Table, right: pa.Table, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for the join key of each row of two tables, equal for equal keys.

    Parameters
    ----------
    left, right : pyarrow.Table
        The tables.
    names : sequence of str
        The columns of the join, which have equal names in both; at least one.

    Returns
    -------
    tuple of numpy.ndarray of int64
        Of the left and of the right rows; -1 where a cell of the key is missing, which matches
        nothing.

    Raises
    ------
    InputError
        If no column is named, or one has values of different types in the two tables.
    ColumnNotFoundError
        If a table lacks a column.

    Examples
    --------
    >>> left, right = pa.table({"k": ["a", "b"]}), pa.table({"k": ["b", None]})
    >>> [codes.tolist() for codes in key_codes(left, right, ["k"])]
    [[0, 1], [1, -1]]
    """
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
    """Return how often each row counts, after a check.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    counts : numpy.ndarray or None
        How often each row is there, for a table that holds equal rows once; None for once each.

    Returns
    -------
    numpy.ndarray of int64

    Raises
    ------
    InputError
        If there are not as many counts as rows, one is no whole number from 0, or they add up to
        more than `MAX_ROWS`.
    """
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
    """Return how often each of some values is there, after a check.

    Parameters
    ----------
    counts : array_like or None
        Numbers from 0; None for once each.
    n : int, optional
        How many there must be.

    Returns
    -------
    numpy.ndarray of float64

    Raises
    ------
    InputError
        If the counts are not in one dimension, there are not `n`, or one is below 0 or not finite.
    """
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
    """Return the numbers of values, after a check.

    Parameters
    ----------
    codes : array_like of int
        Numbers from 0, one for each row.
    n : int, optional
        How many there must be.

    Returns
    -------
    numpy.ndarray of int64

    Raises
    ------
    InputError
        If they are not in one dimension, there are not `n`, or one is no whole number from 0.
    """
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
