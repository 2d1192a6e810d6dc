"""Shannon entropies of what is counted, in bits.

Symbols of the paper: H(X) the entropy of X, H(X|Y) = sum over y of p(y) H(X|y) the entropy that is
left of X where Y is known, I(X,Y) = H(X) - H(X|Y) their mutual information. With n rows, n_x of
them with X = x, n_y with Y = y and n_xy with both,

    H(X) = sum n_x/n log(n/n_x),    H(X|Y) = sum n_xy/n log(n_y/n_xy),
    I(X,Y) = sum n_xy/n log(n n_xy / (n_x n_y)).

So an entropy is never below 0, H(X|Y) is 0 where Y determines X, and I(X,Y) is that of (Y,X), all
to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pexeso.acquisition.measures.codes import checked_codes, checked_counts, paired_codes
from pexeso.acquisition.measures.logarithm import log2
from pexeso.acquisition.measures.sums import exact_sum, information


def entropy(counts: ArrayLike) -> float:
    """Return the Shannon entropy H of a distribution given by counts.

    Parameters
    ----------
    counts : array_like
        How often each value is there; zeros do not count.

    Returns
    -------
    float
        In bits; 0 without a row.

    Raises
    ------
    InputError
        If the counts are not in one dimension, or one is below 0 or not finite.

    Examples
    --------
    >>> entropy([2, 2, 4])
    1.5
    """
    present = checked_counts(counts)
    present = present[present > 0]
    return information(present) / exact_sum(present) if len(present) else 0.0


def conditional_entropy(x: ArrayLike, y: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Return the conditional entropy H(X|Y) of a joint distribution given by counts.

    Parameters
    ----------
    x, y : array_like of int
        Numbers of the values of X and of Y, from 0, as `codes.row_codes` returns them.
    counts : array_like, optional
        How often each pair (x[i], y[i]) is there, once if not given. Pairs may repeat.

    Returns
    -------
    float
        In bits; 0 without a row.

    Raises
    ------
    InputError
        If the arrays differ in length, x or y are no whole numbers from 0, or a count is below 0.

    Examples
    --------
    >>> conditional_entropy([0, 1, 0, 1], [0, 0, 1, 1])
    1.0
    >>> conditional_entropy([0, 1], [0, 1])
    0.0
    """
    pairs, _, of_y, n = _joint(x, y, counts)
    return _mean(pairs, of_y / pairs, n)


def mutual_information(x: ArrayLike, y: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Return the mutual information I(X,Y) = H(X) - H(X|Y) of a joint distribution.

    Parameters
    ----------
    x, y : array_like of int
        Numbers of the values of X and of Y, from 0.
    counts : array_like, optional
        How often each pair (x[i], y[i]) is there, once if not given. Pairs may repeat.

    Returns
    -------
    float
        In bits, at least 0; 0 without a row.

    Raises
    ------
    InputError
        If the arrays differ in length, x or y are no whole numbers from 0, or a count is below 0.

    Examples
    --------
    >>> mutual_information([0, 1, 2, 2], [0, 0, 1, 1])
    1.0
    """
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
