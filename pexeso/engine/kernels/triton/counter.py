"""Counting columns on CUDA: bitmaps and cells of bounded size.

Query values are handled in runs that fit in them.
"""

from __future__ import annotations

import numpy as np
import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.interface import Pairs
from pexeso.engine.kernels.triton.counts import add_weights, take_counts
from pexeso.engine.kernels.triton.lists import n_programs
from pexeso.engine.layout.partition import Partition

BITMAP_BYTES = 1 << 28
CELL_BYTES = 1 << 28
ENTRIES_AT_ONCE = 1 << 21
"""Matches that are counted together in a batch."""

ENTRY_BYTES = 1 << 28
"""What listing them takes: 28 bytes each with their temporaries, and 24 for each posting that is
taken, of which a match has a few."""


class ColumnCounter:
    """Counts columns behind rows; the bitmap of what was seen is bounded."""

    def __init__(self, partition: Partition) -> None:
        self._csr, self._device = partition.value_columns, partition.device
        self._n_words = words_of(partition)
        self.n_places = max(1, BITMAP_BYTES // (4 * self._n_words))

    def add(
        self,
        listed: tuple[torch.Tensor, torch.Tensor],
        positions: tuple[int, int],
        of_place: tuple[torch.Tensor, torch.Tensor],
        targets: tuple[torch.Tensor, ...],
    ) -> None:
        """Add the weights of a run of places to the cells of their columns.

        Parameters
        ----------
        listed : places and rows, int (e,) each
        positions : first place of the run, and the one after the last
        of_place : first cell and weight of each place
        targets : cells; for a single query column also matched counts, touched columns and
            their number
        """
        seen = torch.zeros(
            (positions[1] - positions[0]) * self._n_words, dtype=torch.int32, device=self._device
        )
        single = len(targets) > 1
        cells, also, touched, n_touched = targets if single else targets * 4
        add_weights[(n_programs(self._device),)](
            *listed,
            cells,
            len(listed[1]),
            positions[0],
            *of_place,
            self._csr.offsets,
            self._csr.members,
            seen,
            self._n_words,
            cells,
            also,
            touched,
            n_touched,
            len(touched),
            LISTED=False,
            SINGLE=single,
            CELLS=True,
            ENTRIES=16,
            LANES=32,
        )

    def take(
        self,
        listed: tuple[torch.Tensor, torch.Tensor],
        of_place: tuple[torch.Tensor, torch.Tensor],
        needed: torch.Tensor,
        cells: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Empty the cells of some positions, and return the columns with enough matches.

        The result is query column, column and count.
        """
        room = min(len(cells), int(self._csr.sizes_of(listed[1].long()).sum()))
        out = torch.empty((room, 3), dtype=torch.int64, device=self._device)
        n_out = torch.zeros(1, dtype=torch.int64, device=self._device)
        take_counts[(n_programs(self._device),)](
            *listed,
            n_out,
            len(listed[1]),
            *of_place,
            needed,
            0,
            self._csr.offsets,
            self._csr.members,
            cells,
            out,
            n_out,
            room,
            LISTED=False,
            CELLS=True,
            ENTRIES=16,
            LANES=32,
        )
        return tuple(out[: int(n_out)].unbind(1))


def words_of(partition: Partition) -> int:
    """Return the words of a bitmap with a bit for each column; an even number."""
    return 2 * -(-max(1, partition.n_columns) // 64)


def slices_of(offsets: torch.Tensor, n_places: int) -> list[tuple[int, int, int, int]]:
    """Split query values into runs of at most `n_places`.

    Each run is given by its first and end value, and its first and end pair.
    """
    n_values = len(offsets) - 1
    bounds = [*range(0, n_values, n_places), n_values]
    at = offsets[torch.tensor(bounds, device=offsets.device)].tolist()
    return list(zip(bounds, bounds[1:], at, at[1:], strict=False))


def runs_of(ends: list[int], n_places: int) -> list[tuple[int, int]]:
    """Split positions into runs of at most `n_places` and `ENTRIES_AT_ONCE` entries.

    A run of a single position may have more entries.
    """
    total, begin, runs = np.array(ends), 0, []
    while begin < len(ends) - 1:
        fits = int(np.searchsorted(total, total[begin] + ENTRIES_AT_ONCE, side="right")) - 1
        end = min(max(fits, begin + 1), begin + n_places, len(ends) - 1)
        runs.append((begin, end))
        begin = end
    return runs


def entries_of(
    matches: Pairs, members: torch.Tensor, sizes: torch.Tensor, begin: int, end: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """List the matches of a run of places: place and row."""
    position, match = expand_ranges(matches.offsets[members[begin:end]], sizes[begin:end])
    return position + begin, matches.rows[match]
