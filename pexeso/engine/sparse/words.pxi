# Words: their keys, a table of these, dot products, and the order of texts.
#
# A key is a pair of characters with the two blocks in which it lies: see `write_keys`. A table
# holds the keys of a few words, its owners, by pair.

cdef enum:
    BEGIN = 0x110000  # before and after a word: the first numbers of no character
    END = 0x110001
    MOST_DIGITS = 14  # of words that are numbers: their keys begin where those of pairs end


cdef struct Entry:
    int32_t owner
    int32_t blocks
    int32_t count
    int32_t before


cdef cppclass Table:
    """The keys of a few words by pair.

    It is open addressing over a power of two of slots; each slot leads to a chain of (owner,
    blocks, count). It is reused: `clear_table` empties the slots that were filled.

    `keys` is room for those of a word; `heads` has the position in `chain` of the last entry of
    each slot, -1 where there is none; each entry names the one before it, and owners ascend;
    `filled` are the slots in the order in which they were filled.
    """

    vector[int64_t] keys
    vector[int64_t] pairs
    vector[int32_t] heads
    vector[Entry] chain
    vector[int32_t] filled


cdef struct Largest:
    int64_t keys_of_word
    int64_t keys
    int64_t words


cdef inline const uint8_t* begin_of(const uint8_t[::1] text) noexcept nogil:
    return &text[0] if text.shape[0] else NULL


cdef inline int64_t spelling_of(const uint8_t* text, int64_t start, int64_t stop) noexcept nogil:
    """Return where the letters begin by which a word is compared: behind `SPELLED`, if it is there.

    What stands before is the word itself, which tells it from others of the same letters.
    """
    cdef void* sign = NULL
    if start < stop:
        sign = memchr(<void*>(text + start), SPELLED, stop - start)
    return <const uint8_t*>sign - text + 1 if sign != NULL else start


cdef inline int64_t count_letters(const uint8_t* text, int64_t start, int64_t stop) noexcept nogil:
    """Return the characters of a word."""
    cdef int64_t n_letters = 0, position
    for position in range(start, stop):
        n_letters += (text[position] & 0xC0) != 0x80
    return n_letters


cdef inline int64_t number_of(const uint8_t* text, int64_t start, int64_t stop) noexcept nogil:
    """Return a word of up to 14 digits as a number of its own, with a 1 before it; else -1."""
    cdef int64_t number = 1, position, digit
    if stop - start > MOST_DIGITS or start == stop:
        return -1
    for position in range(start, stop):
        digit = <int64_t>text[position] - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


