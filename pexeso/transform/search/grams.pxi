# Pieces of q letters as numbers, and what columns share.
#
# A piece is the place of q letters in a row (a q-gram). A text of fewer letters is one piece by
# itself, which is looked for inside longer texts too, if it has at least `MIN_LETTERS`.

cpdef enum:
    Q = 3  # letters of a piece
    MIN_LETTERS = 2  # letters of a text that is shorter than a piece
    MAX_LETTERS = 500  # letters of a text that are compared; as many as programs are learned from

cdef enum:
    # How a piece of fewer than `Q` letters is looked for: a whole text inside others, or a piece
    # inside others that some text is as a whole.
    INSIDE = 0
    WHOLE = 1


cdef inline int64_t decode(
    const uint8_t* text, int64_t first, int64_t last, uint32_t* letters
) noexcept nogil:
    """Write the first `MAX_LETTERS` code points of a UTF-8 text; return how many they are."""
    cdef int64_t count = 0, position = first, size, step
    cdef uint32_t letter
    while position < last and count < MAX_LETTERS:
        letter = text[position]
        if letter < 0x80:
            size = 1
        elif letter < 0xE0:
            size, letter = 2, letter & 0x1F
        elif letter < 0xF0:
            size, letter = 3, letter & 0x0F
        else:
            size, letter = 4, letter & 0x07
        for step in range(1, size):
            if position + step < last:
                letter = (letter << 6) | (text[position + step] & 0x3F)
        letters[count] = letter
        count += 1
        position += size
    return count


cdef inline uint64_t gram(const uint32_t* letters, int64_t size, int64_t kind) noexcept nogil:
    """Return the number of a piece: never 0, another for each size and kind."""
    cdef uint64_t multiplier = <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t mixed = <uint64_t>(2 * size + kind) * multiplier
    cdef int64_t position
    for position in range(size):
        mixed = (mixed ^ letters[position]) * multiplier
        mixed ^= mixed >> 29
    return mixed | (<uint64_t>1 << 63)


def query_grams(const uint8_t[::1] text, const int64_t[::1] offsets):
    """Return the pieces of each text, once each or more often, and the text that each is of.

    Those by which others are looked for in it: its pieces of `Q` letters, or itself; and its
    shorter pieces, which others may be as a whole.

    Parameters
    ----------
    text : uint8
        All texts in UTF-8, one after the other.
    offsets : int64 (t + 1,)
        Where each begins.

    Returns
    -------
    (uint64 (p,), int32 (p,))
    """
    cdef int64_t total = 0, value, at = 0, size, first, short
    cdef uint32_t[MAX_LETTERS] letters
    cdef const uint8_t* bytes_ = &text[0] if text.shape[0] else NULL
    for value in range(offsets.shape[0] - 1):
        size = offsets[value + 1] - offsets[value]
        total += (Q - MIN_LETTERS + 1) * min(size, <int64_t>MAX_LETTERS)
    grams, values = np.empty(total, np.uint64), np.empty(total, np.int32)
    cdef uint64_t[::1] grams_view = grams
    cdef int32_t[::1] values_view = values
    with nogil:
        for value in range(offsets.shape[0] - 1):
            size = decode(bytes_, offsets[value], offsets[value + 1], letters)
            if MIN_LETTERS <= size < Q:
                grams_view[at] = gram(letters, size, INSIDE)
                values_view[at] = <int32_t>value
                at += 1
            for first in range(size - Q + 1):
                grams_view[at] = gram(letters + first, Q, INSIDE)
                values_view[at] = <int32_t>value
                at += 1
            for short in range(MIN_LETTERS, Q):
                for first in range(size - short + 1):
                    grams_view[at] = gram(letters + first, short, WHOLE)
                    values_view[at] = <int32_t>value
                    at += 1
    return grams[:at], values[:at]


def fill_table(const uint64_t[::1] grams, uint64_t[::1] table, int32_t[::1] numbers):
    """Write pieces and their numbers into a hash table.

    Parameters
    ----------
    grams : uint64 (g,)
        Distinct.
    table, numbers : uint64, int32 (power of two,)
        Open addressing: a piece, 0 where there is none, and its number; written.
    """
    cdef uint64_t mask = table.shape[0] - 1, slot
    cdef int64_t number
    with nogil:
        for number in range(grams.shape[0]):
            slot = (grams[number] >> 20) & mask
            while table[slot] != 0:
                slot = (slot + 1) & mask
            table[slot] = grams[number]
            numbers[slot] = <int32_t>number


cdef inline int32_t number_of(
    uint64_t piece, const uint64_t* table, const int32_t* numbers, uint64_t mask
) noexcept nogil:
    """Return the number of a piece, or -1."""
    cdef uint64_t slot = (piece >> 20) & mask
    while table[slot] != 0:
        if table[slot] == piece:
            return numbers[slot]
        slot = (slot + 1) & mask
    return -1


cdef inline int64_t shared_grams(
    const uint32_t* letters,
    int64_t size,
    const uint8_t[::1] lengths,
    const uint64_t* table,
    const int32_t* numbers,
    uint64_t mask,
    int32_t* out,
) noexcept nogil:
    """Write the numbers of the pieces that a text shares with the query; return how many."""
    cdef int64_t count = 0, start, short
    cdef int32_t number
    if MIN_LETTERS <= size < Q:
        number = number_of(gram(letters, size, WHOLE), table, numbers, mask)
        if number >= 0:
            out[count] = number
            count += 1
    for start in range(size - Q + 1):
        number = number_of(gram(letters + start, Q, INSIDE), table, numbers, mask)
        if number >= 0:
            out[count] = number
            count += 1
    for short in range(MIN_LETTERS, Q):
        if lengths[short]:
            for start in range(size - short + 1):
                number = number_of(gram(letters + start, short, INSIDE), table, numbers, mask)
                if number >= 0:
                    out[count] = number
                    count += 1
    return count


