"""Compiled loops of the CPU kernel: the walk over boxes, and the order of what it finds.

Every function releases the interpreter lock, so that threads run them side by side. Sums may be
taken in any order and fused (`loose`): their rounding is within the tolerance of mapped coordinates
(`pexeso.engine.layout.maps.slack`). Axes are taken eight at a time, the multiple that they are
padded to (`pexeso.engine.layout.blocks.AXES_MULTIPLE`).

Arrays are named alike in all loops: `points` float32 (n, A) are mapped query values, padded;
`boxes` float32 (G, A, 2, 16), and `starts` int64 (L + 1,) the first group of each level; `codes`
uint8 (K, A, B). Where `euclidean`, all axes together bound the distance, else each axis alone;
limits are then squared. `gaps` is scratch.
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.kernels.numba.blocks import search_block
from pexeso.engine.layout.blocks import FANOUT
from pexeso.runtime.jit import loop

_NOTHING = np.float32(0.0)


@loop(loose=True)
def boxes_near(points, query, boxes, group, limit, euclidean, gaps):
    """Return which of 16 sibling boxes lie within a limit of a mapped vector.

    Returns
    -------
    bits : int
        Bit j is set when box j is near.
    n_axes : int
        Axes that were looked at.
    """
    for j in range(FANOUT):
        gaps[j] = _NOTHING
    n_axes = points.shape[1]
    for axis in range(0, n_axes, 8):
        x0 = points[query, axis]
        x1 = points[query, axis + 1]
        x2 = points[query, axis + 2]
        x3 = points[query, axis + 3]
        x4 = points[query, axis + 4]
        x5 = points[query, axis + 5]
        x6 = points[query, axis + 6]
        x7 = points[query, axis + 7]
        for j in range(FANOUT):
            d0 = max(max(boxes[group, axis, 0, j] - x0, x0 - boxes[group, axis, 1, j]), _NOTHING)
            d1 = max(
                max(boxes[group, axis + 1, 0, j] - x1, x1 - boxes[group, axis + 1, 1, j]), _NOTHING
            )
            d2 = max(
                max(boxes[group, axis + 2, 0, j] - x2, x2 - boxes[group, axis + 2, 1, j]), _NOTHING
            )
            d3 = max(
                max(boxes[group, axis + 3, 0, j] - x3, x3 - boxes[group, axis + 3, 1, j]), _NOTHING
            )
            d4 = max(
                max(boxes[group, axis + 4, 0, j] - x4, x4 - boxes[group, axis + 4, 1, j]), _NOTHING
            )
            d5 = max(
                max(boxes[group, axis + 5, 0, j] - x5, x5 - boxes[group, axis + 5, 1, j]), _NOTHING
            )
            d6 = max(
                max(boxes[group, axis + 6, 0, j] - x6, x6 - boxes[group, axis + 6, 1, j]), _NOTHING
            )
            d7 = max(
                max(boxes[group, axis + 7, 0, j] - x7, x7 - boxes[group, axis + 7, 1, j]), _NOTHING
            )
            if euclidean:
                gaps[j] += ((d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)) + (
                    (d4 * d4 + d5 * d5) + (d6 * d6 + d7 * d7)
                )
            else:
                largest = max(max(max(d0, d1), max(d2, d3)), max(max(d4, d5), max(d6, d7)))
                gaps[j] = max(gaps[j], largest)
        n_near = np.int32(0)
        for j in range(FANOUT):
            n_near += np.int32(gaps[j] <= limit)
        if not n_near:
            return 0, axis + 8
    bits = 0
    for j in range(FANOUT):
        bits |= np.int64(gaps[j] <= limit) << j
    return bits, n_axes


@loop()
def walk(
    points,
    turned,
    may_accept,
    limits,
    accept_limit,
    euclidean,
    boxes,
    starts,
    codes,
    n_rows,
    level,
    begin,
    end,
    found_query,
    found_row,
    work,
):
    """Walk from a run of box groups down to the rows that may match.

    All query values walk together, and each box and block is read once.

    Parameters
    ----------
    turned : float32 (n, A)
        As `points`, for the bound from above: with the rest's sign turned under the projection.
    limits : float32 (4,)
        For coarse boxes (Lemma 4), for boxes of blocks (Lemma 3) and for rows (Lemma 1), squared
        for the Euclidean bound; and that for rows itself.
    found_query, found_row : int32 (room,)
        The pairs found; a row that surely matches is given as its complement.
    work : int64 (5,)
        Adds (query value, box) pairs, those left at the blocks, (query value, row) pairs, bytes
        read, rows accepted whole.

    Returns
    -------
    int
        Pairs found, or -1 when they do not fit.
    """
    n_points, n_axes = points.shape
    n_levels = starts.shape[0] - 1
    size = codes.shape[2]
    active = np.empty((n_levels + 1, n_points), np.int32)
    near = np.empty((n_levels, n_points), np.int32)
    n_active = np.zeros(n_levels + 1, np.int64)
    group = np.zeros(n_levels, np.int64)
    child = np.zeros(n_levels, np.int64)
    union = np.zeros(n_levels, np.int64)
    gaps = np.empty(FANOUT, np.float32)
    scratch = (
        np.empty((3, n_axes), np.float32),
        np.empty((n_axes, size), np.float32),
        np.empty(size, np.float32),
        np.empty((4, size), np.float32),
        np.empty((n_points, n_axes), np.float32),
        np.empty(n_points, np.float32),
        np.empty(n_points, np.int32),
    )
    n_found = 0
    for first in range(begin, end):
        depth = level
        group[depth], child[depth] = first, -1
        n_active[depth] = n_points
        for position in range(n_points):
            active[depth, position] = position
        while depth >= level:
            if child[depth] < 0:
                place_of_group = starts[depth] + group[depth]
                limit = limits[1] if depth == n_levels - 1 else limits[0]
                union[depth] = 0
                deepest = 0
                for position in range(n_active[depth]):
                    bits, probed = boxes_near(
                        points,
                        active[depth, position],
                        boxes,
                        place_of_group,
                        limit,
                        euclidean,
                        gaps,
                    )
                    near[depth, position] = bits
                    union[depth] |= bits
                    deepest = max(deepest, probed)
                work[0] += n_active[depth] * FANOUT
                work[3] += deepest * 2 * FANOUT * 4
                child[depth] = 0
            j = child[depth]
            while j < FANOUT and not (union[depth] >> j) & 1:
                j += 1
            if j == FANOUT:
                depth -= 1
                continue
            child[depth] = j + 1
            number = group[depth] * FANOUT + j
            # Boxes that only pad a group are near where Lemma 4 is switched off.
            if depth < n_levels - 1 and number >= starts[depth + 2] - starts[depth + 1]:
                continue
            n_below = 0
            for position in range(n_active[depth]):
                if (near[depth, position] >> j) & 1:
                    active[depth + 1, n_below] = active[depth, position]
                    n_below += 1
            n_active[depth + 1] = n_below
            if depth < n_levels - 1:
                depth += 1
                group[depth], child[depth] = number, -1
                continue
            n_found = search_block(
                points,
                turned,
                may_accept,
                active[depth + 1],
                n_below,
                limits,
                accept_limit,
                euclidean,
                boxes,
                starts[depth] + group[depth],
                j,
                codes,
                number,
                n_rows,
                scratch,
                found_query,
                found_row,
                n_found,
                work,
            )
            if n_found < 0:
                return -1
    return n_found


@loop()
def count_blocks(points, begin, end, limits, euclidean, boxes, starts, counts):
    """Count, for each query value, the boxes around block groups that do not rule it out.

    The number of boxes tested is returned.

    They say nearly as much as the boxes of the blocks, and are few enough for a cache.
    """
    last = max(0, starts.shape[0] - 3)
    gaps = np.empty(FANOUT, np.float32)
    waiting_level, waiting = (
        np.empty(FANOUT * (last + 2), np.int64),
        np.empty(FANOUT * (last + 2), np.int64),
    )
    n_tested = 0
    for query in range(begin, end):
        waiting_level[0], waiting[0], n_waiting = 0, 0, 1
        n_blocks = 0
        while n_waiting:
            n_waiting -= 1
            level, group = waiting_level[n_waiting], waiting[n_waiting]
            bits, _ = boxes_near(
                points, query, boxes, starts[level] + group, limits[0], euclidean, gaps
            )
            n_tested += FANOUT
            n_below = starts[level + 2] - starts[level + 1] if level < last else 0
            for j in range(FANOUT):
                near = (bits >> j) & 1
                if level == last:
                    n_blocks += near
                elif near and group * FANOUT + j < n_below:
                    waiting_level[n_waiting], waiting[n_waiting] = level + 1, group * FANOUT + j
                    n_waiting += 1
        counts[query] = n_blocks
    return n_tested


@loop()
def group_by_query(queries, rows, n_queries):
    """Bring pairs into CSR form by query value, rows of each in the order they come in."""
    offsets = np.zeros(n_queries + 1, np.int64)
    for pair in range(queries.shape[0]):
        offsets[queries[pair] + 1] += 1
    for query in range(n_queries):
        offsets[query + 1] += offsets[query]
    position = offsets[:-1].copy()
    grouped = np.empty(rows.shape[0], np.int32)
    for pair in range(queries.shape[0]):
        grouped[position[queries[pair]]] = rows[pair]
        position[queries[pair]] += 1
    return offsets, grouped


@loop()
def mark_boxes(points, limits, euclidean, boxes, starts, n_blocks, last, marks):
    """Mark the boxes of one level that some query value is near to, all above them included.

    Parameters
    ----------
    marks : uint8 (boxes of the level,)
        Set to 1 where a query value is near.
    """
    n_levels = starts.shape[0] - 1
    gaps = np.empty(FANOUT, np.float32)
    waiting_level, waiting = (
        np.empty(FANOUT * (last + 2), np.int64),
        np.empty(FANOUT * (last + 2), np.int64),
    )
    for query in range(points.shape[0]):
        waiting_level[0], waiting[0], n_waiting = 0, 0, 1
        while n_waiting:
            n_waiting -= 1
            level, group = waiting_level[n_waiting], waiting[n_waiting]
            limit = limits[1] if level == n_levels - 1 else limits[0]
            bits, _ = boxes_near(
                points, query, boxes, starts[level] + group, limit, euclidean, gaps
            )
            n_boxes = n_blocks if level == n_levels - 1 else starts[level + 2] - starts[level + 1]
            for j in range(FANOUT):
                number = group * FANOUT + j
                # Boxes that only pad a group are near where the lemma is switched off.
                if not (bits >> j) & 1 or number >= n_boxes:
                    continue
                if level == last:
                    marks[number] = 1
                else:
                    waiting_level[n_waiting], waiting[n_waiting] = level + 1, number
                    n_waiting += 1
