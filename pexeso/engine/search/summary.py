"""What the summary of a partition, its coarse boxes, tells before anything else of it is read.

A box that encloses 16 blocks, 1,024 vectors, takes 128 bytes at 16 coordinates: a 1,600th of the
vectors at 50 dimensions. A query value that is near none of them matches nothing in the partition
(Lemma 4). Where the query values that are near some occur in fewer rows than a column needs, no
column of the partition can be found, and it is skipped: nothing else of it is read. Where it is not
skipped, the boxes near each query value say in which order they walk
(`pexeso.engine.search.prefixes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pexeso.engine.fetching import fetch_summary
from pexeso.engine.interface import Kernel, Query, Threshold
from pexeso.engine.layout.blocks import FANOUT, pad_axes
from pexeso.engine.layout.maps import slack_of
from pexeso.engine.layout.partition import Partition
from pexeso.engine.layout.unit_vectors import check_vectors
from pexeso.engine.lemmas import Lemma
from pexeso.engine.stats import SearchStats

_COORDINATES_AT_ONCE = 1 << 20


_MAX_THRESHOLDS = 64
"""Thresholds that a partition keeps: computing one takes as long as the host may take in all."""


@dataclass(frozen=True)
class PartitionProbe:
    """A query column as a partition's summary sees it.

    Attributes
    ----------
    real : int64 (m,)
        Which of those given they are.
    boxes : int64 (m,) or None
        Boxes of the summary that each value is near to; None where there is no summary (a partition
        that is cut into a grid).
    """

    query: Query
    real: torch.Tensor
    threshold: Threshold
    boxes: torch.Tensor | None
    by_steps: bool = False

    @property
    def max_count(self) -> int:
        """Rows of the query column that can match something in the partition, at most."""
        weights = self.query.weights
        return int(weights.sum() if self.boxes is None else weights[self.boxes > 0].sum())

    @property
    def n_near(self) -> int:
        """Boxes of the summary that the values are near to, added up."""
        return 0 if self.boxes is None else int(self.boxes.sum())

    def reaching(self, n: int) -> torch.Tensor:
        """Tell of the `n` values that were given which may match something, bool (n,)."""
        reaching = torch.zeros(n, dtype=torch.bool)
        reaching[self.real] = True if self.boxes is None else self.boxes > 0
        return reaching


def look(
    partition: Partition,
    vectors: torch.Tensor,
    weights: torch.Tensor,
    total: int,
    threshold: Threshold,
    kernel: Kernel,
    stats: SearchStats,
) -> PartitionProbe:
    """Look at the summary of a partition for the values of a query column.

    Parameters
    ----------
    partition : Partition
        On the CPU; of its arrays the map and the coarse boxes are read.
    vectors : float32 (n, d)
    weights : int64 (n,)
    """
    with stats.phase("map"):
        query, real = prepare_query(partition, vectors, weights, total)
    with stats.phase("block"):
        return PartitionProbe(
            query, real, threshold, boxes_near(partition, query, threshold, kernel, stats)
        )


def prepare_query(
    partition: Partition, vectors: torch.Tensor, weights: torch.Tensor, total: int
) -> tuple[Query, torch.Tensor]:
    """Map the distinct query vectors, float32 (n, d), into the partition's space.

    Zero vectors and values that never occur are dropped.

    Returns
    -------
    real : int64 (m,)
        The values that are left.
    """
    real = check_vectors(vectors.numpy(force=True)).to(vectors.device)
    real = real[weights.to(vectors.device)[real] > 0]
    if len(real) < len(vectors):
        vectors, weights = vectors[real], weights[real.to(weights.device)]
    query_vectors = vectors.to(partition.device)
    return Query(
        query_vectors, partition.map.map(query_vectors), weights.to(partition.device), total
    ), real


def threshold_of(partition: Partition, max_distance: float, lemmas: frozenset[Lemma]) -> Threshold:
    """Return the threshold on the partition's scale, and the tolerance of its coordinates."""
    known = partition.thresholds
    threshold = known.get((max_distance, lemmas))
    if threshold is None:
        threshold = Threshold(
            partition.metric.threshold(max_distance, partition.dimensions),
            max(slack_of(partition.map.largest()), partition.slack),
            lemmas,
        )
        if len(known) < _MAX_THRESHOLDS:
            known[max_distance, lemmas] = threshold
    return threshold


def boxes_near(
    partition: Partition, query: Query, threshold: Threshold, kernel: Kernel, stats: SearchStats
) -> torch.Tensor | None:
    """Count the boxes of the summary near each query value (Lemma 4), int64 (n,).

    None is returned for a partition that is cut into a grid.
    """
    if not partition.cells.has_summary:
        return None
    if not partition.n_values or not len(query):
        return torch.zeros(len(query), dtype=torch.int64)
    fetch_summary(partition, partition.blocks.n_summary_groups)
    tested = stats.box_pairs
    counts = kernel.blocks_reached(partition, query, threshold, stats)
    if counts is None:
        return _count_near(partition, query, threshold, stats)
    # The query values go down one after the other, and most of them through the same boxes.
    n_groups = min((stats.box_pairs - tested) // FANOUT, partition.blocks.n_summary_groups)
    stats.bytes_read += n_groups * partition.blocks.boxes[0].nbytes
    return counts


def _count_near(
    partition: Partition, query: Query, threshold: Threshold, stats: SearchStats
) -> torch.Tensor:
    """Test all boxes of the summary's finest level, by tensor operations."""
    blocks = partition.blocks
    finest = max(0, blocks.n_levels - 2)
    begin, end = blocks.starts[finest : finest + 2].tolist()
    corners = blocks.boxes[begin:end].permute(0, 3, 2, 1).flatten(0, 1)
    points = pad_axes(query.mapped)
    reach = threshold.reach(Lemma.CELL_CELL_FILTERING)
    chunk_size = max(1, _COORDINATES_AT_ONCE // corners[:, 0].numel())
    parts = [
        partition.map.near_box(some[:, None], corners[:, 0], corners[:, 1], reach).sum(1)
        for some in torch.split(points, chunk_size)
    ]
    stats.box_pairs += len(query) * (end - begin) * FANOUT
    stats.bytes_read += blocks.boxes[begin:end].nbytes
    return torch.cat(parts)
