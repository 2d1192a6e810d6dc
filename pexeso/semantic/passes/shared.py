"""One pass over all partitions for several query columns.

They have the same threshold and filters. Each distinct value of theirs is compared once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import (
    BatchColumn,
    ColumnCounts,
    Probe,
    SpacePartition,
    Vectors,
    VectorSpace,
)
from pexeso.options import SearchOptions
from pexeso.results.ranking import Hit, Ranking
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.semantic.passes.base import Pass, ProbeResult, goal_of, left_out_columns

MAX_VALUES = 1 << 16
"""Most distinct values of a batch, if it has more than one query column: their vectors are held
together."""


@dataclass(frozen=True)
class Batch:
    """Query columns of one pass.

    Attributes
    ----------
    members : list of int64 (m,)
        For each query the rows of `vectors` that its values are.
    """

    positions: list[int]
    vectors: Vectors
    members: list[np.ndarray]


class SharedPass(Pass):
    """Query columns that ask alike: each distinct value of theirs is compared once."""

    def __init__(
        self,
        scan: PartitionLoader,
        batch: Batch,
        queries: Sequence[EncodedQuery],
        options: Sequence[SearchOptions],
    ) -> None:
        super().__init__(scan)
        self._batch = batch
        self._options = [options[position] for position in batch.positions]
        self._weights = [
            queries[position].counted(options[position].joinability_of)
            for position in batch.positions
        ]
        self._totals = [queries[position].total(options[position]) for position in batch.positions]
        self._rankings = [Ranking(query_options.k) for query_options in self._options]
        self._shared, self._skipped = SearchStats(), [0] * len(batch.positions)
        self._looks = scan.store.n_partitions > 1
        self._ones = np.ones(len(batch.vectors), np.int64)

    @property
    def n_values(self) -> int:
        """Distinct query values."""
        return len(self._batch.vectors)

    @property
    def ranks(self) -> bool:
        """Whether only the best columns of all partitions are wanted."""
        return self._looks and any(query_options.k is not None for query_options in self._options)

    def look(self, number: int) -> ProbeResult | None:
        """Look at the summary of a partition; None where no column of it can be found."""
        if not self._looks:
            return ProbeResult()
        outlook = self._outlook(number, self._batch.vectors, self._ones, 0, self._options[0])
        probed = ProbeResult(outlook, self._max_counts(outlook))
        if not self._wanted(probed):
            self._skipped = [n + 1 for n in self._skipped]
            return None
        return probed

    def promise(self, number: int) -> tuple[int, int]:
        """Return the count that may match something, and the boxes that they are near to."""
        outlook = self._outlook(
            number, self._batch.vectors, self._ones, 0, self._options[0], keep=True
        )
        return sum(self._max_counts(outlook)), outlook.n_near

    def search(self, number: int, partition: SpacePartition, probed: ProbeResult) -> None:
        """Search a partition for the query columns that what was found since does not rule out."""
        positions = self._wanted(probed)
        answers: list[ColumnCounts] = []
        if positions:
            vectors, query_columns = self._values_of(positions, probed)
            answers = self._scan.space.search_batch(
                partition,
                vectors,
                query_columns,
                goal_of(0, self._options[0], 0),
                self._shared,
                kernel=self._scan.kernel_of(number, partition),
                max_pairs=self._scan.max_pairs(number),
            )
        for position in set(range(len(self._weights))) - set(positions):
            self._skipped[position] += 1
        for position, (columns, counts) in zip(positions, answers, strict=True):
            left_out = left_out_columns(self._scan, number, self._options[position].exclude_table)
            if left_out is not None:
                mask = ~left_out[columns]
                columns, counts = columns[mask], counts[mask]
            self._rankings[position].add(number, self._scan.names(number), columns, counts)

    def results(self) -> Iterator[tuple[int, tuple[list[Hit], SearchStats]]]:
        """Yield the positions of the query columns, and their hits and counters.

        The counters are those of the pass as a whole.
        """
        self._shared.add(self._ahead)
        for position, ranking, skipped in zip(
            self._batch.positions, self._rankings, self._skipped, strict=True
        ):
            stats = replace(
                self._shared, seconds=dict(self._shared.seconds), partitions_skipped=skipped
            )
            yield position, (ranking.hits(), stats)

    def _needed(self, position: int) -> int:
        return goal_of(
            self._totals[position], self._options[position], self._rankings[position].floor
        ).min_count

    def _max_counts(self, outlook: Probe) -> tuple[int, ...]:
        reaching = outlook.reaching(len(self._batch.vectors))
        members = self._batch.members
        return tuple(
            int(weights[reaching[column_members]].sum())
            for column_members, weights in zip(members, self._weights, strict=True)
        )

    def _wanted(self, probed: ProbeResult) -> list[int]:
        """Return the query columns that cannot skip the partition."""
        positions = range(len(self._weights))
        if not probed.max_counts:
            return list(positions)
        return [
            position
            for position in positions
            if probed.max_counts[position] >= self._needed(position)
        ]

    def _values_of(
        self, positions: list[int], probed: ProbeResult
    ) -> tuple[Vectors, list[BatchColumn]]:
        """Return the values of some query columns that may match, and these query columns.

        The query columns are expressed over the returned values.
        """
        query_columns = [
            BatchColumn(
                self._batch.members[position], self._weights[position], self._needed(position)
            )
            for position in positions
        ]
        if probed.outlook is None:
            return self._batch.vectors, query_columns
        reaching = probed.outlook.reaching(len(self._batch.vectors))
        if bool(reaching.all()) and len(positions) == len(self._weights):
            return self._batch.vectors, query_columns
        masks = [reaching[column.members] for column in query_columns]
        query_columns = [
            replace(column, members=column.members[some], weights=column.weights[some])
            for column, some in zip(query_columns, masks, strict=True)
        ]
        used, members = np.unique(
            np.concatenate([column.members for column in query_columns]), return_inverse=True
        )
        parts = np.split(members, np.cumsum([len(column.members) for column in query_columns])[:-1])
        return self._batch.vectors[used], [
            replace(column, members=part) for column, part in zip(query_columns, parts, strict=True)
        ]


def batches_of(
    space: VectorSpace, queries: Sequence[EncodedQuery], options: Sequence[SearchOptions]
) -> list[Batch]:
    """Group the queries that can share a pass: same threshold and filters, and not by brute force.

    Queries that would be alone in their batch, and those whose counts need not be exact, are left
    out: a search of its own prunes more.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for position, query_options in enumerate(options):
        if not query_options.exact and query_options.counts == "exact":
            alike.setdefault(
                (query_options.max_distance, frozenset(query_options.lemmas)), []
            ).append(position)
    groups = [run for positions in alike.values() for run in _runs(queries, positions)]
    return [_batch(space, queries, positions) for positions in groups if len(positions) > 1]


def _runs(queries: Sequence[EncodedQuery], positions: Sequence[int]) -> list[list[int]]:
    """Cut queries into runs of a bounded number of values."""
    runs: list[list[int]] = []
    room = 0
    for position in positions:
        if not runs or len(queries[position].values) > room:
            runs.append([])
            room = MAX_VALUES
        runs[-1].append(position)
        room -= len(queries[position].values)
    return runs


def _batch(space: VectorSpace, queries: Sequence[EncodedQuery], positions: list[int]) -> Batch:
    """Return the distinct values of several queries, distinguished by their texts.

    Equal texts have equal vectors.
    """
    encoded = (
        pa.chunked_array([queries[position].values for position in positions])
        .combine_chunks()
        .dictionary_encode()
    )
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    every = space.concatenate([queries[position].vectors for position in positions])
    vectors = every[first]
    sizes = [len(queries[position].values) for position in positions]
    return Batch(positions, vectors, np.split(codes, np.cumsum(sizes)[:-1]))
