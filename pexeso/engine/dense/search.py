"""Threshold and top-k search over one partition, for one query column or many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch

from pexeso.engine.arrays import few_threads
from pexeso.engine.dense.oracle import oracle_counts, oracle_pairs
from pexeso.engine.dense.prefixes import (
    PartitionProbe,
    compare_with_columns,
    few_values,
    prefixes_multiplied,
    prefixes_of,
    prepare_query,
    threshold_of,
)
from pexeso.engine.dense.products import product_candidates, products_pay, walk_limit
from pexeso.engine.dense.verification import Verifier
from pexeso.engine.kernel import Groups, Kernel, Pairs, Query, Threshold
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.lists import offsets_of
from pexeso.engine.maps import check_vectors
from pexeso.engine.partition import Partition, fetch_cells
from pexeso.engine.published.grid import GridCells
from pexeso.engine.published.walk import grid_candidates
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, MAX_PAIRS, BatchColumn, Goal, Lemma, best_columns
from pexeso.errors import DeviceError

BatchQuery = BatchColumn

# Matches of a batch that may be held for each pair of the budget: 8 bytes each while they are put
# together, a third of what a pair takes.
_MATCHES_A_PAIR = 3

_SHRINK_BY = 4

Result = TypeVar("Result")

ColumnCounts = tuple[torch.Tensor, torch.Tensor]  # columns and their counts, int64 (r,) each


def vectors_of(
    vectors: torch.Tensor, queries: Sequence[BatchQuery]
) -> tuple[torch.Tensor, list[BatchQuery]]:
    used, members = np.unique(_joined(queries, "members"), return_inverse=True)
    ends = np.cumsum([len(query.members) for query in queries])[:-1]
    return vectors[torch.from_numpy(used)], [
        replace(query, members=part)
        for query, part in zip(queries, np.split(members, ends), strict=True)
    ]


def _joined(queries: Sequence[BatchQuery], name: str) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *(getattr(query, name) for query in queries)])


def cell_candidates(
    query: Query, kernel: Kernel, max_pairs: int, stats: SearchStats
) -> Iterator[tuple[slice, Pairs | None]]:
    """Yield runs of query values with the pairs that the cells leave; None where they are too many.

    The published grid is walked as the paper does it on the host alone; a device walks blocks.
    """
    cells = query.partition.cells
    walks = isinstance(cells, GridCells) and kernel.name != "triton"
    if not walks or cells.mapped.device.type != "cpu":
        yield slice(None), kernel.candidates(query, max_pairs, stats)
        return
    yield from grid_candidates(query, max_pairs, stats)


def batch_counts(
    partition: Partition,
    kernel: Kernel,
    queries: Sequence[BatchQuery],
    position: np.ndarray,
    matches: Pairs,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each query column's columns, ascending, and their counts, int64.

    `position` is where each value is among those that were searched, -1 for one that was not.
    """
    sizes = np.array([len(query.members) for query in queries], np.int64)
    members, weights = (_joined(queries, name) for name in ("members", "weights"))
    members = position[members]
    mask = (members >= 0) & (weights > 0)
    ends = offsets_of(mask)[offsets_of(sizes)]
    needed = np.array([query.min_count for query in queries], np.int64)
    weights = weights[mask]
    groups = Groups(
        *(
            torch.from_numpy(array).to(partition.device)
            for array in (ends, members[mask], weights, needed)
        )
    )
    which, column, count = kernel.count_batch(partition, matches, groups)
    # numpy sorts several times as fast as torch; a thousand query columns may have millions of
    # answers.
    if which.device.type == "cpu":
        order = torch.from_numpy(np.lexsort((column.numpy(), which.numpy())))
    else:
        order = torch.argsort(which * partition.n_columns + column)
    n_found = torch.bincount(which, minlength=len(queries))
    # What is counted fits in half the bytes, unless rows are counted by the milliard.
    is_short = int(weights.sum()) < 1 << 31 and partition.n_columns < 1 << 31
    both = torch.stack([column[order], count[order]])
    columns, counts = to_host(both.to(torch.int32 if is_short else torch.int64)).numpy()
    ends = np.cumsum(n_found.numpy(force=True)).tolist()
    return [
        (columns[begin:end], counts[begin:end])
        for begin, end in zip([0, *ends], ends, strict=False)
    ]


