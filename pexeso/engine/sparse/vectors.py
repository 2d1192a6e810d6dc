"""Values as bags of words, which are sparse vectors of features of letters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.sparse.loops import key_loops, product_loops
from pexeso.engine.sparse.space import LetterSpace, fractions_of
from pexeso.errors import InputError
from pexeso.runtime.ranges import offsets_of, ranges

_SIMILARITIES_AT_ONCE = 1 << 22
"""Of words, 32 MiB."""

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
    """

    space: LetterSpace
    text: np.ndarray
    starts: np.ndarray
    weights: np.ndarray
    squares: np.ndarray
    offsets: np.ndarray
    members: np.ndarray
    norms: np.ndarray

    @classmethod
    def from_words(
        cls,
        space: LetterSpace,
        text: np.ndarray,
        starts: np.ndarray,
        weights: np.ndarray,
        offsets: np.ndarray,
        members: np.ndarray,
    ) -> SparseVectors:
        """Make the vectors of values from their words."""
        weights = np.ascontiguousarray(weights, np.float32)
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError("The weights of words must be finite and above 0.")
        starts, offsets = (np.ascontiguousarray(array, np.int64) for array in (starts, offsets))
        members = np.ascontiguousarray(members, np.int32)
        squares = np.zeros(len(starts) - 1, np.int64)
        key_loops.count_squares(text, starts, squares)
        norms = np.zeros(len(offsets) - 1)
        product_loops.value_squares(
            text, starts, weights, squares, offsets, members,
            space.letters, 0, len(norms), norms,
        )  # fmt: skip
        return cls(space, text, starts, weights, squares, offsets, members, norms)

    @classmethod
    def empty(cls, space: LetterSpace) -> SparseVectors:
        """Return the vectors of no values."""
        none, whole = np.zeros(0, np.uint8), np.zeros(1, np.int64)
        return cls.from_words(space, none, whole, np.zeros(0), whole, np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.norms)

    @property
    def is_known(self) -> np.ndarray:
        """Which values have words, bool (n,)."""
        return self.norms > 0

    def sizes_in_letters(self) -> np.ndarray:
        """Return the bytes of the words of each value, int64 (n,)."""
        ends = offsets_of(np.diff(self.starts)[self.members])
        return ends[self.offsets[1:]] - ends[self.offsets[:-1]]

    def __getitem__(self, rows: Rows) -> SparseVectors:
        """Return some of the values, with the words that they have."""
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        return self.take(np.arange(len(self))[rows])

    def take(self, rows: np.ndarray) -> SparseVectors:
        """Return the values of some rows, int64, with the words that they have."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        offsets = offsets_of(sizes)
        members = self.members[ranges(self.offsets[rows], sizes)]
        used, members = np.unique(members, return_inverse=True)
        text, starts = take_words(self.text, self.starts, used)
        return SparseVectors(
            self.space,
            text,
            starts,
            self.weights[used],
            self.squares[used],
            offsets,
            members.astype(np.int32),
            self.norms[rows],
        )

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
        text, starts = take_words(
            *(np.concatenate(arrays) for arrays in _texts_together(parts)), first
        )
        return cls(
            parts[0].space,
            text,
            starts,
            np.concatenate([part.weights for part in parts])[first],
            np.concatenate([part.squares for part in parts])[first],
            offsets_of(sizes),
            np.concatenate(members),
            np.concatenate([part.norms for part in parts]),
        )

    @property
    def words(self) -> pa.LargeBinaryArray:
        """The words; nothing is copied."""
        buffers = [None, pa.py_buffer(self.starts), pa.py_buffer(self.text)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self.weights), buffers)

    def distances(self, others: SparseVectors) -> np.ndarray:
        """Return all distances to other values by the definition, float64 (n, m).

        They are fractions of the largest distance; infinite where a value has no words.
        """
        distances = np.empty((len(others), len(self)))
        sizes = np.diff(self.offsets)
        # Runs of values whose words, with all of the others', have a bounded number of products.
        limit = max(1, _SIMILARITIES_AT_ONCE // max(1, len(others.weights)))
        runs = np.cumsum(sizes) // limit
        bounds = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(self)]
        for begin, end in itertools.pairwise(bounds):
            members = self.members[self.offsets[begin] : self.offsets[end]]
            words, places = np.unique(members, return_inverse=True)
            product_loops.value_distances(
                self.text, self.starts, self.weights, self.squares,
                self.offsets[begin : end + 1], self.members, self.norms[begin:end],
                words.astype(np.int64), places,
                others.text, others.starts, others.weights, others.squares,
                others.offsets, others.members, others.norms,
                self.space.letters, np.empty((len(others.weights), end - begin)),
                distances[:, begin:end],
            )  # fmt: skip
        return distances.T


def _texts_together(
    parts: Sequence[SparseVectors],
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return texts, and the starts of their words in all texts one after the other."""
    ends = np.cumsum([0, *(len(part.text) for part in parts)])
    starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
    return [part.text for part in parts], [*starts, ends[-1:]]


def pair_distances(left: SparseVectors, right: SparseVectors) -> np.ndarray:
    """Return the distance of each value to that of the same row by the definition, float64 (n,).

    It is infinite where one has no words.
    """
    space, dots = left.space, np.empty(len(left))
    product_loops.pair_products(
        left.text, left.starts, left.weights, left.squares, left.offsets, left.members,
        right.text, right.starts, right.weights, right.squares, right.offsets, right.members,
        space.letters, dots,
    )  # fmt: skip
    distances, known = np.full(len(left), np.inf), left.is_known & right.is_known
    distances[known] = fractions_of(dots[known], (left.norms * right.norms)[known])
    return distances


def take_words(
    text: np.ndarray, starts: np.ndarray, words: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the text and the starts of some words."""
    sizes = starts[words + 1] - starts[words]
    return np.asarray(text[ranges(starts[words], sizes)]), offsets_of(sizes)
