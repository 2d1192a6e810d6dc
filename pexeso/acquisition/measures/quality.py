"""Quality of a table or of a join result: the share of rows that agree with dependencies.

Symbols of the paper: F: X -> Y a functional dependency with one attribute Y on its right side, D
the table, pi_X(D) its rows grouped by equal X. In each group the rows with the most frequent Y are
correct, C(D,F) are the correct rows of all groups, Q(D,F) = |C(D,F)| / |D|. For a set FS of
dependencies a row must be correct for each, and Q is measured on the join result, since a join can
make good tables bad and bad ones good.

Of equally frequent Y the paper draws one; here it is the one whose text comes first, a missing cell
before all texts. It changes Q only where there are several dependencies.

A dependency holds approximately where the share of other rows, 1 - Q(D,F), is at most a threshold
theta. The paper asks for Q(D,F) >= theta, but takes theta = 0.1 to mean that fewer than a tenth of
the rows are wrong. A join result without rows has quality 0; without dependencies each row is
correct.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.measures.codes import (
    column_of,
    encoded,
    paired_codes,
    row_codes,
    row_weights,
)
from pexeso.errors import InputError


@dataclass(frozen=True)
class Dependency:
    """A functional dependency X -> Y.

    Attributes
    ----------
    left : tuple of str
        X, the attributes that determine; none where Y is constant.
    right : str
        Y, the attribute that is determined.
    """

    left: tuple[str, ...]
    right: str


def quality(
    table: pa.Table, dependencies: Sequence[Dependency], counts: np.ndarray | None = None
) -> float:
    """Return the quality Q of a table or a join result.

    Parameters
    ----------
    table : pyarrow.Table
        The table, or the join result.
    dependencies : sequence of Dependency
        FS.
    counts : numpy.ndarray of int, optional
        How often each row is there, for a join result that holds equal rows once.

    Returns
    -------
    float
        The share of rows that are correct for all dependencies; 0 for a table without rows.

    Raises
    ------
    InputError
        If the counts do not fit the rows, or values cannot be compared.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> zips, states = ["07003", "10001", "10001", "10001"], ["NJ", "NJ", "NY", "NY"]
    >>> table = pa.table({"zip": zips, "state": states})
    >>> quality(table, [Dependency(("zip",), "state")])
    0.75
    """
    return QualityOfCounts(table, dependencies)(counts)


class QualityOfCounts:
    """The quality Q of a table as a function of how often each of its rows is there.

    Values are compared once, so it is quick for many counts of the same rows.

    Parameters
    ----------
    table : pyarrow.Table
        The table, or the join result.
    dependencies : sequence of Dependency
        FS.

    Raises
    ------
    InputError
        If values cannot be compared.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"zip": [1, 1], "state": ["NJ", "NY"]})
    >>> of_counts = QualityOfCounts(table, [Dependency(("zip",), "state")])
    >>> of_counts(np.array([3, 1])), of_counts(np.array([0, 2]))
    (0.75, 1.0)
    """

    def __init__(self, table: pa.Table, dependencies: Sequence[Dependency]) -> None:
        self._n_rows = table.num_rows
        self.left_codes = [row_codes(table, dependency.left) for dependency in dependencies]
        self._right_ranks = [
            text_ranks(column_of(table, dependency.right), dependency.right)
            for dependency in dependencies
        ]

    def __call__(self, counts: np.ndarray | None = None) -> float:
        """Return the quality.

        Parameters
        ----------
        counts : numpy.ndarray of int, optional
            How often each row is there, once if not given.

        Returns
        -------
        float
            The share of rows that are correct for all dependencies; 0 without a row.

        Raises
        ------
        InputError
            If the counts do not fit the rows.
        """
        weights = row_weights(self._n_rows, counts)
        n = int(weights.sum())
        return int(weights[self.correct(weights)].sum()) / n if n else 0.0

    def correct(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Return which rows are correct for all dependencies.

        Parameters
        ----------
        counts : numpy.ndarray of int, optional
            How often each row is there, once if not given.

        Returns
        -------
        numpy.ndarray of bool
            One for each row.

        Raises
        ------
        InputError
            If the counts do not fit the rows.
        """
        weights = row_weights(self._n_rows, counts)
        correct = np.ones(self._n_rows, bool)
        for left, right in zip(self.left_codes, self._right_ranks, strict=True):
            correct &= _most_frequent(left, right, weights)
        return correct


def correct_rows(
    table: pa.Table, dependency: Dependency, counts: np.ndarray | None = None
) -> np.ndarray:
    """Return which rows are correct for one dependency, C(D,F).

    Parameters
    ----------
    table : pyarrow.Table
        D.
    dependency : Dependency
        F.
    counts : numpy.ndarray of int, optional
        How often each row is there, once if not given.

    Returns
    -------
    numpy.ndarray of bool
        One for each row.

    Raises
    ------
    InputError
        If the counts do not fit the rows, or values cannot be compared.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"a": [1, 1, 1], "b": ["x", "y", "y"]})
    >>> correct_rows(table, Dependency(("a",), "b")).tolist()
    [False, True, True]
    """
    weights = row_weights(table.num_rows, counts)
    y = text_ranks(column_of(table, dependency.right), dependency.right)
    return _most_frequent(row_codes(table, dependency.left), y, weights)