cdef inline int64_t blocks_at(int64_t position, int64_t size) noexcept nogil:
    """Return the two blocks of a character."""
    cdef int64_t first = min(position // BLOCK, <int64_t>LAST_BLOCK)
    return first << BITS_OF_BLOCK | min((size - position) // BLOCK, <int64_t>LAST_BLOCK)


cdef int64_t write_keys(
    const uint8_t* text, int64_t start, int64_t stop, int64_t* keys
) noexcept nogil:
    """Write the keys of a word: its ordered pairs of characters at most two apart, with blocks.

    A key is, from the highest bit on, the first character, the second, the block of the first
    counted from the beginning of the word, and that counted from its end. A word of digits alone
    has one key that no other word has.

    `keys` has room for two for each byte of ``text[start:stop]``, which is UTF-8, and one more. The
    number of keys is returned.
    """
    cdef int64_t number, size, before = -1, last = BEGIN, at, n_keys = 0, letter, byte
    start = spelling_of(text, start, stop)
    number, at = number_of(text, start, stop), start
    if number >= 0:
        keys[0] = ((<int64_t>1 << 42) + number) << BITS_OF_BLOCKS
        return 1
    size = count_letters(text, start, stop) + 2
    while at < stop and (text[at] & 0xC0) == 0x80:
        at += 1
    for number in range(1, size):
        if number == size - 1:
            letter = END
        else:
            byte = text[at]
            letter = byte if byte < 0x80 else byte & (0x1F if byte < 0xE0 else 0x0F)
            if byte >= 0xF0:
                letter = byte & 0x07
            at += 1
            while at < stop and (text[at] & 0xC0) == 0x80:
                letter = ((letter << 6) | (text[at] & 0x3F)) & 0x1FFFFF
                at += 1
        keys[n_keys] = last << 33 | letter << BITS_OF_BLOCKS | blocks_at(number - 1, size)
        n_keys += 1
        if before >= 0:
            keys[n_keys] = before << 33 | letter << BITS_OF_BLOCKS | blocks_at(number - 2, size)
            n_keys += 1
        before, last = last, letter
    return n_keys


cdef inline int64_t common_of(int64_t blocks, int64_t others) noexcept nogil:
    """Return what two occurrences of a pair add to the dot product of two words."""
    cdef int64_t differ = blocks ^ others
    return PAIR + ((differ & FIRST_BLOCK) == 0) + ((differ & LAST_BLOCK) == 0)


cdef Largest largest_value(Values values, int64_t begin, int64_t end) noexcept nogil:
    """Return the most keys of a word and of a value, and the most words, of a run of values."""
    cdef Largest largest
    cdef int64_t value, position, word, size, total
    largest.keys_of_word = largest.keys = largest.words = 0
    for value in range(begin, end):
        total = 0
        for position in range(values.offsets[value], values.offsets[value + 1]):
            word = values.members[position]
            size = 2 * (values.starts[word + 1] - values.starts[word]) + 1
            largest.keys_of_word = max(largest.keys_of_word, size)
            total += size
        largest.keys = max(largest.keys, total)
        largest.words = max(largest.words, values.offsets[value + 1] - values.offsets[value])
    return largest


cdef int64_t longest_word(const int64_t[::1] starts) noexcept nogil:
    """Return the bytes of the longest word."""
    cdef int64_t longest = 0, word
    for word in range(starts.shape[0] - 1):
        longest = max(longest, starts[word + 1] - starts[word])
    return longest


def count_squares(const uint8_t[::1] text, const int64_t[::1] starts, int64_t[::1] squares):
    """Compute the dot product of each word with itself, int64."""
    cdef int64_t word, n_keys, total, first, end
    cdef vector[int64_t] keys
    cdef const uint8_t* letters
    with nogil:
        letters = begin_of(text)
        keys.resize(2 * longest_word(starts) + 1)
        for word in range(starts.shape[0] - 1):
            n_keys = write_keys(letters, starts[word], starts[word + 1], keys.data())
            sort(keys.begin(), keys.begin() + n_keys)
            total = first = 0
            while first < n_keys:
                end = first + 1
                while end < n_keys and keys[end] >> BITS_OF_BLOCKS == keys[first] >> BITS_OF_BLOCKS:
                    end += 1
                total += squares_of_run(keys.data() + first, end - first)
                first = end
            squares[word] = total


cdef int64_t squares_of_run(const int64_t* keys, int64_t n_keys) noexcept nogil:
    """Return what the occurrences of one pair add to the dot product of a word with itself."""
    cdef int64_t total = PAIR * n_keys * n_keys, number, block
    cdef int64_t[64] firsts
    cdef int64_t[64] lasts
    if n_keys == 1:
        return PAIR + 2
    memset(firsts, 0, sizeof(firsts))
    memset(lasts, 0, sizeof(lasts))
    for number in range(n_keys):
        firsts[(keys[number] & FIRST_BLOCK) >> BITS_OF_BLOCK] += 1
        lasts[keys[number] & LAST_BLOCK] += 1
    for block in range(LAST_BLOCK + 1):
        total += firsts[block] * firsts[block] + lasts[block] * lasts[block]
    return total


def count_keys(const uint8_t[::1] text, const int64_t[::1] starts, int64_t[::1] sizes):
    """Count the keys of each word, int64."""
    cdef int64_t word, start, stop
    cdef const uint8_t* letters
    with nogil:
        letters = begin_of(text)
        for word in range(starts.shape[0] - 1):
            stop = starts[word + 1]
            start = spelling_of(letters, starts[word], stop)
            if number_of(letters, start, stop) >= 0:
                sizes[word] = 1
            else:
                sizes[word] = 2 * count_letters(letters, start, stop) + 1


def write_all_keys(
    const uint8_t[::1] text,
    const int64_t[::1] starts,
    const int64_t[::1] offsets,
    int64_t[::1] keys,
):
    """Write the keys of each word from its offset on, int64."""
    cdef int64_t word
    cdef const uint8_t* letters
    with nogil:
        letters = begin_of(text)
        for word in range(starts.shape[0] - 1):
            write_keys(letters, starts[word], starts[word + 1], &keys[offsets[word]])


cdef int64_t slots_for(int64_t n_keys) noexcept nogil:
    """Return the number of slots of a table for so many keys, a power of two."""
    cdef int64_t slots = 16
    while slots < 2 * n_keys:
        slots *= 2
    return slots


cdef inline int64_t slot_of(
    int64_t name, const int64_t* names, const int32_t* heads, int64_t n_slots
) noexcept nogil:
    """Return the slot of a pair, or the empty one where it would go."""
    cdef int64_t mask = n_slots - 1
    cdef int64_t slot = <int64_t>((<uint64_t>name * <uint64_t>0x9E3779B97F4A7C15) >> 40) & mask
    while heads[slot] >= 0 and names[slot] != name:
        slot = (slot + 1) & mask
    return slot


cdef void make_table(int64_t longest, int64_t room, Table& table) noexcept nogil:
    """Make an empty table, for `room` keys of words with at most `longest` each."""
    cdef int64_t n_slots = slots_for(room)
    table.keys.resize(longest)
    table.pairs.resize(n_slots)
    table.heads.assign(n_slots, -1)
    table.chain.reserve(room)
    table.filled.reserve(room)


cdef void add_words(
    Values values, const int32_t* words, int64_t n_words, Table& table
) noexcept nogil:
    """Add the keys of some words to an empty table; their owners are their positions."""
    cdef const uint8_t* text = begin_of(values.text)
    cdef int64_t owner, word, position, name, blocks, slot, n_slots = table.pairs.size()
    cdef int32_t head, number
    cdef Entry entry
    for owner in range(n_words):
        word = words[owner]
        for position in range(
            write_keys(text, values.starts[word], values.starts[word + 1], table.keys.data())
        ):
            name = table.keys[position] >> BITS_OF_BLOCKS
            blocks = table.keys[position] & BLOCKS
            slot = slot_of(name, table.pairs.data(), table.heads.data(), n_slots)
            head = number = table.heads[slot]
            if head < 0:
                table.pairs[slot] = name
                table.filled.push_back(<int32_t>slot)
            while (
                number >= 0
                and table.chain[number].owner == owner
                and table.chain[number].blocks != blocks
            ):
                number = table.chain[number].before
            if number >= 0 and table.chain[number].owner == owner:
                table.chain[number].count += 1
                continue
            entry.owner, entry.blocks, entry.count = <int32_t>owner, <int32_t>blocks, 1
            entry.before = head
            table.heads[slot] = <int32_t>table.chain.size()
            table.chain.push_back(entry)


cdef void clear_table(Table& table) noexcept nogil:
    cdef int64_t position, n_filled = table.filled.size()
    for position in range(n_filled):
        table.heads[table.filled[position]] = -1
    table.chain.clear()
    table.filled.clear()


cdef void count_common(
    Values values, int64_t word, Table& table, int64_t n_owners, int64_t* counts
) noexcept nogil:
    """Compute the dot products C of a word with a table's owners, int64 (owners,)."""
    cdef int64_t* keys = table.keys.data()
    cdef const int64_t* pairs = table.pairs.data()
    cdef const int32_t* heads = table.heads.data()
    cdef const Entry* chain = table.chain.data()
    cdef int64_t position, blocks, n_slots = table.pairs.size()
    cdef int32_t number
    memset(counts, 0, n_owners * sizeof(int64_t))
    for position in range(
        write_keys(begin_of(values.text), values.starts[word], values.starts[word + 1], keys)
    ):
        blocks = keys[position] & BLOCKS
        number = heads[slot_of(keys[position] >> BITS_OF_BLOCKS, pairs, heads, n_slots)]
        while number >= 0:
            counts[chain[number].owner] += (
                chain[number].count * common_of(blocks, chain[number].blocks)
            )
            number = chain[number].before


cdef inline double similarity(
    int64_t count, int64_t square, int64_t other, double letters
) noexcept nogil:
    """Return s of two words that are not the same: float64, in [0, letters]."""
    return letters * (<double>count / sqrt(<double>square * <double>other))


cdef inline int compare_text(
    const uint8_t* text, int64_t size, const uint8_t* other, int64_t room
) noexcept nogil:
    """Return -1, 0 or 1 as a text comes before another by its bytes, is the same, or after it."""
    cdef int64_t position
    for position in range(min(size, room)):
        if text[position] != other[position]:
            return -1 if text[position] < other[position] else 1
    return (size > room) - (size < room)


def find_words(
    const uint8_t[::1] text,
    const int64_t[::1] starts,
    const uint8_t[::1] other,
    const int64_t[::1] other_starts,
    int64_t[::1] positions,
):
    """Find words among others, which are in the order of their bytes; -1 for what is not there."""
    cdef int64_t word, low, high, middle
    cdef int order
    cdef const uint8_t* letters
    cdef const uint8_t* other_letters
    with nogil:
        letters, other_letters = begin_of(text), begin_of(other)
        for word in range(starts.shape[0] - 1):
            low, high = 0, other_starts.shape[0] - 1
            positions[word] = -1
            while low < high:
                middle = (low + high) // 2
                order = compare_text(
                    letters + starts[word],
                    starts[word + 1] - starts[word],
                    other_letters + other_starts[middle],
                    other_starts[middle + 1] - other_starts[middle],
                )
                if order == 0:
                    positions[word] = middle
                    break
                if order < 0:
                    high = middle
                else:
                    low = middle + 1


def words_ascend(const uint8_t[::1] text, const int64_t[::1] starts):
    """Return whether words are in the order of their bytes, each once."""
    cdef int64_t word
    cdef const uint8_t* letters
    cdef bint ascending = True
    with nogil:
        letters = begin_of(text)
        for word in range(starts.shape[0] - 2):
            ascending = compare_text(
                letters + starts[word],
                starts[word + 1] - starts[word],
                letters + starts[word + 1],
                starts[word + 2] - starts[word + 1],
            ) < 0
            if not ascending:
                break
    return ascending


def put_in_order(
    const int64_t[::1] starts,
    const int32_t[::1] rows,
    const int64_t[::1] offsets,
    int32_t[::1] members,
):
    """Write lists that begin here and there in `rows` one after the other, each ascending."""
    cdef int64_t number, position, size
    cdef int32_t* some
    cdef bint ascending
    with nogil:
        for number in range(starts.shape[0]):
            size = offsets[number + 1] - offsets[number]
            if size <= 0:
                continue
            some, ascending = &members[offsets[number]], True
            memcpy(some, &rows[starts[number]], size * sizeof(int32_t))
            for position in range(1, size):
                ascending &= some[position - 1] < some[position]
            if not ascending:
                sort(some, some + size)
