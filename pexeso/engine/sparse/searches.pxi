# The search for matching values by posting lists of pairs of letters.
#
# For a query value q the similarity g(w) of q and each word w that the partition has is added up
# from the lists of q's pairs; a stored value x that matches has a word with ``g(w) * S(x)`` no less
# than the cosine wanted, where S(x) is the sum of x's scaled weights, since cos = sum_j b_j g_j.
# Rows are in the order of S, largest first, so that a word's values that can match begin its list.
#
# The lists of one pair, for all blocks in which it stands, lie side by side. What each adds is what
# its occurrences in q have in common with it (`common_of`).
#
# Where a small distance is asked for, the longest lists need not be read. Let q = r + s, with s the
# pairs left out, and rho = |r|. The angle of x and q is at most t, that of q and r is acos(rho), so
#
#     r . x >= rho * cos(acos(rho) + t) = rho * (rho * c - sqrt(1 - rho^2) * sqrt(1 - c^2)),
#
# and r takes the place of q, with this bound in the place of c.
#
# Where a value has so many near words that most rows would be looked at one by one, it waits until
# there are several of that kind, for which all rows are gone through at once (`scan_for`).
#
# Sums are float32 of numbers that are not negative, so that each is off by a bounded share; bounds
# make room for it. What lies within this room, and all that was found from r alone, is decided by
# the definition.
#
# Source: bounds of this kind are those of Anastasiu and Karypis, "L2AP: fast cosine similarity
# search with prefix L-2 norm bounds" (ICDE 2014), and Li et al., "Cosine threshold queries" (2018).

cdef enum:
    DENSE = 8  # where more than one in so many words of a partition is read, all are examined

    # Entries of lists that are read in the time in which a word is compared with another by the
    # definition, among many.
    ENTRIES_A_WORD = 8

    # Entries that are read in the time in which a letter of a stored word is compared, and so many
    # more for each place where the query value has one of its pairs.
    A_LETTER = 5
    A_STEP = 2

    FEW_ENTRIES = 1 << 14

cdef extern from *:
    """
    static constexpr double ROUNDING = 1.0 / (1 << 22);
    static constexpr double ROUNDING_OF_A_SUM = 1.01 * (1.0 / (1 << 24));
    static constexpr double LEAST_FLOOR = 1e-6;
    """
    const double ROUNDING
    const double ROUNDING_OF_A_SUM
    const double LEAST_FLOOR


def find_matches(
    int64_t begin,
    int64_t end,
    Values query not None,
    const int64_t[::1] own_words,
    Stored stored not None,
    Room room not None,
    int64_t longest_word,
    int64_t most_value_words,
    double letters,
    double cosine,
    double max_distance,
    double visits_a_scan,
    int64_t[::1] found_starts,
    int64_t[::1] found_sizes,
    int64_t[::1] work,
):
    """Find the stored rows that match some query values.

    Parameters
    ----------
    found_starts, found_sizes : numpy.ndarray of shape (end - begin,), int64
        Where the rows of each value begin in what is returned, and how many it has.
    work : numpy.ndarray of shape (5,), int64
        `ENTRIES` and so on are added.

    Returns
    -------
    numpy.ndarray, int32
        The matching rows of each value, in no order.
    """
    cdef int64_t n_found
    cdef int32_t[::1] rows
    cdef Search search = Search()
    found_starts[:] = 0
    found_sizes[:] = 0
    search.query, search.stored, search.room, search.own_words = query, stored, room, own_words
    search.found_starts, search.found_sizes, search.work = found_starts, found_sizes, work
    search.begin, search.longest_word, search.most_value_words = (
        begin, longest_word, most_value_words
    )
    search.letters, search.cosine, search.max_distance = letters, cosine, max_distance
    search.visits_a_scan = visits_a_scan
    if room.n_words:
        with nogil:
            find(end, search, query, stored, room)
    n_found = search.found.size()
    found_rows = np.empty(n_found, np.int32)
    if n_found:
        rows = found_rows
        memcpy(&rows[0], search.found.data(), n_found * sizeof(int32_t))
    return found_rows


cdef int64_t find(
    int64_t end, Search search, Values query, Stored stored, Room room
) except -1 nogil:
    """Do as `find_matches`, for a partition that has words."""
    cdef int64_t value, lane
    cdef Largest largest = largest_value(query, search.begin, end)
    make_table(
        max(largest.keys_of_word, 2 * search.longest_word + 1), largest.keys, search.table
    )
    search.counts.resize(largest.words)
    search.shares.resize(largest.keys)
    search.squares.resize(largest.keys)
    search.firsts.resize(largest.keys)
    search.afters.resize(largest.keys)
    search.n_known = search.n_letters = search.n_waiting = 0
    for value in range(search.begin, end):
        if query.offsets[value] < query.offsets[value + 1]:
            find_for(value, search, query, stored, room)
        if search.n_waiting == 0 or (search.n_waiting < LANES and value < end - 1):
            continue
        if 2 * search.n_waiting >= LANES:
            scan_for(search, stored, room)
        else:
            # Too few to be worth it.
            for lane in range(search.n_waiting):
                find_late(lane, search, stored, room)
        memset(&room.lanes[0, 0], 0, search.n_waiting * room.n_words * sizeof(float))
        search.n_waiting = 0
    forget(search, room)
    return 0


