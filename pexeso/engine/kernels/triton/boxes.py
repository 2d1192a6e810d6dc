"""Triton programs that prune: boxes from coarse to fine, and rows of a block by their codes.

See `pexeso.engine.blocks`. A tile of query values shares few boxes where there are hundreds
of values: then each (query value, box) pair walks alone, and what reaches the blocks is grouped by
block, so that the codes of a block are read once for all its query values, on tensor cores.

"""

from __future__ import annotations

import triton
import triton.language as tl

from pexeso.engine.kernels.triton.lists import (
    ACCEPTED,
    BOXES_TESTED,
    PAIRS_LEFT,
    ROWS_TESTED,
    append,
    length_of,
)

GROUP = tl.constexpr(16)  # boxes of a group: `pexeso.engine.blocks.FANOUT`

CORNERS = tl.constexpr(32)  # numbers that a group of boxes holds for each axis

STEP = tl.constexpr(1.0 / 256.0)  # of a block's box: `pexeso.engine.blocks.STEPS`


@triton.jit
def far_enough(total, beyond, EUCLIDEAN: tl.constexpr):  # noqa: N803
    """Add one axis to a bound: a sum of squares, or the largest of all axes."""
    if EUCLIDEAN:
        return total + beyond * beyond
    else:
        return tl.maximum(total, beyond)


@triton.jit(
    do_not_specialize=[
        "unit_capacity",
        "next_capacity",
        "pair_capacity",
        "first_group",
        "n_groups",
        "n_below",
        "n_tiles",
        "n_queries",
        "few",
    ]
)
def walk_level(
    points,
    boxes,
    units,
    unit_bits,
    n_units,
    unit_capacity,
    next_units,
    next_bits,
    n_next,
    next_capacity,
    pair_queries,
    pair_blocks,
    n_pairs,
    pair_capacity,
    work,
    first_group,
    n_groups,
    n_below,
    n_tiles,
    n_queries,
    few,
    limit,
    DENSE: tl.constexpr,  # noqa: N803
    LAST: tl.constexpr,  # noqa: N803
    EUCLIDEAN: tl.constexpr,  # noqa: N803
    AXES: tl.constexpr,  # noqa: N803
    UNROLL: tl.constexpr,  # noqa: N803
    TILE: tl.constexpr,  # noqa: N803
):
    """Test the boxes of one level; what survives goes on as (box, tile of query values, bits).

    On the last level a block with at most `few` query values left goes on as (query value, block)
    pairs instead: there a product of whole tiles would be mostly wasted.
    """
    total = n_groups * n_tiles
    if not DENSE:
        total = length_of(n_units, unit_capacity)
    tested = tl.program_id(0) * 0
    lanes = tl.arange(0, TILE)
    for number in range(tl.program_id(0), total, tl.num_programs(0)):
        if DENSE:
            tile = number % n_tiles
            group = number // n_tiles
        else:
            unit = tl.load(units + number)
            tile = (unit >> 32).to(tl.int32)
            group = unit.to(tl.int32)
        members = tile * TILE + lanes
        active = members < n_queries
        if not DENSE:
            active = active & (((tl.load(unit_bits + number) >> lanes) & 1) != 0)
        child = group * GROUP + tl.arange(0, GROUP)
        corner = boxes + (first_group + group).to(tl.int64) * (AXES * CORNERS) + tl.arange(0, GROUP)
        gap = tl.zeros((TILE, GROUP), tl.float32)
        for begin in range(0, AXES, UNROLL):
            for step in tl.static_range(UNROLL):
                lower = tl.load(corner + (begin + step) * CORNERS)
                upper = tl.load(corner + (begin + step) * CORNERS + GROUP)
                x = tl.load(points + (begin + step) * n_queries + members, mask=active, other=0.0)
                beyond = tl.maximum(lower[None, :] - x[:, None], x[:, None] - upper[None, :])
                gap = far_enough(gap, tl.maximum(beyond, 0.0), EUCLIDEAN)
        # Boxes that only pad a group are far away, but not where a filter is switched off.
        near = (gap <= limit) & active[:, None] & (child < n_below)[None, :]
        alive = tl.sum(near.to(tl.int32), 0)
        tested += tl.sum(active.to(tl.int32), 0) * GROUP
        # Most groups are ruled out whole, and a place in a list is a trip to memory.
        if tl.max(alive, 0) > 0:
            wide = alive > 0
            if LAST:
                wide = alive > few
                pair_mask = near & (alive <= few)[None, :]
                append(
                    pair_queries,
                    pair_blocks,
                    n_pairs,
                    pair_capacity,
                    tl.reshape(tl.broadcast_to(members[:, None], (TILE, GROUP)), (TILE * GROUP,)),
                    tl.reshape(tl.broadcast_to(child[None, :], (TILE, GROUP)), (TILE * GROUP,)),
                    tl.reshape(pair_mask, (TILE * GROUP,)),
                )
            # One bit each, so that their sum is their union.
            bits = tl.sum(near.to(tl.int32) << lanes[:, None], 0)
            append(
                next_units,
                next_bits,
                n_next,
                next_capacity,
                (tile.to(tl.int64) << 32) | child.to(tl.int64),
                bits,
                wide,
            )
    tl.atomic_add(work + BOXES_TESTED, tested.to(tl.int64), sem="relaxed")


