"""The arithmetic of embedding: each word and value is finished while it is in the cache.

Bits are fixed by what is written here. All is float64, rounded to float32 where that is said;
nothing is fused or taken in another order, but for the sum of squares, which is taken as NumPy
takes it (`sum_of_squares`).
"""

from libc.math cimport sqrt
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp
from libcpp.vector cimport vector

import numpy as np

VANISHED = 1e-6
"""Below this length, compared with the length of what was summed, a vector becomes zero: it is
rounding noise."""

LANES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).view(np.uint64)[:, 0]
"""For each byte its eight bits as eight bytes of one number, so that one addition counts eight."""

cdef double VANISHED_SHARE = VANISHED

cdef enum:
    FEW = 128  # squares that are summed without halving


cdef double squares_of_few(const double* numbers, int64_t size) noexcept nogil:
    """Sum the squares of up to `FEW` numbers: eight sums, which are added in pairs, then the rest."""
    cdef double total = 0.0, a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0
    cdef int64_t first = 0, position
    if size >= 8:
        first = size - size % 8
        for position in range(0, first, 8):
            a += numbers[position] * numbers[position]
            b += numbers[position + 1] * numbers[position + 1]
            c += numbers[position + 2] * numbers[position + 2]
            d += numbers[position + 3] * numbers[position + 3]
            e += numbers[position + 4] * numbers[position + 4]
            f += numbers[position + 5] * numbers[position + 5]
            g += numbers[position + 6] * numbers[position + 6]
            h += numbers[position + 7] * numbers[position + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for position in range(first, size):
        total += numbers[position] * numbers[position]
    return total


cdef double sum_of_squares(const double* numbers, int64_t size) noexcept nogil:
    """Sum squares as `numpy.add.reduce` does: the sum of the first half and that of the second."""
    cdef int64_t half
    cdef double left
    if size <= FEW:
        return squares_of_few(numbers, size)
    half = size // 2
    half -= half % 8
    left = sum_of_squares(numbers, half)
    return left + sum_of_squares(numbers + half, size - half)


cdef void shorten(double* vector_, int64_t size, double scale) noexcept nogil:
    """Bring a vector to length 1, or to zeros where it is the noise of sums of the given scale."""
    cdef int64_t position
    cdef double length = sqrt(sum_of_squares(vector_, size))
    if length <= VANISHED_SHARE * scale:
        for position in range(size):
            vector_[position] = 0.0
        return
    for position in range(size):
        vector_[position] /= length


def weighted_units(
    const float[:, ::1] means,
    const uint8_t[::1] known,
    const float[::1] centre,
    const float[::1] weights,
    double[:, ::1] units,
):
    """Take the centre away from the means of words, and bring them to the length of their weight.

    Parameters
    ----------
    known : numpy.ndarray of shape (u,), bool
        Words without a row get zeros.
    units : numpy.ndarray of shape (u, dimensions), float64
        Written.
    """
    cdef int64_t size = units.shape[1], word, position
    cdef double scale, weight
    cdef double* unit
    if not units.shape[0] or not size:
        return
    with nogil:
        for word in range(means.shape[0]):
            unit = &units[word, 0]
            if not known[word]:
                for position in range(size):
                    unit[position] = 0.0
                continue
            for position in range(size):
                unit[position] = means[word, position]
            scale = sqrt(sum_of_squares(unit, size))
            for position in range(size):
                unit[position] -= centre[position]
            shorten(unit, size, scale)
            weight = weights[word]
            for position in range(size):
                unit[position] *= weight


def sum_words(
    const double[:, ::1] units,
    const int64_t[::1] ids,
    const int64_t[::1] offsets,
    double smallest_weight,
    float[:, ::1] vectors,
):
    """Add up the words of each value in the order of their numbers, and bring the sum to length 1.

    Parameters
    ----------
    offsets : numpy.ndarray of shape (n + 1,), int64
        Value i has the words ``ids[offsets[i]:offsets[i + 1]]``; without any it gets zeros.
    vectors : numpy.ndarray of shape (n, dimensions), float32
        Written.
    """
    cdef int64_t size = units.shape[1], value, number, position
    cdef vector[double] room
    cdef double* total
    cdef const double* unit
    with nogil:
        room.resize(size)
        total = room.data()
        for value in range(vectors.shape[0]):
            for position in range(size):
                total[position] = 0.0
            for number in range(offsets[value], offsets[value + 1]):
                unit = &units[ids[number], 0]
                for position in range(size):
                    total[position] += unit[position]
            shorten(total, size, (offsets[value + 1] - offsets[value]) * smallest_weight)
            for position in range(size):
                vectors[value, position] = <float>total[position]


def sign_units(
    const uint8_t[:, ::1] signs,
    const uint64_t[::1] lanes,
    const int64_t[::1] ids,
    const int64_t[::1] offsets,
    const int64_t[::1] own,
    double share,
    const float[::1] weights,
    double[:, ::1] units,
):
    """Average rows of signs as `sign_means` does, and scale the result to the weight's length.

    Parameters
    ----------
    units : numpy.ndarray of shape (u, dimensions), float64
        Written; zeros for a word without rows.
    """
    cdef int64_t size = units.shape[1], word, position, code, n_rows
    cdef double length, weight
    cdef vector[int64_t] codes
    cdef vector[double] unit, table
    cdef vector[uint64_t] counted
    with nogil:
        codes.resize(size)
        unit.resize(size)
        counted.resize(signs.shape[1])
        table.resize(2 * (longest_run(offsets) + 1))
        for word in range(units.shape[0]):
            n_rows = offsets[word + 1] - offsets[word]
            length = 0.0
            if n_rows:
                count_signs(signs, lanes, ids, offsets[word], n_rows, own[word], counted, codes)
                tabulate(codes, n_rows, share, table, unit)
                for position in range(size):
                    unit[position] = table[codes[position]]
                length = sqrt(sum_of_squares(unit.data(), size))
            if length == 0.0:
                for position in range(size):
                    units[word, position] = 0.0
                continue
            weight = weights[word]
            for code in range(2 * (n_rows + 1)):
                table[code] = table[code] / length * weight
            for position in range(size):
                units[word, position] = table[codes[position]]


def sign_means(
    const uint8_t[:, ::1] signs,
    const uint64_t[::1] lanes,
    const int64_t[::1] ids,
    const int64_t[::1] offsets,
    const int64_t[::1] own,
    double share,
    float[:, ::1] means,
):
    """Average rows of signs, scale the mean to its share, and add the row of the whole word.

    The share is one of the length. The row of the whole word makes up the rest.

    Parameters
    ----------
    signs : numpy.ndarray of shape (buckets, bytes), uint8
        Eight signs a byte, the first in the highest bit; 1 means +1 and 0 means -1.
    offsets : numpy.ndarray of shape (u + 1,), int64
        Word i has the rows ``ids[offsets[i]:offsets[i + 1]]``; without any, zeros for its mean.
    own : numpy.ndarray of shape (u,), int64
        Row of each whole word.
    share : float
        Share of the squared length that is the whole word's, in [0, 1); with 0 means are left as
        they are.
    means : numpy.ndarray of shape (u, dimensions), float32
        Written.
    """
    cdef int64_t size = means.shape[1], word, position, n_rows
    cdef vector[int64_t] codes
    cdef vector[double] letters, table
    cdef vector[uint64_t] counted
    with nogil:
        codes.resize(size)
        letters.resize(size)
        counted.resize(signs.shape[1])
        table.resize(2 * (longest_run(offsets) + 1))
        for word in range(means.shape[0]):
            n_rows = offsets[word + 1] - offsets[word]
            count_signs(signs, lanes, ids, offsets[word], n_rows, own[word], counted, codes)
            tabulate(codes, n_rows, share, table, letters)
            for position in range(size):
                means[word, position] = <float>table[codes[position]]


cdef int64_t longest_run(const int64_t[::1] offsets) noexcept nogil:
    cdef int64_t longest = 0, number
    for number in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[number + 1] - offsets[number])
    return longest


