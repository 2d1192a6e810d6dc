"""What reading a candidate, or the next posting lists, is expected to cost and to spare (thesis, chapter 3; J4 to J11).

Estimates decide what is read next, never what is found. Costs of the suffix of a set are those of the tokens behind the latest match, |X[j+1:]|,
throughout; the source writes |X[j:]| in one place. Its rate of matches in J7 has the whole remaining query as its denominator, against that of J4: here
both are matches per token accounted for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from pexeso.overlap.costs import ReadCosts
from pexeso.overlap.filters import prefix_length

_SIZES, _SOME_LISTS, _TABLE_BITS = 24, 64, 12


class CandidateColumns(Protocol):
    """Candidates as columns, int64 (w,) each; see `pexeso.overlap.candidates.Candidates`."""

    size: np.ndarray
    count: np.ndarray
    first: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def estimated_overlap(candidates: CandidateColumns, n: int, accounted: int, bound: np.ndarray) -> np.ndarray:
    """Estimate overlaps, as if matches went on at the rate since the first (J4), and no higher than the bound.

    Parameters
    ----------
    candidates : w of them
    n, accounted : int
        Query tokens, and those accounted for (i).
    bound : int64 (w,)

    Returns
    -------
    int64 (w,)
    """
    seen, whole = accounted - candidates.first + 1, n - candidates.first + 1
    return np.minimum(candidates.count * whole // seen, bound)


def expected_matches(rest: np.ndarray, frequencies: np.ndarray, weights: np.ndarray, n_pairs: int) -> np.ndarray:
    """Say how many of some query tokens a set has by chance, from how often these are held and how much of the set is left.

    Parameters
    ----------
    rest : int64 (w,)
        Tokens of each set that may be among them.
    frequencies, weights : int64 (m,)
        The length of each posting list, and the query tokens that it stands for.
    n_pairs : int
        Entries of all posting lists that the rest of a set may be in.

    Returns
    -------
    float64 (w,)

    Notes
    -----
    A set of which z tokens are left holds one with f entries with probability 1 - exp(-z f / n_pairs), as though they were drawn one by one. Computed for
    `_SIZES` sizes and at most `_SOME_LISTS` lists, and interpolated: O(w).

    Examples
    --------
    >>> expected_matches(np.array([0, 10, 1000]), np.array([5, 5]), np.array([1, 2]), 100).round(2).tolist()
    [0.0, 1.18, 3.0]
    """
    if not len(rest) or not len(frequencies):
        return np.zeros(len(rest))
    if len(frequencies) > _SOME_LISTS:
        # Lists ascend in length: of so many neighbours one stands for all.
        edges = np.linspace(0, len(frequencies), _SOME_LISTS + 1).astype(np.int64)
        frequencies, weights = frequencies[(edges[:-1] + edges[1:]) // 2], np.add.reduceat(weights, edges[:-1])
    largest = int(rest.max())
    shift = max(0, largest.bit_length() - _TABLE_BITS)
    sizes = _sizes_up_to(largest)
    held = -np.expm1(-np.outer(sizes, frequencies / max(n_pairs, 1))) @ weights
    table = np.interp(np.arange((largest >> shift) + 1) << shift, np.append(0, sizes), np.append(0.0, held))
    return table[rest >> shift]


@lru_cache(maxsize=1024)
def _sizes_up_to(largest: int) -> np.ndarray:
    # Kept, since a search asks for the same few again and again, and making them takes longer than the rest of an estimate.
    sizes = np.unique(np.geomspace(1, max(largest, 2), _SIZES).astype(np.int64))
    sizes.flags.writeable = False
    return sizes


def rate_since_first(candidates: CandidateColumns, accounted: int) -> np.ndarray:
    """Give matches per query token since the first, which is not counted: a set is no candidate without it.

    Parameters
    ----------
    candidates : w of them
    accounted : int
        Query tokens accounted for (i).

    Returns
    -------
    float64 (w,)
        Two more tokens without a match are taken for granted, so that few say little.
    """
    return (candidates.count - 1) / (accounted - candidates.first + 2)


def threshold_after(estimate: np.ndarray, least_two: Sequence[int], n_known: int, k: int) -> np.ndarray:
    """Give the k-th best overlap once a set with an estimated overlap has been read (J5).

    Parameters
    ----------
    estimate : int64 (w,)
    least_two : sequence of int
        The least two overlaps known (t_k and t_{k-1}), ascending; fewer where fewer are known.
    n_known, k : int
        Overlaps known, and wanted.

    Examples
    --------
    >>> threshold_after(np.array([2, 3, 4, 5, 9]), [3, 5], 3, 3).tolist()
    [3, 3, 4, 5, 5]
    >>> threshold_after(np.array([4]), [3], 1, 1).tolist()
    [4]
    """
    if n_known < k - 1:
        return np.zeros_like(estimate)
    if n_known == k - 1:
        return np.minimum(estimate, least_two[0]) if len(least_two) else estimate
    after = np.maximum(estimate, least_two[0])
    return np.minimum(after, least_two[1]) if k > 1 else after


def net_cost_of_sets(
    rest: np.ndarray,
    bound: np.ndarray,
    after: np.ndarray,
    threshold: int,
    n: int,
    accounted: int,
    list_costs: np.ndarray,
    costs: ReadCosts,
    ties: str,
) -> np.ndarray:
    """Give the cost of reading each candidate less what that spares (J6, J11).

    Reading one may raise the threshold: posting lists then lie behind the prefix, and candidates fall below.

    Parameters
    ----------
    rest, bound : int64 (w,)
        Tokens behind the latest match, and bounds on overlaps.
    after : int64 (w,)
        The threshold after reading each (J5).
    threshold : int
        The threshold now.
    n, accounted : int
    list_costs : float64 (n + 1,)
        Item x: the cost of all posting lists among the first x query tokens.
    costs, ties

    Returns
    -------
    float64 (w,)

    Notes
    -----
    O(w + n): costs are summed by bound, which is n at most, so that those of all candidates below a threshold are one number.
    """
    own = costs.of_sets(rest)
    up_to_bound = np.cumsum(np.bincount(np.maximum(bound, 0), own, n + 1))
    spared_sets = up_to_bound[np.minimum(after, len(up_to_bound) - 1)] - np.where(bound <= after, own, 0.0)
    now = max(prefix_length(n, threshold, ties), accounted)
    then = np.maximum(prefix_length(n, after, ties), accounted)
    spared_lists = np.maximum(list_costs[now] - list_costs[then], 0.0)
    return own - np.where(after > threshold, spared_lists + spared_sets, 0.0)


def expected_after_lists(
    candidates: CandidateColumns, n: int, accounted: int, then: int, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Say where candidates are expected to be once more of the query is accounted for (J7, J8, J9).

    Parameters
    ----------
    candidates : w of them
    n, accounted, then : int
        Query tokens, and those accounted for, now (i) and then (i').
    bound : int64 (w,)
        Bounds now.

    Returns
    -------
    ends, bounds : int64 (w,)
        The number of the set's tokens up to the latest match, and the bound on the overlap.
    """
    step, size, end = then - accounted, candidates.size, candidates.end
    more = candidates.count * step // (accounted - candidates.first + 1)
    ends = np.minimum(end + step * (size - candidates.begin + 1) // (n - candidates.first + 1), size)
    return ends, np.minimum(bound, candidates.count + more + np.minimum(n - then, size - ends))


def benefit_of_lists(
    rest: np.ndarray, rest_then: np.ndarray, bound_then: np.ndarray, threshold: int, costs: ReadCosts
) -> float:
    """Give what reading the next posting lists spares (J10): candidates that fall below the threshold, and shorter suffixes of the others.

    Parameters
    ----------
    rest, rest_then : int64 (w,)
        Tokens of each candidate behind its latest match, now and then.
    bound_then : int64 (w,)
    threshold : int
    costs
    """
    kept = np.where(bound_then <= threshold, 0.0, costs.of_sets(rest_then))
    return float((costs.of_sets(rest) - kept).sum())
