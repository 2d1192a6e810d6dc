"""Loops of the published walk, down the grids of a query and a partition.

Pairs are of a query cell or value and a cell, int32 (n,) each, or int32 (2, n) where they are
written. `first` and `count`, int64 (c,), are the run of children of each cell: cells of the next
level or, for leaves, rows.
"""

from libc.stdint cimport int32_t, int64_t


cdef class Boxes:
    """Boxes float32 (c, P), or points as boxes."""

    cdef const float[:, ::1] lower, upper

    def __init__(self, const float[:, ::1] lower, const float[:, ::1] upper):
        self.lower, self.upper = lower, upper


cdef class Bounds:
    """What loops compare with: what is apart by more than `reach` does not match.

    Where `matches`, what is surely no further apart than `accept` does. Where `euclidean`, both are
    squared, and all axes together bound the distance; else each axis does.
    """

    cdef float reach, accept
    cdef bint matches, euclidean

    def __init__(self, float reach, bint matches, float accept, bint euclidean):
        self.reach, self.matches, self.accept, self.euclidean = reach, matches, accept, euclidean


cdef inline float larger(float left, float right) noexcept nogil:
    return left if left > right else right


cdef inline bint is_near(
    const float* lower, const float* upper, const float* other_lower, const float* other_upper,
    int64_t n_axes, float reach, bint euclidean,
) noexcept nogil:
    """Return whether two boxes may hold vectors that match."""
    cdef int64_t axis
    cdef float total = 0.0, gap
    cdef bint near = True
    if euclidean:
        for axis in range(n_axes):
            gap = larger(other_lower[axis] - upper[axis], lower[axis] - other_upper[axis])
            gap = larger(gap, 0.0)
            total += gap * gap
        return total <= reach
    for axis in range(n_axes):
        # Both sides of every axis: what is known early saves less than a wrong guess costs.
        near &= (other_lower[axis] <= upper[axis] + reach) & (
            other_upper[axis] >= lower[axis] - reach
        )
    return near


cdef inline bint is_within(
    const float* point, const float* lower, const float* upper, int64_t n_axes, float accept,
    bint euclidean,
) noexcept nogil:
    """Return whether all vectors of a box surely match an upper point.

    Upper points are those of `pexeso.engine.maps.PivotMap.upper_points`.
    """
    cdef int64_t axis
    cdef float total = 0.0, far
    if euclidean:
        for axis in range(n_axes):
            far = larger(upper[axis] - point[axis], point[axis] - lower[axis])
            total += far * far
        return total <= accept
    for axis in range(n_axes):
        if point[axis] + upper[axis] <= accept:
            return True
    return False


def cells_near(
    const int32_t[::1] query_cells,
    const int32_t[::1] cells,
    const int64_t[::1] query_first,
    const int64_t[::1] query_count,
    const int64_t[::1] first,
    const int64_t[::1] count,
    Boxes query_boxes,
    Boxes boxes,
    Bounds bounds,
    int32_t[:, ::1] whole,
    int32_t[:, ::1] near,
):
    """Keep the pairs of children that may match (L4), those apart that do (L6).

    Pairs, `whole` and `near`, are int32 (2, n); children are runs of the next level's cells. Pairs
    of the same cell follow each other, those in and those out.
    """
    cdef int64_t n_axes = boxes.lower.shape[1], n_whole = 0, n_near = 0, begin = 0, end
    cdef int64_t parent, cell, pair, query, query_begin
    cdef float reach = bounds.reach, accept = bounds.accept
    cdef bint matches = bounds.matches, euclidean = bounds.euclidean
    cdef const float* lower
    cdef const float* upper
    with nogil:
        while begin < cells.shape[0]:
            parent, end = cells[begin], begin + 1
            while end < cells.shape[0] and cells[end] == parent:
                end += 1
            for cell in range(first[parent], first[parent] + count[parent]):
                lower, upper = &boxes.lower[cell, 0], &boxes.upper[cell, 0]
                for pair in range(begin, end):
                    query_begin = query_first[query_cells[pair]]
                    for query in range(query_begin, query_begin + query_count[query_cells[pair]]):
                        if matches and is_within(
                            &query_boxes.upper[query, 0], lower, upper, n_axes, accept, euclidean
                        ):
                            whole[0, n_whole] = <int32_t>query
                            whole[1, n_whole] = <int32_t>cell
                            n_whole += 1
                        elif is_near(
                            &query_boxes.lower[query, 0], &query_boxes.upper[query, 0], lower,
                            upper, n_axes, reach, euclidean,
                        ):
                            near[0, n_near] = <int32_t>query
                            near[1, n_near] = <int32_t>cell
                            n_near += 1
            begin = end
    return n_whole, n_near