cdef int64_t find_for(
    int64_t value, Search search, Values query, Stored stored, Room room
) except -1 nogil:
    """Find the rows that match a query value, or let it wait."""
    cdef int64_t place = value - search.begin, n_words, n_near, n_hits, position
    cdef float* near = &room.lanes[search.n_waiting, 0]
    cdef const float* reach = &stored.reach[0]
    cdef bint dense
    cdef double rounding = rounding_of(value, search, query), max_cost = INFINITY
    cdef float floor, sure = <float>INFINITY
    cdef Read read
    take_note(value, search, query, room)
    weigh_pairs(value, query, stored, search.table, search)
    read = count_read(search, stored.list_offsets)
    if read.n_entries > entries_worth_reading(value, query, room):
        search.found_sizes[place] = DEAR
        return 0
    dense = read.n_entries * DENSE >= room.n_words
    n_words = read_value(value, read.n_lists, dense, near, search, query, stored, room)
    search.work[ENTRIES] += read.n_entries
    search.work[LEFT_OUT] += <int64_t>search.order.size() - read.n_lists
    floor = <float>max(read.bound * (1.0 - rounding), LEAST_FLOOR)
    if read.n_lists == <int64_t>search.order.size():
        sure = <float>(search.cosine * (1.0 + rounding) + 1e-6)
    if dense:
        n_near = select_words(near, reach, floor, room.flags, room.words)
        max_cost = search.visits_a_scan * room.n_values / LANES
    else:
        n_near = keep_words(near, reach, floor, room.words, n_words)
    n_hits = look_up(n_near, near, value, search, stored, room, floor, sure, rounding, max_cost)
    if n_hits == WAITS:
        search.waiting[search.n_waiting] = value
        search.floors[search.n_waiting], search.sure_from[search.n_waiting] = floor, sure
        search.n_waiting = search.n_waiting + 1
        return 0
    take_rows(place, n_hits, search, room)
    if dense:
        memset(near, 0, room.n_words * sizeof(float))
    else:
        for position in range(n_words):
            near[room.words[position]] = 0.0
    return 0


cdef int64_t find_late(int64_t lane, Search search, Stored stored, Room room) except -1 nogil:
    """Find the rows that match a query value that has waited."""
    cdef int64_t value = search.waiting[lane], n_near, n_hits
    cdef const float* near = &room.lanes[lane, 0]
    cdef float floor = search.floors[lane]
    take_note(value, search, search.query, room)
    n_near = select_words(near, &stored.reach[0], floor, room.flags, room.words)
    n_hits = look_up(
        n_near, near, value, search, stored, room, floor, search.sure_from[lane],
        rounding_of(value, search, search.query), INFINITY,
    )
    take_rows(value - search.begin, n_hits, search, room)
    return 0


cdef void take_rows(int64_t place, int64_t n_hits, Search search, Room room) noexcept nogil:
    """Note the rows that match a query value, or that all must be compared."""
    cdef int64_t number
    search.found_starts[place], search.found_sizes[place] = search.found.size(), n_hits
    for number in range(n_hits):
        search.found.push_back(room.rows[number])


cdef void take_note(int64_t value, Search search, Values query, Room room) noexcept nogil:
    """Fill the table with the pairs of a query value, in the place of another's."""
    cdef int64_t first = query.offsets[value]
    forget(search, room)
    clear_table(search.table)
    add_words(query, &query.members[first], query.offsets[value + 1] - first, search.table)


cdef int64_t entries_worth_reading(int64_t value, Values query, Room room) noexcept nogil:
    """Return the entries of lists that take as long to read as to compare with all words."""
    cdef int64_t n_words = query.offsets[value + 1] - query.offsets[value]
    return FEW_ENTRIES + ENTRIES_A_WORD * n_words * room.n_words


cdef int64_t letters_worth_deciding(int64_t value, Search search, Room room) noexcept nogil:
    """Return the letters that take as long to decide by as to compare with all words."""
    cdef double n_entries = <double>entries_worth_reading(value, search.query, room)
    cdef double n_pairs = <double>max(search.table.filled.size(), <size_t>1)
    cdef double places = <double>search.table.chain.size() / n_pairs
    return <int64_t>(n_entries / (A_LETTER + A_STEP * places))


