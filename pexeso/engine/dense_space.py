"""The space of dense vectors, searched by maps, cells and kernels."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from pexeso.engine.fetching import Pages, fetch_cells, fetch_columns
from pexeso.engine.interface import KernelChoice
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.kernels.unmapped import UnmappedQuery
from pexeso.engine.layout.blocks import BLOCK_SIZE, FANOUT
from pexeso.engine.layout.options import PartitionLayoutOptions
from pexeso.engine.layout.partition import Partition
from pexeso.engine.layout.plausibility import require_plausible_cells, require_plausible_rows
from pexeso.engine.metrics import Metric
from pexeso.engine.oracle import oracle_pairs
from pexeso.engine.search.search import (
    best_columns,
    exact_partition,
    search_batch_partition,
    search_partition,
    walking_order,
)
from pexeso.engine.search.summary import PartitionProbe, look, threshold_of
from pexeso.engine.stats import SearchStats
from pexeso.engine.threads import few_threads
from pexeso.engine.vector_space import BatchColumn, ColumnCounts, Goal, VectorSpace

ROWS_OF_A_BOX = FANOUT * BLOCK_SIZE
"""Stored values in one box of a summary, where blocks have their usual size."""

STEPS_OF_ONE = 1 << 24
"""Vectors are compared as whole numbers of steps, so many of which make 1. For vectors of unit
length each product of two, and each part of the sum that makes it up, is a whole number below
``2**49``, which float64 holds exactly: no order of summing, and no fused step, changes a bit of
it."""

QUERY_VALUES_AT_ONCE, LAKE_VALUES_AT_ONCE = 1 << 9, 1 << 13
"""What the search for nearest values compares at a time: 32 MiB of distances."""

MOST_ALONE = 12
"""Query columns of a batch that programs on a device search for one after the other: a pass over
the partition for all of them costs the host as much as so many searches."""


@dataclass(frozen=True)
class DenseProbe:
    """What the summary of a partition says, in arrays."""

    seen: PartitionProbe

    @property
    def max_count(self) -> int:
        """Rows that can match something."""
        return self.seen.max_count

    @property
    def n_near(self) -> int:
        """Boxes that the values are near to."""
        return self.seen.n_near

    def reaching(self, n: int) -> np.ndarray:
        """Return which of the values may match something."""
        return self.seen.reaching(n).numpy()


@dataclass(frozen=True)
class DenseSpace(VectorSpace):
    """Unit vectors under a metric."""

    options: PartitionLayoutOptions
    has_kernels: ClassVar[bool] = True

    @cached_property
    def metric(self) -> Metric:
        """The metric of the options."""
        return Metric(self.options.metric)

    def concatenate(self, parts: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the rows of several tensors one after the other."""
        return torch.cat(list(parts)) if parts else torch.zeros((0, 1))

    def comparable(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return vectors as `in_steps` gives them."""
        return in_steps(vectors)

    def distances(self, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
        """Return all distances of two sets of vectors, each entry rounded to a step.

        Notes
        -----
        Up to the root all is whole numbers below ``2**51``, and roots are rounded once as IEEE 754
        says. An angle is the arc sine of half the chord, of which libraries may give the last bit
        of float64 in their own way; rounded to float32 that is gone, but for one in many millions.
        """
        left, right = in_steps(left), in_steps(right)
        if self.metric.name in ("euclidean", "angular"):
            squares = (left * left).sum(1)[:, None] + (right * right).sum(1) - 2 * (left @ right.T)
            apart = np.sqrt(squares.numpy()) / STEPS_OF_ONE
        else:
            order = 1.0 if self.metric.name == "manhattan" else np.inf
            apart = torch.cdist(left, right, p=order).numpy() / STEPS_OF_ONE
        fractions = self.metric.fraction(torch.from_numpy(apart), left.shape[1])
        return fractions.numpy().astype(np.float32)

    def pair_distances(self, left: torch.Tensor, right: torch.Tensor) -> np.ndarray:
        """Return the defining distances of row pairs."""
        apart = self.metric.distances(left, right)
        return self.metric.fraction(apart, left.shape[1]).numpy(force=True)

    def stored(self, partition: Partition, rows: np.ndarray) -> torch.Tensor:
        """Return stored vectors on the CPU."""
        return partition.vectors_of(torch.from_numpy(rows).to(partition.device)).cpu()

    def open(
        self,
        arrays: Mapping[str, np.ndarray],
        device: torch.device | str = "cpu",
        pages: Pages | None = None,
    ) -> Partition:
        """View the arrays of `pexeso.engine.building.building.build_partition`."""
        return Partition.from_arrays(arrays, self.options, device, pages=pages)

    def require_plausible(self, partition: Partition, where: str, *, rows: bool) -> None:
        """Look at some vectors, or at the coarse boxes."""
        (require_plausible_rows if rows else require_plausible_cells)(partition, where)

    def probe(
        self,
        partition: Partition,
        vectors: torch.Tensor,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        kernel: KernelChoice,
        stats: SearchStats,
    ) -> DenseProbe:
        """Look at the summary of a partition."""
        threshold = threshold_of(partition, goal.max_distance, goal.lemmas)
        chosen = kernel.for_work(len(vectors) * partition.n_values // ROWS_OF_A_BOX)
        rows = torch.from_numpy(weights)
        with few_threads():
            seen = look(partition, vectors, rows, total, threshold, chosen, stats)
        return DenseProbe(seen)

    def prefetch(
        self, partition: Partition, probe: DenseProbe, goal: Goal, kernel: KernelChoice,
        stats: SearchStats,
    ) -> None:  # fmt: skip
        """Ask for what the first prefix of the query values will walk through."""
        chosen = kernel.for_work(0)
        with few_threads():
            query, sizes = walking_order(partition, probe.seen, goal, chosen, stats)
            fetch_cells(partition, query.take(slice(0, sizes[0])), probe.seen.threshold, chosen)

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
        kernel: KernelChoice | None = None,
        max_pairs: int,
        probe: DenseProbe | None = None,
    ) -> ColumnCounts:
        """Search by cells and distances."""
        if probe is None and partition.device.type != "cpu":
            return self.search_all(
                [partition], vectors, weights, total, goal, stats, [left_out],
                kernel=kernel, max_pairs=max_pairs,
            )[0]  # fmt: skip
        seen = None if probe is None else probe.seen
        columns, counts = search_partition(
            partition, vectors, torch.from_numpy(weights), total, goal, stats, _tensor(left_out),
            kernel=kernel, max_pairs=max_pairs, outlook=seen,
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
        kernel: KernelChoice | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        """Search several partitions of one device, all of which can be launched at once.

        With `goal.k` each answer has the columns that tie with its own k-th.
        """
        on_host = vectors.numpy(force=True)
        searches = [
            (
                partition,
                UnmappedQuery(partition, on_host, weights, total),
                threshold_of(partition, goal.max_distance, goal.lemmas),
            )
            for partition in partitions
        ]
        chosen = kernel or choose_kernel("auto", partitions[0].device)
        worker = chosen.for_work(len(on_host) * sum(part.n_values for part in partitions))
        started, tried = time.perf_counter(), True
        try:
            hits_of_all = worker.search_all(searches, goal.min_count, max_pairs, stats)
        except torch.OutOfMemoryError:
            # One after the other, and with fewer pairs where that is too much too.
            hits_of_all, tried = [None] * len(partitions), False
        stats.add_seconds("block", time.perf_counter() - started)
        answers = []
        for (partition, query, threshold), hits, flags in zip(
            searches, hits_of_all, left_out, strict=True
        ):
            if hits is not None:
                stats.partitions += 1
                answers.append(best_columns(*hits, goal, flags))
                continue
            columns, counts = search_partition(
                partition, vectors, torch.from_numpy(weights), total, goal, stats, _tensor(flags),
                kernel=chosen, max_pairs=max_pairs,
                outlook=PartitionProbe(query, torch.arange(len(weights)), threshold, None, tried),
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
        kernel: KernelChoice | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        """Search for many query columns in one pass, or for few one after the other on a device."""
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
        """Search by all distances in float64."""
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
        """Compare with all of the rows."""
        device_rows = torch.from_numpy(rows).to(partition.device)
        fetch_columns(partition, device_rows)
        tau = partition.metric.threshold(max_distance, partition.dimensions)
        stats.distances += len(vectors) * len(rows)
        query, position, distance = oracle_pairs(
            vectors.to(partition.device),
            partition.vectors.index_select(0, device_rows),
            tau,
            partition.metric,
        )
        fraction = partition.metric.fraction(distance, partition.dimensions)
        return query.numpy(force=True), position.numpy(force=True), fraction.numpy(force=True)

    def nearest(
        self, partition: Partition, vectors: torch.Tensor, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose by matrix products; the distance is the defining one."""
        vectors = vectors.to(partition.device)
        device_rows = torch.from_numpy(rows).to(partition.device)
        position = self._nearest(partition, vectors, device_rows)
        distance = self.pair_distances(vectors, partition.vectors_of(device_rows[position]))
        return position.numpy(force=True), distance

    def _nearest(
        self, partition: Partition, vectors: torch.Tensor, rows: torch.Tensor
    ) -> torch.Tensor:
        device = vectors.device
        best = torch.full((len(vectors),), torch.inf, dtype=torch.float64, device=device)
        position = torch.zeros(len(vectors), dtype=torch.int64, device=device)
        for ours in torch.split(torch.arange(len(vectors), device=device), QUERY_VALUES_AT_ONCE):
            for lake_positions in torch.split(
                torch.arange(len(rows), device=device), LAKE_VALUES_AT_ONCE
            ):
                lake = partition.vectors[rows[lake_positions]].double()
                nearest_distances, which = self.metric.quick_distances(
                    vectors[ours].double(), lake
                ).min(1)
                nearer = nearest_distances < best[ours]
                best[ours] = torch.where(nearer, nearest_distances, best[ours])
                position[ours] = torch.where(nearer, lake_positions[which], position[ours])
        return position


def _tensor(flags: np.ndarray | None) -> torch.Tensor | None:
    return None if flags is None else torch.from_numpy(flags)


def in_steps(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors as whole numbers of steps, float64, each entry rounded once.

    The rounding changes a distance by less than a millionth. Vectors in float64 are such already.
    """
    if vectors.dtype == torch.float64:
        return vectors
    return torch.round(vectors.double() * STEPS_OF_ONE)
