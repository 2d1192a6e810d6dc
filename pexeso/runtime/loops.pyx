"""Components of a graph, the cheapest assignment of its rows, tails of the binomial, and hashes."""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.pair cimport pair
from libcpp.queue cimport priority_queue
from libcpp.vector cimport vector

import numpy as np


def components(int64_t n_nodes, const int64_t[:] left, const int64_t[:] right):
    """Number the connected components of a graph by their first node.

    Parameters
    ----------
    left, right : numpy.ndarray of shape (e,), int64
        The nodes of each edge, from 0.

    Returns
    -------
    numpy.ndarray of shape (n_nodes,), int64
    """
    numbers = np.empty(n_nodes, np.int64)
    cdef int64_t[::1] root = numbers
    cdef int64_t node, one, other, n_roots = 0
    with nogil:
        for node in range(n_nodes):
            root[node] = node
        for node in range(left.shape[0]):
            one, other = first_of(root, left[node]), first_of(root, right[node])
            root[max(one, other)] = min(one, other)
        for node in range(n_nodes):  # a root comes before the nodes below it
            if root[node] == node:
                root[node] = n_roots
                n_roots += 1
            else:
                root[node] = root[root[node]]
    return numbers


cdef int64_t first_of(int64_t[::1] root, int64_t node) noexcept nogil:
    """Return the first node known to be connected, and shorten the way to it."""
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node


def assign_rows(
    const int64_t[::1] offsets,
    const int64_t[::1] columns,
    const double[::1] costs,
    int64_t n_columns,
    double nobody,
):
    """Give each row a column of its own or none, with the least total cost.

    By shortest augmenting paths (Jonker and Volgenant, "A shortest augmenting path algorithm for
    dense and sparse linear assignment problems", Computing 38, 1987). Costs are whole numbers, so
    that sums are exact; of equally cheap ways the column with the smaller number comes first.

    Parameters
    ----------
    offsets : numpy.ndarray of shape (n + 1,), int64
        Row i has the ``columns[offsets[i]:offsets[i + 1]]`` at the ``costs`` beside them.
    nobody : float
        What a row without a column costs.

    Returns
    -------
    numpy.ndarray of shape (n,), int64
        The column of each row, or -1.
    """
    cdef int64_t n_rows = offsets.shape[0] - 1, start, row, column, edge, before, last, end
    partners = np.full(n_rows, -1, np.int64)
    cdef int64_t[::1] partner = partners
    # Column n_columns + i is the place "nobody" of row i.
    cdef int64_t n_places = n_columns + n_rows
    cdef vector[int64_t] owner, came_from, reached
    cdef vector[double] price, distance
    cdef vector[char] settled
    cdef priority_queue[pair[double, int64_t]] queue
    cdef double here, further
    with nogil:
        owner.assign(n_places, -1)
        came_from.assign(n_places, -1)
        price.assign(n_places, 0.0)
        distance.assign(n_places, INFINITY)
        settled.assign(n_places, 0)
        for start in range(n_rows):
            # A row may take a tenth of a second where all match all, and there may be thousands.
            with gil:
                PyErr_CheckSignals()
            reached.clear()
            queue = priority_queue[pair[double, int64_t]]()
            row, here, last = start, 0.0, -1
            while True:
                end = offsets[row + 1]
                # The row's own reduced cost is taken off, so that ways are never shortened.
                further = here - reduced(
                    row, partner[row], offsets, columns, costs, price, n_columns, nobody
                )
                for edge in range(offsets[row], end + 1):
                    if edge == end:
                        column = n_columns + row
                        here = further + nobody - price[column]
                    else:
                        column = columns[edge]
                        here = further + costs[edge] - price[column]
                    if settled[column] == 0 and here < distance[column]:
                        if distance[column] == INFINITY:
                            reached.push_back(column)
                        distance[column], came_from[column] = here, row
                        queue.push(pair[double, int64_t](-here, -column))
                while True:
                    here, last = -queue.top().first, -queue.top().second
                    queue.pop()
                    if settled[last] == 0 and here == distance[last]:
                        break
                settled[last] = 1
                if owner[last] < 0:
                    break
                row = owner[last]
            for edge in range(<int64_t>reached.size()):
                column = reached[edge]
                if settled[column] == 1:
                    price[column] += distance[column] - here
                distance[column], settled[column] = INFINITY, 0
            while True:
                row = came_from[last]
                owner[last] = row
                before = partner[row]
                partner[row] = last
                if row == start:
                    break
                last = before
        for row in range(n_rows):
            if partner[row] >= n_columns:
                partner[row] = -1
    return partners


cdef double reduced(
    int64_t row,
    int64_t column,
    const int64_t[::1] offsets,
    const int64_t[::1] columns,
    const double[::1] costs,
    vector[double]& price,
    int64_t n_columns,
    double nobody,
) noexcept nogil:
    """Return what a row's column costs it beyond its price; nothing where it has none yet."""
    cdef int64_t edge
    if column < 0:
        return 0.0
    if column >= n_columns:
        return nobody - price[column]
    for edge in range(offsets[row], offsets[row + 1]):
        if columns[edge] == column:
            return costs[edge] - price[column]
    return 0.0


