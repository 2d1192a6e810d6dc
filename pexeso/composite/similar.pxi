# The best mapping of each table where some columns match similar values.
#
# A pair is a row and a key each of whose values matches some cell of the row. The arrays, which
# `pexeso.composite.similar` makes, are trusted.


def best_mappings(
    const int64_t[::1] pair_ends,
    const int64_t[::1] widths,
    const int32_t[::1] pair_keys,
    const int64_t[:, ::1] begins,
    const int64_t[:, ::1] ends,
    const int32_t[::1] columns,
    int64_t at_least,
):
    """Find the mapping of each table that joins most keys, the first of several.

    Parameters
    ----------
    pair_ends : int64 (t + 1,)
        The pairs of each table.
    widths : int64 (t,)
        Columns of each table.
    pair_keys : int32 (p,)
        Ascending in each table.
    begins, ends : int64 (p, m), int64 (p, m)
        Where the columns that match each value of the key begin and end.
    columns : int32
        Of a table, from 0.

    Returns
    -------
    (int64 (t,), int64 (t, m), bool (p,))
        How many keys are joined, by which columns, and whether each pair is.
    """
    cdef int64_t m = begins.shape[1], n_tables = widths.shape[0], table, pair, i
    cdef bint fits
    cdef vector[int64_t] mapping
    n_keys, mappings = np.zeros(n_tables, np.int64), np.full((n_tables, m), -1, np.int64)
    joined = np.zeros(pair_keys.shape[0], bool)
    cdef int64_t[::1] n_view = n_keys
    cdef int64_t[:, ::1] mapping_view = mappings
    cdef uint8_t[::1] joined_view = joined
    with nogil:
        for table in range(n_tables):
            mapping.assign(m, -1)
            n_view[table] = best_of_lists(
                pair_ends[table], pair_ends[table + 1], widths[table], pair_keys, begins, ends,
                columns, at_least, mapping,
            )  # fmt: skip
            for i in range(m):
                mapping_view[table, i] = mapping[i]
            if n_view[table] < at_least:
                continue
            for pair in range(pair_ends[table], pair_ends[table + 1]):
                fits = True
                for i in range(m):
                    fits &= has(columns, begins[pair, i], ends[pair, i], mapping[i])
                joined_view[pair] = fits
    return n_keys, mappings, joined


cdef int64_t best_of_lists(
    int64_t first,
    int64_t end,
    int64_t width,
    const int32_t[::1] pair_keys,
    const int64_t[:, ::1] begins,
    const int64_t[:, ::1] ends,
    const int32_t[::1] columns,
    int64_t needed,
    vector[int64_t]& mapping,
) noexcept nogil:
    """Return the most keys that a mapping joins, `needed` - 1 for fewer than needed; store it."""
    cdef int64_t m = begins.shape[1], n_pairs = end - first, best = needed - 1, i = 0, c, n, at
    cdef int64_t before, pair
    cdef bint used
    cdef vector[int64_t] pairs, n_kept, counts, column, last_key
    pairs.resize(m * n_pairs)  # by column: the pairs that fit those before
    for at in range(n_pairs):
        pairs[at] = first + at
    n_kept.assign(m, n_pairs)
    counts.resize(m * width)
    last_key.resize(width)
    column.assign(m, -1)
    count_matched(0, pair_keys, begins, ends, columns, pairs, n_pairs, width, counts, last_key, 0)
    while i >= 0:
        column[i] += 1
        c = column[i]
        if c == width:
            column[i] = -1
            i -= 1
            continue
        used = False
        for before in range(i):
            used |= column[before] == c
        if used or counts[i * width + c] <= best:
            continue
        if i == m - 1:
            best = counts[i * width + c]
            mapping.assign(column.begin(), column.end())
            continue
        n = 0
        for at in range(i * n_pairs, i * n_pairs + n_kept[i]):
            pair = pairs[at]
            pairs[(i + 1) * n_pairs + n] = pair
            n += has(columns, begins[pair, i], ends[pair, i], c)
        i += 1
        n_kept[i] = n
        count_matched(
            i, pair_keys, begins, ends, columns, pairs, n, width, counts, last_key, i * n_pairs
        )
    return best


cdef void count_matched(
    int64_t i,
    const int32_t[::1] pair_keys,
    const int64_t[:, ::1] begins,
    const int64_t[:, ::1] ends,
    const int32_t[::1] columns,
    const vector[int64_t]& pairs,
    int64_t n_pairs,
    int64_t width,
    vector[int64_t]& counts,
    vector[int64_t]& last_key,
    int64_t first,
) noexcept nogil:
    """Count for each column the keys of pairs, from the first on, whose value i it matches."""
    cdef int64_t at, entry, pair, key, c
    for c in range(width):
        counts[i * width + c], last_key[c] = 0, -1
    for at in range(first, first + n_pairs):
        pair = pairs[at]
        key = pair_keys[pair]
        for entry in range(begins[pair, i], ends[pair, i]):
            c = columns[entry]
            counts[i * width + c] += last_key[c] != key
            last_key[c] = key


cdef bint has(
    const int32_t[::1] columns, int64_t begin, int64_t end, int64_t column
) noexcept nogil:
    cdef int64_t at
    for at in range(begin, end):
        if columns[at] == column:
            return True
    return False
