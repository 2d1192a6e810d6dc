"""Search in ascending numbers by doubling steps, for loops."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

ctypedef fused Ascending:
    int32_t
    int64_t
    uint32_t
    uint64_t


cdef inline int64_t not_before(
    const Ascending[::1] numbers, int64_t low, int64_t end, Ascending wanted
) noexcept nogil:
    """Return the first place from `low` to `end` whose number is not below the wanted one.

    It takes few steps where that place is near, as it is for one number after another.
    """
    cdef int64_t step = 1, high, middle
    if low >= end or numbers[low] >= wanted:
        return low
    low += 1
    high = low
    while high < end and numbers[high] < wanted:
        low = high + 1
        step *= 2
        high += step
    high = min(high, end)
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
