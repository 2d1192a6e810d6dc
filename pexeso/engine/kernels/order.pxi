"""`order_by_splits` by selection instead of sorting: O(n P) a halving.

The order is that of `pexeso.engine.blocks.order_by_splits`.
"""

cdef enum:
    BINS = 256
    # Rows that are copied together: into a cache that cores share, and into one of their own.
    FAR = 1 << 18
    NEAR = 1 << 13


cdef float ranked(vector[float]& keys, int64_t rank) noexcept nogil:
    nth_element(keys.begin(), keys.begin() + rank, keys.end())
    return keys[rank]


cdef float select(
    const float* keys, int64_t n, int64_t rank, float lower, float upper, vector[float]& room
) noexcept nogil:
    """Return the key of the given rank, counted from 0; all are from `lower` to `upper`.

    Counted in equal bins, so that only one bin has to be looked at closely.
    """
    cdef int64_t counts[BINS]
    cdef int64_t position, chosen = 0, before = 0, n_kept = 0
    cdef float scale = <float>(BINS - 1) / (upper - lower)
    cdef float* kept
    if n < 4 * BINS or not isfinite(scale):
        room.assign(keys, keys + n)
        return ranked(room, rank)
    for chosen in range(BINS):
        counts[chosen] = 0
    for position in range(n):
        counts[<int64_t>((keys[position] - lower) * scale)] += 1
    chosen = 0
    while before + counts[chosen] <= rank:
        before += counts[chosen]
        chosen += 1
    room.resize(counts[chosen] + 1)
    kept = room.data()
    for position in range(n):
        # The bins are in the order of the keys: each step of the arithmetic is monotonic, rounded
        # or not.
        kept[n_kept] = keys[position]
        n_kept += <int64_t>((keys[position] - lower) * scale) == chosen
    room.resize(n_kept)
    return ranked(room, rank - before)


cdef int64_t widest_axis(
    const float* mapped, int64_t n_axes, const int64_t* order, int64_t begin, int64_t end,
    FloatsAlone lower, FloatsAlone upper,
) noexcept nogil:
    """Write the corners of the box around a segment, and return its widest axis."""
    cdef int64_t position, axis, widest = 0
    cdef const float* row = mapped + order[begin] * n_axes
    memcpy(lower, row, n_axes * sizeof(float))
    memcpy(upper, row, n_axes * sizeof(float))
    for position in range(begin + 1, end):
        row = mapped + order[position] * n_axes
        for axis in range(n_axes):
            # As a choice, not as min and max, this becomes one instruction for many axes.
            lower[axis] = row[axis] if row[axis] < lower[axis] else lower[axis]
            upper[axis] = row[axis] if row[axis] > upper[axis] else upper[axis]
    for axis in range(1, n_axes):
        if upper[axis] - lower[axis] > upper[widest] - lower[widest]:
            widest = axis
    return widest


