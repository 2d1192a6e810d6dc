"""Loops compiled by numba.

The module defines how they are compiled, and when a process that runs exact-value searches loads
them.

Loading takes about half a second, which a command that searches once need not spend: arrays do the
same in a millisecond. So a process begins with arrays, and goes over to loops once it has spent on
arrays about what loading takes; then it has at worst spent twice what was needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

LOOSE = frozenset({"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"})
"""Sums may be taken in any order and fused: for bounds that carry a tolerance, never for what
decides a match."""

WORTH_LOADING = 1 << 26
"""Entries of posting lists that arrays count in the time that loading takes."""

WORK_OF_A_SEARCH = 1 << 14
"""What a search costs by arrays however few entries it reads, in entries."""

_lock = threading.Lock()
_left = WORTH_LOADING


def loop(function: Callable[..., Any] | None = None, *, loose: bool = False) -> Callable[..., Any]:
    """Compile a function on its first call.

    Its decisions rest on whole numbers, or on float64 in strict IEEE 754 arithmetic.

    It runs without the interpreter lock, and what was compiled is kept for the next process
    wherever there is a place to write.

    Parameters
    ----------
    function : callable
        Of arrays and numbers only; without it a decorator is returned.
    loose : bool
        Allow `LOOSE` arithmetic.
    """
    if function is None:
        return partial(loop, loose=loose)
    from numba import njit

    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": set(LOOSE) if loose else False,
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:
        # Neither the package's folder nor the user's can be written to: compile anew in every
        # process.
        return njit(**options)(function)


def use_loops() -> None:
    """Enable compiled loops for all further searches.

    A process that will search a lot need not wait until the loops pay.
    """
    global _left
    _left = 0


def loops_are_loaded() -> bool:
    """Return whether searches use compiled loops by now."""
    return not _left


def loops_pay(entries: int) -> bool:
    """Return whether a search is to use compiled loops.

    A search without them is counted as work done by arrays.

    Parameters
    ----------
    entries : int
        What the search reads, in entries of posting lists.
    """
    global _left
    if not _left:
        return True
    with _lock:
        _left = max(0, _left - entries - WORK_OF_A_SEARCH)
        return _left == 0
