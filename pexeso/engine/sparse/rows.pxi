# The rows that may match.
#
# Rows are examined one by one, or all are gone through once for several query values. Then each
# query value has a lane of `BITS` bits: what a word adds to its dot product with a row that has the
# word, in units, rounded down. Three lanes lie in one 64-bit number, so that one addition adds for
# three values; no lane runs over, since by Cauchy and Schwarz no dot product is larger than the
# length of the row times that of the value, which the unit makes room for.

cdef enum:
    BITS = 21
    IN_ONE = 3
    TOP = 1 << 20
    SLACK = 8
    WORDS_AT_ONCE = 512
    ROWS_AT_ONCE = 1024
    PREFIXES = 1 << 12

    # Words whose lists are looked up before the first of them is read, so that memory is requested
    # several at a time.
    AHEAD = 64

    A_LOOK = 6  # visits of a row by one word in the time in which all words of a row are examined

    FULL = 128  # steps that a row needs, and those after which they are not counted
    MAX_STEPS = 255

    WAITS = -3  # in the place of a number of rows: they are found for several query values at once

    # What is counted: entries of lists of words, and of rows, rows decided by the definition, lists
    # left out, rows whose similarity was added up.
    ENTRIES = 0
    VISITS = 1
    DECIDED = 2
    LEFT_OUT = 3
    CANDIDATES = 4

cdef extern from *:
    """
    // Room for the rounding of lengths, factors and units.
    static constexpr double ROW_ROUNDING = 1.0 / (1 << 20);

    static constexpr float LITTLE = 1e-9f;
    """
    const double ROW_ROUNDING
    const float LITTLE


cdef double scale_of(
    const float* floors, int64_t n_lanes, double longest, int64_t most_words
) noexcept nogil:
    """Return the units that a row needs for each unit of its length, to be worth a look.

    `floors` are the cosines with which a row is, one for each lane.
    """
    cdef float least = floors[0]
    cdef int64_t lane
    for lane in range(1, n_lanes):
        least = min(least, floors[lane])
    return <double>(TOP - 1 - most_words - SLACK) * <double>least * 0.999 / longest


