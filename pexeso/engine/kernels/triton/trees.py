"""What the program that computes defining distances is given: their tree, and their largest square.

See `pexeso.engine.metrics.tree_sum`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch


def largest_square(tau: float) -> float:
    """Return the largest float64 number whose square root, rounded, is at most tau."""
    square = tau * tau
    while math.sqrt(square) > tau:
        square = math.nextafter(square, 0.0)
    while math.sqrt(math.nextafter(square, math.inf)) <= tau:
        square = math.nextafter(square, math.inf)
    return square


def tree_places(dimensions: int) -> np.ndarray:
    """Order entries so that adding neighbours repeatedly sums them as `tree_sum` does.

    See `pexeso.engine.metrics.tree_sum`.

    Returns
    -------
    int32 (D,)
        The entry at each place, or -1; D is the power of two from `dimensions` on.
    """
    rest, positions = np.arange(dimensions), np.zeros(dimensions, np.int64)
    width, level = dimensions, 0
    while width > 1:
        half = (width + 1) // 2
        upper = rest >= half
        positions |= upper.astype(np.int64) << level
        rest -= half * upper
        width, level = half, level + 1
    tree = np.full(1 << level, -1, np.int32)
    tree[positions] = np.arange(dimensions)
    return tree


@cache
def tree_of(dimensions: int, device: torch.device) -> torch.Tensor:
    """Return `tree_places` on a device."""
    return torch.from_numpy(tree_places(dimensions)).to(device)


@cache
def largest_square_on(tau: float, device: torch.device) -> torch.Tensor:
    """Return `largest_square` on a device, float64 (1,)."""
    return torch.full((1,), largest_square(tau), dtype=torch.float64, device=device)