def approximate_dependencies(
    table: pa.Table,
    names: Sequence[str] | None = None,
    *,
    max_error: float = 0.1,
    max_left: int = 2,
    include_keys: bool = False,
    counts: np.ndarray | None = None,
) -> list[Dependency]:
    """Return the minimal dependencies that hold approximately, by growing left sides.

    Of left sides that determine the same attribute only those are returned of which no part
    determines it: a further attribute on the left never lowers Q. The work grows with the number
    of columns to the power of `max_left` + 1.

    Parameters
    ----------
    table : pyarrow.Table
        The table, or the join result.
    names : sequence of str, optional
        The columns to look at, all if not given.
    max_error : float
        theta, the largest share of wrong rows, 1 - Q(D,F).
    max_left : int
        The most attributes on a left side.
    include_keys : bool
        Keep left sides of which each row has its own value; they determine everything.
    counts : numpy.ndarray of int, optional
        How often each row is there, once if not given.

    Returns
    -------
    list of Dependency
        By the number of attributes on the left, then in the order of the columns.

    Raises
    ------
    InputError
        If an option is not one of those allowed, or values cannot be compared.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"zip": [1, 2, 3, 3], "state": ["NJ", "NJ", "NY", "NY"]})
    >>> approximate_dependencies(table)
    [Dependency(left=('zip',), right='state')]
    """
    if not 0 <= max_error <= 1:
        raise InputError(f"max_error must be from 0 to 1, got {max_error}.")
    if max_left < 1:
        raise InputError(f"max_left must be 1 or more, got {max_left}.")
    weights = row_weights(table.num_rows, counts)
    table, weights = table.filter(pa.array(weights > 0)), weights[weights > 0]
    names = table.column_names if names is None else list(names)
    codes = {name: text_ranks(column_of(table, name), name) for name in names}
    left_sides: dict[str, list[frozenset[str]]] = {name: [] for name in names}
    result = []
    for left in (left for n in range(1, max_left + 1) for left in combinations(names, n)):
        x = _joint_codes([codes[name] for name in left])
        if not include_keys and _is_key(x, weights):
            continue
        for right in (name for name in names if name not in left):
            if any(part < set(left) for part in left_sides[right]):
                continue
            if _error(x, codes[right], weights) <= max_error:
                left_sides[right].append(frozenset(left))
                result.append(Dependency(left, right))
    return result


def text_ranks(column: pa.Array, name: str = "") -> np.ndarray:
    """Return the rank of each value among the distinct values, by its text.

    Parameters
    ----------
    column : pyarrow.Array
        A column as `codes.column_of` returns it.
    name : str
        What an error calls it.

    Returns
    -------
    numpy.ndarray of int64
        0 for the value whose text has the smallest bytes; a missing cell comes before all texts.
        Numbers are texts without trailing zeros after the point.

    Examples
    --------
    >>> text_ranks(pa.array([9.0, 10.0, None, 9.0])).tolist()
    [2, 1, 0, 2]
    """
    pieces = encoded(column, name)
    texts = pieces.dictionary
    if not pa.types.is_binary(texts.type) and not pa.types.is_large_binary(texts.type):
        texts = pc.cast(texts, pa.large_string())
    kind = pieces.dictionary.type
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        texts = pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$", r"\1")
        texts = pc.replace_substring_regex(texts, r"\.0*$", "")
    order = np.roll(pc.sort_indices(texts).to_numpy(), texts.null_count)  # Arrow sorts it last
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[pieces.indices.to_numpy()]


def _most_frequent(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which rows have the most frequent y of their x, of equal ones the smallest y."""
    if not len(x):
        return np.zeros(0, bool)
    pairs = paired_codes(x, y)
    _, first = np.unique(pairs, return_index=True)
    sizes = np.bincount(pairs, weights).astype(np.int64)
    order = np.lexsort([y[first], -sizes, x[first]])
    groups = x[first][order]
    winners = np.zeros(len(order), bool)
    winners[order[np.flatnonzero(np.diff(groups, prepend=-1))]] = True
    return winners[pairs]


def _error(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of rows that are not correct, 0 without rows."""
    n = int(weights.sum())
    return int(weights[~_most_frequent(x, y, weights)].sum()) / n if n else 0.0


def _is_key(x: np.ndarray, weights: np.ndarray) -> bool:
    return len(np.unique(x)) == int(weights.sum())


def _joint_codes(columns: Sequence[np.ndarray]) -> np.ndarray:
    codes = columns[0]
    for column in columns[1:]:
        codes = paired_codes(codes, column)
    return codes
