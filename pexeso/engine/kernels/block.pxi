"""One block against its query values.

Roundings are within the tolerance of mapped coordinates (`pexeso.engine.maps.slack`). Axes are
taken four or eight at a time, whose multiple they are padded to
(`pexeso.engine.blocks.AXES_MULTIPLE`).

Under the projection a block's rows are recovered once, seen from the middle of its box, and
multiplied with four query values at a time; the squared distance falls out of the products. Small
coordinates around the middle keep the rounding small. One or two query values are compared with the
codes as they are, axes of the largest spread first.

`codes` are those of one block, uint8 (A, B). `lower`, `upper` and `step`, float32 (A,), are a box's
corners and a 256th of its edges. `gaps`, float32 (B,), are written.
"""

cdef enum:
    # Query values that are compared with a block's codes one by one: decoding a block pays from
    # three.
    FEW = 2


cdef class WalkView:
    """Mapped query values and the cells of a partition.

    Where `euclidean`, all axes together bound the distance and limits are squared; else each axis
    alone does.

    Parameters
    ----------
    points : float32 (n, A)
        Mapped query values, padded.
    turned : float32 (n, A)
        As `points`, for the bound from above: with the rest's sign turned under the projection.
    may_accept : bool (n,)
    limits : float32 (4,)
        For coarse boxes (Lemma 4), for boxes of blocks (Lemma 3) and for rows (Lemma 1); and that
        for rows, never squared.
    boxes : float32 (G, A, 2, 16)
    starts : int64 (L + 1,)
        The first group of each level.
    codes : uint8 (K, A, B)
    """

    cdef const float[:, ::1] points
    cdef const float[:, ::1] turned
    cdef const uint8_t[::1] may_accept
    cdef const float[::1] limits
    cdef float accept_limit
    cdef bint euclidean
    cdef const float[:, :, :, ::1] boxes
    cdef const int64_t[::1] starts
    cdef const uint8_t[:, :, ::1] codes
    cdef int64_t n_rows, n_axes, size

    def __init__(
        self,
        const float[:, ::1] points,
        const float[:, ::1] turned,
        const uint8_t[::1] may_accept,
        const float[::1] limits,
        float accept_limit,
        bint euclidean,
        const float[:, :, :, ::1] boxes,
        const int64_t[::1] starts,
        const uint8_t[:, :, ::1] codes,
        int64_t n_rows,
    ):
        self.points, self.turned, self.may_accept = points, turned, may_accept
        self.limits, self.accept_limit, self.euclidean = limits, accept_limit, euclidean
        self.boxes, self.starts, self.codes, self.n_rows = boxes, starts, codes, n_rows
        self.n_axes, self.size = codes.shape[1], codes.shape[2]


cdef class Scratch:
    """What a walk writes to and forgets."""

    cdef float[:, ::1] corners, tile, gaps, moved
    cdef float[::1] half_squares, own_limits
    cdef int32_t[::1] left

    def __init__(self, WalkView view):
        cdef int64_t n_points = view.points.shape[0]
        self.corners = np.empty((3, view.n_axes), np.float32)
        self.tile = np.empty((view.n_axes, view.size), np.float32)
        self.half_squares = np.empty(view.size, np.float32)
        self.gaps = np.empty((4, view.size), np.float32)
        self.moved = np.empty((n_points, view.n_axes), np.float32)
        self.own_limits = np.empty(n_points, np.float32)
        self.left = np.empty(n_points, np.int32)


cdef inline float larger(float left, float right) noexcept nogil:
    return left if left > right else right


cdef int64_t count_near(const float* gaps, int64_t n_rows, float limit) noexcept nogil:
    cdef int32_t n_near = 0
    cdef int64_t row
    for row in range(n_rows):
        n_near += gaps[row] <= limit
    return n_near


cdef void axes_apart(
    const float* point, const uint8_t* codes, int64_t n_axes, int64_t size, const float* lower,
    const float* step, FloatsAlone gaps,
) noexcept nogil:
    """Compute lower bounds of a mapped vector's distances from a block's, axis by axis (L1)."""
    cdef int64_t axis, row
    cdef float half, moved, width
    for row in range(size):
        gaps[row] = 0.0
    for axis in range(n_axes):
        width = step[axis]
        half = <float>0.5 * width
        moved = lower[axis] - point[axis] + half
        for row in range(size):
            gaps[row] = larger(gaps[row], fabsf(moved + <float>codes[row] * width) - half)
        codes += size


