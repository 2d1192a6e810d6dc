"""Passes over the partitions of a store: of one query column, or of several that are alike.

`look` and `promise` may be called from another thread than the rest, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import (
    BatchColumn,
    Goal,
    Lemma,
    Probe,
    SpacePartition,
    Vectors,
    VectorSpace,
    count_needed,
)
from pexeso.options import SearchOptions
from pexeso.results.query import ColumnNames, Hit
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.judged import judged_columns, judged_counts
from pexeso.semantic.partition_loader import PartitionLoader
from pexeso.store.arrays import take_texts

KEPT_VALUES = 1 << 16
"""(Query value, partition) pairs whose summaries are looked at once where all partitions are ranked
before the first is searched; with more, twice."""

MAX_VALUES = 1 << 16
"""Most distinct values of a batch, if it has more than one query column: their vectors are held
together."""


@dataclass(frozen=True)
class ProbeResult:
    """What a pass saw of a partition that it cannot skip."""

    # None where it did not look: it reads everything, or all that there is is one partition.
    outlook: Probe | None = None
    max_counts: tuple[int, ...] = ()


@dataclass(eq=False)
class Ranking:
    """The best columns over the partitions searched so far: by count, then by their names.

    Column ids are no part of the order. An update gives new columns later ids, and the same lake
    must give the same answer however its index came to be.

    Names are read for columns that can be among the best alone: with `k`, for those that match at
    least as often as the k-th.
    """

    _k: int | None = None
    # Tuples in the order of their fields: minus the count, table, label, column id, partition,
    # position. Python orders texts by code points, as UTF-8 does. Ids decide between columns of one
    # name, of which an index has at most one that is not deleted.
    _rows: list[tuple[int, str, str, int, int, int]] = field(default_factory=list)

    @property
    def floor(self) -> int:
        """The count of the k-th column; 0 while there are fewer, or if all are kept."""
        is_full = self._k is not None and len(self._rows) == self._k
        return -self._rows[-1][0] if is_full else 0

    def add(self, number: int, names: ColumnNames, columns: np.ndarray, counts: np.ndarray) -> None:
        """Add columns of a partition, and the query values, or rows, that match each, int64."""
        if self._k is not None and len(self._rows) + len(columns) > self._k:
            # Columns with fewer matches than the k-th of all, those so far included, are out.
            known = np.concatenate([[-row[0] for row in self._rows], counts])
            mask = counts >= np.partition(known, len(known) - self._k)[len(known) - self._k]
            columns, counts = columns[mask], counts[mask]
        if not len(columns):
            return
        tables, labels = (
            take_texts(texts, columns).fill_null("").to_pylist()
            for texts in (names.tables, names.labels)
        )
        ids = names.ids[columns].tolist()
        self._rows += zip(
            (-counts).tolist(), tables, labels, ids, repeat(number), columns.tolist(), strict=False
        )
        if self._k is not None:
            self._rows.sort()
            del self._rows[self._k :]

    def hits(self) -> list[Hit]:
        """Return the columns, best first."""
        return [
            Hit(column_id, -negative, partition, position, table, label)
            for negative, table, label, column_id, partition, position in sorted(self._rows)
        ]


class _Pass:
    """What passes share: they look at summaries for vectors with weights."""

    def __init__(
        self,
        scan: PartitionLoader,
        vectors: Vectors,
        weights: np.ndarray,
        total: int,
        options: SearchOptions,
    ) -> None:
        self._scan, self._vectors, self._probed_weights = scan, vectors, weights
        self._goal = goal_of(total, options)
        self._probed_total = total
        self.n_values = len(weights)
        # A device that has all partitions searches them in less time than the host looks at one.
        self._looks = scan.n_partitions > 1 and not options.exact and not scan.keeps_all
        # What is done ahead is counted by itself: two threads must not add to one counter.
        self._ahead = SearchStats()
        self._kept: dict[int, Probe] = {}

    def _outlook(self, number: int, *, keep: bool = False) -> Probe:
        """Probe a summary, or reuse what an earlier probe with `keep` saw of it."""
        if number in self._kept:
            return self._kept.pop(number)
        scan = self._scan
        outlook = scan.space.probe(
            scan.mapped(number),
            self._vectors,
            self._probed_weights,
            self._probed_total,
            replace(self._goal, min_count=1),
            scan.look_kernel,
            self._ahead,
        )
        if keep and self.n_values * scan.n_partitions <= KEPT_VALUES:
            self._kept[number] = outlook
        return outlook


class SingleQueryPass(_Pass):
    """One query column by itself; hits in one partition raise the count needed in the next."""

    def __init__(
        self, scan: PartitionLoader, position: int, query: EncodedQuery, options: SearchOptions
    ) -> None:
        self._weights, self._total = query.counted(options.joinability_of), query.total(options)
        super().__init__(scan, query.vectors, self._weights, self._total, options)
        self._position, self._options, self._query = position, options, query
        self._ranking, self._stats = Ranking(options.k), SearchStats()
        self.ranks = self._looks and options.k is not None

    def look(self, number: int) -> ProbeResult | None:
        if not self._looks:
            return ProbeResult()
        outlook, min_count = self._outlook(number), max(self._goal.min_count, self._ranking.floor)
        if outlook.max_count < min_count:
            self._ahead.partitions_skipped += 1
            return None
        scan = self._scan
        partition = scan.mapped(number)
        if scan.on_cpu and partition.pages is not None and partition.pages.missing():
            goal = replace(self._goal, min_count=min_count)
            scan.space.prefetch(partition, outlook, goal, scan.look_kernel, self._ahead)
        return ProbeResult(outlook, (outlook.max_count,))

    def promise(self, number: int) -> tuple[int, int]:
        outlook = self._outlook(number, keep=True)
        return outlook.max_count, outlook.n_near

    def search(self, number: int, partition: SpacePartition, probed: ProbeResult) -> None:
        """Search a partition, unless what was found since rules it out."""
        min_count = max(self._goal.min_count, self._ranking.floor)
        goal = replace(self._goal, min_count=min_count)
        if probed.max_counts and probed.max_counts[0] < goal.min_count:
            self._stats.partitions_skipped += 1
            return
        scan, stats = self._scan, self._stats
        left_out = left_out_columns(scan, number, self._query, self._options)
        arguments = (partition, self._vectors, self._weights)
        if self._options.exact:
            counts = scan.space.search_exhaustively(*arguments, goal, stats, left_out)
        else:
            is_on_host = scan.is_on_host(number, partition)
            counts = scan.space.search(
                *arguments,
                self._total,
                goal,
                stats,
                left_out,
                kernel=scan.look_kernel if is_on_host else scan.kernel,
                max_pairs=scan.max_pairs(number),
                # On another device the values are mapped there.
                probe=probed.outlook if is_on_host else None,
            )
        self._ranking.add(number, scan.names(number), *counts)

    def search_all(self) -> bool:
        """Search all partitions together where they stay on a device; return whether it did."""
        return not self._options.exact and self._scan.search_all(self._search_together)

    def _search_together(self, partitions: list[SpacePartition]) -> None:
        scan, stats, numbers = self._scan, SearchStats(), range(len(partitions))
        answers = scan.space.search_all(
            partitions,
            self._vectors,
            self._weights,
            self._total,
            self._goal,
            stats,
            [left_out_columns(scan, number, self._query, self._options) for number in numbers],
            kernel=scan.kernel,
            max_pairs=min(map(scan.max_pairs, numbers)),
        )
        # Nothing is added before all are searched: after a failure they are searched again.
        self._stats.add(stats)
        for number, counts in zip(numbers, answers, strict=True):
            self._ranking.add(number, scan.names(number), *counts)

    def results(self) -> Iterator[tuple[int, tuple[list[Hit], SearchStats]]]:
        if self._looks:
            self._stats.add(self._ahead)
        if self._query.judged is not None:
            add_judged(self._scan, self._query, self._options, self._ranking, self._stats)
        yield self._position, (self._ranking.hits(), self._stats)


@dataclass(frozen=True)
class Batch:
    """Query columns of one pass."""

    positions: list[int]
    vectors: Vectors
    members: list[np.ndarray]  # int64: of each query the rows of `vectors` that its values are


class SharedPass(_Pass):
    """Query columns with the same threshold and filters: each distinct value is compared once."""

    def __init__(
        self,
        scan: PartitionLoader,
        batch: Batch,
        queries: Sequence[EncodedQuery],
        options: Sequence[SearchOptions],
    ) -> None:
        self._options = [options[position] for position in batch.positions]
        self._queries = [queries[position] for position in batch.positions]
        ones = np.ones(len(batch.vectors), np.int64)
        super().__init__(scan, batch.vectors, ones, 0, self._options[0])
        self._batch = batch
        members = [(queries[position], options[position]) for position in batch.positions]
        self._weights = [query.counted(chosen.joinability_of) for query, chosen in members]
        self._goals = [goal_of(query.total(chosen), chosen) for query, chosen in members]
        self._rankings = [Ranking(chosen.k) for chosen in self._options]
        self._shared, self._skipped = SearchStats(), [0] * len(members)
        self.ranks = self._looks and any(chosen.k is not None for chosen in self._options)

    def look(self, number: int) -> ProbeResult | None:
        if not self._looks:
            return ProbeResult()
        outlook = self._outlook(number)
        probed = ProbeResult(outlook, self._max_counts(outlook))
        if not self._wanted(probed):
            self._skipped = [n + 1 for n in self._skipped]
            return None
        return probed

    def promise(self, number: int) -> tuple[int, int]:
        outlook = self._outlook(number, keep=True)
        return sum(self._max_counts(outlook)), outlook.n_near

    def search(self, number: int, partition: SpacePartition, probed: ProbeResult) -> None:
        """Search a partition for the query columns that what was found since does not rule out."""
        scan, positions, answers = self._scan, self._wanted(probed), []
        if positions:
            vectors, query_columns = self._values_of(positions, probed)
            is_on_host = scan.is_on_host(number, partition)
            answers = scan.space.search_batch(
                partition,
                vectors,
                query_columns,
                self._goal,
                self._shared,
                kernel=scan.look_kernel if is_on_host else scan.kernel,
                max_pairs=scan.max_pairs(number),
            )
        for position in set(range(len(self._weights))) - set(positions):
            self._skipped[position] += 1
        for position, (columns, counts) in zip(positions, answers, strict=True):
            left_out = left_out_columns(
                scan, number, self._queries[position], self._options[position]
            )
            if left_out is not None:
                mask = ~left_out[columns]
                columns, counts = columns[mask], counts[mask]
            self._rankings[position].add(number, scan.names(number), columns, counts)

    def results(self) -> Iterator[tuple[int, tuple[list[Hit], SearchStats]]]:
        """Yield the positions of the query columns, and their hits and counters.

        The counters are those of the pass as a whole.
        """
        self._shared.add(self._ahead)
        for query, chosen, ranking in zip(
            self._queries, self._options, self._rankings, strict=True
        ):
            if query.judged is not None:
                add_judged(self._scan, query, chosen, ranking, self._shared)
        for position, ranking, skipped in zip(
            self._batch.positions, self._rankings, self._skipped, strict=True
        ):
            seconds = dict(self._shared.seconds)
            stats = replace(self._shared, seconds=seconds, partitions_skipped=skipped)
            yield position, (ranking.hits(), stats)

    def _needed(self, position: int) -> int:
        return max(self._goals[position].min_count, self._rankings[position].floor)

    def _max_counts(self, outlook: Probe) -> tuple[int, ...]:
        reaching = outlook.reaching(self.n_values)
        return tuple(
            int(weights[reaching[members]].sum())
            for members, weights in zip(self._batch.members, self._weights, strict=True)
        )

    def _wanted(self, probed: ProbeResult) -> list[int]:
        counts = probed.max_counts
        return [
            position
            for position in range(len(self._weights))
            if not counts or counts[position] >= self._needed(position)
        ]

    def _values_of(
        self, positions: list[int], probed: ProbeResult
    ) -> tuple[Vectors, list[BatchColumn]]:
        """Return the values of some query columns that may match, and these columns over them."""
        members, weights = self._batch.members, self._weights
        columns = [
            BatchColumn(members[position], weights[position], self._needed(position))
            for position in positions
        ]
        if probed.outlook is None:
            return self._vectors, columns
        reaching = probed.outlook.reaching(self.n_values)
        if bool(reaching.all()) and len(positions) == len(weights):
            return self._vectors, columns
        masks = [reaching[column.members] for column in columns]
        columns = [
            replace(column, members=column.members[some], weights=column.weights[some])
            for column, some in zip(columns, masks, strict=True)
        ]
        used, places = np.unique(
            np.concatenate([column.members for column in columns]), return_inverse=True
        )
        parts = np.split(places, np.cumsum([len(column.members) for column in columns])[:-1])
        return self._vectors[used], [
            replace(column, members=part) for column, part in zip(columns, parts, strict=True)
        ]


def passes_of(
    scan: PartitionLoader, queries: Sequence[EncodedQuery], options: Sequence[SearchOptions]
) -> list[SingleQueryPass | SharedPass]:
    """Group the queries that can share a pass, those that compare values within one distance.

    Queries that would be alone in their batch, those whose counts need not be exact, and those by
    brute force have passes of their own, which prune more.
    """
    alike: dict[tuple[object, ...], list[int]] = {}
    for position, chosen in enumerate(options):
        if len(queries) > 1 and not chosen.exact and chosen.counts == "exact":
            key = (chosen.max_distance, frozenset(chosen.lemmas))
            alike.setdefault(key, []).append(position)
    groups = [run for positions in alike.values() for run in _runs(queries, positions)]
    batches = [_batch(scan.space, queries, run) for run in groups if len(run) > 1]
    shared = {position for batch in batches for position in batch.positions}
    alone = [position for position in range(len(queries)) if position not in shared]
    return [
        *(SharedPass(scan, batch, queries, options) for batch in batches),
        *(SingleQueryPass(scan, at, queries[at], options[at]) for at in alone),
    ]


def _runs(queries: Sequence[EncodedQuery], positions: Sequence[int]) -> list[list[int]]:
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
    """Return the distinct values of several queries; equal texts have equal vectors."""
    texts = [queries[position].values for position in positions]
    encoded = pa.chunked_array(texts).combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    every = space.concatenate([queries[position].vectors for position in positions])
    return Batch(positions, every[first], np.split(codes, np.cumsum([*map(len, texts)])[:-1]))


def goal_of(total: int, options: SearchOptions) -> Goal:
    needed = 1 if options.min_joinability is None else count_needed(options.min_joinability, total)
    decide = options.counts == "decide"
    lemmas = frozenset(map(Lemma, options.lemmas))
    return Goal(options.max_distance, needed, options.k, decide, lemmas)


def left_out_columns(
    scan: PartitionLoader, number: int, query: EncodedQuery, options: SearchOptions
) -> np.ndarray | None:
    """Mark columns that are deleted, of the excluded table, or counted by `add_judged`."""
    left_out = scan.deleted_mask(number)
    if options.exclude_table is not None:
        tables = scan.names(number).sound_tables
        same = pc.equal(tables, options.exclude_table).to_numpy(zero_copy_only=False)
        left_out = same if left_out is None else same | left_out
    if query.judged is not None:
        is_judged = np.zeros(len(scan.names(number).ids), bool)
        is_judged[np.concatenate(judged_columns(scan, number, query))] = True
        left_out = is_judged if left_out is None else is_judged | left_out
    return left_out


def add_judged(
    scan: PartitionLoader,
    query: EncodedQuery,
    options: SearchOptions,
    ranking: Ranking,
    stats: SearchStats,
) -> None:
    """Add the columns of which values were judged, counted one by one, to what a search found."""
    goal = goal_of(query.total(options), options)
    for number in range(scan.n_partitions):
        _, positions = judged_columns(scan, number, query)
        left_out = left_out_columns(scan, number, replace(query, judged=None), options)
        if left_out is not None:
            positions = positions[~left_out[positions]]
        counts = judged_counts(scan, number, query, positions, options, stats)
        enough = counts >= goal.min_count
        ranking.add(number, scan.names(number), positions[enough], counts[enough])
