"""The kernel for the CPU: loops compiled by numba, run by as many threads as torch would use."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch

from pexeso.engine.interface import Counts, Groups, Kernel, Limits, Pairs, Query, Threshold
from pexeso.engine.kernels.numba import counts as loops
from pexeso.engine.kernels.numba.walks import count_blocks, group_by_query, mark_boxes, walk
from pexeso.engine.layout.blocks import pad_axes
from pexeso.engine.layout.maps import ProjectionMap, square_with_room
from pexeso.engine.layout.partition import Partition
from pexeso.engine.lemmas import Lemma
from pexeso.engine.precision import difference_band
from pexeso.engine.stats import SearchStats
from pexeso.engine.threads import available_threads
from pexeso.errors import IndexCorruptError

_METRICS = {
    "euclidean": 0,
    "angular": 0,
    "manhattan": loops.MANHATTAN,
    "chebyshev": loops.CHEBYSHEV,
}

_TESTS_A_TASK = 1 << 14
"""(query value, box) tests that are worth a thread of their own."""

_PAIRS_A_TASK = 1 << 12

_BYTES_A_COLUMN = 21
_MAX_KEPT_BYTES = 1 << 26
_MAX_KEPT_SIZES = 8
_MARKS_FOR_REUSE = 1 << 30


class CompiledKernel(Kernel):
    """Compiled loops; see `pexeso.engine.interface`.

    The first use in a process loads the compiled code from a cache, or compiles it (some seconds,
    once for an installation).
    """

    name = "compiled"
    brings_threads = True

    def __init__(self) -> None:
        self._scratch = _Scratch()

    def release(self, counts: Counts) -> None:
        """Keep the arrays for the next search."""
        self._scratch.give_back(counts)

    def candidates(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        max_pairs: int,
        stats: SearchStats,
    ) -> Pairs | None:
        """Walk the boxes; runs of groups of one level are shared out among the threads."""
        blocks = partition.blocks
        arguments = _walk_arguments(partition, query, threshold)
        level, n_groups = _level_to_share(blocks.starts, len(query))
        runs = _runs(n_groups, _n_tasks(len(query) * len(blocks) // 4, _TESTS_A_TASK))
        # A walk stops while a whole block still fits; a single query value always fits.
        room = (max_pairs // len(runs) if len(query) > 1 else blocks.n_rows) + blocks.size
        work = np.zeros((len(runs), 5), np.int64)

        def task(number: int) -> tuple[np.ndarray, np.ndarray] | None:
            # Mostly room that is never touched. numpy would ask the system for huge pages, and the
            # first pair found would have 2 MiB filled with zeros.
            queries, rows = torch.empty((2, room), dtype=torch.int32).numpy()
            n_found = walk(*arguments, level, *runs[number], queries, rows, work[number])
            return None if n_found < 0 else (queries[:n_found], rows[:n_found])

        parts = _run([task] * len(runs))
        stats.box_pairs, stats.candidate_pairs = (
            stats.box_pairs + int(work[:, 0].sum()),
            stats.candidate_pairs + int(work[:, 1].sum()),
        )
        stats.vectors_touched += int(work[:, 2].sum())
        stats.bytes_read += int(work[:, 3].sum())
        stats.matched_by_map += int(work[:, 4].sum())
        if any(part is None for part in parts):
            return None
        queries = np.concatenate([part[0] for part in parts])
        rows = np.concatenate([part[1] for part in parts])
        stats.candidates += len(rows)
        offsets, grouped = group_by_query(queries, rows, len(query))
        return Pairs(torch.from_numpy(offsets), torch.from_numpy(grouped))

    def blocks_reached(
        self, partition: Partition, query: Query, threshold: Threshold, stats: SearchStats
    ) -> torch.Tensor:
        """Count groups of blocks by their boxes, a run of query values in each thread."""
        arguments = _walk_arguments(partition, query, threshold)
        points, limits, euclidean, boxes, starts = (
            arguments[position] for position in (0, 3, 5, 6, 7)
        )
        counts = np.zeros(len(query), np.int64)
        runs = _runs(len(query), _n_tasks(len(query) * len(partition.blocks) // 4, _TESTS_A_TASK))

        def task(number: int) -> int:
            return count_blocks(points, *runs[number], limits, euclidean, boxes, starts, counts)

        stats.box_pairs += sum(_run([task] * len(runs)))
        return torch.from_numpy(counts)

    def boxes_marked(
        self, partition: Partition, query: Query, threshold: Threshold, level: int
    ) -> torch.Tensor:
        """Mark boxes in one thread: what it is for, reading ahead, waits for a disk."""
        arguments = _walk_arguments(partition, query, threshold)
        points, limits, euclidean, boxes, starts = (
            arguments[position] for position in (0, 3, 5, 6, 7)
        )
        n_blocks = len(partition.blocks)
        n_boxes = (
            n_blocks if level == len(starts) - 2 else int(starts[level + 2] - starts[level + 1])
        )
        marks = np.zeros(n_boxes, np.uint8)
        mark_boxes(points, limits, euclidean, boxes, starts, n_blocks, level, marks)
        return torch.from_numpy(np.flatnonzero(marks))

    def count(
        self,
        partition: Partition,
        pairs: Pairs,
        members: torch.Tensor,
        weights: torch.Tensor,
        counts: Counts | None,
    ) -> Counts:
        """Count the columns of the candidates.

        New arrays are untouched zero pages, so that columns without a candidate cost nothing.
        """
        if counts is None:
            counts = self._scratch.take(partition.n_columns)
        csr = _columns_of(partition)
        lists = (pairs.offsets.numpy(), pairs.rows.numpy())
        room = min(partition.n_columns, loops.count_pairs(*lists, *csr, members.numpy()))
        touched = np.empty(room, np.int32)
        n_touched = loops.count_columns(
            members.numpy(),
            weights.numpy(),
            *lists,
            *csr,
            counts.take_marks(len(members)),
            counts.last,
            counts.seen,
            counts.possible.numpy(),
            touched,
        )
        new = torch.from_numpy(touched[:n_touched].astype(np.int64))
        counts.touched = torch.cat([counts.touched, new])
        return counts

    def verify(
        self,
        partition: Partition,
        query: Query,
        pairs: Pairs,
        members: torch.Tensor,
        threshold: Threshold,
        counts: Counts,
        limits: Limits,
        stats: SearchStats,
    ) -> None:
        """Decide in parallel, then settle."""
        states = self._decide(partition, query, pairs, members, threshold, counts, limits, stats)
        loops.settle(
            members.numpy(),
            query.weights[members].numpy(),
            pairs.offsets.numpy(),
            pairs.rows.numpy(),
            states,
            *_columns_of(partition),
            counts.take_marks(2 * len(members)),
            counts.last,
            counts.possible.numpy(),
            counts.matched.numpy(),
        )

    def matches(
        self,
        partition: Partition,
        query: Query,
        pairs: Pairs,
        threshold: Threshold,
        stats: SearchStats,
    ) -> Pairs:
        """Decide all pairs."""
        states = self._decide(
            partition, query, pairs, torch.arange(len(query)), threshold, None, Limits(0, 0), stats
        )
        offsets, rows = loops.keep_matches(pairs.offsets.numpy(), pairs.rows.numpy(), states)
        return Pairs(torch.from_numpy(offsets), torch.from_numpy(rows))

    def count_batch(
        self, partition: Partition, matches: Pairs, groups: Groups
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Count query column by query column, runs of them side by side."""
        csr = _columns_of(partition)
        lists = (matches.offsets.numpy(), matches.rows.numpy())
        room = min(
            partition.n_columns,
            loops.count_pairs(*lists, *csr, np.arange(len(matches.offsets) - 1)),
        )
        runs = _runs(len(groups.needed), _n_tasks(len(matches), _PAIRS_A_TASK, a_thread=1))

        def task(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            last, counts = (
                np.zeros(partition.n_columns, np.int32),
                np.zeros(partition.n_columns, np.int64),
            )
            return loops.count_batch(
                *runs[number],
                groups.offsets.numpy(),
                groups.members.numpy(),
                groups.weights.numpy(),
                groups.needed.numpy(),
                *lists,
                *csr,
                last,
                counts,
                room,
            )

        parts = zip(*_run([task] * len(runs)), strict=True)
        which, column, count = (torch.from_numpy(np.concatenate(part)) for part in parts)
        return which, column, count

    def _decide(
        self,
        partition: Partition,
        query: Query,
        pairs: Pairs,
        members: torch.Tensor,
        threshold: Threshold,
        counts: Counts | None,
        limits: Limits,
        stats: SearchStats,
    ) -> np.ndarray:
        if (
            query.vectors.shape[1] != partition.dimensions
        ):  # loops read as many entries of one as of the other
            raise IndexCorruptError(
                f"The vectors of a partition have {partition.dimensions} dimensions, and those "
                f"of the query {query.vectors.shape[1]}: "
                "the model of the index is not the one that it was built with, or a file was "
                "changed. 'pexeso check' tells more."
            )
        band = difference_band(partition.metric, threshold.tau, partition.dimensions)
        states = np.zeros(len(pairs), np.uint8)
        check = counts is not None
        known = counts if check else _Counts(0)
        ends = torch.cumsum(pairs.sizes[members], 0).numpy()
        runs = _runs_by_work(ends, _n_tasks(int(ends[-1]) if len(ends) else 0, _PAIRS_A_TASK))
        work = np.zeros((len(runs), 4), np.int64)

        def task(number: int) -> None:
            loops.decide(
                *runs[number],
                members.numpy(),
                pairs.offsets.numpy(),
                pairs.rows.numpy(),
                query.vectors.numpy(),
                _stored_vectors(partition),
                _METRICS[partition.metric.name],
                threshold.tau,
                band.surely,
                band.possibly,
                check,
                *_columns_of(partition),
                known.possible.numpy(),
                known.matched.numpy(),
                limits.needed,
                limits.enough,
                states,
                work[number],
            )

        _run([task] * len(runs))
        distances, defining, _, skipped = work.sum(0).tolist()
        stats.distances += distances
        stats.defining_distances += defining
        stats.pairs_skipped += skipped
        stats.bytes_read += distances * partition.vector_bytes
        return states


class _Counts(Counts):
    """Counts with the scratch arrays of the loops.

    The arrays are the last mark of each column, and which columns were touched.
    """

    def __init__(self, n_columns: int) -> None:
        # numpy's zeros are pages that the system fills when they are first touched.
        possible, matched = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
        super().__init__(
            torch.from_numpy(possible), torch.from_numpy(matched), torch.zeros(0, dtype=torch.int64)
        )
        self.last = np.zeros(n_columns, np.int32)
        self.seen = np.zeros(n_columns, np.bool_)
        self._next_mark = 1

    def empty(self) -> bool:
        """Forget everything; False when the marks are nearly used up."""
        self.possible[self.touched] = 0
        self.matched[self.touched] = 0
        self.seen[self.touched.numpy()] = False
        self.touched = self.touched[:0].clone()
        return self._next_mark < _MARKS_FOR_REUSE

    def take_marks(self, n_marks: int) -> int:
        """Return the first of marks that were never used before."""
        first = self._next_mark
        self._next_mark += n_marks
        return first


class _Scratch:
    """Pool of emptied counts for reuse.

    The system need not fill pages that are already there with zeros once more.
    """

    def __init__(self) -> None:
        self._kept: dict[int, list[_Counts]] = {}
        self._lock = threading.Lock()

    def take(self, n_columns: int) -> _Counts:
        """Return empty counts."""
        with self._lock:
            pool = self._kept.get(n_columns)
            return pool.pop() if pool else _Counts(n_columns)

    def give_back(self, counts: _Counts) -> None:
        """Empty the counts, and keep them if they are small and no more are kept than threads."""
        n_columns = len(counts.possible)
        if n_columns * _BYTES_A_COLUMN > _MAX_KEPT_BYTES or not counts.empty():
            return
        with self._lock:
            if n_columns not in self._kept and len(self._kept) >= _MAX_KEPT_SIZES:
                self._kept.clear()
            pool = self._kept.setdefault(n_columns, [])
            if len(pool) < available_threads():
                pool.append(counts)


def _stored_vectors(partition: Partition) -> np.ndarray:
    """Return the vectors as loops take them: float32, or the bits of float16."""
    vectors = partition.vectors.numpy()
    return vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors


def _columns_of(partition: Partition) -> tuple[np.ndarray, np.ndarray]:
    return partition.value_columns.offsets.numpy(), partition.value_columns.members.numpy()


def _walk_arguments(partition: Partition, query: Query, threshold: Threshold) -> tuple[object, ...]:
    blocks = partition.blocks
    euclidean = isinstance(partition.map, ProjectionMap)
    points = pad_axes(query.mapped)
    accept = threshold.tau - threshold.slack
    reaches = [
        threshold.reach(lemma)
        for lemma in (Lemma.CELL_CELL_FILTERING, Lemma.VECTOR_CELL_FILTERING, Lemma.PIVOT_FILTERING)
    ]
    squares = [square_with_room(reach) if euclidean else reach for reach in reaches]
    limits = np.array([*squares, reaches[-1] * (1.0 + 2.0**-16)], np.float32)
    turned, may_accept = points, np.zeros(len(query), np.bool_)
    if threshold.lemmas & {
        Lemma.PIVOT_MATCHING,
        Lemma.VECTOR_CELL_MATCHING,
        Lemma.CELL_CELL_MATCHING,
    }:
        turned, may_accept = partition.map.upper_points(query.mapped, accept)
        turned, may_accept = pad_axes(turned, partition.map.upper_fill), may_accept.numpy()
    return (
        points.numpy(),
        turned.numpy(),
        may_accept,
        limits,
        np.float32(max(accept, 0.0) ** 2 * (1 - 2.0**-16) if euclidean else accept),
        euclidean,
        blocks.boxes.numpy(),
        blocks.starts.numpy(),
        blocks.codes.numpy(),
        blocks.n_rows,
    )


def _level_to_share(starts: torch.Tensor, n_queries: int) -> tuple[int, int]:
    """Return the coarsest level with a few groups for each thread, and its number of groups."""
    sizes = (starts[1:] - starts[:-1]).tolist()
    min_size = 1 if available_threads() == 1 else 4 * available_threads()
    for level, size in enumerate(sizes):
        if size >= min_size:
            return level, size
    return len(sizes) - 1, sizes[-1]


def _n_tasks(amount: int, a_task: int, a_thread: int = 4) -> int:
    """Return how many tasks an amount of work is worth."""
    threads = available_threads()
    return 1 if threads == 1 else max(1, min(amount // a_task, a_thread * threads))


def _runs(n: int, n_runs: int) -> list[tuple[int, int]]:
    """Cut ``range(n)`` into runs of about equal length."""
    bounds = [n * number // n_runs for number in range(n_runs + 1)]
    return [(begin, end) for begin, end in itertools.pairwise(bounds) if begin < end] or [(0, n)]


def _runs_by_work(ends: np.ndarray, n_runs: int) -> list[tuple[int, int]]:
    """Cut members into runs of about equal work; `ends` is the running sum of their work."""
    if n_runs <= 1 or not len(ends):
        return [(0, len(ends))]
    targets = ends[-1] * np.arange(1, n_runs) / n_runs
    bounds = [0, *np.unique(np.searchsorted(ends, targets) + 1).tolist(), len(ends)]
    return [(begin, end) for begin, end in itertools.pairwise(bounds) if begin < end]


def _run(tasks: Sequence[Callable[[int], object]]) -> list:
    if len(tasks) == 1:
        return [tasks[0](0)]
    return list(
        _pool(available_threads()).map(lambda number: tasks[number](number), range(len(tasks)))
    )


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="pexeso")
