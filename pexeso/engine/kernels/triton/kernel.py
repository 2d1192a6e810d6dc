"""The kernel for CUDA: programs compiled by Triton.

A search takes a handful of launches and one wait for the device.

Why it is cut as it is, in counts of bytes and operations (an H200 moves 4.3 TB/s). A query column
has about 17 distinct values. ``swdc`` has 134,000 blocks: testing all their boxes against 17 values
reads 17 MB, and those of the level above a sixteenth of it, so the walk starts on the finest level
for which that is cheap (`DENSE_UNITS`). Of 2.3 million (query value, block) pairs some 30,000 are
left, whose codes are 30 MB; of the 70,000 rows left 14 MB are read. On an H200 all of it takes 64
microseconds. Launches cost the host ten times that: so each step is one launch, nothing is read
back before the last of them, matches are decided where they are found, down to the defining
distance, and the launches of a search that is asked again are recorded and started as one
(`pexeso.engine.kernels.triton.column`). What comes out of `candidates` needs nothing but counting,
which a bitmap does (`pexeso.engine.kernels.triton.counting`).

A block that few of a tile of query values reach is compared value by value: only rows near to the
value are read, where a product of tiles would be wasted but for one entry in hundreds. Where more
than `FEW` reach it (large batches, weak filters, a large tau) tensor cores multiply the tile with
the block, so that the worst case is the dense product, without a matrix in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from pexeso.engine.kernel import Counts, Groups, Limits, Pairs, Query
from pexeso.engine.kernels.torch_kernel import TorchKernel
from pexeso.engine.kernels.triton import counting
from pexeso.engine.kernels.triton.column import ColumnSearches, read_matches
from pexeso.engine.kernels.triton.counting import ColumnCounter, cell_bytes, count_groups, slices_of
from pexeso.engine.kernels.triton.lists import INTERPRETED, Workspace, Workspaces
from pexeso.engine.kernels.triton.search import (
    SLAB,
    CandidateSearch,
    DecidedPairs,
    decides,
    n_slabs,
    next_power_of_2,
)
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.errors import DeviceError

_NO_LIMIT = 1 << 62


class TritonKernel(TorchKernel):
    """Triton programs; see `pexeso.engine.kernel`.

    Candidates are decided where they are found; beyond `MOST_DIMENSIONS` tensor operations decide.
    The published grid is walked as the blocks made of it (`GridCells.blocks`).

    Device memory beside the partition: for each (query value, stored value) pair held, at most
    `max_pairs` of them, 24 bytes; 44 for each (query value, block) pair that is left, as many at
    most; 16 a column; and `working_bytes` for the bitmaps and cells that columns are counted in, of
    which single query columns keep theirs: at most `counter.BITMAP_BYTES` and 8 a column, rounded
    up to a power of two.
    """

    name = "triton"
    max_queries = 16 * SLAB

    def __init__(self) -> None:
        if not (INTERPRETED or torch.cuda.is_available()):
            raise DeviceError(
                "The kernel triton needs a CUDA GPU, and torch finds none. Use the kernel auto; "
                "for tests set TRITON_INTERPRET=1 before triton is imported."
            )
        self._spaces, self._searches = Workspaces(), ColumnSearches()
        self._cell_bytes = cell_bytes()
        self.working_bytes = counting.BITMAP_BYTES + self._cell_bytes + counting.ENTRY_BYTES

    def search_all(
        self,
        queries: Sequence[Query],
        min_count: int,
        max_pairs: int,
        stats: SearchStats,
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Search with a single wait for the device; None where lists would be too long."""
        self._searches.make_room(len(queries))
        spaces: list[Workspace | None] = []
        for query in queries:
            partition, space = query.partition, None
            if decides(partition) and len(partition.blocks) and len(query):
                with _current(partition.device):
                    space = self._space(partition, len(query), max_pairs)
                    space = self._searches.start(query, min_count, space)
            spaces.append(space)
        answers: list[tuple[np.ndarray, np.ndarray] | None] = []
        for query, space in zip(queries, spaces, strict=True):
            if not decides(query.partition):
                answers.append(None)
            elif space is None:
                answers.append((np.zeros(0, np.int64), np.zeros(0, np.int64)))
            else:
                with _current(query.partition.device):
                    answers.append(self._finish(query, min_count, max_pairs, stats, space))
        return answers

    def _finish(
        self, query: Query, min_count: int, max_pairs: int, stats: SearchStats, space: Workspace
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Wait for a search; search again where it was not checked, or lists were too short."""
        partition = query.partition
        limits, by_code, checked = self._list_limits(partition, max_pairs), True, False
        while True:
            needed, n_wrong, hits = read_matches(partition, space, stats)
            if n_wrong and not checked:
                # What is left has unit length by the full check, which allows more.
                query, checked = query.real(), True
                if not len(query):
                    return np.zeros(0, np.int64), np.zeros(0, np.int64)
            elif not self._too_short(needed, space.room):
                return hits
            elif not self._grow(needed, space.room, limits):
                if not by_code or needed["matches"] > limits["matches"]:
                    return None
                by_code = False
            space = self._space(partition, len(query), max_pairs)
            space = self._searches.start(query, min_count, space, by_code=by_code)

    def _space(self, partition: Partition, n_queries: int, max_pairs: int) -> Workspace:
        return self._spaces.take(
            self._list_limits(partition, max_pairs),
            partition.blocks.n_levels,
            n_slabs(n_queries),
            partition.device,
        )

    def candidates(self, query: Query, max_pairs: int, stats: SearchStats) -> Pairs | None:
        """Walk, compare and decide.

        Lists that were too short are made longer, up to the limit.
        """
        partition = query.partition
        if not len(partition.blocks) or not len(query):
            return _no_pairs(len(query), partition.device)
        limits, by_code = self._list_limits(partition, max_pairs), True
        while True:
            space = self._space(partition, len(query), max_pairs)
            with _current(partition.device):
                search = CandidateSearch(partition, query, query.threshold, space, by_code=by_code)
                pairs, needed = search.run()
            if not self._too_short(needed, space.room):
                search.tell(stats)
                return pairs
            if not self._grow(needed, space.room, limits):
                if not by_code or needed["matches"] > limits["matches"]:
                    return None
                by_code = False

    def forget(self) -> None:
        self._spaces, self._searches = Workspaces(), ColumnSearches()

    @staticmethod
    def _list_limits(partition: Partition, max_pairs: int) -> dict[str, int]:
        units = max(max_pairs, len(partition.blocks))
        # No partition finds more columns than it has. One limit lets all share a workspace, of
        # which the recorded searches are.
        rooms = (max_pairs, max_pairs, units, units, _NO_LIMIT)
        return dict(zip(("rows", "matches", "units", "pairs", "columns"), rooms, strict=True))

    @staticmethod
    def _too_short(needed: dict[str, int], room: dict[str, int]) -> bool:
        return any(size > room[name] for name, size in needed.items())

    def _grow(self, needed: dict[str, int], room: dict[str, int], limits: dict[str, int]) -> bool:
        """Make room for what is needed, this time and from now on; False where that is too much."""
        short = {name: size for name, size in needed.items() if size > room[name]}
        if any(size > limits[name] for name, size in short.items()):
            return False
        self._searches.forget()
        self._spaces.forget()
        self._spaces.room.update({name: next_power_of_2(size) for name, size in short.items()})
        return True

    def count(self, query: Query, pairs: Pairs, counts: Counts | None) -> Counts:
        if not isinstance(pairs, DecidedPairs):
            return super().count(query, pairs, counts)
        partition, device, n_values = query.partition, query.partition.device, len(query)
        if counts is None:
            zeros = torch.zeros((2, partition.n_columns), dtype=torch.int64, device=device)
            counts = Counts(zeros[0], zeros[1], torch.zeros(0, dtype=torch.int64, device=device))
        cells = torch.zeros(n_values, dtype=torch.int64, device=device)
        touched = torch.empty(partition.n_columns, dtype=torch.int32, device=device)
        n_touched = torch.zeros(1, dtype=torch.int64, device=device)
        counter = ColumnCounter(partition)
        whole = [(0, n_values, 0, len(pairs))]
        runs = whole if n_values <= counter.n_places else slices_of(pairs.offsets, counter.n_places)
        targets = (counts.possible, counts.matched, touched, n_touched)
        with _current(device):
            for begin, end, first, last in runs:
                listed = (pairs.queries[first:last], pairs.rows[first:last])
                counter.add(listed, (begin, end), (cells, query.weights), targets)
        counts.touched = torch.cat([counts.touched, touched[: int(n_touched)].long()])
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
        if not isinstance(pairs, DecidedPairs):
            super().verify(query, pairs, members, counts, limits, stats)

    def matches(self, query: Query, pairs: Pairs, stats: SearchStats) -> Pairs:
        if not isinstance(pairs, DecidedPairs):
            return super().matches(query, pairs, stats)
        return Pairs(pairs.offsets, ~pairs.rows)

    def count_batch(
        self, partition: Partition, matches: Pairs, groups: Groups
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Count in cells (query column, column).

        As many query columns are handled at a time as the cells have room for.
        """
        with _current(partition.device):
            return count_groups(partition, matches, groups, self._cell_bytes)


def _current(device: torch.device) -> AbstractContextManager[object]:
    if device.type != "cuda":
        if not INTERPRETED:
            raise DeviceError(
                f"The kernel triton runs on CUDA. Got the device {device} instead; use the "
                "kernel auto."
            )
        return nullcontext()
    # To change the current device takes longer than to ask which it is.
    if device.index in (None, torch.cuda.current_device()):
        return nullcontext()
    return torch.cuda.device(device)


def _no_pairs(n_queries: int, device: torch.device) -> DecidedPairs:
    nothing = torch.zeros(0, dtype=torch.int32, device=device)
    return DecidedPairs(
        torch.zeros(n_queries + 1, dtype=torch.int64, device=device), nothing, nothing
    )
