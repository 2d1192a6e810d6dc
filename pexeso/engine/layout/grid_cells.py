"""The published cells of a partition: what a search asks of a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from pexeso.engine.layout.blocking import Walk, grid_candidates
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
        """Yield the candidate pairs of the published walk, which is the same with every kernel.

        Compiled loops take its steps where the kernel is compiled and the map is the published one.
        """
        walk_type = Walk
        if kernel.name == "compiled" and isinstance(partition.map, PivotMap):
            from pexeso.engine.layout.grid_loops import CompiledWalk

            walk_type = CompiledWalk
        yield from grid_candidates(partition, query, threshold, max_pairs, stats, walk_type)
