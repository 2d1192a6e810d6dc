"""The published cells: a hierarchical grid over mapped vectors, and its cost model.

The mapped space is cut into ``2**i`` equal parts per axis at level i = 1..m (section 4 of the
paper). A cell at level i is a prefix of ``P i`` bits of the Morton code of a leaf, hence a
contiguous run of the sorted codes: no pointers, and the same arrays serve from a memory-mapped file
and on a GPU. Only cells that hold something exist.

Each cell carries the tight bounding box of what it holds instead of its geometric bounds. The box
lies inside the cell, so every lemma that is stated for a cell holds for it and prunes at least as
much; and nothing depends on how a cell's border is rounded. Vectors beyond the grid's extent go to
the outermost cells, which are thereby unbounded outward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import torch

from pexeso.engine.blocks import AXES_MULTIPLE, FANOUT, Blocks, build_blocks
from pexeso.engine.options import BLOCK_SIZE, MAX_CODE_BITS, check_code_bits

if TYPE_CHECKING:
    from pexeso.engine.kernel import Kernel, Query
    from pexeso.engine.partition import Pages

MAX_LEVELS = 12
MAX_DISTANCES = (0.0125, 0.0375, 0.0625, 0.0875)  # the middles of four equal parts of 0 to 10 %

_MOST_DIGITS = 24  # halvings of an axis that a float32 coordinate distinguishes
_CHUNK_SIZE = 1 << 20  # rows whose coordinates are cut together, in float64
_SAMPLE_CELLS = 512

# Nanoseconds on one core at 2.5 GHz: what a pair of cells and a row of a candidate cell take, and
# what each axis adds.
_CELL, _CELL_AXIS = 30.0, 6.0
_ROW, _ROW_AXIS = 25.0, 5.0


@dataclass(frozen=True)
class Level:
    """The cells of one level, in code order.

    codes: int64 (c,); first, count: int64 (c,), the run of children: cells of the next level or,
    for leaves, rows; lower, upper: float32 (c, P), the tight box of the rows below.
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
    levels: tuple[Level, ...]

    @property
    def leaves(self) -> Level:
        return self.levels[-1]


def leaf_codes(
    mapped: torch.Tensor, origin: torch.Tensor, extent: torch.Tensor, n_levels: int
) -> torch.Tensor:
    """Return the Morton code of the leaf cell of each mapped vector, int64 (n,).

    mapped: float32 (n, P); origin, extent: float32 (P,), the grid's smallest corner and its edge
    lengths, not negative.
    """
    check_code_bits(mapped.shape[1], n_levels)
    parts = 2**n_levels
    edge = torch.where(extent > 0, extent, torch.ones_like(extent)).double()
    every = torch.zeros(len(mapped), dtype=torch.int64, device=mapped.device)
    for begin in range(0, len(mapped), _CHUNK_SIZE):
        rows = mapped[begin : begin + _CHUNK_SIZE]
        digits = torch.floor((rows.double() - origin.double()) / edge * parts)
        digits, codes = digits.clamp(0, parts - 1).long(), every[begin : begin + _CHUNK_SIZE]
        for bit in range(n_levels - 1, -1, -1):
            for axis in range(mapped.shape[1]):
                codes.bitwise_left_shift_(1).bitwise_or_((digits[:, axis] >> bit) & 1)
    return every


