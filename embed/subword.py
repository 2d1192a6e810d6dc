"""Embedding of values with a table of word rows and n-gram rows, for fastText, hashing and GloVe.

The vector of a word is the mean of the rows it has (its own row, if it is in the vocabulary, and
one row for each of its character n-grams) minus the centre, brought to length 1. The vector of a
value is the mean of its words' vectors, each times the weight of the word, brought to length 1.
Weights are all 1, or higher for rare words (module `corpus`).

Why the centre: vectors trained on a small corpus share one long common component, so that every two
words look alike. Taking the mean word vector away leaves what distinguishes words. A word whose
mean *is* the centre keeps nothing, and a value with only such words gets zeros, just like a value
of which nothing is known; the same happens when the words of a value cancel out.

Equal values get equal bits, whatever batch they are in and however many threads run: each sum runs
over one word's or value's own rows in a fixed order, words of a value are summed in alphabetical
order, and float64 is rounded to float32 once, at the end.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from embed import stored
from embed.protocol import Values
from embed.words import Vocabulary, WordIndex, as_strings, split_words
from pexeso.errors import EmbedderError
from pexeso.runtime.buffers import string_buffers
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import runs_within

loops = compiled("embed.loops")

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
    """Hash all n-grams of all words, exactly as fastText does.

    A word is written between ``<`` and ``>``; its n-grams are those of ``min_n`` to ``max_n``
    characters (not bytes), and each is hashed over its UTF-8 bytes with the 32-bit FNV-1a function,
    where fastText widens every byte as a *signed* number (Bojanowski, Grave, Joulin, Mikolov, TACL
    2017, section 3.2, and the program published with it).

    The hashes of word i are ``hashes[offsets[i]:offsets[i + 1]]``, by first character, then by
    length. `counts` is what `count_ngrams` gives, where it is known.
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


WORKING_BYTES = 128 << 20
"""Most memory for the vectors of the distinct words of a piece of a batch, unless one value needs
more."""

_TEXT_BYTES, _BYTES_PER_VALUE = 8 << 20, 16
"""Text that is split into words at a time, with so many bytes added for each value."""

MOST_NGRAMS = (8 << 20) // 64
"""N-grams of the words that are hashed at a time: their memory fits a cache, with 64 bytes for
each: its place in the hashing table and mask, its row as int64, and slack."""

_VALUES_PER_BLOCK = 1 << 13
"""Values that are summed at a time; words of one block alone share the memory for their vectors."""

_WORDS_PER_MEAN = 1 << 16
_WORDS_PER_BLOCK = 1 << 12
"""Words whose means are taken at a time, to be still in the cache when they are weighted."""


