# All suffixes of texts in order, and the prefixes that they share.

cpdef enum:
    STEP = 64  # suffixes that are passed over at once, where none is of the columns looked at


def shared_with_last(const int64_t[::1] codes, const int64_t[::1] left, const int64_t[::1] order):
    """Return for each suffix but the first how many letters it shares with the one before it.

    Parameters
    ----------
    codes, left : int64 (s,)
        Each letter as a number, and how many from it on are compared.
    order : int64 (s,)

    Returns
    -------
    int32 (s,)
    """
    lengths = np.zeros(order.shape[0], np.int32)
    cdef int32_t[::1] lengths_view = lengths
    cdef int64_t position, one, other, limit, count
    with nogil:
        for position in range(1, order.shape[0]):
            one, other = order[position - 1], order[position]
            limit = min(left[one], left[other])
            count = 0
            while count < limit and codes[one + count] == codes[other + count]:
                count += 1
            lengths_view[position] = <int32_t>count
    return lengths


def least_between(
    const int32_t[::1] shared, const int32_t[::1] minima, const int64_t[::1] positions
):
    """Return for each place but the first the least that is shared from the one before it on.

    Parameters
    ----------
    shared : int32 (s,)
    minima : int32 (ceil(s / STEP),)
        The least of each `STEP` of them.
    positions : int64 (p,)
        Ascending.

    Returns
    -------
    int32 (p,)
    """
    lengths = np.zeros(positions.shape[0], np.int32)
    cdef int32_t[::1] lengths_view = lengths
    cdef int64_t at, position, end
    cdef int32_t smallest
    with nogil:
        for at in range(1, positions.shape[0]):
            position, end = positions[at - 1] + 1, positions[at] + 1
            smallest = shared[end - 1]
            while position < end and smallest > 0:
                if position % STEP == 0 and position + STEP <= end:
                    smallest = min(smallest, minima[position // STEP])
                    position += STEP
                else:
                    smallest = min(smallest, shared[position])
                    position += 1
            lengths_view[at] = smallest
    return lengths


def holding_nodes(
    const int32_t[::1] members,
    const int32_t[::1] shared,
    const int8_t[::1] sides,
    const int64_t[::1] sources,
):
    """Walk the tree of common prefixes: a node is a range of suffixes that share its length.

    Parameters
    ----------
    members, shared : int32 (s,)
        The text of each suffix, and the letters that it shares with the one before it.
    sides : int8 (v,)
        1 or 2 for each text: of the source or of the target.
    sources : int64 (s + 1,)
        How many of the suffixes before each are of a source.

    Returns
    -------
    (int64 (s,), int32 (s + 1,), int64 (s + 1,), int64 (s + 1,), int64 (2, s + 1))
        The deepest node of each suffix that a target is in; the length and the range of each
        node; and how many suffixes there, by side, are of a text that has one before it there.
    """
    cdef int64_t size = members.shape[0], n_closed = 0, top = 0, n_nodes = 1
    holding_of = np.empty(size, np.int64)
    length, first = np.zeros(size + 1, np.int32), np.zeros(size + 1, np.int64)
    last, twice = np.zeros(size + 1, np.int64), np.zeros((2, size + 1), np.int64)
    cdef int64_t[::1] holding_view = holding_of, first_view = first, last_view = last
    cdef int32_t[::1] length_view = length
    cdef int64_t[:, ::1] twice_view = twice
    cdef vector[int64_t] parent, closed, deepest, before, stack, holding
    cdef int64_t position, start, below, node, low, high, middle, text, earlier, index, count
    cdef int32_t now
    with nogil:
        parent.resize(size + 1, -1)
        closed.resize(size + 1)
        deepest.resize(size)
        before.resize(sides.shape[0], -1)
        stack.resize(size + 1)
        for position in range(size + 1):
            now = -1
            if position:
                now = shared[position] if position < size else 0
                start = position - 1
                below = -1
                while length_view[stack[top]] > now:
                    node = stack[top]
                    last_view[node] = position - 1
                    closed[n_closed] = node
                    n_closed += 1
                    start = first_view[node]
                    top -= 1
                    if length_view[stack[top]] >= now:
                        parent[node] = stack[top]
                    else:
                        below = node
                if length_view[stack[top]] < now:
                    length_view[n_nodes] = now
                    first_view[n_nodes] = start
                    top += 1
                    stack[top] = n_nodes
                    if below >= 0:
                        parent[below] = n_nodes
                    n_nodes += 1
                # Else the node noted when this suffix came is its deepest.
                if position < size and now >= shared[position - 1]:
                    deepest[position - 1] = stack[top]
            if position < size:
                deepest[position] = stack[top]
                text = members[position]
                earlier = before[text]
                if earlier >= 0:
                    low, high = 0, top  # the deepest node that began at or before the previous one
                    while low < high:
                        middle = (low + high + 1) >> 1
                        if first_view[stack[middle]] <= earlier:
                            low = middle
                        else:
                            high = middle - 1
                    twice_view[sides[text] - 1, stack[low]] += 1
                before[text] = position
        last_view[0] = size - 1
        closed[n_closed] = 0
        for index in range(n_closed):
            node = closed[index]
            if parent[node] >= 0:
                twice_view[0, parent[node]] += twice_view[0, node]
                twice_view[1, parent[node]] += twice_view[1, node]
        holding.resize(n_nodes)  # the nearest node at or above that a target is in
        for index in range(n_closed, -1, -1):
            node = closed[index]
            count = sources[last_view[node] + 1] - sources[first_view[node]]
            if last_view[node] + 1 - first_view[node] > count or parent[node] < 0:
                holding[node] = node
            else:
                holding[node] = holding[parent[node]]
        for position in range(size):
            holding_view[position] = holding[deepest[position]]
    return holding_of, length, first, last, twice