cdef void decode(
    const uint8_t* codes, int64_t n_axes, int64_t size, const float* half_width, const float* step,
    FloatsAlone tile, FloatsAlone half_squares,
) noexcept nogil:
    """Decode the mapped vectors of a block as the middle of their steps, seen from that of its box.

    `half_width` float32 (A,) is half the box's edges. `tile` float32 (A, B) gets the vectors, each
    off by at most half a step on every axis, and `half_squares` float32 (B,) half their squared
    lengths.
    """
    cdef int64_t axis, row
    cdef float begin, width, x
    for row in range(size):
        half_squares[row] = 0.0
    for axis in range(n_axes):
        width = step[axis]
        begin = <float>0.5 * width - half_width[axis]
        for row in range(size):
            x = <float>codes[row] * width + begin
            tile[row] = x
            half_squares[row] += x * x
        codes += size
        tile += size
    for row in range(size):
        half_squares[row] *= <float>0.5


cdef void multiply(
    const float* a, const float* tile, int64_t n_axes, int64_t size, const float* half_squares,
    FloatsAlone gaps,
) noexcept nogil:
    """Compute half squared lengths minus inner products of a query value.

    Adding ``|q|**2 / 2`` gives ``|q - x|**2 / 2``. The query value is seen from the middle of the
    box.
    """
    cdef int64_t row
    cdef const float* end = a + n_axes
    cdef float a0, a1, a2, a3
    cdef const float* x0
    cdef const float* x1
    cdef const float* x2
    cdef const float* x3
    memcpy(gaps, half_squares, size * sizeof(float))
    while a < end:
        a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
        x0, x1, x2, x3 = tile, tile + size, tile + 2 * size, tile + 3 * size
        for row in range(size):
            gaps[row] -= (a0 * x0[row] + a1 * x1[row]) + (a2 * x2[row] + a3 * x3[row])
        a += 4
        tile += 4 * size


cdef void multiply_four(
    const float* a, const float* tile, int64_t n_axes, int64_t size, const float* half_squares,
    FloatsAlone gaps_a, FloatsAlone gaps_b, FloatsAlone gaps_c, FloatsAlone gaps_d,
) noexcept nogil:
    """Do as `multiply` for four consecutive query values: what is loaded is used four times."""
    cdef int64_t row
    cdef const float* end = a + n_axes
    cdef const float* b = a + n_axes
    cdef const float* c = a + 2 * n_axes
    cdef const float* d = a + 3 * n_axes
    cdef float a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3, y0, y1, y2, y3
    cdef const float* x0
    cdef const float* x1
    cdef const float* x2
    cdef const float* x3
    memcpy(gaps_a, half_squares, size * sizeof(float))
    memcpy(gaps_b, half_squares, size * sizeof(float))
    memcpy(gaps_c, half_squares, size * sizeof(float))
    memcpy(gaps_d, half_squares, size * sizeof(float))
    while a < end:
        a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
        b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
        c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
        d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
        x0, x1, x2, x3 = tile, tile + size, tile + 2 * size, tile + 3 * size
        for row in range(size):
            y0, y1, y2, y3 = x0[row], x1[row], x2[row], x3[row]
            gaps_a[row] -= (a0 * y0 + a1 * y1) + (a2 * y2 + a3 * y3)
            gaps_b[row] -= (b0 * y0 + b1 * y1) + (b2 * y2 + b3 * y3)
            gaps_c[row] -= (c0 * y0 + c1 * y1) + (c2 * y2 + c3 * y3)
            gaps_d[row] -= (d0 * y0 + d1 * y1) + (d2 * y2 + d3 * y3)
        a += 4
        b += 4
        c += 4
        d += 4
        tile += 4 * size


