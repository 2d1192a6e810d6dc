"""The first searches for containment in a process: by arrays, since loading compiled loops takes longer than they would save.

A command that searches once pays for nothing that it does not use. Every set that shares a token is counted (`pexeso.overlap.merge`), which is exact too.
"""

from __future__ import annotations

import threading

from pexeso.containment.conversion import tokens_needed
from pexeso.equal_text.shards import Shard
from pexeso.overlap.merge import merge_list
from pexeso.overlap.query import OverlapQuery
from pexeso.overlap.topk import Overlaps

WORTH_LOADING = 1 << 26
"""Entries of posting lists, and places to count in, after which a process has spent on arrays about what loading the loops takes."""

_lock = threading.Lock()
_left = WORTH_LOADING


def searched_by_arrays(shard: Shard, query: OverlapQuery, threshold: float, hidden: object) -> Overlaps | None:
    """Find the sets of a shard that contain enough of a query by counting all lists; None once loops are worth loading.

    Parameters
    ----------
    shard
    query
        Prepared for the shard's lists.
    threshold : float
        In (0, 1].
    hidden : int64 array
        Sets that are not to be found.
    """
    global _left
    n_sets = shard.overlap.n_sets
    work = int(query.frequencies.sum()) + n_sets
    with _lock:
        if work > _left:
            _left = 0
            return None
        _left -= work
    needed = tokens_needed(query.n_asked, threshold)
    return merge_list(shard.overlap, query, max(n_sets, 1), exclude=hidden, at_least=needed)
