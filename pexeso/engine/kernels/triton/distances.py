"""Triton programs that decide: tile products, the defining distance, and match grouping.

Products of tiles run on tensor cores. Matches are grouped by query value.
"""

from __future__ import annotations

import triton
import triton.language as tl

from pexeso.engine.kernels.triton.lists import BAND, PAIRS_LEFT, PRODUCTS, append, length_of


@triton.jit(
    do_not_specialize=["unit_capacity", "out_capacity", "match_capacity", "n_rows", "n_queries"]
)
def multiply_tiles(
    order,
    vectors,
    query_halves,
    query_squares,
    units,
    unit_bits,
    n_units,
    unit_capacity,
    out_queries,
    out_rows,
    n_out,
    out_capacity,
    match_queries,
    match_rows,
    n_matches,
    match_capacity,
    matches_of,
    work,
    n_rows,
    n_queries,
    surely,
    possibly,
    ORDERED: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
    ROWS: tl.constexpr,  # noqa: N803
    TILE: tl.constexpr,  # noqa: N803
    DIMENSIONS: tl.constexpr,  # noqa: N803
    CHUNK: tl.constexpr,  # noqa: N803
):
    """Multiply the rows of a block with a tile of query values.

    Sure matches are kept; pairs in the band are handed on.

    Codes are not looked at: a product on tensor cores costs less than sixteen comparisons of
    coordinates, pair by pair.

    vectors: float16 or float32 (n_rows, DIMENSIONS), rounded to float16 here if they are not;
    query_halves: float16 (n_queries, DIMENSIONS), in the order of the tiles; query_squares: float32
    (n_queries,), their squared lengths.
    """
    total = length_of(n_units, unit_capacity)
    lanes = tl.arange(0, TILE)
    left = tl.program_id(0) * 0
    products = tl.program_id(0).to(tl.int64) * 0
    for number in range(tl.program_id(0), total, tl.num_programs(0)):
        unit = tl.load(units + number)
        block = unit.to(tl.int32)
        members = (unit >> 32).to(tl.int32) * TILE + lanes
        alive = (members < n_queries) & (((tl.load(unit_bits + number) >> lanes) & 1) != 0)
        n_alive = tl.sum(alive.to(tl.int32), 0)
        left += n_alive
        name = members
        if ORDERED:
            name = tl.load(order + members, mask=alive, other=0)
        names = tl.broadcast_to(name[None, :], (ROWS, TILE))
        squares = tl.load(query_squares + members, mask=alive, other=0.0)
        base = block.to(tl.int64) * SIZE
        for begin in range(0, SIZE, ROWS):
            position = begin + tl.arange(0, ROWS)
            row = base + position
            real = (position < SIZE) & (row < n_rows)
            products += tl.sum(real.to(tl.int32), 0) * n_alive
            product = tl.zeros((ROWS, TILE), tl.float32)
            row_squares = tl.zeros((ROWS,), tl.float32)
            for axis in range(0, DIMENSIONS, CHUNK):
                entry = axis + tl.arange(0, CHUNK)
                inside = entry < DIMENSIONS
                left_side = tl.load(
                    vectors + row[:, None] * DIMENSIONS + entry[None, :],
                    mask=real[:, None] & inside[None, :],
                    other=0.0,
                ).to(tl.float16)
                right_side = tl.load(
                    query_halves + members[None, :] * DIMENSIONS + entry[:, None],
                    mask=alive[None, :] & inside[:, None],
                    other=0.0,
                )
                product = tl.dot(left_side, right_side, product)
                rounded = left_side.to(tl.float32)
                row_squares += tl.sum(rounded * rounded, 1)
            quick = row_squares[:, None] + squares[None, :] - 2.0 * product
            near = real[:, None] & alive[None, :] & (quick <= possibly)
            if tl.max(tl.max(near.to(tl.int32), 1), 0) > 0:
                hit = near & (quick <= surely)
                band = near & (quick > surely)
                rows = tl.broadcast_to(row.to(tl.int32)[:, None], (ROWS, TILE))
                append(
                    match_queries,
                    match_rows,
                    n_matches,
                    match_capacity,
                    tl.reshape(names, (ROWS * TILE,)),
                    tl.reshape(-1 - rows, (ROWS * TILE,)),
                    tl.reshape(hit, (ROWS * TILE,)),
                )
                tl.atomic_add(matches_of + names, 1, mask=hit, sem="relaxed")
                append(
                    out_queries,
                    out_rows,
                    n_out,
                    out_capacity,
                    tl.reshape(names, (ROWS * TILE,)),
                    tl.reshape(rows, (ROWS * TILE,)),
                    tl.reshape(band, (ROWS * TILE,)),
                )
    tl.atomic_add(work + PAIRS_LEFT, left.to(tl.int64), sem="relaxed")
    tl.atomic_add(work + PRODUCTS, products, sem="relaxed")


