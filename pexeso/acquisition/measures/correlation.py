"""Correlation of attributes of a table, or of a join result, by entropies.

Symbols of the paper: X = A_S the source attributes, Y = A_T the target attributes. The paper has
CORR(X,Y) = H(X) - H(X|Y) for categorical X and h(X) - h(X|Y), with cumulative entropies, for a
numerical one. Sets of attributes of both kinds, which it leaves open, are measured by

    CORR(X,Y) = H(X_c) - H(X_c|Y) + sum for a in X_n of (h(a) - h(a|Y)),

X_c the categorical attributes of X taken jointly and X_n its numerical ones. Y is taken jointly. A
numerical attribute of Y with more than `y_bins` distinct values is first cut into `y_bins` bins of
equally many rows, equal values in the same bin: with a Y that is nearly unique each X would seem
determined.

Terms of numerical attributes have the unit of the attribute, so different units are summed as they
are with `numeric_scale="raw"`, which is what the paper does. A missing cell is a value equal to
itself, except in a numerical attribute of X, whose term then leaves the row out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.acquisition.measures.codes import column_of, paired_codes, row_codes, row_weights
from pexeso.acquisition.measures.cumulative_entropy import (
    conditional_cumulative_entropy,
    cumulative_entropy,
)
from pexeso.acquisition.measures.entropy import mutual_information
from pexeso.acquisition.measures.sums import exact_sum
from pexeso.errors import InputError

SCALES = ("raw", "minmax", "std")
"""How numerical attributes are scaled before they are measured."""


def correlation(
    table: pa.Table,
    x: Sequence[str],
    y: Sequence[str],
    *,
    numeric: Collection[str] = (),
    y_bins: int = 16,
    numeric_scale: str = "raw",
    counts: np.ndarray | None = None,
) -> float:
    """Return the correlation CORR(X,Y) of two sets of attributes.

    Parameters
    ----------
    table : pyarrow.Table
        A table or a join result.
    x, y : sequence of str
        X and Y, at least one column each.
    numeric : collection of str
        The numerical attributes. All others are categorical, whatever their type: keys are often
        integers.
    y_bins : int
        Most distinct values of a numerical attribute of Y that is not cut into bins; also the
        number of bins.
    numeric_scale : {"raw", "minmax", "std"}
        Numerical attributes of X as they are, divided by their range, or by their standard
        deviation.
    counts : numpy.ndarray of int, optional
        How often each row is there, for a join result that holds equal rows once.

    Returns
    -------
    float
        At least 0; 0 for a table without rows.

    Raises
    ------
    InputError
        If X or Y is empty, an option is not one of those allowed, or a numerical attribute holds
        values that are no finite numbers.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"age": ["old", "young"], "disease": ["gout", "flu"]})
    >>> correlation(table, ["age"], ["disease"])
    1.0
    """
    options = {"numeric": numeric, "y_bins": y_bins, "numeric_scale": numeric_scale}
    return CorrelationOfCounts(table, x, y, **options)(counts)


class CorrelationOfCounts:
    """The correlation CORR(X,Y) of a table as a function of how often each of its rows is there.

    Values are compared once, so it is quick for many counts of the same rows, as those of parts of
    a sample.

    Parameters
    ----------
    table, x, y, numeric, y_bins, numeric_scale
        As those of `correlation`.

    Raises
    ------
    InputError, ColumnNotFoundError
        As `correlation` does.

    Examples
    --------
    >>> table = pa.table({"age": ["old", "young", "old"], "disease": ["gout", "flu", "flu"]})
    >>> of_counts = CorrelationOfCounts(table, ["age"], ["disease"])
    >>> of_counts(np.array([1, 1, 0])), of_counts(np.array([0, 5, 5]))
    (1.0, 0.0)
    """

    def __init__(
        self,
        table: pa.Table,
        x: Sequence[str],
        y: Sequence[str],
        *,
        numeric: Collection[str] = (),
        y_bins: int = 16,
        numeric_scale: str = "raw",
    ) -> None:
        if not x or not y:
            raise InputError(
                f"A correlation needs columns on both sides, got {list(x)} and {list(y)}."
            )
        if numeric_scale not in SCALES:
            raise InputError(f"numeric_scale must be one of {SCALES}, got {numeric_scale!r}.")
        if y_bins < 1:
            raise InputError(f"y_bins must be 1 or more, got {y_bins}.")
        self._n_rows = table.num_rows
        self._scale, self._bins = numeric_scale, y_bins
        categorical = [name for name in x if name not in numeric]
        self._x = row_codes(table, categorical) if categorical else None
        self._x_numbers = [
            _ascending(numbers_of(column_of(table, name), name)) for name in x if name in numeric
        ]
        self._y = row_codes(table, [name for name in y if name not in numeric])
        self._y_numbers = [
            numbers_of(column_of(table, name), name) for name in y if name in numeric
        ]

    def __call__(self, counts: np.ndarray | None = None) -> float:
        """Return the correlation.

        Parameters
        ----------
        counts : numpy.ndarray of int, optional
            How often each row is there, once if not given.

        Returns
        -------
        float
            At least 0; 0 without a row.

        Raises
        ------
        InputError
            If the counts do not fit the rows.
        """
        weights = row_weights(self._n_rows, counts)
        mask = weights > 0
        weights = weights[mask]
        y = self._y_codes(mask, weights)
        positions = np.cumsum(mask) - 1
        terms = []
        for rows, numbers in self._x_numbers:
            row_mask = mask[rows]
            at = positions[rows[row_mask]]
            terms.append(_numeric_term(numbers[row_mask], y[at], weights[at], self._scale))
        if self._x is not None:
            terms.append(mutual_information(self._x[mask], y, weights))
        return math.fsum(terms)

    def cells(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Return the number of the cell of each row among those that the correlation counts.

        Rows of one cell have equal categorical attributes of X and the same Y, numbers of Y in the
        same bin.

        Parameters
        ----------
        counts : numpy.ndarray of int, optional
            How often each row is there, which decides on the bins.

        Returns
        -------
        numpy.ndarray of int64
            One for each row, -1 for rows that are not there.
        """
        weights = row_weights(self._n_rows, counts)
        mask = weights > 0
        cells = np.full(self._n_rows, -1)
        y = self._y_codes(mask, weights[mask])
        cells[mask] = y if self._x is None else paired_codes(self._x[mask], y)
        return cells

    def _y_codes(self, mask: np.ndarray, weights: np.ndarray) -> np.ndarray:
        codes = self._y[mask]
        for numbers in self._y_numbers:
            codes = paired_codes(codes, bins_of(numbers[mask], weights, self._bins))
        return codes


