"""Contractive maps into a small space.

A map is the distances to a few pivots, or an orthonormal projection with its residual.

A map is contractive when mapped vectors are never farther apart than the vectors; every filter of
the engine rests on that alone. For pivots it is the triangle inequality, axis by axis (section 3 of
the paper; ``x' = [d(p_1, x), ..., d(p_n, x)]``). A coordinate on an orthonormal axis is a pivot at
infinity; there all axes together, and the length r of what they leave out, bound the distance:
``d(q, x)**2 >= |Aq - Ax|**2 + (r_q - r_x)**2``. That prunes far more, for Euclidean distances only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pexeso.engine.metrics import Metric
from pexeso.engine.precision import LARGEST_NORM
from pexeso.engine.threads import few_threads, in_pieces
from pexeso.errors import InputError

if TYPE_CHECKING:
    from pexeso.engine.layout.options import PartitionLayoutOptions

MAPS = ("projection", "pivots")
PIVOT_CHOICES = ("pca", "random")
MAX_DIMENSIONS = 16_384
"""More would need a larger `slack`."""

SAMPLE_ROWS = 20_000
"""Vectors that axes and pivots are chosen from."""

_ELEMENTS_AT_ONCE = {"cpu": 1 << 18, "cuda": 1 << 24}
"""Vector entries that are mapped together: in float64 and with all that comes of them, few enough
for a core's cache; on a device, many a launch."""