@triton.jit(do_not_specialize=["capacity", "match_capacity"])
def decide_rows(
    queries,
    rows,
    counter,
    capacity,
    query_vectors,
    vectors,
    tree,
    largest_square,
    match_queries,
    match_rows,
    n_matches,
    match_capacity,
    matches_of,
    work,
    surely,
    possibly,
    DIMENSIONS: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr,  # noqa: N803
    LEVELS: tl.constexpr,  # noqa: N803
    CHUNK: tl.constexpr,  # noqa: N803
    TILE: tl.constexpr,  # noqa: N803
):
    """Decide candidates: by a float32 sum, and in its band by the defining distance, to the bit.

    The defining distance is a sum over a fixed tree (`metrics.tree_sum`). `tree` lays
    the entries out so that each step of it adds neighbours, with zeros where a branch is missing:
    they change no bit. The launch must switch off the fusing of multiplications with additions.
    Instead of taking a root, the sum is compared with the largest number whose root is at most tau.

    A candidate is read chunk by chunk until it is beyond the band, most of them once.
    """
    total = length_of(counter, capacity)
    in_band = tl.program_id(0) * 0
    for start in range(tl.program_id(0) * TILE, total, tl.num_programs(0) * TILE):
        number = start + tl.arange(0, TILE)
        in_range = number < total
        query = tl.load(queries + number, mask=in_range, other=0)
        row = tl.load(rows + number, mask=in_range, other=0)
        left = query_vectors + query.to(tl.int64)[:, None] * DIMENSIONS
        at_row = row.to(tl.int64)[:, None] * DIMENSIONS
        quick = tl.zeros((TILE,), tl.float32)
        for axis in range(0, PADDED, CHUNK):
            # Terms are not negative: what is beyond the band stays there, and is read no further.
            open_yet = in_range & (quick <= possibly)
            if tl.max(open_yet.to(tl.int32), 0) > 0:
                entry = axis + tl.arange(0, CHUNK)
                mask = open_yet[:, None] & (entry < DIMENSIONS)[None, :]
                x = tl.load(left + entry[None, :], mask=mask, other=0.0)
                y = tl.load(vectors + at_row + entry[None, :], mask=mask, other=0.0)
                quick += tl.sum((x - y) * (x - y), 1)
        hit = in_range & (quick <= surely)
        band = in_range & (quick > surely) & (quick <= possibly)
        n_band = tl.sum(band.to(tl.int32), 0)
        if n_band > 0:
            in_band += n_band
            entry = tl.load(tree + tl.arange(0, PADDED))
            inside = entry >= 0
            # One after the other: they are few, and a tile of them in float64 would take all
            # registers from what is done for every candidate.
            for lane in range(TILE):
                this = band & (tl.arange(0, TILE) == lane)
                if tl.max(this.to(tl.int32), 0) > 0:
                    at_query = tl.load(queries + start + lane).to(tl.int64) * DIMENSIONS
                    at_value = tl.load(rows + start + lane).to(tl.int64) * DIMENSIONS
                    x = tl.load(query_vectors + at_query + entry, mask=inside, other=0.0)
                    y = tl.load(vectors + at_value + entry, mask=inside, other=0.0)
                    apart = x.to(tl.float64) - y.to(tl.float64)
                    terms = apart * apart
                    for level in tl.static_range(LEVELS):
                        terms = tl.sum(tl.reshape(terms, (PADDED >> (level + 1), 2)), 1)
                    square = tl.where(this, tl.max(terms, 0), float("inf"))
                    hit = hit | (square <= tl.load(largest_square))
        append(match_queries, match_rows, n_matches, match_capacity, query, -1 - row, hit)
        tl.atomic_add(matches_of + query, 1, mask=hit, sem="relaxed")
    tl.atomic_add(work + BAND, in_band.to(tl.int64), sem="relaxed")


@triton.jit(do_not_specialize=["capacity"])
def group_matches(
    queries,
    rows,
    counter,
    capacity,
    cursor,
    out_queries,
    out_rows,
    TILE: tl.constexpr,  # noqa: N803
):
    """Bring matches into the order of query values.

    `cursor` holds where each value's matches begin.
    """
    total = length_of(counter, capacity)
    for start in range(tl.program_id(0) * TILE, total, tl.num_programs(0) * TILE):
        number = start + tl.arange(0, TILE)
        in_range = number < total
        query = tl.load(queries + number, mask=in_range, other=0)
        slot = tl.atomic_add(cursor + query, 1, mask=in_range, sem="relaxed")
        # Where the list was too short the cursors run ahead of it; the host throws the result away.
        fits = in_range & (slot < capacity)
        tl.store(out_queries + slot, query, mask=fits)
        tl.store(out_rows + slot, tl.load(rows + number, mask=in_range, other=0), mask=fits)