def to_host(numbers: torch.Tensor) -> torch.Tensor:
    """Return whole numbers on the CPU, int64.

    From a device they come through memory that it writes to by itself, at ten times the speed.
    """
    if numbers.device.type != "cuda":
        return numbers.cpu().long()
    staging = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
    staging.copy_(numbers, non_blocking=True)
    torch.cuda.current_stream(numbers.device).synchronize()
    return staging.to(torch.int64, copy=True)


def join_pairs(parts: Sequence[Pairs], n_queries: int, partition: Partition) -> Pairs:
    """Concatenate the pairs of consecutive runs of query values, perhaps none."""
    offsets = [
        torch.zeros(1 if parts else n_queries + 1, dtype=torch.int64, device=partition.device)
    ]
    for part in parts:
        offsets.append(part.offsets[1:] + offsets[-1][-1])
    nothing = torch.zeros(0, dtype=torch.int32, device=partition.device)
    return Pairs(torch.cat(offsets), torch.cat([nothing, *(part.rows for part in parts)]))


def search_partition(
    partition: Partition,
    vectors: torch.Tensor,
    weights: torch.Tensor,
    total: int,
    goal: Goal,
    stats: SearchStats,
    left_out: torch.Tensor | None = None,
    *,
    kernel: Kernel | None = None,
    max_pairs: int = MAX_PAIRS,
    outlook: PartitionProbe | None = None,
) -> ColumnCounts:
    """Find the joinable columns of one partition.

    Parameters
    ----------
    vectors : float32 (n, d)
        The distinct query values; zero vectors match nothing.
    weights : int64 (n,)
        How often each occurs.
    total : int
        |Q|, at least ``weights.sum()``.
    left_out : bool (C,), optional
        Columns that must not be found.
    max_pairs : int
        Most (query value, stored value) pairs held at a time; a query column with more candidates
        is taken in parts. A single query value may exceed it, up to the number of stored values.
        Where a device runs out of memory it is lowered. Walks of the published grid hold twice as
        many, since these take less than half the memory.
    outlook : PartitionProbe, optional
        What the partition's summary says of these values at this threshold.

    Returns
    -------
    columns : int64 (r,)
        Column numbers in the partition, ascending.
    counts : int64 (r,)
        Matching query rows per column, exact unless ``goal.decide``. With ``goal.k`` all columns
        that tie with the k-th are given: ranking over partitions is the caller's.
    """
    work = _Work.begun(partition, goal, stats, kernel, max_pairs)

    def attempt(work: _Work) -> ColumnCounts:
        return work.search(outlook or work.unseen(vectors, weights, total), left_out)

    return work.within_memory(attempt)


