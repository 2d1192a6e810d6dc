"""Sets of column ids as ranges.

The columns of a table have consecutive ids, so a deleted table is one range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Ranges = list[tuple[int, int]]


def ranges_of(ids: np.ndarray) -> Ranges:
    """Bring ascending ids into ranges (first, end), `end` exclusive."""
    if not len(ids):
        return []
    breaks = np.flatnonzero(np.diff(ids) > 1)
    first, last = (
        ids[np.concatenate([[0], breaks + 1])],
        ids[np.concatenate([breaks, [len(ids) - 1]])],
    )
    return [(int(a), int(b) + 1) for a, b in zip(first, last, strict=True)]


def merge_ranges(*lists: Iterable[Sequence[int]]) -> Ranges:
    """Bring ranges together: ascending, apart, those that touch as one."""
    merged: Ranges = []
    for first, end in sorted(tuple(span) for ranges in lists for span in ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return merged


def numbers_in(ranges: Iterable[Sequence[int]]) -> np.ndarray:
    """Return the numbers in ranges that are ascending and apart: int64.

    Examples
    --------
    >>> numbers_in([[1, 3], [5, 6]]).tolist()
    [1, 2, 5]
    """
    return np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in ranges)])


def are_ranges(value: Any, end: int) -> bool:
    """Return whether a plain JSON value is a list of ranges below `end`, ascending and apart."""
    if not isinstance(value, list):
        return False
    last = 0
    for span in value:
        if not (
            isinstance(span, list) and len(span) == 2 and all(type(bound) is int for bound in span)
        ):
            return False
        if not last <= span[0] < span[1] <= end:
            return False
        last = span[1]
    return True
