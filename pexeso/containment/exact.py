"""Tokens that sets share with a query, counted exactly on sorted hashes."""

from __future__ import annotations

import numpy as np

from pexeso.containment.compiling import loop


def overlaps(tokens: np.ndarray, offsets: np.ndarray, rows: np.ndarray, query: np.ndarray, needed: int) -> np.ndarray:
    """Count the query's tokens in each of some sets, as far as it is still open whether they are enough.

    Each query token is looked up by binary search in what is left of the set, and a set is left as soon as too many are missing: at most
    O(q log x) a set, and a few steps for a set that is not like the query.

    Parameters
    ----------
    tokens : uint64 (n,)
        Ascending and distinct within each set.
    offsets : int64 (s + 1,)
        Set i is ``tokens[offsets[i]:offsets[i + 1]]``.
    rows : int64 (c,)
        The sets to look at.
    query : uint64 (q,)
        Ascending and distinct.
    needed : int
        At least 1.

    Returns
    -------
    int64 (c,)
        The number of tokens in common, or -1 where it is less than `needed`.

    Examples
    --------
    >>> sets, offsets = np.array([2, 5, 9, 5], np.uint64), np.array([0, 3, 4])
    >>> overlaps(sets, offsets, np.array([0, 1]), np.array([5, 9], np.uint64), needed=2)
    array([ 2, -1])
    """
    counts = np.empty(len(rows), np.int64)
    _count(tokens, offsets, rows, query, needed, counts)
    return counts


@loop
def _count(tokens, offsets, rows, query, needed, counts):
    for i in range(len(rows)):
        low, end = offsets[rows[i]], offsets[rows[i] + 1]
        may_miss = len(query) - needed
        count = 0 if may_miss >= 0 else -1
        for j in range(len(query) if may_miss >= 0 else 0):
            token = query[j]
            # Doubling steps first: the next token is near where sets are small or much alike.
            step, high = 1, low
            while high < end and tokens[high] < token:
                low = high + 1
                high += step
                step *= 2
            high = min(high, end)
            while low < high:
                middle = (low + high) >> 1
                if tokens[middle] < token:
                    low = middle + 1
                else:
                    high = middle
            if low < end and tokens[low] == token:
                count += 1
                low += 1
            else:
                may_miss -= 1
                if may_miss < 0:
                    count = -1
                    break
        counts[i] = count
