"""An embedder without training.

Each character n-gram and each word has a random vector of its own, fixed by a seed.

Two words are as close as the share of n-grams they have in common, less where they are not the same
word: the vector of a word is that of its n-grams, as in the module `subword`, and in a fixed share
the row of the bucket that the whole word falls into, so that words of much the same letters are not
the same. The words of the lake are counted, and rare ones count more in a value (module `corpus`).

The rows are signs, drawn at random: sums of such rows keep angles as well as those of normal ones
do (Achlioptas, "Database-friendly random projections", Journal of Computer and System Sciences,
2003), and a table of 65,536 rows of 256 signs is a file of two megabytes.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from embed import stored
from embed.corpus import weighed_words
from embed.subword import MOST_NGRAMS, SubwordEmbedder, count_ngrams, hash_ngrams
from embed.words import hash_strings
from pexeso.errors import EmbedderError, InputError
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import runs_within

loops = compiled("embed.loops")

MIN_N, MAX_N = 2, 4
BUCKETS = 1 << 16
DIMENSIONS = 256
WHOLE_WORD_SHARE = 0.25


class HashingEmbedder(SubwordEmbedder):
    """An embedder over a table of random signs. Made by `create`.

    Eight signs are a byte of it: 1 means +1 and 0 means -1. `whole_word_share` of the squared
    length of a word's vector is its own.
    """

    def __init__(
        self,
        signs: np.ndarray,
        dimensions: int,
        words: pa.LargeStringArray,
        weights: np.ndarray | None,
        *,
        min_n: int,
        max_n: int,
        whole_word_share: float,
        notes: dict[str, Any],
        fingerprint: str | None = None,
    ) -> None:
        if (
            signs.ndim != 2
            or signs.dtype != np.uint8
            or dimensions < 1
            or signs.shape[1] != -(-dimensions // 8)
        ):
            raise EmbedderError(
                f"The table of a hashing model of {dimensions} dimensions must be bytes of shape "
                f"(buckets, {-(-dimensions // 8)}); "
                f"got {signs.dtype} of {signs.shape}."
            )
        if not 0 <= whole_word_share < 1:
            raise EmbedderError(
                "The share of whole words in a hashing model must be at least 0 and less than "
                f"1; got {whole_word_share!r}."
            )
        super().__init__(
            "hashing",
            signs,
            words,
            np.zeros(dimensions, np.float32),
            min_n=min_n,
            max_n=max_n,
            weights=weights,
            own_rows=False,
            packed=True,
            notes=notes,
            fingerprint=fingerprint,
        )
        self._whole_word_share = whole_word_share

    @property
    def options(self) -> MappingProxyType[str, Any]:
        """As of `SubwordEmbedder`, with the dimensions and the share of whole words."""
        own_options = {"dimensions": self.dimensions, "whole_word_share": self._whole_word_share}
        return MappingProxyType({**super().options, **own_options})

    @classmethod
    def from_stored(cls, model: stored.StoredModel) -> HashingEmbedder:
        return cls(
            model.array("signs", np.uint8, 2),
            model.option("dimensions", int),
            model.words("words"),
            model.array("weights", np.float32, 1),
            min_n=model.option("min_n", int),
            max_n=model.option("max_n", int),
            whole_word_share=model.option("whole_word_share", float),
            notes=model.option("notes", dict),
            fingerprint=model.fingerprint,
        )

    def _arrays(self) -> dict[str, np.ndarray | pa.LargeStringArray]:
        return {"signs": self._rows, "weights": self._weights, "words": self._vocabulary.words}

    def _average(
        self, words: pa.LargeStringArray, ids: np.ndarray, offsets: np.ndarray, means: np.ndarray
    ) -> None:
        """Write the vectors of words, from their n-grams and, in its share, the row of the word."""
        buckets = self._own_buckets(words)
        loops.sign_means(
            self._rows, loops.LANES, ids, offsets, buckets, self._whole_word_share, means
        )

    def _write_units(
        self, words: pa.LargeStringArray, rows: np.ndarray, weights: np.ndarray, units: np.ndarray
    ) -> None:
        """Write weighted vectors of words without their means: each has few distinct numbers."""
        counts = count_ngrams(words, self._min_n, self._max_n)
        for piece in runs_within(counts, MOST_NGRAMS):
            some = words.slice(piece.start, piece.stop - piece.start)
            hashes, offsets = hash_ngrams(some, self._min_n, self._max_n, counts[piece])
            buckets = self._own_buckets(some)
            loops.sign_units(
                self._rows,
                loops.LANES,
                (hashes % np.uint32(len(self._rows))).astype(np.int64),
                offsets,
                buckets,
                self._whole_word_share,
                weights[piece],
                units[piece],
            )

    def _own_buckets(self, words: pa.LargeStringArray) -> np.ndarray:
        return (hash_strings(words) % np.uint64(len(self._rows))).astype(np.int64)


def create(
    dimensions: int = DIMENSIONS,
    *,
    seed: int = 0,
    buckets: int = BUCKETS,
    whole_word_share: float = WHOLE_WORD_SHARE,
    corpus: str | Path | None = None,
) -> HashingEmbedder:
    """Make the untrained embedder; the same seed gives the same bytes on every machine."""
    for name, number, minimum in (("dimensions", dimensions, 1), ("seed", seed, 0)):
        if not isinstance(number, int) or number < minimum:
            raise InputError(
                f"The {name} of a hashing embedder must be a whole number of at least {minimum}; "
                f"got {number!r}."
            )
    return HashingEmbedder(
        _random_signs(buckets, dimensions, seed),
        dimensions,
        *weighed_words(corpus),
        min_n=MIN_N,
        max_n=MAX_N,
        whole_word_share=float(whole_word_share),
        notes={"seed": seed},
    )


@lru_cache(maxsize=1)
def _sketch_signs(dimensions: int) -> np.ndarray:
    return _random_signs(BUCKETS, dimensions, 0)


def sketcher(words: pa.LargeStringArray, weights: np.ndarray, dimensions: int) -> HashingEmbedder:
    """Make the embedder whose dense vectors are a sketch of a lexical model's sparse ones."""
    return HashingEmbedder(
        _sketch_signs(dimensions),
        dimensions,
        words,
        weights,
        min_n=2,
        max_n=3,
        whole_word_share=0.0,
        notes={},
        fingerprint="",
    )


def _random_signs(buckets: int, dimensions: int, seed: int) -> np.ndarray:
    # Philox is defined by its paper bit for bit, and its raw numbers take no library function of
    # the machine.
    width = -(-dimensions // 8)
    raw = np.random.Philox(seed).random_raw(-(-buckets * width // 8)).astype("<u8")
    return raw.view(np.uint8)[: buckets * width].reshape(buckets, width)
