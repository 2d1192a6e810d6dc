# Rows that match for more than their words, and those that match by their words and are apart.

cdef class Order:
    """Stored rows in the order of some number that they have, which may be several numbers a row.

    Attributes
    ----------
    numbers : numpy.ndarray, int64
        Ascending.
    rows : numpy.ndarray, int32
        The row that has each.
    """

    cdef const int64_t[::1] numbers
    cdef const int32_t[::1] rows

    def __init__(self, const int64_t[::1] numbers, const int32_t[::1] rows):
        self.numbers, self.rows = numbers, rows


cdef int64_t add_equal(
    int64_t number, Order order, int64_t n_rows, vector[int32_t]& rows
) except -1 nogil:
    """Add the rows that have a number."""
    cdef int64_t low = 0, high = order.numbers.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if order.numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    while low < order.numbers.shape[0] and order.numbers[low] == number:
        if not 0 <= order.rows[low] < n_rows:
            return refuse()
        rows.push_back(order.rows[low])
        low += 1
    return 0


cdef int64_t add_related(
    Values query,
    int64_t value,
    double max_distance,
    Order by_letters,
    Order by_letters_left,
    Order of_latin,
    Order of_others,
    int64_t n_rows,
    vector[int32_t]& rows,
) except -1 nogil:
    """Add the rows that may be nearer than their words: see `pexeso/engine/sparse/marks.py`."""
    cdef int64_t position, sounds = query.sounds[value]
    if max_distance >= DISTANCE_OF_REGROUPED and query.letters[value] != 0:
        add_equal(query.letters[value], by_letters, n_rows, rows)
    if max_distance >= DISTANCE_OF_ONE_LETTER:
        # Marks of letters are the last.
        position = query.mark_offsets[value + 1] - 1
        while (
            position >= query.mark_offsets[value]
            and query.marks[position] >> BITS_OF_MEMBER == LETTERS_GROUP
        ):
            add_equal(query.marks[position], by_letters_left, n_rows, rows)
            position -= 1
    if sounds != 0 and sounds & OTHER_SCRIPT:
        add_equal(sounds >> BITS_BELOW_CONSONANTS, of_latin, n_rows, rows)
    elif sounds != 0:
        add_equal(sounds >> BITS_BELOW_CONSONANTS, of_others, n_rows, rows)
    return 0


cdef int64_t look_at_words(Values values, int64_t row) except -1 nogil:
    """Refuse a stored row whose words lead out of the partition."""
    cdef int64_t position
    if not 0 <= values.offsets[row] <= values.offsets[row + 1] <= values.members.shape[0]:
        return refuse()
    for position in range(values.offsets[row], values.offsets[row + 1]):
        if not 0 <= values.members[position] < values.weights.shape[0]:
            return refuse()
    return 0


def complete_rows(
    Values query not None,
    Values stored not None,
    Order by_letters not None,
    Order by_letters_left not None,
    Order of_latin not None,
    Order of_others not None,
    double letters,
    double max_distance,
    int64_t longest_word,
    const int64_t[::1] offsets,
    const int32_t[::1] alike,
    int64_t[::1] sizes,
):
    """Return the rows whose distance is at most `max_distance`, given those whose words' is.

    Parameters
    ----------
    by_letters, by_letters_left : Order
        Rows by their letters, and by each of their marks of letters.
    of_latin, of_others : Order
        Rows by their consonants: those of Latin values, and those of other scripts.
    offsets, alike : numpy.ndarray
        The rows whose words are near enough to value i are ``alike[offsets[i]:offsets[i + 1]]``,
        ascending.
    sizes : numpy.ndarray of shape (n,), int64
        Written: how many rows each value has in what is returned.

    Returns
    -------
    numpy.ndarray, int32
        The rows of each value, ascending.
    """
    cdef int64_t value, position, after, n_related, n_found, n_rows = stored.norms.shape[0]
    cdef int32_t row
    cdef bint is_noted
    cdef vector[int32_t] related, found
    cdef Pairs pairs
    cdef int32_t[::1] written
    with nogil:
        pairs.keys.resize(2 * longest_word + 1)
        for value in range(sizes.shape[0]):
            if value % VALUES_BETWEEN_SIGNALS == VALUES_BETWEEN_SIGNALS - 1:
                with gil:
                    PyErr_CheckSignals()
            related.clear()
            is_noted, n_found = False, found.size()
            if query.norms[value] > 0.0:
                add_related(
                    query, value, max_distance, by_letters, by_letters_left, of_latin, of_others,
                    n_rows, related,
                )
            sort(related.begin(), related.end())
            position, after, n_related = 0, offsets[value], related.size()
            while position < n_related or after < offsets[value + 1]:
                if position < n_related and (
                    after == offsets[value + 1] or related[position] < alike[after]
                ):
                    row = related[position]
                    position += 1
                    if position < n_related and related[position] == row:
                        continue
                else:
                    row = alike[after]
                    after += 1
                    while position < n_related and related[position] == row:
                        position += 1
                    if are_apart(query, value, stored, row):
                        continue
                    if max_distance >= DISTANCE_OF_TURNED or query.forms[value] == stored.forms[row]:
                        found.push_back(row)
                        continue
                if not is_noted:
                    note_value(query, value, pairs)
                    is_noted = True
                look_at_words(stored, row)
                if distance_of(query, value, stored, row, letters, pairs) <= max_distance:
                    found.push_back(row)
            sizes[value] = <int64_t>found.size() - n_found
    n_found = found.size()
    rows = np.empty(n_found, np.int32)
    if n_found:
        written = rows
        memcpy(&written[0], found.data(), n_found * sizeof(int32_t))
    return rows
