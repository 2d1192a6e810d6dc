# The fuzzy join: pairs of sets that are more similar than any second-best pair.
#
# Similarities are quotients of whole numbers (for the cosine its square), rounded correctly to
# float64, so that equal ones are equal and the order of different ones is never reversed, on any
# machine. Different ones stay different where the numbers below the line are at most 2**26, as
# they are for sets of up to 8,192 tokens (cosine) or 33 million (others); beyond, near equals may
# count as equal, by which a join gets smaller but never breaks its promises.

cpdef enum:
    JACCARD = 0
    DICE = 1
    COSINE = 2
    INCLUSION = 3
    N_MEASURES = 4


cpdef inline double similarity(
    int64_t measure, int64_t shared, int64_t size, int64_t other_size
) noexcept nogil:
    """Return how similar two sets are that share a number of tokens: 0 to 1, for COSINE squared."""
    if measure == JACCARD:
        return <double>shared / <double>(size + other_size - shared)
    if measure == DICE:
        return <double>(2 * shared) / <double>(size + other_size)
    if measure == COSINE:
        return <double>(shared * shared) / <double>(size * other_size)
    return <double>shared / <double>min(size, other_size)


cdef inline bint any_above(
    int64_t shared, int64_t size, int64_t other_size, const double* floors
) noexcept nogil:
    cdef int64_t measure
    for measure in range(N_MEASURES):
        if similarity(measure, shared, size, other_size) > floors[measure]:
            return True
    return False


def probe(
    const int64_t[::1] offsets,
    const int32_t[::1] tokens,
    const int64_t[::1] other_offsets,
    const int32_t[::1] other_tokens,
    int64_t[::1] begins,
    const int64_t[::1] ends,
    const int32_t[::1] lists,
    int64_t at_least,
    double[::1] floors,
    double[:, ::1] best,
    double[:, ::1] other_best,
    bint watched,
    bint other_watched,
    int32_t[:, ::1] partners,
    int32_t[:, ::1] shares,
    bint own_partners,
):
    """Compare each set with those of the other side that are at least as large.

    Pairs above a floor count. The floor of a measure rises to the second-best similarity of every
    watched set, so that in the end each of these has at most one partner above it. Sets are in
    ascending order of size on both sides; tokens of a set, by the length of their lists.

    Of two sets of which the other is at least as large, some among the first ``size - shared + 1``
    tokens is common if `shared` tokens are (a prefix filter): only the lists of these are read.

    Parameters
    ----------
    offsets, tokens : int64 (n + 1,), int32
    other_offsets, other_tokens : int64 (m + 1,), int32
    begins, ends : int64 (t,)
        The list of sets of the other side of each token; `begins` is changed.
    lists : int32
        Sets of the other side, ascending within a list.
    floors : float64 (4,)
        Changed.
    best, other_best : float64 (n, 4), float64 (m, 4)
        The largest similarity of each set so far; changed.
    partners, shares : int32 (n or m, 4)
        The best partner of each set of the side that is meant by `own_partners`, and how many
        tokens they share; changed.
    """
    cdef int64_t n_others = other_offsets.shape[0] - 1, first_other = 0, own_set, size, needed
    cdef int64_t n_touched, unread, at, position, i, other, shared, other_size, measure
    cdef int64_t holder, partner, begin, end
    cdef int32_t token
    cdef bint stamped
    cdef double score, held
    cdef vector[int32_t] counts, touched, stamps
    cdef double* floor = &floors[0]
    with nogil:
        counts.resize(n_others)
        touched.resize(n_others)
        stamps.resize(begins.shape[0], -1)
        for own_set in range(offsets.shape[0] - 1):
            size = offsets[own_set + 1] - offsets[own_set]
            while (
                first_other < n_others
                and other_offsets[first_other + 1] - other_offsets[first_other] < size + at_least
            ):
                first_other += 1
            needed = size + 1
            while needed > 1 and any_above(needed - 1, size, size, floor):
                needed -= 1
            n_touched, unread = 0, needed - 1
            for at in range(offsets[own_set], offsets[own_set + 1] - unread):
                token = tokens[at]
                begin, end = begins[token], ends[token]
                while begin < end and lists[begin] < first_other:
                    begin += 1
                begins[token] = begin
                for position in range(begin, end):
                    other = lists[position]
                    if counts[other] == 0:
                        touched[n_touched] = <int32_t>other
                        n_touched += 1
                    counts[other] += 1
            stamped = False
            for i in range(n_touched):
                other = touched[i]
                shared = counts[other]
                counts[other] = 0
                other_size = other_offsets[other + 1] - other_offsets[other]
                if not any_above(shared + unread, size, other_size, floor):
                    continue
                if unread:
                    if not stamped:
                        for at in range(offsets[own_set], offsets[own_set + 1]):
                            stamps[tokens[at]] = <int32_t>own_set
                        stamped = True
                    shared = 0
                    for at in range(other_offsets[other], other_offsets[other + 1]):
                        shared += stamps[other_tokens[at]] == own_set
                for measure in range(N_MEASURES):
                    score = similarity(measure, shared, size, other_size)
                    if score <= floor[measure]:
                        continue
                    if own_partners:
                        holder, partner, held = own_set, other, best[own_set, measure]
                    else:
                        holder, partner, held = other, own_set, other_best[other, measure]
                    if score > held:
                        partners[holder, measure] = <int32_t>partner
                        shares[holder, measure] = <int32_t>shared
                    if watched:
                        floor[measure] = max(floor[measure], min(score, best[own_set, measure]))
                    if other_watched:
                        held = other_best[other, measure]
                        floor[measure] = max(floor[measure], min(score, held))
                    best[own_set, measure] = max(best[own_set, measure], score)
                    other_best[other, measure] = max(other_best[other, measure], score)
