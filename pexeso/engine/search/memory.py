"""Device memory: what a search does when a device has run out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from pexeso.engine.interface import Kernel
from pexeso.engine.layout.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.errors import DeviceError

Found = TypeVar("Found")

_SHRINK_BY = 4


def search_within_memory(
    attempt: Callable[[int], Found],
    partition: Partition,
    kernel: Kernel,
    max_pairs: int,
    stats: SearchStats,
) -> Found:
    """Search, and where the device runs out of memory search again with a quarter of the pairs, as often as it takes.

    Parameters
    ----------
    attempt : callable
        Does the search, given the most pairs that it may hold.
    max_pairs : int
        Of the first attempt.
    stats : SearchStats
        Tells how many attempts ran out of memory.

    Returns
    -------
    What the first attempt gives that does not run out of memory.
    """
    while True:
        try:
            return attempt(max_pairs)
        except torch.OutOfMemoryError as error:
            reason = str(error).partition("\n")[0]
        # Outside of the handler, where the traceback keeps nothing alive any more that the attempt held.
        kernel.forget()
        if partition.device.type == "cuda":
            torch.cuda.empty_cache()
        stats.times_out_of_memory += 1
        if max_pairs <= 1:
            raise DeviceError(
                f"The device {partition.device} has not enough memory for a single query value over {partition.n_values:,} stored values ({reason}). "
                "Build the index with smaller partitions (--partition-bytes), or search on the CPU (--device cpu)."
            )
        max_pairs //= _SHRINK_BY
