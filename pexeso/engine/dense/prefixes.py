"""The summary of a partition, and prefixes of the query values, which rule out most columns.

A box of the summary encloses 16 blocks, 1,024 vectors, and takes 128 bytes at 16 coordinates: a
1,600th of the vectors at 50 dimensions. A query value that is near none of them matches nothing in
the partition (Lemma 4). Where the query values that are near some occur in fewer rows than a column
needs, no column of the partition can be found, and it is skipped: nothing else of it is read.

A column needs ``min_count`` of the query values. If it matches none of any |Q| - ``min_count`` + 1
of them, it cannot have as many (the prefix filter of set similarity joins: Chaudhuri, Ganti and
Kaushik, *A primitive operator for similarity joins in data cleaning*, 2006; here values match
approximately). If it matches fewer than r of any |Q| - ``min_count`` + r, neither. So a prefix of
the query values walks the whole partition and is verified; what is left are a few columns, whose
values are compared with the other query values outright. The values that reach the fewest blocks
come first: on a large lake a few values reach most of the blocks and have nearly all the
candidates, and as a rule they never have to walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from pexeso.engine.arrays import expand_ranges, few_threads
from pexeso.engine.blocks import FANOUT, pad_axes
from pexeso.engine.kernel import Kernel, Pairs, Query, Threshold, pairs_by_query
from pexeso.engine.maps import MAX_DIMENSIONS, check_vectors, slack_of
from pexeso.engine.metrics import SURELY_UNIT, product_band
from pexeso.engine.partition import Partition, fetch_columns
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import Lemma

# (Query value, stored value) pairs that are walked faster than another step is begun: as a rule,
# where the partition's summary was read, so that their order is known already, and where query
# values are multiplied with all that is stored (`pexeso.engine.dense.products`).
LEAST_WORK = 1 << 25
LEAST_WORK_LOOKED = 1 << 22
LEAST_WORK_MULTIPLIED = 1 << 21

# (Query value, stored value) pairs that are walked in the time in which one value of the columns
# that are left is fetched and multiplied.
WALKED_IN_THE_TIME_OF_A_ROW = 12_500

_COORDINATES_CHUNK_SIZE = 1 << 20
_MAX_THRESHOLDS = 64  # computing one takes as long as the host may take in all
_PRODUCTS_CHUNK_SIZE = 1 << 20

# Stored values that are multiplied where they are in the time in which one is fetched and
# multiplied.
_GATHERED = 2

# The prefixes that are tried leave columns with an eighth, and with a third, of the count needed.
_MARGINS = (8, 3)


class UnmappedQuery(Query):
    """The values of a query column on the host, which go to a partition's device on demand.

    A kernel that maps values by itself takes them from the host, all in one copy: bringing them
    over and mapping them by tensor operations takes longer than all the rest of a small search. It
    also checks that they have unit length; other code calls `real` before.

    on_host: float32 array (n, d), int64 array (n,), vectors and weights: a step on a small array
    takes a fifth of the time that it takes on a tensor.
    """

    def __init__(
        self,
        partition: Partition,
        threshold: Threshold,
        vectors: np.ndarray,
        weights: np.ndarray,
        total: int,
    ) -> None:
        # Set as one sets what is frozen.
        self.__dict__.update(partition=partition, threshold=threshold, total=total)
        self.__dict__["on_host"] = vectors, weights

    def real(self) -> UnmappedQuery:
        """Leave out zero vectors and values that never occur."""
        vectors, weights = self.on_host
        rows = real_rows(vectors, weights)
        if len(rows) == len(vectors):
            return self
        real = vectors[rows], weights[rows]
        return UnmappedQuery(self.partition, self.threshold, *real, self.total)

    def __len__(self) -> int:
        return len(self.on_host[1])

    @cached_property
    def vectors(self) -> torch.Tensor:
        return torch.from_numpy(self.on_host[0]).to(self.partition.device)

    @cached_property
    def weights(self) -> torch.Tensor:
        return torch.from_numpy(self.on_host[1]).to(self.partition.device)

    @cached_property
    def mapped(self) -> torch.Tensor:
        return self.partition.map.map(self.vectors)


def real_rows(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which values can match something, int64; refuse vectors that are not of unit length.

    A full check is done only where something may be wrong or zero: of a few values its steps take
    longer than all that they compute.
    """
    if vectors.ndim == 2 and vectors.dtype == np.float32 and vectors.shape[1] <= MAX_DIMENSIONS:
        squares = np.einsum("ij,ij->i", vectors, vectors)
        if (np.abs(squares - 1.0) < SURELY_UNIT).all() and (weights > 0).all():
            return np.arange(len(vectors))
    real = check_vectors(vectors).numpy()
    return real[weights[real] > 0]


