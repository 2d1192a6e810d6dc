"""Logarithms to base 2 that have the same bits on every processor.

The logarithms of numpy and of the C library are compiled several times, for processors with and
without wide vectors or fused multiplication, and differ in the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

_N_TERMS = 13
"""The first term left out is below 2**-60 of the sum."""


def log2(values: ArrayLike) -> np.ndarray:
    """Return the logarithms to base 2 of positive numbers, exact for powers of two.

    A number is 2**e * m with m between sqrt(1/2) and sqrt(2), and ln m = 2 artanh(s) with
    s = (m - 1) / (m + 1), a series in s**2 <= 0.03. Each step is one addition, multiplication or
    division, which IEEE 754 defines to the last bit.

    Parameters
    ----------
    values : array_like
        Finite numbers above zero.

    Returns
    -------
    numpy.ndarray of float64
        As many, within four units in the last place or, near 1, of the distance from 1.

    Examples
    --------
    >>> log2([1, 8, 0.25]).tolist()
    [0.0, 3.0, -2.0]
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