def compare_columns(
    const uint8_t[::1] text,
    const int64_t[::1] offsets,
    const int64_t[::1] equal,
    const int64_t[::1] columns,
    const uint8_t[::1] lengths,
    const uint64_t[::1] table,
    const int32_t[::1] numbers,
    const int64_t[::1] holder_offsets,
    const int32_t[::1] holders,
    int64_t n_values,
    int64_t max_holders,
    int64_t max_pieces,
    int32_t[::1] partners,
    int32_t[::1] strengths,
    int64_t[:, ::1] scores,
):
    """Find for each text the query value that shares most telling pieces, and score columns.

    Parameters
    ----------
    text : uint8
        All texts, one after the other.
    offsets : int64 (t + 1,)
        Where each begins.
    equal : int64 (t,)
        The query value that a text equals, or -1.
    columns : int64 (c + 1,)
        Where the texts of each column begin.
    lengths : bool (Q,)
        Whether a query value has so many letters, at least `MIN_LETTERS`.
    table, numbers : uint64, int32 (power of two,)
        See `fill_table`.
    holder_offsets, holders
        Query values that hold each piece: int64 (g + 1,), int32.
    n_values : int
        Of the query.
    partners : int32 (t,)
        Written: the query value with most telling pieces, the first of several; -1 where there is
        none, or an equal one.
    strengths : int32 (t,)
        Written: telling pieces that it shares with it.
    scores : int64 (c, 2)
        Written: query values that are partners of some text, without those that a text equals; and
        the telling pieces of each with its best text, at most `max_pieces`, in sum.
    """
    cdef int64_t n_grams = holder_offsets.shape[0] - 1, column, row, position, holder, low, high
    cdef int64_t size, count, n_touched, n_partnered, first, start, end, n_hits
    cdef int32_t piece, value, chosen
    cdef uint64_t mask = table.shape[0] - 1
    cdef uint32_t[MAX_LETTERS] letters
    cdef int32_t[Q * MAX_LETTERS] grams
    cdef vector[int64_t] in_texts  # texts of the column that hold a piece
    cdef vector[int64_t] seen  # the last text that held it
    cdef vector[int64_t] pieces  # telling ones that a text shares with a value
    cdef vector[int64_t] best, is_equal, ends
    cdef vector[int32_t] touched, partnered, hits
    cdef const uint8_t* bytes_ = &text[0] if text.shape[0] else NULL
    cdef const uint64_t* slots = &table[0]
    cdef const int32_t* slot_numbers = &numbers[0]
    with nogil:
        in_texts.resize(n_grams)
        seen.resize(n_grams, -1)
        pieces.resize(n_values)
        best.resize(n_values)
        is_equal.resize(n_values, -1)
        touched.resize(n_values)
        partnered.resize(n_values)
        for column in range(columns.shape[0] - 1):
            start, end = columns[column], columns[column + 1]
            hits.clear()
            ends.resize(end - start)
            for row in range(start, end):
                if equal[row] >= 0:
                    is_equal[equal[row]] = column
                size = decode(bytes_, offsets[row], offsets[row + 1], letters)
                count = shared_grams(letters, size, lengths, slots, slot_numbers, mask, grams)
                for position in range(count):
                    piece = grams[position]
                    if seen[piece] != row:
                        seen[piece] = row
                        in_texts[piece] += 1
                        hits.push_back(piece)
                ends[row - start] = hits.size()
            n_partnered, first, n_hits = 0, 0, hits.size()
            for row in range(start, end):
                n_touched = 0
                for position in range(first, ends[row - start]):
                    piece = hits[position]
                    low, high = holder_offsets[piece], holder_offsets[piece + 1]
                    if equal[row] < 0 and (high - low) * in_texts[piece] <= max_holders:
                        for holder in range(low, high):
                            value = holders[holder]
                            if is_equal[value] != column:
                                if pieces[value] == 0:
                                    touched[n_touched] = value
                                    n_touched += 1
                                pieces[value] += 1
                first = ends[row - start]
                chosen = -1
                for position in range(n_touched):
                    value = touched[position]
                    if (
                        chosen < 0
                        or pieces[value] > pieces[chosen]
                        or (pieces[value] == pieces[chosen] and value < chosen)
                    ):
                        chosen = value
                if chosen >= 0:
                    if best[chosen] == 0:
                        partnered[n_partnered] = chosen
                        n_partnered += 1
                    best[chosen] = max(best[chosen], min(pieces[chosen], max_pieces))
                partners[row] = chosen
                strengths[row] = <int32_t>pieces[chosen] if chosen >= 0 else 0
                for position in range(n_touched):
                    pieces[touched[position]] = 0
            scores[column, 0] = n_partnered
            scores[column, 1] = 0
            for position in range(n_partnered):
                scores[column, 1] += best[partnered[position]]
                best[partnered[position]] = 0
            for position in range(n_hits):
                in_texts[hits[position]] = 0
                seen[hits[position]] = -1
