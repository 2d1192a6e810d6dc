"""One partition of sparse vectors: its arrays, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pexeso.engine.lists import Lists
from pexeso.engine.sparse.loops.views import Stored
from pexeso.engine.sparse.space import LetterSpace
from pexeso.engine.sparse.validation import require_inside, require_shapes, require_words
from pexeso.engine.sparse.vectors import SparseVectors

if TYPE_CHECKING:
    import torch

    from pexeso.engine.sparse.torch_rows import DeviceMatrices

BAND = 1.05
"""The largest sum of a band over its smallest."""

FEW_WORDS, LEAST_SHARE = (1.2, 2.0), 0.85
"""Sums between which the share of a band falls from 1, and the least share. Of shares .3 to 1 and
ends 1.5 and 2.5 these took the least time on 281,000 values of web tables, at distances of .2 to
.42."""


@dataclass(frozen=True)
class SparsePartition:
    """The arrays of one partition.

    Shape letters: N stored values, V words, F keys, C columns.

    Attributes
    ----------
    value_sums : numpy.ndarray of shape (N,), float32
        These sums, rounded up.
    word_values : Lists
        The rows of each of the V words, ascending.
    value_shares : numpy.ndarray, uint8
        What the word makes up of each of these rows; see
        `pexeso.engine.sparse.building.lists_of_values`.
    keys : numpy.ndarray of shape (F,), int64
        Pairs of characters with their blocks, ascending; see
        `pexeso.engine.sparse.loops.word_loops.write_keys`.
    key_words : Lists
        The words of each key, ascending; a word is there as often as it has it.
    device : torch.device or None
        Where values are compared; None where it is not of torch: on the CPU, by compiled loops.
    """

    vectors: SparseVectors
    value_sums: np.ndarray
    word_values: Lists
    value_shares: np.ndarray
    keys: np.ndarray
    key_words: Lists
    value_lists: Lists
    column_lists: Lists
    device: torch.device | None = None

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        space: LetterSpace,
        device: torch.device | None = None,
    ) -> SparsePartition:
        """View the arrays of `pexeso.engine.sparse.building.build_partition`.

        Nothing is copied. What is there of each word is read and looked at, some 20 bytes; numbers
        that lead from words to values and back are looked at where they are used.
        """
        # Plain arrays are handed over to compiled loops without Python looking at each.
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        require_shapes(arrays)
        require_words(arrays)
        vectors = SparseVectors(
            space,
            *(arrays[f"word_{name}"] for name in ("text", "starts", "weights", "squares")),
            arrays["value_words_offsets"],
            arrays["value_words_members"],
            arrays["value_norms"],
        )
        names = ("word_values", "key_words", "value_columns", "column_values")
        words, keys, values, columns = (
            Lists(arrays[f"{name}_offsets"], arrays[f"{name}_members"]) for name in names
        )
        return cls(
            vectors,
            arrays["value_sums"],
            words,
            arrays["word_values_shares"],
            arrays["keys"],
            keys,
            values,
            columns,
            device,
        )

    @cached_property
    def matrices(self) -> DeviceMatrices:
        """What is on the device."""
        from pexeso.engine.sparse.torch_rows import DeviceMatrices  # brings torch

        return DeviceMatrices.of(self)

    @property
    def n_values(self) -> int:
        """N: distinct values with a vector."""
        return len(self.vectors)

    @property
    def n_words(self) -> int:
        """V: distinct words."""
        return len(self.vectors.weights)

    @property
    def n_columns(self) -> int:
        """C: columns, those without any vector included."""
        return len(self.column_lists)

    @property
    def pages(self) -> None:
        """Nothing: the system reads ahead by itself."""

    @property
    def space(self) -> LetterSpace:
        """How words are compared."""
        return self.vectors.space

    @cached_property
    def longest_word(self) -> int:
        """Bytes of the longest word."""
        return int(np.diff(self.vectors.starts).max(initial=0))

    @cached_property
    def most_value_words(self) -> int:
        """Words of the value that has most."""
        offsets = self.vectors.offsets
        require_inside(offsets, len(self.vectors.members), "value_words")
        return int(np.diff(offsets).max(initial=0))

    @cached_property
    def scales(self) -> np.ndarray:
        """(1 - share of whole words) over the length of each word, float32 (V,)."""
        return (self.space.letters / np.sqrt(self.vectors.squares)).astype(np.float32)

    @cached_property
    def factors(self) -> np.ndarray:
        """The scale of each word times its weight, float32 (V,)."""
        return (self.scales * self.vectors.weights).astype(np.float32)

    @cached_property
    def value_lengths(self) -> np.ndarray:
        """The length of each value, float32 (N,)."""
        return np.sqrt(self.vectors.norms).astype(np.float32)

    @cached_property
    def stored(self) -> Stored:
        """What compiled loops go through."""
        vectors, (words, keys) = self.vectors, (self.word_values, self.key_words)
        return Stored(
            vectors.text, vectors.starts, vectors.weights, vectors.squares,
            self.scales, self.factors, self.reach, self.first_bands,
            self.keys, keys.offsets, keys.members,
            words.offsets, words.members, self.value_shares,
            vectors.offsets, vectors.members, vectors.norms, self.value_lengths, *self.bands,
        )  # fmt: skip

    @cached_property
    def bands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bands of rows of about equal sums.

        Returns
        -------
        ends : numpy.ndarray of shape (K,), int64
            The first row after each band; K is at least 1.
        sums : numpy.ndarray of shape (K,), float32
            The largest sum of each band.
        shares : numpy.ndarray of shape (K,), float32
            See `pexeso.engine.sparse.loops.row_loops.collect_rows`.
        """
        if not self.n_values:
            return np.zeros(1, np.int64), np.ones(1, np.float32), np.ones(1, np.float32)
        starts, row = [], 0
        while row < self.n_values:
            starts.append(row)
            smallest = -self.value_sums[row] / np.float32(BAND)
            after = np.searchsorted(-self.value_sums, smallest, side="right")
            row = max(row + 1, int(after))
        sums = self.value_sums[starts].astype(np.float32)
        return np.array([*starts[1:], self.n_values], np.int64), sums, share_of(sums)

    @cached_property
    def first_bands(self) -> np.ndarray:
        """The band of the first value of each word, uint8 (V,); 0 for a word without."""
        first = self.word_values.offsets[:-1]
        filled = self._is_filled
        rows = np.zeros(self.n_words, np.int64)
        rows[filled] = self.word_values.members[first[filled]]
        ends, _, _ = self.bands
        return np.minimum(np.searchsorted(ends, rows, side="right"), len(ends) - 1).astype(np.uint8)

    @property
    def _is_filled(self) -> np.ndarray:
        """Which words have values."""
        return self.word_values.offsets[1:] > self.word_values.offsets[:-1]

    @cached_property
    def reach(self) -> np.ndarray:
        """What a word's nearness is held against, float32 (V,).

        Its scale times the largest sum of its values over the share of that sum's band, rounded up.
        """
        _, sums, shares = self.bands
        largest = np.where(self._is_filled, (sums / shares)[self.first_bands], 0.0)
        return (largest * self.scales * np.float32(1 + 2**-20)).astype(np.float32)


def share_of(sums: np.ndarray) -> np.ndarray:
    """Return the part of ``floor / sum`` from which on the words of a row count, float32.

    1 for values of few words; the more words there are, the likelier one of them is near by chance.
    """
    few, many = FEW_WORDS
    inside = np.clip((sums - few) / (many - few), 0.0, 1.0)
    return (1.0 - (1.0 - LEAST_SHARE) * inside).astype(np.float32)