@dataclass(frozen=True)
class PartitionProbe:
    """A query column as a partition's summary sees it.

    real: int64 (m,), which of those given they are; boxes: int64 (m,) or None, boxes of the summary
    that each value is near to; None where there is no summary (a partition that is cut into a
    grid).
    """

    query: Query
    real: torch.Tensor
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

    def reaching(self, n: int) -> np.ndarray:
        """Return which of the `n` values that were given may match something, bool (n,)."""
        reaching = np.zeros(n, bool)
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
    """Read the summary of a partition on the CPU for the values of a query column.

    `vectors` are float32 (n, d), `weights` int64 (n,).
    """
    with stats.phase("map"):
        query, real = prepare_query(partition, vectors, weights, total, threshold)
    with stats.phase("block"):
        boxes = boxes_near(query, kernel, stats)
    return PartitionProbe(query, real, boxes)


def prepare_query(
    partition: Partition,
    vectors: torch.Tensor,
    weights: torch.Tensor,
    total: int,
    threshold: Threshold,
) -> tuple[Query, torch.Tensor]:
    """Map the distinct query vectors, float32 (n, d), into the partition's space.

    Zero vectors and values that never occur are dropped; the values that are left come too, int64.
    """
    real = torch.from_numpy(real_rows(vectors.numpy(force=True), weights.numpy(force=True)))
    if len(real) < len(vectors):
        vectors, weights = vectors[real], weights[real]
    vectors, weights = vectors.to(partition.device), weights.to(partition.device)
    mapped = partition.map.map(vectors)
    return Query(partition, threshold, vectors, mapped, weights, total), real


def threshold_of(partition: Partition, max_distance: float, lemmas: frozenset[Lemma]) -> Threshold:
    """Return the threshold on the partition's scale, and the tolerance of its coordinates."""
    known = partition.thresholds
    threshold = known.get((max_distance, lemmas))
    if threshold is None:
        threshold = Threshold(
            partition.metric.threshold(max_distance),
            max(slack_of(partition.map.largest), partition.slack),
            lemmas,
        )
        if len(known) < _MAX_THRESHOLDS:
            known[max_distance, lemmas] = threshold
    return threshold


