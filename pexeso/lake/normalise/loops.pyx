"""The marks of normalised values, found in one pass over their bytes.

`pexeso.lake.normalise.distinctions` says what each kind of mark is for. Characters beyond ASCII
belong to words and are neither digits nor signs here; whatever needs to know more of them is passed
in.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, strlen
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
    TWO_BYTES = 0xC2  # from here on a byte begins a letter of Cyrillic, Greek or the like
    SHORTEST_NEGATED = 7
    MOST_TIMES = 4  # that a value says all its words
    NUMBER_WORDS = 12
    ROMAN_ENDS = 5
    LETTER_ENDS = 3  # the first of these, which are no sizes of clothes
    WORDS_BETWEEN = 5

cpdef enum:
    NUMBER = 1
    SEQUENCE = 2
    PLACE = 3
    LETTER = 4
    TIMES = 5
    RUN = 6
    PART = 7
    FIRST_OPPOSITE = 8
    SIGN = 96  # from here on a mark that one value has tells it from one that lacks it
    REPEATED_WORD = 97
    REPEATED_VALUE = 98
    NEGATION = 99
    DEPUTY = 100
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


cdef int64_t find_text(Texts texts, const uint8_t* text, int64_t size) noexcept nogil:
    """Return the row of a text, or -1."""
    cdef uint64_t hashed = hash_of(text, size)
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


cdef Piece next_number(Piece* word) noexcept nogil:
    """Return the next number of a word, and move the word behind it; of no size at its end.

    A dot is part of it where a digit follows. Zeros in front, and at the end of a fraction, are
    left out.
    """
    cdef Piece number
    cdef int64_t position, dot
    number.text, number.size = word.text, 0
    while word.size > 0 and number.size == 0:
        position = 0
        while position < word.size and (
            is_digit(word.text[position])
            or (
                word.text[position] == DOT
                and position + 1 < word.size
                and is_digit(word.text[position + 1])
            )
        ):
            position += 1
        if position == 0:
            # What is no number: of a dot the letter behind it as well.
            position = 2 if word.text[0] == DOT and word.size > 1 else 1
            word.text, word.size = word.text + position, word.size - position
            continue
        number.text, number.size = word.text, position
        word.text, word.size = word.text + position, word.size - position
        while number.size > 1 and number.text[0] == 48 and is_digit(number.text[1]):
            number.text, number.size = number.text + 1, number.size - 1
        dot = number.size - 1
        while dot >= 0 and number.text[dot] != DOT:
            dot -= 1
        if dot >= 0:
            while number.text[number.size - 1] == 48:
                number.size -= 1
            if number.text[number.size - 1] == DOT:
                number.size -= 1
    return number


cdef inline bint is_number_alone(Piece word) noexcept nogil:
    """Return whether a word has nothing but digits and dots, and perhaps a minus before them."""
    cdef int64_t position, first = 1 if word.size > 0 and word.text[0] == 45 else 0
    for position in range(first, word.size):
        if not is_digit(word.text[position]) and word.text[position] != DOT:
            return False
    return word.size > first


cdef void add_numbers(vector[Piece]& words, vector[int64_t]& marks) noexcept nogil:
    """Add the numbers of a value, as often as there are, and runs of numbers in their order.

    "Room 1a, floor 1" is not "Room 1a, floor 2", and "2 1" or "2 to 1" not "1 2".
    """
    cdef int64_t n_words = words.size(), place, n_run = 0, seen, times, n_marks
    cdef int64_t first = marks.size()
    cdef uint64_t last, total = 0, power = MULTIPLIER
    cdef Piece word, number
    cdef bint is_alone
    if n_words > MOST_WORDS_WITH_NUMBER:
        return
    for place in range(n_words):
        if 0 < n_run and place < n_words - 1 and is_number_alone(words[place + 1]):
            word = replaced(words[place], BETWEEN, DIGITS, WORDS_BETWEEN)
            if word.text != words[place].text:
                continue
        word, last = replaced(words[place], WORDS, DIGITS, NUMBER_WORDS), 0
        is_alone = is_number_alone(word)
        while True:
            number = next_number(&word)
            if number.size == 0:
                break
            last, times, n_marks = hash_of(number.text, number.size), 0, marks.size()
            if n_words <= MOST_WORDS_WITH_TWICE:
                for seen in range(max(first, n_marks - MOST_NUMBERS), n_marks):
                    times += marks[seen] == mark_of(NUMBER, mixed(last + times) if times else last)
            marks.push_back(mark_of(NUMBER, mixed(last + times) if times else last))
        if is_alone:
            total, power, n_run = total + last * power, power * MULTIPLIER, n_run + 1
        if n_run > 1 and (not is_alone or place == n_words - 1):
            marks.push_back(mark_of(SEQUENCE, mixed(total)))
        if not is_alone:
            total, power, n_run = 0, MULTIPLIER, 0
    if n_words > 1:
        number = replaced(words[n_words - 1], NUMERALS, VALUES, ROMAN_ENDS)
        if number.text != words[n_words - 1].text:
            marks.push_back(mark_of(NUMBER, hash_of(number.text, number.size)))


cdef void add_single_letters(vector[Piece]& words, vector[int64_t]& marks) noexcept nogil:
    """Add letters that are a word, and one with a number at the end: "gate a" and "gate 12b".

    In the middle a vowel is a word of some languages, and a letter with a number often a unit.
    """
    cdef int64_t n_words = words.size(), place, size
    cdef const uint8_t* text
    cdef bint is_last
    if not 1 < n_words <= MOST_WORDS_WITH_NUMBER:
        return
    for place in range(n_words):
        text, size, is_last = words[place].text, words[place].size, place == n_words - 1
        if size == 1 and (place == 0 or is_last or not is_vowel(text[0])):
            add_letter(text[0], marks)
        elif size == 2 and is_last and text[0] >= TWO_BYTES:
            marks.push_back(mark_of(LETTER, hash_of(text, 2)))
        elif size > 1 and is_last and are_digits(text, size - 1):
            add_letter(text[size - 1], marks)
        elif size > 1 and is_last and are_digits(text + 1, size - 1):
            add_letter(text[0], marks)


cdef inline bint is_negated(Piece word) noexcept nogil:
    """Return whether a word begins with "non", and is long enough for another to follow."""
    return (
        word.size >= SHORTEST_NEGATED
        and word.text[0] == 110 and word.text[1] == 111 and word.text[2] == 110
    )


cdef inline void add_letter(uint8_t letter, vector[int64_t]& marks) noexcept nogil:
    if 97 <= letter <= 122:
        marks.push_back(mark_of(LETTER, hash_of(&letter, 1)))


cdef void add_repeats(vector[Piece]& words, vector[int64_t]& marks) noexcept nogil:
    """Add the word that a short value begins with twice, and that it says all its words again.

    In long values a word twice is a slip. How often a value says one word, or one letter, tells it
    only from another that says nothing else: "AA-" is not "A-", and "AA" near "AA batteries".
    """
    cdef int64_t n_words = words.size(), times, place, size, last
    cdef const uint8_t* text = words[0].text
    cdef bint repeats
    if 1 < n_words <= MOST_WORDS_WITH_REPEAT and are_same(words[0], words[1]):
        marks.push_back(mark_of(REPEATED_WORD, hash_of(text, words[0].size)))
    if 3 <= n_words <= MOST_WORDS_WITH_REPEAT + 2 and is_word(words[1], b"and"):
        if are_same(words[0], words[2]):
            marks.push_back(mark_of(REPEATED_WORD, hash_of(text, words[0].size)))
    repeats = n_words > 1
    for place in range(1, n_words):
        repeats = repeats and are_same(words[place], words[0])
    if repeats:
        marks.push_back(mark_of(TIMES, mixed(n_words)))
    if n_words == 1 and words[0].size > 0 and not is_digit(text[0]):
        size, last = 1, words[0].size
        while last > 1 and (is_digit(text[last - 1]) or text[last - 1] in b"+-#"):
            last -= 1
        while size < last and (text[size] & 0xC0) == 0x80:
            size += 1
        for place in range(size, last):
            repeats = text[place] == text[place - size]
            if not repeats:
                break
        if repeats or last == size:
            marks.push_back(mark_of(RUN, mixed(last // size)))
    for times in range(2, MOST_TIMES + 1):
        if n_words <= times or n_words % times != 0:
            continue
        repeats, place = True, n_words // times
        while repeats and place < n_words:
            repeats = are_same(words[place], words[place % (n_words // times)])
            place += 1
        if repeats:
            marks.push_back(mark_of(REPEATED_VALUE, mixed(times)))


cdef void add_place(
    vector[Piece]& words,
    const uint8_t* end,
    Texts names,
    const int64_t[::1] places,
    const int64_t[::1] parts,
    int64_t most_words,
    vector[int64_t]& marks,
) noexcept nogil:
    """Add the longest name of a place at the end of a value; "UK and Ireland" is more than one.

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
        return


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


