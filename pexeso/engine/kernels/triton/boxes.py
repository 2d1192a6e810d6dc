"""Triton programs that prune: boxes from coarse to fine, and rows of a block by their codes.

See `pexeso.engine.layout.blocks`.
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

GROUP = tl.constexpr(16)
"""Boxes of a group: `pexeso.engine.layout.blocks.FANOUT`."""

CORNERS = tl.constexpr(32)
"""Numbers that a group of boxes holds for each axis."""

STEP = tl.constexpr(1.0 / 256.0)
"""Of a block's box: `pexeso.engine.layout.blocks.STEPS`."""


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
