"""Compiled loops of the CPU kernel: one block against all query values that reach it.

These are the query values that its box did not rule out.

Under the projection a block's rows are recovered once, seen from the middle of its box, and
multiplied with four query values at a time; the squared distance falls out of the products. Small
coordinates around the middle keep the rounding small. One or two query values are compared with the
codes as they are, axes of the largest spread first.

Arrays are named as in `pexeso.engine.kernels.numba.walks`; `lower`, `upper` and `step` float32 (A,)
are a box's corners and a 256th of its edges.
"""

from __future__ import annotations

import numpy as np

from pexeso.runtime.jit import loop

_NOTHING = np.float32(0.0)
_HALF = np.float32(0.5)

FEW = 2
"""Query values that are compared with a block's codes one by one: decoding a block pays from three
on."""


@loop(loose=True)
def axes_apart(points, query, codes, block, lower, step, gaps):
    """Compute lower bounds of the distances from a mapped vector to the vectors of a block.

    The bound is taken axis by axis (Lemma 1 for pivots).

    Parameters
    ----------
    lower, step : float32 (A,)
        The box's corner, and a 256th of its edges.
    gaps : float32 (B,)
        Gets the bounds.
    """
    for row in range(codes.shape[2]):
        gaps[row] = _NOTHING
    for axis in range(codes.shape[1]):
        half = _HALF * step[axis]
        moved = lower[axis] - points[query, axis] + half
        for row in range(codes.shape[2]):
            gaps[row] = max(
                gaps[row], abs(moved + np.float32(codes[block, axis, row]) * step[axis]) - half
            )


@loop(loose=True)
def decode(codes, block, half_width, step, tile, half_squares):
    """Decode the mapped vectors of a block, relative to the middle of its box.

    Each vector is decoded as the middle of its steps.

    Parameters
    ----------
    half_width, step : float32 (A,)
        Half the box's edges, and a 256th of them.
    tile : float32 (A, B)
        Gets the vectors; each is off by at most half a step on every axis.
    half_squares : float32 (B,)
        Gets half their squared lengths.
    """
    for row in range(codes.shape[2]):
        half_squares[row] = _NOTHING
    for axis in range(codes.shape[1]):
        begin = _HALF * step[axis] - half_width[axis]
        for row in range(codes.shape[2]):
            x = np.float32(codes[block, axis, row]) * step[axis] + begin
            tile[axis, row] = x
            half_squares[row] += _HALF * x * x


@loop(loose=True)
def multiply(moved, first, tile, half_squares, gaps):
    """Compute half squared lengths minus inner products, for one query value.

    Adding ``|q|**2 / 2`` gives ``|q - x|**2 / 2``.

    Parameters
    ----------
    moved : float32 (n, A)
        Mapped query values, seen from the middle of the box.
    gaps : float32 (4, B)
        Gets the result in its first row.
    """
    for row in range(tile.shape[1]):
        gaps[0, row] = half_squares[row]
    for axis in range(0, tile.shape[0], 4):
        a0, a1, a2, a3 = (
            moved[first, axis],
            moved[first, axis + 1],
            moved[first, axis + 2],
            moved[first, axis + 3],
        )
        for row in range(tile.shape[1]):
            x0, x1, x2, x3 = (
                tile[axis, row],
                tile[axis + 1, row],
                tile[axis + 2, row],
                tile[axis + 3, row],
            )
            gaps[0, row] -= (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)


