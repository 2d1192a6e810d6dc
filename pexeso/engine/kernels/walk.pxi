"""The walk over boxes, from coarse ones down to blocks."""

cdef enum:
    FANOUT = 16  # as `pexeso.engine.blocks` has it


cdef int64_t boxes_near(
    const float* x, int64_t n_axes, const float* box, float limit, bint euclidean,
    int64_t* n_probed,
) noexcept nogil:
    """Return which of 16 sibling boxes lie within a limit of a mapped vector, a bit each.

    `box` is float32 (A, 2, 16). `n_probed` gets the axes that were looked at.
    """
    cdef float gaps[FANOUT]
    cdef float d0, d1, d2, d3, d4, d5, d6, d7
    cdef int64_t j, bits = 0, axis
    cdef int32_t n_near
    for j in range(FANOUT):
        gaps[j] = 0.0
    for axis in range(0, n_axes, 8):
        for j in range(FANOUT):
            d0 = larger(larger(box[j] - x[0], x[0] - box[16 + j]), 0.0)
            d1 = larger(larger(box[32 + j] - x[1], x[1] - box[48 + j]), 0.0)
            d2 = larger(larger(box[64 + j] - x[2], x[2] - box[80 + j]), 0.0)
            d3 = larger(larger(box[96 + j] - x[3], x[3] - box[112 + j]), 0.0)
            d4 = larger(larger(box[128 + j] - x[4], x[4] - box[144 + j]), 0.0)
            d5 = larger(larger(box[160 + j] - x[5], x[5] - box[176 + j]), 0.0)
            d6 = larger(larger(box[192 + j] - x[6], x[6] - box[208 + j]), 0.0)
            d7 = larger(larger(box[224 + j] - x[7], x[7] - box[240 + j]), 0.0)
            if euclidean:
                gaps[j] += ((d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)) + (
                    (d4 * d4 + d5 * d5) + (d6 * d6 + d7 * d7)
                )
            else:
                d0, d2 = larger(d0, d1), larger(d2, d3)
                d4, d6 = larger(d4, d5), larger(d6, d7)
                gaps[j] = larger(gaps[j], larger(larger(d0, d2), larger(d4, d6)))
        n_near = 0
        for j in range(FANOUT):
            n_near += gaps[j] <= limit
        if not n_near:
            n_probed[0] = axis + 8
            return 0
        x += 8
        box += 8 * 2 * FANOUT
    n_probed[0] = n_axes
    for j in range(FANOUT):
        bits |= <int64_t>(gaps[j] <= limit) << j
    return bits


def walk(
    WalkView view,
    int64_t level,
    int64_t begin,
    int64_t end,
    int32_t[:, ::1] pairs,
    int64_t[::1] work,
):
    """Walk from a run of box groups down to the rows that may match.

    All query values walk together, and each box and block is read once.

    Parameters
    ----------
    pairs : int32 (2, room)
        Gets pairs of a query value and a row; one that surely matches is given as its complement.
    work : int64 (5,)
        Adds (query value, box) pairs, those left at the blocks, (query value, row) pairs, bytes
        read, rows accepted whole.

    Returns
    -------
    int
        Pairs found, or -1 when they do not fit.
    """
    cdef int64_t n_points = view.points.shape[0], n_levels = view.starts.shape[0] - 1
    cdef int64_t n_found = 0, first, depth, position, this, j, number, n_below
    cdef int64_t bits, probed = 0, deepest
    cdef int32_t query
    cdef float limit
    cdef Scratch scratch = Scratch(view)
    cdef int32_t[:, ::1] active = np.empty((n_levels + 1, n_points), np.int32)
    cdef int32_t[:, ::1] near = np.empty((n_levels, n_points), np.int32)
    cdef int64_t[::1] n_active = np.zeros(n_levels + 1, np.int64)
    cdef int64_t[::1] group = np.zeros(n_levels, np.int64)
    cdef int64_t[::1] child = np.zeros(n_levels, np.int64)
    cdef int64_t[::1] union_ = np.zeros(n_levels, np.int64)
    with nogil:
        for first in range(begin, end):
            depth = level
            group[depth], child[depth] = first, -1
            n_active[depth] = n_points
            for position in range(n_points):
                active[depth, position] = <int32_t>position
            while depth >= level:
                this = view.starts[depth] + group[depth]
                if child[depth] < 0:
                    limit = view.limits[1] if depth == n_levels - 1 else view.limits[0]
                    union_[depth] = deepest = 0
                    for position in range(n_active[depth]):
                        query = active[depth, position]
                        bits = boxes_near(
                            &view.points[query, 0], view.n_axes, &view.boxes[this, 0, 0, 0], limit,
                            view.euclidean, &probed,
                        )
                        near[depth, position] = <int32_t>bits
                        union_[depth] |= bits
                        deepest = max(deepest, probed)
                    work[0] += n_active[depth] * FANOUT
                    work[3] += deepest * 2 * FANOUT * 4
                    child[depth] = 0
                j = child[depth]
                while j < FANOUT and not (union_[depth] >> j) & 1:
                    j += 1
                if j == FANOUT:
                    depth -= 1
                    continue
                child[depth] = j + 1
                number = group[depth] * FANOUT + j
                # Boxes that only pad a group are near where Lemma 4 is switched off.
                if depth < n_levels - 1 and number >= view.starts[depth + 2] - view.starts[depth + 1]:
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
                    view, &active[depth + 1, 0], n_below, this, j, number, scratch, pairs, n_found,
                    work,
                )
                if n_found < 0:
                    break
            if n_found < 0:
                break
    return n_found


