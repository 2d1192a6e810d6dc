"""The published cells of a partition: what a search asks of a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import torch

from pexeso.engine.layout.blocking import Walk, grid_candidates
from pexeso.engine.layout.blocks import (
    AXES_MULTIPLE,
    BLOCK_SIZE,
    FANOUT,
    Blocks,
    build_blocks,
)
from pexeso.engine.layout.grid import Grid
from pexeso.engine.layout.maps import PivotMap

if TYPE_CHECKING:
    from pexeso.engine.interface import Kernel, Pairs, Query, Threshold
    from pexeso.engine.layout.partition import Partition
    from pexeso.engine.stats import SearchStats


@dataclass(frozen=True)
class GridCells:
    """The published cells: a hierarchical grid, and the mapped vectors themselves.

    Attributes
    ----------
    mapped : float32 (N, P)
    origin, extent : float32 (P,)
        Smallest corner and edge lengths of the mapped vectors.
    """

    grid: Grid
    mapped: torch.Tensor
    origin: torch.Tensor
    extent: torch.Tensor

    has_summary: ClassVar[bool] = False

    @cached_property
    def blocks(self) -> Blocks:
        """The grid as programs of a device walk it, made when it is first asked for.

        A block is a run of 64 rows in the order of the cells: part of a leaf, or neighbouring
        leaves where these are small, so that no program has thousands of rows to go through and
        none has one. Lemmas 3 to 6 are stated for a cell's box and hold for the box around a run;
        coarser levels are unions of 16 runs, which in Morton order are cells or parts of them. A
        search does not look at the cells' own boxes besides. `blocks_bytes` says what it takes.
        """
        return build_blocks(self.mapped)

    def outer_corners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners of the box around every vector, float32 (P,) each."""
        return self.origin, self.origin + self.extent

    def is_finite(self) -> bool:
        """Return whether the boxes of the coarsest cells have two finite corners, in order."""
        top = self.grid.levels[0]
        bounds = torch.stack([top.lower, top.upper])
        return bool((top.lower <= top.upper).all()) and float(bounds.abs().amax()) < math.inf

    def corners_of_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the stored coordinates of the rows, float32 (n, P), as both corners."""
        return self.mapped[rows], self.mapped[rows]

    def fetch_rows(self, partition: Partition, rows: torch.Tensor) -> None:
        """Ask for the rows' vectors and coordinates."""
        if partition.pages is not None:
            partition.pages.want("vectors", rows)
            partition.pages.want("mapped", rows)

    def fetch(
        self, partition: Partition, query: Query, threshold: Threshold, kernel: Kernel
    ) -> None:
        """Do nothing, since the cells that are reached show only during the walk.

        The walk itself requests their rows.
        """

    def candidates(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        kernel: Kernel,
        max_pairs: int,
        stats: SearchStats,
    ) -> Iterator[tuple[slice, Pairs | None]]:
        """Yield the candidate pairs of the published walk.

        Compiled loops take its steps where the kernel is compiled and the map is the published one;
        programs of a device walk `blocks`.
        """
        if kernel.name == "triton":
            yield slice(None), kernel.candidates(partition, query, threshold, max_pairs, stats)
            return
        walk_type = Walk
        if kernel.name == "compiled" and isinstance(partition.map, PivotMap):
            from pexeso.engine.layout.grid_loops import CompiledWalk

            walk_type = CompiledWalk
        yield from grid_candidates(partition, query, threshold, max_pairs, stats, walk_type)


def blocks_bytes(n_rows: int, n_coordinates: int) -> int:
    """Return the bytes of `GridCells.blocks`, which a device holds besides the stored arrays.

    They are a byte a coordinate of each row, and boxes of every 64 rows, of every 16 of those, and
    so on.

    Parameters
    ----------
    n_rows, n_coordinates : int
        Of the mapped vectors.

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