def binomial_tails(
    const int64_t[::1] limits, const int64_t[::1] trials, const double[::1] chances, bint upper
):
    """Return the chance of more successes than a limit, or where not `upper` of at most so many.

    Terms are summed from the most likely number on by their ratios, without a logarithm, so that
    the bits are the same on every machine.

    Parameters
    ----------
    limits, trials : numpy.ndarray of shape (n,), int64
    chances : numpy.ndarray of shape (n,), float64
        Of a success, in [0, 1].
    """
    tails = np.empty(limits.shape[0])
    cdef double[::1] tail = tails
    cdef int64_t number
    with nogil:
        for number in range(limits.shape[0]):
            tail[number] = binomial_tail(limits[number], trials[number], chances[number], upper)
    return tails


cdef double binomial_tail(int64_t limit, int64_t n, double chance, bint upper) noexcept nogil:
    cdef int64_t likely, successes
    cdef double odds, term, below = 0.0, above = 0.0
    if limit < 0 or limit >= n:
        return 1.0 if upper == (limit < 0) else 0.0
    if chance <= 0.0 or chance >= 1.0:
        return 1.0 if upper == (chance >= 1.0) else 0.0
    likely, odds = min(n, <int64_t>((n + 1) * chance)), chance / (1.0 - chance)
    successes, term = likely, 1.0
    while successes >= 0 and term > 1e-300:
        if successes <= limit:
            below += term
        else:
            above += term
        term *= successes / ((n - successes + 1) * odds)
        successes -= 1
    successes = likely + 1
    term = (n - likely) * odds / successes
    while successes <= n and term > 1e-300:
        if successes <= limit:
            below += term
        else:
            above += term
        term *= (n - successes) * odds / (successes + 1)
        successes += 1
    return (above if upper else below) / (below + above)


cdef uint64_t P1 = 0x9E3779B185EBCA87ULL
cdef uint64_t P2 = 0xC2B2AE3D27D4EB4FULL
cdef uint64_t P3 = 0x165667B19E3779F9ULL
cdef uint64_t P4 = 0x85EBCA77C2B2AE63ULL
cdef uint64_t P5 = 0x27D4EB2F165667C5ULL


cdef inline uint64_t turned(uint64_t number, int bits) noexcept nogil:
    return (number << bits) | (number >> (64 - bits))


cdef inline uint64_t mixed_in(uint64_t state, uint64_t word) noexcept nogil:
    return turned(state + word * P2, 31) * P1


cdef inline uint64_t word_at(const uint8_t* text) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, text, 8)
    return word


def hash_bytes(
    const uint8_t[::1] text, const int64_t[::1] offsets, const uint64_t[::1] seeds
):
    """Hash strings of bytes by XXH64 (Collet), each with a seed of its own.

    Parameters
    ----------
    offsets : int64 (n + 1,)
        Where each string begins and ends in `text`.
    seeds : uint64 (n,)

    Returns
    -------
    numpy.ndarray of shape (n,), uint64
        The same on every machine of this order of bytes, little endian.
    """
    cdef int64_t n = seeds.shape[0], row, length, at, end
    cdef uint64_t state, one, two, three, four, seed
    cdef uint32_t half
    hashes = np.empty(n, np.uint64)
    cdef uint64_t[::1] result = hashes
    cdef const uint8_t* data = &text[0] if text.shape[0] else NULL
    with nogil:
        for row in range(n):
            at, end, seed = offsets[row], offsets[row + 1], seeds[row]
            length = end - at
            if length >= 32:
                one, two, three, four = seed + P1 + P2, seed + P2, seed, seed - P1
                while at + 32 <= end:
                    one = mixed_in(one, word_at(data + at))
                    two = mixed_in(two, word_at(data + at + 8))
                    three = mixed_in(three, word_at(data + at + 16))
                    four = mixed_in(four, word_at(data + at + 24))
                    at += 32
                state = turned(one, 1) + turned(two, 7) + turned(three, 12) + turned(four, 18)
                state = (state ^ mixed_in(0, one)) * P1 + P4
                state = (state ^ mixed_in(0, two)) * P1 + P4
                state = (state ^ mixed_in(0, three)) * P1 + P4
                state = (state ^ mixed_in(0, four)) * P1 + P4
            else:
                state = seed + P5
            state += <uint64_t>length
            while at + 8 <= end:
                state = turned(state ^ mixed_in(0, word_at(data + at)), 27) * P1 + P4
                at += 8
            if at + 4 <= end:
                memcpy(&half, data + at, 4)
                state = turned(state ^ (half * P1), 23) * P2 + P3
                at += 4
            while at < end:
                state = turned(state ^ (data[at] * P5), 11) * P1
                at += 1
            state = (state ^ (state >> 33)) * P2
            state = (state ^ (state >> 29)) * P3
            result[row] = state ^ (state >> 32)
    return hashes
