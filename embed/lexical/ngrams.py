"""Character n-grams of many words at once, hashed exactly as fastText hashes them.

A word is written between ``<`` and ``>``; its n-grams are those of ``min_n`` to ``max_n``
characters (not bytes), and each is hashed over its UTF-8 bytes with the 32-bit FNV-1a function,
where fastText widens every byte as a *signed* number.

Source: Bojanowski, Grave, Joulin, Mikolov, "Enriching Word Vectors with Subword Information" (TACL
2017), section 3.2; the hash and the order of the n-grams follow the program published with it, so
that models trained by it can be read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.lexical import loops
from embed.words import string_buffers

END_OF_LINE = "</s>"
"""The token that fastText puts at the end of each line; it has a row of its own and no n-grams."""


def count_ngrams(words: pa.LargeStringArray, min_n: int, max_n: int) -> np.ndarray:
    """Return how many n-grams each word has, without computing them."""
    length = pc.utf8_length(words).to_numpy(zero_copy_only=False).astype(np.int64) + 2
    counts = np.zeros(len(words), np.int64)
    for n in range(max(min_n, 1), max_n + 1):
        # The two brackets alone are no n-grams.
        counts += np.maximum(length - n + 1, 0) if n > 1 else length - 2
    if counts.any():
        counts[pc.equal(words, END_OF_LINE).to_numpy(zero_copy_only=False)] = 0
    return counts


def hash_ngrams(
    words: pa.LargeStringArray, min_n: int, max_n: int, counts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Hash all n-grams of all words.

    Parameters
    ----------
    counts : numpy.ndarray of shape (u,), int64, optional
        What `count_ngrams` gives for the words, where it is known.

    Returns
    -------
    hashes : numpy.ndarray, uint32
        By word, then by first character, then by length: the order of fastText.
    offsets : numpy.ndarray of shape (u + 1,), int64
        The hashes of word i are ``hashes[offsets[i]:offsets[i + 1]]``.
    """
    if counts is None:
        counts = count_ngrams(words, min_n, max_n)
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    if offsets[-1] == 0:
        return np.zeros(0, np.uint32), offsets
    text, starts = string_buffers(words)
    hashes = np.empty(offsets[-1], np.uint32)
    loops.hash_pieces(text, starts, max(min_n, 1), max_n, offsets, hashes)
    return hashes, offsets
