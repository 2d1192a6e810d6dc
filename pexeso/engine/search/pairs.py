"""The value pairs behind an answer, with their distances.

These are all pairs that match between a query column and some columns of a partition.
"""

from __future__ import annotations

import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.building.building import check_vectors
from pexeso.engine.fetching import fetch_columns
from pexeso.engine.layout.partition import Partition
from pexeso.engine.oracle import oracle_pairs
from pexeso.engine.stats import SearchStats


def column_pairs(
    partition: Partition,
    vectors: torch.Tensor,
    columns: torch.Tensor,
    max_distance: float,
    stats: SearchStats,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Find all matching value pairs of some columns, by brute force over their values.

    Parameters
    ----------
    vectors : float32 (n, d)
        The distinct query values.
    columns : int64 (r,)
        Column numbers in the partition.

    Returns
    -------
    column : int64 (p,)
        Position in `columns`.
    query : int64 (p,)
        Row of `vectors`.
    posting : int64 (p,)
        Position in ``partition.column_values.members``: the value as it stands in that column.
    distance : float64 (p,)
        As a fraction of the largest distance. Ordered by column, query, distance, posting.
    """
    check_vectors(vectors.cpu().numpy())
    columns = columns.to(partition.device)
    csr = partition.column_values
    owner, posting = expand_ranges(csr.offsets[columns], csr.sizes_of(columns))
    values, position = torch.unique(csr.members[posting].long(), return_inverse=True)
    fetch_columns(partition, values)
    tau = partition.metric.threshold(max_distance, partition.dimensions)
    query, value, distance = oracle_pairs(
        vectors.to(partition.device), partition.vectors[values], tau, partition.metric
    )
    stats.distances += len(vectors) * len(values)
    # Each found (query, value) pair belongs to every chosen column that holds the value.
    by_value = torch.argsort(position, stable=True)
    sizes = torch.bincount(position, minlength=len(values))
    starts = torch.cumsum(sizes, 0) - sizes
    pair, member = expand_ranges(starts[value], sizes[value])
    which = by_value[member]
    column, query, posting, distance = owner[which], query[pair], posting[which], distance[pair]
    fraction = partition.metric.fraction(distance, partition.dimensions)
    order = _lexical_order(column, query, fraction, posting)
    return column[order].cpu(), query[order].cpu(), posting[order].cpu(), fraction[order].cpu()


def _lexical_order(*keys: torch.Tensor) -> torch.Tensor:
    """Return the order by the first key, ties by the second, and so on."""
    order = torch.arange(len(keys[0]), device=keys[0].device)
    for key in reversed(keys):
        order = order[torch.argsort(key[order], stable=True)]
    return order