def find_marks(
    const uint8_t[::1] text,
    const int64_t[::1] starts,
    const uint8_t[::1] are_short,
    const int64_t[::1] more_owners,
    const int64_t[::1] more_marks,
    Texts names not None,
    const int64_t[::1] opposites,
    const int64_t[::1] places,
    const int64_t[::1] parts,
    int64_t most_words,
    Texts cities not None,
    const int64_t[::1] letters_of_cities,
    bint with_numbers,
    bint with_repeats,
    bint with_opposites,
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
        is another one.
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
    cdef int64_t value, position, row, more = 0, before, first, n_members
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
            forms[value] = <int64_t>hash_of(begin, size)
            words.clear()
            marks.clear()
            first = 0
            for position in range(size + 1):
                if position == size or begin[position] == SPACE:
                    word.text, word.size = begin + first, position - first
                    words.push_back(word)
                    first = position + 1
            row = find_text(cities, begin, size)
            letters[value] = (
                letters_of_cities[row] if row >= 0 else <int64_t>hash_of_letters(words)
            )
            if with_numbers:
                add_numbers(words, marks)
                add_single_letters(words, marks)
            if with_repeats:
                add_repeats(words, marks)
            if with_opposites:
                for word in words:
                    row = find_text(names, word.text, word.size)
                    if row >= 0 and opposites[row] != 0:
                        marks.push_back(opposites[row])
                    elif is_negated(word):
                        marks.push_back(negation)
            if places.shape[0]:
                add_place(words, begin + size, names, places, parts, most_words, marks)
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
