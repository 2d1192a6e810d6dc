"""The k best sets so far, and answers made of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.sets.overlap.index.reading import Reads


def require_k(k: int) -> None:
    """Refuse what is no number of results."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(
            f"k, the number of columns wanted, must be an integer from 1 on. Got {k!r}."
        )


def require_at_least(at_least: int) -> None:
    """Refuse what is no overlap to begin with."""
    if isinstance(at_least, bool) or not isinstance(at_least, int | np.integer) or at_least < 1:
        raise InputError(
            "at_least, the smallest overlap wanted, must be an integer from 1 on. Got "
            f"{at_least!r}."
        )


@dataclass(frozen=True)
class Overlaps:
    """The answer to a query: sets by overlap, the largest first, equal overlaps by id.

    Attributes
    ----------
    ids, overlaps : int64 (r,)
        At most k sets; fewer where fewer share a token with the query.
    n_asked : int
        Distinct tokens of the query.
    reads : Reads
        What was read for it.
    """

    ids: np.ndarray
    overlaps: np.ndarray
    n_asked: int
    reads: Reads

    @property
    def containment(self) -> np.ndarray:
        """Return the share of the query's distinct tokens that each set holds: float64 (r,).

        Tokens that are not in the lake count too.
        """
        return self.overlaps / max(self.n_asked, 1)

    def pairs(self) -> list[tuple[int, int]]:
        """Return (id, overlap) of each set."""
        return list(zip(self.ids.tolist(), self.overlaps.tolist(), strict=True))


class TopK:
    """The k best sets whose overlaps are known."""

    def __init__(self, k: int, at_least: int = 1) -> None:
        require_k(k)
        require_at_least(at_least)
        self.k, self.at_least = k, at_least
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def full(self) -> bool:
        """Whether k sets are known."""
        return len(self._heap) == self.k

    @property
    def threshold(self) -> int:
        """Return the k-th best overlap (t_k), or `at_least` - 1 while fewer are known.

        The latter is 0 by default.
        """
        return self._heap[0][0] if self.full else self.at_least - 1

    @property
    def last_id(self) -> int | None:
        """The id of the set in the k-th place; None while there is none."""
        return -self._heap[0][1] if self.full else None

    def prefix(self, n: int) -> int:
        """Return how many of n query tokens to account for before no unseen set can enter (J1)."""
        # While fewer than k sets are known, whichever exceeds the threshold is taken: no id
        # decides.
        return prefix_length(n, self.threshold + (not self.full))

    def takes(self, bounds: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return which sets with these overlap bounds, int64 (w,), can still enter: bool (w,)."""
        return qualifies(bounds, ids, self.threshold, self.last_id)

    def push(self, overlap: int, set_id: int) -> None:
        """Take a set in, if it is among the best."""
        entry = (overlap, -set_id)
        if overlap < self.at_least:
            return
        if not self.full:
            heapq.heappush(self._heap, entry)
        elif entry > self._heap[0]:
            heapq.heapreplace(self._heap, entry)

    def push_all(self, overlaps: np.ndarray, ids: np.ndarray) -> None:
        """Take many sets in, int64 (w,) each; the best k of them are sorted out first."""
        best = np.lexsort((ids, -overlaps))[: self.k]
        for overlap, set_id in zip(overlaps[best].tolist(), ids[best].tolist(), strict=True):
            self.push(overlap, set_id)

    def sorted(self) -> list[tuple[int, int]]:
        """Return (id, overlap), the best first."""
        return [(-negative, overlap) for overlap, negative in sorted(self._heap, reverse=True)]

    def answer(
        self, n_asked: int, reads: Reads, ids_of: Callable[[np.ndarray], np.ndarray]
    ) -> Overlaps:
        """Create the answer from set numbers, which ascend as their ids do."""
        pairs = np.array(self.sorted(), dtype=np.int64).reshape(-1, 2)
        return Overlaps(ids_of(pairs[:, 0]).astype(np.int64), pairs[:, 1], n_asked, reads)


def prefix_length(n: int, threshold: int) -> int:
    """Return the number of query tokens to account for before unseen sets cannot enter (J1)."""
    return max(0, min(n, n - threshold + 1))


def upper_bound(
    count: np.ndarray, n: int, accounted: int, size: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Compute upper bounds of the overlaps of candidates (J2).

    The bound uses what is left of the query and of the set behind the latest match.

    Parameters
    ----------
    count : int64 (w,)
        Matches among the first `accounted` query tokens.
    size, end : int64 (w,)
        Tokens of the set, and those up to the latest match (j).
    """
    return count + np.minimum(n - accounted, size - end)


def qualifies(
    bound: np.ndarray, ids: np.ndarray, threshold: int, last_id: int | None
) -> np.ndarray:
    """Return which candidates can still enter the answer.

    Parameters
    ----------
    bound, ids : int64 (w,)
    """
    if last_id is None:
        return bound > threshold
    return (bound > threshold) | ((bound == threshold) & (ids < last_id))
