"""Loops of joins: exact sums, and the columns that contain others."""

from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.algorithm cimport partial_sort, sort
from libcpp.utility cimport pair
from libcpp.vector cimport vector

import numpy as np

ctypedef fused number_t:
    int32_t
    int64_t

ctypedef fused token_t:
    int32_t
    int64_t


def partial_sums(const double[::1] values):
    """Return numbers of which none overlaps another and whose exact sum is that of the values.

    J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
    Predicates" (1997), as `math.fsum` does it.

    Returns
    -------
    list of float, or None where a value or a sum is not finite
    """
    cdef vector[double] room  # few are needed, but where numbers differ by hundreds of digits
    cdef double* parts
    cdef int64_t n = 0, n_low, i, at
    cdef double value, part, high, low
    cdef bint is_finite = True
    with nogil:
        room.resize(64)
        parts = room.data()
        for at in range(values.shape[0]):
            value = values[at]
            n_low = 0
            for i in range(n):
                part = parts[i]
                if fabs(value) < fabs(part):
                    value, part = part, value
                high = value + part
                low = part - (high - value)
                if low != 0.0:
                    parts[n_low] = low
                    n_low += 1
                value = high
            if not isfinite(value):
                is_finite = False
                break
            parts[n_low] = value
            n = n_low + 1
            if n == <int64_t>room.size():
                room.resize(2 * n)
                parts = room.data()
    return [parts[i] for i in range(n)] if is_finite else None


cdef inline bint holds(
    const token_t* tokens, int64_t low, int64_t end, int64_t token
) noexcept nogil:
    """Return whether ascending tokens hold one."""
    cdef int64_t last = end, middle
    while low < end:
        middle = (low + end) >> 1
        if tokens[middle] < token:
            low = middle + 1
        else:
            end = middle
    return low < last and tokens[low] == token


cdef void keep_best(
    vector[int64_t]& right, vector[int64_t]& shared, int64_t begin, int64_t limit
) noexcept nogil:
    """Keep those from `begin` on that share most tokens, of equal ones the first columns."""
    cdef int64_t n = right.size(), at
    cdef vector[pair[int64_t, pair[int64_t, int64_t]]] ranked
    cdef vector[int64_t] kept
    ranked.reserve(n - begin)
    for at in range(begin, n):
        ranked.push_back(
            pair[int64_t, pair[int64_t, int64_t]](
                -shared[at], pair[int64_t, int64_t](right[at], at)
            )
        )
    partial_sort(ranked.begin(), ranked.begin() + limit, ranked.end())
    for at in range(limit):
        kept.push_back(ranked[at].second.second)
    sort(kept.begin(), kept.end())
    for at in range(limit):
        right[begin + at] = right[kept[at]]
        shared[begin + at] = shared[kept[at]]
    right.resize(begin + limit)
    shared.resize(begin + limit)


cdef object array_of(vector[int64_t]& numbers):
    cdef int64_t at
    array = np.empty(numbers.size(), np.int64)
    cdef int64_t[::1] view = array
    with nogil:
        for at in range(view.shape[0]):
            view[at] = numbers[at]
    return array


def find_containers(
    const int64_t[::1] lefts,
    const int64_t[::1] offsets,
    const int64_t[::1] tokens,
    const int64_t[::1] prefixes,
    const int64_t[::1] needed,
    const number_t[::1] token_offsets,
    const int32_t[::1] list_sets,
    const number_t[::1] set_offsets,
    const token_t[::1] set_tokens,
    const int64_t[::1] of_set,
    const int64_t[::1] table,
    const int64_t[::1] size,
    int64_t limit,
):
    """Find the sets that hold enough tokens of given ones.

    Parameters
    ----------
    lefts : int64 (m,)
        Columns whose containers are wanted.
    offsets : int64 (m + 1,)
        Where the tokens of each begin.
    tokens : int64 (offsets[-1],)
        As numbers of the searched index, -1 where it lacks one; the rarest of a column first.
    prefixes : int64 (m,)
        How many tokens of each are looked up: one of them is shared with each container.
    needed : int64 (m,)
        Least number of shared tokens.
    token_offsets, set_offsets : int32 or int64, both the same
        Of the searched index, where the sets of each token begin and the tokens of each set.
    list_sets, set_tokens : int32, int32 or int64
    of_set : int64
        The column of each set of the searched index, -1 for none.
    table, size : int64
        Of each column of the lake its table and how many tokens it has.

    Returns
    -------
    (bool, int64 (r,), int64 (r,), int64 (r,))
        Whether the lists are sound; a column, one that contains it, and the tokens that they share.
    """
    cdef int64_t row, me, first, end, begin, misses, at, token, entry, other, column, low, high
    cdef int64_t missed, position, n_sets = of_set.shape[0]
    cdef vector[int64_t] stamps, left, right, shared
    cdef const token_t* held = &set_tokens[0] if set_tokens.shape[0] else NULL
    cdef bint is_sound = True
    with nogil:
        stamps.resize(n_sets, -1)
        for row in range(lefts.shape[0]):
            me, first, end, begin = lefts[row], offsets[row], offsets[row + 1], right.size()
            misses = (end - first) - needed[row]
            for at in range(first, first + prefixes[row]):
                token = tokens[at]
                if token < 0:
                    continue
                for entry in range(token_offsets[token], token_offsets[token + 1]):
                    other = list_sets[entry]
                    if other < 0 or other >= n_sets:
                        is_sound = False
                        break
                    if stamps[other] == row:
                        continue
                    stamps[other] = row
                    column = of_set[other]
                    if column < 0 or table[column] == table[me] or size[column] < needed[row]:
                        continue
                    # Verified: the rarest tokens first, since they are missed most.
                    low, high = set_offsets[other], set_offsets[other + 1]
                    missed = 0
                    for position in range(first, end):
                        token = tokens[position]
                        if token < 0 or not holds(held, low, high, token):
                            missed += 1
                            if missed > misses:
                                break
                    if missed > misses:
                        continue
                    left.push_back(me)
                    right.push_back(column)
                    shared.push_back((end - first) - missed)
                if not is_sound:
                    break
            if not is_sound:
                break
            if <int64_t>right.size() - begin > limit:
                keep_best(right, shared, begin, limit)
                left.resize(begin + limit)
        if not is_sound:
            left.clear()
            right.clear()
            shared.clear()
    return is_sound, array_of(left), array_of(right), array_of(shared)


def live_frequencies(
    const number_t[::1] token_offsets,
    const int32_t[::1] list_sets,
    const uint8_t[::1] live,
    int32_t[::1] frequencies,
):
    """Count the live sets of each posting list; return whether all lists name sets.

    Parameters
    ----------
    token_offsets : int32 or int64 (t + 1,)
    list_sets : int32
    live : bool (n,)
    frequencies : int32 (t,)
        Written.
    """
    cdef int64_t token, at, row, n_sets = live.shape[0]
    cdef int32_t n
    cdef bint is_sound = True
    with nogil:
        for token in range(frequencies.shape[0]):
            n = 0
            for at in range(token_offsets[token], token_offsets[token + 1]):
                row = list_sets[at]
                if row < 0 or row >= n_sets:
                    is_sound = False
                    break
                n += live[row]
            if not is_sound:
                break
            frequencies[token] = n
    return is_sound
