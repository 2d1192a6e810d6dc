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

from pexeso.engine.options import BLOCK_SIZE

if TYPE_CHECKING:
    from pexeso.engine.kernel import Kernel, Query
    from pexeso.engine.partition import Pages


FANOUT = 16  # boxes of a group
AXES_MULTIPLE = (
    8  # coordinates are padded with zeros to a multiple, so that loops need no remainder
)
STEPS = 256
SAMPLE_BLOCKS = 64  # that stand for all in an estimate of what filters let through

# Both corners of a box that pads a group: farther from everything than any limit, and finite when
# squared.
NOWHERE = 1e6

_CHUNK_SIZE = 1 << 20  # rows whose coordinates are brought together


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
        return self.codes.shape[2]

    @cached_property
    def n_levels(self) -> int:
        return len(self.starts) - 1

    def __len__(self) -> int:
        return self._n_blocks

    @cached_property
    def _n_blocks(
        self,
    ) -> int:  # the length of a tensor takes a microsecond, of which a search has few
        return len(self.codes)

    def outer_corners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners of the box around all vectors, float32 (A,), or (0,) without any."""
        if not len(self.boxes):
            nothing = self.boxes.new_zeros(0)
            return nothing, nothing
        lower, upper = _around(self.boxes[:1])
        return lower[0], upper[0]

    @property
    def n_summary_groups(self) -> int:
        """Groups of boxes in the summary: the coarse levels, whose finest encloses 16 blocks a box.

        Where there are no more than 16 blocks it is their own boxes.
        """
        return int(self.starts[max(1, self.n_levels - 1)])

    def is_finite(self) -> bool:
        boxes = self.boxes[: self.n_summary_groups]
        return (
            bool((boxes[:, :, 0] <= boxes[:, :, 1]).all()) and float(boxes.abs().amax()) < math.inf
        )

    def corners_of_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the corners of the step of its block's box in which each row lies.

        They are float32 (n, A) each.
        """
        block = torch.div(rows, self.size, rounding_mode="floor")
        lower, upper = self.corners_of(block)
        step = (upper - lower) / STEPS
        corner = lower + self.codes[block, :, rows % self.size].float() * step
        return corner, corner + step

    @property
    def blocks(self) -> Blocks:
        return self

    def fetch_rows(self, pages: Pages, rows: torch.Tensor) -> None:
        block = torch.div(rows, self.size, rounding_mode="floor")
        group = torch.div(block, FANOUT, rounding_mode="floor") + int(self.starts[-2])
        for name, array_rows in (("vectors", rows), ("block_codes", block), ("boxes", group)):
            pages.want(name, torch.unique(array_rows))

    def fetch(self, query: Query, kernel: Kernel) -> None:
        pages = query.partition.pages
        if self.n_levels > 1:
            groups = kernel.boxes_marked(query, self.n_levels - 2)
            if groups is None:
                return
            pages.want("boxes", groups + int(self.starts[-2]))
        surviving = kernel.boxes_marked(query, self.n_levels - 1)
        if surviving is not None:
            pages.want("block_codes", surviving)

    def corners_of(self, blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return lower and upper corners of the boxes of some blocks, float32 (p, A) each.

        `blocks` is int64 (p,); no other box is read.
        """
        group = torch.div(blocks, FANOUT, rounding_mode="floor") + int(self.starts[-2])
        corners = self.boxes[group, :, :, blocks % FANOUT]
        return corners[:, :, 0], corners[:, :, 1]

    @cached_property
    def sample_boxes(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Corners of the boxes of `SAMPLE_BLOCKS` evenly spread blocks, float32 (s, A) each."""
        lower, upper = self.corners_of(self._sample)
        return lower.contiguous(), upper.contiguous()

    @cached_property
    def sample_rows(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Corners around one vector of each of these blocks, as its code says."""
        return self.corners_of_rows(self._sample * self.size + self._sample % self.size)

    @property
    def _sample(self) -> torch.Tensor:
        n = min(len(self), SAMPLE_BLOCKS)
        return torch.arange(n, device=self.codes.device) * len(self) // max(1, n)


def pad_axes(mapped: torch.Tensor, fill: float = 0.0) -> torch.Tensor:
    """Pad mapped coordinates to a multiple of eight axes, float32 (n, A), contiguous."""
    missing = -mapped.shape[1] % AXES_MULTIPLE
    return torch.nn.functional.pad(mapped, (0, missing), value=fill).contiguous()


def build_blocks(
    mapped: torch.Tensor, block_size: int = BLOCK_SIZE, order: torch.Tensor | None = None
) -> Blocks:
    """Build the blocks over rows in the order of `order_by_splits`, on the device of the rows.

    Rows that are not in that order come with it, int64 (N,). 256 MiB are held for 16 coordinates.
    """
    n_rows = len(mapped)
    n_blocks, n_axes = -(-n_rows // block_size), mapped.shape[1] + -mapped.shape[1] % AXES_MULTIPLE
    lower, upper = mapped.new_empty((2, n_blocks, n_axes))
    codes = torch.empty((n_blocks, n_axes, block_size), dtype=torch.uint8, device=mapped.device)
    chunk_size = max(1, _CHUNK_SIZE // block_size)
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
    real = level[:, :, 0] < NOWHERE / 2
    lower = level[:, :, 0].amin(2)
    upper = torch.where(real, level[:, :, 1], torch.full_like(level[:, :, 1], -NOWHERE)).amax(2)
    return lower, upper


def order_by_splits(mapped: torch.Tensor, block_size: int) -> torch.Tensor:
    """Return an order of rows, int64 (n,), in which every run of `block_size` is close together.

    A segment is halved where it is widest: the rows of smaller coordinates go left, equal ones in
    their present order, and both halves keep that order. Halves are whole blocks, so that only the
    very last block is not full.

    Each halving takes one stable sort of n, all segments at once. How large the segments are does
    not depend on the rows, so that a device is never waited for. Memory: at most 64 bytes a row,
    and 256 MiB for pieces of 16 coordinates. `pexeso.engine.kernels.compiled` gives the same
    order faster on the CPU.
    """
    n = len(mapped)
    mapped = mapped.contiguous()
    order = torch.arange(n, device=mapped.device)
    sizes = torch.tensor([n])
    while n and int(sizes.max()) > block_size:
        left = left_sizes(sizes, block_size)
        widest = _widest_axes(mapped, order, sizes, block_size)
        order = _halved(mapped, order, widest, sizes, left)
        sizes = torch.stack([left, sizes - left], 1).flatten()
        sizes = sizes[sizes > 0]
    return order


def left_sizes(sizes: torch.Tensor, block_size: int) -> torch.Tensor:
    """Return how many rows of each segment go left, int64: half of its blocks, rounded up."""
    n_blocks = torch.div(sizes + block_size - 1, block_size, rounding_mode="floor")
    return torch.minimum(torch.div(n_blocks + 1, 2, rounding_mode="floor") * block_size, sizes)


def _widest_axes(
    mapped: torch.Tensor, order: torch.Tensor, sizes: torch.Tensor, block_size: int
) -> torch.Tensor:
    """Compute the axis on which each segment is widest, int64.

    It comes from the boxes of the segment's blocks, since a segment is a run of blocks.
    """
    n_blocks = torch.div(sizes + block_size - 1, block_size, rounding_mode="floor")
    lower = torch.empty(
        (int(n_blocks.sum()), mapped.shape[1]), dtype=mapped.dtype, device=mapped.device
    )
    upper = torch.empty_like(lower)
    for begin, end in _pieces(len(order), block_size):
        rows = mapped.index_select(0, order[begin:end])
        whole = len(rows) // block_size
        first = begin // block_size
        if whole:
            tiles = rows[: whole * block_size].view(whole, block_size, -1)
            torch.amin(tiles, 1, out=lower[first : first + whole])
            torch.amax(tiles, 1, out=upper[first : first + whole])
        if whole * block_size < len(rows):
            lower[first + whole] = rows[whole * block_size :].amin(0)
            upper[first + whole] = rows[whole * block_size :].amax(0)
    # Segments differ by one block at most: shorter ones look at their last block twice.
    ends = torch.cumsum(n_blocks, 0)
    positions = torch.minimum(
        (ends - n_blocks)[:, None] + torch.arange(int(n_blocks.max())), ends[:, None] - 1
    )
    positions = positions.to(mapped.device)
    return (upper[positions].amax(1) - lower[positions].amin(1)).argmax(1)


def _halved(
    mapped: torch.Tensor,
    order: torch.Tensor,
    widest: torch.Tensor,
    sizes: torch.Tensor,
    left: torch.Tensor,
) -> torch.Tensor:
    """Return the order with the `left` smallest rows of each segment before the others.

    Rows are compared on the segment's widest axis.
    """
    n, device = len(order), order.device
    starts = torch.cumsum(sizes, 0) - sizes
    right = sizes - left
    rights_before = torch.cumsum(right, 0) - right
    sizes, border, rights_before = (
        tensor.to(device) for tensor in (sizes, starts + left, rights_before)
    )
    segment = torch.repeat_interleave(sizes, output_size=n)
    keys = torch.empty_like(order)
    for begin, end in _pieces(n, 1):
        of_piece = segment[begin:end]
        coordinates = mapped.view(-1)[order[begin:end] * mapped.shape[1] + widest[of_piece]]
        keys[begin:end] = (of_piece << 32) + _as_integers(coordinates)
    by_key = torch.argsort(keys, stable=True)
    del keys
    # A segment has its own places before and after the sort: what stands beyond its border goes
    # right.
    goes_right = torch.empty(n, dtype=torch.bool, device=device)
    position = torch.arange(n, device=device)
    border = border[segment]
    goes_right[by_key] = position >= border
    del by_key
    rights = torch.cumsum(goes_right, 0).sub_(rights_before[segment])
    halved = torch.empty_like(order)
    halved[torch.where(goes_right, border.add_(rights).sub_(1), position.sub_(rights))] = order
    return halved


def _as_integers(numbers: torch.Tensor) -> torch.Tensor:
    """Convert float32 numbers to int64 in [0, 2**32), in the same order.

    -0 and 0 become the same number.
    """
    bits = (numbers + 0.0).view(torch.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long() + (1 << 31)


def _pieces(n: int, multiple: int) -> Iterator[tuple[int, int]]:
    step = max(1, _CHUNK_SIZE // multiple) * multiple
    for begin in range(0, n, step):
        yield begin, min(begin + step, n)
