"""The arrays that compiled loops of a search go through, by what they are of.

Shape letters: N stored values, V words and F keys of the partition, u words of the query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class QueryValues(NamedTuple):
    """Query values, as in `pexeso.engine.sparse.vectors.SparseVectors`.

    Attributes
    ----------
    own_words : numpy.ndarray of shape (u,), int64
        The partition's number of each word of the query, -1 where it has it not.
    """

    text: np.ndarray
    starts: np.ndarray
    weights: np.ndarray
    squares: np.ndarray
    offsets: np.ndarray
    members: np.ndarray
    norms: np.ndarray
    own_words: np.ndarray


class Stored(NamedTuple):
    """A partition, as in `pexeso.engine.sparse.partition.SparsePartition`.

    Attributes
    ----------
    word_text, word_starts, word_weights, word_squares : numpy.ndarray
        Its words.
    scales, factors : numpy.ndarray of shape (V,), float32
        ``letters / sqrt(square)`` of each word, and that times its weight.
    reach : numpy.ndarray of shape (V,), float32
        The scale of each word times the largest S of its values, over the share of its band.
    first_bands : numpy.ndarray of shape (V,), uint8
        The band of that value.
    keys : numpy.ndarray of shape (F,), int64
        Pairs with their blocks, ascending.
    list_offsets, list_words : numpy.ndarray, int64 and int32
        The words of each key, a word as often as it has it.
    word_value_offsets, word_values : numpy.ndarray, int64 and int32
        The rows of each word, ascending, a row once.
    value_shares : numpy.ndarray, uint8
        The scaled weight of the word in each of these rows, in steps of 1/255, rounded up.
    value_word_offsets, value_words : numpy.ndarray, int64 and int32
        The words of each row.
    value_norms, value_lengths : numpy.ndarray of shape (N,), float64 and float32
        The dot product of each row with itself, and its root.
    band_ends : numpy.ndarray of shape (K,), int64
        The first row after each band of rows of about equal S.
    band_sums, band_shares : numpy.ndarray of shape (K,), float32
        The largest S of each band, and the part of ``floor / S`` from which on words count.
    """

    word_text: np.ndarray
    word_starts: np.ndarray
    word_weights: np.ndarray
    word_squares: np.ndarray
    scales: np.ndarray
    factors: np.ndarray
    reach: np.ndarray
    first_bands: np.ndarray
    keys: np.ndarray
    list_offsets: np.ndarray
    list_words: np.ndarray
    word_value_offsets: np.ndarray
    word_values: np.ndarray
    value_shares: np.ndarray
    value_word_offsets: np.ndarray
    value_words: np.ndarray
    value_norms: np.ndarray
    value_lengths: np.ndarray
    band_ends: np.ndarray
    band_sums: np.ndarray
    band_shares: np.ndarray


class Room(NamedTuple):
    """Working memory of one thread for a partition, given back as it was got.

    Attributes
    ----------
    lanes : numpy.ndarray of shape (LANES, V), float32
        Zeros.
    packed : numpy.ndarray of shape (V, 2), uint64
    words, known_words : numpy.ndarray of shape (V,), int32
    flags : numpy.ndarray, uint8
        V, and zeros up to a multiple of 8.
    known : numpy.ndarray of shape (V,), float64
        All -1.
    gained : numpy.ndarray of shape (N,), uint8
        Zeros.
    touched, rows : numpy.ndarray of shape (N,), int32
    """

    lanes: np.ndarray
    packed: np.ndarray
    words: np.ndarray
    flags: np.ndarray
    known: np.ndarray
    known_words: np.ndarray
    gained: np.ndarray
    touched: np.ndarray
    rows: np.ndarray


class Noted(NamedTuple):
    """The table of one query value's pairs, and what is known of words by the definition.

    Attributes
    ----------
    word_keys, counts : numpy.ndarray, int64
        Room for the keys of a word, and for what it has in common with each word of the value.
    pairs, heads, chain, filled, sizes : numpy.ndarray
        See `pexeso.engine.sparse.loops.word_loops.add_word`.
    known : numpy.ndarray of shape (V,), float64
        The nearness of words to the value, -1 where it is not known.
    known_words, n_known : numpy.ndarray
        The words that are known, and their number.
    n_letters : numpy.ndarray of shape (1,), int64
        Bytes of these words.
    """

    word_keys: np.ndarray
    counts: np.ndarray
    pairs: np.ndarray
    heads: np.ndarray
    chain: np.ndarray
    filled: np.ndarray
    sizes: np.ndarray
    known: np.ndarray
    known_words: np.ndarray
    n_known: np.ndarray
    n_letters: np.ndarray
