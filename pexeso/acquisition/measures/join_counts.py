"""Join results as distinct rows with counts.

Correlation and quality of a join result depend on the chosen columns alone, and on how often each
of their rows is there. Equal rows of a table are merged before the join: where n1 rows of one table
and n2 of the other agree in the chosen columns and the join key, the result has one row that counts
n1 * n2 times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pexeso.acquisition.measures.codes import MAX_ROWS, key_codes, row_codes, row_weights
from pexeso.errors import InputError
from pexeso.frames.beside import take_cells


def merged_rows(
    table: pa.Table, names: Sequence[str], counts: np.ndarray | None = None
) -> tuple[pa.Table, np.ndarray]:
    """Return the distinct rows of a projection and how often each is there.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    names : sequence of str
        The columns of the projection.
    counts : numpy.ndarray of int, optional
        How often each row of the table is there, once if not given.

    Returns
    -------
    tuple of pyarrow.Table and numpy.ndarray of int64
        In the order in which the rows first appear.

    Raises
    ------
    InputError
        If the counts do not fit the rows, or values cannot be compared.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"a": ["x", "y", "x"], "b": [1, 2, 3]})
    >>> rows, counts = merged_rows(table, ["a"])
    >>> rows.to_pydict(), counts.tolist()
    ({'a': ['x', 'y']}, [2, 1])
    """
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

    Parameters
    ----------
    left, right : pyarrow.Table
        The tables.
    on : sequence of str
        The columns of the join, of equal names in both. A missing cell matches nothing.
    left_names, right_names : sequence of str
        Further columns of the result.
    left_counts, right_counts : numpy.ndarray of int, optional
        How often each row of the tables is there, once if not given.

    Returns
    -------
    tuple of pyarrow.Table and numpy.ndarray of int64
        The columns `on`, `left_names` and `right_names`, and how often each row is there.

    Raises
    ------
    InputError
        If two columns of the result have one name, columns of the join differ in type, counts do
        not fit, or the result has more than `codes.MAX_ROWS` rows.
    ColumnNotFoundError
        If a table lacks a column.

    Examples
    --------
    >>> left = pa.table({"k": [1, 1, 2], "age": ["old", "old", "young"]})
    >>> right = pa.table({"k": [1, 1, 3], "disease": ["flu", "flu", "gout"]})
    >>> rows, counts = join_counts(left, right, ["k"], right_names=["disease"])
    >>> rows.to_pydict(), counts.tolist()
    ({'k': [1], 'disease': ['flu']}, [4])
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
    """The pairs of rows of two tables with equal keys, to be taken in parts.

    Parameters
    ----------
    left, right : numpy.ndarray of int64
        The numbers of the keys of their rows, as `codes.key_codes` returns them.

    Attributes
    ----------
    sizes : numpy.ndarray of int64
        For each left row the number of right rows with its key.

    Examples
    --------
    >>> matches = KeyMatches(np.array([0, 1, 2]), np.array([2, 0, 2, -1]))
    >>> matches.sizes.tolist()
    [1, 0, 2]
    >>> [rows.tolist() for rows in matches.pairs(1, 3)]
    [[2, 2], [0, 2]]
    """

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        order = np.argsort(right, kind="stable")
        self._order = order[right[order] >= 0]
        self._starts = np.searchsorted(right[self._order], left, side="left")
        ends = np.searchsorted(right[self._order], left, side="right")
        self.sizes = ends - self._starts

    def pairs(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of some left rows, by left row and then by right row.

        Parameters
        ----------
        first, last : int
            The left rows from `first` to below `last`.

        Returns
        -------
        tuple of numpy.ndarray of int64
            The numbers of their left rows, and of their right rows.
        """
        sizes, starts = self.sizes[first:last], self._starts[first:last]
        left_rows = np.repeat(np.arange(first, first + len(sizes)), sizes)
        steps = np.arange(len(left_rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return left_rows, self._order[np.repeat(starts, sizes) + steps]
