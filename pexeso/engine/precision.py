"""Proven error bands of quick, rounded distances.

They separate what a quick distance can decide alone from what the defining distance must decide
again.

The defining distance (`pexeso.engine.metrics`) is a float64 sum whose own relative error is below
``2**-40`` for any dimension allowed. A quick distance is compared with two limits around tau: not
beyond ``surely`` it is a match, beyond ``possibly`` it is none, and between the two, in the band,
the defining distance decides. So every kernel gives the same answer to the last bit.

Notation: ``u`` is the unit roundoff of a format (``2**-24`` for float32, ``2**-11`` for float16,
``2**-8`` for bfloat16) and ``g(n, u) = n u / (1 - n u)`` the bound of n roundings (Higham,
*Accuracy and Stability of Numerical Algorithms*, lemma 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from pexeso.engine.metrics import Metric

FLOAT32_ROUNDOFF = 2.0**-24
FLOAT16_ROUNDOFF = 2.0**-11
BFLOAT16_ROUNDOFF = 2.0**-8

FLOAT16_SMALLEST = 2.0**-24
"""Smallest step of float16 numbers: what underflow can cost an entry, at most half of it."""

LARGEST_NORM = 1.001
"""Vectors have length 1 to within 1e-3 (`pexeso.engine.layout.unit_vectors.check_vectors`)."""

_DEFINING = 2.0**-40
_UNDERFLOW = 2.0**-100


@dataclass(frozen=True)
class Band:
    """Limits around tau.

    Attributes
    ----------
    surely : float
        A quick value of at most this is a match; negative where none can be sure.
    """

    surely: float
    possibly: float


def difference_band(metric: Metric, tau: float, dimensions: int) -> Band:
    """Return the band of a float32 distance that is summed from differences.

    The distance is squared for the Euclidean and angular metrics.

    Each difference of two float32 entries is rounded once, its square once more, and a sum of d
    terms in any order, fused or not, meets at most d - 1 roundings: the squared sum is off by at
    most ``g(d + 2, u)`` of itself, the sum of absolute differences by ``g(d, u)``, the largest by
    ``u``. The bound is relative, so the band is a few ulps wide: about ``1e-5`` of tau for 100
    dimensions.

    Parameters
    ----------
    dimensions : int
        d, at most 16,384.
    """
    limit = tau * tau if metric.name in ("euclidean", "angular") else tau
    relative = _roundings(dimensions + 3, FLOAT32_ROUNDOFF) + _DEFINING
    return Band(limit * (1.0 - relative) - _UNDERFLOW, limit * (1.0 + 2.0 * relative) + _UNDERFLOW)


def product_band(tau: float, dimensions: int, roundoff: float = FLOAT32_ROUNDOFF) -> Band:
    """Return the band of a squared Euclidean distance that is computed from a product.

    The distance is ``|x|**2 + |y|**2 - 2 x . y`` over rounded vectors.

    Let ``X = x + e`` and ``Y = y + f`` be the vectors rounded to a format of roundoff v, so
    ``|e| <= v |x| + s`` (s: underflow of entries, ``sqrt(d) 2**-25`` in float16), and take the
    squared norms of X and Y themselves, in float64 rounded to float32 once. Then the exact value
    ``|X - Y|`` differs from ``|x - y|`` by at most ``|e| + |f| <= 2 (v L + s) =: h`` with L the
    largest norm, by the triangle inequality: near ``tau = 0.12`` in float16 that is 0.001, where
    ``2 - 2 q . x`` in bfloat16 would be off by more than ``tau**2``. The product of the rounded
    vectors is summed in float32: products of float16 (or bfloat16) entries are exact in float32, so
    it is off by at most ``g(d, u) L'**2``, with products of float32 entries by the same bound (L' =
    L + h); norms and the two additions add ``4 u L'**2`` each. Together the square is off by
    ``c = (2 g(d, u) + 16 u) L'**2`` and ::

        surely   = max(0, tau - h)**2 - c      possibly = (tau + h)**2 + c

    Parameters
    ----------
    dimensions : int
        d, at most 16,384.
    roundoff : float
        Of the format that the vectors are rounded to; float32 vectors are not rounded at all.
    """
    moved = 0.0
    if roundoff > FLOAT32_ROUNDOFF:
        underflow = (
            FLOAT16_SMALLEST / 2.0 * dimensions**0.5 if roundoff == FLOAT16_ROUNDOFF else _UNDERFLOW
        )
        moved = 2.0 * (roundoff * LARGEST_NORM + underflow)
    norm = LARGEST_NORM + moved
    error = (
        2.0 * _roundings(dimensions, FLOAT32_ROUNDOFF) + 16.0 * FLOAT32_ROUNDOFF
    ) * norm * norm + _DEFINING
    below = tau - moved
    surely = below * below - error if below > 0 else -1.0
    return Band(surely, (tau + moved) ** 2 + error)


def _roundings(n: int, roundoff: float) -> float:
    return n * roundoff / (1.0 - n * roundoff)
