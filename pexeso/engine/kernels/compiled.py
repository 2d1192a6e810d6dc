"""The kernel for the CPU: compiled loops, run by as many threads as torch would use."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch

from pexeso.engine.arrays import available_threads
from pexeso.engine.blocks import pad_axes
from pexeso.engine.kernel import Counts, Groups, Kernel, Limits, Pairs, Query
from pexeso.engine.maps import ProjectionMap, square_with_room
from pexeso.engine.metrics import difference_band
from pexeso.engine.partition import Partition, fetch_columns
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MATCHING_LEMMAS, Lemma
from pexeso.errors import IndexCorruptError
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.engine.kernels.loops")

Result = TypeVar("Result")

_TESTS_A_TASK = 1 << 14  # (query value, box) tests that are worth a thread of their own
_PAIRS_A_TASK = 1 << 12

_ROWS_A_TASK = 1 << 17

_BYTES_A_COLUMN = 21
_MAX_KEPT_BYTES = 1 << 26
_MAX_KEPT_SIZES = 8
_MARKS_FOR_REUSE = 1 << 30


class CompiledKernel(Kernel):
    name = "compiled"
    brings_threads = True

    def __init__(self) -> None:
        self._scratch = _Scratch()

    def release(self, counts: Counts) -> None:
        self._scratch.give_back(counts)

    def candidates(self, query: Query, max_pairs: int, stats: SearchStats) -> Pairs | None:
        blocks, view = query.partition.blocks, _walk_view(query)
        level, n_groups = _level_to_share(blocks.starts)
        runs = _runs(n_groups, _n_tasks(len(query) * len(blocks) // 4, _TESTS_A_TASK))
        # A walk stops while a whole block still fits; a single query value always fits.
        room = (max_pairs // len(runs) if len(query) > 1 else blocks.n_rows) + blocks.size
        work = np.zeros((len(runs), 5), np.int64)

        def task(number: int) -> np.ndarray | None:
            # Mostly room that is never touched. numpy would ask the system for huge pages, and the
            # first pair found would have 2 MiB filled with zeros.
            pairs = torch.empty((2, room), dtype=torch.int32).numpy()
            n_found = loops.walk(view, level, *runs[number], pairs, work[number])
            return None if n_found < 0 else pairs[:, :n_found]

        parts = _run(task, len(runs))
        box_pairs, candidate_pairs, vectors_touched, bytes_read, matched = work.sum(0).tolist()
        stats.box_pairs += box_pairs
        stats.candidate_pairs += candidate_pairs
        stats.vectors_touched += vectors_touched
        stats.bytes_read += bytes_read
        stats.matched_by_map += matched
        if any(part is None for part in parts):
            return None
        queries, rows = np.concatenate(parts, axis=1)
        stats.candidates += len(rows)
        offsets, grouped = loops.group_by_query(queries, rows, len(query))
        return Pairs(torch.from_numpy(offsets), torch.from_numpy(grouped))

    def blocks_reached(self, query: Query, stats: SearchStats) -> torch.Tensor:
        view, n_blocks = _walk_view(query), len(query.partition.blocks)
        counts = np.zeros(len(query), np.int64)
        runs = _runs(len(query), _n_tasks(len(query) * n_blocks // 4, _TESTS_A_TASK))
        n_tested = _run(lambda number: loops.count_boxes(view, *runs[number], counts), len(runs))
        stats.box_pairs += sum(n_tested)
        return torch.from_numpy(counts)

    def boxes_marked(self, query: Query, level: int) -> torch.Tensor:
        view, blocks = _walk_view(query), query.partition.blocks
        starts, n_boxes = blocks.starts, len(blocks)
        if level < len(starts) - 2:
            n_boxes = int(starts[level + 2] - starts[level + 1])
        marks = np.zeros(n_boxes, np.uint8)
        loops.mark_boxes(view, level, marks)
        return torch.from_numpy(np.flatnonzero(marks))

    def count(self, query: Query, pairs: Pairs, counts: Counts | None) -> Counts:
        """Count the columns of the candidates.

        New arrays are untouched zero pages, so that columns without a candidate cost nothing.
        """
        n_columns, every = query.partition.n_columns, np.arange(len(query))
        if counts is None:
            counts = self._scratch.take(n_columns)
        lists = _lists(query.partition, pairs)
        touched = np.empty(min(n_columns, loops.count_pairs(lists, every)), np.int32)
        n_touched = loops.count_columns(
            every, query.weights.numpy(), lists, counts.take_marks(len(every)), counts.last,
            counts.seen, counts.possible.numpy(), touched,
        )  # fmt: skip
        new = torch.from_numpy(touched[:n_touched].astype(np.int64))
        counts.touched = torch.cat([counts.touched, new])
        return counts

    def verify(
        self,
        query: Query,
        pairs: Pairs,
        members: torch.Tensor,
        counts: Counts,
        limits: Limits,
        stats: SearchStats,
    ) -> None:
        states = self._decide(query, pairs, members, counts, limits, stats)
        loops.settle(
            members.numpy(), query.weights[members].numpy(), _lists(query.partition, pairs), states,
            counts.take_marks(2 * len(members)), counts.last, counts.possible.numpy(),
            counts.matched.numpy(),
        )  # fmt: skip

    def matches(self, query: Query, pairs: Pairs, stats: SearchStats) -> Pairs:
        every = torch.arange(len(query))
        states = self._decide(query, pairs, every, None, Limits(0, 0), stats)
        offsets, rows = loops.keep_matches(pairs.offsets.numpy(), pairs.rows.numpy(), states)
        return Pairs(torch.from_numpy(offsets), torch.from_numpy(rows))

    def count_batch(
        self, partition: Partition, matches: Pairs, groups: Groups
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        lists = _lists(partition, matches)
        every = np.arange(len(matches.offsets) - 1)
        room = min(partition.n_columns, loops.count_pairs(lists, every))
        runs = _runs(len(groups.needed), _n_tasks(len(matches), _PAIRS_A_TASK, a_thread=1))
        columns = [
            array.numpy()
            for array in (groups.offsets, groups.members, groups.weights, groups.needed)
        ]

        def task(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            last = np.zeros(partition.n_columns, np.int32)
            counts = np.zeros(partition.n_columns, np.int64)
            return loops.count_batch(*runs[number], *columns, lists, last, counts, room)

        parts = zip(*_run(task, len(runs)), strict=True)
        which, column, count = (torch.from_numpy(np.concatenate(part)) for part in parts)
        return which, column, count

    def _decide(
        self,
        query: Query,
        pairs: Pairs,
        members: torch.Tensor,
        counts: Counts | None,
        limits: Limits,
        stats: SearchStats,
    ) -> np.ndarray:
        partition, tau = query.partition, query.threshold.tau
        band = difference_band(tau, partition.dimensions)
        states = np.zeros(len(pairs), np.uint8)
        known = _Counts(0) if counts is None else counts
        ends = torch.cumsum(pairs.sizes[members], 0).numpy()
        runs = _runs_by_work(ends, _n_tasks(int(ends[-1]) if len(ends) else 0, _PAIRS_A_TASK))
        work = np.zeros((len(runs), 4), np.int64)
        vectors = _stored(partition, query.vectors)
        lists, query_vectors = _lists(partition, pairs), query.vectors.contiguous().numpy()

        def task(number: int) -> None:
            loops.decide(
                *runs[number], members.numpy(), lists, query_vectors, vectors,
                tau, band.surely, band.possibly, counts is not None,
                known.possible.numpy(), known.matched.numpy(), limits.needed, limits.enough,
                states, work[number],
            )  # fmt: skip

        _run(task, len(runs))
        distances, defining, _, skipped = work.sum(0).tolist()
        stats.distances += distances
        stats.defining_distances += defining
        stats.pairs_skipped += skipped
        stats.bytes_read += distances * partition.vector_bytes
        return states


class _Counts(Counts):
    """Counts with the last mark of each column, and which columns were touched."""

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
        first = self._next_mark
        self._next_mark += n_marks
        return first


class _Scratch:
    """Pool of emptied counts: pages that exist need not be filled with zeros once more."""

    def __init__(self) -> None:
        self._kept: dict[int, list[_Counts]] = {}
        self._lock = threading.Lock()

    def take(self, n_columns: int) -> _Counts:
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


def order_by_splits(mapped: torch.Tensor, block_size: int) -> torch.Tensor:
    """Order rows as `pexeso.engine.blocks.order_by_splits` does, in threads."""
    rows = mapped.contiguous().numpy()
    n, threads = len(rows), available_threads()
    order, other, keys = np.arange(n), np.empty(n, np.int64), np.empty(n, np.float32)
    segments = [(0, n)]
    while len(segments) < 4 * threads and n > _ROWS_A_TASK and threads > 1:
        halves = []
        for begin, end in segments:
            middle = loops.split(rows, order, begin, end, block_size, keys, other)
            halves += [(begin, middle), (middle, end)] if middle < end else [(begin, end)]
        if len(halves) == len(segments):
            break
        segments = halves

    def task(number: int) -> None:
        loops.split_all(rows, order, *segments[number], block_size, keys, other)

    _run(task, len(segments))
    return torch.from_numpy(order)


def nearest_in_columns(
    partition: Partition, vectors: torch.Tensor, columns: np.ndarray, tau: float, stats: SearchStats
) -> np.ndarray:
    """Return the distance of each vector to the nearest value of each column, float64 (r, n).

    It is beyond tau where no value is within it.
    """
    owner, posting = partition.column_lists.of(columns)
    members = partition.column_lists.members[posting]
    # A value that several columns have is compared once.
    order = np.argsort(members, kind="stable")
    owner, members = owner[order], members[order]
    starts = np.flatnonzero(np.append(True, members[1:] != members[:-1])[: len(members)])
    rows, offsets = members[starts].astype(np.int64), np.append(starts, len(members))
    fetch_columns(partition, torch.from_numpy(rows))
    nearest = np.full((len(vectors), len(columns)), np.nextafter(tau, np.inf))
    bands = [difference_band(limit, partition.dimensions).possibly for limit in (1.0, 0.0)]
    runs = _runs(len(vectors), _n_tasks(len(vectors) * len(rows), _PAIRS_A_TASK))
    work = np.zeros((len(runs), 2), np.int64)
    query_vectors, stored = vectors.contiguous().numpy(), _stored(partition, vectors)

    def task(number: int) -> None:
        loops.lower_to_nearest(
            *runs[number], rows, offsets, owner, query_vectors, stored, *bands, nearest,
            work[number],
        )  # fmt: skip

    _run(task, len(runs))
    distances, defining = work.sum(0).tolist()
    stats.distances += distances
    stats.defining_distances += defining
    return nearest.T


def _stored(partition: Partition, query_vectors: torch.Tensor) -> np.ndarray:
    """Return the stored vectors as loops take them: the bits of halves as whole numbers."""
    # Loops read as many entries of one as of the other.
    if query_vectors.shape[1] != partition.dimensions:
        raise IndexCorruptError(
            f"The vectors of a partition have {partition.dimensions} dimensions, and those "
            f"of the query {query_vectors.shape[1]}: "
            "the model of the index is not the one that it was built with, or a file was "
            "changed. 'pexeso check' tells more."
        )
    vectors = partition.vectors.numpy()
    return vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors


def _lists(partition: Partition, pairs: Pairs) -> Any:
    csr = partition.value_columns
    arrays = (pairs.offsets, pairs.rows, csr.offsets, csr.members)
    return loops.PairLists(*(array.numpy() for array in arrays))


def _walk_view(query: Query) -> Any:
    partition, threshold = query.partition, query.threshold
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
    if threshold.lemmas & MATCHING_LEMMAS:
        turned, able = partition.map.upper_points(query.mapped, accept)
        turned, may_accept = pad_axes(turned, partition.map.upper_fill), able.numpy()
    accept_limit = max(accept, 0.0) ** 2 * (1 - 2.0**-16) if euclidean else accept
    return loops.WalkView(
        points.numpy(), turned.numpy(), may_accept, limits, accept_limit, euclidean,
        blocks.boxes.numpy(), blocks.starts.numpy(), blocks.codes.numpy(), blocks.n_rows,
    )  # fmt: skip


def _level_to_share(starts: torch.Tensor) -> tuple[int, int]:
    """Return the coarsest level with a few groups for each thread, and its number of groups."""
    sizes = (starts[1:] - starts[:-1]).tolist()
    min_size = 1 if available_threads() == 1 else 4 * available_threads()
    for level, size in enumerate(sizes):
        if size >= min_size:
            return level, size
    return len(sizes) - 1, sizes[-1]


def _n_tasks(amount: int, a_task: int, a_thread: int = 4) -> int:
    threads = available_threads()
    return 1 if threads == 1 else max(1, min(amount // a_task, a_thread * threads))


def _runs(n: int, n_runs: int) -> list[tuple[int, int]]:
    bounds = [n * number // n_runs for number in range(n_runs + 1)]
    return [(begin, end) for begin, end in itertools.pairwise(bounds) if begin < end] or [(0, n)]


def _runs_by_work(ends: np.ndarray, n_runs: int) -> list[tuple[int, int]]:
    """Cut members into runs of about equal work; `ends` is the running sum of their work."""
    if n_runs <= 1 or not len(ends):
        return [(0, len(ends))]
    targets = ends[-1] * np.arange(1, n_runs) / n_runs
    bounds = [0, *np.unique(np.searchsorted(ends, targets) + 1).tolist(), len(ends)]
    return [(begin, end) for begin, end in itertools.pairwise(bounds) if begin < end]


def _run(task: Callable[[int], Result], n_tasks: int) -> list[Result]:
    if n_tasks == 1:
        return [task(0)]
    return list(_pool(available_threads()).map(task, range(n_tasks)))


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="pexeso")
