"""Compiled `order_by_splits`, by selection instead of sorting: O(n P) a halving.

The order is that of `pexeso.engine.layout.ordering.order_by_splits`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from pexeso.engine.threads import available_threads
from pexeso.runtime.jit import loop

_ROWS_A_TASK = 1 << 17
_FAR, _NEAR = 1 << 18, 1 << 13
"""Rows that are copied together: into a cache that cores share, and into one of their own."""

_BINS = 256


@loop()
def select(keys, rank, lower, upper):
    """Return the key of the given rank, counted from 0, among float32 (n,) keys.

    The keys span `lower` to `upper`.

    Counted in equal bins, so that only one bin has to be looked at closely.
    """
    n = len(keys)
    scale = np.float32(_BINS - 1) / (upper - lower)
    if n < 4 * _BINS or not np.isfinite(scale):
        return np.partition(keys, rank)[rank]
    counts = np.zeros(_BINS, np.int64)
    for position in range(n):
        counts[np.int64((keys[position] - lower) * scale)] += 1
    chosen, before = 0, 0
    while before + counts[chosen] <= rank:
        before += counts[chosen]
        chosen += 1
    bin_keys, n_kept = np.empty(counts[chosen] + 1, np.float32), 0
    for position in range(n):
        # The bins are in the order of the keys: each step of the arithmetic is monotonic, rounded
        # or not.
        bin_keys[n_kept] = keys[position]
        n_kept += np.int64((keys[position] - lower) * scale) == chosen
    return np.partition(bin_keys[:n_kept], rank - before)[rank - before]


@loop()
def split(mapped, order, begin, end, block_size, keys, other):
    """Halve one segment of `order` in place, and return where the right half begins.

    `end` is returned when the segment is a block.

    Parameters
    ----------
    mapped : float32 (n, P)
    order, other : int64 (n,)
        `other` is scratch.
    keys : float32 (n,)
        Scratch.
    """
    size = end - begin
    if size <= block_size:
        return end
    n_axes = mapped.shape[1]
    lower, upper = mapped[order[begin]].copy(), mapped[order[begin]].copy()
    for position in range(begin + 1, end):
        row = mapped[order[position]]
        for axis in range(n_axes):
            # As a choice, not as min and max, this becomes one instruction for many axes.
            lower[axis] = row[axis] if row[axis] < lower[axis] else lower[axis]
            upper[axis] = row[axis] if row[axis] > upper[axis] else upper[axis]
    widest = 0
    for axis in range(1, n_axes):
        if upper[axis] - lower[axis] > upper[widest] - lower[widest]:
            widest = axis
    n_blocks = (size + block_size - 1) // block_size
    n_left = min((n_blocks + 1) // 2 * block_size, size)
    for position in range(begin, end):
        keys[position] = mapped[order[position], widest]
    border = select(keys[begin:end], n_left - 1, lower[widest], upper[widest])
    n_below = 0
    for position in range(begin, end):
        n_below += keys[position] < border
    ties = n_left - n_below
    left, right = begin, begin
    for position in range(begin, end):
        # Written to both sides, kept on one: a branch would be guessed wrong every other time.
        key, row = keys[position], order[position]
        tied = (key == border) & (ties > 0)
        goes_left = (key < border) | tied
        ties -= tied
        order[left] = row
        other[right] = row
        left += goes_left
        right += not goes_left
    for position in range(right - begin):
        order[left + position] = other[begin + position]
    return left


@loop()
def split_down(mapped, order, begin, end, block_size, max_rows, keys, other):
    """Halve a segment until the parts have at most `max_rows` rows or are blocks.

    The ends of the parts are returned, int64.
    """
    stops = np.empty(2 * ((end - begin) // max(max_rows, block_size)) + 2, np.int64)
    waiting = np.empty(128, np.int64)
    waiting[0], n_waiting, n_stops = end, 1, 0
    first = begin
    while n_waiting:
        last = waiting[n_waiting - 1]
        middle = last
        if last - first > max_rows:
            middle = split(mapped, order, first, last, block_size, keys, other)
        if middle < last:
            waiting[n_waiting] = middle
            n_waiting += 1
        else:
            stops[n_stops] = last
            n_stops += 1
            n_waiting -= 1
            first = last
    return stops[:n_stops]


@loop()
def copy_rows(mapped, order, begin, end, copied, copied_order):
    """Copy the rows of a segment, so that they stand together."""
    for position in range(end - begin):
        copied[position] = mapped[order[begin + position]]
        copied_order[position] = position


@loop()
def take_order(order, begin, end, copied_order, other):
    """Bring a segment into the order of its copy."""
    for position in range(end - begin):
        other[position] = order[begin + copied_order[position]]
    order[begin:end] = other[: end - begin]


@loop()
def split_all(mapped, order, begin, end, block_size, keys, other):
    """Halve a segment down to blocks, in copies as soon as they fit a cache."""
    n_axes = mapped.shape[1]
    far, far_order = (
        np.empty((min(_FAR, end - begin), n_axes), np.float32),
        np.empty(_FAR, np.int64),
    )
    near, near_order = (
        np.empty((min(_NEAR, end - begin), n_axes), np.float32),
        np.empty(_NEAR, np.int64),
    )
    some_keys, some_other = np.empty(_FAR, np.float32), np.empty(_FAR, np.int64)
    first = begin
    for last in split_down(mapped, order, begin, end, block_size, _FAR, keys, other):
        if last - first <= _FAR:
            copy_rows(mapped, order, first, last, far, far_order)
            low = 0
            for high in split_down(
                far, far_order, 0, last - first, block_size, _NEAR, some_keys, some_other
            ):
                if high - low <= _NEAR:
                    copy_rows(far, far_order, low, high, near, near_order)
                    split_down(
                        near,
                        near_order,
                        0,
                        high - low,
                        block_size,
                        block_size,
                        some_keys,
                        some_other,
                    )
                    take_order(far_order, low, high, near_order, some_other)
                low = high
            take_order(order, first, last, far_order, some_other)
        first = last


def order_by_splits(mapped: torch.Tensor, block_size: int) -> torch.Tensor:
    """Order rows as `pexeso.engine.layout.ordering.order_by_splits` does, in threads.

    The number of threads is the one that torch would use.
    """
    rows = mapped.numpy()
    n = len(rows)
    order, other, keys = (
        np.arange(n, dtype=np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.float32),
    )
    segments = [(0, n)]
    threads = available_threads()
    while len(segments) < 4 * threads and n > _ROWS_A_TASK and threads > 1:
        halves = []
        for begin, end in segments:
            middle = split(rows, order, begin, end, block_size, keys, other)
            halves += [(begin, middle), (middle, end)] if middle < end else [(begin, end)]
        if len(halves) == len(segments):
            break
        segments = halves
    with ThreadPoolExecutor(threads) as pool:
        list(
            pool.map(
                lambda segment: split_all(rows, order, *segment, block_size, keys, other), segments
            )
        )
    return torch.from_numpy(order)
