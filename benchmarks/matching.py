"""Error bounds and the decision of uncertain pairs, shared by all compared methods.

Only the matching itself differs between them.

Whether a pair matches is defined by its float64 distance. A method of lower precision may decide a
pair alone only where its rounding error cannot change the outcome; what lies in between, the band,
is decided again by the defining distance. Without that, agreement would be luck.
"""

from __future__ import annotations

import math

import torch

from pexeso.engine.metrics import distances

UNIT_ROUNDOFF = 2.0**-24
TENSOR_CORE_TERMS = 4
"""Terms to count for each term that tensor cores sum.

They cut aligned addends instead of rounding sums (Fasi, Higham, Mikaitis and Pranesh, *Numerical
behavior of NVIDIA tensor cores*, 2021): each addition costs at most ``2**-23``, and so does each of
its addends. The bound of a sum of four times as many terms, rounded to nearest, covers both.
"""

ROWS_AT_ONCE = {"cpu": 1 << 11, "cuda": 1 << 18}
"""Pairs compared at a time: on the CPU both sides and their difference stay in the cache."""

_FLOAT64_SLACK = 2.0**-40


def product_error(dimensions: int, largest_norm: float) -> float:
    """Bound the error of a float32 inner product of two vectors.

    Summed in any order, with or without fused multiply-add,
    ``|fl(x . y) - x . y| <= g |x|.|y| <= g |x| |y|`` with ``g = d u / (1 - d u)`` and
    ``u = 2**-24`` (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1; the
    second step is Cauchy and Schwarz). ``2**-40`` is added for the float64 rounding of norms and of
    the defining distance, which is below ``d 2**-52``.
    """
    return _growth(dimensions) * largest_norm**2 + _FLOAT64_SLACK


def rounded_product_error(
    dimensions: int,
    largest_norm: float,
    loss: float,
    other_loss: float,
    output_roundoff: float = 0.0,
) -> float:
    """Bound the error of an inner product of operands rounded to a shorter format.

    The terms are summed in float32.

    Write the rounded vectors as ``x' = x + a`` and ``y' = y + b``. Then
    ``x' . y' - x . y = a . y' + x . b``, at most ``|a| |y'| + |x| |b|``. The products of two
    significands of at most 11 bits are exact in float32 (underflow apart: below ``2**-126``), their
    sum is off by at most ``g |x'| |y'|`` as in `product_error`, and storing it with unit roundoff
    ``v`` adds ``v (1 + g) |x'| |y'|``.

    A component loses at most its share u, so ``|a| <= u |x|``: with ``u = 2**-8`` for bfloat16 (8
    significant bits, round to nearest) and ``2**-11`` for float16, where components below
    ``2**-14`` may also lose ``2**-25`` each. Once the vectors are rounded ``|a|`` is known
    (`rounding_loss`), and on average it is less than half of that; the measured lengths are what is
    passed here.
    """
    rounded, other = largest_norm + loss, largest_norm + other_loss
    growth = _growth(dimensions)
    from_operands = loss * other + largest_norm * other_loss
    from_sums = (growth + output_roundoff * (1.0 + growth)) * rounded * other
    return from_operands + from_sums + _FLOAT64_SLACK


def rounding_loss(vectors: torch.Tensor, rounded: torch.Tensor) -> float:
    """Return the largest length of the difference between a vector and its rounded form."""
    largest = 0.0
    for begin in range(0, len(vectors), 1 << 16):
        lost = (
            vectors[begin : begin + (1 << 16)].double()
            - rounded[begin : begin + (1 << 16)].double()
        )
        largest = max(largest, float(torch.linalg.vector_norm(lost, dim=1).max()))
    # The length itself is a rounded float64 sum.
    return largest * (1.0 + _FLOAT64_SLACK)


def square_error(dimensions: int, largest_norm: float) -> float:
    """Bound the error of a float32 squared distance.

    The bound holds for direct computation and for ``|x|^2 + |y|^2 - 2 x . y``.

    The second form holds three inner products, each off by at most `product_error` and the last
    counted twice, and three more roundings of numbers up to ``4 L^2`` (L the largest norm). The
    first form rounds each difference once, squares it and sums d terms: off by less than
    ``(d + 3) u / (1 - (d + 3) u)`` of a number of at most ``4 L^2``. The bound of the second form,
    with d + 8 for d, covers both.
    """
    return 4.0 * product_error(dimensions + 8, largest_norm)


def near_square_error(dimensions: int, tau: float) -> float:
    """Bound the error of a float32 squared distance summed from squared differences.

    The bound holds for pairs at most about tau apart.

    Each difference is rounded once, squared, and the d squares are summed: off by less than
    ``(d + 3) u / (1 - (d + 3) u)`` of the squared distance itself. For one below ``4 tau**2`` that
    is far less than `square_error`; a pair beyond that is told to be beyond tau all the same.
    """
    return 4.0 * tau * tau * _growth(dimensions + 3) + _FLOAT64_SLACK


def _growth(terms: int) -> float:
    return terms * UNIT_ROUNDOFF / (1.0 - terms * UNIT_ROUNDOFF)


def product_limits(
    squares: torch.Tensor, least_square: float, largest_square: float, tau: float, error: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the products below which no pair matches, and from which on every pair does."""
    low = ((squares + least_square - tau * tau) / 2 - error).float()
    high = ((squares + largest_square - tau * tau) / 2 + error).float()
    return torch.nextafter(low, torch.full_like(low, -math.inf)), torch.nextafter(
        high, torch.full_like(high, math.inf)
    )


Pairs = tuple[torch.Tensor, torch.Tensor]
"""Rows of the query values, and of the lake's values, that match: int64 (p,) both."""


def no_pairs(device: torch.device) -> Pairs:
    """Return what is found where there is nothing."""
    nothing = torch.zeros(0, dtype=torch.int64, device=device)
    return nothing, nothing


def decide(
    queries: torch.Tensor,
    values: torch.Tensor,
    open_pairs: torch.Tensor,
    ours: torch.Tensor,
    vectors: torch.Tensor,
    tau: float,
) -> Pairs:
    """Keep the pairs that match."""
    positions = torch.nonzero(open_pairs)[:, 0]
    if not len(positions):
        return queries, values
    is_match = torch.ones_like(open_pairs)
    for part in torch.split(positions, ROWS_AT_ONCE[vectors.device.type]):
        is_match[part] = distances(ours[queries[part]], vectors[values[part]]) <= tau
    return queries[is_match], values[is_match]


def decide_candidates(
    queries: torch.Tensor,
    values: torch.Tensor,
    ours: torch.Tensor,
    vectors: torch.Tensor,
    tau: float,
) -> Pairs:
    """Keep the candidates that match.

    Pairs that float32 can decide are decided in float32, the rest by the defining distance.
    """
    if not len(queries):
        return queries, values
    error, squared = near_square_error(vectors.shape[1], tau), tau * tau
    squares = torch.empty(len(queries), device=vectors.device)
    for part in torch.split(
        torch.arange(len(queries), device=vectors.device), ROWS_AT_ONCE[vectors.device.type]
    ):
        difference = ours[queries[part]] - vectors[values[part]]
        squares[part] = torch.linalg.vecdot(difference, difference)
    near = squares.double() <= squared + error
    queries, values, squares = queries[near], values[near], squares[near]
    return decide(queries, values, squares.double() > squared - error, ours, vectors, tau)
