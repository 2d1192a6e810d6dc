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

import triton
import triton.language as tl

from pexeso.engine.kernels.triton.lists import length_of, slots

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

    Parameters
    ----------
    needed : int64
        Count that each query column (group) needs; without `CELLS` there is one.
    out : int64 (capacity, 3)
        Gets query column, column and count where `CELLS`; else (capacity, 2), column and count.
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