cdef int64_t descend(
    WalkView view, int64_t query, int64_t last, int64_t[:, ::1] waiting, uint8_t[::1] marks,
    int64_t* n_tested,
) noexcept nogil:
    """Count the boxes of one level near a query value, all above them included; mark them.

    Boxes that only pad a group are near where the lemma is switched off: they are not counted above
    the level, and never marked. Returned are the boxes near; `n_tested` adds the boxes tested.

    `waiting`, int64 (room, 2), is scratch for levels and groups. `marks` are uint8 (boxes of the
    level,), or (0,) where they are only counted.
    """
    cdef int64_t finest = view.starts.shape[0] - 2, n_near = 0, n_waiting = 1, probed = 0
    cdef int64_t level, group, bits, n_boxes, j, number
    cdef float limit
    waiting[0, 0], waiting[0, 1] = 0, 0
    while n_waiting:
        n_waiting -= 1
        level, group = waiting[n_waiting, 0], waiting[n_waiting, 1]
        limit = view.limits[1] if level == finest and marks.shape[0] else view.limits[0]
        bits = boxes_near(
            &view.points[query, 0], view.n_axes, &view.boxes[view.starts[level] + group, 0, 0, 0],
            limit, view.euclidean, &probed,
        )
        n_tested[0] += FANOUT
        if level == finest:
            n_boxes = view.codes.shape[0]
        else:
            n_boxes = view.starts[level + 2] - view.starts[level + 1]
        for j in range(FANOUT):
            number = group * FANOUT + j
            if not (bits >> j) & 1:
                continue
            if level == last and not marks.shape[0]:
                n_near += 1
            elif number >= n_boxes:
                continue
            elif level == last:
                marks[number] = 1
            else:
                waiting[n_waiting, 0], waiting[n_waiting, 1] = level + 1, number
                n_waiting += 1
    return n_near


def count_boxes(WalkView view, int64_t begin, int64_t end, int64_t[::1] counts):
    """Count the boxes around groups of blocks near each of some query values.

    They say nearly as much as the boxes of the blocks, and are few enough for a cache. The number
    of boxes tested is returned.
    """
    cdef int64_t last = max(<int64_t>0, <int64_t>view.starts.shape[0] - 3), n_tested = 0, query
    cdef uint8_t[::1] marks = np.empty(0, np.uint8)
    cdef int64_t[:, ::1] waiting = np.empty((FANOUT * (last + 2), 2), np.int64)
    with nogil:
        for query in range(begin, end):
            counts[query] = descend(view, query, last, waiting, marks, &n_tested)
    return n_tested


def mark_boxes(WalkView view, int64_t last, uint8_t[::1] marks):
    """Mark the boxes of one level that some query value is near to, all above them included."""
    cdef int64_t[:, ::1] waiting = np.empty((FANOUT * (last + 2), 2), np.int64)
    cdef int64_t n_tested = 0, query
    with nogil:
        for query in range(view.points.shape[0]):
            descend(view, query, last, waiting, marks, &n_tested)


def group_by_query(const int32_t[::1] queries, const int32_t[::1] rows, int64_t n_queries):
    """Bring pairs into CSR form by query value, rows of each in the order they come in."""
    all_offsets, all_rows = np.zeros(n_queries + 1, np.int64), np.empty(rows.shape[0], np.int32)
    cdef int64_t[::1] offsets = all_offsets
    cdef int32_t[::1] grouped = all_rows
    cdef vector[int64_t] positions
    cdef int64_t pair, query
    with nogil:
        for pair in range(queries.shape[0]):
            offsets[queries[pair] + 1] += 1
        for query in range(n_queries):
            offsets[query + 1] += offsets[query]
        positions.resize(n_queries)
        for query in range(n_queries):
            positions[query] = offsets[query]
        for pair in range(queries.shape[0]):
            grouped[positions[queries[pair]]] = rows[pair]
            positions[queries[pair]] += 1
    return all_offsets, all_rows
