"""Brute force in float64: what the right answer is.

Every query value is compared with every stored value in float64, the defining distance decides, and
columns are counted from the plain definition. It shares the distance with the fast search and
nothing else: no grid, no pivots, no postings by cell. It is the public ``exact=True`` path and the
judge in every test.
"""

from __future__ import annotations

import torch

from pexeso.engine.arrays import Csr, expand_ranges
from pexeso.engine.metrics import distances, quick_distances

# Float64 products give distances of unit vectors to within ``2**-18.2`` (see
# `pexeso.engine.maps.slack`): what they put beyond tau by this much is no match. The defining
# distance decides everything else.
MARGIN = 2.0**-16

_PAIRS_CHUNK_SIZE = 1 << 22

# Entries of vectors that are compared at a time, in float64: with what their sums take few enough
# for a core's cache; on a device, many a launch.
_CHUNK_SIZES = {"cpu": 1 << 17, "cuda": 1 << 24}


def oracle_pairs(
    query_vectors: torch.Tensor, vectors: torch.Tensor, tau: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return every pair within tau and its distance, by query value, then stored value.

    query_vectors, vectors: float32 (n, d), float32 (N, d), zero vectors match nothing. Returns
    query, value: int64 (p,); distance: float64 (p,).
    """
    real_query, real_value = (query_vectors != 0).any(1), (vectors != 0).any(1)
    queries = query_vectors.double()
    rows = max(1, _PAIRS_CHUNK_SIZE // max(1, len(queries)))
    chunk_size = max(1, _CHUNK_SIZES[vectors.device.type] // max(1, vectors.shape[1]))
    triples = []
    for begin in range(0, len(vectors), rows):
        part = vectors[begin : begin + rows]
        near = quick_distances(queries, part.double()) <= tau + MARGIN  # (n, rows)
        query, value = torch.nonzero(
            near & real_query[:, None] & real_value[None, begin : begin + rows], as_tuple=True
        )
        pieces = zip(query.split(chunk_size), value.split(chunk_size), strict=True)
        distance = torch.cat(
            [distances(query_vectors[ours], part[lake_rows]) for ours, lake_rows in pieces]
        )
        match = distance <= tau
        triples.append((query[match], value[match] + begin, distance[match]))
    if not triples:
        nothing = torch.zeros(0, dtype=torch.int64, device=vectors.device)
        return nothing, nothing, nothing.double()
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
    """Sum, for each column, the weight of the query values with a match in it, int64 (C,).

    `query` and `value` are the matching pairs of `oracle_pairs`.
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