@dataclass(frozen=True)
class PivotMap:
    """Maps vectors to their distances to the pivots.

    Attributes
    ----------
    pivots : float32 (P, d)
        The paper's P.
    """

    pivots: torch.Tensor
    metric: Metric

    upper_fill = 1e6
    """Coordinate of an axis that is only padding, in an upper point: bounds nothing."""

    def near_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, reach: float
    ) -> torch.Tensor:
        """Return whether no axis separates a mapped vector and a box by more than `reach`.

        Mapped vectors and boxes are float32 (..., P).
        """
        return ((lower <= points + reach) & (upper >= points - reach)).all(-1)

    def upper_points(self, mapped: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the terms of the upper distance bound, ``q'_i + x'_i`` on any axis i.

        The result also says which vectors are near enough to a pivot for the bound.
        """
        return mapped, (mapped <= limit).any(1)

    def within_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, limit: float
    ) -> torch.Tensor:
        """Return whether all vectors of a box surely lie within `limit`.

        The pairs are of an upper point and a box.
        """
        return (points + upper <= limit).any(-1)

    def may_accept(self, lower_corner: Sequence[float], limit: float) -> bool:
        """Return whether a vector can be near enough to a pivot for `within_box`.

        Any vector above `lower_corner` is considered.
        """
        return min(lower_corner, default=limit) <= limit

    def largest(self) -> float:
        """Return the largest coordinate that a unit vector can have."""
        return self.metric.largest_distance(self.pivots.shape[1]) * LARGEST_NORM

    def map(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the mapped vectors, float32 (n, P).

        Each coordinate is within `slack` / 2 of the true distance.
        """
        pivots = self.pivots.double()
        mapped = torch.empty(
            (len(vectors), len(pivots)), dtype=torch.float32, device=vectors.device
        )

        def map_piece(begin: int, end: int) -> None:
            mapped[begin:end] = self.metric.quick_distances(
                vectors[begin:end].double(), pivots
            ).float()

        in_pieces(len(vectors), _rows_at_once(vectors), vectors.device, map_piece)
        return mapped


@dataclass(frozen=True)
class ProjectionMap:
    """Maps vectors to their coordinates on orthonormal axes and the length of the rest.

    Attributes
    ----------
    axes : float64 (A, d)
        Orthonormal rows; float64, since the residual's error is that of their products.
    """

    axes: torch.Tensor

    upper_fill = 0.0
    """As for `PivotMap`: adds nothing."""

    def near_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, reach: float
    ) -> torch.Tensor:
        """Return whether a mapped vector and a box are not farther apart than `reach`.

        Mapped vectors and boxes are float32 (..., A + 1).
        """
        beyond = torch.maximum(lower - points, points - upper).clamp_(min=0)
        return beyond.square_().sum(-1) <= square_with_room(reach)

    def upper_points(self, mapped: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the points of the upper distance bound.

        The result also says which vectors have a residual short enough for it.

        What the projection leaves out of two vectors is at most ``r_q + r_x`` apart: with the sign
        of one rest turned that is the difference of the last coordinates.
        """
        return torch.cat([mapped[:, :-1], -mapped[:, -1:]], 1), mapped[:, -1] <= limit

    def within_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, limit: float
    ) -> torch.Tensor:
        """Return whether all vectors of a box surely lie within `limit`.

        The pairs are of an upper point and a box.
        """
        if limit < 0:
            return torch.zeros(points.shape[:-1], dtype=torch.bool, device=points.device)
        far = torch.maximum(upper - points, points - lower)
        return far.square_().sum(-1) <= limit * limit * (1.0 - 2.0**-16)

    def may_accept(self, lower_corner: Sequence[float], limit: float) -> bool:
        """Return whether a vector can have a short enough residual for `within_box`.

        Any vector above `lower_corner` is considered.
        """
        return lower_corner[-1] <= limit

    def largest(self) -> float:
        """Return the largest coordinate that a unit vector can have."""
        return LARGEST_NORM

    def map(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return the mapped vectors, float32 (n, A + 1).

        Each coordinate is within `slack` / 4 of the true one.
        """
        axes = self.axes
        mapped = torch.empty(
            (len(vectors), len(axes) + 1), dtype=torch.float32, device=vectors.device
        )

        def map_piece(begin: int, end: int) -> None:
            rows = vectors[begin:end].double()
            coordinates = rows @ axes.T
            # From the rest itself: the difference of squared lengths would cancel where the rest is
            # short.
            rest = torch.linalg.vector_norm(rows.sub_(coordinates @ axes), dim=1)
            mapped[begin:end] = torch.cat([coordinates, rest[:, None]], 1).float()

        in_pieces(len(vectors), _rows_at_once(vectors), vectors.device, map_piece)
        return mapped


def _rows_at_once(vectors: torch.Tensor) -> int:
    return max(64, _ELEMENTS_AT_ONCE[vectors.device.type] // max(1, vectors.shape[1]))


def square_with_room(reach: float) -> float:
    """Compute the square, with room for the rounding of a float32 sum of at most 128 squares.

    The relative rounding is ``2**-17``.
    """
    return reach * reach * (1.0 + 2.0**-16)


def choose_axes(
    vectors: torch.Tensor, n_axes: int, *, seed: int = 0, among: torch.Tensor | None = None
) -> torch.Tensor:
    """Choose the leading principal axes of a sample of 20,000 vectors.

    Parameters
    ----------
    vectors : float32 (n, d)
    n_axes : int
        At least 1; at most d axes are given.
    among : int64 (m,), optional
        The rows that the sample is drawn from; all by default.

    Returns
    -------
    float64 (A, d), orthonormal rows, leading axis first
    """
    rows = _sample(vectors, seed, among).double()
    centred = rows - rows.mean(0) if len(rows) else rows
    return _principal_axes(centred)[:, :n_axes].T.contiguous()


def _principal_axes(centred: torch.Tensor) -> torch.Tensor:
    """Return the principal axes of centred rows as columns, float64 (d, d), leading axis first.

    Each points the way in which its largest entry is positive: libraries give either sign.
    """
    covariance = centred.T @ centred
    with few_threads(covariance.numel()):
        axes = torch.linalg.eigh(covariance)[1].flip(1)
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    return torch.where(largest < 0, -axes, axes)


def _sample(vectors: torch.Tensor, seed: int, among: torch.Tensor | None) -> torch.Tensor:
    n = len(vectors if among is None else among)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:SAMPLE_ROWS].to(
        vectors.device
    )
    return vectors[order if among is None else among[order]]


def slack(*mapped: torch.Tensor) -> float:
    """Return the tolerance that makes comparisons of float32 mapped coordinates safe.

    A coordinate c carries two errors: float32 rounding, at most ``2**-24 c``, and that of the
    float64 matrix product under the square root. For unit vectors of d dimensions the squared
    distance is off by at most about ``6 d 2**-53``, so the distance by at most ``2**-18.2`` for d
    <= 16,384, worst near 0. Comparisons involve two coordinates and tau:
    ``2 (2**-18.2 + 2**-24 c) < 2**-17 max(1, c)``. A coordinate kept as a step of its block's box
    (`pexeso.engine.layout.blocks`) is recovered to within ``5 * 2**-23 c``, over at most 128 axes
    ``2**-17.2 c``. Together that is less than ``2**-15 max(1, c)``. Filters prune only beyond
    ``tau + slack`` and accept only below ``tau - slack``; what lies between is decided by the
    defining distance.
    """
    return slack_of(
        max(
            (float(coordinates.abs().max()) for coordinates in mapped if coordinates.numel()),
            default=1.0,
        )
    )


def slack_of(largest: float) -> float:
    """Return `slack` for coordinates of at most that."""
    return 2.0**-15 * max(1.0, largest)


def check_pivot_choice(choice: str) -> None:
    """Refuse a way to choose pivots that is not one of `PIVOT_CHOICES`."""
    if choice not in PIVOT_CHOICES:
        raise InputError(
            f"The pivot choice must be one of {', '.join(PIVOT_CHOICES)}. Got {choice!r} instead."
        )


def choose_pivots(
    vectors: torch.Tensor,
    n_pivots: int,
    *,
    choice: str = "pca",
    seed: int = 0,
    among: torch.Tensor | None = None,
) -> torch.Tensor:
    """Choose pivots among the vectors.

    Good pivots are outliers. ``"pca"`` takes, on each leading principal axis in turn, the vector
    farthest out, then the vectors at the other ends (Mao, Miranker and Miranker 2012); ``"random"``
    is the baseline that it is measured against.

    Parameters
    ----------
    vectors : float32 (n, d), n >= 1
    n_pivots : int
        At least 1.
    among : int64 (m,), optional
        The rows that may be chosen; all by default.

    Returns
    -------
    float32 (P, d)
        Distinct vectors; P < n_pivots only where the sample has not as many distinct vectors.
    """
    check_pivot_choice(choice)
    sample = _sample(vectors, seed, among)
    ranked = (
        _extremes(sample) if choice == "pca" else torch.arange(len(sample), device=sample.device)
    )
    return _first_distinct(sample, ranked, n_pivots)


def _extremes(sample: torch.Tensor) -> torch.Tensor:
    """Rank sample rows: the ends of the principal axes first, then everything else.

    The far end of each axis comes before the other ends.
    """
    rows = sample.double()
    centred = rows - rows.mean(0)
    projected = centred @ _principal_axes(centred)  # (n, d)
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


def map_of(
    tensors: Mapping[str, torch.Tensor], options: PartitionLayoutOptions
) -> PivotMap | ProjectionMap:
    """Make the map from its axes or pivots."""
    if "axes" in tensors:
        return ProjectionMap(tensors["axes"])
    return PivotMap(tensors["pivots"], Metric(options.metric))
