"""Brute force in float64: what the right answer is.

Every query value is compared with every stored value in float64, the defining distance decides, and
columns are counted from the plain definition. It shares the distance with the fast search and
nothing else: no grid, no pivots, no postings by cell. It is the public ``exact=True`` path and the
judge in every test.
"""

from __future__ import annotations

import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.metrics import Metric
from pexeso.engine.postings import Csr

MARGIN = 2.0**-16
"""Float64 products give distances of unit vectors to within ``2**-18.2`` (see
`pexeso.engine.layout.maps.slack`): what they put beyond tau by this much is no match. The defining
distance decides everything else."""

_PAIRS_AT_ONCE = 1 << 22

_ELEMENTS_AT_ONCE = {"cpu": 1 << 17, "cuda": 1 << 24}
"""Entries of vectors that are set side by side at a time, in float64: with what their sums take few
enough for a core's cache; on a device, many a launch."""


def oracle_pairs(
    query_vectors: torch.Tensor, vectors: torch.Tensor, tau: float, metric: Metric
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return every pair within tau and its distance.

    Parameters
    ----------
    query_vectors : float32 (n, d)
    vectors : float32 (N, d)

    Returns
    -------
    query, value : int64 (p,)
    distance : float64 (p,)
        Ordered by query, then value. Zero vectors match nothing.
    """
    real_query = (query_vectors != 0).any(1)
    real_value = (vectors != 0).any(1)
    queries = query_vectors.double()
    rows = max(1, _PAIRS_AT_ONCE // max(1, len(queries)))
    chunk_size = max(
        1,
        _ELEMENTS_AT_ONCE["cpu" if vectors.device.type == "cpu" else "cuda"]
        // max(1, vectors.shape[1]),
    )
    triples = []
    for begin in range(0, len(vectors), rows):
        part = vectors[begin : begin + rows]
        near = metric.quick_distances(queries, part.double()) <= tau + MARGIN  # (n, rows)
        query, value = torch.nonzero(
            near & real_query[:, None] & real_value[None, begin : begin + rows], as_tuple=True
        )
        pieces = zip(query.split(chunk_size), value.split(chunk_size), strict=True)
        distance = torch.cat(
            [metric.distances(query_vectors[ours], part[lake_rows]) for ours, lake_rows in pieces]
        )
        match = distance <= tau
        triples.append((query[match], value[match] + begin, distance[match]))
    if not triples:
        nothing = torch.zeros(0, dtype=torch.int64, device=vectors.device)
        return nothing, nothing, nothing.double()
    if len(triples) == 1:
        return triples[0]
    query, value, distance = (torch.cat(part) for part in zip(*triples, strict=True))
    order = torch.argsort(query, stable=True)
    return query[order], value[order], distance[order]


def oracle_counts(
    query: torch.Tensor,
    value: torch.Tensor,
    weights: torch.Tensor,
    column_values: Csr,
    n_values: int,
) -> torch.Tensor:
    """Sum, for each column, the weight of the query values with a match in it.

    The counts are made from matching pairs, by the definition.

    Parameters
    ----------
    query, value : int64 (p,)
        Matching pairs, ordered by query.
    weights : int64 (n,)
    n_values : int
        N.

    Returns
    -------
    int64 (C,)
    """
    owner, position = expand_ranges(column_values.offsets[:-1], column_values.sizes)
    members = column_values.members[position].long()
    counts = torch.zeros(len(column_values), dtype=torch.int64, device=weights.device)
    for number in torch.unique(query).tolist():
        hit = torch.zeros(n_values, dtype=torch.bool, device=weights.device)
        hit[value[query == number]] = True
        columns = torch.unique(owner[hit[members]])
        counts[columns] += weights[number]
    return counts
