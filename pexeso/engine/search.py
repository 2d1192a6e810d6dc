"""Threshold and top-k search over one partition, and the value pairs behind an answer."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.blocking import Blocks, block, block_by_boxes, query_grid
from pexeso.engine.lemmas import ALL_LEMMAS, Lemma
from pexeso.engine.maps import slack
from pexeso.engine.oracle import oracle_counts, oracle_pairs
from pexeso.engine.partition import Partition, check_vectors
from pexeso.engine.stats import SearchStats
from pexeso.engine.verification import Query, Threshold, Verifier

BLOCK_PAIRS = 1 << 24
"""Most (query value, leaf) pairs that one round of blocking may give; a longer query is cut."""

_DECIMALS = 10**9


@dataclass(frozen=True)
class Goal:
    """What is searched for.

    Attributes
    ----------
    max_distance : float
        In [0, 1], inclusive; a fraction of the metric's largest distance (the paper's tau as a ratio).
    min_count : int
        Matches a column needs, at least 1.
    k : int or None
        Keep only the k columns of highest count.
    decide : bool
        Counts may be lower bounds (the paper's early acceptance). With `k` counts are always exact.
    lemmas : frozenset of Lemma
    """

    max_distance: float
    min_count: int = 1
    k: int | None = None
    decide: bool = False
    lemmas: frozenset[Lemma] = ALL_LEMMAS


def count_needed(min_joinability: float, total: int) -> int:
    """Give the smallest count c with c / total >= min_joinability, free of float surprises; at least 1.

    Thresholds are taken to nine decimals: ``c * 10**9 >= round(T * 10**9) * |Q|``.

    Examples
    --------
    >>> count_needed(0.6, 5), count_needed(0.2, 3), count_needed(1.0, 7)
    (3, 1, 7)
    """
    scaled = round(min_joinability * _DECIMALS) * total
    return max(1, -(-scaled // _DECIMALS))


def prepare_query(partition: Partition, vectors: torch.Tensor, weights: torch.Tensor, total: int) -> Query:
    """Map the distinct query vectors, float32 (n, d), into the partition's space; zero vectors drop out.

    Raises
    ------
    InputError
        When a vector is not finite or neither zero nor of unit length: in the boxes of the query's grid
        one such row would spoil the answer for others.
    """
    real = check_vectors(vectors.numpy(force=True))
    taken = vectors[real.to(vectors.device)].to(partition.device)
    return Query(taken, partition.map.map(taken), weights[real.to(weights.device)].to(partition.device), total)


def search_partition(
    partition: Partition,
    vectors: torch.Tensor,
    weights: torch.Tensor,
    total: int,
    goal: Goal,
    stats: SearchStats,
    left_out: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the joinable columns of one partition.

    Parameters
    ----------
    partition : Partition
    vectors : float32 (n, d)
        The distinct query values; zero vectors match nothing.
    weights : int64 (n,)
        How often each occurs.
    total : int
        |Q|, at least ``weights.sum()``.
    goal : Goal
    stats : SearchStats
        Counters and seconds are added to it.
    left_out : bool (C,), optional
        Columns that must not be found.

    Returns
    -------
    columns : int64 (r,)
        Column numbers in the partition, ascending.
    counts : int64 (r,)
        Matching query rows per column, exact unless ``goal.decide``. With ``goal.k`` all columns that tie with the k-th are given:
        ranking over partitions is the caller's.
    """
    started = time.perf_counter()
    query = prepare_query(partition, vectors, weights, total)
    stats.partitions += 1
    limit = Threshold(
        partition.metric.threshold(goal.max_distance, partition.dimensions),
        slack(query.mapped, partition.extent + partition.origin),
    )
    stats.add_seconds("map", time.perf_counter() - started)
    needed = _rising(goal)
    verifier = Verifier(partition, query, limit, goal.lemmas, stats, needed, goal.decide and goal.k is None, left_out)
    if len(query) and partition.n_values:
        _verify_all(partition, query, limit, goal.lemmas, stats, verifier)
    columns = torch.nonzero(verifier.alive & (verifier.matched >= needed(verifier.matched)))[:, 0]
    return columns.cpu(), verifier.matched[columns].cpu()


def _verify_all(
    partition: Partition,
    query: Query,
    limit: Threshold,
    lemmas: frozenset[Lemma],
    stats: SearchStats,
    verifier: Verifier,
) -> None:
    """Block and verify, a bounded number of query values at a time."""
    at_once = max(1, BLOCK_PAIRS // max(1, len(partition.grid.leaves)))
    for members in torch.split(torch.arange(len(query), device=partition.device), at_once):
        part = query.take(members)
        started = time.perf_counter()
        blocks = _block(partition, part, limit, lemmas, stats)
        stats.matching_pairs += len(blocks.matching_leaf)
        stats.candidate_pairs += len(blocks.candidate_leaf)
        blocked = time.perf_counter()
        verifier.add(part, blocks)
        stats.add_seconds("block", blocked - started)
        stats.add_seconds("verify", time.perf_counter() - blocked)


def _block(
    partition: Partition, query: Query, limit: Threshold, lemmas: frozenset[Lemma], stats: SearchStats
) -> Blocks:
    if partition.axes is None:
        return block(partition, query_grid(partition, query.mapped), limit.tau, limit.slack, lemmas, stats)
    return block_by_boxes(partition, query.mapped, limit.tau + limit.slack, lemmas, stats)


def _rising(goal: Goal):
    """Give the count a column needs from the counts so far: in top-k mode the k-th largest is a floor that only rises."""

    def needed(matched: torch.Tensor) -> int:
        if goal.k is None or len(matched) < goal.k:
            return goal.min_count
        return max(goal.min_count, int(torch.topk(matched, goal.k).values[-1]))

    return needed


def exact_partition(
    partition: Partition,
    vectors: torch.Tensor,
    weights: torch.Tensor,
    goal: Goal,
    left_out: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do as `search_partition` by brute force: the oracle. With ``goal.k`` the same ties with the k-th are given."""
    tau = partition.metric.threshold(goal.max_distance, partition.dimensions)
    query, value, _ = oracle_pairs(vectors.to(partition.device), partition.vectors, tau, partition.metric)
    counts = oracle_counts(query, value, weights.to(partition.device), partition.column_values, partition.n_values)
    if left_out is not None:
        counts[left_out.to(counts.device)] = 0
    floor = goal.min_count
    if goal.k is not None and len(counts) >= goal.k:
        floor = max(floor, int(torch.sort(counts, descending=True).values[goal.k - 1]))
    columns = torch.nonzero(counts >= floor)[:, 0]
    return columns.cpu(), counts[columns].cpu()


def column_pairs(
    partition: Partition,
    vectors: torch.Tensor,
    columns: torch.Tensor,
    max_distance: float,
    stats: SearchStats,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give all matching value pairs of some columns, by brute force over the values of these columns.

    Parameters
    ----------
    partition : Partition
    vectors : float32 (n, d)
        The distinct query values.
    columns : int64 (r,)
        Column numbers in the partition.
    max_distance : float
    stats : SearchStats

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
    owner, posting = expand_ranges(csr.offsets[columns], csr.sizes[columns])
    values, place = torch.unique(csr.members[posting].long(), return_inverse=True)
    tau = partition.metric.threshold(max_distance, partition.dimensions)
    query, found, distance = oracle_pairs(
        vectors.to(partition.device), partition.vectors[values], tau, partition.metric
    )
    stats.distances += len(vectors) * len(values)
    # Each found (query, value) pair belongs to every chosen column that holds the value.
    by_value = torch.argsort(place, stable=True)
    sizes = torch.bincount(place, minlength=len(values))
    starts = torch.cumsum(sizes, 0) - sizes
    pair, member = expand_ranges(starts[found], sizes[found])
    which = by_value[member]
    column, query, posting, distance = owner[which], query[pair], posting[which], distance[pair]
    fraction = partition.metric.fraction(distance, partition.dimensions)
    order = _lexical_order(column, query, fraction, posting)
    return column[order].cpu(), query[order].cpu(), posting[order].cpu(), fraction[order].cpu()


def _lexical_order(*keys: torch.Tensor) -> torch.Tensor:
    """Give the order by the first key, ties by the second, and so on."""
    order = torch.arange(len(keys[0]), device=keys[0].device)
    for key in reversed(keys):
        order = order[torch.argsort(key[order], stable=True)]
    return order
