"""Loops of redundancy: rows counted by their hashes, and tables that no best plan keeps."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused code_t:
    uint8_t
    uint16_t
    uint32_t

ctypedef fused slot_t:
    int32_t
    int64_t


def add_coded(uint64_t[:, ::1] hashes, const uint64_t[:, ::1] cells, const code_t[::1] codes):
    """Add the hash of its cell to each row.

    Parameters
    ----------
    hashes : uint64 (n, 2)
        Changed.
    cells : uint64 (d, 2)
        Of each distinct value.
    codes : uint8, uint16 or uint32 (n,)
    """
    cdef int64_t row, code
    with nogil:
        for row in range(codes.shape[0]):
            code = codes[row]
            hashes[row, 0] += cells[code, 0]
            hashes[row, 1] += cells[code, 1]


cdef inline int64_t place_of(
    uint64_t first,
    uint64_t second,
    const slot_t[::1] slots,
    const uint64_t[:, ::1] rows,
    uint64_t* last,
) noexcept nogil:
    """Return the number of a row, or -1, and the slot where it is or would be."""
    cdef uint64_t mask = slots.shape[0] - 1, slot = first & mask
    cdef int64_t at = slots[slot]
    while at >= 0 and (rows[at, 0] != first or rows[at, 1] != second):
        slot = (slot + 1) & mask
        at = slots[slot]
    last[0] = slot
    return at


def count_rows(
    const uint64_t[:, ::1] hashes, slot_t[::1] slots, uint64_t[:, ::1] rows, int64_t[::1] counts
):
    """Count rows by their hashes; return how many distinct ones there are.

    Parameters
    ----------
    hashes : uint64 (n, 2)
    slots : int32 or int64 (power of two,)
        Open addressing by the first half: the number of a row, -1 where empty; all are empty, and
        are written.
    rows, counts : uint64 (n, 2), int64 (n,)
        Written: the distinct rows by their number, and how often each occurs.
    """
    cdef uint64_t first, second, slot
    cdef int64_t i, at, n = 0
    with nogil:
        for i in range(hashes.shape[0]):
            first, second = hashes[i, 0], hashes[i, 1]
            at = place_of(first, second, slots, rows, &slot)
            if at >= 0:
                counts[at] += 1
                continue
            slots[slot] = <slot_t>n
            rows[n, 0], rows[n, 1] = first, second
            counts[n] = 1
            n += 1
    return n


def find_rows(
    const uint64_t[:, ::1] hashes,
    const slot_t[::1] slots,
    const uint64_t[:, ::1] rows,
    int64_t[::1] positions,
):
    """Write which distinct row each row is, or -1; see `count_rows`."""
    cdef uint64_t slot
    cdef int64_t i
    with nogil:
        for i in range(hashes.shape[0]):
            positions[i] = place_of(hashes[i, 0], hashes[i, 1], slots, rows, &slot)


def missing_rows(
    const uint64_t[:, ::1] child,
    const int64_t[::1] times,
    const uint64_t[:, ::1] rows,
    const int64_t[::1] counts,
    const slot_t[::1] slots,
    bint as_bag,
    int64_t max_missing,
):
    """Count the rows of a table that another has not; -1 where they are more than allowed.

    Parameters
    ----------
    child, times : uint64 (c, 2), int64 (c,)
        Distinct rows and how often each occurs.
    rows, counts, slots
        Of the other table; see `count_rows`.
    as_bag : bool
        Whether a row must occur there as often.
    """
    cdef uint64_t slot
    cdef int64_t i, at, missing = 0
    with nogil:
        for i in range(child.shape[0]):
            at = place_of(child[i, 0], child[i, 1], slots, rows, &slot)
            if at < 0:
                missing += times[i]
            elif as_bag and counts[at] < times[i]:
                missing += times[i] - counts[at]
            if missing > max_missing:
                missing = -1
                break
    return missing


def drop_dominated(
    const int64_t[::1] begins,
    const int64_t[::1] children,
    const double[::1] costs,
    const int64_t[::1] in_begins,
    const int64_t[::1] in_parents,
    const double[::1] in_costs,
    const double[::1] keep_cost,
    const int64_t[::1] order,
    uint8_t[::1] able,
    double[::1] reach,
):
    """Set `able` to False for dominated tables.

    Parameters
    ----------
    begins, children, costs : int64 (n + 1,), int64 (e,), float64 (e,)
        Edges by parent; `in_begins`, `in_parents` and `in_costs` by child.
    keep_cost : float64 (n,)
    order : int64
        Tables with children, those first that are likely to dominate many others.
    able : bool (n,)
        Changed.
    reach : float64 (n,)
        Infinite, and is so again.
    """
    cdef int64_t at, table, edge, other, other_edge, child
    cdef double spared
    cdef bint is_dominated
    with nogil:
        for at in range(order.shape[0]):
            table = order[at]
            if not able[table]:
                continue
            for edge in range(begins[table], begins[table + 1]):
                reach[children[edge]] = min(reach[children[edge]], costs[edge])
            spared = INFINITY
            for edge in range(in_begins[table], in_begins[table + 1]):
                if able[in_parents[edge]]:
                    spared = min(spared, in_costs[edge])
            for edge in range(begins[table], begins[table + 1]):
                other = children[edge]
                if not able[other] or reach[other] - spared > keep_cost[other] - keep_cost[table]:
                    continue
                is_dominated = True
                for other_edge in range(begins[other], begins[other + 1]):
                    child = children[other_edge]
                    if child != table and reach[child] > costs[other_edge]:
                        is_dominated = False
                        break
                if is_dominated:
                    able[other] = False
            for edge in range(begins[table], begins[table + 1]):
                reach[children[edge]] = INFINITY
