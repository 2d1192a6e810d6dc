# Partitions by size, and tables of bands.


def fill_cuts(
    const double[::1] before,
    const double[::1] weighted,
    const double[::1] sizes,
    int32_t[:, ::1] cuts,
):
    """Fill ``cuts[i, c]``: where the last of i + 1 partitions of the c smallest sizes begins.

    Parameters
    ----------
    before, weighted : float64 (K + 1,)
        Sums of counts, and of counts times sizes.
    sizes : float64 (K,)
        Distinct, ascending.
    """
    cdef int64_t n_sizes = sizes.shape[0], i, c, k, a, b, first, last
    cdef double rise_ab, rise_ak, position
    cdef vector[double] cost, intercepts
    cdef vector[int64_t] hull
    with nogil:
        cost.resize(n_sizes + 1)
        intercepts.resize(n_sizes + 1)
        hull.resize(n_sizes + 1)
        for c in range(1, n_sizes + 1):
            cost[c] = before[c] - weighted[c] / sizes[c - 1]
        for i in range(1, cuts.shape[0]):
            for c in range(n_sizes + 1):
                intercepts[c] = cost[c] - before[c]
            first, last = 0, -1
            for c in range(i + 1, n_sizes + 1):
                k = c - 1
                # The newest line takes the place of those that it leaves nowhere the least.
                while last > first:
                    a, b = hull[last - 1], hull[last]
                    rise_ab, rise_ak = weighted[b] - weighted[a], weighted[k] - weighted[a]
                    if (intercepts[k] - intercepts[a]) * rise_ab >= (
                        intercepts[b] - intercepts[a]
                    ) * rise_ak:
                        break
                    last -= 1
                last += 1
                hull[last] = k
                position = 1.0 / sizes[c - 1]
                while first < last:
                    a, b = hull[first], hull[first + 1]
                    if (
                        intercepts[b] + weighted[b] * position
                        >= intercepts[a] + weighted[a] * position
                    ):
                        break
                    first += 1
                k = hull[first]
                cuts[i, c] = <int32_t>k
                cost[c] = (
                    before[c] - weighted[c] * position + (intercepts[k] + weighted[k] * position)
                )


def sets_in_bands(
    const Value[:, ::1] values,
    const SetNumber[:, ::1] sets,
    const Value[:, ::1] signatures,
    const Value[::1] query,
    const int64_t[:, ::1] ranges,
    const int64_t[:, ::1] settings,
    int64_t n_places,
    int32_t[::1] hits,
    int32_t[::1] found,
):
    """Find the sets that agree with a query in a whole band; see `bands.band_hits`.

    Returns their number, -1 where a table names no set.

    Parameters
    ----------
    n_places : int
        Tables that are looked into.
    hits : int32 (s,)
        All 0; what is left there is more than 0 for the sets found.
    found : int32
        The sets are written.
    """
    cdef int64_t n_sets = signatures.shape[0], n = 0, left = n_sets, half, position, at, p, row
    cdef int64_t bands, rows, first_row, k
    cdef Value value
    cdef bint agrees, sound = True
    cdef vector[int64_t] lows
    with nogil:
        lows.resize(n_places)
        while left > 1:
            half = left >> 1
            for position in range(n_places):
                if values[position, lows[position] + half - 1] < query[position]:
                    lows[position] += half
            left -= half
        for position in range(n_places):
            value, at, p = query[position], lows[position], 0
            if at < n_sets and values[position, at] < value:
                at += 1
            while at < n_sets and values[position, at] == value:
                row = sets[position, at]
                if row < 0 or row >= n_sets:
                    sound = False
                    break
                while p < ranges.shape[0] and row >= ranges[p, 1]:
                    p += 1
                if p == ranges.shape[0]:
                    break
                bands, rows = settings[p, 0], settings[p, 1]
                first_row = ranges[p, 1]
                if position % rows == 0 and position < bands * rows:
                    first_row = ranges[p, 2]
                if row < first_row:
                    # The first set that counts, among those with this value: they end where the
                    # next value begins.
                    at = next_of(values, sets, position, at, first_row)
                    continue
                agrees = True
                for k in range(position + 1, position + rows):
                    if signatures[row, k] != query[k]:
                        agrees = False
                        break
                if agrees:
                    if hits[row] == 0:
                        if n == found.shape[0]:
                            sound = False
                            break
                        found[n] = <int32_t>row
                        n += 1
                    hits[row] += 1
                at += 1
            if not sound:
                break
    return n if sound else -1


cdef int64_t next_of(
    const Value[:, ::1] values,
    const SetNumber[:, ::1] sets,
    int64_t table,
    int64_t at,
    int64_t min_set,
) noexcept nogil:
    """Return the first place behind one with another value, or with a set of at least `min_set`.

    The search gallops, in steps that double.
    """
    cdef int64_t low = at, step = 1, high = at + 1, n = values.shape[1], middle
    cdef Value wanted = values[table, at]
    while high < n and values[table, high] == wanted and sets[table, high] < min_set:
        low = high
        step *= 2
        high += step
    high = min(high, n)
    while low + 1 < high:
        middle = (low + high) >> 1
        if values[table, middle] == wanted and sets[table, middle] < min_set:
            low = middle
        else:
            high = middle
    return high