cdef void count_signs(
    const uint8_t[:, ::1] signs,
    const uint64_t[::1] lanes,
    const int64_t[::1] ids,
    int64_t first,
    int64_t n_rows,
    int64_t word_row,
    vector[uint64_t]& counted,
    vector[int64_t]& codes,
) noexcept nogil:
    """Write the code of a word in each dimension.

    It is twice the number of its rows that have a 1, plus one where the whole word's row has a 1.
    """
    cdef int64_t width = signs.shape[1], size = codes.size(), start, number, byte, position
    cdef const uint8_t* row
    cdef const uint8_t* ones_of_lane = <const uint8_t*>counted.data()
    for position in range(size):
        codes[position] = 0
    for start in range(0, n_rows, 255):  # a lane is full then
        for byte in range(width):
            counted[byte] = 0
        for number in range(start, min(start + 255, n_rows)):
            row = &signs[ids[first + number], 0]
            for byte in range(width):
                counted[byte] += lanes[row[byte]]
        for position in range(size):
            codes[position] += 2 * <int64_t>ones_of_lane[position]
    row = &signs[word_row, 0]
    for byte in range(width):
        counted[byte] = lanes[row[byte]]
    for position in range(size):
        codes[position] += ones_of_lane[position]


cdef void tabulate(
    vector[int64_t]& codes,
    int64_t n_rows,
    double share,
    vector[double]& table,
    vector[double]& letters,
) noexcept nogil:
    """Write the number that each code of a word of `n_rows` rows means.

    Numbers are rounded to float32. A few of them serve all dimensions.
    """
    cdef float divisor = <float>max(n_rows, <int64_t>1), mean
    cdef int64_t size = codes.size(), ones, position
    cdef double length, of_letters, sign, letter
    for ones in range(n_rows + 1):
        # The sum of signs is a whole number, which float32 holds exactly, in whatever order it is
        # taken.
        mean = <float>(2 * ones - n_rows) / divisor
        table[2 * ones] = table[2 * ones + 1] = mean
    if share == 0:
        return
    for position in range(size):
        letters[position] = table[codes[position]]
    length = sqrt(sum_of_squares(letters.data(), size))
    if length == 0.0:
        length = 1.0
    of_letters, sign = sqrt(1 - share), 1.0 / sqrt(<double>size) * sqrt(share)
    for ones in range(n_rows + 1):
        letter = table[2 * ones] / length * of_letters
        table[2 * ones], table[2 * ones + 1] = <float>(letter - sign), <float>(letter + sign)


