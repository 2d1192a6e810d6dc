"""How loops are compiled: without the interpreter lock, and kept for the next process wherever there is a place to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

LOOSE = frozenset({"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"})
"""Sums may be taken in any order and fused: for bounds that carry a tolerance, never for what decides a match."""


def loop(*, loose: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a decorator that compiles a function on its first call.

    Parameters
    ----------
    loose : bool
        Allow `LOOSE` arithmetic.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(LOOSE) if loose else False}

    def compile_lazily(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            # Neither the package's folder nor the user's can be written to: compile anew in every process.
            return njit(**options)(function)

    return compile_lazily
