"""The filters: which posting lists can still matter, and which candidates (thesis, chapter 3; J1 and J2).

Of sets that tie for the last place those with the smaller ids are found, so that an answer is one list and no other. The source gives whichever it meets.
"""

from __future__ import annotations

import numpy as np


def prefix_length(n: int, threshold: int) -> int:
    """Return how many query tokens must be accounted for before a set that was not seen cannot enter the answer (J1).

    Parameters
    ----------
    n : int
        Query tokens in the lake.
    threshold : int
        The k-th best overlap (t_k), which a set of a smaller id may equal.
    """
    return max(0, min(n, n - threshold + 1))


def upper_bound(count: np.ndarray, n: int, accounted: int, size: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Bound the overlap of candidates by what is left of the query and of the set behind the latest match (J2).

    Parameters
    ----------
    count : int64 (w,)
        Matches among the first `accounted` query tokens.
    n, accounted : int
        Query tokens, and those accounted for (i).
    size, end : int64 (w,)
        Tokens of the set, and those up to the latest match (j).
    """
    return count + np.minimum(n - accounted, size - end)


def qualifies(bound: np.ndarray, ids: np.ndarray, threshold: int, last_id: int | None) -> np.ndarray:
    """Return which candidates can still enter the answer.

    Parameters
    ----------
    bound, ids : int64 (w,)
    threshold : int
        The k-th best overlap.
    last_id : int or None
        The id of the set that has it; None while fewer than k sets are known: what exceeds the threshold qualifies then, whichever its id.
    """
    if last_id is None:
        return bound > threshold
    return (bound > threshold) | ((bound == threshold) & (ids < last_id))
