"""Bits of 64-bit numbers mixed, the same on every machine."""

from __future__ import annotations

import numpy as np


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Mix the bits of numbers by the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).

    Parameters
    ----------
    numbers : uint64 (n,)

    Returns
    -------
    uint64 (n,)
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
