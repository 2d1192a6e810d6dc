"""Character n-grams of many words at once, hashed exactly as fastText hashes them.

A word is written between ``<`` and ``>``; its n-grams are those of ``min_n`` to ``max_n`` characters (not bytes), and each
is hashed over its UTF-8 bytes with the 32-bit FNV-1a function, where fastText widens every byte as a *signed* number.

Source: Bojanowski, Grave, Joulin, Mikolov, "Enriching Word Vectors with Subword Information" (TACL 2017), section 3.2; the
hash and the order of the n-grams follow the program published with it, so that models trained by it can be read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import string_buffers

FNV_OFFSET = np.uint32(2166136261)
FNV_PRIME = np.uint32(16777619)
END_OF_LINE = "</s>"
"""The token that fastText puts at the end of each line; it has a row of its own and no n-grams."""


def count_ngrams(words: pa.LargeStringArray, min_n: int, max_n: int) -> np.ndarray:
    """Return how many n-grams each word has, without computing them.

    Parameters
    ----------
    words : pyarrow.LargeStringArray of length u, without nulls
    min_n, max_n : int
        Shortest and longest n-gram in characters; ``max_n < min_n`` or ``max_n = 0`` means none.

    Returns
    -------
    numpy.ndarray of shape (u,), int64
    """
    length = pc.utf8_length(words).to_numpy(zero_copy_only=False).astype(np.int64) + 2
    counts = np.zeros(len(words), np.int64)
    for n in range(max(min_n, 1), max_n + 1):
        # The two brackets alone are no n-grams.
        counts += np.maximum(length - n + 1, 0) if n > 1 else length - 2
    if counts.any():
        counts[pc.equal(words, END_OF_LINE).to_numpy(zero_copy_only=False)] = 0
    return counts


def hash_ngrams(words: pa.LargeStringArray, min_n: int, max_n: int) -> tuple[np.ndarray, np.ndarray]:
    """Hash all n-grams of all words.

    Parameters
    ----------
    words : pyarrow.LargeStringArray of length u, without nulls
    min_n, max_n : int
        Shortest and longest n-gram in characters.

    Returns
    -------
    hashes : numpy.ndarray, uint32
        By word, then by first character, then by length: the order of fastText.
    offsets : numpy.ndarray of shape (u + 1,), int64
        The hashes of word i are ``hashes[offsets[i]:offsets[i + 1]]``.

    Notes
    -----
    Working memory is about ``5 * max_n`` bytes for each character; callers bound it by handing over words in chunks.

    Examples
    --------
    >>> hashes, offsets = hash_ngrams(pa.array(["ab"], pa.large_string()), 3, 4)  # <ab, <ab>, ab>
    >>> len(hashes), offsets.tolist()
    (3, [0, 3])
    """
    counts = count_ngrams(words, min_n, max_n)
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    if offsets[-1] == 0:
        return np.zeros(0, np.uint32), offsets
    kept = np.flatnonzero(counts)
    text, starts, left = _characters(words.take(pa.array(kept)))
    return _hash_characters(text, starts, left, max(min_n, 1), max_n), offsets


def _characters(words: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bytes of all bracketed words, the start of each character and the end, and how far each word goes on.

    The last counts the characters of the word from each character on, itself included.
    """
    opening, closing, nothing = (pa.scalar(piece, pa.large_string()) for piece in ("<", ">", ""))
    bracketed = pc.binary_join_element_wise(opening, words, closing, nothing)
    text, byte_offsets = string_buffers(bracketed)
    text = text[byte_offsets[0] : byte_offsets[-1]]
    starts = np.flatnonzero((text & 0xC0) != 0x80)
    n_characters = pc.utf8_length(bracketed).to_numpy(zero_copy_only=False).astype(np.int64)
    last = np.cumsum(n_characters)
    left = np.repeat(last, n_characters) - np.arange(len(starts))
    return text, np.append(starts, len(text)), left


def _hash_characters(text: np.ndarray, starts: np.ndarray, left: np.ndarray, min_n: int, max_n: int) -> np.ndarray:
    """Hash the n-grams that start at each character, one character further in each round."""
    n_characters = len(left)
    widths = np.diff(starts)
    signed = text.view(np.int8).astype(np.int32).view(np.uint32)
    state = np.full(n_characters, FNV_OFFSET, np.uint32)
    table = np.empty((n_characters, max_n - min_n + 1), np.uint32)
    valid = np.zeros(table.shape, bool)
    first_of_word = np.append(True, left[:-1] == 1)
    for n in range(1, max_n + 1):
        # state[:reach] takes in character i + n - 1. What runs over the end of a word is dropped by the mask.
        reach = n_characters - n + 1
        if reach <= 0:
            break
        _take_in(state[:reach], signed, starts[n - 1 : n - 1 + reach], widths[n - 1 : n - 1 + reach])
        if n >= min_n:
            table[:, n - min_n] = state
            valid[:, n - min_n] = (left >= n) if n > 1 else ~(first_of_word | (left == 1))
    return table[valid]


def _take_in(state: np.ndarray, signed: np.ndarray, starts: np.ndarray, widths: np.ndarray) -> None:
    """Advance each hash state, in place, by the one to four bytes of one character."""
    state ^= signed[starts]
    state *= FNV_PRIME
    for byte in range(1, int(widths.max())):
        wide = np.flatnonzero(widths > byte)
        state[wide] = (state[wide] ^ signed[starts[wide] + byte]) * FNV_PRIME
