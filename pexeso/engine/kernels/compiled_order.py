"""The order of `pexeso.engine.ordering.order_by_splits`, by compiled selection instead of sorting: O(n P) a halving."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from pexeso.engine.kernels.compiling import loop

_ROWS_A_TASK = 1 << 17


@loop()
def split(mapped, order, begin, end, block_size, keys, other):
    """Halve one segment of `order` in place; give where the right half begins, or `end` when it is a block.

    Parameters
    ----------
    mapped : float32 (n, P)
    order, other : int64 (n,)
        `other` is scratch.
    begin, end : int
    block_size : int
    keys : float32 (n,)
        Scratch.
    """
    size = end - begin
    if size <= block_size:
        return end
    n_axes = mapped.shape[1]
    lower, upper = mapped[order[begin]].copy(), mapped[order[begin]].copy()
    for place in range(begin + 1, end):
        row = order[place]
        for axis in range(n_axes):
            lower[axis] = min(lower[axis], mapped[row, axis])
            upper[axis] = max(upper[axis], mapped[row, axis])
    widest = 0
    for axis in range(1, n_axes):
        if upper[axis] - lower[axis] > upper[widest] - lower[widest]:
            widest = axis
    n_blocks = (size + block_size - 1) // block_size
    n_left = min((n_blocks + 1) // 2 * block_size, size)
    for place in range(begin, end):
        keys[place] = mapped[order[place], widest]
    border = np.partition(keys[begin:end], n_left - 1)[n_left - 1]
    n_below = 0
    for place in range(begin, end):
        n_below += keys[place] < border
    ties = n_left - n_below
    left, right = begin, 0
    for place in range(begin, end):
        key = keys[place]
        goes_left = key < border
        if key == border and ties > 0:
            goes_left = True
            ties -= 1
        if goes_left:
            order[left] = order[place]
            left += 1
        else:
            other[begin + right] = order[place]
            right += 1
    for place in range(right):
        order[left + place] = other[begin + place]
    return left


@loop()
def split_all(mapped, order, begin, end, block_size, keys, other):
    """Halve a segment down to blocks."""
    begins, ends = np.empty(128, np.int64), np.empty(128, np.int64)
    begins[0], ends[0], n_open = begin, end, 1
    while n_open:
        n_open -= 1
        first, last = begins[n_open], ends[n_open]
        middle = split(mapped, order, first, last, block_size, keys, other)
        if middle == last:
            continue
        # The larger half waits, so that never more than log2(n) segments do.
        begins[n_open], ends[n_open] = middle, last
        begins[n_open + 1], ends[n_open + 1] = first, middle
        n_open += 2


def order_by_splits(mapped: torch.Tensor, block_size: int) -> torch.Tensor:
    """Do as `pexeso.engine.ordering.order_by_splits`, with the threads that torch would use."""
    rows = mapped.numpy()
    n = len(rows)
    order, other, keys = np.arange(n, dtype=np.int64), np.empty(n, np.int64), np.empty(n, np.float32)
    segments = [(0, n)]
    threads = torch.get_num_threads()
    while len(segments) < 4 * threads and n > _ROWS_A_TASK and threads > 1:
        halves = []
        for begin, end in segments:
            middle = split(rows, order, begin, end, block_size, keys, other)
            halves += [(begin, middle), (middle, end)] if middle < end else [(begin, end)]
        if len(halves) == len(segments):
            break
        segments = halves
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda segment: split_all(rows, order, *segment, block_size, keys, other), segments))
    return torch.from_numpy(order)