def order_by_cells(
    mapped: torch.Tensor, origin: torch.Tensor, extent: torch.Tensor, n_levels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Order rows by leaf cell, and within a leaf by the cells of a grid that is as fine as can be.

    So a run of neighbouring rows has a small box even in a leaf of thousands. Returned are the
    codes of the leaf cells, ascending, and the row at each place, int64 (n,) each.

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


def build_grid(codes: torch.Tensor, mapped: torch.Tensor, n_levels: int) -> Grid:
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


@dataclass(frozen=True)
class GridCells:
    """The published cells: a hierarchical grid, and the mapped vectors themselves.

    mapped: float32 (N, P); origin, extent: float32 (P,), smallest corner and edge lengths of the
    mapped vectors.
    """

    grid: Grid
    mapped: torch.Tensor
    origin: torch.Tensor
    extent: torch.Tensor

    has_summary: ClassVar[bool] = False

    @cached_property
    def blocks(self) -> Blocks:
        """The grid as the programs of a device walk it, made on the first use.

        A block is a run of 64 rows in the order of the cells: part of a leaf, or neighbouring
        leaves where these are small. Lemmas 3 to 6 are stated for a cell's box and hold for the box
        around a run; coarser levels are unions of 16 runs, which in Morton order are cells or parts
        of them. `blocks_bytes` says how much memory it takes.
        """
        return build_blocks(self.mapped)

    def outer_corners(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.origin, self.origin + self.extent

    def is_finite(self) -> bool:
        top = self.grid.levels[0]
        bounds = torch.stack([top.lower, top.upper])
        return bool((top.lower <= top.upper).all()) and float(bounds.abs().amax()) < math.inf

    def corners_of_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.mapped[rows], self.mapped[rows]

    def fetch_rows(self, pages: Pages, rows: torch.Tensor) -> None:
        pages.want("vectors", rows)
        pages.want("mapped", rows)

    def fetch(self, query: Query, kernel: Kernel) -> None:
        """Do nothing: the walk requests the rows of the cells that it reaches."""


def blocks_bytes(n_rows: int, n_coordinates: int) -> int:
    """Return the bytes of `GridCells.blocks`, which a device holds besides the stored arrays.

    They are a byte a coordinate of each row, and boxes of every 64 rows, of every 16 of those, and
    so on.

    Examples
    --------
    >>> blocks_bytes(75_000_000, 5)
    680004096
    """
    n_axes = n_coordinates + -n_coordinates % AXES_MULTIPLE
    n_boxes = -(-n_rows // BLOCK_SIZE)
    n_bytes = n_boxes * BLOCK_SIZE * n_axes
    while n_boxes:
        n_groups = -(-n_boxes // FANOUT)
        n_bytes += n_groups * FANOUT * n_axes * 8
        n_boxes = n_groups if n_groups > 1 else 0
    return n_bytes


class LevelTrial(NamedTuple):
    n_levels: int
    cells: int
    distances: float
    cell_pairs: float
    microseconds: float


def expected_distances(
    mapped: torch.Tensor, points: torch.Tensor, taus: torch.Tensor, leaf_edges: torch.Tensor
) -> torch.Tensor:
    """Return the bound on the distance computations of each query value, int64 (m, t, n).

    It is the smallest marginal count over the axes of the mapped space,

        ``N_max(q) = min_i |{x : q_i - tau - w_i <= x_i <= q_i + tau + w_i}|``

    with ``w_i = extent_i / 2**m`` the edge of a leaf cell (the paper prints ``1 / 2**(|P| m)``,
    which is the share of a cell in the space). One axis is sorted at a time.

    mapped, points: float32 (N, P), (n, P), all stored values, and query values; taus: float32 (t,);
    leaf_edges: float32 (m, P), edges of the leaf cells of m grids.
    """
    smallest = torch.full((len(leaf_edges), len(taus), len(points)), len(mapped))
    for axis in range(mapped.shape[1]):
        ascending = mapped[:, axis].sort().values
        reach = taus[:, None] + leaf_edges[:, None, None, axis]
        centre = points[:, axis]
        end = torch.searchsorted(ascending, centre + reach, right=True)
        count = end - torch.searchsorted(ascending, centre - reach)
        smallest = torch.minimum(smallest, count)
    return smallest


def choose_levels(
    mapped: torch.Tensor, queries: torch.Tensor, taus: Sequence[float]
) -> list[LevelTrial]:
    """Return what a grid would cost with each number of levels, by section 6 of the paper.

    By the bound on distances alone more levels are always better, so the cost of touching a cell is
    added: how many cells a walk touches is estimated on a sample of the cells of each level. The
    workload `queries` is drawn from the partition itself, with tau spread evenly over 0 to 10 % of
    the largest distance. The share T of a query column that must match has no part in it, since
    blocking does not know of it. All rows are examined: how many cells a sample of them fills says
    little of how many all fill.
    """
    if not len(mapped) or not len(queries):
        return []
    n_axes = mapped.shape[1]
    max_levels = min(MAX_LEVELS, MAX_CODE_BITS // n_axes)
    origin, extent = corner_and_edges(mapped)
    edges = torch.stack([extent / 2**n_levels for n_levels in range(1, max_levels + 1)])
    bounds = expected_distances(mapped, queries, torch.tensor(taus), edges)
    walks = _walks(mapped, queries, origin, extent, max_levels, taus)
    trials = []
    for bound, (n_levels, cells, cell_pairs) in zip(bounds, walks, strict=True):
        distances = float(bound.double().mean())
        nanoseconds = distances * (_ROW + _ROW_AXIS * n_axes)
        nanoseconds += cell_pairs * (_CELL + _CELL_AXIS * n_axes)
        trials.append(
            LevelTrial(
                n_levels,
                cells,
                round(distances, 1),
                round(cell_pairs, 1),
                round(nanoseconds / 1000, 1),
            )
        )
    return sorted(trials, key=lambda trial: (trial.microseconds, trial.n_levels))


def _walks(
    rows: torch.Tensor,
    queries: torch.Tensor,
    origin: torch.Tensor,
    extent: torch.Tensor,
    max_levels: int,
    taus: Sequence[float],
) -> Iterator[tuple[int, int, float]]:
    codes, order = torch.sort(leaf_codes(rows, origin, extent, max_levels), stable=True)
    sizes, near, below = [], [], []
    for level in levels_upward(codes, rows[order], max_levels):
        # Evenly spread; the same cells on every machine whose coordinates put rows into the same.
        some = torch.arange(min(len(level), _SAMPLE_CELLS)) * len(level)
        some = torch.div(some, min(len(level), _SAMPLE_CELLS), rounding_mode="floor")
        reached = _share_reached(queries, level.lower[some], level.upper[some], torch.tensor(taus))
        sizes.append(len(level))
        near.append(len(level) * float(reached.mean()))
        below.append(len(level) * float((reached * level.count[some].double()).mean()))
    sizes, near, below = sizes[::-1], near[::-1], below[::-1]  # coarse to fine
    touched = float(sizes[0])
    for n_levels in range(1, max_levels + 1):
        # The leaves that are left are looked at again, for each query value by itself.
        yield n_levels, sizes[n_levels - 1], touched + near[n_levels - 1]
        touched += below[n_levels - 1]


def _share_reached(
    queries: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, taus: torch.Tensor
) -> torch.Tensor:
    """Return the share of (query value, tau) pairs that reach each cell, float64 (c,)."""
    gap = torch.zeros((len(queries), len(lower)), dtype=queries.dtype)
    for axis in range(queries.shape[1]):
        point = queries[:, axis, None]
        gap = torch.maximum(gap, torch.maximum(lower[:, axis] - point, point - upper[:, axis]))
    return (gap[:, :, None] <= taus).double().mean((0, 2))
