"""What helps where a semantic search found nothing: columns that came near, and what is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pexeso.lake.left_out.groups import left_out
from pexeso.results.column_matches import MAX_NEAREST, Hints, NearColumn
from pexeso.semantic.executor import search_store

if TYPE_CHECKING:
    from pexeso.options import SearchOptions
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.open_index import OpenIndex

WIDER = ((1.0, 0.0), (1.15, 0.02), (1.3, 0.05), (1.5, 0.1))
"""The distances at which the nearest columns are looked for, until there are some: so many times
what was asked for, or so much more, whichever is larger."""


def semantic_hints(opened: OpenIndex, query: EncodedQuery, options: SearchOptions) -> Hints:
    """Find the columns nearest to being found, and count what the index is without.

    The partitions are searched in this process.
    """
    return Hints(nearest(opened, query, options), left_out(opened.catalog))


def nearest(
    opened: OpenIndex, query: EncodedQuery, options: SearchOptions
) -> tuple[NearColumn, ...]:
    """Find the columns with the highest joinability, within a larger distance where none does.

    Returns
    -------
    tuple of NearColumn
        At most `MAX_NEAREST`, the highest joinability first; none where none matches at the
        largest distance of `WIDER` either.
    """
    total = query.total(options)
    for factor, step in WIDER:
        distance = min(1.0, max(factor * options.max_distance, options.max_distance + step))
        wider_options = replace(
            options, max_distance=distance, min_joinability=None, k=MAX_NEAREST, counts="exact"
        )
        [(hits, _)] = search_store(opened.loader, [query], [wider_options])
        if hits:
            return tuple(
                NearColumn(
                    hit.table or "",
                    hit.label or "",
                    hit.matched / total,
                    hit.matched,
                    total,
                    distance,
                )
                for hit in hits
            )
    return ()