cdef double rounding_of(int64_t value, Search search, Values query) noexcept nogil:
    """Return the share by which sums of float32 may be off for a query value."""
    cdef int64_t n_words = query.offsets[value + 1] - query.offsets[value]
    # A stored word is added to once for each of its keys, as often as it has them.
    cdef double of_keys = <double>(2 * search.longest_word + 2) * ROUNDING_OF_A_SUM
    return <double>(n_words + search.most_value_words + 64) * ROUNDING + of_keys


cdef int64_t read_value(
    int64_t value,
    int64_t n_lists,
    bint dense,
    float* near,
    Search search,
    Values query,
    Stored stored,
    Room room,
) except -1 nogil:
    """Add up from lists how near each word of the partition is to a query value.

    `near` (V,) are zeros; written, up to the scale of each word. The words that were reached are
    written to the room, unless all are to be looked through; their number is returned.
    """
    cdef int64_t n_words = 0, position, member, word
    cdef double length = sqrt(query.norms[value])
    cdef float added
    if search.letters < 1.0:
        for position in range(query.offsets[value], query.offsets[value + 1]):
            member = query.members[position]
            word = search.own_words[member]
            if word < 0:
                continue
            added = <float>(
                <double>query.weights[member]
                / length
                * (1.0 - search.letters)
                / <double>stored.scales[word]
            )
            if near[word] == 0.0 and added > 0.0 and not dense:
                room.words[n_words] = <int32_t>word
                n_words += 1
            near[word] += added
    return read_lists(n_lists, search, search.table, stored, dense, near, room.words, n_words)


cdef int64_t look_up(
    int64_t n_near,
    const float* near,
    int64_t value,
    Search search,
    Stored stored,
    Room room,
    float floor,
    float sure,
    double rounding,
    double max_cost,
) except -1 nogil:
    """Write the rows that match a query value to ``room.rows``; return their number.

    It is `WAITS` where to look them up by the first `n_near` of the room's words costs more than
    `max_cost`, see `collect_rows`, and `DEAR` where to decide costs more than to compare all.
    """
    cdef int64_t position, n_rows = collect_rows(
        n_near, near, stored, floor, rounding, max_cost, room, search
    )
    for position in range(search.n_touched):
        room.gained[room.touched[position]] = 0
    search.work[VISITS] += search.n_entries
    if n_rows == WAITS:
        return WAITS
    search.work[CANDIDATES] += n_rows
    return look_at_rows(
        n_rows, near, value, search, stored, stored.values, room, floor, sure,
        letters_worth_deciding(value, search, room),
    )


cdef int64_t scan_for(Search search, Stored stored, Room room) except -1 nogil:
    """Find the rows that match the waiting query values by going through all rows once."""
    cdef double scale = scale_of(
        search.floors, search.n_waiting, stored.longest, search.most_value_words
    )
    cdef int64_t lane, n_rows
    pack_lanes(room.lanes, search.n_waiting, stored.factors, search.floors, scale, room.packed)
    n_rows = scan_rows(room.packed, stored, scale, search.most_value_words, search)
    for lane in range(search.n_waiting):
        find_in_lane(lane, n_rows, scale, search, stored, room)
    search.work[CANDIDATES] += search.n_waiting * room.n_values
    return 0


cdef void find_in_lane(
    int64_t lane, int64_t n_rows, double scale, Search search, Stored stored, Room room
) noexcept nogil:
    """Find the rows that match a query value among those that are worth a look."""
    cdef int64_t value = search.waiting[lane], place = value - search.begin, max_letters = 0
    cdef int64_t number, n_before = search.found.size()
    cdef int32_t row
    cdef bint is_noted = False
    # What a row needs for each unit of its length to match for certain.
    cdef double enough = scale * (<double>search.sure_from[lane] / <double>search.floors[lane])
    enough *= 1.0 + ROW_ROUNDING
    search.found_starts[place] = n_before
    for number in range(n_rows):
        if not search.masks[number] >> lane & 1:
            continue
        row = search.scanned[number]
        if units_of(search.sums[number], lane) < <double>stored.value_lengths[row] * enough:
            search.work[DECIDED] += 1
            if not is_noted:
                take_note(value, search, search.query, room)
                max_letters = letters_worth_deciding(value, search, room)
                is_noted = True
            if search.n_letters > max_letters:
                break
            if not within(row, value, search, search.query, stored.values, room):
                continue
        search.found.push_back(row)
    if is_noted and search.n_letters > max_letters:
        search.found.resize(n_before)
        search.found_sizes[place] = DEAR
        return
    search.found_sizes[place] = <int64_t>search.found.size() - n_before
