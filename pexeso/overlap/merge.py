"""MergeList: read every posting list of the query, count, sort (thesis, chapter 3).

Exact, and its cost does not hang on k nor on what is found. Where the index lies in memory, counting is hard to beat.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pexeso.overlap.costs import DISK, ReadCosts
from pexeso.overlap.query import OverlapQuery, Values, as_query
from pexeso.overlap.reading import OverlapSource, Reads, excluded_numbers
from pexeso.overlap.topk import Overlaps, TopK, require_k

MEMBER_BYTES = 4
_DENSE = 8
"""Counting into one place for each set of the index beats sorting where it has at most so many sets for each entry read."""


def merge_list(
    source: OverlapSource,
    values: Values | OverlapQuery,
    k: int,
    *,
    distinct_lists: bool = True,
    costs: ReadCosts = DISK,
    exclude: Collection[int] = (),
) -> Overlaps:
    """Find the k sets that share most tokens with a query, equal ones by id; parameters and errors as for `pexeso.overlap.josie.josie`.

    Notes
    -----
    Time and memory linear in the entries read, times their logarithm where they are few.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.overlap.index import build_index
    >>> index = build_index(np.array([4, 4, 9]), pa.array(["oslo", "rome", "rome"]))
    >>> found = merge_list(index, ["oslo", "rome", "lima"], 5)
    >>> found.pairs(), found.reads.lists
    ([(4, 2), (9, 1)], 2)
    """
    require_k(k)
    query = as_query(source, values, distinct_lists=distinct_lists)
    reads, best = Reads(), TopK(k)
    lists, weights = [], []
    for block, cost in enumerate(costs.of_lists(query.frequencies).tolist()):
        lists.append(source.posting_sets(query.list_of(block)))
        weights.append(np.full(len(lists[-1]), query.weight_of(block)))
        reads.add_list(len(lists[-1]), MEMBER_BYTES * len(lists[-1]), cost)
    if lists:
        sets, overlaps = _counted(np.concatenate(lists), np.concatenate(weights), source.n_sets)
        kept = ~np.isin(sets, excluded_numbers(source, exclude))
        best.push_all(overlaps[kept], source.ids_of(sets[kept]))
    return best.answer(query.n_asked, reads)


def _counted(sets: np.ndarray, weights: np.ndarray, n_sets: int) -> tuple[np.ndarray, np.ndarray]:
    """Add the weights of each set up; float64 sums are exact, as they are below 2**53."""
    if n_sets <= _DENSE * len(sets):
        counts = np.bincount(sets, weights, n_sets)
        found = np.flatnonzero(counts)
        return found, counts[found].astype(np.int64)
    found, places = np.unique(sets, return_inverse=True)
    return found, np.bincount(places, weights).astype(np.int64)
