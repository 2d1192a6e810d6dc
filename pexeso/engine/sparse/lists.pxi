# Posting lists of pairs of letters: which of them are read, and what they say of words.

cdef enum:
    A_VALUE = 64  # entries that are read in the time in which a value of a word is examined

cdef extern from *:
    """
    // Lists are left out where what is read of a value must still be so similar to it, as a cosine.
    static constexpr double SELECTIVE = 0.6;
    """
    const double SELECTIVE


cdef struct Read:
    int64_t n_lists
    int64_t n_entries
    double bound


cdef class Search:
    """A search of some query values in a partition: what is asked for, found, and in work.

    Attributes
    ----------
    own_words : numpy.ndarray, int64
        Each word of the query in the partition, -1 where it has none.
    table : Table
        The pairs of one query value.
    counts : vector
        Room for what a word has in common with each word of the value.
    n_known, n_letters : int
        The first so many of ``room.known_words`` are known, and have so many bytes.
    shares : vector
        What each entry of the table's chain counts in the query value.
    squares, firsts, afters : vector
        What each pair of the table adds to the squared length of the features of the value; and its
        lists, from the first to before the second.
    order : vector
        What each pair costs, and its number, in this order. A pair that no word of the partition
        has costs nothing.
    n_touched, n_entries, asked_for : int
        See `collect_rows`.
    limits, steps, at_least : vector
        Of each band the nearness from which on words count, the steps for what they have beyond it,
        and those that each has at least.
    prefixes : vector
        Sums of units.
    scanned, masks, sums : vector
        Rows that are worth a look, ascending, the lanes in which they are, as bits, and their
        units.
    waiting, floors, sure_from : array of the size LANES
        Query values that wait, the similarities from which on rows are looked at, and those from
        which on they match; the first `n_waiting` are filled.
    found : vector
        Rows.
    """

    cdef Values query
    cdef Stored stored
    cdef Room room
    cdef const int64_t[::1] own_words
    cdef int64_t[::1] found_starts
    cdef int64_t[::1] found_sizes
    cdef int64_t[::1] work
    cdef int64_t begin
    cdef int64_t longest_word
    cdef int64_t most_value_words
    cdef double letters
    cdef double cosine
    cdef double max_distance
    cdef double visits_a_scan

    cdef Table table
    cdef vector[int64_t] counts
    cdef int64_t n_known
    cdef int64_t n_letters

    cdef vector[double] shares
    cdef vector[double] squares
    cdef vector[int64_t] firsts
    cdef vector[int64_t] afters
    cdef vector[pair[double, int64_t]] order

    cdef int64_t n_touched
    cdef int64_t n_entries
    cdef int64_t asked_for
    cdef vector[float] limits
    cdef vector[float] steps
    cdef vector[int64_t] at_least

    cdef vector[pair[uint64_t, uint64_t]] prefixes
    cdef vector[int32_t] scanned
    cdef vector[uint8_t] masks
    cdef vector[pair[uint64_t, uint64_t]] sums

    cdef int64_t n_waiting
    cdef int64_t[LANES] waiting
    cdef float[LANES] floors
    cdef float[LANES] sure_from
    cdef vector[int32_t] found


cdef int64_t first_key(int64_t wanted, const int64_t[::1] keys) noexcept nogil:
    """Return the position of the first of ascending keys that is no less than one."""
    cdef int64_t low = 0, high = keys.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


cpdef double bound_of(double rest, double cosine) noexcept nogil:
    """Return what r . x is at least where the part left out has the squared length `rest`."""
    cdef double kept_square = max(1.0 - rest, 0.0)
    return kept_square * cosine - sqrt(kept_square * rest) * sqrt(max(1.0 - cosine * cosine, 0.0))


cdef int64_t select_words(
    const float* near, const float* reach, float bound, uint8_t[::1] flags, int32_t[::1] words
) noexcept nogil:
    """Write the words with ``near * reach >= bound``, ascending; return their number.

    Eight of the `flags` are read at once: they are as many as `words`, and zeros up to a multiple
    of 8.
    """
    cdef int64_t word, eight, n_words = 0, n_all = words.shape[0]
    cdef uint64_t some
    cdef uint8_t* flag = &flags[0]
    for word in range(n_all):
        flag[word] = near[word] * reach[word] >= bound
    for eight in range(0, flags.shape[0], 8):
        memcpy(&some, flag + eight, 8)
        if some:
            for word in range(eight, eight + 8):
                if flag[word]:
                    words[n_words] = <int32_t>word
                    n_words += 1
    return n_words


cdef int64_t keep_words(
    const float* near, const float* reach, float bound, int32_t[::1] words, int64_t n_words
) noexcept nogil:
    """Move the words with ``near * reach >= bound`` to the beginning; return their number."""
    cdef int64_t n_kept = 0, position
    cdef int32_t word
    for position in range(n_words):
        word = words[position]
        if near[word] * reach[word] >= bound:
            words[position], words[n_kept] = words[n_kept], word
            n_kept += 1
    return n_kept


