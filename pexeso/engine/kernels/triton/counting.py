"""Triton programs that count, for each column, the query values with a match in it.

Each value counts once, however many of its rows match.

Whether a (query value, column) pair was seen before stands in a bitmap; an atomic "or" tells the
first who comes. Sorting the pairs instead, as `TorchKernel` does, takes several passes over them
and some twenty launches: more than a whole search may take. A bitmap of 17 query values over 49
million columns has 104 MB, 30 microseconds of an H200's memory.

A launch has two axes: entries are shared among the programs of the first, and the columns of each
entry among those of the second, since a value that is everywhere has some hundred thousand columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl

from pexeso.engine.arrays import Csr, offsets_of
from pexeso.engine.kernel import Groups, Pairs
from pexeso.engine.kernels.triton.lists import counting_grid, length_of, slots
from pexeso.engine.partition import Partition

WORD_BITS = tl.constexpr(32)


@triton.jit
def number_of(n_entries, capacity, LISTED: tl.constexpr):  # noqa: N803
    """Return how many entries there are: as the host says, or as a list's counter does."""
    if LISTED:
        return length_of(n_entries, capacity)
    else:
        return capacity


@triton.jit
def entries_at(positions, rows, start, total, ENTRIES: tl.constexpr):  # noqa: N803
    """Load a run of entries: position (int64), row, and the mask of those that exist.

    Complements are converted to rows.
    """
    entry = start + tl.arange(0, ENTRIES)
    in_range = entry < total
    position = tl.load(positions + entry, mask=in_range, other=0).to(tl.int64)
    row = tl.load(rows + entry, mask=in_range, other=0)
    return position, tl.where(row < 0, -1 - row, row), in_range


@triton.jit(do_not_specialize=["entry_capacity", "first_place", "end_place", "n_words", "capacity"])
def add_weights(
    positions,
    rows,
    n_entries,
    entry_capacity,
    first_place,
    end_place,
    place_cells,
    place_weights,
    column_offsets,
    columns,
    seen,
    n_words,
    cells,
    also,
    touched,
    n_touched,
    capacity,
    LISTED: tl.constexpr,  # noqa: N803
    SINGLE: tl.constexpr,  # noqa: N803
    CELLS: tl.constexpr,  # noqa: N803
    ENTRIES: tl.constexpr,  # noqa: N803
    LANES: tl.constexpr,  # noqa: N803
):
    """Add the weight of each place to every column of its rows, once.

    Parameters
    ----------
    n_entries : int64
        Where `LISTED`: how many of them were found, of which `entry_capacity` at most are there.
    first_place, end_place : int
        The place whose bits come first in `seen`, and the first that has none: entries of places
        before and from there on are left out.
    place_cells : int64
        First cell of each place, where `CELLS`; else 0, for a single query column.
    place_weights : int64
        Weight of each place; places of weight 0 are left out.
    seen : int32 (places, n_words)
        Zeros at first.
    cells, also : int64, or int32 where no count is larger
        Counts; `also` and `touched` where `SINGLE`.
    touched : int32 (capacity,)
        Gets the columns whose cell was 0.
    """
    total = number_of(n_entries, entry_capacity, LISTED)
    for start in range(tl.program_id(0) * ENTRIES, total, tl.num_programs(0) * ENTRIES):
        position, row, active = entries_at(positions, rows, start, total, ENTRIES)
        weight = tl.load(place_weights + position, mask=active, other=0)
        active = active & (weight > 0) & (position >= first_place) & (position < end_place)
        base = position * 0
        if CELLS:
            base = tl.load(place_cells + position, mask=active, other=0)
        begin = tl.load(column_offsets + row, mask=active, other=0)
        end = tl.load(column_offsets + row + 1, mask=active, other=0)
        longest = tl.max(end - begin, 0).to(tl.int32)
        weights = tl.broadcast_to(weight[:, None], (ENTRIES, LANES))
        for shift in range(tl.program_id(1) * LANES, longest, tl.num_programs(1) * LANES):
            posting = begin[:, None] + shift + tl.arange(0, LANES)[None, :]
            inside = posting < end[:, None]
            column = tl.load(columns + posting, mask=inside, other=0)
            bit = column % WORD_BITS
            word = (position[:, None] - first_place) * n_words + column // WORD_BITS
            before = tl.atomic_or(seen + word, (bit * 0 + 1) << bit, mask=inside, sem="relaxed")
            new = inside & (((before >> bit) & 1) == 0)
            count = tl.atomic_add(
                cells + (base[:, None] + column),
                weights.to(cells.dtype.element_ty),
                mask=new,
                sem="relaxed",
            )
            if SINGLE:
                tl.atomic_add(also + column, weights, mask=new, sem="relaxed")
                fresh = tl.reshape(new & (count == 0), (ENTRIES * LANES,))
                slot = slots(n_touched, fresh)
                tl.store(
                    touched + slot,
                    tl.reshape(column, (ENTRIES * LANES,)),
                    mask=fresh & (slot < capacity),
                )


