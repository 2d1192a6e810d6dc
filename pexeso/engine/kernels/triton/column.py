"""The whole search for one query column on CUDA.

Kernels are launched one after the other, with one wait for the device at the end. Launching them
takes the host several times as long as the device needs for what they do in a lake of some million
values. So the launches of a search that is asked again are recorded as a graph, which is started as
a whole: one for each partition, threshold and number of tiles of query values.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import torch

from pexeso.engine.kernel import Query, Threshold
from pexeso.engine.kernels.triton import counting
from pexeso.engine.kernels.triton.counting import add_weights, take_counts, words_of
from pexeso.engine.kernels.triton.lists import READ_AT_ONCE, Workspace, counting_grid
from pexeso.engine.kernels.triton.search import TILES, CandidateSearch, add_work, is_ordered
from pexeso.engine.kernels.triton.values import QueryPlaces
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS

# Recordings that a thread keeps, the last used ones; of more partitions than half as many, two for
# each. Each has room for its query column, seven bytes for each entry of its vectors (2 MB for
# 1,023 values of 300 dimensions), and what the driver takes for a graph.
MOST_RECORDINGS = 64

_FEW_PLACES, _COARSER = 256, 4  # from so many places on there are only multiples of so many tiles

# Programs that count, for each multiprocessor, and among how many the columns of a value are
# shared, for a single tile of query values and for more. Of the former few match as a rule, of
# which one may be in a hundred thousand columns.
COUNTING_PROGRAMS = ((1, 32), (8, 2))

ColumnCounts = tuple[np.ndarray, np.ndarray]


class ColumnSearch:
    """Searches one partition for a query column, counting included.

    min_count: int64 (1,), on the device, as the values are.
    """

    def __init__(
        self,
        partition: Partition,
        query: Query | QueryPlaces,
        min_count: torch.Tensor,
        threshold: Threshold,
        space: Workspace,
        *,
        by_code: bool,
    ) -> None:
        self._partition, self._query, self._space = partition, query, space
        self._min_count = min_count
        self._candidates = CandidateSearch(partition, query, threshold, space, by_code=by_code)

    def launch(self) -> torch.Tensor:
        """Launch everything from the copy of the values to that of what was found.

        Returns the memory that it uses besides the workspace's lists.
        """
        if isinstance(self._query, QueryPlaces):
            self._query.send()
        self._candidates.launch()
        held = self._count()
        self._space.tell()
        return held

    def _count(self) -> torch.Tensor:
        """Sum the weights of matching query values per column, and list columns with enough."""
        partition, space = self._partition, self._space
        n, n_words, n_columns = len(self._query), words_of(partition), partition.n_columns
        n_at_once = max(1, min(n, counting.BITMAP_BYTES // (4 * n_words)))
        scratch = space.lists.take_zeros(2 * n_columns + n_at_once * n_words)
        zeros = scratch[: 2 * n_columns + n_at_once * n_words]
        cells, seen = zeros[: 2 * n_columns].view(torch.int64), zeros[2 * n_columns :]
        csr = partition.value_columns
        grid = counting_grid(partition.device, *COUNTING_PROGRAMS[n > TILES[-1]])
        listed = (*space.lists.matches, space.n_matches, space.room["matches"])
        for begin in range(0, n, n_at_once):
            if begin:
                seen.zero_()
            add_weights[grid](
                *listed,
                begin,
                begin + n_at_once,
                cells,
                self._query.weights,
                csr.offsets,
                csr.members,
                seen,
                n_words,
                cells,
                cells,
                cells,
                cells,
                0,
                LISTED=True,
                SINGLE=False,
                CELLS=False,
                ENTRIES=16,
                LANES=32,
            )
        take_counts[grid](
            *listed,
            cells,
            cells,
            self._min_count,
            csr.offsets,
            csr.members,
            cells,
            seen,
            n_words,
            space.columns,
            space.n_columns,
            space.room["columns"],
            LISTED=True,
            CELLS=False,
            BITS=n_at_once == n,
            ENTRIES=16,
            LANES=32,
        )
        if n_at_once < n:
            seen.zero_()
        space.lists.give_back(scratch)
        return zeros


@dataclass
class _Recording:
    """A search that was asked before.

    held: Tensor or None, memory that the graph leads to besides.
    """

    partition: weakref.ReferenceType[Partition]
    space: Workspace
    places: QueryPlaces
    by_code: bool
    has_run: bool = False
    graph: torch.cuda.CUDAGraph | None = None
    held: torch.Tensor | None = None

    def launch(self, partition: Partition, threshold: Threshold) -> None:
        """Launch a search: one after the other at first, and as a graph from the second time on."""
        if self.graph is None:
            min_count = self.places.min_count
            search = ColumnSearch(
                partition, self.places, min_count, threshold, self.space, by_code=self.by_code
            )
            if not self.has_run or partition.device.type != "cuda":
                search.launch()
                self.has_run = True
                return
            self.graph, self.held = _record(search)
        self.graph.replay()


def _record(search: ColumnSearch) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        # Other threads may go on allocating.
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            held = search.launch()
        finally:
            graph.capture_end()
    return graph, held


class ColumnSearches(threading.local):
    """The searches of each thread for single query columns."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], _Recording] = OrderedDict()
        self._capacity = MOST_RECORDINGS

    def make_room(self, n_partitions: int) -> None:
        """Keep the recordings of so many partitions, which are searched one after the other."""
        self._capacity = max(self._capacity, 2 * n_partitions)

    def start(
        self, query: Query, min_count: int, space: Workspace, *, by_code: bool = True
    ) -> Workspace:
        """Launch a search for a query column; return the workspace whose counters it fills.

        Nothing waits: searches of other partitions can be started before it is read.
        """
        partition, threshold = query.partition, query.threshold
        if not is_recorded(len(query)):
            query = query.real()
            device_min_count = torch.full((1,), min_count, device=partition.device)
            beside = space.beside()
            ColumnSearch(
                partition, query, device_min_count, threshold, beside, by_code=by_code
            ).launch()
            return beside
        recording = self._recording(query, space, by_code)
        recording.places.fill(query, min_count)
        recording.launch(partition, threshold)
        return recording.space

    def forget(self) -> None:
        self._kept.clear()

    def _recording(self, query: Query, space: Workspace, by_code: bool) -> _Recording:
        partition, n_places = query.partition, _n_places(len(query), query.threshold)
        key = (id(partition), query.threshold, n_places, by_code)
        recording = self._kept.get(key)
        if (
            recording is None
            or recording.partition() is not partition
            or recording.space.lists is not space.lists
        ):
            n_coordinates = partition.blocks.codes.shape[1]
            query_places = QueryPlaces(
                n_places, partition.dimensions, n_coordinates, partition.device
            )
            recording = _Recording(weakref.ref(partition), space.beside(), query_places, by_code)
            self._kept[key] = recording
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return recording