def boxes_near(query: Query, kernel: Kernel, stats: SearchStats) -> torch.Tensor | None:
    """Count the boxes of the summary near each query value (Lemma 4), int64 (n,).

    None is returned for a partition that is cut into a grid.
    """
    partition = query.partition
    if not partition.cells.has_summary:
        return None
    if not partition.n_values or not len(query):
        return torch.zeros(len(query), dtype=torch.int64)
    if partition.pages is not None:
        partition.pages.want("boxes", torch.arange(partition.blocks.n_summary_groups))
    tested = stats.box_pairs
    counts = kernel.blocks_reached(query, stats)
    if counts is None:
        return _count_near(query, stats)
    # The query values go down one after the other, and most of them through the same boxes.
    n_groups = min((stats.box_pairs - tested) // FANOUT, partition.blocks.n_summary_groups)
    stats.bytes_read += n_groups * partition.blocks.boxes[0].nbytes
    return counts


def _count_near(query: Query, stats: SearchStats) -> torch.Tensor:
    """Test all boxes of the summary's finest level, by tensor operations."""
    blocks = query.partition.blocks
    finest = max(0, blocks.n_levels - 2)
    begin, end = blocks.starts[finest : finest + 2].tolist()
    corners = blocks.boxes[begin:end].permute(0, 3, 2, 1).flatten(0, 1)
    points = pad_axes(query.mapped)
    reach = query.threshold.reach(Lemma.CELL_CELL_FILTERING)
    chunk_size = max(1, _COORDINATES_CHUNK_SIZE // corners[:, 0].numel())
    parts = [
        query.partition.map.near_box(some[:, None], corners[:, 0], corners[:, 1], reach).sum(1)
        for some in torch.split(points, chunk_size)
    ]
    stats.box_pairs += len(query) * (end - begin) * FANOUT
    stats.bytes_read += blocks.boxes[begin:end].nbytes
    return torch.cat(parts)


def prefix_sizes(
    weights: torch.Tensor, min_count: int, n_values: int, least_work: int = LEAST_WORK
) -> list[int]:
    """Return how many query values each prefix has, ascending; the last has all.

    `weights` are those of the query values, int64 (n,), in the order in which they walk.
    """
    n = len(weights)
    reached = torch.cumsum(weights, 0)
    sizes = []
    for margin in _MARGINS:
        required = max(min(2, min_count), min_count // margin)
        walked = int(reached[-1]) - min_count + required if n else 0
        size = int(torch.searchsorted(reached, walked)) + 1
        if size < n and (n - size) * n_values >= least_work and size not in sizes:
            sizes.append(size)
    return [*sizes, n]


def prefixes_of(
    outlook: PartitionProbe, min_count: int, kernel: Kernel, stats: SearchStats
) -> tuple[Query, list[int]]:
    """Return the query values, those that reach the fewest blocks first, and the prefix sizes.

    Where prefixes do not pay the values stay as they are, and there is one size.
    """
    reached, query = outlook.boxes, outlook.query
    least_work = LEAST_WORK if reached is None else LEAST_WORK_LOOKED
    sizes = prefix_sizes(query.weights, min_count, query.partition.n_values, least_work)
    if len(sizes) == 1:
        return query, sizes
    if reached is None:
        reached = kernel.blocks_reached(query, stats)
    if reached is None:
        return query, sizes
    query = query.take(torch.argsort(reached, stable=True))
    return query, prefix_sizes(query.weights, min_count, query.partition.n_values, least_work)


def prefixes_multiplied(query: Query, min_count: int) -> tuple[Query, list[int]]:
    """Return the query values in the order of multiplication, and the prefix sizes.

    Each takes as long as any other: those that stand for the most rows come first, so that a prefix
    has few.
    """
    query = query.take(torch.argsort(query.weights, descending=True, stable=True))
    n_values = query.partition.n_values
    return query, prefix_sizes(query.weights, min_count, n_values, LEAST_WORK_MULTIPLIED)


def few_values(
    partition: Partition, columns: torch.Tensor, n_queries: int, *, multiplied: bool = False
) -> bool:
    """Return whether comparing with the values of some columns is the cheaper way.

    The alternative is that `n_queries` query values walk, or with `multiplied` that they are
    multiplied with all stored vectors.
    """
    n_rows = int(partition.column_values.sizes_of(columns).sum())
    if multiplied:
        return _GATHERED * n_rows <= partition.n_values
    return n_rows * WALKED_IN_THE_TIME_OF_A_ROW <= n_queries * partition.n_values


def compare_with_columns(
    query: Query, columns: torch.Tensor, max_pairs: int, stats: SearchStats
) -> Iterator[tuple[Query, Pairs]]:
    """Yield runs of query values with the pairs that may match among the values of some columns.

    Products leave what their band cannot rule out; rows that surely match are complements.
    """
    partition, tau = query.partition, query.threshold.tau
    csr = partition.column_values
    _, posting = expand_ranges(csr.offsets[columns], csr.sizes_of(columns))
    rows = torch.unique(csr.members[posting])
    chunk_size = max(1, min(_PRODUCTS_CHUNK_SIZE, max_pairs) // max(1, len(rows)))
    fetch_columns(partition, rows)
    stored = partition.vectors_of(rows)
    stats.bytes_read += len(rows) * partition.vector_bytes
    band, squares = product_band(tau, partition.dimensions), _squares(stored)
    for begin in range(0, len(query), chunk_size):
        part = query.take(slice(begin, begin + chunk_size))
        with few_threads(stored.numel()):
            quick = _squares(part.vectors)[:, None] + squares - 2.0 * (part.vectors @ stored.T)
            queries, positions = torch.nonzero(quick <= band.possibly, as_tuple=True)
            candidates = rows[positions]
            is_sure = quick[queries, positions] <= band.surely
            candidates = torch.where(is_sure, ~candidates, candidates)
            stats.distances += quick.numel()
            stats.candidates += len(candidates)
            yield part, pairs_by_query(queries, candidates, len(part))


def _squares(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.double().square_().sum(1).float()
