"""Compiled loops that take words apart: their pairs of characters, packed into keys.

A key is a pair of characters with the two blocks in which it stands: see `write_keys`.
"""

from __future__ import annotations

import numpy as np

from pexeso.engine.sparse.space import BLOCK, LAST_BLOCK, PAIR
from pexeso.runtime.jit import loop

BITS_OF_BLOCKS = 12
BLOCKS = (1 << BITS_OF_BLOCKS) - 1

_BEGIN, _END = 0x110000, 0x110001
"""Stand before and after a word: the first numbers that are no character."""

_NUMBERS, _MOST_DIGITS = 1 << 42, 14
"""Keys of whole numbers begin where those of pairs end, and have room for so many digits."""

BITS_OF_BLOCK = 6
FIRST_BLOCK = LAST_BLOCK << BITS_OF_BLOCK


@loop
def count_letters(text: np.ndarray, start: int, stop: int) -> int:
    """Return the characters of a word."""
    n_letters = 0
    for position in range(start, stop):
        n_letters += text[position] & 0xC0 != 0x80
    return n_letters


@loop
def number_of(text: np.ndarray, start: int, stop: int) -> int:
    """Return a word of up to 14 digits as a number of its own, with a 1 before it; else -1."""
    if stop - start > _MOST_DIGITS or start == stop:
        return -1
    number = np.int64(1)
    for position in range(start, stop):
        digit = np.int64(text[position]) - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@loop
def write_keys(text: np.ndarray, start: int, stop: int, keys: np.ndarray, first: int) -> int:
    """Write the keys of a word: its ordered pairs of characters at most two apart, with blocks.

    A key is, from the highest bit on, the first character, the second, the block of the first
    counted from the beginning of the word, and that counted from its end. A word of digits alone
    has one key that no other word has.

    Parameters
    ----------
    text : numpy.ndarray, uint8
        The word is ``text[start:stop]``, in UTF-8.
    keys : numpy.ndarray, int64
        Written from position `first`: two for each letter, and one more.

    Returns
    -------
    int
        The position after the last key.
    """
    number = number_of(text, start, stop)
    if number >= 0:
        keys[first] = (_NUMBERS + number) << BITS_OF_BLOCKS
        return first + 1
    size = count_letters(text, start, stop) + 2
    before, last, key_index, at = np.int64(-1), np.int64(_BEGIN), first, start
    while at < stop and text[at] & 0xC0 == 0x80:
        at += 1
    for number in range(1, size):
        if number == size - 1:
            letter = np.int64(_END)
        else:
            byte = np.int64(text[at])
            letter = byte if byte < 0x80 else byte & (0x1F if byte < 0xE0 else 0x0F)
            if byte >= 0xF0:
                letter = byte & 0x07
            at += 1
            while at < stop and text[at] & 0xC0 == 0x80:
                letter = ((letter << 6) | (np.int64(text[at]) & 0x3F)) & 0x1FFFFF
                at += 1
        for back in range(2):
            other = last if back == 0 else before
            if other < 0:
                continue
            position = number - 1 - back
            blocks = (min(position // BLOCK, LAST_BLOCK) << BITS_OF_BLOCK) | min(
                (size - position) // BLOCK, LAST_BLOCK
            )
            keys[key_index] = (other << 33) | (letter << BITS_OF_BLOCKS) | blocks
            key_index += 1
        before, last = last, letter
    return key_index


@loop
def common_of(blocks: int, others: int) -> int:
    """Return what two occurrences of a pair add to the dot product of two words."""
    differ = blocks ^ others
    return PAIR + (differ & FIRST_BLOCK == 0) + (differ & LAST_BLOCK == 0)


@loop
def keys_of(starts: np.ndarray, words: np.ndarray) -> int:
    """Return the room that the keys of some words take at most."""
    room = 0
    for word in words:
        room += 2 * (starts[word + 1] - starts[word]) + 1
    return room


@loop
def count_squares(text: np.ndarray, starts: np.ndarray, squares: np.ndarray) -> None:
    """Compute the dot product of each word with itself, int64."""
    longest = 0
    for word in range(len(starts) - 1):
        longest = max(longest, starts[word + 1] - starts[word])
    keys = np.empty(2 * longest + 1, np.int64)
    for word in range(len(starts) - 1):
        n_keys = write_keys(text, starts[word], starts[word + 1], keys, 0)
        ordered = np.sort(keys[:n_keys])
        total, first = 0, 0
        while first < n_keys:
            end = first + 1
            while end < n_keys and ordered[end] >> BITS_OF_BLOCKS == (
                ordered[first] >> BITS_OF_BLOCKS
            ):
                end += 1
            total += squares_of_run(ordered[first:end])
            first = end
        squares[word] = total


@loop
def squares_of_run(keys: np.ndarray) -> int:
    """Return what the occurrences of one pair add to the dot product of a word with itself."""
    if len(keys) == 1:
        return PAIR + 2
    total = PAIR * len(keys) * len(keys)
    firsts, lasts = np.zeros((2, LAST_BLOCK + 1), np.int64)
    for key in keys:
        firsts[(key & FIRST_BLOCK) >> BITS_OF_BLOCK] += 1
        lasts[key & LAST_BLOCK] += 1
    for block in range(LAST_BLOCK + 1):
        total += firsts[block] * firsts[block] + lasts[block] * lasts[block]
    return total


@loop
def count_keys(text: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> None:
    """Count the keys of each word, int64."""
    for word in range(len(starts) - 1):
        start, stop = starts[word], starts[word + 1]
        is_number = number_of(text, start, stop) >= 0
        sizes[word] = 1 if is_number else 2 * count_letters(text, start, stop) + 1


@loop
def write_all_keys(
    text: np.ndarray, starts: np.ndarray, offsets: np.ndarray, keys: np.ndarray
) -> None:
    """Write the keys of each word from its offset on, int64."""
    for word in range(len(starts) - 1):
        write_keys(text, starts[word], starts[word + 1], keys, offsets[word])