def hash_texts(
    const uint8_t[::1] text, const int64_t[::1] offsets, uint64_t multiplier, uint64_t[::1] hashes
):
    """Hash texts by polynomials of their bytes, and their sizes; see `embed.words.hash_strings`.

    Parameters
    ----------
    hashes : numpy.ndarray of shape (n,), uint64
        Written.
    """
    cdef int64_t number, position
    cdef uint64_t power, total
    with nogil:
        for number in range(hashes.shape[0]):
            power, total = multiplier, 0
            for position in range(offsets[number], offsets[number + 1]):
                total += (text[position] + <uint64_t>1) * power
                power *= multiplier
            hashes[number] = total ^ <uint64_t>(offsets[number + 1] - offsets[number])


cdef inline uint32_t hash_byte(uint32_t state, uint8_t byte) noexcept nogil:
    """Advance a 32-bit FNV-1a hash by a byte, widened as a signed number."""
    return (state ^ <uint32_t><int32_t><int8_t>byte) * <uint32_t>16777619


def hash_pieces(
    const uint8_t[::1] text,
    const int64_t[::1] starts,
    int64_t min_n,
    int64_t max_n,
    const int64_t[::1] positions,
    uint32_t[::1] hashes,
):
    """Hash the n-grams of words between brackets; see `embed.subword.hash_ngrams`.

    Parameters
    ----------
    text : numpy.ndarray, uint8
    starts : numpy.ndarray of shape (u + 1,), int64
        Word i is ``text[starts[i]:starts[i + 1]]``, in UTF-8.
    positions : numpy.ndarray of shape (u + 1,), int64
        The hashes of word i go to ``hashes[positions[i]:positions[i + 1]]``; where these are none,
        it has no n-grams.
    hashes : numpy.ndarray, uint32
        Written.
    """
    cdef int64_t word, position, size, first, after, n, place
    cdef uint32_t state
    cdef vector[uint8_t] bracketed
    with nogil:
        bracketed.resize(longest_run(starts) + 2)
        for word in range(starts.shape[0] - 1):
            position = positions[word]
            if position == positions[word + 1]:
                continue
            size = starts[word + 1] - starts[word] + 2
            bracketed[0], bracketed[size - 1] = 0x3C, 0x3E
            for place in range(size - 2):
                bracketed[place + 1] = text[starts[word] + place]
            for first in range(size):
                if (bracketed[first] & 0xC0) == 0x80:
                    continue
                state, after = <uint32_t>2166136261, first
                for n in range(1, max_n + 1):
                    if after == size:
                        break
                    state = hash_byte(state, bracketed[after])
                    after += 1
                    while after < size and (bracketed[after] & 0xC0) == 0x80:
                        state = hash_byte(state, bracketed[after])
                        after += 1
                    # A bracket alone is no n-gram.
                    if n >= min_n and (n > 1 or (first > 0 and after < size)):
                        hashes[position] = state
                        position += 1


