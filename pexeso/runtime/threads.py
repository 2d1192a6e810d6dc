"""How many threads a caller may use, told without loading torch."""

from __future__ import annotations

import os
import sys
import threading

given = threading.local()
"""``given.threads`` is what the caller's thread may use, where something else was set for torch."""

_alone = False


def take_one_thread() -> None:
    """Let this process search in one thread, from now on."""
    global _alone
    _alone = True
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


# Many forked processes share the cores; and the threads of torch, which are those of OpenMP, are of
# the process that was forked, so that a parallel step would wait for them for ever.
os.register_at_fork(after_in_child=take_one_thread)


def is_alone() -> bool:
    """Return whether this process was told to search in one thread."""
    return _alone


def available_threads() -> int:
    """Return how many threads the caller may use.

    It is the number that torch has, or had before it was told to use few; where torch is not
    loaded, what ``OMP_NUM_THREADS`` says, or the processors that this process may run on.

    Examples
    --------
    >>> available_threads() >= 1
    True
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
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