cdef void squares_apart(
    const float* point, const uint8_t* codes, int64_t n_axes, int64_t size, const float* lower,
    const float* step, float limit, FloatsAlone gaps,
) noexcept nogil:
    """Compute the squared distances of a mapped vector from the decoded vectors of a block.

    Four axes at a time, until no row can be within the limit: the first axes say the most. Gaps may
    be lower bounds if all are beyond the limit; vectors are taken as the middle of their steps.
    """
    cdef int64_t axis, row
    cdef float m0, m1, m2, m3, s0, s1, s2, s3, d0, d1, d2, d3
    cdef const uint8_t* c1
    cdef const uint8_t* c2
    cdef const uint8_t* c3
    for row in range(size):
        gaps[row] = 0.0
    for axis in range(0, n_axes, 4):
        s0, s1, s2, s3 = step[axis], step[axis + 1], step[axis + 2], step[axis + 3]
        m0 = lower[axis] - point[axis] + <float>0.5 * s0
        m1 = lower[axis + 1] - point[axis + 1] + <float>0.5 * s1
        m2 = lower[axis + 2] - point[axis + 2] + <float>0.5 * s2
        m3 = lower[axis + 3] - point[axis + 3] + <float>0.5 * s3
        c1, c2, c3 = codes + size, codes + 2 * size, codes + 3 * size
        for row in range(size):
            d0 = m0 + <float>codes[row] * s0
            d1 = m1 + <float>c1[row] * s1
            d2 = m2 + <float>c2[row] * s2
            d3 = m3 + <float>c3[row] * s3
            gaps[row] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
        if not count_near(gaps, size, limit):
            return
        codes += 4 * size


def squared_gaps(
    const float[::1] point,
    const uint8_t[:, ::1] codes,
    const float[::1] lower,
    const float[::1] step,
    float limit,
    float[::1] gaps,
):
    """Do what `squares_apart` does, for one block of `codes`."""
    squares_apart(
        &point[0], &codes[0, 0], codes.shape[0], codes.shape[1], &lower[0], &step[0], limit,
        &gaps[0],
    )


cdef inline float sum_of_eight(const float* sums) noexcept nogil:
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


cdef void look_from_the_middle(
    const float[:, ::1] points, const int32_t* members, int64_t n_members, const float* half_width,
    const float* middle, float reach, FloatsAlone moved, FloatsAlone limits,
) noexcept nogil:
    """Move query values so that the middle of a block's box is the origin, and set limits.

    A row is within the reach, less the half step that its coordinates are off on each axis, when
    ``|q - x|**2 / 2 <= (reach + |step| / 2)**2 / 2``. Products of A terms and norms, with lengths
    up to ``|q|`` and ``|x| <= |half width|``, are off by at most ``(A + 6) u (|q|**2 + |x|**2)``
    with ``u = 2**-24``; four times that is allowed for. `moved` float32 (n, A) gets the query
    values in the order of `members`, and `limits` float32 (n,) those on ``|x|**2 / 2 - q . x``.
    """
    cdef int64_t n_axes = points.shape[1], axis, position, lane
    cdef float widest = 0.0, wide, error, squares, x
    cdef float sums[8]
    cdef const float* point
    for axis in range(n_axes):
        widest += half_width[axis] * half_width[axis]
    wide = reach + sqrtf(widest) * <float>(1.0 / 256.0)
    error = <float>(n_axes + 6) * <float>(1.0 / (1 << 22))
    for position in range(n_members):
        point = &points[members[position], 0]
        for lane in range(8):
            sums[lane] = 0.0
        for axis in range(0, n_axes, 8):
            for lane in range(8):
                x = point[axis + lane] - middle[axis + lane]
                moved[axis + lane] = x
                sums[lane] += x * x
        squares = sum_of_eight(sums)
        limits[position] = <float>0.5 * (wide * wide - squares) + error * (squares + widest)
        moved += n_axes


cdef bint box_is_within(
    const float* point, int64_t n_axes, const float* lower, const float* upper, float limit,
    bint euclidean,
) noexcept nogil:
    """Return whether every vector of a box is surely within a limit of a query vector (L2, 5, 6).

    Pivots: ``q'_i + x'_i`` bounds the distance from above on every axis i. Projection:
    ``|q - x|**2 = |Aq - Ax|**2 + |rest|**2`` and the rests are at most ``r_q + r_x`` apart; the
    rest is the last axis that is not padding, and padding is 0 on both sides.
    """
    cdef int64_t axis
    cdef float total = 0.0, far
    if not euclidean:
        for axis in range(n_axes):
            if point[axis] + upper[axis] <= limit:
                return True
        return False
    for axis in range(n_axes):
        far = larger(upper[axis] - point[axis], point[axis] - lower[axis])
        total += far * far
        if total > limit:
            return False
    return True


cdef int64_t collect(
    const float* gaps, int64_t n_rows, float limit, int32_t query, int64_t first_row,
    int32_t* queries, int32_t* found, int64_t n_found,
) noexcept nogil:
    """Append the rows of a block whose gap is at most the limit; return the pairs found so far."""
    cdef int64_t row
    # Counted, not the least sought: processors count many at a time.
    if not count_near(gaps, n_rows, limit):
        return n_found
    for row in range(n_rows):
        if gaps[row] <= limit:
            queries[n_found] = query
            found[n_found] = <int32_t>(first_row + row)
            n_found += 1
    return n_found


