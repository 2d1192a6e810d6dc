"""Division of sets by size into partitions.

It is made so that a filter for the largest set of a partition lets few of the others through that
do not qualify.

With the Jaccard threshold of the largest size u, a set of size x passes wrongly with a probability
of at most ``1 - x / u`` (equation E8), whatever the query and the threshold. The division into n
partitions with the least sum of these is found exactly, by dynamic programming (E9). The recurrence
that the source prints lacks its minimum over the place of the last cut; this is the whole of it,
with K distinct sizes x_1 < ... < x_K::

    F(i, c) = min over k < c of F(i - 1, k) + cost(k + 1, c) cost(a, c) = C_c - C_{a-1} - (W_c -
    W_{a-1}) / x_c C, W: sums over sizes of counts, and of counts times sizes

For one i this is the lower envelope of lines, of slope W_k and intercept F(i - 1, k) - C_k, looked
up at 1 / x_c. Slopes rise and places sink with their index, so one walk over a monotone convex hull
finds all c: O(n K) time instead of O(n K^2), and no matrix of costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.runtime.jit import loop


@dataclass(frozen=True)
class Partitioning:
    """Ranges of set sizes, ascending and disjoint.

    Both ends occur among the sizes and belong to the range.

    Attributes
    ----------
    lower, upper : int64 (n,)
        l and u of each partition.
    cost : float
        Sets that pass wrongly at most: the sum of equation E8.
    """

    lower: np.ndarray
    upper: np.ndarray
    cost: float

    def __len__(self) -> int:
        return len(self.upper)


def optimal_partitions(sizes: np.ndarray, n: int) -> Partitioning:
    """Divide sets into n partitions with the least cost.

    O(K log K + n K) time for K distinct sizes; memory O(K) beside the places of cuts, four bytes
    for each of n K.

    Parameters
    ----------
    sizes : int64 (s,), at least 1 each

    Returns
    -------
    Partitioning
        Of ``min(n, K)`` partitions. Of equally good cuts it takes the smallest, as far as float64
        tells their costs apart.

    Examples
    --------
    >>> found = optimal_partitions(np.array([3] * 4 + [4] * 4 + [99] * 3 + [100] * 3), 2)
    >>> found.lower.tolist(), found.upper.tolist(), round(found.cost, 10)
    ([3, 99], [4, 100], 1.03)
    """
    distinct, counts = _distinct(sizes, n)
    n = min(n, len(distinct))
    before = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    weighted = np.concatenate([[0.0], np.cumsum(counts * distinct.astype(np.float64))])
    cuts = np.zeros((n, len(distinct) + 1), np.int32)
    if n:
        _fill(before, weighted, distinct.astype(np.float64), cuts)
    ends = np.empty(n + 1, np.int64)
    ends[n] = len(distinct)
    for i in range(n - 1, -1, -1):
        ends[i] = cuts[i, ends[i + 1]]
    return _partitioning(distinct, counts, ends)


def equal_partitions(sizes: np.ndarray, n: int) -> Partitioning:
    """Divide sets into at most n partitions with about the same number of sets each.

    Sets of one size stay together.

    Parameters, errors and result are as for `optimal_partitions`, but for the cost, which is no
    less.

    Examples
    --------
    >>> equal_partitions(np.array([1, 2, 3, 4]), 2).upper.tolist()
    [2, 4]
    """
    distinct, counts = _distinct(sizes, n)
    until = np.cumsum(counts)
    targets = until[-1] * np.arange(1, n + 1) / n if len(until) else np.empty(0)
    return _partitioning(
        distinct, counts, np.unique(np.concatenate([[0], np.searchsorted(until, targets) + 1]))
    )


def _distinct(sizes: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    if n < 1:
        raise InputError(f"The number of partitions must be at least 1. Got {n!r}.")
    distinct, counts = np.unique(np.asarray(sizes, np.int64), return_counts=True)
    if len(distinct) and distinct[0] < 1:
        raise InputError(
            f"Sets to be divided must have at least one token. Got a size of {distinct[0]}."
        )
    return distinct, counts


def _partitioning(distinct: np.ndarray, counts: np.ndarray, ends: np.ndarray) -> Partitioning:
    """Return the partitions of sizes ``distinct[ends[i]:ends[i + 1]]``."""
    if not len(distinct):
        return Partitioning(np.empty(0, np.int64), np.empty(0, np.int64), 0.0)
    upper = distinct[ends[1:] - 1]
    largest = np.repeat(upper, np.diff(ends))
    return Partitioning(
        distinct[ends[:-1]], upper, float((counts * (1 - distinct / largest)).sum())
    )


@loop
def _fill(before, weighted, sizes, cuts):
    """Fill ``cuts[i, c]``: where the last of i + 1 partitions of the c smallest sizes begins."""
    n, K = cuts.shape[0], len(sizes)  # noqa: N806
    cost = np.empty(K + 1)
    cost[0] = 0.0
    for c in range(1, K + 1):
        cost[c] = before[c] - weighted[c] / sizes[c - 1]
    hull = np.empty(K + 1, np.int64)
    intercepts = cost - before
    for i in range(1, n):
        first, last = 0, -1
        for c in range(i + 1, K + 1):
            k = c - 1
            # The newest line takes the place of those that it leaves nowhere the least.
            while last > first:
                a, b = hull[last - 1], hull[last]
                rise_ab, rise_ak = weighted[b] - weighted[a], weighted[k] - weighted[a]
                if (intercepts[k] - intercepts[a]) * rise_ab < (
                    intercepts[b] - intercepts[a]
                ) * rise_ak:
                    last -= 1
                else:
                    break
            last += 1
            hull[last] = k
            position = 1.0 / sizes[c - 1]
            while first < last:
                a, b = hull[first], hull[first + 1]
                if intercepts[b] + weighted[b] * position < intercepts[a] + weighted[a] * position:
                    first += 1
                else:
                    break
            k = hull[first]
            cuts[i, c] = k
            cost[c] = before[c] - weighted[c] * position + (intercepts[k] + weighted[k] * position)
        intercepts = cost - before
