"""Threads and memory of a process: how many it may use, counters, garbage, what memory is left."""

from __future__ import annotations

import gc
import os
import sys
import threading

import numpy as np

from pexeso.errors import InputError
from pexeso.runtime.formatting import format_bytes
from pexeso.runtime.system import after_fork, available_memory, available_processors

# ``given.threads`` is what the caller's thread may use, where something else was set for torch.
given = threading.local()

_alone = False


# What Arrow keeps of less is soon used again.
LARGE_BYTES = 1 << 20


def release_unused(n_bytes: int) -> None:
    """Return memory that Arrow freed to the system, where what was made last has so many bytes.

    Arrow keeps it, and after a table it may be as much as the table itself.
    """
    if n_bytes >= LARGE_BYTES and (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()


def take_one_thread() -> None:
    """Let this process search in one thread, from now on."""
    global _alone
    _alone = True
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


# Many forked processes share the cores; and the threads of torch, which are those of OpenMP, are of
# the process that was forked, so that a parallel step would wait for them for ever.
after_fork(take_one_thread)


def is_alone() -> bool:
    """Return whether this process is to search in one thread."""
    return _alone


def available_threads() -> int:
    """Return how many threads the caller may use.

    It is the number that torch has, or had before it was set to use few; where torch is not
    loaded, what ``OMP_NUM_THREADS`` says, or the processors that this process may run on.
    """
    if _alone:
        return 1
    if (threads := getattr(given, "threads", None)) is not None:
        return threads
    if (torch := sys.modules.get("torch")) is not None:
        return torch.get_num_threads()
    requested = os.environ.get("OMP_NUM_THREADS", "")
    if requested.isdigit() and int(requested):
        return int(requested)
    return available_processors()


_held = threading.local()


def borrow_counters(n: int) -> np.ndarray:
    """Take counters of sets that are all 0, int32 (n,), to be given back all 0.

    So no search clears a number for each set of the lake. Each thread keeps those of the largest
    index that it searched. A search that fails does not give them back, and the next one gets new
    ones.
    """
    counters = getattr(_held, "counters", None)
    _held.counters = None
    if counters is None or len(counters) < n:
        counters = np.zeros(n, np.int32)
    return counters[:n] if len(counters) > n else counters


def give_back(counters: np.ndarray) -> None:
    """Keep counters, which must all be 0 again, for the next search of this thread."""
    _held.counters = counters if counters.base is None else counters.base


_n_frozen_modules = 0


def freeze_imports() -> None:
    """Exempt all that a worker of Spark has imported from its search for garbage.

    A worker looks for garbage after each task, and with torch imported that takes longer than most
    tasks of a small lake. Later garbage is found as before.
    """
    global _n_frozen_modules
    if len(sys.modules) > _n_frozen_modules:
        _n_frozen_modules = len(sys.modules)
        gc.collect()  # first, or garbage of this task would stay for good
        gc.freeze()


# What a matching pair takes at the most, from the comparison to the joined mapping.
BYTES_OF_A_PAIR = 250

# For so many pairs nobody asks how much memory is left.
FEW_PAIRS = 1 << 18


def require_memory_for_pairs(n_pairs: int, max_distance: float) -> None:
    """Refuse so many matching pairs of values where the memory left does not hold them."""
    needed, available = n_pairs * BYTES_OF_A_PAIR, available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"More than {n_pairs:,} pairs of values match within distance {max_distance:g}, which "
            f"take {format_bytes(needed)} of memory, and {format_bytes(available)} is available: "
            "take a smaller max_distance, or give fewer values."
        )
