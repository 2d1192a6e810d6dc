"""The first searches for containment in a process: by arrays, since loading compiled loops takes longer than they would save (`pexeso.runtime.jit`).

Every set that shares a token is counted, which is exact too.
"""

from __future__ import annotations

import numpy as np

from pexeso.containment.conversion import tokens_needed
from pexeso.overlap.merge import merge_list
from pexeso.overlap.query import OverlapQuery
from pexeso.overlap.topk import Overlaps
from pexeso.parts.token_sets.open import Shard
from pexeso.runtime.jit import loops_pay


def searched_by_arrays(shard: Shard, query: OverlapQuery, threshold: float, hidden: np.ndarray) -> Overlaps | None:
    """Find the sets of a shard that contain enough of a query by counting all lists; None once loops are worth loading.

    Parameters
    ----------
    query
        Prepared for the shard's lists.
    threshold : float
        In (0, 1].
    hidden : int64 (h,)
        Sets that are not to be found.
    """
    if loops_pay(int(query.frequencies.sum())):
        return None
    needed = tokens_needed(query.n_asked, threshold)
    return merge_list(shard.overlap, query, max(shard.overlap.n_sets, 1), exclude=hidden, at_least=needed)