class SubwordEmbedder(stored.ArrayModel):
    """An embedder that averages rows of a table: first those of its words, then of n-gram buckets.

    Made by the modules `fasttext`, `hashing` and `glove`. With `own_rows` False words have no rows.
    The `centre` is taken away from each word's mean. The last weight is that of words which are not
    in the vocabulary. `packed` rows are read by a subclass in `_average`, and are not float32.
    """

    def __init__(
        self,
        kind: str,
        rows: np.ndarray,
        words: pa.LargeStringArray,
        centre: np.ndarray,
        *,
        min_n: int,
        max_n: int,
        weights: np.ndarray | None = None,
        own_rows: bool = True,
        packed: bool = False,
        notes: dict[str, Any] | None = None,
        fingerprint: str | None = None,
    ) -> None:
        weights = np.ones(len(words) + 1, np.float32) if weights is None else weights
        if not packed:
            _check_table(kind, rows, centre)
        _check_lengths(kind, len(rows), len(words) if own_rows else 0, min_n, max_n)
        stored.check_weights(kind, weights, len(words))
        self.kind = kind
        self._rows = rows
        self._centre, self.dimensions = centre, len(centre)
        self._vocabulary = Vocabulary(words)
        self._weights = weights
        self._smallest_weight = float(weights.min())
        self._own_rows = own_rows
        self._min_n, self._max_n = min_n, max_n
        self._notes = dict(notes or {})
        self._fingerprint = fingerprint

    @property
    def options(self) -> MappingProxyType[str, Any]:
        """The n-gram lengths and how the model was made, as saved in `embedder.json`."""
        lengths = {"min_n": self._min_n, "max_n": self._max_n}
        return MappingProxyType({**lengths, "own_rows": self._own_rows, "notes": self._notes})

    def embed(self, values: Values) -> np.ndarray:
        """Embed values; see :meth:`embed.protocol.Embedder.embed`.

        Memory besides the table and the answer: less than twice `WORKING_BYTES`, or what the
        longest single value needs.
        """
        strings = as_strings(values)
        result = np.empty((len(strings), self.dimensions), np.float32)
        sizes = pc.binary_length(strings).to_numpy(zero_copy_only=False) + _BYTES_PER_VALUE
        for run in runs_within(sizes, _TEXT_BYTES):
            self._embed_into(result[run], strings.slice(run.start, run.stop - run.start))
        return result

    @classmethod
    def from_stored(cls, model: stored.StoredModel) -> SubwordEmbedder:
        return cls(
            model.kind,
            model.array("rows", np.float32, 2),
            model.words("words"),
            model.array("centre", np.float32, 1),
            min_n=model.option("min_n", int),
            max_n=model.option("max_n", int),
            weights=model.array("weights", np.float32, 1),
            own_rows=model.option("own_rows", bool),
            notes=model.option("notes", dict),
            fingerprint=model.fingerprint,
        )

    def word_means(self, words: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray]:
        """Return the plain mean of each word's rows, before centring, and whether it has any.

        fastText calls it the word vector.
        """
        return self._means(words, self._vocabulary.find(words))

    def _means(self, words: pa.LargeStringArray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Average the rows of words that were looked up already; see `word_means`."""
        word_rows = rows if self._own_rows else np.full(len(words), -1, np.int64)
        counts = count_ngrams(words, self._min_n, self._max_n) + (word_rows >= 0)
        means = np.empty((len(words), self.dimensions), np.float32)
        for piece in runs_within(counts, MOST_NGRAMS):
            some = words.slice(piece.start, piece.stop - piece.start)
            self._average(some, *self._row_ids(some, word_rows[piece]), means[piece])
        return means, counts > 0

    def _average(
        self, words: pa.LargeStringArray, ids: np.ndarray, offsets: np.ndarray, means: np.ndarray
    ) -> None:
        """Write the mean of each word's rows, or zeros for a word without rows."""
        with torch.inference_mode():
            means[:] = torch.nn.functional.embedding_bag(
                torch.from_numpy(ids),
                torch.from_numpy(self._rows),
                torch.from_numpy(offsets),
                mode="mean",
                include_last_offset=True,
            ).numpy()

    def _arrays(self) -> dict[str, np.ndarray | pa.LargeStringArray]:
        arrays = {"rows": self._rows, "centre": self._centre, "weights": self._weights}
        return {**arrays, "words": self._vocabulary.words}

    def _row_ids(
        self, words: pa.LargeStringArray, word_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the row ids of each word, its own first, and where those of each word begin."""
        hashes, starts = hash_ngrams(words, self._min_n, self._max_n)
        first = len(self._vocabulary) if self._own_rows else 0
        ids = hashes.astype(np.int64)
        if len(hashes):
            ids = first + (hashes % np.uint32(len(self._rows) - first)).astype(np.int64)
        known = np.flatnonzero(word_rows >= 0)
        if len(known):
            ids = np.insert(ids, starts[known], word_rows[known])
        return ids, starts + np.append(0, np.cumsum(word_rows >= 0))

    def _embed_into(self, result: np.ndarray, values: pa.LargeStringArray) -> None:
        """Embed values into `result`, halving the task while it has too many words."""
        index = split_words(values)
        shared, alone, ends = _words_by_block(index, _VALUES_PER_BLOCK)
        sizes = np.diff(ends)
        n_rows = len(shared) + int(sizes.max(initial=0))
        if n_rows * 8 * self.dimensions > WORKING_BYTES and len(values) > 1:
            half = len(values) // 2
            self._embed_into(result[:half], values.slice(0, half))
            self._embed_into(result[half:], values.slice(half))
            return
        # Most words are in one block of values: these take turns in the last rows, which stay in
        # the cache.
        units, row = np.empty((n_rows, self.dimensions)), np.empty(len(index.words), np.int64)
        row[shared] = np.arange(len(shared))
        row[alone] = len(shared) + np.arange(len(alone)) - np.repeat(ends[:-1], sizes)
        rows = row[index.word_ids]
        self._write_weighted(index.words.take(pa.array(shared)), units[: len(shared)])
        for number, start in enumerate(range(0, len(values), _VALUES_PER_BLOCK)):
            words = alone[ends[number] : ends[number + 1]]
            self._write_weighted(
                index.words.take(pa.array(words)), units[len(shared) : len(shared) + len(words)]
            )
            offsets = index.offsets[start : start + _VALUES_PER_BLOCK + 1]
            loops.sum_words(
                units,
                rows,
                offsets,
                self._smallest_weight,
                result[start : start + _VALUES_PER_BLOCK],
            )

    def _write_weighted(self, words: pa.LargeStringArray, units: np.ndarray) -> None:
        """Write centred words scaled to the length of their weight, float64 (u, dimensions)."""
        if not len(words):
            return
        rows = self._vocabulary.find(words)
        # The last weight is that of a word not found, whose place is -1.
        weights = self._weights[rows]
        for start in range(0, len(words), _WORDS_PER_BLOCK):
            block = slice(start, start + _WORDS_PER_BLOCK)
            self._write_units(
                words.slice(start, _WORDS_PER_BLOCK), rows[block], weights[block], units[block]
            )

    def _write_units(
        self, words: pa.LargeStringArray, rows: np.ndarray, weights: np.ndarray, units: np.ndarray
    ) -> None:
        """Write the vectors of words already looked up, each scaled to the length of its weight."""
        means, known = self._means(words, rows)
        loops.weighted_units(means, known, self._centre, weights, units)


def _words_by_block(index: WordIndex, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide words into those in several blocks of so many values and those in one.

    The latter, alone in block i, are ``alone[ends[i]:ends[i + 1]]``.
    """
    n_values = len(index.offsets) - 1
    if n_values <= size:
        n_words = len(index.words)
        return np.zeros(0, np.int64), np.arange(n_words), np.array([0, n_words])
    block_of_id = np.repeat(np.arange(n_values) // size, np.diff(index.offsets))
    first, last = np.empty((2, len(index.words)), np.int64)
    # Of several writes to one place the last one stays.
    first[index.word_ids[::-1]], last[index.word_ids] = block_of_id[::-1], block_of_id
    shared = np.flatnonzero(first != last)
    alone = np.argsort(np.where(first == last, first, -1), kind="stable")[len(shared) :]
    return shared, alone, np.searchsorted(first[alone], np.arange(-(-n_values // size) + 1))


def _check_table(kind: str, rows: np.ndarray, centre: np.ndarray) -> None:
    if rows.ndim != 2 or rows.dtype != np.float32 or rows.shape[1] == 0:
        raise EmbedderError(
            f"The table of a {kind} model must be float32 of shape (rows, dimensions); got "
            f"{rows.dtype} of {rows.shape}."
        )
    if centre.shape != (rows.shape[1],):
        raise EmbedderError(
            f"The centre of a {kind} model has {centre.size} numbers and its rows have "
            f"{rows.shape[1]}."
        )


def _check_lengths(kind: str, n_rows: int, n_own_rows: int, min_n: int, max_n: int) -> None:
    if n_rows < n_own_rows:
        raise EmbedderError(f"A {kind} model has {n_own_rows:,} words and only {n_rows:,} rows.")
    if max_n > 0 and (min_n < 1 or n_rows == n_own_rows):
        raise EmbedderError(
            f"A {kind} model with n-grams of {min_n} to {max_n} characters needs rows for them."
        )


def row_lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the Euclidean length of each row, in float64: (n,)."""
    return np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1))


def normalise_rows(vectors: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Scale each row, float64 (n, dimensions), to length 1, or to zeros where it is only noise.

    The noise is that of sums of the given scale, (n,), the length of what a row was computed from.
    """
    lengths = row_lengths(vectors)
    is_noise = lengths <= loops.VANISHED * scale
    lengths[is_noise] = 1.0
    vectors /= lengths[:, np.newaxis]
    vectors[is_noise] = 0.0
    return vectors


def mean_word_vector(
    rows: np.ndarray,
    words: pa.LargeStringArray,
    *,
    min_n: int,
    max_n: int,
) -> np.ndarray:
    """Return the mean of the plain vectors of all words of a vocabulary: float32 (d,)."""
    plain = SubwordEmbedder(
        "centre", rows, words, np.zeros(rows.shape[1], np.float32), min_n=min_n, max_n=max_n
    )
    total = np.zeros(rows.shape[1])
    for start in range(0, len(words), _WORDS_PER_MEAN):
        means, _ = plain.word_means(words.slice(start, _WORDS_PER_MEAN))
        total += means.sum(axis=0, dtype=np.float64)
    return (total / max(len(words), 1)).astype(np.float32)
