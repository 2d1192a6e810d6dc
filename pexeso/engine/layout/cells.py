"""What a partition's mapped space is cut into, as a search sees it: equal blocks, or the cells of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import torch

if TYPE_CHECKING:
    from pexeso.engine.interface import Kernel, Pairs, Query, Threshold
    from pexeso.engine.layout.partition import Partition
    from pexeso.engine.stats import SearchStats


class Cells(Protocol):
    """The cells of a partition.

    Attributes
    ----------
    has_summary : bool
        Whether coarse boxes stand for all that is below them. Only then can a search skip the
        partition by its summary, order query values by what they reach, and weigh products.
    """

    has_summary: ClassVar[bool]

    def outer_corners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners of a box around every vector, float32 (A,) each."""

    def is_finite(self) -> bool:
        """Return whether the boxes that a search begins with have two finite corners, in order."""

    def corners_of_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners between which the coordinates of stored rows lie, float32 (n, A) each."""

    def fetch_rows(self, partition: Partition, rows: torch.Tensor) -> None:
        """Ask the partition's pages for stored rows, ascending, and for what `corners_of_rows` reads."""

    def fetch(self, partition: Partition, query: Query, threshold: Threshold, kernel: Kernel) -> None:
        """Ask the partition's pages for what can be known of a walk before it begins."""

    def candidates(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        kernel: Kernel,
        max_pairs: int,
        stats: SearchStats,
    ) -> Pairs | None:
        """Return what `pexeso.engine.interface.Kernel.candidates` returns."""