def end_of_entries(const uint8_t[::1] data, int64_t start, int64_t n_entries):
    """Return where the entries of a dictionary end, beyond the data where these are too short.

    Each is a text that a zero ends, a count of eight bytes and a kind of one.
    """
    cdef int64_t offset = start, size = data.shape[0], number
    with nogil:
        for number in range(n_entries):
            while offset < size and data[offset] != 0:
                offset += 1
            offset += 10
            if offset > size:
                break
    return offset


# What a word sounds like: capital letters stand for the sounds of ch, sh and j.
cdef enum:
    # Where parts of a hash begin: whether it is of another script, its sounds, and its consonants:
    # how many these are, and they themselves.
    IN_SOUNDS = 1
    IN_NUMBER = 33
    IN_CONSONANTS = 36
    MOST_CONSONANTS = 7


cdef inline bint is_one_of(uint8_t letter, const char* letters) noexcept nogil:
    """Return whether a letter, which may be none (0), is one of some."""
    cdef int64_t place = 0
    while letters[place] != 0:
        if <uint8_t>letters[place] == letter:
            return True
        place += 1
    return False


cdef int64_t write_sounds(
    const uint8_t* text, int64_t start, int64_t stop, uint8_t* sounds
) noexcept nogil:
    """Write the sounds of a text of small Latin letters; return how many there are.

    Letters of one sound become one, and twice the same sound is one; other characters are passed
    over. `sounds` has room for twice as many as ``text[start:stop]`` has bytes.
    """
    cdef int64_t position = start, n_sounds = 0, step
    cdef uint8_t letter, after, third, sound, second
    while position < stop:
        letter = text[position]
        after = text[position + 1] if position + 1 < stop else 0
        third = text[position + 2] if position + 2 < stop else 0
        step, sound, second = 1, letter, 0
        if not (48 <= letter <= 57 or 97 <= letter <= 122):
            position += 1
            continue
        if letter == c"t" and after == c"s" and third == c"c" and (
            position + 3 < stop and text[position + 3] == c"h"
        ):
            sound, step = c"C", 4
        elif letter == c"t" and after == c"c" and third == c"h":
            sound, step = c"C", 3
        elif letter == c"s" and after == c"c" and third == c"h":
            sound, step = c"S", 3
        elif letter == c"s" and after == c"h":
            sound, step = c"S", 2
        elif letter == c"d" and after == c"z" and third == c"h":
            sound, step = c"J", 3
        elif letter == c"d" and is_one_of(after, b"jz") or letter == c"z" and after == c"h":
            sound, step = c"J", 2
        elif after == c"h" and is_one_of(letter, b"kgcptdb"):
            sound, step = letter, 2
            if letter == c"k" or letter == c"g":
                sound = c"h"
            elif letter == c"c":
                sound = c"C"
            elif letter == c"p":
                sound = c"f"
        elif letter == c"c" and after == c"k":
            sound, step = c"k", 2
        elif letter == c"t" and is_one_of(after, b"sz"):
            sound, step = c"s", 2
        elif letter == c"c" and is_one_of(after, b"eiy") or letter == c"z":
            sound = c"s"
        elif is_one_of(letter, b"qg") and after == c"u" and is_one_of(third, b"ei"):
            sound, step = c"k" if letter == c"q" else c"g", 2
        elif letter == c"n" and after == c"g" and not is_one_of(third, b"aeiouyh"):
            step = 2
        elif letter == c"x" and (position == start or is_one_of(after, b"iu")):
            sound = c"s"
        elif letter == c"k" and after == c"s" and is_one_of(third, b"iu"):
            sound, step = c"s", 2
        elif letter == c"x":
            sound, second = c"k", c"s"
        elif letter == c"c" or letter == c"q":
            sound = c"k"
        elif is_one_of(letter, b"wv") or letter == c"u" and is_one_of(after, b"aeio"):
            sound = c"b"
        elif letter == c"j":
            sound = c"J"
        elif letter == c"o" and after == c"u" and is_one_of(third, b"aeio"):
            sound, step = c"b", 2
        elif letter == c"o" and is_one_of(after, b"ou"):
            sound, step = c"u", 2
        elif letter == c"e" and after == c"e":
            sound, step = c"i", 2
        elif letter == c"y":
            sound = c"i"
        elif letter == c"l":
            sound = c"r"
        elif (
            letter == c"h"
            and position > start
            and is_one_of(text[position - 1], b"aeiou")
            and not is_one_of(after, b"aeiou")
        ):
            sound = 0
        position += step
        if sound != 0 and (n_sounds == 0 or sounds[n_sounds - 1] != sound):
            sounds[n_sounds] = sound
            n_sounds += 1
        if second != 0:
            sounds[n_sounds] = second
            n_sounds += 1
    return n_sounds


