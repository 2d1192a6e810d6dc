"""The marks of normalised values, found in one pass over their bytes.

`pexeso.lake.normalise.distinctions` says what each kind of mark is for. Characters beyond ASCII
belong to words and are neither digits nor signs here; whatever needs to know more of them is passed
in.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcmp, strlen
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

import numpy as np

cdef enum:
    BITS_OF_MEMBER = 56
    SPACE = 32
    DOT = 46
    SHORTEST = 5  # letters of words of which one letter may be mistyped
    LONGEST = 6
    MOST_WORDS_WITH_NUMBER = 8  # numbers of longer values describe more often than they name
    MOST_WORDS_WITH_TWICE = 5  # a number: in longer values that is a slip
    MOST_NUMBERS = 64  # before a number that are held against it
    MOST_WORDS_WITH_REPEAT = 3
    MOST_WORDS_OF_CODE = 3
    TWO_BYTES = 0xC2  # from here on a byte begins a letter of Cyrillic, Greek or the like
    SHORTEST_NEGATED = 7
    MOST_TIMES = 4  # that a value says all its words
    NUMBER_WORDS = 12
    ROMAN_ENDS = 5
    LETTER_ENDS = 3  # the first of these, which are no sizes of clothes
    WORDS_BETWEEN = 5
    NUMBERED_WORDS = 25

cpdef enum:
    NUMBER = 1
    SEQUENCE = 2
    PLACE = 3
    LETTER = 4
    TIMES = 5
    RUN = 6
    PART = 7
    HAN = 8
    CODE = 9
    FIRST_OPPOSITE = 10
    AT_START = 1  # of a value, and at its end: where a word makes another thing
    AT_END = 2
    STARTS_PHRASE = 4
    SIGN = 114  # from here on a mark that one value has tells it from one that lacks it
    REPEATED_WORD = 115
    REPEATED_VALUE = 116
    NEGATION = 117
    DEPUTY = 118
    FEMALE = 119
    EDGE = 120  # tells a value from one without its member in any other group
    LETTERS = 127

cdef uint64_t MULTIPLIER = 0x9E3779B97F4A7C15

cdef const char** WORDS = [
    b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight", b"nine", b"ten",
    b"eleven", b"twelve",
]
cdef const char** DIGITS = [
    b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"10", b"11", b"12",
]
cdef const char** NUMERALS = [b"i", b"v", b"x", b"xl", b"l"]  # as the last of several words
cdef const char** VALUES = [b"1", b"5", b"10", b"40", b"50"]
# Behind these a zero at the end counts, a vowel is a letter, and a hyphen before a number is none.
cdef const char** NUMBERED = [
    b"version", b"release", b"section", b"table", b"figure", b"chapter", b"article", b"item",
    b"ios", b"macos", b"python", b"class", b"series", b"type", b"group", b"part", b"block",
    b"option", b"vitamin", b"hepatitis", b"tier", b"schedule", b"category", b"line", b"zone",
]
cdef const char** BETWEEN = [b"to", b"of", b"vs", b"v", b"zu"]  # two numbers of which one is first


cdef struct Piece:
    const uint8_t* text
    int64_t size


cdef class Texts:
    """Texts that are found by their hashes, see `embed.words.hash_strings`.

    Attributes
    ----------
    hashes : numpy.ndarray of shape (n,), uint64
        Ascending.
    rows : numpy.ndarray of shape (n,), int64
        The text of each hash.
    text, starts : numpy.ndarray, uint8 and int64
        Text i is ``text[starts[i]:starts[i + 1]]``.
    """

    cdef const uint64_t[::1] hashes
    cdef const int64_t[::1] rows
    cdef const uint8_t[::1] text
    cdef const int64_t[::1] starts

    def __init__(
        self,
        const uint64_t[::1] hashes,
        const int64_t[::1] rows,
        const uint8_t[::1] text,
        const int64_t[::1] starts,
    ):
        self.hashes, self.rows, self.text, self.starts = hashes, rows, text, starts


cdef inline uint64_t mixed(uint64_t number) noexcept nogil:
    number = (number ^ (number >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    number = (number ^ (number >> 27)) * <uint64_t>0x94D049BB133111EB
    return number ^ (number >> 31)


cdef uint64_t hash_without(
    const uint8_t* text, int64_t size, int64_t first, int64_t after
) noexcept nogil:
    """Hash a text without the bytes from `first` to `after`, as `embed.words.hash_strings` does."""
    cdef uint64_t total = 0, power = MULTIPLIER
    cdef int64_t position
    for position in range(size):
        if first <= position < after:
            continue
        total += (<uint64_t>text[position] + 1) * power
        power *= MULTIPLIER
    return mixed(total ^ <uint64_t>(size - (after - first)))


cdef inline uint64_t hash_of(const uint8_t* text, int64_t size) noexcept nogil:
    return hash_without(text, size, size, size)


cdef inline int64_t mark_of(int64_t group, uint64_t hashed) noexcept nogil:
    return group << BITS_OF_MEMBER | <int64_t>(hashed >> (64 - BITS_OF_MEMBER))


cdef inline int64_t in_group(int64_t group, int64_t mark) noexcept nogil:
    """Return the mark of the same member in another group."""
    return group << BITS_OF_MEMBER | (mark & ((<int64_t>1 << BITS_OF_MEMBER) - 1))


cdef inline int64_t find_text(Texts texts, const uint8_t* text, int64_t size) noexcept nogil:
    """Return the row of a text, or -1."""
    return find_hashed(texts, hash_of(text, size), text, size)


cdef int64_t find_hashed(
    Texts texts, uint64_t hashed, const uint8_t* text, int64_t size
) noexcept nogil:
    cdef int64_t low = 0, high = texts.hashes.shape[0], middle, row
    while low < high:
        middle = (low + high) // 2
        if texts.hashes[middle] < hashed:
            low = middle + 1
        else:
            high = middle
    while low < texts.hashes.shape[0] and texts.hashes[low] == hashed:
        row = texts.rows[low]
        if texts.starts[row + 1] - texts.starts[row] == size and (
            size == 0 or memcmp(&texts.text[texts.starts[row]], text, size) == 0
        ):
            return row
        low += 1
    return -1


cdef inline bint is_digit(uint8_t byte) noexcept nogil:
    return 48 <= byte <= 57


cdef inline bint are_digits(const uint8_t* text, int64_t size) noexcept nogil:
    cdef int64_t position
    for position in range(size):
        if not is_digit(text[position]):
            return False
    return True


cdef inline bint has_digit(Piece word) noexcept nogil:
    cdef int64_t position
    for position in range(word.size):
        if is_digit(word.text[position]):
            return True
    return False


cdef inline bint is_vowel(uint8_t byte) noexcept nogil:
    return byte == 97 or byte == 101 or byte == 105 or byte == 111 or byte == 117 or byte == 121


cdef inline bint is_word(Piece word, const char* text) noexcept nogil:
    return word.size == <int64_t>strlen(text) and memcmp(word.text, text, word.size) == 0


cdef inline bint are_same(Piece word, Piece other) noexcept nogil:
    return word.size == other.size and memcmp(word.text, other.text, word.size) == 0


cdef Piece replaced(
    Piece word, const char** texts, const char** others, int64_t n_texts
) noexcept nogil:
    """Return what a word of a table stands for; any other word, as it is."""
    cdef int64_t number
    for number in range(n_texts):
        if is_word(word, texts[number]):
            word.text, word.size = <const uint8_t*>others[number], strlen(others[number])
            break
    return word


cdef uint64_t hash_of_words(vector[Piece]& words) noexcept nogil:
    """Hash words with single spaces between them."""
    cdef uint64_t total = 0, power = MULTIPLIER
    cdef int64_t n_words = words.size(), place, position, n_bytes = 0
    for place in range(n_words):
        if place > 0:
            total, power, n_bytes = total + (SPACE + 1) * power, power * MULTIPLIER, n_bytes + 1
        for position in range(words[place].size):
            total += (<uint64_t>words[place].text[position] + 1) * power
            power *= MULTIPLIER
        n_bytes += words[place].size
    return mixed(total ^ <uint64_t>n_bytes)


cdef bint is_currency(Piece word) noexcept nogil:
    """Return whether a word is a sign of a currency: of these none is a part of the form."""
    return (
        is_word(word, b"$") or is_word(word, b"\xe2\x82\xac") or is_word(word, b"\xc2\xa3")
        or is_word(word, b"\xc2\xa5") or is_word(word, b"\xe2\x82\xb9")
    )


cdef inline bint is_numbered(Piece word) noexcept nogil:
    return replaced(word, NUMBERED, NUMBERED, NUMBERED_WORDS).text != word.text


cdef uint64_t hash_of_letters(vector[Piece]& words) noexcept nogil:
    """Hash words without the spaces between them, numbers as digits: "room 007", "chapter two"."""
    cdef uint64_t total = 0, power = MULTIPLIER
    cdef int64_t n_words = words.size(), place, position, n_letters = 0
    cdef uint8_t byte
    cdef bint is_leading
    cdef Piece word
    for place in range(n_words):
        word = replaced(words[place], WORDS, DIGITS, NUMBER_WORDS)
        if 0 < place == n_words - 1:
            word = replaced(word, NUMERALS, VALUES, LETTER_ENDS)
        is_leading = True
        for position in range(word.size):
            byte = word.text[position]
            if byte == 48 and is_leading and position + 1 < word.size:
                if is_digit(word.text[position + 1]):
                    continue
            is_leading = not is_digit(byte) and byte != DOT
            total += (<uint64_t>byte + 1) * power
            power *= MULTIPLIER
            n_letters += 1
    return mixed(total ^ <uint64_t>n_letters)


include "numbers.pxi"


cdef bint is_place_twice(
    vector[Piece]& words, Texts names, const int64_t[::1] places
) noexcept nogil:
    """Return whether a value is a place in another of its name: New York, New York."""
    cdef int64_t half = words.size() // 2, place, row
    if half == 0 or 2 * half != <int64_t>words.size():
        return False
    for place in range(half):
        if not are_same(words[place], words[half + place]):
            return False
    row = find_text(
        names, words[0].text, words[half - 1].text + words[half - 1].size - words[0].text
    )
    return row >= 0 and places[row] != 0


cdef bint add_place(
    vector[Piece]& words,
    const uint8_t* end,
    Texts names,
    const int64_t[::1] places,
    const int64_t[::1] parts,
    int64_t most_words,
    bint with_places,
    vector[int64_t]& marks,
) noexcept nogil:
    """Add the longest name of a place at the end of a value, and return whether there is one.

    "UK and Ireland" is more than one.

    A value that is that name alone, or behind "of", is another with words such as directions
    before the name: Inner Mongolia. Behind other words such a one may end the name of a town: Salt
    Lake, Utah.
    """
    cdef int64_t n_words = words.size(), n_last, row, before, rest
    cdef uint64_t whole
    cdef const uint8_t* begin
    cdef bint is_of
    cdef Piece word
    for n_last in range(min(most_words, n_words), 0, -1):
        begin = words[n_words - n_last].text
        row = find_text(names, begin, end - begin)
        if row < 0 or places[row] == 0:
            continue
        if not with_places:
            return True
        rest, whole = n_words - n_last, places[row]
        if rest == 0 or not is_word(words[rest - 1], b"and"):
            marks.push_back(places[row])
        while rest > 0:
            is_of = rest > 1 and is_word(words[rest - 1], b"of")  # North of Italy
            word = words[rest - 1 - is_of]
            before = find_text(names, word.text, word.size)
            if before < 0 or parts[before] == 0:
                break
            rest, whole = rest - 1 - is_of, mixed(whole ^ <uint64_t>parts[before])
        if rest == 0 or is_word(words[rest - 1], b"of"):
            marks.push_back(mark_of(PART, mixed(whole)))
        return True
    return False


cdef void add_letters(
    const uint8_t* text, int64_t size, vector[int64_t]& marks
) noexcept nogil:
    """Add a short word, whole and without each letter but the first, which is seldom mistyped."""
    cdef int64_t first = 0, after
    marks.push_back(mark_of(LETTERS, hash_of(text, size)))
    while True:
        first += 1
        while first < size and (text[first] & 0xC0) == 0x80:
            first += 1
        if first == size:
            break
        after = first + 1
        while after < size and (text[after] & 0xC0) == 0x80:
            after += 1
        marks.push_back(mark_of(LETTERS, hash_without(text, size, first, after)))


cdef inline bint is_short(const uint8_t* text, int64_t size) noexcept nogil:
    """Return whether a value is one word of five or six of the letters a to z, of either case."""
    cdef int64_t position
    if not SHORTEST <= size <= LONGEST:
        return False
    for position in range(size):
        if not 97 <= text[position] | 32 <= 122:
            return False
    return True


cdef void add_opposites(
    vector[Piece]& words,
    Texts names,
    const int64_t[::1] opposites,
    const uint8_t[::1] edges,
    int64_t negation,
    bint has_place,
    vector[int64_t]& marks,
) noexcept nogil:
    """Add words that have opposites, and phrases of two: "north west" is "northwest".

    Some at the start, where "the" does not count, or at the end make another thing: Haute-Savoie.
    In addresses, which start with a number, they are left out as often; and where a place that is
    known ends the value, that decides.
    """
    cdef int64_t n_words = words.size(), place = 0, size, row, longer
    cdef int64_t first = 1 if n_words > 0 and is_word(words[0], b"the") else 0
    cdef bint has_edges = not (
        has_place or (n_words > 0 and words[0].size > 0 and is_digit(words[0].text[0]))
    )
    cdef Piece word
    while place < n_words:
        word, size = words[place], 1
        row = find_text(names, word.text, word.size)
        if row >= 0 and edges[row] & STARTS_PHRASE and place + 1 < n_words:
            longer = words[place + 1].text + words[place + 1].size - word.text
            longer = find_text(names, word.text, longer)
            if longer >= 0 and opposites[longer] != 0:
                row, size = longer, 2
        if row >= 0 and opposites[row] != 0:
            marks.push_back(opposites[row])
            if has_edges and n_words > size and (
                (edges[row] & AT_START and place == first)
                or (edges[row] & AT_END and place + size == n_words)
            ):
                marks.push_back(in_group(EDGE, opposites[row]))
        elif is_negated(word):
            marks.push_back(negation)
        place += size


def find_marks(
    const uint8_t[::1] text,
    const int64_t[::1] starts,
    const uint8_t[::1] are_short,
    const int64_t[::1] more_owners,
    const int64_t[::1] more_marks,
    Texts names not None,
    const int64_t[::1] opposites,
    const uint8_t[::1] edges,
    const int64_t[::1] places,
    const int64_t[::1] parts,
    int64_t most_words,
    Texts cities not None,
    const int64_t[::1] letters_of_cities,
    bint with_numbers,
    bint with_repeats,
    bint with_opposites,
    bint with_places,
    int64_t negation,
    int64_t[::1] forms,
    int64_t[::1] letters,
    int64_t[::1] sizes,
):
    """Find the marks of n values.

    Parameters
    ----------
    text, starts : numpy.ndarray
        Value i is ``text[starts[i]:starts[i + 1]]``.
    are_short : numpy.ndarray of shape (n,), bool
        Which are one short word, of other letters than a to z.
    more_owners, more_marks : numpy.ndarray, int64
        Marks that are known of some values, by value.
    names : Texts
        Words that have opposites, and names of places.
    opposites, places, parts : numpy.ndarray, int64
        The marks of each name, 0 where it has none; the last of words by which a place behind them
        is another one, and of other things whose names begin with that of a place: Oklahoma City.
    edges : numpy.ndarray, uint8
        Where each makes another thing, and whether two words that are a name start with it.
    most_words : int
        Of a name of a place.
    cities : Texts
        Names of large cities in other languages.
    letters_of_cities : numpy.ndarray, int64
        The hash of the English name of each, without spaces.
    negation : int
        The mark of a word that begins with "non".
    forms, letters, sizes : numpy.ndarray of shape (n,), int64
        Written: hashes of values, whole and without spaces, and how many marks each has.

    Returns
    -------
    numpy.ndarray, int64
        The marks of each value, ascending, each once.
    """
    cdef int64_t value, position, row, whole, more = 0, before, first, n_members
    cdef uint64_t hashed
    cdef bint has_place, has_signs
    cdef const uint8_t* begin
    cdef int64_t size
    cdef Piece word
    cdef vector[Piece] words
    cdef vector[int64_t] marks, members
    cdef int64_t[::1] written
    with nogil:
        for value in range(forms.shape[0]):
            size = starts[value + 1] - starts[value]
            begin = &text[starts[value]] if size else NULL
            words.clear()
            marks.clear()
            first, has_signs = 0, False
            for position in range(size + 1):
                if position == size or begin[position] == SPACE:
                    word.text, word.size = begin + first, position - first
                    if word.size == size or word.size > 3 or not is_currency(word):
                        words.push_back(word)
                        first = position + 1
                        continue
                    has_signs = True
                    if with_opposites:
                        row = find_text(names, word.text, word.size)
                        if row >= 0 and opposites[row] != 0:
                            marks.push_back(opposites[row])
                    first = position + 1
            if words.size() == 0:  # of "$ €"
                word.text, word.size = begin, size
                words.push_back(word)
            hashed = hash_of(begin, size)
            forms[value] = <int64_t>(hash_of_words(words) if has_signs else hashed)
            whole = find_hashed(names, hashed, begin, size)
            row = find_hashed(cities, hashed, begin, size)
            letters[value] = (
                letters_of_cities[row] if row >= 0 else <int64_t>hash_of_letters(words)
            )
            if with_numbers:
                add_numbers(words, marks)
                add_single_letters(words, marks)
                if row < 0:  # of a city there may be several names of four letters
                    add_code(words, names, opposites, marks)
                add_han(words, marks)
            if with_repeats and not is_place_twice(words, names, places):
                add_repeats(words, marks)
            if with_places and whole >= 0 and parts[whole] != 0 and words.size() > 1:
                marks.push_back(parts[whole])
            has_place = add_place(
                words, begin + size, names, places, parts, most_words, with_places, marks
            )  # fmt: skip
            if with_opposites:
                add_opposites(words, names, opposites, edges, negation, has_place, marks)
            if are_short[value] or is_short(begin, size):
                add_letters(begin, size, marks)
            while more < more_owners.shape[0] and more_owners[more] == value:
                marks.push_back(more_marks[more])
                more += 1
            sort(marks.begin(), marks.end())
            before = members.size()
            for position in range(<int64_t>marks.size()):
                if position == 0 or marks[position] != marks[position - 1]:
                    members.push_back(marks[position])
            sizes[value] = <int64_t>members.size() - before
    n_members = members.size()
    found = np.empty(n_members, np.int64)
    written = found
    for position in range(n_members):
        written[position] = members[position]
    return found