cdef void weigh_pairs(
    int64_t value, Values query, Stored stored, Table& table, Search search
) noexcept nogil:
    """Note what each pair of a table counts in a query value, its lists, and what it costs.

    To read a pair costs the entries of its lists, and a part of the values of the words that it is
    from.
    """
    cdef int64_t first = query.offsets[value], n_pairs = table.filled.size(), number, slot, word
    cdef int64_t own_word, name, begin, end, n_entries
    cdef int32_t entry
    cdef double length = sqrt(query.norms[value]), cost
    cdef double[2 * LAST_BLOCK + 3] sums
    search.order.resize(n_pairs)
    for number in range(n_pairs):
        slot = table.filled[number]
        cost, entry = 0.0, table.heads[slot]
        while entry >= 0:
            word = query.members[first + table.chain[entry].owner]
            search.shares[entry] = (
                <double>query.weights[word]
                * <double>table.chain[entry].count
                / sqrt(<double>query.squares[word])
                / length
            )
            own_word = search.own_words[word]
            if own_word >= 0:
                cost += <double>(
                    stored.word_value_offsets[own_word + 1] - stored.word_value_offsets[own_word]
                ) / <double>query.squares[word]
            entry = table.chain[entry].before
        search.squares[number] = add_blocks(table.heads[slot], table, search.shares, sums)
        name = table.pairs[slot]
        begin = first_key(name << BITS_OF_BLOCKS, stored.keys)
        end = begin
        if begin < stored.keys.shape[0] and stored.keys[begin] >> BITS_OF_BLOCKS == name:
            end = first_key((name + 1) << BITS_OF_BLOCKS, stored.keys)
        search.firsts[number], search.afters[number] = begin, end
        n_entries = stored.list_offsets[end] - stored.list_offsets[begin]
        cost = <double>n_entries + A_VALUE * cost
        search.order[number].first = cost if end > begin else 0.0
        search.order[number].second = number
    sort(search.order.begin(), search.order.end())


cdef double add_blocks(
    int32_t head, Table& table, vector[double]& shares, double* sums
) noexcept nogil:
    """Add up what a pair of a query value counts: all of it, by block, and by that from the end.

    `head` is the pair's last entry of the chain, and `sums` (1 + 2 * 64,) are written; all of it
    times `PAIR`. Returned is what the pair adds to the squared length of the features of the value.
    """
    cdef double norm = 0.0, share
    cdef int64_t first, last
    cdef int32_t entry = head
    memset(sums, 0, (2 * LAST_BLOCK + 3) * sizeof(double))
    while entry >= 0:
        share = shares[entry]
        first = 1 + (table.chain[entry].blocks >> BITS_OF_BLOCK)
        last = 2 + LAST_BLOCK + (table.chain[entry].blocks & LAST_BLOCK)
        norm += share * (2.0 * (sums[first] + sums[last]) + 2.0 * share)
        sums[first] += share
        sums[last] += share
        sums[0] += share
        entry = table.chain[entry].before
    norm += PAIR * sums[0] * sums[0]
    sums[0] *= PAIR
    return norm


cdef Read count_read(Search search, const int64_t[::1] list_offsets) noexcept nogil:
    """Decide which lists are read.

    Returns
    -------
    n_lists : int
        Those of the first so many pairs in `order` are read. All of them, unless leaving the others
        out saves half of the entries.
    n_entries : int
        Entries of these lists.
    bound : float
        What is read of a match is at least so similar to the query value.
    """
    cdef int64_t n_pairs = search.order.size(), number, n_entries = 0, first, after
    cdef double rest = 0.0, more, lower
    cdef Read read
    for number in range(n_pairs):
        n_entries += list_offsets[search.afters[number]] - list_offsets[search.firsts[number]]
    read.n_lists, read.n_entries, read.bound = n_pairs, n_entries, search.cosine
    while read.n_lists:
        number = search.order[read.n_lists - 1].second
        first, after = search.firsts[number], search.afters[number]
        more = rest + search.letters * search.squares[number]
        lower = bound_of(more, search.cosine)
        if first == after or lower < SELECTIVE * sqrt(max(1.0 - more, 0.0)):
            break
        rest, read.bound = more, lower
        read.n_entries -= list_offsets[after] - list_offsets[first]
        read.n_lists -= 1
    if read.n_entries * 2 >= n_entries:
        read.n_lists, read.n_entries, read.bound = n_pairs, n_entries, search.cosine
    return read


cdef int64_t read_lists(
    int64_t n_lists,
    Search search,
    Table& table,
    Stored stored,
    bint dense,
    float* near,
    int32_t[::1] words,
    int64_t n_words,
) except -1 nogil:
    """Add what lists count to their words; note the words unless all are examined anyway."""
    cdef int64_t n_all = words.shape[0], size = stored.list_words.shape[0], place, number, position
    cdef int64_t blocks, first, last, at
    cdef const int32_t* list_words = &stored.list_words[0] if size else NULL
    cdef int32_t word
    cdef double share
    cdef float added
    cdef double[2 * LAST_BLOCK + 3] sums
    for place in range(n_lists):
        number = search.order[place].second
        add_blocks(table.heads[table.filled[number]], table, search.shares, sums)
        for position in range(search.firsts[number], search.afters[number]):
            blocks = stored.keys[position] & BLOCKS
            share = sums[0] + sums[1 + (blocks >> BITS_OF_BLOCK)]
            share += sums[2 + LAST_BLOCK + (blocks & LAST_BLOCK)]
            added = <float>share
            first, last = stored.list_offsets[position], stored.list_offsets[position + 1]
            if first < 0 or last < first or last > size:
                refuse()
            if added == 0.0:  # a word would be noted again and again
                continue
            for at in range(first, last):
                word = list_words[at]
                if word < 0 or word >= n_all:
                    refuse()
                if near[word] == 0.0 and not dense:
                    words[n_words] = word
                    n_words += 1
                near[word] += added
    return n_words
