"""The values of one query column on CUDA: mapped, rounded and laid out by one program.

Tensor operations take some twenty launches for it, each of which costs the host as much as the
device needs for all of them.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from pexeso.engine.blocks import order_by_splits
from pexeso.engine.kernel import Query
from pexeso.engine.maps import PivotMap
from pexeso.engine.metrics import SURELY_UNIT as _SURELY_UNIT

FAR = tl.constexpr(-1.0e6)  # coordinate of a place without a value: no box is near to it

# Coordinate of an axis that is only padding, in the upper bound of distances to pivots.
UPPER_FILL = tl.constexpr(PivotMap.upper_fill)

SURELY_UNIT = tl.constexpr(_SURELY_UNIT)

QUICKLY_ORDERED = 128  # dimensions up to which query values are ordered quickly rather than well

_Z_AXES = 8

_HEADER = 2
_N_VALUES, _MIN_COUNT = range(_HEADER)


@triton.jit
def entries_of(
    vector,
    axes,
    axis,
    entry,
    there,
    DIMENSIONS: tl.constexpr,  # noqa: N803
    N_AXES: tl.constexpr,  # noqa: N803
):
    """Load some entries of a vector, zeros where it is not there, and those of every axis."""
    inside = entry < DIMENSIONS
    x = tl.load(vector + entry, mask=inside & there, other=0.0)
    chosen = tl.load(
        axes + axis[:, None] * DIMENSIONS + entry[None, :],
        mask=(axis < N_AXES)[:, None] & inside[None, :],
        other=0.0,
    )
    return x, chosen


@triton.jit(do_not_specialize=["n_places", "accept_limit"])
def prepare_values(
    header,
    vectors,
    axes,
    points,
    point_rows,
    upper_points,
    may_accept,
    halves,
    squares,
    n_not_unit,
    n_places,
    accept_limit,
    DIMENSIONS: tl.constexpr,  # noqa: N803
    N_AXES: tl.constexpr,  # noqa: N803
    AXES: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
    CHUNK: tl.constexpr,  # noqa: N803
    PROJECTED: tl.constexpr,  # noqa: N803
):
    """Map values as `pexeso.engine.maps` does, and round them to float16.

    Sums are float64, as its sums are, in another order: the tolerance of coordinates covers both.
    Distances to pivots are Euclidean ones, which the angular metric has too.

    Parameters
    ----------
    header : int64 (2,)
        How many of the places have a value, and something else.
    vectors : float32 (n_places, DIMENSIONS)
    axes : float64 or float32 (N_AXES, DIMENSIONS)
        Axes where `PROJECTED`, else pivots.
    points, upper_points : float32 (AXES, n_places)
        Get coordinates, and those of the upper bound.
    point_rows : float32 (n_places, AXES)
        Gets coordinates, value by value.
    may_accept : int8 (n_places,)
        Gets whether the rest, or the distance to a pivot, is short enough for the upper bound.
    halves : float16 (n_places, DIMENSIONS)
    squares : float32 (n_places,)
        Get the rounded vectors and their squared lengths.
    n_not_unit : int64 (1,)
        Gets how many vectors are not surely of unit length (`SURELY_UNIT`).
    """
    n_values = tl.load(header)
    axis = tl.arange(0, WIDTH)
    for position in range(tl.program_id(0), n_places, tl.num_programs(0)):
        filled = position < n_values
        vector = vectors + position * DIMENSIONS
        coordinates = tl.zeros((WIDTH,), tl.float64)
        lengths = tl.zeros((CHUNK,), tl.float64)
        rounded = tl.zeros((CHUNK,), tl.float32)
        for begin in range(0, DIMENSIONS, CHUNK):
            entry = begin + tl.arange(0, CHUNK)
            x, chosen = entries_of(vector, axes, axis, entry, filled, DIMENSIONS, N_AXES)
            exact = x.to(tl.float64)
            if PROJECTED:
                coordinates += tl.sum(chosen * exact[None, :], 1)
            else:
                apart = chosen.to(tl.float64) - exact[None, :]
                coordinates += tl.sum(apart * apart, 1)
            lengths += exact * exact
            half = x.to(tl.float16)
            rounded += half.to(tl.float32) * half.to(tl.float32)
            tl.store(halves + position * DIMENSIONS + entry, half, mask=entry < DIMENSIONS)
        if PROJECTED:
            # From the rest itself: the difference of squared lengths would cancel where it is
            # short.
            rests = tl.zeros((CHUNK,), tl.float64)
            for begin in range(0, DIMENSIONS, CHUNK):
                entry = begin + tl.arange(0, CHUNK)
                x, chosen = entries_of(vector, axes, axis, entry, filled, DIMENSIONS, N_AXES)
                left = x.to(tl.float64) - tl.sum(chosen * coordinates[:, None], 0)
                rests += left * left
            shortest = tl.sqrt(tl.sum(rests, 0)).to(tl.float32)
            point = tl.where(axis < N_AXES, coordinates.to(tl.float32), 0.0)
            point = tl.where(axis == N_AXES, shortest, point)
            upper = tl.where(axis == N_AXES, -point, point)
        else:
            distances = tl.sqrt(coordinates).to(tl.float32)
            shortest = tl.min(tl.where(axis < N_AXES, distances, float("inf")), 0)
            point = tl.where(axis < N_AXES, distances, 0.0)
            upper = tl.where(axis < N_AXES, distances, UPPER_FILL)
        is_unit = tl.abs(tl.sum(lengths, 0) - 1.0) < SURELY_UNIT
        tl.atomic_add(n_not_unit, 1, mask=filled & (is_unit == 0), sem="relaxed")
        at = axis * n_places + position
        mask = axis < AXES
        point = tl.where(filled, point, FAR)
        tl.store(points + at, point, mask)
        tl.store(point_rows + position * AXES + axis, point, mask)
        tl.store(upper_points + at, tl.where(filled, upper, FAR), mask)
        tl.store(may_accept + position, (filled & (shortest <= accept_limit)).to(tl.int8))
        tl.store(squares + position, tl.sum(rounded, 0))


def order_values(mapped: torch.Tensor, tile: int, dimensions: int) -> torch.Tensor:
    """Order query values so that those of a tile are close together.

    Splits make the better tiles: by a fifth fewer (tile, block) pairs at 300 dimensions, by a
    fiftieth at 50. They take the host 11 ms for 13,000 values, and Z-order 1 ms, so that they pay
    where distances are dear.

    mapped: float32 (n, P). Returns int64 (n,).
    """
    return order_by_splits(mapped, tile) if dimensions > QUICKLY_ORDERED else z_order(mapped)


def z_order(mapped: torch.Tensor) -> torch.Tensor:
    """Order rows by the quarters in which their leading coordinates lie, int64 (n,).

    The first bits of all of them come before the second.

    Examples
    --------
    >>> z_order(torch.tensor([[0.9], [0.1], [0.5], [0.3]])).tolist()
    [1, 3, 2, 0]
    """
    n, leading = len(mapped), mapped[:, :_Z_AXES].t()
    rank = torch.argsort(torch.argsort(leading, stable=True), stable=True)
    quarter = torch.div(rank * 4, max(1, n), rounding_mode="floor")
    shifts = torch.arange(len(leading) - 1, -1, -1, device=mapped.device)[:, None]
    keys = (((quarter >> 1) << shifts).sum(0) << len(leading)) + ((quarter & 1) << shifts).sum(0)
    return torch.argsort(keys, stable=True)


class QueryPlaces:
    """Device memory for the values of a query column, and what the program makes of them.

    Parameters
    ----------
    n_places : int
        Values that there is room for, at least 1.
    dimensions, n_coordinates : int
        Of vectors, and of mapped vectors with their padding.

    Attributes
    ----------
    n_places : int
    vectors : float32 (n_places, d)
    weights : int64 (n_places,)
    min_count : int64 (1,)
    header : int64 (2,)
    matches_of : int64 (n_places,)
        Number of matches of each value.
    """

    def __init__(
        self, n_places: int, dimensions: int, n_coordinates: int, device: torch.device
    ) -> None:
        self.n_places = n_places
        n_bytes = 8 * (_HEADER + n_places) + 4 * n_places * dimensions
        # What the host sends goes in one copy, from memory that the device reads by itself.
        self._sent = torch.zeros(n_bytes, dtype=torch.uint8, pin_memory=device.type == "cuda")
        self._received = torch.zeros_like(self._sent, device=device)
        self.header, self.weights, self.vectors = _parts(self._received, n_places, dimensions)
        self._host: list[np.ndarray] = [
            part.numpy() for part in _parts(self._sent, n_places, dimensions)
        ]
        self.min_count = self.header[_MIN_COUNT:]
        self.points, self.upper_points = (
            torch.empty((n_coordinates, n_places), dtype=torch.float32, device=device)
            for _ in range(2)
        )
        self.point_rows = torch.empty_like(self.points).view(n_places, n_coordinates)
        self.may_accept = torch.empty(n_places, dtype=torch.int8, device=device)
        self.halves = torch.empty((n_places, dimensions), dtype=torch.float16, device=device)
        self.squares = torch.empty(n_places, dtype=torch.float32, device=device)
        self.matches_of = torch.empty(n_places, dtype=torch.int64, device=device)

    def __len__(self) -> int:
        return self.n_places

    def fill(self, query: Query, min_count: int) -> None:
        """Put a query column where `send` takes it from.

        What was sent before must be through; a search waits for the device.
        """
        n = len(query)
        header, weights, vectors = self._host
        header[_N_VALUES], header[_MIN_COUNT] = n, min_count
        if query.on_host is not None:
            vectors[:n], weights[:n] = query.on_host
        else:
            vectors[:n], weights[:n] = (
                part.numpy(force=True) for part in (query.vectors, query.weights)
            )

    def send(self) -> None:
        self._received.copy_(self._sent, non_blocking=True)


def _parts(
    memory: torch.Tensor, n_places: int, dimensions: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Cut bytes into header, weights and vectors."""
    numbers = memory[: 8 * (_HEADER + n_places)].view(torch.int64)
    vectors = memory[8 * (_HEADER + n_places) :].view(torch.float32)
    return numbers[:_HEADER], numbers[_HEADER:], vectors.view(n_places, dimensions)