@dataclass(frozen=True)
class _Work:
    partition: Partition
    goal: Goal
    stats: SearchStats
    kernel: Kernel
    max_pairs: int

    @classmethod
    def begun(
        cls,
        partition: Partition,
        goal: Goal,
        stats: SearchStats,
        kernel: Kernel | None,
        max_pairs: int,
    ) -> _Work:
        stats.partitions += 1
        kernel = kernel or choose_kernel("auto", partition.device)
        return cls(partition, goal, stats, kernel, max_pairs)

    @property
    def threshold(self) -> Threshold:
        return threshold_of(self.partition, self.goal.max_distance, self.goal.lemmas)

    def unseen(self, vectors: torch.Tensor, weights: torch.Tensor, total: int) -> PartitionProbe:
        with self.stats.phase("map"):
            query = prepare_query(self.partition, vectors, weights, total, self.threshold)
            return PartitionProbe(*query, None)

    def search(self, outlook: PartitionProbe, left_out: torch.Tensor | None) -> ColumnCounts:
        query, goal = outlook.query.real(), self.goal
        with self.stats.phase("block"):
            hits = None
            if not outlook.by_steps:
                [hits] = self.kernel.search_all([query], goal.min_count, self.max_pairs, self.stats)
        if hits is not None:
            columns, counts = best_columns(
                *hits, goal, None if left_out is None else left_out.numpy(force=True)
            )
            return torch.from_numpy(columns), torch.from_numpy(counts)
        outlook = replace(outlook, query=query)
        verifier = Verifier(
            query,
            self.kernel,
            self.stats,
            min_count=goal.min_count,
            k=goal.k,
            decide=goal.decide and goal.k is None,
            left_out=left_out,
        )
        self._verify_in_prefixes(outlook, verifier)
        columns, counts = verifier.joinable_columns()
        verifier.close()
        return columns.cpu(), counts.cpu()

    def _verify_in_prefixes(self, outlook: PartitionProbe, verifier: Verifier) -> None:
        """Let query values walk until few columns are left, perhaps none.

        The other query values are compared with these columns alone.
        """
        stats = self.stats
        with stats.phase("block"):
            multiply = products_pay(outlook.query, self.kernel)
            if multiply:
                query, ends = prefixes_multiplied(outlook.query, self.goal.min_count)
            else:
                query, ends = walking_order(outlook, self.goal, self.kernel, stats)
        begin = 0
        for end in ends:
            walking, rest = query.take(slice(begin, end)), query.take(slice(end, None))
            for part, pairs in self.candidates(walking, multiply):
                with stats.phase("verify"):
                    verifier.add(part, pairs)
            begin = end
            if not len(rest):
                return
            with stats.phase("verify"):
                columns = verifier.alive()
                if not few_values(self.partition, columns, len(rest), multiplied=multiply):
                    continue
                for part, pairs in compare_with_columns(rest, columns, self.max_pairs, stats):
                    verifier.add(part, pairs)
                return

    def candidates(self, query: Query, multiply: bool) -> Iterator[tuple[Query, Pairs]]:
        """Yield runs of query values with their candidate pairs, by products or by a walk.

        A run with too many pairs is multiplied or halved.
        """
        partition, kernel, stats = self.partition, self.kernel, self.stats
        if multiply:
            yield from product_candidates(query, self.max_pairs, stats)
            return
        fetch_cells(query, kernel)
        todo = []
        if partition.n_values:
            size = kernel.max_queries or max(1, len(query))
            begins = reversed(range(0, len(query), size))
            todo = [(query.take(slice(begin, begin + size)), True) for begin in begins]
        while todo:
            part, limited = todo.pop()
            room = self.max_pairs if len(part) > 1 else max(self.max_pairs, partition.n_values)
            limit = walk_limit(part, kernel) if limited else None
            max_walk_pairs = room if limit is None else min(room, limit)
            runs = cell_candidates(part, kernel, max_walk_pairs, stats)
            for values, pairs in stats.timed("block", runs):
                run = part.take(values)
                if pairs is not None:
                    yield run, pairs
                elif limit is None or limit >= room:
                    half = len(run) // 2
                    todo += [
                        (run.take(slice(half, None)), limited),
                        (run.take(slice(None, half)), limited),
                    ]
                elif products_pay(run, kernel, begun=True):
                    yield from product_candidates(run, self.max_pairs, stats)
                else:
                    todo.append((run, False))

    def search_batch(
        self, vectors: torch.Tensor, queries: Sequence[BatchQuery]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Search all query columns in one pass, or in several where matches are too many."""
        answers = self._search_together(vectors, queries)
        if answers is not None:
            return answers
        if len(queries) == 1:
            # A single query column is counted part by part, and holds no matches.
            members, weights = map(torch.as_tensor, (queries[0].members, queries[0].weights))
            alone = replace(self, goal=replace(self.goal, min_count=queries[0].min_count))
            outlook = alone.unseen(vectors[members], weights, int(weights.sum()))
            columns, counts = alone.search(outlook, None)
            return [(columns.numpy(), counts.numpy())]
        half = len(queries) // 2
        return [
            answer
            for some in (queries[:half], queries[half:])
            for answer in self.search_batch(*vectors_of(vectors, some))
        ]

    def _search_together(
        self, vectors: torch.Tensor, queries: Sequence[BatchQuery]
    ) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Search all query columns in one pass; None when there are too many matches."""
        partition, kernel, stats = self.partition, self.kernel, self.stats
        with stats.phase("map"):
            query_vectors = vectors.to(partition.device)
            real = check_vectors(query_vectors)
            if len(real) < len(query_vectors):
                query_vectors = query_vectors[real]
            mapped = partition.map.map(query_vectors)
            ones = torch.ones(len(query_vectors), dtype=torch.int64, device=partition.device)
            query = Query(partition, self.threshold, query_vectors, mapped, ones, 0)
        position = np.full(len(vectors), -1)
        position[real.numpy(force=True)] = np.arange(len(real))
        matches: list[Pairs] = []
        with stats.phase("block"):
            multiply = products_pay(query, kernel)
        for part, pairs in self.candidates(query, multiply):
            with stats.phase("verify"):
                matches.append(kernel.matches(part, pairs, stats))
            # What a single part gave fits, as its candidates did.
            if (
                len(matches) > 1
                and sum(len(part_matches) for part_matches in matches)
                > _MATCHES_A_PAIR * self.max_pairs
            ):
                return None
        with stats.phase("verify"):
            joined = join_pairs(matches, len(query_vectors), partition)
            return batch_counts(partition, kernel, queries, position, joined)

    def within_memory(self, attempt: Callable[[_Work], Result]) -> Result:
        """Run a search, and retry it with a quarter of the pairs when a device is out of memory."""
        work = self
        while True:
            try:
                with few_threads() if self.kernel.brings_threads else nullcontext():
                    return attempt(work)
            except torch.OutOfMemoryError as error:
                reason = str(error).partition("\n")[0]
            # Outside of the handler, where the traceback keeps nothing alive any more that the
            # attempt held.
            self.kernel.forget()
            if self.partition.device.type == "cuda":
                torch.cuda.empty_cache()
            self.stats.times_out_of_memory += 1
            if work.max_pairs <= 1:
                raise DeviceError(
                    f"The device {self.partition.device} has not enough memory for a single "
                    "query value over "
                    f"{self.partition.n_values:,} stored values ({reason}). "
                    "Build the index with smaller partitions (--partition-bytes), or search on "
                    "the CPU (--device cpu)."
                )
            work = replace(work, max_pairs=work.max_pairs // _SHRINK_BY)


def walking_order(
    outlook: PartitionProbe, goal: Goal, kernel: Kernel, stats: SearchStats
) -> tuple[Query, list[int]]:
    """Return the query values in walking order, and the sizes of the prefixes; the last has all.

    With ``goal.k`` the count needed is that of the k-th column found in other partitions; while it
    is 1 all walk at once.
    """
    query = outlook.query
    if Lemma.COLUMN_PRUNING not in goal.lemmas or not query.partition.cells.has_summary:
        return query, [len(query)]
    return prefixes_of(outlook, goal.min_count, kernel, stats)


def search_batch_partition(
    partition: Partition,
    vectors: torch.Tensor,
    queries: Sequence[BatchQuery],
    max_distance: float,
    stats: SearchStats,
    *,
    lemmas: frozenset[Lemma] = ALL_LEMMAS,
    kernel: Kernel | None = None,
    max_pairs: int = MAX_PAIRS,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Find the joinable columns for many query columns in one pass.

    Each distinct value is compared once, whichever query columns hold it. Lemma 7 has no part in
    it: a pair serves many columns.

    Parameters
    ----------
    vectors : float32 (n, d)
        The distinct values of all query columns; zero vectors match nothing.
    max_pairs
        As in `search_partition`; besides, three times as many matches are held until they are
        counted. Where there are more, half of the query columns are searched after the other half.

    Returns
    -------
    list of (columns, counts)
        For each query column as `search_partition` returns them, counts exact.
    """
    goal = Goal(max_distance, lemmas=lemmas)
    work = _Work.begun(partition, goal, stats, kernel, max_pairs)
    return work.within_memory(lambda work: work.search_batch(vectors, queries))


def exact_partition(
    partition: Partition,
    vectors: torch.Tensor,
    weights: torch.Tensor,
    goal: Goal,
    left_out: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do as `search_partition` by brute force: the oracle."""
    tau = partition.metric.threshold(goal.max_distance)
    query, value, _ = oracle_pairs(vectors.to(partition.device), partition.vectors, tau)
    counts = oracle_counts(
        query, value, weights.to(partition.device), partition.column_values, partition.n_values
    )
    if left_out is not None:
        counts[left_out.to(counts.device)] = 0
    floor = goal.min_count
    if goal.k is not None and len(counts) >= goal.k:
        floor = max(floor, int(torch.sort(counts, descending=True).values[goal.k - 1]))
    columns = torch.nonzero(counts >= floor)[:, 0]
    return columns.cpu(), counts[columns].cpu()
