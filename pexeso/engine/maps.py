"""Contractive maps of unit vectors into a small space.

A map is contractive when mapped vectors are never farther apart than the vectors; every filter of
the engine rests on that alone. For pivots it is the triangle inequality, axis by axis (section 3 of
the paper; ``x' = [d(p_1, x), ..., d(p_n, x)]``). A coordinate on an orthonormal axis is a pivot at
infinity; there all axes together, and the length r of what they leave out, bound the distance:
``d(q, x)**2 >= |Aq - Ax|**2 + (r_q - r_x)**2``. That prunes far more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from pexeso.engine.arrays import few_threads, in_pieces
from pexeso.engine.metrics import LARGEST_NORM, quick_distances
from pexeso.engine.options import LENGTH_ERROR
from pexeso.errors import InputError

if TYPE_CHECKING:
    from pexeso.engine.options import PartitionLayoutOptions

MAX_DIMENSIONS = 16_384  # more would need a larger `slack`
SAMPLE_ROWS = 20_000  # vectors that axes and pivots are chosen from

# Vector entries that are mapped together: in float64 and with all that comes of them, few enough
# for a core's cache; on a device, many a launch.
_CHUNK_SIZES = {"cpu": 1 << 18, "cuda": 1 << 24}
_FLOAT64_CHUNK_SIZE = 1 << 24  # 128 MiB


@dataclass(frozen=True)
class PivotMap:
    """Maps vectors to their distances to the pivots.

    pivots: float32 (P, d), the paper's P.
    """

    pivots: torch.Tensor

    # Coordinate of an axis that is only padding, in an upper point: bounds nothing.
    upper_fill = 1e6
    largest = 2.0 * LARGEST_NORM  # coordinate that a unit vector can have

    @property
    def n_coordinates(self) -> int:
        return len(self.pivots)

    def near_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, reach: float
    ) -> torch.Tensor:
        """Return whether no axis separates a mapped vector and a box by more than `reach`.

        Mapped vectors and boxes are float32 (..., P).
        """
        return ((lower <= points + reach) & (upper >= points - reach)).all(-1)

    def upper_points(self, mapped: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the terms of the upper distance bound, ``q'_i + x'_i`` on any axis i.

        The second tensor says which vectors are near enough to a pivot for the bound.
        """
        return mapped, (mapped <= limit).any(1)

    def within_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, limit: float
    ) -> torch.Tensor:
        """Return whether all vectors of a box surely lie within `limit` of an upper point."""
        return (points + upper <= limit).any(-1)

    def may_accept(self, lower_corner: Sequence[float], limit: float) -> bool:
        """Return whether a vector above a corner can be near enough for `within_box`."""
        return min(lower_corner, default=limit) <= limit

    def map(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return float32 (n, P): each coordinate is within `slack` / 2 of the true distance."""
        pivots = self.pivots.double()
        mapped = vectors.new_empty((len(vectors), len(pivots)), dtype=torch.float32)

        def map_piece(begin: int, end: int) -> None:
            mapped[begin:end] = quick_distances(vectors[begin:end].double(), pivots).float()

        _map_pieces(vectors, map_piece)
        return mapped


@dataclass(frozen=True)
class ProjectionMap:
    """Maps vectors to their coordinates on orthonormal axes and the length of the rest.

    axes: float64 (A, d), orthonormal rows; float64, since the residual's error is that of their
    products.
    """

    axes: torch.Tensor

    upper_fill = 0.0  # adds nothing
    largest = LARGEST_NORM

    @property
    def n_coordinates(self) -> int:
        return len(self.axes) + 1

    def near_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, reach: float
    ) -> torch.Tensor:
        """Return whether a mapped vector and a box are not farther apart than `reach`.

        Mapped vectors and boxes are float32 (..., A + 1).
        """
        beyond = torch.maximum(lower - points, points - upper).clamp_(min=0)
        return beyond.square_().sum(-1) <= square_with_room(reach)

    def upper_points(self, mapped: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the points of the upper distance bound, and which have a short enough rest.

        What the projection leaves out of two vectors is at most ``r_q + r_x`` apart: with the sign
        of one rest turned that is the difference of the last coordinates.
        """
        return torch.cat([mapped[:, :-1], -mapped[:, -1:]], 1), mapped[:, -1] <= limit

    def within_box(
        self, points: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, limit: float
    ) -> torch.Tensor:
        if limit < 0:
            return torch.zeros(points.shape[:-1], dtype=torch.bool, device=points.device)
        far = torch.maximum(upper - points, points - lower)
        return far.square_().sum(-1) <= limit * limit * (1.0 - 2.0**-16)

    def may_accept(self, lower_corner: Sequence[float], limit: float) -> bool:
        return lower_corner[-1] <= limit

    def map(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return float32 (n, A + 1): each coordinate is within `slack` / 4 of the true one."""
        axes = self.axes
        mapped = vectors.new_empty((len(vectors), len(axes) + 1), dtype=torch.float32)

        def map_piece(begin: int, end: int) -> None:
            rows = vectors[begin:end].double()
            coordinates = rows @ axes.T
            # From the rest itself: the difference of squared lengths would cancel where the rest is
            # short.
            rest = torch.linalg.vector_norm(rows.sub_(coordinates @ axes), dim=1)
            mapped[begin:end] = torch.cat([coordinates, rest[:, None]], 1).float()

        _map_pieces(vectors, map_piece)
        return mapped


def _map_pieces(vectors: torch.Tensor, map_piece: Callable[[int, int], None]) -> None:
    chunk_size = max(64, _CHUNK_SIZES[vectors.device.type] // max(1, vectors.shape[1]))
    in_pieces(len(vectors), chunk_size, vectors.device, map_piece)


def square_with_room(reach: float) -> float:
    """Return the square with room for the rounding, ``2**-17``, of a float32 sum of 128 squares."""
    return reach * reach * (1.0 + 2.0**-16)


def choose_axes(
    vectors: torch.Tensor, n_axes: int, *, seed: int = 0, among: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the leading principal axes of a sample of rows, float64 (A, d); at most d.

    The sample is drawn from the rows `among`, int64 (m,), or from all.
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
    (`pexeso.engine.blocks`) is recovered to within ``5 * 2**-23 c``, over at most 128 axes
    ``2**-17.2 c``. Together that is less than ``2**-15 max(1, c)``. Filters prune only beyond
    ``tau + slack`` and accept only below ``tau - slack``; what lies between is decided by the
    defining distance.
    """
    largest = (float(coordinates.abs().max()) for coordinates in mapped if coordinates.numel())
    return slack_of(max(largest, default=1.0))


def slack_of(largest: float) -> float:
    return 2.0**-15 * max(1.0, largest)


def choose_pivots(
    vectors: torch.Tensor,
    n_pivots: int,
    *,
    choice: str = "pca",
    seed: int = 0,
    among: torch.Tensor | None = None,
) -> torch.Tensor:
    """Choose pivots, float32 (P, d), among the rows of vectors, or those of `among`, int64 (m,).

    Good pivots are outliers. ``"pca"`` takes, on each leading principal axis in turn, the vector
    farthest out, then the vectors at the other ends (Mao, Miranker and Miranker 2012); ``"random"``
    is the baseline that it is measured against. There are fewer only where a sample of the rows has
    not as many distinct ones.
    """
    sample = _sample(vectors, seed, among)
    ranked = torch.arange(len(sample), device=sample.device)
    if choice == "pca":
        rows = sample.double()
        centred = rows - rows.mean(0)
        projected = centred @ _principal_axes(centred)  # (n, d)
        top, bottom = projected.argmax(0), projected.argmin(0)
        is_top = projected.amax(0) >= -projected.amin(0)
        far, near = torch.where(is_top, top, bottom), torch.where(is_top, bottom, top)
        ranked = torch.cat([far, near, ranked])
    chosen = sample[ranked[:1]]
    for row in sample[ranked[1:]]:
        if len(chosen) >= n_pivots:
            break
        if not bool((chosen == row).all(1).any()):
            chosen = torch.cat([chosen, row[None]])
    return chosen[:n_pivots]


def map_of(anchors: Mapping[str, torch.Tensor]) -> PivotMap | ProjectionMap:
    return ProjectionMap(anchors["axes"]) if "axes" in anchors else PivotMap(anchors["pivots"])


def choose_anchors(
    rows: torch.Tensor, stored: torch.Tensor | None, options: PartitionLayoutOptions
) -> dict[str, torch.Tensor]:
    """Choose what the map is made of, pivots or axes, among the rows `stored` (None for all)."""
    if options.map == "projection":
        return {"axes": choose_axes(rows, options.n_axes, seed=options.seed, among=stored)}
    if len(rows if stored is None else stored) == 0:
        return {"pivots": torch.zeros((1, rows.shape[1]), device=rows.device)}
    pivots = choose_pivots(
        rows, options.n_pivots, choice=options.pivot_choice, seed=options.seed, among=stored
    )
    return {"pivots": pivots}


def check_vectors(vectors: np.ndarray | torch.Tensor) -> torch.Tensor:
    """Refuse vectors that are neither zero nor of unit length; return the nonzero rows, int64.

    Tensors of a device are checked there.
    """
    if isinstance(vectors, torch.Tensor) and vectors.device.type == "cpu":
        vectors = vectors.numpy()
    is_array = isinstance(vectors, np.ndarray)
    if vectors.ndim != 2 or vectors.dtype != (np.float32 if is_array else torch.float32):
        raise InputError(
            f"Vectors must be a float32 array of two axes. Got {vectors.dtype} of shape "
            f"{tuple(vectors.shape)} instead."
        )
    if vectors.shape[1] > MAX_DIMENSIONS:
        raise InputError(
            f"Vectors must have at most {MAX_DIMENSIONS:,} dimensions. Got {vectors.shape[1]:,} "
            "instead."
        )
    # In float64 no square of a float32 number vanishes or overflows, so that only zero vectors have
    # length 0.
    if is_array:
        squares = np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)
        lengths = torch.from_numpy(np.sqrt(squares))
    else:
        chunk_size = max(1, _FLOAT64_CHUNK_SIZE // max(1, vectors.shape[1]))
        parts = torch.split(vectors, chunk_size)
        lengths = torch.cat([part.double().square_().sum(1).sqrt_() for part in parts])
    wrong = ~((lengths - 1.0).abs() <= LENGTH_ERROR) & (lengths != 0)
    if bool(wrong.any()):
        row = int(torch.nonzero(wrong)[0, 0])
        raise InputError(
            f"Vectors must be of unit length or zero. Got length {float(lengths[row])} at row "
            f"{row} ({int(wrong.sum())} of {len(lengths)} rows are wrong); divide each vector by "
            "its length, and leave out those with NaN or infinite entries."
        )
    return torch.nonzero(lengths)[:, 0]
