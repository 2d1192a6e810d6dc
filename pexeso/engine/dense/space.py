"""The space of dense vectors, searched by maps, cells and kernels."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from pexeso.engine.arrays import few_threads
from pexeso.engine.dense.oracle import oracle_pairs
from pexeso.engine.dense.prefixes import PartitionProbe, UnmappedQuery, look, threshold_of
from pexeso.engine.dense.search import (
    exact_partition,
    search_batch_partition,
    search_partition,
    walking_order,
)
from pexeso.engine.kernel import Kernel
from pexeso.engine.kernels import compiled
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.metrics import distances, quick_distances
from pexeso.engine.options import Metric, PartitionLayoutOptions
from pexeso.engine.partition import Pages, Partition, fetch_cells, fetch_columns, require_plausible
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import BatchColumn, ColumnCounts, Goal, VectorSpace, best_columns

# Vectors are compared as whole numbers of steps. For vectors of unit length each product of two,
# and each part of the sum that makes it up, is a whole number below ``2**49``, which float64 holds
# exactly: no order of summing, and no fused step, changes a bit of it.
STEPS_OF_ONE = 1 << 24

# What the search for nearest values compares at a time: 32 MiB of distances.
QUERY_CHUNK_SIZE, LAKE_CHUNK_SIZE = 1 << 9, 1 << 13

# Query columns of a batch that programs on a device search for one after the other: a pass over the
# partition for all of them costs the host as much as so many searches.
MOST_ALONE = 12


@dataclass(frozen=True)
class DenseSpace(VectorSpace):
    options: PartitionLayoutOptions
    has_kernels: ClassVar[bool] = True
    holds_pairs: ClassVar[bool] = True

    @cached_property
    def metric(self) -> Metric:
        return Metric(self.options.metric)

    def concatenate(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.cat(list(parts)) if parts else torch.zeros((0, 1))

    def comparable(self, vectors: torch.Tensor) -> torch.Tensor:
        return in_steps(vectors)

    def distances(self, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
        """Return all distances of two sets of vectors, each entry rounded to a step.

        Up to the root all is whole numbers below ``2**51``, and roots are rounded once as IEEE 754
        says. An angle is the arc sine of half the chord, of which libraries may give the last bit
        of float64 in their own way; rounded to float32 that is gone, but for one in many millions.
        """
        left, right = in_steps(left), in_steps(right)
        squares = (left * left).sum(1)[:, None] + (right * right).sum(1) - 2 * (left @ right.T)
        apart = torch.from_numpy(np.sqrt(squares.numpy()) / STEPS_OF_ONE)
        return self.metric.fraction(apart).numpy().astype(np.float32)

    def pair_distances(self, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
        return self.metric.fraction(distances(left, right)).numpy(force=True)

    def stored(self, partition: Partition, rows: np.ndarray) -> torch.Tensor:
        return partition.vectors_of(torch.from_numpy(rows).to(partition.device)).cpu()

    def open(
        self,
        arrays: Mapping[str, np.ndarray],
        device: torch.device | str = "cpu",
        pages: Pages | None = None,
    ) -> Partition:
        return Partition.from_arrays(arrays, self.options, device, pages=pages)

    def require_plausible(self, partition: Partition, where: str, *, rows: bool) -> None:
        require_plausible(partition, where, rows=rows)

    def probe(
        self,
        partition: Partition,
        vectors: torch.Tensor,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        kernel: Kernel,
        stats: SearchStats,
    ) -> PartitionProbe:
        threshold = threshold_of(partition, goal.max_distance, goal.lemmas)
        rows = torch.from_numpy(weights)
        with few_threads():
            return look(partition, vectors, rows, total, threshold, kernel, stats)

    def prefetch(
        self, partition: Partition, probe: PartitionProbe, goal: Goal, kernel: Kernel,
        stats: SearchStats,
    ) -> None:  # fmt: skip
        with few_threads():
            query, sizes = walking_order(probe, goal, kernel, stats)
            fetch_cells(query.take(slice(0, sizes[0])), kernel)

    def search(
        self,
        partition: Partition,
        vectors: torch.Tensor,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        stats: SearchStats,
        left_out: np.ndarray | None = None,
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
        probe: PartitionProbe | None = None,
    ) -> ColumnCounts:
        if probe is None and partition.device.type != "cpu":
            return self.search_all(
                [partition], vectors, weights, total, goal, stats, [left_out],
                kernel=kernel, max_pairs=max_pairs,
            )[0]  # fmt: skip
        columns, counts = search_partition(
            partition, vectors, torch.from_numpy(weights), total, goal, stats, _tensor(left_out),
            kernel=kernel, max_pairs=max_pairs, outlook=probe,
        )  # fmt: skip
        return columns.numpy(), counts.numpy()

    def search_all(
        self,
        partitions: Sequence[Partition],
        vectors: torch.Tensor,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        stats: SearchStats,
        left_out: Sequence[np.ndarray | None],
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        """Search several partitions of one device, all of which are launched before one is read."""
        on_host = vectors.numpy(force=True)
        queries = [
            UnmappedQuery(
                partition,
                threshold_of(partition, goal.max_distance, goal.lemmas),
                on_host,
                weights,
                total,
            )
            for partition in partitions
        ]
        kernel = kernel or choose_kernel("auto", partitions[0].device)
        started, tried = time.perf_counter(), True
        try:
            hits_of_all = kernel.search_all(queries, goal.min_count, max_pairs, stats)
        except torch.OutOfMemoryError:
            # One after the other, and with fewer pairs where that is too much too.
            hits_of_all, tried = [None] * len(partitions), False
        stats.add_seconds("block", time.perf_counter() - started)
        answers = []
        for query, hits, flags in zip(queries, hits_of_all, left_out, strict=True):
            if hits is not None:
                stats.partitions += 1
                answers.append(best_columns(*hits, goal, flags))
                continue
            columns, counts = search_partition(
                query.partition, vectors, torch.from_numpy(weights), total, goal, stats,
                _tensor(flags), kernel=kernel, max_pairs=max_pairs,
                outlook=PartitionProbe(query, torch.arange(len(weights)), None, tried),
            )  # fmt: skip
            answers.append((columns.numpy(), counts.numpy()))
        return answers

    def search_batch(
        self,
        partition: Partition,
        vectors: torch.Tensor,
        queries: Sequence[BatchColumn],
        goal: Goal,
        stats: SearchStats,
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        chosen = kernel or choose_kernel("auto", partition.device)
        if chosen.name == "triton" and len(queries) <= MOST_ALONE:
            return [
                self.search(
                    partition, vectors[torch.from_numpy(query.members)], query.weights,
                    int(query.weights.sum()),
                    Goal(goal.max_distance, query.min_count, lemmas=goal.lemmas), stats,
                    kernel=chosen, max_pairs=max_pairs,
                )
                for query in queries
            ]  # fmt: skip
        return search_batch_partition(
            partition, vectors, queries, goal.max_distance, stats,
            lemmas=goal.lemmas, kernel=chosen, max_pairs=max_pairs,
        )  # fmt: skip

    def search_exhaustively(
        self,
        partition: Partition,
        vectors: torch.Tensor,
        weights: np.ndarray,
        goal: Goal,
        stats: SearchStats,
        left_out: np.ndarray | None = None,
    ) -> ColumnCounts:
        started = time.perf_counter()
        columns, counts = exact_partition(
            partition, vectors, torch.from_numpy(weights), goal, _tensor(left_out)
        )
        stats.partitions += 1
        stats.distances += len(vectors) * partition.n_values
        stats.bytes_read += partition.vectors.nbytes
        stats.add_seconds("verify", time.perf_counter() - started)
        return columns.numpy(), counts.numpy()

    def pairs_within(
        self,
        partition: Partition,
        vectors: torch.Tensor,
        rows: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        device_rows = torch.from_numpy(rows).to(partition.device)
        fetch_columns(partition, device_rows)
        stats.distances += len(vectors) * len(rows)
        query, position, distance = oracle_pairs(
            vectors.to(partition.device),
            partition.vectors.index_select(0, device_rows),
            partition.metric.threshold(max_distance),
        )
        fraction = partition.metric.fraction(distance)
        return query.numpy(force=True), position.numpy(force=True), fraction.numpy(force=True)

    def nearest_in_columns(
        self,
        partition: Partition,
        vectors: torch.Tensor,
        columns: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> np.ndarray:
        if partition.device.type != "cpu":
            return super().nearest_in_columns(partition, vectors, columns, max_distance, stats)
        tau = partition.metric.threshold(max_distance)
        nearest = compiled.nearest_in_columns(partition, vectors, columns, tau, stats)
        fraction = partition.metric.fraction(torch.from_numpy(nearest)).numpy()
        return np.where(nearest <= tau, fraction, max_distance)

    def nearest(
        self, partition: Partition, vectors: torch.Tensor, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        vectors = vectors.to(partition.device)
        device_rows = torch.from_numpy(rows).to(partition.device)
        best = torch.full((len(vectors),), torch.inf, dtype=torch.float64, device=vectors.device)
        position = torch.zeros(len(vectors), dtype=torch.int64, device=vectors.device)
        for ours in torch.arange(len(vectors), device=vectors.device).split(QUERY_CHUNK_SIZE):
            queries = vectors[ours].double()
            for some in torch.arange(len(rows), device=vectors.device).split(LAKE_CHUNK_SIZE):
                lake = partition.vectors[device_rows[some]].double()
                nearest, which = quick_distances(queries, lake).min(1)
                nearer = nearest < best[ours]
                best[ours] = torch.where(nearer, nearest, best[ours])
                position[ours] = torch.where(nearer, some[which], position[ours])
        distance = self.pair_distances(vectors, partition.vectors_of(device_rows[position]))
        return position.numpy(force=True), distance


def _tensor(flags: np.ndarray | None) -> torch.Tensor | None:
    return None if flags is None else torch.from_numpy(flags)


def in_steps(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors as whole numbers of steps, float64, each entry rounded once.

    The rounding changes a distance by less than a millionth. Vectors in float64 are such already.
    """
    if vectors.dtype == torch.float64:
        return vectors
    return torch.round(vectors.double() * STEPS_OF_ONE)
