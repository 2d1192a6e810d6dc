"""The loops of the search by letters: over words, over all pairs of some words or values, and over
posting lists of pairs of letters.

What decides a match is whole numbers, or float64 in strict IEEE 754 arithmetic. Whoever calls holds
arrays of the types that are written here; numbers that lead from one array of a stored partition
into another are looked at before they are followed.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython cimport view
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcpy, memset
from libcpp.algorithm cimport sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

import numpy as np

from pexeso.errors import IndexCorruptError

cdef extern from *:
    """
    // Of values of the same words in another order, of the same letters in other words, and of
    // short words of which one letter differs, as fractions of the largest distance; and the
    // distance below which values have the same words, whatever rounding does. National Museum and
    // Nationalmuseum are two museums: the second is worth less than most misspellings.
    static constexpr double DISTANCE_OF_TURNED = 0.1;
    static constexpr double DISTANCE_OF_REGROUPED = 1.0 / 3;
    static constexpr double DISTANCE_OF_ONE_LETTER = 3.0 / 8;
    static constexpr double SAME_WORDS = 1e-6;

    // What the distance of values of different scripts is multiplied with where their consonants
    // sound the same, by the number of these, and where all their sounds do.
    static constexpr double FACTORS_OF_CONSONANTS[] = {1, 1, .9, .8, .7, .6, .6, .6};
    static constexpr double FACTORS_OF_SOUNDS[] = {1, .8, .53, .53, .5, .4, .4, .4};
    """
    const double FACTORS_OF_CONSONANTS[8]
    const double FACTORS_OF_SOUNDS[8]
    const double DISTANCE_OF_TURNED
    const double DISTANCE_OF_REGROUPED
    const double DISTANCE_OF_ONE_LETTER
    const double SAME_WORDS

cpdef enum:
    SPELLED = 31  # in a word: the letters by which it is compared follow

    PAIR = 4  # what a common pair counts, beside 1 for each common block

    # Characters of a block; all characters after the first 189 are in the last one.
    BLOCK = 3
    LAST_BLOCK = 63

    BITS_OF_BLOCK = 6
    BITS_OF_BLOCKS = 12
    BLOCKS = (1 << 12) - 1
    FIRST_BLOCK = 63 << 6

    VALUES_BETWEEN_SIGNALS = 64

    LANES = 6  # query values for which rows are gone through at once

    # A mark: its group, and what member of the group it is.
    BITS_OF_MEMBER = 56
    STRICT_GROUPS = 114
    EDGE = 120  # of members that tell a value from one that has them in no group
    LETTERS_GROUP = 127  # of what is left of a short word without one letter; tells nothing apart

    # What a value sounds like, see `embed.spelling.sounds_of`.
    OTHER_SCRIPT = 1
    BITS_BELOW_CONSONANTS = 33
    NUMBER_OF_CONSONANTS = 7

    DEAR = -2  # in the place of a number of rows: to find them so takes longer than to compare all

TURNED, REGROUPED = DISTANCE_OF_TURNED, DISTANCE_OF_REGROUPED
ONE_LETTER = DISTANCE_OF_ONE_LETTER
SAME_SOUNDS = tuple(FACTORS_OF_SOUNDS[n] for n in range(NUMBER_OF_CONSONANTS + 1))
SAME_CONSONANTS = tuple(FACTORS_OF_CONSONANTS[n] for n in range(NUMBER_OF_CONSONANTS + 1))

NO_LIST = (
    "The lists of a partition lead out of it: 'pexeso check' lists the damage; restore the index, "
    "or build it again."
)


cdef int64_t refuse() except -1 nogil:
    """Refuse a partition whose numbers lead out of it."""
    with gil:
        raise IndexCorruptError(NO_LIST)


cdef class Values:
    """Values as bags of words: the arrays of `pexeso.engine.sparse.vectors.SparseVectors`, and
    those of `pexeso.engine.sparse.marks.Marks`.
    """

    cdef const uint8_t[::1] text
    cdef const int64_t[::1] starts
    cdef const float[::1] weights
    cdef const int64_t[::1] squares
    cdef const int64_t[::1] offsets
    cdef const int32_t[::1] members
    cdef const double[::1] norms
    cdef const int64_t[::1] forms
    cdef const int64_t[::1] letters
    cdef const int64_t[::1] sounds
    cdef const int64_t[::1] mark_offsets
    cdef const int64_t[::1] marks

    def __init__(
        self,
        const uint8_t[::1] text,
        const int64_t[::1] starts,
        const float[::1] weights,
        const int64_t[::1] squares,
        const int64_t[::1] offsets,
        const int32_t[::1] members,
        const double[::1] norms,
        const int64_t[::1] forms,
        const int64_t[::1] letters,
        const int64_t[::1] sounds,
        const int64_t[::1] mark_offsets,
        const int64_t[::1] marks,
    ):
        self.text, self.starts, self.weights, self.squares = text, starts, weights, squares
        self.offsets, self.members, self.norms = offsets, members, norms
        self.forms, self.letters, self.sounds = forms, letters, sounds
        self.mark_offsets, self.marks = mark_offsets, marks


cdef class Stored:
    """A partition, as in `pexeso.engine.sparse.partition.SparsePartition`.

    Attributes
    ----------
    values : Values
        Its V words and N rows.
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
    value_lengths : numpy.ndarray of shape (N,), float32
        The root of the dot product of each row with itself.
    band_ends : numpy.ndarray of shape (K,), int64
        The first row after each band of rows of about equal S.
    band_sums, band_shares : numpy.ndarray of shape (K,), float32
        The largest S of each band, and the part of ``floor / S`` from which on words count.
    """

    cdef Values values
    cdef const float[::1] scales
    cdef const float[::1] factors
    cdef const float[::1] reach
    cdef const uint8_t[::1] first_bands
    cdef const int64_t[::1] keys
    cdef const int64_t[::1] list_offsets
    cdef const int32_t[::1] list_words
    cdef const int64_t[::1] word_value_offsets
    cdef const int32_t[::1] word_values
    cdef const uint8_t[::1] value_shares
    cdef const float[::1] value_lengths
    cdef const int64_t[::1] band_ends
    cdef const float[::1] band_sums
    cdef const float[::1] band_shares
    cdef double longest  # of the lengths of rows

    def __init__(
        self,
        Values values not None,
        const float[::1] scales,
        const float[::1] factors,
        const float[::1] reach,
        const uint8_t[::1] first_bands,
        const int64_t[::1] keys,
        const int64_t[::1] list_offsets,
        const int32_t[::1] list_words,
        const int64_t[::1] word_value_offsets,
        const int32_t[::1] word_values,
        const uint8_t[::1] value_shares,
        const float[::1] value_lengths,
        const int64_t[::1] band_ends,
        const float[::1] band_sums,
        const float[::1] band_shares,
    ):
        self.values, self.scales, self.factors, self.reach = values, scales, factors, reach
        self.first_bands, self.keys = first_bands, keys
        self.list_offsets, self.list_words = list_offsets, list_words
        self.word_value_offsets, self.word_values = word_value_offsets, word_values
        self.value_shares, self.value_lengths = value_shares, value_lengths
        self.band_ends, self.band_sums, self.band_shares = band_ends, band_sums, band_shares
        self.longest = np.max(value_lengths, initial=0)


cdef class Room:
    """Working memory of one thread for a partition of V words and N rows.

    It is given back as it was got, and takes 61 bytes a word and 9 a row.

    Attributes
    ----------
    lanes : numpy.ndarray of shape (LANES, V), float32
        Zeros.
    packed : numpy.ndarray of shape (V, 2), uint64
    words, known_words : numpy.ndarray of shape (V,), int32
    flags : numpy.ndarray, uint8
        V, and zeros up to a multiple of 8.
    known : numpy.ndarray of shape (V,), float64
        The nearness of words to a query value by the definition, and -1 for all between two.
    gained : numpy.ndarray of shape (N,), uint8
        Zeros.
    touched, rows : numpy.ndarray of shape (N,), int32
    """

    cdef readonly int64_t n_words
    cdef readonly int64_t n_values
    cdef float[:, ::1] lanes
    cdef uint64_t[:, ::1] packed
    cdef int32_t[::1] words
    cdef uint8_t[::1] flags
    cdef double[::1] known
    cdef int32_t[::1] known_words
    cdef uint8_t[::1] gained
    cdef int32_t[::1] touched
    cdef int32_t[::1] rows

    def __init__(self, int64_t n_words, int64_t n_values):
        self.n_words, self.n_values = n_words, n_values
        self.lanes = np.zeros((LANES, n_words), np.float32)
        self.packed = np.empty((n_words, 2), np.uint64)
        self.words = np.empty(n_words, np.int32)
        self.flags = np.zeros((n_words + 7) // 8 * 8, np.uint8)
        self.known = np.full(n_words, -1.0)
        self.known_words = np.empty(n_words, np.int32)
        self.gained = np.zeros(n_values, np.uint8)
        self.touched = np.empty(n_values, np.int32)
        self.rows = np.empty(n_values, np.int32)


include "marks.pxi"
include "words.pxi"
include "products.pxi"
include "lists.pxi"
include "rows.pxi"
include "searches.pxi"
include "completion.pxi"
