"""One query column by itself, through all partitions.

Hits in one partition raise the count that is needed in the next.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ColumnCounts, Goal, Probe, SpacePartition
from pexeso.options import SearchOptions
from pexeso.results.ranking import Hit, Ranking
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.semantic.passes.base import Pass, ProbeResult, goal_of, left_out_columns


class SingleQueryPass(Pass):
    """One query column by itself."""

    def __init__(
        self, scan: PartitionLoader, position: int, query: EncodedQuery, options: SearchOptions
    ) -> None:
        super().__init__(scan)
        self._place, self._query, self._options = position, query, options
        self._weights = query.counted(options.joinability_of)
        self._total = query.total(options)
        self._ranking, self._stats = Ranking(options.k), SearchStats()
        self._looks = not options.exact and scan.store.n_partitions > 1

    @property
    def n_values(self) -> int:
        """Distinct query values."""
        return len(self._query.values)

    @property
    def ranks(self) -> bool:
        """Whether only the best columns of all partitions are wanted."""
        return self._options.k is not None and self._looks

    def look(self, number: int) -> ProbeResult | None:
        """Look at the summary of a partition; None where no column of it can be found."""
        if not self._looks:
            return ProbeResult()
        outlook = self._outlook(
            number, self._query.vectors, self._weights, self._total, self._options
        )
        if outlook.max_count < self._goal().min_count:
            self._ahead.partitions_skipped += 1
            return None
        partition = self._scan.mapped(number)
        if partition.pages is not None and partition.pages.missing() and self._scan.on_cpu:
            self._scan.space.prefetch(
                partition, outlook, self._goal(), self._scan.look_kernel, self._ahead
            )
        return ProbeResult(outlook, (outlook.max_count,))

    def promise(self, number: int) -> tuple[int, int]:
        """Return the count that may match something, and the boxes that they are near to."""
        query = self._query
        outlook = self._outlook(
            number, query.vectors, self._weights, self._total, self._options, keep=True
        )
        return outlook.max_count, outlook.n_near

    def search(self, number: int, partition: SpacePartition, probed: ProbeResult) -> None:
        """Search a partition, unless what was found since rules it out."""
        goal = self._goal()
        if probed.max_counts and probed.max_counts[0] < goal.min_count:
            self._stats.partitions_skipped += 1
            return
        left_out = left_out_columns(self._scan, number, self._options.exclude_table)
        columns, counts = self._search(number, partition, goal, left_out, probed.outlook)
        self._ranking.add(number, self._scan.names(number), columns, counts)

    def results(self) -> Iterator[tuple[int, tuple[list[Hit], SearchStats]]]:
        """Return the query column's place, and what was found."""
        self._stats.add(self._ahead)
        yield self._place, (self._ranking.hits(), self._stats)

    def _goal(self) -> Goal:
        return goal_of(self._total, self._options, self._ranking.floor)

    def _search(
        self,
        number: int,
        partition: SpacePartition,
        goal: Goal,
        left_out: np.ndarray | None,
        outlook: Probe | None,
    ) -> ColumnCounts:
        query, stats = self._query, self._stats
        if self._options.exact:
            return self._scan.space.search_exhaustively(
                partition, query.vectors, self._weights, goal, stats, left_out
            )
        return self._scan.space.search(
            partition,
            query.vectors,
            self._weights,
            self._total,
            goal,
            stats,
            left_out,
            kernel=self._scan.kernel_of(number, partition),
            max_pairs=self._scan.max_pairs(number),
            # On another device the values are mapped there.
            probe=outlook if self._scan.is_on_host(number, partition) else None,
        )