@loop(loose=True)
def multiply_four(moved, first, tile, half_squares, gaps):
    """Compute what `multiply` does, for four consecutive query values.

    What is loaded of the tile is used four times.
    """
    for row in range(tile.shape[1]):
        gaps[0, row] = half_squares[row]
        gaps[1, row] = half_squares[row]
        gaps[2, row] = half_squares[row]
        gaps[3, row] = half_squares[row]
    for axis in range(0, tile.shape[0], 4):
        a0, a1, a2, a3 = (
            moved[first, axis],
            moved[first, axis + 1],
            moved[first, axis + 2],
            moved[first, axis + 3],
        )
        b0, b1, b2, b3 = (
            moved[first + 1, axis],
            moved[first + 1, axis + 1],
            moved[first + 1, axis + 2],
            moved[first + 1, axis + 3],
        )
        c0, c1, c2, c3 = (
            moved[first + 2, axis],
            moved[first + 2, axis + 1],
            moved[first + 2, axis + 2],
            moved[first + 2, axis + 3],
        )
        d0, d1, d2, d3 = (
            moved[first + 3, axis],
            moved[first + 3, axis + 1],
            moved[first + 3, axis + 2],
            moved[first + 3, axis + 3],
        )
        for row in range(tile.shape[1]):
            x0, x1, x2, x3 = (
                tile[axis, row],
                tile[axis + 1, row],
                tile[axis + 2, row],
                tile[axis + 3, row],
            )
            gaps[0, row] -= (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
            gaps[1, row] -= (b0 * x0 + b1 * x1) + (b2 * x2 + b3 * x3)
            gaps[2, row] -= (c0 * x0 + c1 * x1) + (c2 * x2 + c3 * x3)
            gaps[3, row] -= (d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3)


@loop(loose=True)
def squares_apart(points, query, codes, block, lower, step, limit, gaps):
    """Compute the squared distances of a mapped vector from the decoded vectors of a block.

    Four axes at a time, until no row can be within the limit: the first axes tell the most.

    Parameters
    ----------
    lower, step : float32 (A,)
        The box's corner, and a 256th of its edges.
    gaps : float32 (B,)
        Gets the squared distances, or lower bounds of them that are all beyond the limit; of
        vectors in the middle of their steps.
    """
    for row in range(codes.shape[2]):
        gaps[row] = _NOTHING
    for axis in range(0, codes.shape[1], 4):
        m0 = lower[axis] - points[query, axis] + _HALF * step[axis]
        m1 = lower[axis + 1] - points[query, axis + 1] + _HALF * step[axis + 1]
        m2 = lower[axis + 2] - points[query, axis + 2] + _HALF * step[axis + 2]
        m3 = lower[axis + 3] - points[query, axis + 3] + _HALF * step[axis + 3]
        s0, s1, s2, s3 = step[axis], step[axis + 1], step[axis + 2], step[axis + 3]
        for row in range(codes.shape[2]):
            d0 = m0 + np.float32(codes[block, axis, row]) * s0
            d1 = m1 + np.float32(codes[block, axis + 1, row]) * s1
            d2 = m2 + np.float32(codes[block, axis + 2, row]) * s2
            d3 = m3 + np.float32(codes[block, axis + 3, row]) * s3
            gaps[row] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        n_near = np.int32(0)
        for row in range(codes.shape[2]):
            n_near += np.int32(gaps[row] <= limit)
        if not n_near:
            return


@loop(loose=True)
def look_from_the_middle(points, members, n_members, lower, upper, reach, moved, limits):
    """Move query values so that the middle of a block's box is the origin, and set limits.

    The limit of each query value is that for `multiply`.

    A row is within the reach, less the half step that its coordinates are off on each axis, when
    ``|q - x|**2 / 2 <= (reach + |step| / 2)**2 / 2``. Products of A terms and norms, with lengths
    up to ``|q|`` and ``|x| <= |half width|``, are off by at most ``(A + 6) u (|q|**2 + |x|**2)``
    with ``u = 2**-24``; four times that is allowed for.

    Parameters
    ----------
    moved : float32 (n, A)
        Gets the moved query values, in the order of `members`.
    limits : float32 (n,)
        Gets the limits on ``|x|**2 / 2 - q . x``.
    """
    n_axes = points.shape[1]
    half_steps, widest = _NOTHING, _NOTHING
    for axis in range(n_axes):
        half = _HALF * (upper[axis] - lower[axis])
        widest += half * half
    half_steps = np.sqrt(widest) * np.float32(1.0 / 256.0)
    wide = reach + half_steps
    error = np.float32(n_axes + 6) * np.float32(2.0**-22)
    for position in range(n_members):
        squares = _NOTHING
        for axis in range(n_axes):
            x = points[members[position], axis] - _HALF * (lower[axis] + upper[axis])
            moved[position, axis] = x
            squares += x * x
        limits[position] = _HALF * (wide * wide - squares) + error * (squares + widest)


@loop(loose=True)
def box_is_within(point, lower, upper, limit, euclidean):
    """Return whether every vector of a box is surely within a limit of a query vector.

    The query vector is known by its mapped point (Lemmas 2, 5 and 6).

    Pivots: ``q'_i + x'_i`` bounds the distance from above on every axis i. Projection:
    ``|q - x|**2 = |Aq - Ax|**2 + |rest|**2`` and the rests are at most ``r_q + r_x`` apart; the
    rest is the last axis that is not padding, and padding is 0 on both sides.
    """
    n_axes = point.shape[0]
    if not euclidean:
        bound = point[0] + upper[0]
        for axis in range(1, n_axes):
            bound = min(bound, point[axis] + upper[axis])
        return bound <= limit
    total = _NOTHING
    for axis in range(n_axes):
        far = max(upper[axis] - point[axis], point[axis] - lower[axis])
        total += far * far
        if total > limit:
            return False
    return True


@loop(loose=True)
def collect(gaps, which, n_rows, limit, query, first_row, found_query, found_row, n_found):
    """Append the rows of a block whose gap is at most the limit, and return the pair count.

    The pair count is the number of pairs found so far.
    """
    # Counted, not the least sought: processors count many at a time.
    n_near = np.int32(0)
    for row in range(n_rows):
        n_near += np.int32(gaps[which, row] <= limit)
    if not n_near:
        return n_found
    for row in range(n_rows):
        if gaps[which, row] <= limit:
            found_query[n_found], found_row[n_found] = query, first_row + row
            n_found += 1
    return n_found


@loop()
def search_block(
    points,
    turned,
    may_accept,
    members,
    n_members,
    limits,
    accept_limit,
    euclidean,
    boxes,
    group,
    box,
    codes,
    block,
    n_rows,
    scratch,
    found_query,
    found_row,
    n_found,
    work,
):
    """Find the rows of one block that may match, for all query values that reach it.

    These are the query values that its box did not rule out.

    Parameters
    ----------
    members : int32 (n,)
        The first `n_members` are query values.
    scratch : tuple of arrays
        As `walk` makes them.
    n_found : int
        Pairs found before.

    Returns
    -------
    int
        Pairs found, or -1 when they do not fit.
    """
    corners, tile, half_squares, gaps, moved, own_limits, left = scratch
    n_axes, size = codes.shape[1], codes.shape[2]
    first_row = block * size
    if first_row >= n_rows:
        return n_found
    rows = min(size, n_rows - first_row)
    lower, upper, step = corners[0], corners[1], corners[2]
    for axis in range(n_axes):
        lower[axis], upper[axis] = boxes[group, axis, 0, box], boxes[group, axis, 1, box]
        step[axis] = (upper[axis] - lower[axis]) * np.float32(1.0 / 256.0)
    work[1] += n_members
    work[3] += n_axes * size
    if n_found + n_members * size > found_row.shape[0]:
        return -1
    n_left = 0
    for position in range(n_members):
        query = members[position]
        if may_accept[query] and box_is_within(
            turned[query], lower, upper, accept_limit, euclidean
        ):
            for row in range(rows):
                found_query[n_found], found_row[n_found] = query, ~(first_row + row)
                n_found += 1
            work[4] += rows
            continue
        left[n_left] = query
        n_left += 1
    work[2] += n_left * rows
    if not euclidean:
        for position in range(n_left):
            axes_apart(points, left[position], codes, block, lower, step, gaps[0])
            n_found = collect(
                gaps, 0, rows, limits[2], left[position], first_row, found_query, found_row, n_found
            )
        return n_found
    if n_left <= FEW:
        widest = _NOTHING
        for axis in range(n_axes):
            widest += step[axis] * step[axis]
        # A vector is off by half a step on every axis, sums of 128 squares by 2**-17 of them.
        wide = limits[3] + _HALF * np.sqrt(widest)
        limit = wide * wide * np.float32(1.0 + 2.0**-16)
        for position in range(n_left):
            squares_apart(points, left[position], codes, block, lower, step, limit, gaps[0])
            n_found = collect(
                gaps, 0, rows, limit, left[position], first_row, found_query, found_row, n_found
            )
        return n_found
    look_from_the_middle(points, left, n_left, lower, upper, limits[3], moved, own_limits)
    for axis in range(n_axes):
        lower[axis] = _HALF * (upper[axis] - lower[axis])
    decode(codes, block, lower, step, tile, half_squares)
    position = 0
    while position + 4 <= n_left:
        multiply_four(moved, position, tile, half_squares, gaps)
        for which in range(4):
            n_found = collect(
                gaps,
                which,
                rows,
                own_limits[position + which],
                left[position + which],
                first_row,
                found_query,
                found_row,
                n_found,
            )
        position += 4
    while position < n_left:
        multiply(moved, position, tile, half_squares, gaps)
        n_found = collect(
            gaps,
            0,
            rows,
            own_limits[position],
            left[position],
            first_row,
            found_query,
            found_row,
            n_found,
        )
        position += 1
    return n_found
