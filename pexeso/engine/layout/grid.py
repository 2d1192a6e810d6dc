"""The hierarchical grid over mapped vectors: a sorted array of Morton codes with tight boxes.

The mapped space is cut into ``2**i`` equal parts per axis at level i = 1..m (section 4 of the
paper). A cell at level i is a prefix of ``P i`` bits of the leaf code, hence a contiguous run of
the sorted codes: no pointers, and the same arrays serve from a memory-mapped file and on a GPU.
Only cells that hold something exist.

Each cell carries the tight bounding box of what it holds instead of its geometric bounds. The box
lies inside the cell, so every lemma that is stated for a cell holds for it and prunes at least as
much; and nothing depends on how a cell's border is rounded.

Vectors beyond the grid's extent go to the outermost cells, which are thereby unbounded outward.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from pexeso.errors import InputError

MAX_CODE_BITS = 62

_MOST_DIGITS = 24
"""Halvings of an axis that a float32 coordinate tells apart."""

_ROWS_AT_ONCE = 1 << 20
"""Rows whose coordinates are cut together, in float64."""


@dataclass(frozen=True)
class Level:
    """The cells of one level, in code order.

    Attributes
    ----------
    codes : int64 (c,)
    first, count : int64 (c,)
        The run of children: cells of the next level or, for leaves, rows.
    lower, upper : float32 (c, P)
        The tight box of the rows below.
    """

    codes: torch.Tensor
    first: torch.Tensor
    count: torch.Tensor
    lower: torch.Tensor
    upper: torch.Tensor

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Grid:
    """All levels, coarse to fine; the last one holds the leaves."""

    levels: tuple[Level, ...]

    @property
    def leaves(self) -> Level:
        """The finest level."""
        return self.levels[-1]


def leaf_codes(
    mapped: torch.Tensor, origin: torch.Tensor, extent: torch.Tensor, n_levels: int
) -> torch.Tensor:
    """Return the Morton code of the leaf cell of each mapped vector: int64 (n,).

    Parameters
    ----------
    mapped : float32 (n, P)
    origin, extent : float32 (P,)
        The grid's smallest corner and its edge lengths, not negative.
    n_levels : int
        The paper's m; ``P * n_levels`` at most 62.
    """
    check_code_bits(mapped.shape[1], n_levels)
    pieces = torch.split(mapped, _ROWS_AT_ONCE)
    return torch.cat([_codes_of(piece, origin, extent, n_levels) for piece in pieces])


def _codes_of(
    mapped: torch.Tensor, origin: torch.Tensor, extent: torch.Tensor, n_levels: int
) -> torch.Tensor:
    parts = 2**n_levels
    edge = torch.where(extent > 0, extent, torch.ones_like(extent)).double()
    digits = torch.floor((mapped.double() - origin.double()) / edge * parts)
    digits = digits.clamp(0, parts - 1).long()
    codes = torch.zeros(len(mapped), dtype=torch.int64, device=mapped.device)
    for bit in range(n_levels - 1, -1, -1):
        for axis in range(mapped.shape[1]):
            codes = (codes << 1) | ((digits[:, axis] >> bit) & 1)
    return codes


def order_by_cells(
    mapped: torch.Tensor, origin: torch.Tensor, extent: torch.Tensor, n_levels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Order rows by leaf cell, and within a leaf by the cells of a grid that is as fine as can be.

    So rows that stand next to each other are near to each other even in a leaf of thousands, and a
    run of them has a small box.

    Parameters
    ----------
    mapped : float32 (n, P)
    origin, extent, n_levels
        As for `leaf_codes`.

    Returns
    -------
    codes : int64 (n,)
        Of the leaf cells, ascending.
    order : int64 (n,)
        The row at each place.

    Notes
    -----
    Memory beside the rows: 32 bytes a row while they are sorted, and ``1 << 20`` rows in float64.

    Examples
    --------
    >>> rows = torch.tensor([[0.9], [0.4], [0.0], [1.0], [0.3]])
    >>> [part.tolist() for part in order_by_cells(rows, torch.zeros(1), torch.ones(1), 1)]
    [[0, 0, 0, 1, 1], [2, 4, 1, 0, 3]]
    """
    n_axes = mapped.shape[1]
    finest = max(n_levels, min(_MOST_DIGITS, MAX_CODE_BITS // n_axes))
    # Halving cells is exact, so that the code of a leaf begins that of each finer cell in it.
    codes, order = torch.sort(leaf_codes(mapped, origin, extent, finest), stable=True)
    return codes >> (n_axes * (finest - n_levels)), order


def check_code_bits(n_axes: int, n_levels: int) -> None:
    """Refuse a grid whose codes do not fit in 62 bits."""
    if n_axes * n_levels > MAX_CODE_BITS:
        raise InputError(
            f"n_pivots * n_levels must be at most {MAX_CODE_BITS}, so that a cell's code fits in "
            f"64 bits. Got {n_axes} * {n_levels} = "
            f"{n_axes * n_levels} instead; lower n_levels to {max(1, MAX_CODE_BITS // n_axes)} "
            "or less."
        )


def build_grid(codes: torch.Tensor, mapped: torch.Tensor, n_levels: int) -> Grid:
    """Build the grid over rows that are sorted by code.

    Parameters
    ----------
    codes : int64 (n,), ascending
    mapped : float32 (n, P), in the same order

    Returns
    -------
    Grid
        At most n cells a level. O(n (P + m)).
    """
    return Grid(tuple(levels_upward(codes, mapped, n_levels))[::-1])


def levels_upward(codes: torch.Tensor, mapped: torch.Tensor, n_levels: int) -> Iterator[Level]:
    """Yield the levels of the grid over rows that are sorted by code, the leaves first.

    Level i of a grid with more levels is level i of every grid with at least i.
    """
    n_axes = mapped.shape[1]
    level = _group(codes, mapped, mapped)
    yield level
    for _ in range(n_levels - 1):
        level = _group(level.codes >> n_axes, level.lower, level.upper)
        yield level


def corner_and_edges(mapped: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the smallest corner and the edge lengths of the box around rows, float32 (P,) each."""
    if len(mapped) == 0:
        nothing = mapped.new_zeros(mapped.shape[1])
        return nothing, nothing
    lower = mapped.amin(0)
    return lower, mapped.amax(0) - lower


def _group(codes: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> Level:
    """Make one cell of every run of equal codes, with the box around its members' boxes."""
    cells, owner, count = torch.unique_consecutive(codes, return_inverse=True, return_counts=True)
    first = torch.cumsum(count, 0) - count
    shape = (len(cells), lower.shape[1])
    index = owner[:, None].expand(-1, lower.shape[1])
    box_lower = lower.new_zeros(shape).scatter_reduce_(0, index, lower, "amin", include_self=False)
    box_upper = upper.new_zeros(shape).scatter_reduce_(0, index, upper, "amax", include_self=False)
    return Level(cells, first, count, box_lower, box_upper)
