"""Hashes of whole numbers, runs of lists, and sets of ids as ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Mix the bits of uint64 by the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def runs_of_lists(offsets: np.ndarray, size: int) -> list[slice]:
    """Return runs of at most `size` lists and about as many members, where work needs them often.

    offsets: int64 (n + 1,), where each list begins in the members of all, and the end.
    """
    begins = np.searchsorted(offsets, np.arange(offsets[0], offsets[-1], size))
    bounds = sorted({*begins.tolist(), *range(0, len(offsets) - 1, size), len(offsets) - 1})
    return [slice(*run) for run in pairwise(bounds)]


def runs_within(costs: np.ndarray, limit: int) -> Iterator[slice]:
    """Yield runs of things that cost at most `limit` together, or are one that costs more."""
    ends, begin = np.cumsum(costs), 0
    while begin < len(ends):
        spent = ends[begin - 1] if begin else 0
        end = max(int(np.searchsorted(ends, spent + limit, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end


Ranges = list[tuple[int, int]]


def ranges_of(ids: np.ndarray) -> Ranges:
    """Bring ascending ids into ranges (first, end), `end` exclusive."""
    if not len(ids):
        return []
    breaks = np.flatnonzero(np.diff(ids) > 1)
    first, last = ids[np.r_[0, breaks + 1]], ids[np.r_[breaks, len(ids) - 1]]
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
    """Return the numbers in ranges that are ascending and apart: int64."""
    return np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in ranges)])


def are_ranges(value: Any, end: int) -> bool:
    """Return whether a plain JSON value is a list of ranges below `end`, ascending and apart."""
    if not isinstance(value, list):
        return False
    last = 0
    for span in value:
        if not isinstance(span, list) or [type(bound) for bound in span] != [int, int]:
            return False
        if not last <= span[0] < span[1] <= end:
            return False
        last = span[1]
    return True
