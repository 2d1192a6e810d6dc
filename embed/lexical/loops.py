"""The arithmetic of embedding as loops compiled by numba.

Each word and each value is finished while it is in the processor's cache.

As steps over whole arrays the same took more than twice as long: every step reads and writes two
kilobytes a word or value, and little else is done. The first use in a process loads the compiled
code from a cache, or compiles it (some seconds, once for an installation).

Bits are fixed by what is written here. All is float64, rounded to float32 where that is said;
nothing is fused or taken in another order, but for the sum of squares, which is taken as NumPy
takes it (`_sum_of_squares`), so that vectors are those of earlier versions.
"""

from __future__ import annotations

import numpy as np

from pexeso.runtime.jit import loop

VANISHED = 1e-6
"""Below this length, compared with the length of what was summed, a vector becomes zero.

It is rounding noise.
"""

LANES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).view(np.uint64)[:, 0]
"""For each byte its eight bits as eight bytes of one number.

So one addition counts eight signs.
"""

_LANE_HOLDS = 255
"""Rows that can be counted before a lane is full."""

FNV_OFFSET = np.uint32(2166136261)
FNV_PRIME = np.uint32(16777619)

_FEW = 128
_LEVELS = 64
"""Of halves of halves: more than an address can count."""


@loop
def _squares_of_few(vector: np.ndarray, start: int, stop: int) -> float:
    """Sum the squares of up to `_FEW` numbers in a fixed order.

    Eight sums run side by side, are added in pairs, and the remaining numbers are added last.
    """
    total, first = 0.0, start
    if stop - start >= 8:
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        first = stop - (stop - start) % 8
        for position in range(start, first, 8):
            a += vector[position] * vector[position]
            b += vector[position + 1] * vector[position + 1]
            c += vector[position + 2] * vector[position + 2]
            d += vector[position + 3] * vector[position + 3]
            e += vector[position + 4] * vector[position + 4]
            f += vector[position + 5] * vector[position + 5]
            g += vector[position + 6] * vector[position + 6]
            h += vector[position + 7] * vector[position + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for position in range(first, stop):
        total += vector[position] * vector[position]
    return total


@loop
def _sum_of_squares(vector: np.ndarray, waiting: np.ndarray) -> float:
    """Sum squares as `numpy.add.reduce` does.

    For more than `_FEW` numbers the sums of the first and the second half are added.

    Second halves wait for their turn in `waiting`: where one begins and ends, and, once it is its
    turn, what the first gave (its beginning is then -1). The function does not call itself, since
    numba reads such a function back wrongly from what it kept, and the process dies.
    """
    start, stop, level = 0, len(vector), 0
    while True:
        while stop - start > _FEW:
            half = (stop - start) // 2
            middle = start + half - half % 8
            waiting[level, 0], waiting[level, 1] = middle, stop
            stop = middle
            level += 1
        total = _squares_of_few(vector, start, stop)
        while level and waiting[level - 1, 0] < 0:
            level -= 1
            total = waiting[level, 2] + total
        if not level:
            return total
        start, stop = int(waiting[level - 1, 0]), int(waiting[level - 1, 1])
        waiting[level - 1, 0], waiting[level - 1, 2] = -1, total


@loop
def _shorten(vector: np.ndarray, scale: float, waiting: np.ndarray) -> None:
    """Scale a vector to length 1, or to zeros where it is only rounding noise.

    The noise is that of sums of the given scale.
    """
    length = np.sqrt(_sum_of_squares(vector, waiting))
    if length <= VANISHED * scale:
        vector[:] = 0.0
        return
    for position in range(len(vector)):
        vector[position] /= length


@loop
def weighted_units(
    means: np.ndarray, known: np.ndarray, centre: np.ndarray, weights: np.ndarray, units: np.ndarray
) -> None:
    """Take the centre away from the means of words, and bring them to the length of their weight.

    Parameters
    ----------
    known : numpy.ndarray of shape (u,), bool
        Words without a row get zeros.
    units : numpy.ndarray of shape (u, dimensions), float64
        Written.
    """
    waiting = np.empty((_LEVELS, 3))
    for word in range(len(means)):
        unit = units[word]
        if not known[word]:
            unit[:] = 0.0
            continue
        mean = means[word]
        for position in range(len(unit)):
            unit[position] = mean[position]
        scale = np.sqrt(_sum_of_squares(unit, waiting))
        for position in range(len(unit)):
            unit[position] -= centre[position]
        _shorten(unit, scale, waiting)
        weight = np.float64(weights[word])
        for position in range(len(unit)):
            unit[position] *= weight


@loop
def sum_words(
    units: np.ndarray,
    ids: np.ndarray,
    offsets: np.ndarray,
    smallest_weight: float,
    vectors: np.ndarray,
) -> None:
    """Add up the words of each value in the order of their numbers, and bring the sum to length 1.

    Parameters
    ----------
    offsets : numpy.ndarray of shape (n + 1,), int64
        Value i has the words ``ids[offsets[i]:offsets[i + 1]]``; without any it gets zeros.
    vectors : numpy.ndarray of shape (n, dimensions), float32
        Written.
    """
    total, waiting = np.empty(units.shape[1]), np.empty((_LEVELS, 3))
    for value in range(len(vectors)):
        total[:] = 0.0
        for number in range(offsets[value], offsets[value + 1]):
            unit = units[ids[number]]
            for position in range(len(total)):
                total[position] += unit[position]
        _shorten(total, (offsets[value + 1] - offsets[value]) * smallest_weight, waiting)
        vector = vectors[value]
        for position in range(len(total)):
            vector[position] = total[position]


@loop
def sign_units(
    signs: np.ndarray,
    lanes: np.ndarray,
    ids: np.ndarray,
    offsets: np.ndarray,
    own: np.ndarray,
    share: float,
    weights: np.ndarray,
    units: np.ndarray,
) -> None:
    """Average rows of signs as `sign_means` does, and scale the result to the weight's length.

    Parameters
    ----------
    units : numpy.ndarray of shape (u, dimensions), float64
        Written; zeros for a word without rows.
    """
    dimensions = units.shape[1]
    codes, unit, waiting = (
        np.empty(dimensions, np.int64),
        np.empty(dimensions),
        np.empty((_LEVELS, 3)),
    )
    table = np.empty(2 * (np.diff(offsets).max() + 1))
    for word in range(len(units)):
        size = offsets[word + 1] - offsets[word]
        if size == 0:
            units[word, :] = 0.0
            continue
        _count_signs(signs, lanes, ids[offsets[word] : offsets[word + 1]], own[word], codes)
        _tabulate(codes, size, share, table, unit, waiting)
        for position in range(dimensions):
            unit[position] = table[codes[position]]
        length = np.sqrt(_sum_of_squares(unit, waiting))
        if length == 0.0:
            units[word, :] = 0.0
            continue
        weight = np.float64(weights[word])
        for code in range(2 * (size + 1)):
            table[code] = table[code] / length * weight
        for position in range(dimensions):
            units[word, position] = table[codes[position]]


@loop
def sign_means(
    signs: np.ndarray,
    lanes: np.ndarray,
    ids: np.ndarray,
    offsets: np.ndarray,
    own: np.ndarray,
    share: float,
    means: np.ndarray,
) -> None:
    """Average rows of signs, scale the mean to its share, and add the row of the whole word.

    The share is one of the length. The row of the whole word makes up the rest.

    Parameters
    ----------
    signs : numpy.ndarray of shape (buckets, bytes), uint8
        Eight signs a byte, the first in the highest bit; 1 stands for +1 and 0 for -1.
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
    dimensions = means.shape[1]
    codes, letters, waiting = (
        np.empty(dimensions, np.int64),
        np.empty(dimensions),
        np.empty((_LEVELS, 3)),
    )
    table = np.empty(2 * (np.diff(offsets).max() + 1))
    for word in range(len(means)):
        size = offsets[word + 1] - offsets[word]
        _count_signs(signs, lanes, ids[offsets[word] : offsets[word + 1]], own[word], codes)
        _tabulate(codes, size, share, table, letters, waiting)
        for position in range(dimensions):
            means[word, position] = table[codes[position]]


@loop
def _count_signs(
    signs: np.ndarray, lanes: np.ndarray, ids: np.ndarray, word_row: int, codes: np.ndarray
) -> None:
    """Write the code of a word in each dimension into `codes`.

    It is twice the number of its rows that have a 1, plus one where the whole word's row has a 1.
    """
    width = signs.shape[1]
    counted = np.empty(width, np.uint64)
    ones_of_lane = counted.view(np.uint8)
    codes[:] = 0
    for start in range(0, len(ids), _LANE_HOLDS):
        counted[:] = 0
        for number in range(start, min(start + _LANE_HOLDS, len(ids))):
            row = signs[ids[number]]
            for byte in range(width):
                counted[byte] += lanes[row[byte]]
        for position in range(len(codes)):
            codes[position] += 2 * np.int64(ones_of_lane[position])
    row = signs[word_row]
    for byte in range(width):
        counted[byte] = lanes[row[byte]]
    for position in range(len(codes)):
        codes[position] += np.int64(ones_of_lane[position])


@loop
def _tabulate(
    codes: np.ndarray,
    size: int,
    share: float,
    table: np.ndarray,
    letters: np.ndarray,
    waiting: np.ndarray,
) -> None:
    """Write the number that each code of a word of `size` rows stands for.

    Numbers are rounded to float32. A few of them serve all dimensions.
    """
    divisor = np.float32(max(size, 1))
    for ones in range(size + 1):
        # The sum of signs is a whole number, which float32 holds exactly, in whatever order it is
        # taken.
        mean = np.float32(2 * ones - size) / divisor
        table[2 * ones], table[2 * ones + 1] = mean, mean
    if share == 0:
        return
    for position in range(len(codes)):
        letters[position] = table[codes[position]]
    length = np.sqrt(_sum_of_squares(letters, waiting))
    if length == 0.0:
        length = 1.0
    of_letters, sign = np.sqrt(1 - share), 1.0 / np.sqrt(np.float64(len(codes))) * np.sqrt(share)
    for ones in range(size + 1):
        letter = table[2 * ones] / length * of_letters
        table[2 * ones], table[2 * ones + 1] = np.float32(letter - sign), np.float32(letter + sign)


@loop
def hash_pieces(
    text: np.ndarray,
    starts: np.ndarray,
    min_n: int,
    max_n: int,
    positions: np.ndarray,
    hashes: np.ndarray,
) -> None:
    """Hash the n-grams of words between brackets; see `embed.lexical.ngrams.hash_ngrams`.

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
    bracketed = np.empty(np.diff(starts).max() + 2, np.uint8)
    for word in range(len(starts) - 1):
        position = positions[word]
        if position == positions[word + 1]:
            continue
        size = starts[word + 1] - starts[word] + 2
        bracketed[0], bracketed[size - 1] = 0x3C, 0x3E
        bracketed[1 : size - 1] = text[starts[word] : starts[word + 1]]
        for first in range(size):
            if bracketed[first] & 0xC0 == 0x80:
                continue
            state, after = FNV_OFFSET, first
            for n in range(1, max_n + 1):
                if after == size:
                    break
                state = _hash_byte(state, bracketed[after])
                after += 1
                while after < size and bracketed[after] & 0xC0 == 0x80:
                    state = _hash_byte(state, bracketed[after])
                    after += 1
                # A bracket alone is no n-gram.
                if n >= min_n and (n > 1 or (first > 0 and after < size)):
                    hashes[position] = state
                    position += 1


@loop
def _hash_byte(state: int, byte: int) -> int:
    """Advance a 32-bit FNV-1a hash by a byte, widened as a signed number."""
    return np.uint32((state ^ np.uint32(np.int32(np.int8(byte)))) * FNV_PRIME)
