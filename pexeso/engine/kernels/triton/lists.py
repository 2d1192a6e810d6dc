"""Shared code of the Triton programs of a search: shared lists, and the size of a launch.

The lists are filled by many programs. The size of a launch is its number of programs.

One launch is one step for all query values. A launch has a few programs for each multiprocessor,
which share the items of a list among them; the length of the list stands in device memory, so that
the host need not know it. Lists are filled by one atomic addition a tile; what does not fit is
counted and not written, and the host starts again with more room or gives up
(`pexeso.engine.kernels.triton.kernel`).

Numbers that address a lake-sized array are int64: 602 million rows of 50 entries are more than
int32 counts. Rows, blocks and query values themselves are int32. Query values are looked at in
tiles; one bit each of an int32 says which of them a box has not ruled out.
"""

from __future__ import annotations

from functools import cache

import torch
import triton
import triton.language as tl

BOXES_TESTED, ROWS_TESTED, PAIRS_LEFT, ACCEPTED, PRODUCTS, BAND, N_COUNTERS = (
    tl.constexpr(i) for i in range(7)
)
"""Places in `work`: what `pexeso.engine.stats.SearchStats` counts."""


@triton.jit
def slots(counter, keep):
    """Take places in a list for what is kept of a tile, int64; those of the rest mean nothing."""
    count = tl.sum(keep.to(tl.int32), 0)
    base = tl.atomic_add(counter, count.to(tl.int64), mask=count > 0, sem="relaxed")
    return base + tl.cumsum(keep.to(tl.int32), 0) - 1


@triton.jit
def append(firsts, seconds, counter, capacity, first, second, keep):
    """Append what is kept of a tile of pairs, all of one dimension."""
    slot = slots(counter, keep)
    fits = keep & (slot < capacity)
    tl.store(firsts + slot, first, mask=fits)
    tl.store(seconds + slot, second, mask=fits)


@triton.jit
def length_of(counter, capacity):
    """Return how many items of a list were written, int32."""
    return tl.minimum(tl.load(counter), capacity).to(tl.int32)


INTERPRETED = not isinstance(slots, triton.JITFunction)
"""Whether Triton's interpreter runs the programs (``TRITON_INTERPRET=1`` when triton was imported):
on any device, slowly."""

_PROGRAMS = 8
_INTERPRETED_PROGRAMS = 2


@cache
def n_programs(device: torch.device, a_multiprocessor: int = _PROGRAMS) -> int:
    """Return how many programs a launch has, so many for each multiprocessor."""
    if INTERPRETED:
        return _INTERPRETED_PROGRAMS
    return a_multiprocessor * torch.cuda.get_device_properties(device).multi_processor_count


def counting_grid(device: torch.device, n_programs_each: int, n_shares: int) -> tuple[int, int]:
    """Return the two axes of a launch that counts columns (`pexeso.engine.kernels.triton.counts`).

    Parameters
    ----------
    n_programs_each : int
        Programs for each multiprocessor, that share the entries.
    n_shares : int
        Programs that share the columns of an entry.
    """
    return n_programs(device, n_programs_each), 2 if INTERPRETED else n_shares
