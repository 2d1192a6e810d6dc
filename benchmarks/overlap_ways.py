"""The ways to answer an overlap query that the benchmark measures, with one interface.

Each takes a query's token numbers and returns (id, overlap) pairs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.overlap_published import probe_set, published_josie
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.josie import josie
from pexeso.sets.overlap.merge import merge_list
from pexeso.sets.overlap.planner import Planner
from pexeso.sets.overlap.query import query_of_tokens
from pexeso.sets.overlap.topk import Overlaps

Way = Callable[[np.ndarray, int, int], Overlaps]
"""From token numbers, the set not to be found, and k."""


def ways_of(index: OverlapIndex, planner: Planner, *, slow: bool) -> dict[str, Way]:
    """Return our own ways over an index; MergeList is the first."""

    def of(search: Callable[..., Overlaps]) -> Way:
        return lambda tokens, own_set, k: search(
            index, query_of_tokens(index, tokens), k, exclude=[own_set]
        )

    ways = {"MergeList": of(merge_list), "JOSIE": of(josie), "planner": of(planner.search)}
    return ways | (
        {"JOSIE, published": of(published_josie), "ProbeSet": of(probe_set)} if slow else {}
    )


def brute_force(index: OverlapIndex, tokens: np.ndarray, own: int, k: int) -> list[tuple[int, int]]:
    """Count the tokens of every set: the k best (id, overlap), equal overlaps by id. O(pairs)."""
    in_query = np.zeros(index.n_tokens, np.int8)
    in_query[tokens] = 1
    overlaps = np.add.reduceat(in_query[index.set_tokens], index.set_offsets[:-1], dtype=np.int64)
    overlaps[own] = 0
    best = np.argsort(-overlaps, kind="stable")[:k]
    return [(int(index.ids[row]), int(overlaps[row])) for row in best if overlaps[row]]


def set_similarity_search(
    index: OverlapIndex,
) -> Callable[[np.ndarray, int], list[tuple[int, float]]]:
    """Build SetSimilaritySearch over the same sets, and return its search function.

    The function takes token numbers and the least overlap wanted.

    It finds sets by threshold, not the best k: it is told the k-th overlap, which a search for the
    best k has to find out.
    """
    from SetSimilaritySearch import SearchIndex

    sets = [
        part.tolist()
        for part in np.split(np.asarray(index.set_tokens), np.asarray(index.set_offsets)[1:-1])
    ]
    search_index = SearchIndex(sets, similarity_func_name="containment", similarity_threshold=0.5)

    def search(tokens: np.ndarray, at_least: int) -> list[tuple[int, float]]:
        # Its index is the same for all thresholds of containment. A little less, as its thresholds
        # are rounded down.
        search_index.similarity_threshold = (at_least - 1e-6) / len(tokens)
        return search_index.query(tokens.tolist())

    return search
