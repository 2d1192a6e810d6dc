# Numbers, letters and repeats of a value, as marks; `loops.pyx` includes it.


cdef Piece next_number(Piece* word, bint is_version) noexcept nogil:
    """Return the next number of a word, and move the word behind it; of no size at its end.

    A dot is part of it where a digit follows. Zeros in front, and at the end of a fraction, are
    left out; of a version, 1.20, only those of a fraction that has no other digit.
    """
    cdef Piece number
    cdef int64_t position, dot, size
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
            size = number.size
            while number.text[number.size - 1] == 48:
                number.size -= 1
            if number.text[number.size - 1] == DOT:
                number.size -= 1
            elif is_version:
                number.size = size
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

    "Room 1a, floor 1" is not "Room 1a, floor 2", and "2 1" or "2 to 1" not "1 2". A small one at
    the end, but for the first, makes another thing of words: "Rocky 2" is not "Rocky".
    """
    cdef int64_t n_words = words.size(), place, n_run = 0, seen, times, n_marks
    cdef int64_t first = marks.size()
    cdef uint64_t last, total = 0, power = MULTIPLIER
    cdef Piece word, number
    cdef bint is_alone, is_version
    if n_words > MOST_WORDS_WITH_NUMBER:
        return
    for place in range(n_words):
        if 0 < n_run and place < n_words - 1 and is_number_alone(words[place + 1]):
            word = replaced(words[place], BETWEEN, DIGITS, WORDS_BETWEEN)
            if word.text != words[place].text:
                continue
        word, last = replaced(words[place], WORDS, DIGITS, NUMBER_WORDS), 0
        is_alone = is_number_alone(word)
        is_version = memchr(word.text, DOT, word.size) != NULL and (
            (word.text[0] == 118 and is_digit(word.text[1]))
            or (place > 0 and is_numbered(words[place - 1]))
        )
        while True:
            number = next_number(&word, is_version)
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
        word = words[n_words - 1]
        number = replaced(word, NUMERALS, VALUES, ROMAN_ENDS)
        if number.text != word.text:
            marks.push_back(mark_of(NUMBER, hash_of(number.text, number.size)))
        elif (
            1 <= word.size <= 2
            and are_digits(word.text, word.size)
            and not (is_word(word, b"1") or is_word(word, b"01"))
            and not has_digit(words[0])
            and not has_digit(words[n_words - 2])
            and marks.back() >> BITS_OF_MEMBER == NUMBER
        ):
            marks.push_back(in_group(EDGE, marks.back()))


cdef void add_single_letters(vector[Piece]& words, vector[int64_t]& marks) noexcept nogil:
    """Add letters that are a word, and those at the end of a number or code: "gate a", "cb500f".

    In the middle a vowel is a word of some languages, but not in "class a shares" or "an e class
    car", and a letter before a number often a unit. Of initials in the middle, as in "george hw
    bush", the first counts.
    """
    cdef int64_t n_words = words.size(), place, size, n_letters
    cdef const uint8_t* text
    cdef bint is_last, has_number = False
    if n_words > MOST_WORDS_WITH_NUMBER:
        return
    for place in range(n_words):
        has_number = has_number or has_digit(words[place])
    for place in range(n_words):
        text, size, is_last = words[place].text, words[place].size, place == n_words - 1
        n_letters = 0
        while n_letters < size and n_letters < 3 and 97 <= text[size - 1 - n_letters] <= 122:
            n_letters += 1
        if n_letters < size and 1 <= n_letters <= 2 and is_digit(text[size - 1 - n_letters]):
            if (
                n_words <= MOST_WORDS_OF_CODE
                or (is_last or n_words <= MOST_WORDS_WITH_TWICE)
                and are_digits(text, size - n_letters)
            ) and not is_ordinal_end(text + size - n_letters, n_letters):
                marks.push_back(mark_of(LETTER, hash_of(text + size - n_letters, n_letters)))
        elif n_words == 1:
            continue
        elif size == 1 and (
            place == 0 or is_last or not is_vowel(text[0])
            or is_numbered(words[place - 1]) or is_numbered(words[place + 1])
        ):
            add_letter(text[0], marks)
        elif size == 2 and is_last and text[0] >= TWO_BYTES:
            marks.push_back(mark_of(LETTER, hash_of(text, 2)))
        elif size == 2 == n_letters and 0 < place and not is_last and not has_number:
            if not is_vowel(text[0]) and not is_vowel(text[1]):
                add_letter(text[0], marks)
        elif size > 1 and is_last and are_digits(text + 1, size - 1):
            add_letter(text[0], marks)


cdef void add_code(
    vector[Piece]& words, Texts names, const int64_t[::1] opposites, vector[int64_t]& marks
) noexcept nogil:
    """Add the words without digits of a code, and of what is so short that a slip is another.

    That is a word of four letters, two or three of two, and of three beside one with a digit.
    Words that have opposites have others that mean the same.
    """
    cdef int64_t n_words = words.size(), place, position, row, longest = 0
    cdef bint is_numbered, has_number = False
    cdef Piece word
    if n_words > MOST_WORDS_OF_CODE:
        return
    for place in range(n_words):
        is_numbered = has_digit(words[place])
        has_number = has_number or is_numbered
        longest = max(longest, words[place].size - is_numbered)
    if longest > (4 if n_words == 1 else 3 if has_number else 2):
        return
    for word in words:
        if word.size < 2:
            continue
        for position in range(word.size):
            if not 97 <= word.text[position] <= 122:
                break
        else:
            row = find_text(names, word.text, word.size)
            if (row < 0 or opposites[row] == 0) and (
                n_words > 1 or replaced(word, WORDS, DIGITS, NUMBER_WORDS).text == word.text
            ):
                marks.push_back(mark_of(CODE, hash_of(word.text, word.size)))


cdef inline bint is_ordinal_end(const uint8_t* text, int64_t size) noexcept nogil:
    """Return whether letters are those behind a number in "1st", "2nd" or "1990s"."""
    cdef Piece word
    word.text, word.size = text, size
    return (
        is_word(word, b"s") or is_word(word, b"st") or is_word(word, b"nd")
        or is_word(word, b"rd") or is_word(word, b"th")
    )


cdef void add_han(vector[Piece]& words, vector[int64_t]& marks) noexcept nogil:
    """Add words of two Chinese characters: of names that differ in one, neither is a slip."""
    cdef int64_t place
    cdef const uint8_t* text
    for place in range(<int64_t>words.size()):
        text = words[place].text
        if words[place].size == 6 and is_han(text) and is_han(text + 3):
            marks.push_back(mark_of(HAN, hash_of(text, 6)))


cdef inline bint is_han(const uint8_t* text) noexcept nogil:
    """Return whether three bytes are a character of U+4E00 to U+9FFF."""
    return 0xE4 <= text[0] <= 0xE9 and (text[0] > 0xE4 or text[1] >= 0xB8)


cdef bint is_negated(Piece word) noexcept nogil:
    """Return whether a word begins with "non" or "un", and is long enough for another to follow.

    Of those with "uni", as in "university", these are "uniden", "unim" and "unin".
    """
    cdef const uint8_t* text = word.text
    if word.size < SHORTEST_NEGATED or has_digit(word) or text[1 if text[0] == 117 else 2] != 110:
        return False
    if text[0] == 110:
        return text[1] == 111
    return text[0] == 117 and not (
        (text[2] == 105 and text[3] not in b"mn" and memcmp(text, b"uniden", 6) != 0)
        or memcmp(text, b"under", 5) == 0
        or memcmp(text, b"unter", 5) == 0
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
    cdef Piece between
    cdef vector[Piece] both
    if n_words == 3 and are_same(words[0], words[2]) and is_number_alone(words[0]):
        between = replaced(words[1], BETWEEN, DIGITS, WORDS_BETWEEN)
        if between.text != words[1].text:  # "1 of 1" is "1/1"
            both.push_back(words[0])
            both.push_back(words[2])
            add_repeats(both, marks)
            return
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