@triton.jit(do_not_specialize=["entry_capacity", "n_words", "capacity"])
def take_counts(
    positions,
    rows,
    n_entries,
    entry_capacity,
    place_cells,
    place_groups,
    needed,
    column_offsets,
    columns,
    cells,
    seen,
    n_words,
    out,
    n_out,
    capacity,
    LISTED: tl.constexpr,  # noqa: N803
    CELLS: tl.constexpr,  # noqa: N803
    BITS: tl.constexpr,  # noqa: N803
    ENTRIES: tl.constexpr,  # noqa: N803
    LANES: tl.constexpr,  # noqa: N803
):
    """Collect the counts of `add_weights` from their cells, and keep those that are enough.

    The cells are 0 again, and with `BITS` so is the bitmap, whose first place is 0. A count is
    enough if it is as large as the query column needs.

    Of all the entries that lead to a cell the first who exchanges it gets the count, the others 0,
    which is never enough.

    needed: int64, count that each query column (group) needs; without `CELLS` there is one; out:
    int64 (capacity, 3), gets query column, column and count where `CELLS`; else (capacity, 2),
    column and count.
    """
    total = number_of(n_entries, entry_capacity, LISTED)
    for start in range(tl.program_id(0) * ENTRIES, total, tl.num_programs(0) * ENTRIES):
        position, row, in_range = entries_at(positions, rows, start, total, ENTRIES)
        base = position * 0
        group = position * 0
        if CELLS:
            base = tl.load(place_cells + position, mask=in_range, other=0)
            group = tl.load(place_groups + position, mask=in_range, other=0)
        enough = tl.load(needed + group, mask=in_range, other=0)
        begin = tl.load(column_offsets + row, mask=in_range, other=0)
        end = tl.load(column_offsets + row + 1, mask=in_range, other=0)
        longest = tl.max(end - begin, 0).to(tl.int32)
        nothing = tl.zeros((ENTRIES, LANES), cells.dtype.element_ty)
        groups = tl.broadcast_to(group[:, None], (ENTRIES, LANES))
        for shift in range(tl.program_id(1) * LANES, longest, tl.num_programs(1) * LANES):
            posting = begin[:, None] + shift + tl.arange(0, LANES)[None, :]
            inside = posting < end[:, None]
            column = tl.load(columns + posting, mask=inside, other=0)
            count = tl.atomic_xchg(
                cells + (base[:, None] + column), nothing, mask=inside, sem="relaxed"
            )
            if BITS:
                word = position[:, None] * n_words + column // WORD_BITS
                tl.store(seen + word, column * 0, mask=inside)
            is_enough = tl.reshape(inside & (count >= enough[:, None]), (ENTRIES * LANES,))
            slot = slots(n_out, is_enough)
            fits = is_enough & (slot < capacity)
            numbers = tl.reshape(column, (ENTRIES * LANES,)).to(tl.int64)
            counts = tl.reshape(count, (ENTRIES * LANES,)).to(tl.int64)
            if CELLS:
                tl.store(out + slot * 3, tl.reshape(groups, (ENTRIES * LANES,)), mask=fits)
                tl.store(out + slot * 3 + 1, numbers, mask=fits)
                tl.store(out + slot * 3 + 2, counts, mask=fits)
            else:
                tl.store(out + slot * 2, numbers, mask=fits)
                tl.store(out + slot * 2 + 1, counts, mask=fits)


BITMAP_BYTES = 1 << 28
CELL_BYTES = 1 << 28  # at least: a device of more than 32 GiB gives a 128th of its memory for cells

ENTRIES_AT_ONCE = 1 << 21  # matches that are counted together in a batch

# Columns of these matches, each as often as it comes, for which there is room for an answer.
POSTINGS_AT_ONCE = 10_000_000

# What listing them takes: 28 bytes each with their temporaries; as much again is for what is
# counted, 24 bytes for each of `POSTINGS_AT_ONCE`.
ENTRY_BYTES = 1 << 28


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

        n_postings: int, columns that the rows have in all, each counted as often as it comes.
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
