"""Which pairs match, and what that means for their columns.

Loops go where the numbers in an index lead them, and these come from files that may have been made
to lead elsewhere. So the first loop that follows a row to its columns looks at every number before
it is used: `count_pairs` at the offsets of a row, `count_columns` and `count_batch` at its columns.
`decide` and `settle` are given the pairs that were counted, and go nowhere else. Rows need no look:
a walk makes them up from the shapes of the arrays (`pexeso.engine.validation.require_shapes`). One
comparison that never fails costs a loop over scattered memory nothing that can be measured.

Arrays are named alike in all loops: `members` int64 (m,) are query values and `weights` int64 (m,)
theirs; `possible`, `matched` and `counts` int64 (C,). `vectors` are float32, or the bits of float16
as uint16. `last` int32 (C,) holds the last mark that each column got.
"""

cdef enum:
    NO_MATCH = 0
    MATCH = 1
    SKIPPED = 2
    LANES = 16  # sums of a quick distance
    AT_ONCE = 64  # squares of a quick distance before it is compared

WAY_OUT = "'pexeso check' lists the damage; restore the index, or build it again."
NO_RUN = f"The offsets of value_columns in a partition lead out of its postings: {WAY_OUT}"
NO_COLUMN = f"The postings of a partition name a column that it does not have: {WAY_OUT}"
NO_ROW = f"The lists of columns in a partition name a value that it does not have: {WAY_OUT}"


cdef class PairLists:
    """Pairs by query value, and the columns of each row.

    Attributes
    ----------
    offsets, rows : int64 (n + 1,), int32 (p,)
        A complement is a match that needs no distance.
    column_offsets, columns : int64 (N + 1,), int32
    """

    cdef readonly const int64_t[::1] offsets
    cdef readonly const int32_t[::1] rows
    cdef readonly const int64_t[::1] column_offsets
    cdef readonly const int32_t[::1] columns

    def __init__(
        self,
        const int64_t[::1] offsets,
        const int32_t[::1] rows,
        const int64_t[::1] column_offsets,
        const int32_t[::1] columns,
    ):
        self.offsets, self.rows = offsets, rows
        self.column_offsets, self.columns = column_offsets, columns


cdef inline void add_squares(
    float* sums, const float* left, const Entry* right, int64_t n
) noexcept nogil:
    cdef int64_t lane
    cdef float difference
    for lane in range(n):
        difference = left[lane] - as_single(right[lane])
        sums[lane] += difference * difference


cdef inline float sum_of_lanes(float* sums) noexcept nogil:
    cdef int64_t lane
    for lane in range(8):
        sums[lane] += sums[lane + 8]
    for lane in range(4):
        sums[lane] += sums[lane + 4]
    return (sums[0] + sums[2]) + (sums[1] + sums[3])


cdef float quick_square(
    const float* left, const Entry* right, int64_t n, float limit
) noexcept nogil:
    """Compute the squared float32 distance of a vector and a stored one.

    Some number beyond `limit` is returned once the distance is sure to be beyond it.
    """
    cdef float sums[LANES]
    cdef float few[4]
    cdef float total = 0.0, part, difference
    cdef int64_t axis = 0, lane, end
    while axis + AT_ONCE <= n:
        for lane in range(LANES):
            sums[lane] = 0.0
        end = axis + AT_ONCE
        while axis < end:
            add_squares(&sums[0], left + axis, right + axis, LANES)
            axis += LANES
        total += sum_of_lanes(&sums[0])
        if total > limit:
            return total
    if axis == n:
        return total
    for lane in range(LANES):
        sums[lane] = 0.0
    while axis + LANES <= n:
        add_squares(&sums[0], left + axis, right + axis, LANES)
        axis += LANES
    if axis + 8 <= n:
        add_squares(&sums[0], left + axis, right + axis, 8)
        axis += 8
    part = sum_of_lanes(&sums[0])
    if axis + 4 <= n:
        for lane in range(4):
            few[lane] = 0.0
        add_squares(&few[0], left + axis, right + axis, 4)
        part += (few[0] + few[2]) + (few[1] + few[3])
        axis += 4
    while axis < n:
        difference = left[axis] - as_single(right[axis])
        part += difference * difference
        axis += 1
    return total + part


cdef double exact_distance(
    const float* left, const Entry* right, int64_t n, double* terms
) noexcept nogil:
    """Compute the distance of `pexeso.engine.metrics.distances`, bit for bit."""
    cdef int64_t width = n, half, axis
    cdef double difference
    for axis in range(width):
        difference = <double>left[axis] - <double>as_single(right[axis])
        terms[axis] = difference * difference
    while width > 1:
        half = (width + 1) // 2
        for axis in range(width - half):
            terms[axis] = terms[axis] + terms[half + axis]
        width = half
    return sqrt(terms[0])


