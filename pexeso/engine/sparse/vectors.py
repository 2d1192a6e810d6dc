"""Values as bags of words, and the space of letters, in which words and values are compared.

A word ``<w>`` between two brackets has as its features each ordered pair of characters at most two
apart, whatever stands between them; and each such pair with the block of three characters in which
the first of the two stands, counted from the beginning, and again from the end. So a letter left
out, put in, changed or turned round takes few features away, and words of the same letters at other
places have few in common. Pairs count twice as much as pairs with a block. Features are counted,
and the dot product of the counts of two words is a whole number:

    C(w, w') = sum over the occurrences of a pair in both: 4 + [same block] + [same from the end]

A word of 1 to 14 digits and nothing else has one feature of its own instead, C(w, w) = 6: numbers
and dates that differ in a digit are other numbers and dates, and no misspellings.

The unit vector u(w) is these counts scaled to the length sqrt(1 - e), and a coordinate of the
word's own of the length sqrt(e), where e is the share of whole words. So for two words that are not
the same s(w, w') = (1 - e) * C(w, w') / sqrt(C(w, w) * C(w', w')), and for the same word s = 1.

A value x is the sum of b(w) u(w) over its words, each as often as it occurs, with b the weight of
the word. With a and b for the weights of the words i of q and j of x:

    dot(q, x) = sum_j b_j g_j, g_j = sum_i a_i s_ij;  cos = dot(q, x) / sqrt(dot(q, q) dot(x, x)),

and the distance is the Euclidean one of the vectors scaled to unit length, as a fraction of the
largest distance, 2: sqrt((1 - cos) / 2).

This is the definition to the last bit: both sums run in the order of the words' UTF-8 bytes, in
float64, each operation rounded once as IEEE 754 says. Whole numbers are exact in any order, so a
distance has the same bits however features are found, in any batch and on any device. Every faster
way must give the same matches.

Of several values that match, the best is not always the nearest. Where both values have words that
are like none of the other's these are often two things, and where one has a word more they are
often two names of one. So a pair has a cost, the distance and `penalty` times the lesser of the
shares of both values that are unmatched: u(q, x) = sum_i a_i (1 - max_j s_ij) / sum_i a_i. It is 0
of values of the same letters.

Pairs of characters that need not touch are the skip-grams of Guthrie et al., "A closer look at
skip-gram modelling" (LREC 2006).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import offsets_of, ranked_numbers, take_lists
from pexeso.engine.sparse.marks import Marks
from pexeso.errors import InputError
from pexeso.runtime.compiled import compiled

# The distance of two values that share no feature: every two values match from here on.
NO_COMMON_PAIR = np.sqrt(0.5)


@dataclass(frozen=True)
class LetterSpace:
    """How words are compared.

    Attributes
    ----------
    whole_word_share : float
        The share e of the squared length of a word's vector that is its own, in [0, 1).
    penalty : float
        What two values that have nothing in common cost more than their distance, in [0, 1].

    Examples
    --------
    >>> LetterSpace(0.05).letters
    0.95
    """

    whole_word_share: float
    penalty: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.whole_word_share, float) and 0 <= self.whole_word_share < 1):
            raise InputError(
                "The share of whole words must be at least 0 and less than 1. Got "
                f"{self.whole_word_share!r} instead."
            )
        if not (isinstance(self.penalty, float) and 0 <= self.penalty <= 1):
            raise InputError(
                f"The penalty of unmatched words must be from 0 to 1. Got {self.penalty!r} instead."
            )

    @cached_property
    def letters(self) -> float:
        """The share of the squared length of a word's vector that is its features'."""
        return 1.0 - self.whole_word_share

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


letter_space = cache(LetterSpace)


loops = compiled("pexeso.engine.sparse.loops")

_SIMILARITIES = 1 << 22  # of words, held together: 32 MiB

Rows = np.ndarray | slice


@dataclass(frozen=True)
class SparseVectors:
    """The vectors of n values over u distinct words.

    It is indexed like an array of n rows, and has a length.

    Attributes
    ----------
    text : numpy.ndarray, uint8
        The words one after the other, in UTF-8, in the order of their bytes.
    starts : numpy.ndarray of shape (u + 1,), int64
        Word i is ``text[starts[i]:starts[i + 1]]``.
    weights : numpy.ndarray of shape (u,), float32
        Above 0.
    squares : numpy.ndarray of shape (u,), int64
        Dot product of the counts of features of each word with themselves.
    offsets : numpy.ndarray of shape (n + 1,), int64
    members : numpy.ndarray, int32
        The words of value i are ``members[offsets[i]:offsets[i + 1]]``, ascending; a word that it
        has twice is there twice. A value without words matches nothing.
    norms : numpy.ndarray of shape (n,), float64
        Dot product of each value with itself.
    marks : Marks
        What tells them apart beside their words.
    """

    space: LetterSpace
    text: np.ndarray
    starts: np.ndarray
    weights: np.ndarray
    squares: np.ndarray
    offsets: np.ndarray
    members: np.ndarray
    norms: np.ndarray
    marks: Marks

    @classmethod
    def from_words(
        cls,
        space: LetterSpace,
        text: np.ndarray,
        starts: np.ndarray,
        weights: np.ndarray,
        offsets: np.ndarray,
        members: np.ndarray,
        marks: Marks | None = None,
    ) -> SparseVectors:
        """Make the vectors of values from their words, and from their marks if they have some."""
        weights = np.ascontiguousarray(weights, np.float32)
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError("The weights of words must be finite and above 0.")
        starts, offsets = (np.ascontiguousarray(array, np.int64) for array in (starts, offsets))
        members = np.ascontiguousarray(members, np.int32)
        squares = np.zeros(len(starts) - 1, np.int64)
        loops.count_squares(text, starts, squares)
        norms = np.zeros(len(offsets) - 1)
        marks = Marks.none(len(norms)) if marks is None else marks
        vectors = cls(space, text, starts, weights, squares, offsets, members, norms, marks)
        # Not the cached view, which cannot be sent to other processes.
        loops.value_squares(vectors._view_of(slice(0, len(norms))), space.letters, norms)
        return vectors

    @classmethod
    def empty(cls, space: LetterSpace) -> SparseVectors:
        none, whole = np.zeros(0, np.uint8), np.zeros(1, np.int64)
        return cls.from_words(space, none, whole, np.zeros(0), whole, np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.norms)

    @cached_property
    def view(self) -> object:
        """The arrays as compiled loops take them."""
        return self._view_of(slice(0, len(self)))

    def _view_of(self, rows: slice) -> object:
        """Return the arrays of a run of values as compiled loops take them, with all words."""
        bounds, marks = slice(rows.start, rows.stop + 1), self.marks
        return loops.Values(
            self.text, self.starts, self.weights, self.squares, self.offsets[bounds], self.members,
            self.norms[rows], marks.forms[rows], marks.letters[rows], marks.sounds[rows],
            marks.offsets[bounds], marks.members,
        )  # fmt: skip

    def without_marks(self) -> SparseVectors:
        """Return the same values, told apart by their words alone."""
        return replace(self, marks=Marks.none(len(self)))

    @property
    def is_known(self) -> np.ndarray:
        return self.norms > 0

    def __getitem__(self, rows: Rows) -> SparseVectors:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        return self.take(np.arange(len(self))[rows])

    def take(self, rows: np.ndarray) -> SparseVectors:
        """Return the values of some rows, int64, with the words that they have."""
        return replace(self.take_unmarked(rows), marks=self.marks.take(rows))

    def take_unmarked(self, rows: np.ndarray) -> SparseVectors:
        """Do as `take`, and leave out the marks."""
        offsets, members = take_lists(self.offsets, self.members, rows)
        used, members = ranked_numbers(members, len(self.weights))
        return SparseVectors(
            self.space, *take_words(self.text, self.starts, used), self.weights[used],
            self.squares[used], offsets, members.astype(np.int32, copy=False), self.norms[rows],
            Marks.none(len(rows)),
        )  # fmt: skip

    @classmethod
    def concatenate(cls, parts: Sequence[SparseVectors]) -> SparseVectors:
        """Put the values of several sets one after the other, over the words of all."""
        every = pa.concat_arrays([part.words for part in parts]).dictionary_encode()
        order = pc.sort_indices(every.dictionary).to_numpy()
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        numbers = rank[every.indices.to_numpy(zero_copy_only=False)]
        first = np.unique(numbers, return_index=True)[1]
        bounds = np.cumsum([0, *(len(part.weights) for part in parts)])
        members = [
            numbers[begin:][part.members] for begin, part in zip(bounds, parts, strict=False)
        ]
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        ends = np.cumsum([0, *(len(part.text) for part in parts)])
        starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
        text = np.concatenate([part.text for part in parts])
        return cls(
            parts[0].space,
            *take_words(text, np.concatenate([*starts, ends[-1:]]), first),
            np.concatenate([part.weights for part in parts])[first],
            np.concatenate([part.squares for part in parts])[first],
            offsets_of(sizes),
            np.concatenate(members),
            np.concatenate([part.norms for part in parts]),
            Marks.concatenate([part.marks for part in parts]),
        )

    @property
    def words(self) -> pa.LargeBinaryArray:
        buffers = [None, pa.py_buffer(self.starts), pa.py_buffer(self.text)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self.weights), buffers)

    def distances(self, others: SparseVectors) -> np.ndarray:
        """Return all distances to other values by the definition, float64 (n, m).

        They are fractions of the largest distance, 1 where marks tell values apart; infinite where
        a value has no words.
        """
        distances = np.empty((len(others), len(self)))
        # Runs of values whose words, with all of the others', have a bounded number of products.
        limit = max(1, _SIMILARITIES // max(1, len(others.weights)))
        runs = np.cumsum(np.diff(self.offsets)) // limit
        bounds = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(self)]
        for begin, end in itertools.pairwise(bounds):
            members = self.members[self.offsets[begin] : self.offsets[end]]
            words, places = np.unique(members, return_inverse=True)
            some = self._view_of(slice(begin, end))
            loops.value_distances(
                some, words, places, others.view, self.space.letters, distances[:, begin:end]
            )
        return distances.T


def pair_distances(left: SparseVectors, right: SparseVectors) -> np.ndarray:
    """Return the distance of each value to that of the same row by the definition, float64 (n,).

    It is infinite where one has no words.
    """
    rows = np.arange(len(left))
    return distances_at(left, rows, right, rows)


def distances_at(
    left: SparseVectors, query: np.ndarray, right: SparseVectors, rows: np.ndarray
) -> np.ndarray:
    """Return the distances of pairs of values, given by their rows, as `pair_distances` does."""
    distances = np.empty(len(query))
    loops.pair_distances(left.view, query, right.view, rows, left.space.letters, distances)
    return distances


def pair_costs(left: SparseVectors, right: SparseVectors, distances: np.ndarray) -> np.ndarray:
    """Return what each value and that of the same row cost, float64 (n,), given their distances."""
    if not left.space.penalty:
        return distances
    letters = left.marks.letters
    same = (letters == right.marks.letters) & (letters != 0)  # in other words: none is unmatched
    costs, differ = distances.copy(), np.flatnonzero((distances > 0) & ~same)
    shares = np.empty(len(differ))
    sides = left.take(differ), right.take(differ)
    loops.unmatched_shares(*(side.view for side in sides), left.space.letters, shares)
    costs[differ] += left.space.penalty * shares
    return costs


def take_words(
    text: np.ndarray, starts: np.ndarray, words: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    starts, text = take_lists(starts, text, words)
    return text, starts
