"""Metrics, reproducible distances, and the error bands of quick ones.

Whether a query value matches a lake value is *defined* here: the float64 distance of the two stored
float32 vectors, compared with tau in float64. Sums run over a fixed binary tree of element-wise
operations, each rounded once as IEEE 754 says, so a distance is the same bits in any batch, on any
number of threads and on any device. Every faster way must give the same set.

The defining distance has a relative error below ``2**-40`` for any dimension allowed. A quick
distance is compared with two limits around tau: not beyond ``surely`` it is a match, beyond
``possibly`` it is none, and between the two, in the band, the defining distance decides. So every
kernel gives the same answer to the last bit.

Notation: ``u`` is the unit roundoff of a format (``2**-24`` for float32, ``2**-11`` for float16)
and ``g(n, u) = n u / (1 - n u)`` the bound of n roundings (Higham, *Accuracy and Stability of
Numerical Algorithms*, lemma 3.1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

FLOAT32_ROUNDOFF = 2.0**-24
FLOAT16_ROUNDOFF = 2.0**-11

# Of a squared length summed in float32, which is off by ``2**-10`` at most: the length is then off
# by less than three quarters of what the check allows.
SURELY_UNIT = 2.0**-11

# Smallest step of float16 numbers: what underflow can cost an entry, at most half of it.
FLOAT16_SMALLEST = 2.0**-24

# Vectors have length 1 to within 1e-3 (`pexeso.engine.maps.check_vectors`).
LARGEST_NORM = 1.001

_DEFINING = 2.0**-40
_UNDERFLOW = 2.0**-100


def distances(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the defining float64 distances of row pairs, of shapes (..., d) that broadcast."""
    difference = left.double() - right.double()
    return square_roots(tree_sum(difference * difference))


def quick_distances(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Compute all distances of float64 rows by matrix products, accurate to about 1e-7."""
    return torch.cdist(left, right, p=2.0, compute_mode="use_mm_for_euclid_dist")


def square_roots(squares: torch.Tensor) -> torch.Tensor:
    """Return square roots, float64, each rounded once as IEEE 754 says.

    On the CPU torch may leave them to a library (MKL) that is one step off for some numbers; numpy
    and CUDA round as they should.
    """
    if squares.device.type == "cpu":
        return torch.as_tensor(np.sqrt(squares.numpy()))
    return torch.sqrt(squares)


def tree_sum(terms: torch.Tensor) -> torch.Tensor:
    """Sum float64 terms over the last axis by halving: the upper half is added to the lower."""
    width = terms.shape[-1]
    while width > 1:
        half = (width + 1) // 2
        sums = terms[..., :half].clone()
        sums[..., : width - half] += terms[..., half:width]
        terms, width = sums, half
    return terms[..., 0]


class Band(NamedTuple):
    """Limits around tau; `surely` is negative where no match can be sure."""

    surely: float
    possibly: float


def difference_band(tau: float, dimensions: int) -> Band:
    """Return the band of a squared distance that is summed from differences in float32.

    Each difference of two float32 entries is rounded once, its square once more, and a sum of d
    terms in any order, fused or not, meets at most d - 1 roundings: the squared sum is off by at
    most ``g(d + 2, u)`` of itself. The bound is relative, so the band is a few ulps wide: about
    ``1e-5`` of tau for 100 dimensions.
    """
    limit = tau * tau
    relative = _roundings(dimensions + 3, FLOAT32_ROUNDOFF) + _DEFINING
    return Band(limit * (1.0 - relative) - _UNDERFLOW, limit * (1.0 + 2.0 * relative) + _UNDERFLOW)


def product_band(tau: float, dimensions: int, roundoff: float = FLOAT32_ROUNDOFF) -> Band:
    """Return the band of ``|x|**2 + |y|**2 - 2 x . y`` over vectors rounded to a format.

    Let ``X = x + e`` and ``Y = y + f`` be the vectors rounded to a format of roundoff v, so
    ``|e| <= v |x| + s`` (s: underflow of entries, ``sqrt(d) 2**-25`` in float16), and take the
    squared norms of X and Y themselves, in float64 rounded to float32 once. Then the exact value
    ``|X - Y|`` differs from ``|x - y|`` by at most ``|e| + |f| <= 2 (v L + s) =: h`` with L the
    largest norm, by the triangle inequality: near ``tau = 0.12`` in float16 that is 0.001. The
    product of the rounded vectors is summed in float32: products of float16 entries are exact in
    float32, so it is off by at most ``g(d, u) L'**2``, with products of float32 entries by the same
    bound (L' = L + h); norms and the two additions add ``4 u L'**2`` each. Together the square is
    off by ``c = (2 g(d, u) + 16 u) L'**2`` and ::

        surely   = max(0, tau - h)**2 - c      possibly = (tau + h)**2 + c

    Float32 vectors are not rounded at all.
    """
    moved = 0.0
    if roundoff > FLOAT32_ROUNDOFF:
        moved = 2.0 * (roundoff * LARGEST_NORM + FLOAT16_SMALLEST / 2.0 * dimensions**0.5)
    norm = LARGEST_NORM + moved
    error = (
        2.0 * _roundings(dimensions, FLOAT32_ROUNDOFF) + 16.0 * FLOAT32_ROUNDOFF
    ) * norm * norm + _DEFINING
    below = tau - moved
    surely = below * below - error if below > 0 else -1.0
    return Band(surely, (tau + moved) ** 2 + error)


def largest_square(tau: float) -> float:
    """Return the largest float64 number whose square root, rounded, is at most tau."""
    square = tau * tau
    while math.sqrt(square) > tau:
        square = math.nextafter(square, 0.0)
    while math.sqrt(math.nextafter(square, math.inf)) <= tau:
        square = math.nextafter(square, math.inf)
    return square


def _roundings(n: int, roundoff: float) -> float:
    return n * roundoff / (1.0 - n * roundoff)
