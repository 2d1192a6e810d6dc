"""ProbeSet: read each candidate as soon as a posting list names it, and stop at the end of the prefix (thesis, chapter 3)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pexeso.overlap.costs import MAPPED, ReadCosts
from pexeso.overlap.filters import require_ties, upper_bound
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
    costs: ReadCosts = MAPPED,
    exclude: Collection[int] = (),
    at_least: int = 1,
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
    n, reads, best = len(query), Reads(), TopK(k, at_least)
    source.begin_search()
    seen = np.zeros(source.n_sets, bool)
    seen[excluded_numbers(source, exclude)] = True
    for block, cost in enumerate(costs.of_lists(query.frequencies).tolist()):
        if query.starts[block] - 1 >= best.prefix(n, ties):
            break
        found, _ = source.posting_lists(query.tokens[query.ends[block : block + 1] - 1])
        weight, end = query.weight_of(block), int(query.ends[block])
        reads.add_lists(1, len(found.sets), ENTRY_BYTES * len(found.sets), cost)
        rows = np.flatnonzero(~seen[found.sets])
        seen[found.sets] = True
        matched, sizes, ranks = found.positions[rows] + 1, found.sizes[rows], source.ranks_of(found.sets[rows])
        bounds = upper_bound(np.full(len(rows), weight), n, end, sizes, matched)
        for place in range(len(rows)):
            one = slice(place, place + 1)
            if not best.takes(bounds[one], ranks[one], ties)[0]:
                continue
            overlap = weight
            if end < n and matched[place] < sizes[place]:
                suffix, lengths = source.suffixes(found.sets[rows[one]], matched[one])
                reads.add_sets(1, len(suffix), suffix.nbytes, float(costs.of_sets(lengths)[0]))
                overlap += int(count_common(suffix, lengths, query.tokens[end:])[0])
            best.push(overlap, int(ranks[place]))
    return best.answer(query.n_asked, reads, source.ids_of_ranks)