cdef void pack_lanes(
    float[:, ::1] near,
    int64_t n_lanes,
    const float[::1] factors,
    const float* floors,
    double scale,
    uint64_t[:, ::1] packed,
) noexcept nogil:
    """Write the units of each word, uint64 (V, 2).

    Parameters
    ----------
    near : float32 (lanes, V)
    factors : float32 (V,)
        What nearness is multiplied by for a part of the dot product.
    """
    cdef int64_t n_words = packed.shape[0], begin = 0, end, lane, word, shift
    cdef const float* mine
    cdef const float* factor = &factors[0]
    cdef uint64_t* units
    cdef float unit
    memset(&packed[0, 0], 0, n_words * 2 * sizeof(uint64_t))
    while begin < n_words:
        end = min(begin + WORDS_AT_ONCE, n_words)
        for lane in range(n_lanes):
            shift, mine, units = BITS * (lane % IN_ONE), &near[lane, 0], &packed[0, lane // IN_ONE]
            unit = <float>(scale / <double>floors[lane])
            for word in range(begin, end):
                units[2 * word] |= <uint64_t><int32_t>(mine[word] * factor[word] * unit) << shift
        begin = end


cdef int64_t scan_rows(
    uint64_t[:, ::1] packed, Stored stored, double scale, int64_t most_words, Search search
) except -1 nogil:
    """Find the rows that are worth a look in any lane; return their number."""
    cdef const int64_t* offsets = &stored.values.offsets[0]
    cdef const int32_t* members = NULL
    cdef const float* lengths = &stored.value_lengths[0]
    cdef const uint64_t* units = &packed[0, 0]
    cdef int64_t n_rows = stored.value_lengths.shape[0], n_members = stored.values.members.shape[0]
    cdef int64_t n_prefixes = max(<int64_t>PREFIXES, most_words) + 1, n_found = 0, begin = 0, end
    cdef int64_t base, position, row, start, stop
    cdef uint64_t n_words = packed.shape[0], word, first, second, carry, reached, and_reached
    cdef uint64_t ones = 1 | <uint64_t>1 << BITS | <uint64_t>1 << 2 * BITS
    cdef uint64_t tops = ones << (BITS - 1)
    cdef pair[uint64_t, uint64_t]* prefixes
    if n_members:
        members = &stored.values.members[0]
    search.prefixes.resize(n_prefixes)
    prefixes = search.prefixes.data()
    prefixes[0].first = prefixes[0].second = 0
    while begin < n_rows:
        base, end = offsets[begin], min(begin + ROWS_AT_ONCE, n_rows)
        while end > begin + 1 and offsets[end] - base >= n_prefixes:
            end = begin + max(<int64_t>1, (end - begin) // 2)
        if base < 0 or offsets[end] < base or offsets[end] > n_members:
            refuse()
        if offsets[end] - base >= n_prefixes:
            refuse()
        first = second = 0
        for position in range(offsets[end] - base):
            word = <uint64_t>members[base + position]
            if word >= n_words:
                refuse()
            first += units[2 * word]
            second += units[2 * word + 1]
            prefixes[position + 1].first = first
            prefixes[position + 1].second = second
        if n_found + end - begin > <int64_t>search.scanned.size():
            position = max(<int64_t>(2 * ROWS_AT_ONCE), 2 * <int64_t>search.scanned.size())
            search.scanned.resize(position)
            search.masks.resize(position)
            search.sums.resize(position)
        for row in range(begin, end):
            start, stop = offsets[row] - base, offsets[row + 1] - base
            if start < 0 or stop < start or stop >= n_prefixes:
                refuse()
            # Lanes that reach what is needed carry into their top bit.
            carry = <uint64_t>(TOP - needed_of(lengths[row], stop - start, scale)) * ones
            first = prefixes[stop].first - prefixes[start].first
            second = prefixes[stop].second - prefixes[start].second
            reached, and_reached = (first + carry) & tops, (second + carry) & tops
            if reached | and_reached:
                search.scanned[n_found] = <int32_t>row
                search.sums[n_found].first, search.sums[n_found].second = first, second
                search.masks[n_found] = bits_of(reached) | bits_of(and_reached) << IN_ONE
                n_found += 1
        begin = end
    return n_found


cdef inline uint8_t bits_of(uint64_t reached) noexcept nogil:
    """Return the top bits of lanes as one bit each."""
    return (
        (reached >> (BITS - 1) & 1)
        | (reached >> (2 * BITS - 1) & 1) << 1
        | (reached >> (3 * BITS - 1) & 1) << 2
    )


cdef inline int64_t needed_of(float length, int64_t n_words, double scale) noexcept nogil:
    """Return the units that a row needs at least: less than one of each word was rounded down."""
    cdef int64_t needed = <int64_t>(<double>length * scale * (1.0 - ROW_ROUNDING))
    return max(needed - n_words - 1, <int64_t>0)


cdef inline int64_t units_of(pair[uint64_t, uint64_t]& sums, int64_t lane) noexcept nogil:
    """Return the units of one lane."""
    cdef uint64_t some = sums.second if lane >= IN_ONE else sums.first
    return <int64_t>(some >> BITS * (lane % IN_ONE) & ((<uint64_t>1 << BITS) - 1))


cdef int64_t collect_rows(
    int64_t n_words,
    const float* near,
    Stored stored,
    float floor,
    double rounding,
    double max_cost,
    Room room,
    Search search,
) except -1 nogil:
    """Write the rows whose words that are near enough add up to enough, each once.

    Rows are in bands of about equal sums S. For a similarity d a row can only match if what its
    words have beyond d, ``sum_j b_j max(g_j - d, 0)``, is at least ``floor - d * S``. With
    ``d = floor / S`` that is any word at least so near; rows of many words, of which nearly each
    has one, are looked at from a part of that on, so that one such word is not enough. What words
    add is counted in steps of which a row needs `FULL`, rounded up.

    The first of the room's words are those with ``near * reach >= floor``. ``room.gained`` is
    zeros; what is not is listed in ``room.touched``. The number of rows is returned, or `WAITS`
    where they cost more than `max_cost`.
    """
    cdef int64_t n_bands = stored.band_ends.shape[0], n_all = room.n_values, n_rows = 0, begin = 0
    cdef int64_t n_some, number, word, first, last, band, end, least, entry, before, after
    cdef int64_t n_touched = 0, n_entries = 0
    cdef int32_t row
    cdef float share, nearness, limit, step
    cdef double needed
    cdef const int32_t* words = &room.words[0]
    cdef const int64_t* offsets
    cdef const int32_t* word_values
    cdef const uint8_t* shares
    cdef const int64_t* band_ends
    cdef uint8_t* gained
    cdef int32_t* touched
    cdef int32_t* rows
    cdef int64_t[AHEAD] firsts, lasts, bands
    cdef float[AHEAD] nearnesses
    cdef int64_t asked_for = 0
    search.n_touched = search.n_entries = 0
    if not n_words or not n_all or not stored.word_values.shape[0]:
        return 0
    offsets, word_values = &stored.word_value_offsets[0], &stored.word_values[0]
    shares, band_ends = &stored.value_shares[0], &stored.band_ends[0]
    gained, touched, rows = &room.gained[0], &room.touched[0], &room.rows[0]
    search.limits.resize(n_bands)
    search.steps.resize(n_bands)
    search.at_least.resize(n_bands)
    for band in range(n_bands):
        share = stored.band_shares[band]
        search.limits[band] = share * floor / stored.band_sums[band]
        needed = max(
            (1.0 - <double>share) * <double>floor * (1.0 - 1e-4 - rounding), <double>LITTLE
        )
        search.steps[band] = <float>(FULL / (255.0 * needed))
        # Where any word that is near enough will do, each is enough.
        search.at_least[band] = FULL if share == 1.0 else 1
    while begin < n_words:
        n_some = min(<int64_t>AHEAD, n_words - begin)
        for number in range(n_some):
            word = words[begin + number]
            first = offsets[word]
            firsts[number], lasts[number] = first, offsets[word + 1]
            nearnesses[number] = near[word] * stored.scales[word]
            bands[number] = stored.first_bands[word]
            # Nobody reads it: asked for so that the beginnings of many lists are on their way from
            # memory at a time. A word without rows is never among these: its reach is 0.
            asked_for ^= word_values[first] ^ shares[first]
        for number in range(n_some):
            first, last, nearness = firsts[number], lasts[number], nearnesses[number]
            band = bands[number]
            end, limit, least = band_ends[band], search.limits[band], search.at_least[band]
            step = (nearness - limit) * search.steps[band]
            for entry in range(first, last):
                row = word_values[entry]
                if row < 0 or row >= n_all:
                    refuse()
                if row >= end:
                    while band < n_bands - 1 and row >= band_ends[band]:
                        band += 1
                    end, limit = band_ends[band], search.limits[band]
                    least = search.at_least[band]
                    step = (nearness - limit) * search.steps[band]
                if nearness < limit:
                    last = entry
                    break
                before = gained[row]
                after = <int64_t>min(shares[entry] * step, <float>MAX_STEPS) + least
                after = min(before + after, <int64_t>MAX_STEPS)
                gained[row] = <uint8_t>after
                if before == 0:
                    touched[n_touched] = row
                    n_touched += 1
                if before < FULL and after >= FULL:
                    rows[n_rows] = row
                    n_rows += 1
            n_entries += last - first
        begin += AHEAD
        if n_entries + A_LOOK * n_rows > max_cost:
            n_rows = WAITS
            break
    search.n_touched, search.n_entries, search.asked_for = n_touched, n_entries, asked_for
    return n_rows


cdef int64_t look_at_rows(
    int64_t n_rows,
    const float* near,
    int64_t value,
    Search search,
    Stored stored,
    Values values,
    Room room,
    float floor,
    float sure,
    int64_t max_letters,
) except -1 nogil:
    """Move the rows that match a query value to the beginning of the room's; return their number.

    It is `DEAR` where not all was done. `near`, float32 (V,), is what the lists say of each word.
    """
    cdef int64_t n_words = room.n_words, n_members = values.members.shape[0], n_hits = 0
    cdef int64_t number, position, first, last
    cdef int32_t row, word
    cdef float estimate
    cdef bint is_match
    cdef const int32_t* members = &values.members[0] if n_members else NULL
    cdef const float* factors = &stored.factors[0]
    for number in range(n_rows):
        row = room.rows[number]
        first, last = values.offsets[row], values.offsets[row + 1]
        if first < 0 or last < first or last > n_members:
            refuse()
        estimate = 0.0
        for position in range(first, last):
            word = members[position]
            if word < 0 or word >= n_words:
                refuse()
            estimate += near[word] * factors[word]
        estimate /= stored.value_lengths[row]
        if estimate < floor:
            continue
        if estimate < sure:
            search.work[DECIDED] += 1
            is_match = within(row, value, search, search.query, values, room)
            if search.n_letters > max_letters:
                return DEAR
            if not is_match:
                continue
        room.rows[n_hits] = row
        n_hits += 1
    return n_hits


cdef bint within(
    int64_t row, int64_t value, Search search, Values query, Values values, Room room
) noexcept nogil:
    """Return whether a stored row matches a query value by the definition."""
    cdef int64_t first = query.offsets[value], n_owners = query.offsets[value + 1] - first, number
    cdef int64_t position, word, member
    cdef int64_t* counts = search.counts.data()
    cdef double dot = 0.0, nearness, square
    for position in range(values.offsets[row], values.offsets[row + 1]):
        word = values.members[position]
        if room.known[word] >= 0.0:
            dot += <double>values.weights[word] * room.known[word]
            continue
        search.n_letters = search.n_letters + values.starts[word + 1] - values.starts[word]
        count_common(values, word, search.table, n_owners, counts)
        nearness = 0.0
        for number in range(n_owners):
            member = query.members[first + number]
            if counts[number] == 0:
                continue
            if counts[number] == query.squares[member] and same_text(member, word, query, values):
                nearness += <double>query.weights[member]
            else:
                nearness += <double>query.weights[member] * similarity(
                    counts[number], query.squares[member], values.squares[word], search.letters
                )
        room.known[word] = nearness
        room.known_words[search.n_known] = <int32_t>word
        search.n_known = search.n_known + 1
        dot += <double>values.weights[word] * nearness
    square = query.norms[value] * values.norms[row]
    return sqrt(max(1.0 - dot / sqrt(square), 0.0) * 0.5) <= search.max_distance


cdef bint same_text(int64_t mine, int64_t word, Values query, Values values) noexcept nogil:
    """Return whether a word of the query is one of the partition."""
    return compare_text(
        begin_of(query.text) + query.starts[mine],
        query.starts[mine + 1] - query.starts[mine],
        begin_of(values.text) + values.starts[word],
        values.starts[word + 1] - values.starts[word],
    ) == 0


cdef void forget(Search search, Room room) noexcept nogil:
    """Take back what was noted of words for one query value."""
    cdef int64_t position
    for position in range(search.n_known):
        room.known[room.known_words[position]] = -1.0
    search.n_known = search.n_letters = 0