@triton.jit(
    do_not_specialize=[
        "pair_capacity",
        "out_capacity",
        "match_capacity",
        "first_group",
        "n_rows",
        "n_queries",
    ]
)
def test_rows(
    points,
    upper_points,
    may_accept,
    order,
    boxes,
    codes,
    pair_queries,
    pair_blocks,
    n_pairs,
    pair_capacity,
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
    first_group,
    n_rows,
    n_queries,
    limit,
    accept_limit,
    EUCLIDEAN: tl.constexpr,  # noqa: N803
    ACCEPTS: tl.constexpr,  # noqa: N803
    ORDERED: tl.constexpr,  # noqa: N803
    AXES: tl.constexpr,  # noqa: N803
    UNROLL: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
    ROWS: tl.constexpr,  # noqa: N803
    PAIRS: tl.constexpr,  # noqa: N803
):
    """Test the rows of (query value, block) pairs by their codes (Lemma 1).

    Whole blocks that surely match are accepted (Lemmas 2, 5 and 6).
    """
    total = length_of(n_pairs, pair_capacity)
    tested = tl.program_id(0) * 0
    left = tl.program_id(0) * 0
    accepted = tl.program_id(0) * 0
    for start in range(tl.program_id(0) * PAIRS, total, tl.num_programs(0) * PAIRS):
        number = start + tl.arange(0, PAIRS)
        active = number < total
        query = tl.load(pair_queries + number, mask=active, other=0)
        block = tl.load(pair_blocks + number, mask=active, other=0)
        name = query
        if ORDERED:
            name = tl.load(order + query, mask=active, other=0)
        corner = (
            boxes + (first_group + block // GROUP).to(tl.int64) * (AXES * CORNERS) + block % GROUP
        )
        sure = active & (query < 0)
        if ACCEPTS:
            able = active & (tl.load(may_accept + query, mask=active, other=0) != 0)
            if tl.sum(able.to(tl.int32), 0) > 0:
                far = tl.where(able, 0.0, float("inf"))
                if not EUCLIDEAN:
                    far = tl.where(able, -float("inf"), float("inf"))
                for axis in range(0, AXES):
                    lower = tl.load(corner + axis * CORNERS, mask=able, other=0.0)
                    upper = tl.load(corner + axis * CORNERS + GROUP, mask=able, other=0.0)
                    x = tl.load(upper_points + axis * n_queries + query, mask=able, other=0.0)
                    if EUCLIDEAN:
                        reach = tl.maximum(upper - x, x - lower)
                        far = far + reach * reach
                    else:
                        # The best axis counts: the least sum, kept with its sign turned.
                        far = tl.maximum(far, -(x + upper))
                if not EUCLIDEAN:
                    far = -far
                sure = able & (far <= accept_limit)
        left += tl.sum(active.to(tl.int32), 0)
        names = tl.broadcast_to(name[:, None], (PAIRS, ROWS))
        base = block.to(tl.int64)[:, None]
        for begin in range(0, SIZE, ROWS):
            position = begin + tl.arange(0, ROWS)
            inside = active[:, None] & (position < SIZE)[None, :]
            row = base * SIZE + position[None, :]
            code = codes + base * (AXES * SIZE) + position[None, :]
            gap = tl.zeros((PAIRS, ROWS), tl.float32)
            for first in range(0, AXES, UNROLL):
                for step in tl.static_range(UNROLL):
                    lower = tl.load(corner + (first + step) * CORNERS, mask=active, other=0.0)
                    upper = tl.load(
                        corner + (first + step) * CORNERS + GROUP, mask=active, other=0.0
                    )
                    x = tl.load(points + (first + step) * n_queries + query, mask=active, other=0.0)
                    width = (upper - lower) * STEP
                    middle = lower - x + 0.5 * width
                    steps = tl.load(code + (first + step) * SIZE, mask=inside, other=0).to(
                        tl.float32
                    )
                    beyond = tl.abs(middle[:, None] + steps * width[:, None]) - 0.5 * width[:, None]
                    gap = far_enough(gap, tl.maximum(beyond, 0.0), EUCLIDEAN)
            real = inside & (row < n_rows)
            near = real & (gap <= limit)
            if ACCEPTS:
                near = near & (sure[:, None] == 0)
                whole = real & sure[:, None]
                append(
                    match_queries,
                    match_rows,
                    n_matches,
                    match_capacity,
                    tl.reshape(names, (PAIRS * ROWS,)),
                    tl.reshape(-1 - row.to(tl.int32), (PAIRS * ROWS,)),
                    tl.reshape(whole, (PAIRS * ROWS,)),
                )
                tl.atomic_add(matches_of + names, 1, mask=whole, sem="relaxed")
                accepted += tl.sum(tl.sum(whole.to(tl.int32), 1), 0)
            tested += tl.sum(tl.sum(real.to(tl.int32), 1), 0)
            append(
                out_queries,
                out_rows,
                n_out,
                out_capacity,
                tl.reshape(names, (PAIRS * ROWS,)),
                tl.reshape(row.to(tl.int32), (PAIRS * ROWS,)),
                tl.reshape(near, (PAIRS * ROWS,)),
            )
    tl.atomic_add(work + ROWS_TESTED, (tested - accepted).to(tl.int64), sem="relaxed")
    tl.atomic_add(work + PAIRS_LEFT, left.to(tl.int64), sem="relaxed")
    tl.atomic_add(work + ACCEPTED, accepted.to(tl.int64), sem="relaxed")


MIDDLE = tl.constexpr(127.5)  # of the steps of a block's box: what a code is counted from

# Of the squared lengths of two vectors: what their squared distance may be off by. One factor of a
# product is rounded to float16, ``2**-11`` of it; the other, half a number of steps, is not. Twice
# a sum of products is at most the sum of the squared lengths. Of the squared length of a row both
# factors are rounded. Float32 sums of 128 terms, those of tensor cores among them, add less than
# ``2**-12``: together less than ``2**-9``.
PRODUCT_ERROR = tl.constexpr(2.0**-9)

# What a squared distance may be off by besides: numbers that float16 holds as subnormal ones, at
# most ``2**-18`` for 128 axes, and coordinates relative to the middle of a box.
COORDINATE_ERROR = tl.constexpr(2.0**-17)


@triton.jit(do_not_specialize=["capacity", "next_capacity", "first_group", "n_below"])
def walk_pairs(
    points,
    boxes,
    pair_queries,
    pair_groups,
    n_pairs,
    capacity,
    next_queries,
    next_boxes,
    n_next,
    next_capacity,
    work,
    first_group,
    n_below,
    limit,
    EUCLIDEAN: tl.constexpr,  # noqa: N803
    AXES: tl.constexpr,  # noqa: N803
    UNROLL: tl.constexpr,  # noqa: N803
    PAIRS: tl.constexpr,  # noqa: N803
):
    """Test the boxes of the groups of (query value, group) pairs; what is near goes on."""
    total = length_of(n_pairs, capacity)
    tested = tl.program_id(0) * 0
    for start in range(tl.program_id(0) * PAIRS, total, tl.num_programs(0) * PAIRS):
        number = start + tl.arange(0, PAIRS)
        active = number < total
        query = tl.load(pair_queries + number, mask=active, other=0)
        group = tl.load(pair_groups + number, mask=active, other=0)
        child = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        corner = (first_group + group).to(tl.int64) * (AXES * CORNERS)
        corner = boxes + (corner[:, None] + tl.arange(0, GROUP)[None, :])
        gap = tl.zeros((PAIRS, GROUP), tl.float32)
        for begin in range(0, AXES, UNROLL):
            for step in tl.static_range(UNROLL):
                axis = begin + step
                lower = tl.load(corner + axis * CORNERS, mask=active[:, None], other=0.0)
                upper = tl.load(corner + axis * CORNERS + GROUP, mask=active[:, None], other=0.0)
                x = tl.load(points + query * AXES + axis, mask=active, other=0.0)
                beyond = tl.maximum(lower - x[:, None], x[:, None] - upper)
                gap = far_enough(gap, tl.maximum(beyond, 0.0), EUCLIDEAN)
        near = (gap <= limit) & active[:, None] & (child < n_below)
        tested += tl.sum(active.to(tl.int32), 0) * GROUP
        append(
            next_queries,
            next_boxes,
            n_next,
            next_capacity,
            tl.reshape(tl.broadcast_to(query[:, None], (PAIRS, GROUP)), (PAIRS * GROUP,)),
            tl.reshape(child, (PAIRS * GROUP,)),
            tl.reshape(near, (PAIRS * GROUP,)),
        )
    tl.atomic_add(work + BOXES_TESTED, tested.to(tl.int64), sem="relaxed")


@triton.jit(do_not_specialize=["capacity"])
def count_blocks(pair_blocks, n_pairs, capacity, counts, TILE: tl.constexpr):  # noqa: N803
    """Count the pairs of each block, at the place behind its number."""
    total = length_of(n_pairs, capacity)
    for start in range(tl.program_id(0) * TILE, total, tl.num_programs(0) * TILE):
        number = start + tl.arange(0, TILE)
        active = number < total
        block = tl.load(pair_blocks + number, mask=active, other=0)
        tl.atomic_add(counts + block + 1, 1, mask=active, sem="relaxed")


@triton.jit(do_not_specialize=["capacity"])
def group_pairs(
    pair_queries,
    pair_blocks,
    n_pairs,
    capacity,
    counts,
    offsets,
    grouped,
    TILE: tl.constexpr,  # noqa: N803
):
    """Bring the query values of each block together; `counts` are used up."""
    total = length_of(n_pairs, capacity)
    for start in range(tl.program_id(0) * TILE, total, tl.num_programs(0) * TILE):
        number = start + tl.arange(0, TILE)
        active = number < total
        query = tl.load(pair_queries + number, mask=active, other=0)
        block = tl.load(pair_blocks + number, mask=active, other=0)
        before = tl.atomic_add(counts + block + 1, -1, mask=active, sem="relaxed")
        slot = tl.load(offsets + block, mask=active, other=0) + before - 1
        tl.store(grouped + slot, query, mask=active)


@triton.jit
def bits_set(word):
    """Return how many bits of each int32 are 1."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24) & 0x3F


@triton.jit
def rows_near(
    codes,
    base,
    first,
    n_rows,
    scaled,
    squares,
    x_squares,
    AXES: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
):
    """Return which of 32 rows of a block are near to each query value, a bit each of an int32."""
    axis = tl.arange(0, WIDTH)
    bit = tl.arange(0, 32)
    position = first + bit
    at = codes + base * (AXES * SIZE) + axis[:, None] * SIZE + position[None, :]
    # Without a mask a thread loads sixteen of them at a time.
    if WIDTH == AXES and SIZE % 32 == 0:
        steps = tl.load(at)
    else:
        steps = tl.load(at, mask=(axis < AXES)[:, None] & (position < SIZE)[None, :], other=0)
    shares = (steps.to(tl.float32) - MIDDLE) * STEP
    # The squared lengths of rows are the same for every query value.
    product = tl.dot(squares, (shares * shares).to(tl.float16))
    product = tl.dot(scaled, shares.to(tl.float16), product)
    real = (position < SIZE) & (base * SIZE + position < n_rows)
    near = (x_squares[:, None] + product <= 0.0) & real[None, :]
    # One bit each, so that their sum is their union.
    return tl.sum(near.to(tl.int32) << bit[None, :], 1)


@triton.jit
def append_rows(out_queries, out_rows, slot, capacity, name, first_row, word, n_near):
    """List the rows of each query value's bits, from a slot of its own on."""
    for step in range(tl.max(n_near, 0)):
        listed = (step < n_near) & (slot + step < capacity)
        tl.store(out_queries + slot + step, name, mask=listed)
        # The number of bits below the lowest one.
        row = first_row + bits_set((word & (0 - word)) - 1)
        tl.store(out_rows + slot + step, row, mask=listed)
        word = word & (word - 1)


@triton.jit
def box_of(boxes, first_group, block, AXES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    """Load the middle and the edges of a block's box, zeros for axes that only fill up."""
    axis = tl.arange(0, WIDTH)
    corner = boxes + (first_group + block // GROUP).to(tl.int64) * (AXES * CORNERS) + block % GROUP
    lower = tl.load(corner + axis * CORNERS, mask=axis < AXES, other=0.0)
    upper = tl.load(corner + axis * CORNERS + GROUP, mask=axis < AXES, other=0.0)
    return 0.5 * (lower + upper), upper - lower


@triton.jit
def points_of(points, query, AXES: tl.constexpr, WIDTH: tl.constexpr):  # noqa: N803
    axis = tl.arange(0, WIDTH)
    at = points + query[:, None] * AXES + axis[None, :]
    if WIDTH == AXES:
        return tl.load(at)
    else:
        return tl.load(at, mask=(axis < AXES)[None, :], other=0.0)


@triton.jit
def list_near_rows(
    codes,
    block,
    n_rows,
    points,
    center,
    width,
    reach,
    active,
    name,
    out_queries,
    out_rows,
    n_out,
    out_capacity,
    AXES: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
):
    """List the rows of a block that codes do not rule out, for some query values (Lemma 1).

    A row lies within half the diagonal of a step from the middle of its step: it is beyond `reach`
    where that middle is beyond it by so much more. Squared distances from the middle are products,
    of rounded factors; the bound gives way by what that may change. Few rows of a tile are left as
    a rule, and every query value lists its own.
    """
    within = reach + 0.5 * STEP * tl.sqrt(tl.sum(width * width, 0))
    squares = (width * width * (1.0 - PRODUCT_ERROR)).to(tl.float16)
    squares = tl.broadcast_to(squares[None, :], (QUERIES, WIDTH))
    x = points - center[None, :]
    x_squares = tl.sum(x * x, 1) * (1.0 - PRODUCT_ERROR) - (within * within + COORDINATE_ERROR)
    x_squares = tl.where(active, x_squares, float("inf"))
    scaled = (-2.0 * x * width[None, :]).to(tl.float16)
    base = block.to(tl.int64)
    for first in range(0, SIZE, 64):
        low = rows_near(codes, base, first, n_rows, scaled, squares, x_squares, AXES, WIDTH, SIZE)
        high = low * 0
        if SIZE > 32:
            high = rows_near(
                codes, base, first + 32, n_rows, scaled, squares, x_squares, AXES, WIDTH, SIZE
            )
        n_low = bits_set(low)
        n_high = bits_set(high)
        n_listed = tl.sum(n_low + n_high, 0)
        if n_listed > 0:
            slot = tl.atomic_add(n_out, n_listed.to(tl.int64), sem="relaxed")
            slot = slot + tl.cumsum(n_low + n_high, 0) - n_low - n_high
            row = (base * SIZE + first).to(tl.int32)
            append_rows(out_queries, out_rows, slot, out_capacity, name, row, low, n_low)
            append_rows(
                out_queries, out_rows, slot + n_low, out_capacity, name, row + 32, high, n_high
            )


@triton.jit(do_not_specialize=["out_capacity", "first_group", "n_blocks", "n_rows", "first_query"])
def test_blocks(
    points,
    boxes,
    codes,
    offsets,
    grouped,
    out_queries,
    out_rows,
    n_out,
    out_capacity,
    work,
    first_group,
    n_blocks,
    n_rows,
    first_query,
    reach,
    AXES: tl.constexpr,  # noqa: N803
    WIDTH: tl.constexpr,  # noqa: N803
    SIZE: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr,  # noqa: N803
):
    """Test the rows of each block by their codes, against all its query values.

    points: float32 (n_queries, AXES); offsets: int32 (n_blocks + 1,), of the query values of each
    block in `grouped`.
    """
    lanes = tl.arange(0, QUERIES)
    tested = tl.program_id(0).to(tl.int64) * 0
    left = tl.program_id(0) * 0
    for number in range(tl.program_id(0), n_blocks, tl.num_programs(0)):
        block = tl.program_id(0) * 0 + number
        begin = tl.load(offsets + block)
        end = tl.load(offsets + block + 1)
        if end > begin:
            center, width = box_of(boxes, first_group, block, AXES, WIDTH)
            left += end - begin
            tested += (end - begin) * tl.minimum(SIZE, n_rows - block.to(tl.int64) * SIZE)
            for start in range(begin, end, QUERIES):
                active = start + lanes < end
                query = tl.load(grouped + start + lanes, mask=active, other=0)
                list_near_rows(
                    codes, block, n_rows, points_of(points, query, AXES, WIDTH), center, width,
                    reach, active, query + first_query, out_queries, out_rows, n_out,
                    out_capacity, AXES, WIDTH, SIZE, QUERIES,
                )  # fmt: skip
    tl.atomic_add(work + ROWS_TESTED, tested, sem="relaxed")
    tl.atomic_add(work + PAIRS_LEFT, left.to(tl.int64), sem="relaxed")
