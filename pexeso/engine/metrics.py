"""Metrics: largest distance of unit vectors, threshold tau, and reproducible distances.

Distances are float64 and equal on every device.

Whether a query value matches a lake value is *defined* here: the float64 distance of the two stored
float32 vectors, compared with tau in float64. Sums run over a fixed binary tree of element-wise
operations, each rounded once as IEEE 754 says, so a distance is the same bits in any batch, on any
number of threads and on any device. Every faster way must give the same set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from pexeso.errors import InputError

METRIC_NAMES = ("euclidean", "angular", "manhattan", "chebyshev")


@dataclass(frozen=True)
class Metric:
    """A distance on vectors that obeys the triangle inequality.

    The angle between unit vectors is compared through its chord, ``2 sin(angle / 2)``, which is
    their Euclidean distance: the two order pairs alike, and no arc cosine has to agree between
    devices.
    """

    name: str = "euclidean"

    def __post_init__(self) -> None:
        if self.name not in METRIC_NAMES:
            raise InputError(
                f"The metric must be one of {', '.join(METRIC_NAMES)}. Got {self.name!r} "
                "instead. For a cosine similarity use "
                "the angular or Euclidean metric: on unit vectors d = sqrt(2 - 2 cos)."
            )

    def largest_distance(self, dimensions: int) -> float:
        """Return the largest possible distance of two unit vectors.

        It is in the metric's own unit (radians for the angle).
        """
        if self.name == "angular":
            return math.pi
        if self.name == "manhattan":
            return 2.0 * math.sqrt(dimensions)
        return 2.0

    def threshold(self, max_distance: float, dimensions: int) -> float:
        """Turn a fraction of the largest distance into tau, on the scale that `distances` uses."""
        if self.name == "angular":
            return 2.0 * math.sin(max_distance * math.pi / 2.0)
        return max_distance * self.largest_distance(dimensions)

    def fraction(self, distances: torch.Tensor, dimensions: int) -> torch.Tensor:
        """Convert distances to fractions of the largest distance, float64.

        The distances are as `distances` gives them.
        """
        if self.name == "angular":
            return 2.0 * torch.asin(torch.clamp(distances / 2.0, max=1.0)) / math.pi
        return distances / self.largest_distance(dimensions)

    def distances(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return the defining float64 distances of row pairs.

        Parameters
        ----------
        left, right : float32 (..., d), shapes that broadcast

        Returns
        -------
        float64 (...), on the same device; for the angular metric the chord.
        """
        difference = left.double() - right.double()
        if self.name == "chebyshev":
            return difference.abs().amax(-1)
        if self.name == "manhattan":
            return tree_sum(difference.abs())
        return square_roots(tree_sum(difference * difference))

    def quick_distances(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Compute all distances between two sets of rows, accurate to about 1e-7.

        Matrix products are used where the metric allows.

        Parameters
        ----------
        left : float64 (n, d)
        right : float64 (m, d)

        Returns
        -------
        float64 (n, m)
        """
        if self.name == "chebyshev":
            return torch.cdist(left, right, p=math.inf)
        if self.name == "manhattan":
            return torch.cdist(left, right, p=1.0)
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
    """Sum over the last axis by halving.

    The upper half is added to the lower half until one column is left.

    Parameters
    ----------
    terms : float64 (..., d), d >= 1; not changed

    Returns
    -------
    float64 (...)
    """
    width = terms.shape[-1]
    while width > 1:
        half = (width + 1) // 2
        rest = width - half
        sums = terms[..., :half].clone()
        sums[..., :rest] += terms[..., half:width]
        terms, width = sums, half
    return terms[..., 0]
