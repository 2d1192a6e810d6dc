"""Draws that are the same on every machine.

They use the raw stream of the Philox generator, which numpy keeps the same, and whole numbers
alone. Each purpose has a stream of its own, keyed by a hash of what it is for, so that a further
column changes no other.
"""

from __future__ import annotations

import hashlib

import numpy as np

from pexeso.errors import InputError


class Draws:
    """A stream of whole numbers for one purpose.

    Examples
    --------
    >>> Draws(0, "market", "table").below(3, 10).tolist() == Draws(0, "market", "table").below(
    ...     3, 10
    ... ).tolist()
    True
    """

    def __init__(self, seed: int, *purpose: str):
        text = "\x1f".join([str(int(seed)), *purpose])
        key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
        self._stream = np.random.Philox(key=key)

    def raw(self, n: int) -> np.ndarray:
        """Return numbers of 64 bits: uint64 (n,)."""
        return np.atleast_1d(self._stream.random_raw(n)) if n else np.zeros(0, np.uint64)

    def below(self, n: int, limit: int | np.ndarray) -> np.ndarray:
        """Return whole numbers from 0 below a limit, each as likely: int64 (n,)."""
        limits = np.asarray(limit).astype(np.uint64)
        if n and not limits.all():
            raise InputError("A draw needs a limit of at least 1, got 0.")
        return (self.raw(n) % limits).astype(np.int64)

    def between(self, n: int, first: int, last: int) -> np.ndarray:
        """Return whole numbers from the first to the last, each as likely: int64 (n,)."""
        return first + self.below(n, last - first + 1)

    def skewed(self, n: int, limit: int) -> np.ndarray:
        """Return whole numbers from 0 below a limit, i as likely as 1 / (i + 10): int64 (n,)."""
        bounds = np.cumsum(np.int64(10**12) // (np.arange(limit, dtype=np.int64) + 10))
        return np.searchsorted(bounds, self.below(n, int(bounds[-1])), side="right")

    def chance(self, n: int, percent: int) -> np.ndarray:
        """Return what is true in so many of a hundred cases: bool (n,)."""
        return self.below(n, 100) < percent

    def order(self, n: int) -> np.ndarray:
        """Return the numbers from 0 below n in a random order: int64 (n,)."""
        return np.argsort(self.raw(n), kind="stable").astype(np.int64)