def leaves_near(
    const int32_t[::1] query_cells,
    const int32_t[::1] cells,
    const int64_t[::1] query_codes,
    const int64_t[::1] codes,
    bint quick,
    const int64_t[::1] query_first,
    const int64_t[::1] query_count,
    const int64_t[::1] order,
    const float[:, ::1] mapped,
    const float[:, ::1] upper_points,
    Boxes boxes,
    Bounds bounds,
    int32_t[:, ::1] whole,
    int32_t[:, ::1] near,
):
    """Keep pairs of a query value and a leaf that may match (L3), those apart that do (L5).

    Where `quick`, a query leaf and a leaf of the same code are passed over: they are pairs already.
    """
    cdef int64_t n_axes = boxes.lower.shape[1], n_tests = 0, n_whole = 0, n_near = 0
    cdef int64_t pair, begin, position, value
    cdef int32_t cell, query_cell
    cdef float reach = bounds.reach, accept = bounds.accept
    cdef bint matches = bounds.matches, euclidean = bounds.euclidean
    cdef const float* lower
    cdef const float* upper
    with nogil:
        for pair in range(cells.shape[0]):
            cell, query_cell = cells[pair], query_cells[pair]
            if quick and codes[cell] == query_codes[query_cell]:
                continue
            begin = query_first[query_cell]
            n_tests += query_count[query_cell]
            lower, upper = &boxes.lower[cell, 0], &boxes.upper[cell, 0]
            for position in range(begin, begin + query_count[query_cell]):
                value = order[position]
                if matches and is_within(
                    &upper_points[value, 0], lower, upper, n_axes, accept, euclidean
                ):
                    whole[0, n_whole] = <int32_t>value
                    whole[1, n_whole] = cell
                    n_whole += 1
                elif is_near(
                    &mapped[value, 0], &mapped[value, 0], lower, upper, n_axes, reach, euclidean
                ):
                    near[0, n_near] = <int32_t>value
                    near[1, n_near] = cell
                    n_near += 1
    return n_tests, n_whole, n_near


def merge_by_leaf(
    const int32_t[::1] values,
    const int32_t[::1] leaves,
    const int32_t[::1] other_values,
    const int32_t[::1] other_leaves,
    int32_t[:, ::1] merged,
):
    """Merge two lists of pairs, each by leaf, into one, int32 (2, n)."""
    cdef int64_t n_merged = 0, other = 0, pair, n_pairs = leaves.shape[0]
    with nogil:
        for pair in range(n_pairs + 1):
            while other < other_leaves.shape[0] and (
                pair == n_pairs or other_leaves[other] <= leaves[pair]
            ):
                merged[0, n_merged] = other_values[other]
                merged[1, n_merged] = other_leaves[other]
                n_merged += 1
                other += 1
            if pair < n_pairs:
                merged[0, n_merged] = values[pair]
                merged[1, n_merged] = leaves[pair]
                n_merged += 1


def add_rows_reached(
    const int32_t[::1] values,
    const int32_t[::1] leaves,
    const int64_t[::1] count,
    int64_t[::1] reached,
):
    """Add the rows of leaves to those that each query value reaches."""
    cdef int64_t pair
    with nogil:
        for pair in range(leaves.shape[0]):
            reached[values[pair]] += count[leaves[pair]]


def rows_below(
    const int32_t[::1] values,
    const int32_t[::1] leaves,
    const int64_t[::1] first,
    const int64_t[::1] count,
    int64_t start,
    int64_t stop,
    int64_t[::1] cursors,
    int32_t[::1] rows,
):
    """Put complements of the rows of leaves that match into the lists of query values.

    Parameters
    ----------
    start, stop : int
        The run of query values; others are passed over.
    cursors : int64 (n,)
        Where the next row of each goes in `rows`, int32; moved on.

    Returns
    -------
    int
        Rows.
    """
    cdef int64_t n_rows = 0, pair, value, begin, row, cursor
    with nogil:
        for pair in range(leaves.shape[0]):
            value = values[pair]
            if value < start or value >= stop:
                continue
            begin, cursor = first[leaves[pair]], cursors[value - start]
            for row in range(begin, begin + count[leaves[pair]]):
                rows[cursor] = <int32_t>~row
                cursor += 1
            cursors[value - start] = cursor
            n_rows += count[leaves[pair]]
    return n_rows


def rows_near(
    const int32_t[::1] values,
    const int32_t[::1] leaves,
    const int64_t[::1] first,
    const int64_t[::1] count,
    int64_t start,
    int64_t stop,
    const float[:, ::1] mapped,
    const float[:, ::1] upper_points,
    const float[:, ::1] points,
    Bounds bounds,
    int64_t[::1] cursors,
    int32_t[::1] rows,
):
    """Put rows of leaves that may match a query value (L1) into its list, as `rows_below` does.

    Those that surely do are put as complements (L2).

    Returns
    -------
    n_rows, n_sure : int
        Rows looked at, and those that surely match.
    """
    cdef int64_t n_axes = points.shape[1], n_rows = 0, n_sure = 0, pair, value, begin, row, cursor
    cdef float reach = bounds.reach, accept = bounds.accept
    cdef bint matches = bounds.matches, euclidean = bounds.euclidean, sure
    cdef const float* point
    cdef const float* stored
    with nogil:
        for pair in range(leaves.shape[0]):
            value = values[pair]
            if value < start or value >= stop:
                continue
            begin, cursor = first[leaves[pair]], cursors[value - start]
            point = &mapped[value, 0]
            n_rows += count[leaves[pair]]
            for row in range(begin, begin + count[leaves[pair]]):
                stored = &points[row, 0]
                if is_near(point, point, stored, stored, n_axes, reach, euclidean):
                    sure = matches and is_within(
                        &upper_points[value, 0], stored, stored, n_axes, accept, euclidean
                    )
                    rows[cursor] = <int32_t>(~row if sure else row)
                    cursor += 1
                    n_sure += sure
            cursors[value - start] = cursor
    return n_rows, n_sure


def close_gaps(int64_t[::1] offsets, const int64_t[::1] cursors, int32_t[::1] rows):
    """Move lists together that end at `cursors`, set their `offsets`; return the rows of all."""
    cdef int64_t n_rows = 0, value, begin, position
    with nogil:
        for value in range(cursors.shape[0]):
            begin = offsets[value]
            offsets[value] = n_rows
            for position in range(begin, cursors[value]):
                rows[n_rows] = rows[position]
                n_rows += 1
        offsets[cursors.shape[0]] = n_rows
    return n_rows
