"""The whole search for one query column on CUDA.

Kernels are launched one after the other, with one wait for the device at the end.
"""

from __future__ import annotations

import torch

from pexeso.engine.interface import Query, Threshold
from pexeso.engine.kernels.triton.counter import BITMAP_BYTES, words_of
from pexeso.engine.kernels.triton.counts import add_weights, take_counts
from pexeso.engine.kernels.triton.lists import n_programs
from pexeso.engine.kernels.triton.search import CandidateSearch
from pexeso.engine.kernels.triton.workspace import Workspace
from pexeso.engine.layout.partition import Partition
from pexeso.engine.stats import SearchStats

_READ_AT_ONCE = 512
"""Columns that are read together with the counters: nearly always all there are."""


class ColumnSearch:
    """Searches one partition for a query column, counting included.

    Parameters
    ----------
    space : Workspace
        With all counters at zero.
    """

    def __init__(
        self, partition: Partition, query: Query, threshold: Threshold, space: Workspace
    ) -> None:
        self._partition, self._query, self._space = partition, query, space
        self._candidates = CandidateSearch(partition, query, threshold, space)

    def run(
        self, min_count: int, stats: SearchStats
    ) -> tuple[dict[str, int], torch.Tensor, torch.Tensor]:
        """Run the search, and return the needed list lengths and the columns and counts.

        Columns and counts are given as far as they fit.

        Parameters
        ----------
        stats : SearchStats
            Gets the work that was done where every list was long enough.

        Returns
        -------
        needed : dict of str to int
        columns, counts : int64 (r,), on the CPU
        """
        self._candidates.launch()
        self._count(min_count)
        space = self._space
        state_block = space.state[: space.n_counters + 2 * _READ_AT_ONCE].cpu()
        counters = state_block[: space.n_counters].tolist()
        needed = space.needed(counters)
        if all(needed[name] <= size for name, size in space.room.items()):
            self._candidates.tell(stats, counters)
        n_columns = min(needed["columns"], space.room["columns"])
        found = state_block[space.n_counters :]
        if n_columns > _READ_AT_ONCE:
            found = space.columns[: 2 * n_columns].cpu()
        found = found[: 2 * n_columns].reshape(-1, 2)
        return needed, found[:, 0], found[:, 1]

    def _count(self, min_count: int) -> None:
        """Sum the weights of matching query values per column, and list columns with enough."""
        partition, space, device = self._partition, self._space, self._partition.device
        n_words = words_of(partition)
        zeros = torch.zeros(
            2 * partition.n_columns + len(self._query) * n_words, dtype=torch.int32, device=device
        )
        cells, seen = (
            zeros[: 2 * partition.n_columns].view(torch.int64),
            zeros[2 * partition.n_columns :],
        )
        csr = partition.value_columns
        grid = (n_programs(device),)
        listed = (*space.matches, space.n_matches, space.room["matches"])
        add_weights[grid](
            *listed,
            0,
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
            LANES=16,
        )
        take_counts[grid](
            *listed,
            cells,
            cells,
            cells,
            min_count,
            csr.offsets,
            csr.members,
            cells,
            space.columns,
            space.n_columns,
            space.room["columns"],
            LISTED=True,
            CELLS=False,
            ENTRIES=16,
            LANES=16,
        )


def fits(partition: Partition, n_queries: int) -> bool:
    """Return whether the bitmap of counted (query value, column) pairs fits `BITMAP_BYTES`."""
    return 4 * n_queries * words_of(partition) <= BITMAP_BYTES
