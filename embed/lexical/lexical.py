"""The lexical model: values as bags of words, compared by spelling.

A word counts more, the rarer it is in the lake (module `weights`), and two words are as similar as
the pairs of letters that they share; `pexeso.engine.sparse.space` defines it. The model is the
words of the lake and their weights: there is nothing to train, and no vector is stored.

What two names of one thing share are rare words and spellings, and that is found here better than
by vectors trained on a lake, which hold words to be close that stand in the same columns, such as
two countries; docs/explanation/effectiveness.md tells how much better.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from embed import stored
from embed.corpus import frequent_words
from embed.lexical.weights import rarity
from embed.protocol import Values
from embed.vocabulary import Vocabulary
from embed.words import split_words, string_buffers
from pexeso.errors import EmbedderError

WHOLE_WORD_SHARE = 0.05
MAX_WORDS = 500_000
SKETCH_DIMENSIONS = 32


@dataclass(frozen=True)
class WeightedWords:
    """The words of n values.

    Attributes
    ----------
    text : numpy.ndarray, uint8
        The u distinct words one after the other, in UTF-8, in the order of their bytes.
    starts : numpy.ndarray of shape (u + 1,), int64
        Word i is ``text[starts[i]:starts[i + 1]]``.
    weights : numpy.ndarray of shape (u,), float32
    offsets : numpy.ndarray of shape (n + 1,), int64
    members : numpy.ndarray, int32
        The words of value i are ``members[offsets[i]:offsets[i + 1]]``, ascending.
    """

    text: np.ndarray
    starts: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    members: np.ndarray


class LexicalEmbedder:
    """The lexical model. Made by `create`.

    Parameters
    ----------
    weights : numpy.ndarray of shape (v + 1,), float32
        How much each counts in a value; the last is for words that are not among them.
    """

    kind = "lexical"
    dimensions = SKETCH_DIMENSIONS

    def __init__(
        self,
        words: pa.LargeStringArray,
        weights: np.ndarray,
        *,
        whole_word_share: float,
        notes: dict[str, Any],
        fingerprint: str | None = None,
    ) -> None:
        if weights.shape != (len(words) + 1,):
            raise EmbedderError(
                f"A lexical model with {len(words):,} words needs one weight more; got "
                f"{weights.size:,}."
            )
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise EmbedderError(
                "The weights of the words of a lexical model must be finite and above 0."
            )
        self._words, self._weights = Vocabulary(words), weights
        self.space = {"whole_word_share": whole_word_share}
        self._notes, self._fingerprint = dict(notes), fingerprint

    @property
    def options(self) -> MappingProxyType[str, Any]:
        """The share of whole words and how the model was made."""
        return MappingProxyType({**self.space, "notes": self._notes})

    @property
    def fingerprint(self) -> str:
        """Digest of kind, options and arrays."""
        if self._fingerprint is None:
            self._fingerprint = self.recompute_fingerprint()
        return self._fingerprint

    def recompute_fingerprint(self) -> str:
        """Return the fingerprint of the arrays as they are, reading all of them."""
        return stored.fingerprint(self.kind, dict(self.options), self._arrays())

    def encode(self, values: Values) -> WeightedWords:
        """Split values into words, and look up what each word counts."""
        index = split_words(values)
        text, starts = string_buffers(index.words)
        begin = int(starts[0]) if len(starts) else 0
        weights = self._weights[self._words.find(index.words)]
        return WeightedWords(
            np.ascontiguousarray(text[begin : int(starts[-1])]),
            np.ascontiguousarray(starts - begin),
            np.ascontiguousarray(weights, np.float32),
            index.offsets,
            index.word_ids.astype(np.int32),
        )

    def embed(self, values: Values) -> np.ndarray:
        """Return a dense sketch of each value: a projection to few random dimensions.

        It keeps distances roughly, which is enough to put similar columns together; no search
        compares it. float32 (n, `SKETCH_DIMENSIONS`).
        """
        from embed.lexical.hashing import sketcher

        return sketcher(self._words.words, self._weights, self.dimensions).embed(values)

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder that is new or empty."""
        stored.save(Path(folder), self.kind, dict(self.options), self.fingerprint, self._arrays())

    @classmethod
    def from_stored(cls, model: stored.StoredModel) -> LexicalEmbedder:
        """Make the embedder from what `embed.stored.load` found in a folder."""
        return cls(
            model.words("words"),
            model.array("weights", np.float32, 1),
            whole_word_share=model.option("whole_word_share", float),
            notes=model.option("notes", dict),
            fingerprint=model.fingerprint,
        )

    def _arrays(self) -> dict[str, np.ndarray | pa.LargeStringArray]:
        return {"weights": self._weights, "words": self._words.words}


def create(
    *,
    whole_word_share: float = WHOLE_WORD_SHARE,
    corpus: str | Path | None = None,
    max_words: int = MAX_WORDS,
) -> LexicalEmbedder:
    """Make the lexical model.

    Parameters
    ----------
    corpus : path, optional
        Text whose rare words shall count more in a value; without it all words count alike.

    Examples
    --------
    >>> create().encode(["new york", "york"]).offsets.tolist()
    [0, 2, 3]
    """
    words, weights = pa.array([], pa.large_string()), np.ones(1, np.float32)
    if corpus is not None:
        words, counts, n_tokens = frequent_words(corpus, max_words)
        weights = rarity(words, counts, n_tokens)
    return LexicalEmbedder(words, weights, whole_word_share=whole_word_share, notes={})
