"""Cumulative entropies of numbers.

Symbols of the paper: h(X) = - integral of P(X <= x) log P(X <= x) dx, and h(X|Y) = integral of
h(X|y) p(y) dy. The paper prints a minus before the last integral, a misprint: conditioning would
add entropy. For sorted numbers x_1 <= ... <= x_n the distribution function is a step function, so

    h(X) = sum for i < n of (x_(i+1) - x_i) (i/n) log(n/i),    h(X|Y) = sum over y of n_y/n h(X|y).

It has the unit of X: h(cX + d) = c h(X) for c > 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from pexeso.acquisition.measures.codes import checked_codes, row_weights
from pexeso.acquisition.measures.logarithm import log2
from pexeso.acquisition.measures.sums import exact_sum
from pexeso.errors import InputError


def cumulative_entropy(numbers: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Return the cumulative entropy h(X) of numbers.

    Parameters
    ----------
    numbers : array_like of float
        Finite numbers, in any order; they may repeat.
    counts : array_like of int, optional
        How often each is there, once if not given.

    Returns
    -------
    float
        In bits times the unit of the numbers; 0 for fewer than two.

    Raises
    ------
    InputError
        If a number is not finite, the arrays differ in length, or the counts are no whole numbers
        from 0.

    Examples
    --------
    >>> cumulative_entropy([1, 0])
    0.5
    """
    return conditional_cumulative_entropy(numbers, np.zeros(np.shape(numbers), np.int64), counts)


def conditional_cumulative_entropy(
    numbers: ArrayLike, y: ArrayLike, counts: ArrayLike | None = None
) -> float:
    """Return the cumulative entropy h(X|Y) that is left of numbers where Y is known.

    Parameters
    ----------
    numbers : array_like of float
        X, finite numbers, in any order.
    y : array_like of int
        The number of the value of Y in each row.
    counts : array_like of int, optional
        How often each row is there, once if not given.

    Returns
    -------
    float
        In bits times the unit of the numbers; 0 without a row.

    Raises
    ------
    InputError
        If a number is not finite, the arrays differ in length, or y or the counts are no whole
        numbers from 0.

    Examples
    --------
    >>> conditional_cumulative_entropy([0, 1, 2, 3], [0, 0, 1, 1])
    0.5
    """
    numbers, y = np.asarray(numbers, np.float64), checked_codes(y)
    if numbers.shape != y.shape or not np.isfinite(numbers).all():
        raise InputError(
            f"Each of {len(y)} rows must have one finite number, got an array of shape "
            f"{numbers.shape}. Leave rows without a number out."
        )
    weights = row_weights(len(y), counts)
    numbers, y, weights = numbers[weights > 0], y[weights > 0], weights[weights > 0]
    if not len(y):
        return 0.0
    steps = np.diff(y)
    if (steps < 0).any() or ((steps == 0) & (numbers[1:] < numbers[:-1])).any():
        order = _by_y_and_number(numbers, y)
        numbers, y, weights = numbers[order], y[order], weights[order]
    starts = np.flatnonzero(np.diff(y, prepend=y[0] - 1))
    sizes = np.add.reduceat(weights, starts)
    segment = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(y)))
    below = np.cumsum(weights) - (np.cumsum(sizes) - sizes)[segment]
    inner = np.flatnonzero(segment[1:] == segment[:-1])
    gaps = numbers[inner + 1] - numbers[inner]
    terms = gaps * below[inner] * log2(sizes[segment[inner]] / below[inner])
    return exact_sum(terms) / int(weights.sum())


def _by_y_and_number(numbers: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the order of rows by y and then by number, quickly where numbers ascend already."""
    if (numbers[1:] < numbers[:-1]).any():
        return np.lexsort([numbers, y])
    # Rows of a sparse matrix are formed by counting, in linear time.
    positions = np.arange(len(y))
    return csr_matrix((positions, (y, positions)), (int(y.max()) + 1, len(y))).data
