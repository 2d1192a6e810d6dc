"""Exact lookup of many words at a time in a fixed vocabulary.

No hash table is rebuilt for a batch.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.words import string_buffers
from pexeso.runtime.mixing import mixed

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Vocabulary:
    """The words that have a row of their own; word i has row i.

    Finding is by binary search in sorted 64-bit hashes, and each hit is then compared with the word
    itself, so that a chance collision cannot give a wrong row.
    """

    def __init__(self, words: pa.LargeStringArray) -> None:
        self.words = words

    def __len__(self) -> int:
        return len(self.words)

    def find(self, words: pa.LargeStringArray) -> np.ndarray:
        """Return the row of each word, or -1 for a word that is not in the vocabulary."""
        if len(self) == 0 or len(words) == 0:
            return np.full(len(words), -1, np.int64)
        hashes, rows, collides = self._sorted_hashes
        if collides:
            return (
                pc.fill_null(pc.index_in(words, value_set=self.words), -1)
                .to_numpy()
                .astype(np.int64)
            )
        word_hashes = hash_strings(words)
        row = np.minimum(np.searchsorted(hashes, word_hashes), len(hashes) - 1)
        maybe = np.flatnonzero(hashes[row] == word_hashes)
        result = np.full(len(words), -1, np.int64)
        if len(maybe):
            candidates = rows[row[maybe]]
            some = words if len(maybe) == len(words) else words.take(pa.array(maybe))
            same = pc.equal(self.words.take(pa.array(candidates)), some)
            is_same = same.to_numpy(zero_copy_only=False)
            result[maybe[is_same]] = candidates[is_same]
        return result

    @cached_property
    def _sorted_hashes(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Hashes in ascending order, the row of each, and whether two rows share one."""
        hashes = hash_strings(self.words)
        rows = np.argsort(hashes, kind="stable")
        hashes = hashes[rows]
        return hashes, rows, bool((hashes[1:] == hashes[:-1]).any())


def hash_strings(strings: pa.LargeStringArray) -> np.ndarray:
    """Hash strings to 64 bits: a polynomial of their bytes, mixed.

    Returns
    -------
    numpy.ndarray of shape (n,), uint64
        The same on every machine.
    """
    text, offsets = string_buffers(strings)
    text = text[offsets[0] : offsets[-1]]
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    hashes = np.zeros(len(strings), np.uint64)
    filled = np.flatnonzero(lengths)
    if len(filled):
        position = np.arange(len(text)) - np.repeat(starts, lengths)
        powers = np.cumprod(np.full(int(lengths.max()), _MULTIPLIER, np.uint64))
        terms = (text.astype(np.uint64) + np.uint64(1)) * powers[position]
        hashes[filled] = np.add.reduceat(terms, starts[filled])
    return mixed(hashes ^ lengths.astype(np.uint64))
