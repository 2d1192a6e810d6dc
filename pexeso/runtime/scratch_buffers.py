"""Counters that searches borrow, so that no search clears a number for each set of the lake."""

from __future__ import annotations

import threading

import numpy as np

_HELD = threading.local()


def borrow_counters(n: int) -> np.ndarray:
    """Take counters that are all 0; they go back by `give_back`, all 0 again: int32 (n,).

    Each thread keeps those of the largest index that it searched: 4 bytes a set. A search that
    fails does not give them back, and the next one gets new ones.

    Parameters
    ----------
    n : int
        Of sets, at least 0.
    """
    held = getattr(_HELD, "counters", None)
    _HELD.counters = None
    if held is None or len(held) < n:
        held = np.zeros(n, np.int32)
    return held[:n] if len(held) > n else held


def give_back(counters: np.ndarray) -> None:
    """Keep counters, which must all be 0 again, for the next search of this thread."""
    _HELD.counters = counters if counters.base is None else counters.base
