"""Ranges of whole numbers written out, by array operations."""

from __future__ import annotations

import numpy as np


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """List the members of every range ``starts[i], ..., starts[i] + sizes[i] - 1``: int64.

    Examples
    --------
    >>> ranges(np.array([5, 2]), np.array([2, 3])).tolist()
    [5, 6, 2, 3, 4]
    """
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts - before, sizes)


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Return where each of n ranges begins that stand one after the other: int64 (n + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
