"""Contractive maps into a small space: the distances to a few pivots.

A map is contractive when no coordinate of two mapped vectors differs by more than the vectors' distance; every filter of the engine
rests on that alone. For pivots it is the triangle inequality (section 3 of the paper; ``x' = [d(p_1, x), ..., d(p_n, x)]``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pexeso.engine.metrics import Metric
from pexeso.errors import InputError

PIVOT_CHOICES = ("pca", "random")
MAX_DIMENSIONS = 16_384
"""More would need a larger `slack`."""

_SAMPLE = 20_000
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class PivotMap:
    """Maps vectors to their distances to the pivots.

    Attributes
    ----------
    pivots : float32 (P, d)
        The paper's P.
    metric : Metric
    """

    pivots: torch.Tensor
    metric: Metric

    def map(self, vectors: torch.Tensor) -> torch.Tensor:
        """Give the mapped vectors.

        Parameters
        ----------
        vectors : float32 (n, d)

        Returns
        -------
        float32 (n, P), each coordinate within `slack` / 2 of the true distance.
        """
        pivots = self.pivots.double()
        mapped = torch.empty((len(vectors), len(pivots)), dtype=torch.float32, device=vectors.device)
        for begin in range(0, len(vectors), _ROWS_AT_ONCE):
            rows = vectors[begin : begin + _ROWS_AT_ONCE].double()
            mapped[begin : begin + _ROWS_AT_ONCE] = self.metric.quick_distances(rows, pivots).float()
        return mapped


def slack(*mapped: torch.Tensor) -> float:
    """Give the tolerance that makes comparisons of float32 mapped coordinates safe.

    A coordinate c carries two errors: float32 rounding, at most ``2**-24 c``, and that of the float64 matrix product
    under the square root. For unit vectors of d dimensions the squared distance is off by at most about
    ``6 d 2**-53``, so the distance by at most ``2**-18.2`` for d <= 16,384, worst near 0. Comparisons involve two
    coordinates and tau: ``2 (2**-18.2 + 2**-24 c) < 2**-17 max(1, c)``. Filters prune only beyond ``tau + slack`` and
    accept only below ``tau - slack``; what lies between is decided by the defining distance.
    """
    largest = max((float(coordinates.max()) for coordinates in mapped if coordinates.numel()), default=1.0)
    return 2.0**-17 * max(1.0, largest)


def check_pivot_choice(choice: str) -> None:
    """Refuse a way to choose pivots that is not one of `PIVOT_CHOICES`."""
    if choice not in PIVOT_CHOICES:
        raise InputError(f"The pivot choice must be one of {', '.join(PIVOT_CHOICES)}. Got {choice!r} instead.")


def choose_pivots(vectors: torch.Tensor, n_pivots: int, *, choice: str = "pca", seed: int = 0) -> torch.Tensor:
    """Choose pivots among the vectors.

    Good pivots are outliers. ``"pca"`` takes, on each leading principal axis in turn, the vector farthest out, then the vectors
    at the other ends (Mao, Miranker and Miranker 2012); ``"random"`` is the baseline that it is measured against.

    Parameters
    ----------
    vectors : float32 (n, d), n >= 1
    n_pivots : int
        At least 1.
    choice : {"pca", "random"}
    seed : int
        Of the sample of 20,000 vectors that the axes are fitted on, and of the random choice.

    Returns
    -------
    float32 (P, d)
        Distinct vectors; P < n_pivots only where the sample has not as many distinct vectors.
    """
    check_pivot_choice(choice)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(vectors), generator=generator)[:_SAMPLE].to(vectors.device)
    sample = vectors[order]
    ranked = _extremes(sample) if choice == "pca" else torch.arange(len(sample), device=sample.device)
    return _first_distinct(sample, ranked, n_pivots)


def _extremes(sample: torch.Tensor) -> torch.Tensor:
    """Rank sample rows: the far end of each principal axis first, then the other ends, then everything else."""
    rows = sample.double()
    centred = rows - rows.mean(0)
    _, axes = torch.linalg.eigh(centred.T @ centred)
    projected = centred @ axes.flip(1)  # (n, d), leading axis first
    top, bottom = projected.argmax(0), projected.argmin(0)
    reach_top, reach_bottom = projected.amax(0), -projected.amin(0)
    far = torch.where(reach_top >= reach_bottom, top, bottom)
    near = torch.where(reach_top >= reach_bottom, bottom, top)
    return torch.cat([far, near, torch.arange(len(sample), device=sample.device)])


def _first_distinct(sample: torch.Tensor, ranked: torch.Tensor, n_wanted: int) -> torch.Tensor:
    """Take the first `n_wanted` rows in rank order that differ from each other."""
    chosen = sample[ranked[:1]]
    for row in sample[ranked[1:]]:
        if len(chosen) >= n_wanted:
            break
        if not bool((chosen == row).all(1).any()):
            chosen = torch.cat([chosen, row[None]])
    return chosen[:n_wanted]
