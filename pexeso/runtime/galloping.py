"""Search in ascending numbers by doubling steps, for loops."""

from __future__ import annotations

import numpy as np

from pexeso.runtime.jit import loop


@loop
def not_before(numbers: np.ndarray, low: int, end: int, wanted: int) -> int:
    """Return the first place from `low` to `end` whose number is not below the wanted one.

    It takes few steps where that place is near, as it is for one number after another.
    """
    step, high = 1, low
    while high < end and numbers[high] < wanted:
        low = high + 1
        high += step
        step *= 2
    high = min(high, end)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
