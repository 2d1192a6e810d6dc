"""MergeList: read every posting list of the query, count, sort (thesis, chapter 3).

Exact, and its cost does not hang on k nor on what is found. Where the index lies in memory,
counting is hard to beat.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pexeso.runtime.jit import loops_pay
from pexeso.sets.overlap.costs import MAPPED, ReadCosts
from pexeso.sets.overlap.index.reading import Reads, excluded_numbers
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.query import OverlapQuery, Values, as_query
from pexeso.sets.overlap.topk import Overlaps, require_at_least, require_k

MEMBER_BYTES = 4
DENSE = 64
"""Counting into one place for each set of the index beats sorting where it has at most so many sets
for each entry read."""


def merge_list(
    index: OverlapIndex,
    values: Values | OverlapQuery,
    k: int,
    *,
    costs: ReadCosts = MAPPED,
    exclude: Collection[int] = (),
    at_least: int = 1,
) -> Overlaps:
    """Find the k sets that share most tokens with a query, ties by id.

    Parameters and errors are those of `pexeso.sets.overlap.josie.josie`.

    Notes
    -----
    Time and memory linear in the entries read, times their logarithm where they are few.
    """
    require_k(k)
    require_at_least(at_least)
    query = as_query(index, values)
    reads = Reads()
    index.begin_search()
    if not query.n_blocks:
        return Overlaps(np.empty(0, np.int64), np.empty(0, np.int64), query.n_asked, reads)
    lists, entries = query.tokens[query.ends - 1], int(query.frequencies.sum())
    reads.add_lists(
        len(lists), entries, MEMBER_BYTES * entries, float(costs.of_lists(query.frequencies).sum())
    )
    excluded = excluded_numbers(index, exclude)
    if isinstance(index, OverlapIndex) and loops_pay(entries):
        from pexeso.sets.overlap.loops import best_by_lists

        weights = query.ends - query.starts + 1
        numbers, overlaps = best_by_lists(
            index.list_sets, index.list_runs(lists), weights, index.n_sets, k, at_least, excluded
        )
    else:
        sets, lengths = index.posting_sets(lists)
        hits, counts = _counted(sets, lengths, query.ends - query.starts, index.n_sets, excluded)
        numbers, overlaps = _best_by_number(hits, counts, k, at_least)
    return Overlaps(index.ids_of(numbers).astype(np.int64), overlaps, query.n_asked, reads)


def _counted(
    sets: np.ndarray, lengths: np.ndarray, more: np.ndarray, n_sets: int, excluded: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Count the occurrences of each set, and return the sets with a count and the counts.

    Entries of lists that stand for several tokens count `more` additional times.
    """
    rows, again = _entries_of_several(lengths, more)
    if n_sets <= DENSE * len(sets):
        counts = np.bincount(sets, minlength=n_sets)
        if len(rows):
            np.add.at(counts, sets[rows], again)
        counts[excluded] = 0
        hits = np.flatnonzero(counts)
        return hits, counts[hits]
    hits, positions = np.unique(sets, return_inverse=True)
    counts = np.bincount(positions)
    np.add.at(counts, positions[rows], again)
    mask = ~np.isin(hits, excluded)
    return hits[mask], counts[mask]


def _entries_of_several(lengths: np.ndarray, more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of lists for several tokens, and their additional counts."""
    heavy = np.flatnonzero(more)
    if not len(heavy):
        return heavy, heavy
    begins, counts = (np.cumsum(lengths) - lengths)[heavy], lengths[heavy]
    rows = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return rows, np.repeat(more[heavy], counts)


def _best_by_number(
    hits: np.ndarray, overlaps: np.ndarray, k: int, at_least: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers and overlaps of the best k sets.

    The threshold is found by a count of counts, which are small.
    """
    by_overlap = (
        np.cumsum(np.bincount(overlaps)[::-1])[::-1] if len(overlaps) else np.zeros(1, np.int64)
    )
    border = max(int(np.searchsorted(-by_overlap, -k, side="right")) - 1, at_least)
    mask = overlaps >= border
    numbers, overlaps = hits[mask], overlaps[mask]
    order = np.lexsort((numbers, -overlaps))[:k]
    return numbers[order], overlaps[order]
