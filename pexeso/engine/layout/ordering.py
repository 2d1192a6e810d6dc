"""The order of rows in which the rows of every block are close together.

Segments are halved at their widest axis until blocks are left.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

_ROWS_AT_ONCE = 1 << 20
"""Rows whose coordinates are brought together at a time: 64 MiB of 16 coordinates."""


def order_by_splits(mapped: torch.Tensor, block_size: int) -> torch.Tensor:
    """Order rows so that every run of `block_size` is close together.

    A segment is halved where it is widest: the rows of smaller coordinates go left, equal ones in
    their present order, and both halves keep that order. Halves are whole blocks, so that only the
    very last block is not full.

    Parameters
    ----------
    mapped : float32 (n, P)

    Returns
    -------
    int64 (n,)
        Row numbers, on the same device.

    Notes
    -----
    One stable sort of n for each of ``log2(n / block_size)`` halvings, all segments at once. How
    large the segments are does not depend on the rows, so that a device is never waited for. Memory
    beside the rows: at most 64 bytes a row, and 256 MiB for pieces of 16 coordinates.
    `pexeso.engine.kernels.numba.order` gives the same order faster on the CPU.
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
    """Cut rows into pieces that begin at a multiple."""
    step = max(1, _ROWS_AT_ONCE // multiple) * multiple
    for begin in range(0, n, step):
        yield begin, min(begin + step, n)
