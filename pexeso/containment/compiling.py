"""How the loops of this package are compiled: without the interpreter lock, and kept for the next process wherever there is a place to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function on its first call; all that it decides is whole numbers or float64 to the letter of IEEE 754.

    Parameters
    ----------
    function : callable
        Of arrays and numbers only.
    """
    try:
        return njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:
        # Neither the package's folder nor the user's can be written to: compile anew in every process.
        return njit(nogil=True, error_model="numpy")(function)
