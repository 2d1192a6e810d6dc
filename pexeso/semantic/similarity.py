"""The similarity of two columns: how near the values of one are to the other, on average.

Each distinct value of the query column counts by its nearest value in the other column: 1 at
distance 0, and less by the square of the distance, down to 0 from `REACH` times the usual distance
of the model on. Where the distance is that of unit vectors, this is linear in their cosine. The
similarity is the mean. A column that holds half of the values differs in it from one that has
something a little like all of them, as it does not in a count at one distance; the similarity does
not depend on the thresholds of the search.

Nothing is learned; benchmarks/NOTES.md says how it compares with other measures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from pexeso.engine.stats import SearchStats
from pexeso.results.query import Hit
from pexeso.runtime.progress import advance, begin_steps
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.partition_loader import PartitionLoader

MAX_HITS = 200
"""Columns found whose similarity is computed."""

REACH = 1.25
"""The distance of values that are not alike at all, as a multiple of the usual one."""

CHUNK_SIZE = 1 << 22
"""Pairs of a query value and a value of a column, or of a query value and a column, that are held
at a time, or those of one column: 0.2 GiB where all are near."""

DECIMALS = 9
"""Processors differ in the last bits of a mean; similarities do not."""


def by_similarity(
    scan: PartitionLoader,
    query: EncodedQuery,
    hits: Sequence[Hit],
    usual_distance: float,
    stats: SearchStats,
) -> tuple[list[Hit], list[float | None]]:
    """Order found columns by similarity to two digits; None for those not looked at."""
    started = time.perf_counter()
    probed, others = list(hits[:MAX_HITS]), list(hits[MAX_HITS:])
    new = [hit for hit in probed if hit.column_id not in query.similarities]
    if new:
        computed = similarities(scan, query, new, usual_distance, stats).tolist()
        query.similarities.update(zip([hit.column_id for hit in new], computed, strict=True))
    scores = np.array([query.similarities[hit.column_id] for hit in probed])
    # As it is shown: a difference that nobody sees must not turn over the order by joinability.
    order = np.argsort(-scores.round(2), kind="stable")
    stats.add_seconds("rerank", time.perf_counter() - started)
    return [probed[position] for position in order] + others, [
        *scores[order].tolist(),
        *[None] * len(others),
    ]


def similarities(
    scan: PartitionLoader,
    query: EncodedQuery,
    hits: Sequence[Hit],
    usual_distance: float,
    stats: SearchStats,
) -> np.ndarray:
    """Compute the similarity of a query column and each of some columns, float64 (n,), 0 to 1.

    The values of some columns at a time are compared with those of the query column: as many as
    hold about `CHUNK_SIZE` pairs, or one column.
    """
    reach, n_values = min(REACH * usual_distance, 1.0), len(query.values)
    partitions = np.array([hit.partition for hit in hits], np.int64)
    positions = np.array([hit.position for hit in hits], np.int64)
    scores, n_compared = np.zeros(len(hits)), 0
    parts = [np.flatnonzero(partitions == number) for number in np.unique(partitions)]
    numbers = [int(partitions[part[0]]) for part in parts]
    sizes_of_parts = [
        scan.mapped(number).column_lists.sizes(positions[part])
        for number, part in zip(numbers, parts, strict=True)
    ]
    n_pairs = n_values * int(sum([sizes.sum() for sizes in sizes_of_parts]))
    is_long = n_pairs > CHUNK_SIZE
    if is_long:
        begin_steps(n_pairs)
    for number, part, sizes in zip(numbers, parts, sizes_of_parts, strict=True):
        held = sizes * n_values if scan.space.holds_pairs else np.full(len(sizes), n_values)
        cuts = np.flatnonzero(np.diff(np.cumsum(held) // CHUNK_SIZE)) + 1
        for some, of_some in zip(np.split(part, cuts), np.split(sizes, cuts), strict=True):
            columns, n_pairs = positions[some], n_values * int(of_some.sum())
            nearest = scan.compare(
                number,
                n_pairs,
                lambda partition, columns=columns: scan.space.nearest_in_columns(
                    partition, query.vectors, columns, reach, stats
                ),
            )
            scores[some] = (1 - (nearest / reach) ** 2).mean(1)
            n_compared += n_pairs
            if is_long:
                advance(0, to=n_compared)
    return scores.round(DECIMALS)
