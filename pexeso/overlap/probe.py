"""ProbeSet: read each candidate as soon as a posting list names it, and stop at the end of the prefix (thesis, chapter 3)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pexeso.overlap.costs import DISK, ReadCosts
from pexeso.overlap.filters import prefix_length, qualifies, require_ties, upper_bound
from pexeso.overlap.josie import ENTRY_BYTES, count_common
from pexeso.overlap.query import OverlapQuery, Values, as_query
from pexeso.overlap.reading import OverlapSource, Reads, excluded_numbers
from pexeso.overlap.topk import Overlaps, TopK, require_k


def probe_set(
    source: OverlapSource,
    values: Values | OverlapQuery,
    k: int,
    *,
    ties: str = "id",
    distinct_lists: bool = True,
    costs: ReadCosts = DISK,
    exclude: Collection[int] = (),
) -> Overlaps:
    """Find the k sets that share most tokens with a query; parameters and errors as for `pexeso.overlap.josie.josie`.

    Notes
    -----
    Reads no more posting lists than the prefix has, and every set that the position filter does not rule out where it is first met.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.overlap.index import build_index
    >>> index = build_index(np.array([4, 4, 9]), pa.array(["oslo", "rome", "rome"]))
    >>> probe_set(index, ["oslo", "rome", "lima"], 1, ties="any").pairs()
    [(4, 2)]
    """
    require_k(k)
    require_ties(ties)
    query = as_query(source, values, distinct_lists=distinct_lists)
    n, reads, best = len(query), Reads(), TopK(k)
    seen = np.zeros(source.n_sets, bool)
    seen[excluded_numbers(source, exclude)] = True
    for block, cost in enumerate(costs.of_lists(query.frequencies).tolist()):
        if query.starts[block] - 1 >= prefix_length(n, best.threshold, ties):
            break
        found, weight, end = source.posting_list(query.list_of(block)), query.weight_of(block), int(query.ends[block])
        reads.add_list(len(found.sets), ENTRY_BYTES * len(found.sets), cost)
        rows = np.flatnonzero(~seen[found.sets])
        seen[found.sets] = True
        matched, sizes, ids = found.positions[rows] + 1, found.sizes[rows], source.ids_of(found.sets[rows])
        bounds = upper_bound(np.full(len(rows), weight), n, end, sizes, matched)
        for place in range(len(rows)):
            one = slice(place, place + 1)
            if not qualifies(bounds[one], ids[one], best.threshold, best.last_id, ties)[0]:
                continue
            overlap = weight
            if end < n and matched[place] < sizes[place]:
                suffix = source.suffix(int(found.sets[rows[place]]), int(matched[place]))
                reads.add_set(len(suffix), suffix.nbytes, float(costs.of_sets(np.array(len(suffix)))))
                overlap += count_common(suffix, query.tokens[end:])
            best.push(overlap, int(ids[place]))
    return best.answer(query.n_asked, reads)
