"""Blocks: equal runs of neighbouring vectors, with a hierarchy of tight boxes over them.

The position of each vector in its box is stored too.

A block is one slice of the vectors, one tile of work. Sixteen boxes that stand next to each other
form a group and are tested together; a box of a coarser level encloses a group of the next. A
vector's mapped coordinates are kept as one byte an axis, its place in the box of its block (a
vector approximation in the sense of Weber, Schek and Blott 1998, with the box as the grid): 256
steps of an already small box hardly lose anything, and a search reads a quarter of the bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import torch

if TYPE_CHECKING:
    from pexeso.engine.interface import Kernel, Pairs, Query, Threshold
    from pexeso.engine.layout.partition import Partition
    from pexeso.engine.stats import SearchStats

FANOUT = 16
"""Boxes of a group."""

AXES_MULTIPLE = 8
"""Coordinates are padded with zeros to a multiple of this, so that loops need no remainder."""

BLOCK_SIZE = 64

STEPS = 256

SAMPLE_BLOCKS = 64
"""Blocks that stand for all in a look at what filters let through."""

_ROWS_AT_ONCE = 1 << 20

NOWHERE = 1e6
"""Both corners of a box that pads a group: farther from everything than any limit, and finite when
squared."""


@dataclass(frozen=True)
class Blocks:
    """The blocks of a partition.

    Shape letters: N vectors, A mapped coordinates (padded), K blocks of B vectors, G groups of
    boxes over all levels.

    Attributes
    ----------
    boxes : float32 (G, A, 2, 16)
        Lower and upper corners of the boxes of each group, coarse levels first.
    starts : int64 (L + 1,)
        First group of each level. Box j of group g within its level is number ``16 g + j``: the
        group of that number on the next level, or on the last one the block.
    codes : uint8 (K, A, B)
        Coordinate ``x`` of a vector lies in ``lower + width * [c, c + 1] / 256`` of its block's
        box.
    n_rows : int
        N; the last block may hold fewer than B.
    """

    boxes: torch.Tensor
    starts: torch.Tensor
    codes: torch.Tensor
    n_rows: int

    has_summary: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """B: vectors of a block."""
        return self.codes.shape[2]

    @cached_property
    def n_levels(self) -> int:
        """L: levels of boxes."""
        return len(self.starts) - 1

    def __len__(self) -> int:
        return self._n_blocks

    @cached_property
    def _n_blocks(self) -> int:
        """The length of a tensor takes a microsecond, of which a search has few."""
        return len(self.codes)

    def outer_corners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners of the box around all vectors, float32 (A,) each.

        They are empty where there are no vectors.
        """
        if not len(self.boxes):
            nothing = self.boxes.new_zeros(0)
            return nothing, nothing
        lower, upper = _around(self.boxes[:1])
        return lower[0], upper[0]

    @property
    def n_summary_groups(self) -> int:
        """Return the number of groups of boxes in the summary.

        The summary is the coarse levels, the finest of which encloses 16 blocks a box.

        Where there are no more than 16 blocks it is their own boxes.
        """
        return int(self.starts[max(1, self.n_levels - 1)])

    def is_finite(self) -> bool:
        """Return whether the boxes of the summary have two finite corners, in order."""
        boxes = self.boxes[: self.n_summary_groups]
        return (
            bool((boxes[:, :, 0] <= boxes[:, :, 1]).all()) and float(boxes.abs().amax()) < math.inf
        )

    def corners_of_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners of the quantisation step of each row, float32 (n, A) each.

        The step is the one of its block's box in which the row lies.
        """
        block = torch.div(rows, self.size, rounding_mode="floor")
        lower, upper = self.corners_of(block)
        step = (upper - lower) / STEPS
        corner = lower + self.codes[block, :, rows % self.size].float() * step
        return corner, corner + step

    @property
    def blocks(self) -> Blocks:
        """What programs of a device walk."""
        return self

    def fetch_rows(self, partition: Partition, rows: torch.Tensor) -> None:
        """Ask for the rows' vectors, and for the codes and boxes of their blocks."""
        if partition.pages is None:
            return
        block = torch.div(rows, self.size, rounding_mode="floor")
        group = torch.div(block, FANOUT, rounding_mode="floor") + int(self.starts[-2])
        for name, array_rows in (("vectors", rows), ("block_codes", block), ("boxes", group)):
            partition.pages.want(name, torch.unique(array_rows))

    def fetch(
        self, partition: Partition, query: Query, threshold: Threshold, kernel: Kernel
    ) -> None:
        """Request the boxes that query values will walk, and the codes of the remaining blocks."""
        if self.n_levels > 1:
            groups = kernel.boxes_marked(partition, query, threshold, self.n_levels - 2)
            if groups is None:
                return
            partition.pages.want("boxes", groups + int(self.starts[-2]))
        surviving = kernel.boxes_marked(partition, query, threshold, self.n_levels - 1)
        if surviving is not None:
            partition.pages.want("block_codes", surviving)

    def candidates(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        kernel: Kernel,
        max_pairs: int,
        stats: SearchStats,
    ) -> Iterator[tuple[slice, Pairs | None]]:
        """Yield all candidate pairs; which way through the boxes is fastest is the kernel's."""
        yield slice(None), kernel.candidates(partition, query, threshold, max_pairs, stats)

    def corners_of(self, blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return lower and upper corners of the boxes of some blocks, float32 (p, A) each.

        `blocks` is int64 (p,); no other box is read.
        """
        group = torch.div(blocks, FANOUT, rounding_mode="floor") + int(self.starts[-2])
        corners = self.boxes[group, :, :, blocks % FANOUT]
        return corners[:, :, 0], corners[:, :, 1]

    def corners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return lower and upper corners of the blocks' boxes, float32 (K, A) each."""
        leaves = self.boxes[int(self.starts[-2]) :] if self.n_levels else self.boxes
        flat = leaves.permute(0, 3, 2, 1).flatten(0, 1)[: len(self)]
        return flat[:, 0], flat[:, 1]

    @cached_property
    def sample_boxes(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return lower and upper corners of a sample of block boxes, float32 (s, A) each.

        The sample is `SAMPLE_BLOCKS` evenly spread blocks, or all.
        """
        lower, upper = self.corners_of(self._sample)
        return lower.contiguous(), upper.contiguous()

    @cached_property
    def sample_rows(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners around one vector of each sampled block, float32 (s, A) each.

        The blocks are those of `sample_boxes`. The lower and upper corners are where the vector
        lies according to its code.
        """
        lower, upper = self.sample_boxes
        step = (upper - lower) / STEPS
        corner = lower + self.codes[self._sample, :, self._sample % self.size].float() * step
        return corner, corner + step

    @property
    def _sample(self) -> torch.Tensor:
        n = min(len(self), SAMPLE_BLOCKS)
        return torch.arange(n, device=self.codes.device) * len(self) // max(1, n)


def pad_axes(mapped: torch.Tensor, fill: float = 0.0) -> torch.Tensor:
    """Pad mapped coordinates to a multiple of eight axes.

    Zeros on both sides of a comparison add nothing.

    Parameters
    ----------
    mapped : float32 (n, P)

    Returns
    -------
    float32 (n, A), contiguous
    """
    missing = -mapped.shape[1] % AXES_MULTIPLE
    return torch.nn.functional.pad(mapped, (0, missing), value=fill).contiguous()


def build_blocks(
    mapped: torch.Tensor, block_size: int = BLOCK_SIZE, order: torch.Tensor | None = None
) -> Blocks:
    """Build the blocks over rows in the order of `pexeso.engine.layout.ordering.order_by_splits`.

    Parameters
    ----------
    mapped : float32 (N, P)
    block_size : int
        Rows of a block; the last one may have fewer.
    order : int64 (N,), optional
        The order of the rows, where they do not stand in it.

    Returns
    -------
    Blocks
        O(N P) time; on the device of the rows. Beside what is given 256 MiB are held, for 16
        coordinates.
    """
    n_rows = len(mapped)
    n_blocks, n_axes = -(-n_rows // block_size), mapped.shape[1] + -mapped.shape[1] % AXES_MULTIPLE
    lower, upper = mapped.new_empty((2, n_blocks, n_axes))
    codes = torch.empty((n_blocks, n_axes, block_size), dtype=torch.uint8, device=mapped.device)
    chunk_size = max(1, _ROWS_AT_ONCE // block_size)
    for begin in range(0, n_blocks, chunk_size):
        end = min(begin + chunk_size, n_blocks)
        chunk = slice(begin * block_size, min(end * block_size, n_rows))
        rows = pad_axes(mapped[chunk] if order is None else mapped.index_select(0, order[chunk]))
        # The last block is filled with its own last row, which changes no box.
        fill = (end - begin) * block_size - len(rows)
        tiles = torch.cat([rows, rows[-1:].expand(fill, -1)]).reshape(
            end - begin, block_size, n_axes
        )
        lower[begin:end], upper[begin:end] = tiles.amin(1), tiles.amax(1)
        codes[begin:end] = _codes(tiles, lower[begin:end], upper[begin:end])
    levels = [_groups(lower, upper)]
    while len(levels[0]) > 1:
        lower, upper = _around(levels[0])
        levels.insert(0, _groups(lower, upper))
    sizes = torch.tensor([0, *(len(level) for level in levels)])
    return Blocks(torch.cat(levels), torch.cumsum(sizes, 0), codes, n_rows)


def _codes(tiles: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Compute each coordinate's step in its box, uint8 (K, A, B).

    A coordinate is never outside its step by more than its own rounding.
    """
    width = (upper - lower)[:, None]
    position = (
        (tiles - lower[:, None]) / torch.where(width > 0, width, torch.ones_like(width)) * STEPS
    )
    return position.clamp_(0, STEPS - 1).to(torch.uint8).permute(0, 2, 1).contiguous()


def _groups(lower: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """Arrange boxes in groups, float32 (g, A, 2, 16).

    The last group is padded with boxes that nothing is near to.
    """
    boxes = torch.stack([lower, upper], 2)  # (b, A, 2)
    n_groups = -(-len(boxes) // FANOUT)
    padding = boxes.new_full((n_groups * FANOUT - len(boxes), *boxes.shape[1:]), NOWHERE)
    return (
        torch.cat([boxes, padding])
        .reshape(n_groups, FANOUT, *boxes.shape[1:])
        .permute(0, 2, 3, 1)
        .contiguous()
    )


def _around(level: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the box around each group."""
    real = level[:, :, 0] < NOWHERE / 2
    lower = level[:, :, 0].amin(2)
    upper = torch.where(real, level[:, :, 1], torch.full_like(level[:, :, 1], -NOWHERE)).amax(2)
    return lower, upper