def total_correlation(
    table: pa.Table,
    names: Sequence[str],
    *,
    numeric: Collection[str] = (),
    y_bins: int = 16,
    numeric_scale: str = "raw",
    counts: np.ndarray | None = None,
) -> float:
    """Return the correlation of the attributes of one set with each other.

    It is the sum for i >= 2 of CORR(a_i, {a_1, ..., a_(i-1)}), in the order given, which matters
    where attributes are numerical. The paper asks for the "best correlation of A_T" where there are
    no source attributes and leaves open what that is.

    Parameters
    ----------
    table : pyarrow.Table
        A table or a join result.
    names : sequence of str
        A_T, at least two columns.
    numeric, y_bins, numeric_scale, counts
        As those of `correlation`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If fewer than two columns are named, or as `correlation` does.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"a": [1, 2], "b": [1, 2], "c": [1, 2]})
    >>> total_correlation(table, ["a", "b", "c"])
    2.0
    """
    if len(names) < 2:
        raise InputError(f"A total correlation needs at least two columns, got {list(names)}.")
    options = {"numeric": numeric, "y_bins": y_bins, "numeric_scale": numeric_scale}
    return math.fsum(
        correlation(table, [names[i]], names[:i], counts=counts, **options)
        for i in range(1, len(names))
    )


def _numeric_term(numbers: np.ndarray, y: np.ndarray, weights: np.ndarray, scale: str) -> float:
    """Return h(a) - h(a|Y) of rows in the order of their numbers."""
    unit = unit_of(numbers, weights, scale)
    whole = cumulative_entropy(numbers, weights)
    left = conditional_cumulative_entropy(numbers, y, weights)
    return max(whole - left, 0.0) / unit if unit else 0.0


def _ascending(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have a number, in the order of their numbers, and these."""
    order = np.argsort(numbers, kind="stable")  # NaN last
    order = order[: len(order) - np.isnan(numbers).sum()]
    return order, numbers[order]


def unit_of(numbers: np.ndarray, weights: np.ndarray, scale: str) -> float:
    """Return what a numerical attribute is divided by: 1, its range or its standard deviation."""
    if scale == "raw" or not len(numbers):
        return 1.0
    if scale == "minmax":
        return float(numbers.max() - numbers.min())
    n = int(weights.sum())
    mean = exact_sum(numbers * weights) / n
    return math.sqrt(exact_sum(weights * (numbers - mean) * (numbers - mean)) / n)


def bins_of(numbers: np.ndarray, weights: np.ndarray, y_bins: int) -> np.ndarray:
    """Return the bin of each row of a numerical attribute of Y.

    Parameters
    ----------
    numbers : numpy.ndarray of float64
        NaN where a number is missing: such rows have bin 0.
    weights : numpy.ndarray
        How often each row is there; rows that are not there have no say.
    y_bins : int
        Up to so many distinct values each is a bin of its own, more are cut into so many bins of
        equally many rows, equal values in the same bin.

    Examples
    --------
    >>> bins_of(np.array([1.0, 2.0, 3.0, np.nan]), np.ones(4, np.int64), 2).tolist()
    [1, 1, 2, 0]
    """
    known = ~np.isnan(numbers) & (weights > 0)
    values, codes = np.unique(numbers[known], return_inverse=True)
    bins = np.arange(len(values))
    if len(values) > y_bins:
        sizes = np.bincount(codes, weights[known]).astype(np.int64)
        bins = (np.cumsum(sizes) - sizes) * y_bins // sizes.sum()
    result = np.zeros(len(numbers), np.int64)
    result[known] = bins[codes] + 1
    return result


def numbers_of(column: pa.Array, name: str = "") -> np.ndarray:
    """Return a numerical column as doubles, NaN where a number is missing.

    Parameters
    ----------
    column : pyarrow.Array
        As `codes.column_of` returns it.
    name : str
        What an error calls it.

    Raises
    ------
    InputError
        If the values are no finite numbers.
    """
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(
            f"The numerical column {name!r} must hold numbers, got {kind}. Cast it, or measure it "
            "as categorical."
        )
    column = pc.cast(column, pa.float64(), safe=False)
    numbers = column.fill_null(math.nan).to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        raise InputError(f"The numerical column {name!r} must hold finite numbers, got infinity.")
    return numbers