cdef int64_t search_block(
    WalkView view, const int32_t* members, int64_t n_members, int64_t group, int64_t box,
    int64_t block, Scratch scratch, int32_t[:, ::1] pairs, int64_t n_found, int64_t[::1] work,
) noexcept nogil:
    """Find the rows of one block that may match query values, those that its box did not rule out.

    Returned are the pairs found so far, or -1 when they do not fit.
    """
    cdef int64_t n_axes = view.n_axes, size = view.size, first_row = block * size
    cdef int64_t rows, n_left = 0, position = 0, axis, number, row
    cdef int32_t query
    cdef float* lower = &scratch.corners[0, 0]
    cdef float* upper = &scratch.corners[1, 0]
    cdef float* step = &scratch.corners[2, 0]
    cdef float* gaps = &scratch.gaps[0, 0]
    cdef const uint8_t* codes
    cdef int32_t* queries
    cdef int32_t* found
    cdef float widest = 0.0, wide, limit
    if first_row >= view.n_rows:
        return n_found
    rows = min(size, view.n_rows - first_row)
    codes = &view.codes[block, 0, 0]
    for axis in range(n_axes):
        lower[axis], upper[axis] = view.boxes[group, axis, 0, box], view.boxes[group, axis, 1, box]
        step[axis] = (upper[axis] - lower[axis]) * <float>(1.0 / 256.0)
    work[1] += n_members
    work[3] += n_axes * size
    if n_found + n_members * size > pairs.shape[1]:
        return -1
    queries, found = &pairs[0, 0], &pairs[1, 0]  # with room for all rows of the block
    for number in range(n_members):
        query = members[number]
        if view.may_accept[query] and box_is_within(
            &view.turned[query, 0], n_axes, lower, upper, view.accept_limit, view.euclidean
        ):
            for row in range(rows):
                queries[n_found] = query
                found[n_found] = <int32_t>~(first_row + row)
                n_found += 1
            work[4] += rows
            continue
        scratch.left[n_left] = query
        n_left += 1
    work[2] += n_left * rows
    if not view.euclidean:
        limit = view.limits[2]
        for number in range(n_left):
            query = scratch.left[number]
            axes_apart(&view.points[query, 0], codes, n_axes, size, lower, step, gaps)
            n_found = collect(gaps, rows, limit, query, first_row, queries, found, n_found)
        return n_found
    if n_left <= FEW:
        for axis in range(n_axes):
            widest += step[axis] * step[axis]
        # A vector is off by half a step on every axis, sums of 128 squares by 2**-17 of them.
        wide = view.limits[3] + <float>0.5 * sqrtf(widest)
        limit = wide * wide * <float>(1.0 + 1.0 / 65536.0)
        for number in range(n_left):
            query = scratch.left[number]
            squares_apart(&view.points[query, 0], codes, n_axes, size, lower, step, limit, gaps)
            n_found = collect(gaps, rows, limit, query, first_row, queries, found, n_found)
        return n_found
    for axis in range(n_axes):  # from now on half the edges, and the middle
        wide = upper[axis] - lower[axis]
        upper[axis] = <float>0.5 * (lower[axis] + upper[axis])
        lower[axis] = <float>0.5 * wide
    look_from_the_middle(
        view.points, &scratch.left[0], n_left, lower, upper, view.limits[3], &scratch.moved[0, 0],
        &scratch.own_limits[0],
    )
    decode(codes, n_axes, size, lower, step, &scratch.tile[0, 0], &scratch.half_squares[0])
    while position < n_left:
        if position + 4 <= n_left:
            multiply_four(
                &scratch.moved[position, 0], &scratch.tile[0, 0], n_axes, size,
                &scratch.half_squares[0], gaps, gaps + size, gaps + 2 * size, gaps + 3 * size,
            )
            number = 4
        else:
            multiply(
                &scratch.moved[position, 0], &scratch.tile[0, 0], n_axes, size,
                &scratch.half_squares[0], gaps,
            )
            number = 1
        for row in range(number):
            n_found = collect(
                gaps + row * size, rows, scratch.own_limits[position], scratch.left[position],
                first_row, queries, found, n_found,
            )
            position += 1
    return n_found