def is_recorded(n_queries: int) -> bool:
    """Return whether a search for so many query values is launched as one that was recorded.

    Then a program checks that each of them has unit length.
    """
    return not is_ordered(n_queries)


def read_matches(
    partition: Partition, space: Workspace, stats: SearchStats
) -> tuple[dict[str, int], int, ColumnCounts]:
    """Wait for a search, and read what it found.

    Returns n_wrong: int, query values that have no unit length, or not surely: their answer may
    mean nothing; columns, counts: int64 (r,), as far as the lists were long enough.
    """
    counters, hits = space.read_back()
    needed, n_wrong = space.needed(counters), space.n_wrong(counters)
    if all(needed[name] <= size for name, size in space.room.items()):
        add_work(partition, space, counters, stats)
    n_columns = min(needed["columns"], space.room["columns"])
    if n_columns > READ_AT_ONCE:
        hits = space.columns[: 2 * n_columns].numpy(force=True)
    # A copy, since the next search writes there.
    columns, counts = hits[: 2 * n_columns].reshape(-1, 2).T.copy()
    return needed, n_wrong, (columns, counts)


def _n_places(n: int, threshold: Threshold) -> int:
    """Return for how many query values a search is launched.

    It is a number of whole tiles, so that there are few different ones, and all lists begin at
    multiples of 16 bytes. Where a filter is switched off nothing rules out places without a value,
    and there are none.
    """
    if threshold.lemmas != ALL_LEMMAS:
        return n
    step = TILES[n > TILES[0]]
    if n > _FEW_PLACES:
        step *= _COARSER
    return -(-n // step) * step
