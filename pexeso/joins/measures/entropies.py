"""Entropies of what is counted, in bits, and of numbers, with the same bits on every processor.

Logarithms are made of additions, multiplications and divisions, which IEEE 754 defines to the last
bit; sums are rounded once, so that they do not depend on the order of their terms. What depends on
a count alone is computed once for each distinct count.

Cumulative entropy, h(X) = - integral of P(X <= x) log2 P(X <= x), measures how far numbers are
apart; it has their unit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from pexeso.errors import InputError
from pexeso.joins.measures.codes import checked_codes, checked_counts, paired_codes, row_weights
from pexeso.runtime.jit import loop

_N_TERMS = 13
"""The first term left out is below 2**-60 of the sum."""


def log2(values: ArrayLike) -> np.ndarray:
    """Return the logarithms to base 2 of positive numbers, exact for powers of two.

    A number is 2**e * m with m between sqrt(1/2) and sqrt(2), and ln m = 2 artanh(s) with
    s = (m - 1) / (m + 1), a series in s**2 <= 0.03. Each step is one addition, multiplication or
    division, which IEEE 754 defines to the last bit.
    """
    mantissa, exponent = np.frexp(np.asarray(values, np.float64))
    low = mantissa < math.sqrt(0.5)
    mantissa = np.where(low, mantissa * 2, mantissa)
    s = (mantissa - 1) / (mantissa + 1)
    square = s * s
    series = np.zeros_like(s)
    for power in range(2 * _N_TERMS - 1, 0, -2):
        series = series * square + 1 / power
    return (exponent - low) + series * s * (2 / _LN2)


_LN2 = 0.6931471805599453
"""The double nearest to ln 2."""


_MIN_COMPILED = 1 << 16
"""Fewer terms are summed in less time than a compiled loop takes to load."""


def exact_sum(values: np.ndarray) -> float:
    """Return the correctly rounded sum of finite numbers."""
    if len(values) < _MIN_COMPILED:
        return math.fsum(values.tolist())
    return math.fsum(_partial_sums(np.ascontiguousarray(values, np.float64)).tolist())


def information(counts: np.ndarray) -> float:
    """Return the entropy of counts times their total, sum of c log2(n / c)."""
    if not len(counts):
        return 0.0
    values, repeats = np.unique(np.asarray(counts, np.float64), return_counts=True)
    totals = values * repeats
    return exact_sum(totals * log2(exact_sum(totals) / values))


@loop
def _partial_sums(values: np.ndarray) -> np.ndarray:
    """Return numbers of which none overlaps another and whose exact sum is that of the values.

    J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
    Predicates" (1997), as `math.fsum` does it.
    """
    parts = np.zeros(64)  # doubles span 2,098 bits, 40 numbers of 53 bits
    n = 0
    for value in values:
        n_low = 0
        for i in range(n):
            part = parts[i]
            if abs(value) < abs(part):
                value, part = part, value
            high = value + part
            low = part - (high - value)
            if low != 0.0:
                parts[n_low] = low
                n_low += 1
            value = high
        parts[n_low] = value
        n = n_low + 1
    return parts[:n]


def entropy(counts: ArrayLike) -> float:
    """Return the Shannon entropy H of a distribution given by counts."""
    present = checked_counts(counts)
    present = present[present > 0]
    return information(present) / exact_sum(present) if len(present) else 0.0


def mutual_information(x: ArrayLike, y: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Return the mutual information I(X,Y) = H(X) - H(X|Y) of a joint distribution."""
    pairs, of_x, of_y, n = _joint(x, y, counts)
    return max(_mean(pairs, pairs * n / (of_x * of_y), n), 0.0)


def _joint(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the counts of the distinct pairs, of their x, of their y, and of all."""
    x = checked_codes(x)
    y, weights = checked_codes(y, len(x)), checked_counts(counts, len(x))
    x, y, weights = x[weights > 0], y[weights > 0], weights[weights > 0]
    if not len(x):
        return np.zeros(0), np.zeros(0), np.zeros(0), 0.0
    first = np.unique(paired_codes(x, y), return_index=True, return_inverse=True)
    pairs = np.bincount(first[2], weights)
    of_x, of_y = np.bincount(x, weights), np.bincount(y, weights)
    return pairs, of_x[x[first[1]]], of_y[y[first[1]]], exact_sum(pairs)


def _mean(counts: np.ndarray, ratios: np.ndarray, n: float) -> float:
    """Return the mean of the logarithms of ratios."""
    return exact_sum(counts * log2(ratios)) / n if n else 0.0


def cumulative_entropy(numbers: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Return the cumulative entropy h(X) of numbers."""
    return conditional_cumulative_entropy(numbers, np.zeros(np.shape(numbers), np.int64), counts)


def conditional_cumulative_entropy(
    numbers: ArrayLike, y: ArrayLike, counts: ArrayLike | None = None
) -> float:
    """Return the cumulative entropy h(X|Y) that is left of numbers where Y is known."""
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