cdef inline uint8_t consonant_of(uint8_t sound) noexcept nogil:
    """Return the consonant that stands for those like a sound, or ``a`` for a vowel."""
    if is_one_of(sound, b"bpf"):
        return c"b"
    if is_one_of(sound, b"td"):
        return c"d"
    if is_one_of(sound, b"kgh"):
        return c"k"
    if is_one_of(sound, b"sCSJ"):
        return c"s"
    return c"a" if is_one_of(sound, b"aeiou") else sound


cdef inline uint64_t mix(uint64_t state) noexcept nogil:
    state = (state ^ (state >> 29)) * <uint64_t>0xBF58476D1CE4E5B9
    return state ^ (state >> 32)


cdef int64_t end_before_city(const uint8_t* text, int64_t start, int64_t stop) noexcept nogil:
    """Return where a text ends without the word behind the names of cities, in English or Asia."""
    cdef int64_t size = stop - start
    if size >= 3 and memcmp(text + stop - 3, b" si", 3) == 0:
        return stop - 3
    if size >= 4 and memcmp(text + stop - 4, b" shi", 4) == 0:
        return stop - 4
    if size >= 5 and memcmp(text + stop - 5, b" city", 5) == 0:
        return stop - 5
    return stop


def hash_sounds(
    const uint8_t[::1] text,
    const int64_t[::1] starts,
    const uint8_t[::1] is_other,
    int64_t[::1] hashes,
):
    """Hash what texts of small Latin letters sound like; see `embed.spelling.sounds_of`.

    Parameters
    ----------
    text, starts : numpy.ndarray
        Text i is ``text[starts[i]:starts[i + 1]]``.
    is_other : numpy.ndarray of shape (n,), bool
        Whether each is of another script.
    hashes : numpy.ndarray of shape (n,), int64
        Written.
    """
    cdef int64_t row, n_sounds, n_consonants, position, stop
    cdef uint64_t of_sounds, of_consonants
    cdef uint8_t consonant, last
    cdef bint has_letter
    cdef vector[uint8_t] sounds
    with nogil:
        sounds.resize(2 * longest_run(starts) + 2)
        for row in range(hashes.shape[0]):
            stop = end_before_city(&text[0], starts[row], starts[row + 1])
            n_sounds = write_sounds(&text[0], starts[row], stop, sounds.data())
            of_sounds = of_consonants = last = n_consonants = 0
            has_letter = False
            for position in range(n_sounds):
                has_letter |= sounds[position] > 57
                of_sounds = of_sounds * <uint64_t>0x9E3779B97F4A7C15 + sounds[position]
                consonant = consonant_of(sounds[position])
                if consonant == last or (consonant == c"a" and position > 0):
                    continue
                last = consonant
                n_consonants += consonant != c"a"
                of_consonants = of_consonants * <uint64_t>0x9E3779B97F4A7C15 + consonant
            hashes[row] = 0
            if has_letter:
                hashes[row] = (
                    <int64_t>(mix(of_consonants) >> 37) << IN_CONSONANTS
                    | min(n_consonants, <int64_t>MOST_CONSONANTS) << IN_NUMBER
                    | <int64_t>(mix(of_sounds) >> 32) << IN_SOUNDS
                    | (is_other[row] != 0)
                )