def quick_distance(const float[::1] left, const Entry[::1] right, float limit):
    """Return the squared distance that `decide` looks at first, float32 in a float."""
    return quick_square(&left[0], &right[0], left.shape[0], limit)


def defining_distance(const float[::1] left, const Entry[::1] right):
    """Return the distance that `decide` decides by where the quick one is too near to tau."""
    cdef vector[double] terms
    terms.resize(left.shape[0])
    return exact_distance(&left[0], &right[0], left.shape[0], terms.data())


def decide(
    int64_t begin,
    int64_t end,
    const int64_t[::1] members,
    PairLists lists,
    const float[:, ::1] query_vectors,
    const Entry[:, ::1] vectors,
    double tau,
    double surely,
    double possibly,
    bint check_columns,
    const int64_t[::1] possible,
    const int64_t[::1] matched,
    int64_t needed,
    int64_t enough,
    uint8_t[::1] states,
    int64_t[::1] work,
    int64_t pairs_a_turn = 8,
    int64_t rows_a_tile = 128,
):
    """Decide the pairs of some query values.

    Pairs with no column that still matters are skipped (Lemma 7). Where there are many pairs, all
    values take turns with a tile of rows, whose vectors are read once if rows come in their order;
    in another order more are read, and the same is decided.

    Parameters
    ----------
    surely, possibly : float
        A quick distance of at most the first is a match, one over the second is none.
    states : uint8 (p,)
        Set to 0 for no match, 1 for a match, or 2 for skipped.
    work : int64 (4,)
        Adds distances in float32, distances in float64, vectors read, pairs skipped.
    pairs_a_turn : int
        That are worth a turn of a query value in a tile of rows.
    rows_a_tile : int
        So few vectors stay in a cache near to the processor, with those of the query.
    """
    cdef int64_t n_pairs = 0, n_rows = vectors.shape[0], n_axes = query_vectors.shape[1]
    cdef int64_t position, tile, n_tiles, last, query, pair, pairs_end
    cdef int64_t n_quick = 0, n_defining = 0, n_skipped = 0
    cdef int32_t row
    cdef bint sure
    cdef float quick, limit = <float>possibly
    cdef const float* vector_
    cdef vector[int64_t] pending
    cdef vector[double] terms
    with nogil:
        terms.resize(n_axes)
        pending.resize(end - begin)
        for position in range(begin, end):
            pending[position - begin] = lists.offsets[members[position]]
            n_pairs += lists.offsets[members[position] + 1] - lists.offsets[members[position]]
        n_tiles = min(n_pairs // (pairs_a_turn * max(1, end - begin)), n_rows // rows_a_tile)
        n_tiles = max(1, n_tiles)
        for tile in range(1, n_tiles + 1):
            last = n_rows * tile // n_tiles
            for position in range(begin, end):
                query = members[position]
                pair, pairs_end = pending[position - begin], lists.offsets[query + 1]
                vector_ = &query_vectors[query, 0]
                while pair < pairs_end:
                    row = lists.rows[pair]
                    sure = row < 0
                    if sure:
                        row = ~row
                    elif row >= last:
                        break
                    pair += 1
                    if check_columns and not is_needed(
                        lists, row, possible, matched, needed, enough
                    ):
                        states[pair - 1] = SKIPPED
                        n_skipped += 1
                        continue
                    if sure:
                        states[pair - 1] = MATCH
                        continue
                    n_quick += 1
                    quick = quick_square(vector_, &vectors[row, 0], n_axes, limit)
                    if quick <= surely:
                        states[pair - 1] = MATCH
                    elif quick > possibly:
                        states[pair - 1] = NO_MATCH
                    else:
                        n_defining += 1
                        states[pair - 1] = (
                            exact_distance(vector_, &vectors[row, 0], n_axes, terms.data()) <= tau
                        )
                pending[position - begin] = pair
    work[0] += n_quick
    work[1] += n_defining
    work[3] += n_skipped


def lower_to_nearest(
    int64_t begin,
    int64_t end,
    const int64_t[::1] rows,
    const int64_t[::1] offsets,
    const int64_t[::1] columns,
    const float[:, ::1] query_vectors,
    const Entry[:, ::1] vectors,
    double growth,
    double spare,
    double[:, ::1] nearest,
    int64_t[::1] work,
):
    """Lower the distances of some query vectors to columns to those of values that are nearer.

    Zero vectors are near to nothing.

    Parameters
    ----------
    rows, offsets, columns : int64
        Row i of the partition is in ``columns[offsets[i]:offsets[i + 1]]``, one or more.
    growth, spare : float
        A quick distance of more than so many times the square of a distance, and so much, is
        beyond it.
    nearest : float64 (n, columns)
        Distances that values must be within to count.
    work : int64 (2,)
        Adds distances in float32, distances in float64.

    Raises
    ------
    IndexCorruptError
        A row is none of the partition's.
    """
    cdef int64_t n_axes = query_vectors.shape[1], number, row, query, place
    cdef int64_t n_quick = 0, n_defining = 0
    cdef bint is_outside = False
    cdef double square, distance, farthest
    cdef vector[double] terms
    cdef vector[uint8_t] is_zero
    with nogil:
        terms.resize(n_axes)
        is_zero.resize(end - begin)
        for query in range(begin, end):
            is_zero[query - begin] = is_zero_vector(&query_vectors[query, 0], n_axes)
        for number in range(rows.shape[0]):
            row = rows[number]
            if row < 0 or row >= vectors.shape[0]:
                is_outside = True
                break
            if is_zero_vector(&vectors[row, 0], n_axes):
                continue
            for query in range(begin, end):
                if is_zero[query - begin]:
                    continue
                farthest = 0.0
                for place in range(offsets[number], offsets[number + 1]):
                    farthest = max(farthest, nearest[query, columns[place]])
                square = farthest * farthest * growth + spare
                n_quick += 1
                if square < quick_square(
                    &query_vectors[query, 0], &vectors[row, 0], n_axes, <float>square
                ):
                    continue
                n_defining += 1
                distance = exact_distance(
                    &query_vectors[query, 0], &vectors[row, 0], n_axes, terms.data()
                )
                for place in range(offsets[number], offsets[number + 1]):
                    if distance < nearest[query, columns[place]]:
                        nearest[query, columns[place]] = distance
    if is_outside:
        raise IndexCorruptError(NO_ROW)
    work[0] += n_quick
    work[1] += n_defining


cdef inline bint is_zero_vector(const Entry* vector_, int64_t n) noexcept nogil:
    cdef int64_t axis
    for axis in range(n):
        if as_single(vector_[axis]) != 0.0:
            return False
    return True


cdef inline bint is_needed(
    PairLists lists, int64_t row, const int64_t[::1]& possible, const int64_t[::1]& matched,
    int64_t needed, int64_t enough,
) noexcept nogil:
    """Return whether a column of a row still matters."""
    cdef int64_t posting, column
    for posting in range(lists.column_offsets[row], lists.column_offsets[row + 1]):
        column = lists.columns[posting]
        if possible[column] >= needed and matched[column] < enough:
            return True
    return False


cdef inline int64_t row_of(int32_t row) noexcept nogil:
    return ~row if row < 0 else row


def count_pairs(PairLists lists, const int64_t[::1] members):
    """Return the number of (query value, row, column) triples of some query values."""
    cdef int64_t total = 0, number, query, pair, row, first, last
    cdef bint leads_out = False
    with nogil:
        for number in range(members.shape[0]):
            query = members[number]
            for pair in range(lists.offsets[query], lists.offsets[query + 1]):
                row = row_of(lists.rows[pair])
                first, last = lists.column_offsets[row], lists.column_offsets[row + 1]
                leads_out |= first < 0 or last < first or last > lists.columns.shape[0]
                total += last - first
    if leads_out:
        raise IndexCorruptError(NO_RUN)
    return total


def count_columns(
    const int64_t[::1] members,
    const int64_t[::1] weights,
    PairLists lists,
    int32_t mark,
    int32_t[::1] last,
    uint8_t[::1] seen,
    int64_t[::1] counts,
    int32_t[::1] touched,
):
    """Add to each column the weight of the query values that have a pair with one of its rows.

    Each value counts once. `touched`, int32 (room,), gets the columns that are new, whose number is
    returned.
    """
    cdef int64_t n_touched = 0, n_columns = counts.shape[0], position, query, pair, row, posting
    cdef int64_t weight
    cdef int32_t column
    cdef bint leads_out = False
    with nogil:
        for position in range(members.shape[0]):
            query, weight = members[position], weights[position]
            for pair in range(lists.offsets[query], lists.offsets[query + 1]):
                row = row_of(lists.rows[pair])
                for posting in range(lists.column_offsets[row], lists.column_offsets[row + 1]):
                    column = lists.columns[posting]
                    if column < 0 or column >= n_columns:
                        leads_out = True
                        break
                    if last[column] == mark:
                        continue
                    last[column] = mark
                    counts[column] += weight
                    if not seen[column]:
                        seen[column] = True
                        touched[n_touched] = column
                        n_touched += 1
                if leads_out:
                    break
            if leads_out:
                break
            mark += 1
    if leads_out:
        raise IndexCorruptError(NO_COLUMN)
    return n_touched


def settle(
    const int64_t[::1] members,
    const int64_t[::1] weights,
    PairLists lists,
    const uint8_t[::1] states,
    int32_t mark,
    int32_t[::1] last,
    int64_t[::1] possible,
    int64_t[::1] matched,
):
    """Update the counts with what `decide` found.

    Matched counts rise, and a column's possible count loses the query values that turned out to
    have no match in it. Values ``mark, ..., mark + 2 m - 1`` are not in `last`.
    """
    cdef int64_t position, query, weight, pair, row, posting
    cdef int32_t column, hit = mark, miss
    with nogil:
        for position in range(members.shape[0]):
            query, weight, miss = members[position], weights[position], hit + 1
            for pair in range(lists.offsets[query], lists.offsets[query + 1]):
                if states[pair] != MATCH:
                    continue
                row = row_of(lists.rows[pair])
                for posting in range(lists.column_offsets[row], lists.column_offsets[row + 1]):
                    column = lists.columns[posting]
                    if last[column] != hit:
                        last[column] = hit
                        matched[column] += weight
            for pair in range(lists.offsets[query], lists.offsets[query + 1]):
                row = row_of(lists.rows[pair])
                for posting in range(lists.column_offsets[row], lists.column_offsets[row + 1]):
                    column = lists.columns[posting]
                    if last[column] != hit and last[column] != miss:
                        last[column] = miss
                        possible[column] -= weight
            hit += 2


def keep_matches(const int64_t[::1] offsets, const int32_t[::1] rows, const uint8_t[::1] states):
    """Drop the pairs that do not match: offsets and rows of the others, without complements."""
    new_offsets = np.zeros(offsets.shape[0], np.int64)
    cdef int64_t[::1] kept_offsets = new_offsets
    cdef int64_t pair, query, n_kept = 0
    with nogil:
        for pair in range(rows.shape[0]):
            n_kept += states[pair] == MATCH
    new_rows = np.empty(n_kept, np.int32)
    cdef int32_t[::1] kept_rows = new_rows
    n_kept = 0
    with nogil:
        for query in range(offsets.shape[0] - 1):
            for pair in range(offsets[query], offsets[query + 1]):
                if states[pair] == MATCH:
                    kept_rows[n_kept] = <int32_t>row_of(rows[pair])
                    n_kept += 1
            kept_offsets[query + 1] = n_kept
    return new_offsets, new_rows


cdef enum:
    LEFT_RUN = 1
    LEFT_COLUMNS = 2


def count_batch(
    int64_t begin,
    int64_t end,
    const int64_t[::1] query_offsets,
    const int64_t[::1] members,
    const int64_t[::1] weights,
    const int64_t[::1] needed,
    PairLists lists,
    int32_t[::1] last,
    int64_t[::1] counts,
    int64_t room,
):
    """Count matching pairs for a run of query columns, and keep the columns with enough of them.

    Parameters
    ----------
    query_offsets : int64 (Q + 1,)
    counts : int64 (C,)
        Zeros; they are zeros again afterwards.

    Returns
    -------
    which, column, count : int64 (r,)
        Ordered by query column; columns in no order.
    """
    cdef int64_t n_columns = counts.shape[0], query_column, position, query, pair, row, number
    cdef int64_t first, after, posting, weight, n_touched
    cdef int32_t column, mark = 0
    cdef int fault = 0
    cdef int32_t[::1] touched = np.empty(room, np.int32)
    cdef vector[int64_t] found
    with nogil:
        for query_column in range(begin, end):
            n_touched = 0
            for position in range(query_offsets[query_column], query_offsets[query_column + 1]):
                query, weight = members[position], weights[position]
                mark += 1
                for pair in range(lists.offsets[query], lists.offsets[query + 1]):
                    row = lists.rows[pair]
                    first, after = lists.column_offsets[row], lists.column_offsets[row + 1]
                    if first < 0 or after < first or after > lists.columns.shape[0]:
                        fault = LEFT_RUN
                        break
                    for posting in range(first, after):
                        column = lists.columns[posting]
                        if column < 0 or column >= n_columns:
                            fault = LEFT_COLUMNS
                            break
                        if last[column] == mark:
                            continue
                        last[column] = mark
                        if counts[column] == 0:
                            touched[n_touched] = column
                            n_touched += 1
                        counts[column] += weight
                    if fault:
                        break
                if fault:
                    break
            if fault:
                break
            for number in range(n_touched):
                column = touched[number]
                if counts[column] >= needed[query_column]:
                    found.push_back(query_column)
                    found.push_back(column)
                    found.push_back(counts[column])
                counts[column] = 0
    if fault:
        raise IndexCorruptError(NO_RUN if fault == LEFT_RUN else NO_COLUMN)
    results = np.empty((3, found.size() // 3), np.int64)
    cdef int64_t[:, ::1] result = results
    for number in range(result.shape[1]):
        for position in range(3):
            result[position, number] = found[3 * number + position]
    return results[0], results[1], results[2]
