"""Counting columns on CUDA: bitmaps and cells of bounded size.

Query values are handled in runs that fit in them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from pexeso.engine.arrays import offsets_of
from pexeso.engine.interface import Groups, Pairs
from pexeso.engine.kernels.triton.counts import add_weights, take_counts
from pexeso.engine.kernels.triton.lists import counting_grid
from pexeso.engine.layout.partition import Partition
from pexeso.engine.postings import Csr

BITMAP_BYTES = 1 << 28
CELL_BYTES = 1 << 28
"""At least: a device of more than 32 GiB gives a 128th of its memory for cells."""

ENTRIES_AT_ONCE = 1 << 21
"""Matches that are counted together in a batch."""

POSTINGS_AT_ONCE = 10_000_000
"""Columns of these matches, each as often as it comes, for which there is room for an answer."""

ENTRY_BYTES = 1 << 28
"""What listing them takes: 28 bytes each with their temporaries; as much again is for what is
counted, 24 bytes for each of `POSTINGS_AT_ONCE`."""


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
        """Add the weights of a run of places to the cells of their columns."""
        seen = torch.zeros(
            (positions[1] - positions[0]) * self._n_words, dtype=torch.int32, device=self._device
        )
        single = len(targets) > 1
        cells, also, touched, n_touched = targets if single else targets * 4
        add_weights[counting_grid(self._device, 8, 8)](
            *listed,
            cells,
            len(listed[1]),
            *positions,
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
        n_postings: int,
    ) -> tuple[torch.Tensor, ...]:
        """Empty the cells of some positions, and return the columns with enough matches.

        The result is query column, column and count.

        Parameters
        ----------
        n_postings : int
            Columns that the rows have in all, each counted as often as it comes.
        """
        room = min(len(cells), n_postings)
        out = torch.empty((room, 3), dtype=torch.int64, device=self._device)
        n_out = torch.zeros(1, dtype=torch.int64, device=self._device)
        take_counts[counting_grid(self._device, 8, 8)](
            *listed,
            n_out,
            len(listed[1]),
            *of_place,
            needed,
            self._csr.offsets,
            self._csr.members,
            cells,
            cells,
            0,
            out,
            n_out,
            room,
            LISTED=False,
            CELLS=True,
            BITS=False,
            ENTRIES=16,
            LANES=32,
        )
        return tuple(out[: int(n_out)].unbind(1))


def cell_bytes() -> int:
    """Return the bytes of cells that a search may take on any device of this machine."""
    devices = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return max(CELL_BYTES, min((device.total_memory for device in devices), default=0) // 128)


def count_groups(
    partition: Partition, matches: Pairs, groups: Groups, n_bytes: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Count matches for many query columns, in cells (query column, column).

    As many query columns are counted at a time as `n_bytes` of cells have room for.
    """
    device, n_columns = partition.device, max(1, partition.n_columns)
    sizes = groups.offsets[1:] - groups.offsets[:-1]
    owner = torch.repeat_interleave(torch.arange(len(sizes), device=device), sizes)
    entries = matches.sizes[groups.members]
    postings = _postings_of(matches, partition.value_columns)[groups.members]
    # What the host has to know, in one copy.
    total = groups.weights.sum()[None]
    known = torch.cat([offsets_of(entries), offsets_of(postings), groups.offsets, total]).tolist()
    n = len(entries) + 1
    ends, posting_ends, bounds = known[:n], known[n : 2 * n], known[2 * n :]
    # No count is larger than the weights of a query column together.
    dtype = torch.int32 if known.pop() < 1 << 31 else torch.int64
    chunk_size = max(1, n_bytes // dtype.itemsize // n_columns)
    cells = torch.zeros(min(chunk_size, len(sizes)) * n_columns, dtype=dtype, device=device)
    counter, chunks = ColumnCounter(partition), []
    for first in range(0, len(sizes), chunk_size):
        begin, end = bounds[first], bounds[min(first + chunk_size, len(sizes))]
        place_cells = (owner - first) * n_columns
        runs = [
            (begin + low, begin + high)
            for low, high in runs_of(
                ends[begin : end + 1], posting_ends[begin : end + 1], counter.n_places
            )
        ]
        listed = None
        for run in runs:
            listed = _entries_of(matches, groups.members, entries, run, ends)
            counter.add(listed, run, (place_cells, groups.weights), (cells,))
        for run in runs:
            if len(runs) > 1:
                listed = _entries_of(matches, groups.members, entries, run, ends)
            n_postings = posting_ends[run[1]] - posting_ends[run[0]]
            chunks.append(
                counter.take(listed, (place_cells, owner), groups.needed, cells, n_postings)
            )
    nothing = torch.zeros(0, dtype=torch.int64, device=device)
    which, column, count = (torch.cat(part) for part in zip((nothing,) * 3, *chunks, strict=True))
    return which, column, count


def _postings_of(matches: Pairs, columns: Csr) -> torch.Tensor:
    """Return the columns that the matches of each query value have in all, int64 (n,)."""
    ends = torch.zeros(len(matches) + 1, dtype=torch.int64, device=matches.rows.device)
    for begin in range(0, len(matches), ENTRIES_AT_ONCE):
        rows = matches.rows[begin : begin + ENTRIES_AT_ONCE].long()
        ends[begin + 1 : begin + 1 + len(rows)] = columns.sizes_of(rows)
    return torch.cumsum(ends, 0)[matches.offsets].diff()


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


def runs_of(ends: list[int], posting_ends: list[int], n_places: int) -> list[tuple[int, int]]:
    """Split positions into runs of at most `n_places`, `ENTRIES_AT_ONCE` and `POSTINGS_AT_ONCE`.

    A run of a single position may have more entries and postings.
    """
    entries, postings, begin, runs = np.array(ends), np.array(posting_ends), 0, []
    while begin < len(ends) - 1:
        fits = min(
            int(np.searchsorted(total, total[begin] + limit, side="right")) - 1
            for total, limit in ((entries, ENTRIES_AT_ONCE), (postings, POSTINGS_AT_ONCE))
        )
        end = min(max(fits, begin + 1), begin + n_places, len(ends) - 1)
        runs.append((begin, end))
        begin = end
    return runs


def _entries_of(
    matches: Pairs,
    members: torch.Tensor,
    sizes: torch.Tensor,
    run: tuple[int, int],
    ends: Sequence[int],
) -> tuple[torch.Tensor, torch.Tensor]:
    """List the matches of a run of places: place and row.

    Unlike `pexeso.engine.arrays.expand_ranges` it need not ask the device how many there are.
    """
    begin, end = run
    n, device = ends[end] - ends[begin], members.device
    position = torch.repeat_interleave(
        torch.arange(begin, end, device=device), sizes[begin:end], output_size=n
    )
    first = offsets_of(sizes[begin:end])[:-1]
    starts = matches.offsets[members[begin:end]] - first
    match = torch.arange(n, device=device) + starts[position - begin]
    return position, matches.rows[match]