cdef int64_t split_segment(
    const float* mapped, int64_t n_axes, int64_t* order, int64_t begin, int64_t end,
    int64_t block_size, FloatsAlone keys, int64_t* other, vector[float]& room,
) noexcept nogil:
    """Do what `split` does."""
    cdef int64_t size = end - begin, widest, n_left, position, n_below = 0, ties, left, right, row
    cdef float border, key, lowest, highest
    cdef bint tied, goes_left
    if size <= block_size:
        return end
    room.resize(2 * n_axes)
    widest = widest_axis(mapped, n_axes, order, begin, end, room.data(), room.data() + n_axes)
    lowest, highest = room[widest], room[n_axes + widest]
    n_left = min(((size + block_size - 1) // block_size + 1) // 2 * block_size, size)
    for position in range(begin, end):
        keys[position] = mapped[order[position] * n_axes + widest]
    border = select(keys + begin, size, n_left - 1, lowest, highest, room)
    for position in range(begin, end):
        n_below += keys[position] < border
    ties = n_left - n_below
    left = right = begin
    for position in range(begin, end):
        # Written to both sides, kept on one: a branch would be guessed wrong every other time.
        key, row = keys[position], order[position]
        tied = (key == border) & (ties > 0)
        goes_left = (key < border) | tied
        ties -= tied
        order[left] = row
        other[right] = row
        left += goes_left
        right += not goes_left
    memcpy(order + left, other + begin, (right - begin) * sizeof(int64_t))
    return left


cdef void split_down(
    const float* mapped, int64_t n_axes, int64_t* order, int64_t begin, int64_t end,
    int64_t block_size, int64_t max_rows, float* keys, int64_t* other, vector[float]& room,
    vector[int64_t]& stops,
) noexcept nogil:
    """Halve a segment until the parts have at most `max_rows` rows or are blocks.

    The ends of the parts are written to `stops`.
    """
    cdef int64_t waiting[128]
    cdef int64_t n_waiting = 1, first = begin, last, middle
    waiting[0] = end
    stops.clear()
    while n_waiting:
        last = middle = waiting[n_waiting - 1]
        if last - first > max_rows:
            middle = split_segment(
                mapped, n_axes, order, first, last, block_size, keys, other, room
            )
        if middle < last:
            waiting[n_waiting] = middle
            n_waiting += 1
        else:
            stops.push_back(last)
            n_waiting -= 1
            first = last


cdef void copy_rows(
    const float* mapped, int64_t n_axes, const int64_t* order, int64_t n_rows, float* copied,
    int64_t* copied_order,
) noexcept nogil:
    cdef int64_t position
    for position in range(n_rows):
        memcpy(
            copied + position * n_axes, mapped + order[position] * n_axes, n_axes * sizeof(float)
        )
        copied_order[position] = position


cdef void take_order(
    int64_t* order, int64_t n_rows, const int64_t* copied_order, int64_t* other
) noexcept nogil:
    cdef int64_t position
    for position in range(n_rows):
        other[position] = order[copied_order[position]]
    memcpy(order, other, n_rows * sizeof(int64_t))


def split(
    const float[:, ::1] mapped,
    int64_t[::1] order,
    int64_t begin,
    int64_t end,
    int64_t block_size,
    float[::1] keys,
    int64_t[::1] other,
):
    """Halve one segment of `order` in place, and return where the right half begins.

    `end` is returned when the segment is a block.

    Parameters
    ----------
    mapped : float32 (n, P)
    order, other : int64 (n,)
        `other` is scratch.
    keys : float32 (n,)
        Scratch.
    """
    cdef int64_t middle
    cdef vector[float] room
    if begin >= end or not mapped.shape[1]:
        return end
    with nogil:
        middle = split_segment(
            &mapped[0, 0], mapped.shape[1], &order[0], begin, end, block_size, &keys[0],
            &other[0], room,
        )
    return middle


def split_all(
    const float[:, ::1] mapped,
    int64_t[::1] order,
    int64_t begin,
    int64_t end,
    int64_t block_size,
    float[::1] keys,
    int64_t[::1] other,
):
    """Halve a segment down to blocks, in copies as soon as they fit a cache."""
    cdef int64_t n_axes = mapped.shape[1], first = begin, last, low, high
    cdef vector[float] room
    cdef vector[int64_t] far_stops, near_stops, unused
    if begin >= end or not n_axes:
        return
    cdef float[:, ::1] far = np.empty((min(FAR, end - begin), n_axes), np.float32)
    cdef float[:, ::1] near = np.empty((min(NEAR, end - begin), n_axes), np.float32)
    cdef int64_t[::1] far_order = np.empty(far.shape[0], np.int64)
    cdef int64_t[::1] near_order = np.empty(near.shape[0], np.int64)
    cdef int64_t[::1] some_other = np.empty(far.shape[0], np.int64)
    cdef float[::1] some_keys = np.empty(far.shape[0], np.float32)
    with nogil:
        split_down(
            &mapped[0, 0], n_axes, &order[0], begin, end, block_size, FAR, &keys[0], &other[0],
            room, far_stops,
        )
        for last in far_stops:
            if last - first <= FAR:
                copy_rows(
                    &mapped[0, 0], n_axes, &order[first], last - first, &far[0, 0], &far_order[0]
                )
                split_down(
                    &far[0, 0], n_axes, &far_order[0], 0, last - first, block_size, NEAR,
                    &some_keys[0], &some_other[0], room, near_stops,
                )
                low = 0
                for high in near_stops:
                    if high - low <= NEAR:
                        copy_rows(
                            &far[0, 0], n_axes, &far_order[low], high - low, &near[0, 0],
                            &near_order[0],
                        )
                        split_down(
                            &near[0, 0], n_axes, &near_order[0], 0, high - low, block_size,
                            block_size, &some_keys[0], &some_other[0], room, unused,
                        )
                        take_order(&far_order[low], high - low, &near_order[0], &some_other[0])
                    low = high
                take_order(&order[first], last - first, &far_order[0], &some_other[0])
            first = last
