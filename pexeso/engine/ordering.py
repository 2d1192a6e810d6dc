"""The order of rows in which every block is close together: halve at the widest axis until blocks are left."""

from __future__ import annotations

import torch


def order_by_splits(mapped: torch.Tensor, block_size: int) -> torch.Tensor:
    """Order rows so that every run of `block_size` is close together.

    A segment is halved where it is widest: the rows of smaller coordinates go left, equal ones in their present order, and both
    halves keep that order. Halves are whole blocks, so that only the very last block is not full.

    Parameters
    ----------
    mapped : float32 (n, P)
    block_size : int

    Returns
    -------
    int64 (n,)
        Row numbers. O(n (P + log n)) for each of ``log2(n / block_size)`` halvings, all segments at once; `pexeso.engine.kernels.compiled_order` gives the same
        order faster.

    Examples
    --------
    >>> order_by_splits(torch.tensor([[3.0], [0.0], [2.0], [1.0]]), 2).tolist()
    [1, 3, 0, 2]
    """
    n, device = len(mapped), mapped.device
    order = torch.arange(n, device=device)
    sizes = torch.tensor([n], device=device)
    while n and int(sizes.max()) > block_size:
        left = left_sizes(sizes, block_size)
        segment = torch.repeat_interleave(torch.arange(len(sizes), device=device), sizes)
        keys = _widest_coordinates(mapped[order], segment, len(sizes))
        by_key = torch.argsort(keys, stable=True)
        ranked = by_key[torch.argsort(segment[by_key], stable=True)]
        rank = torch.empty_like(order)
        rank[ranked] = torch.arange(n, device=device) - (torch.cumsum(sizes, 0) - sizes)[segment]
        right = rank >= left[segment]
        order = order[torch.argsort(2 * segment + right, stable=True)]
        sizes = torch.stack([left, sizes - left], 1).flatten()
        sizes = sizes[sizes > 0]
    return order


def left_sizes(sizes: torch.Tensor, block_size: int) -> torch.Tensor:
    """Give how many rows of each segment go left, int64: half of its blocks, rounded up."""
    n_blocks = torch.div(sizes + block_size - 1, block_size, rounding_mode="floor")
    return torch.minimum(torch.div(n_blocks + 1, 2, rounding_mode="floor") * block_size, sizes)


def _widest_coordinates(rows: torch.Tensor, segment: torch.Tensor, n_segments: int) -> torch.Tensor:
    """Give each row's coordinate on the axis where its segment is widest."""
    index = segment[:, None].expand_as(rows)
    shape = (n_segments, rows.shape[1])
    lower = rows.new_zeros(shape).scatter_reduce_(0, index, rows, "amin", include_self=False)
    upper = rows.new_zeros(shape).scatter_reduce_(0, index, rows, "amax", include_self=False)
    widest = (upper - lower).argmax(1)
    return rows.gather(1, widest[segment][:, None])[:, 0]
