"""The lexical model: values as bags of words, compared by spelling.

A word counts more, the rarer it is in the lake (module `corpus`), and two words are as similar as
the pairs of letters that they share; `pexeso.engine.sparse.vectors` defines it. The model is the
words of the lake and their weights: there is nothing to train, and no vector is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed import stored
from embed.corpus import weighed_words
from embed.protocol import Values
from embed.spelling import spellings
from embed.words import Vocabulary, as_strings, split_words
from pexeso.runtime.buffers import string_buffers

if TYPE_CHECKING:
    from embed.hashing import HashingEmbedder

WHOLE_WORD_SHARE = 0.05

# The distinction that ranks pairs, rather than telling values apart, and what it adds at most.
UNMATCHED_WORDS, PENALTY = "unmatched-words", 0.3
SKETCH_DIMENSIONS = 32

# Legal forms of companies, and what they count of a word as rare: names are the same without them,
# and by its letters "Nova Energy KG" would be nearer to "Nova Optik KG" than to "Nova Energy Inc."
COMPANY_FORMS = (
    "inc", "ltd", "llc", "llp", "lp", "plc", "corp", "co", "gmbh", "ag", "kg", "kgaa", "ohg", "ug",
    "se", "sa", "sas", "sarl", "srl", "sl", "spa", "nv", "bv", "ab", "as", "asa", "aps", "oy",
    "oyj", "pty", "pte", "bhd", "kk",
)  # fmt: skip
FORM_WEIGHT = 0.2

SPELLED = "\x1f"

# What is no part of a word, and signs of currencies next to words, which only tell values apart.
_CONTROL = r"[\x00-\x1f]|[$\x{20ac}\xa3\xa5\x{20b9}] | [$\x{20ac}\xa3\xa5\x{20b9}]"
_WRITTEN_OUT = r"([aou])e([bcdfghjklmnpqrstvwxyz])"


@dataclass(frozen=True)
class WeightedWords:
    """The words of n values."""

    # uint8: the u distinct words one after the other, in UTF-8, in the order of their bytes; with
    # their spelling where it differs, see `spelled_words`
    text: np.ndarray
    starts: np.ndarray  # int64 (u + 1,): word i is ``text[starts[i]:starts[i + 1]]``
    weights: np.ndarray  # float32 (u,)
    # int64 (n + 1,), int32: words of value i are ``members[offsets[i]:offsets[i + 1]]``, ascending
    offsets: np.ndarray
    members: np.ndarray


class LexicalEmbedder(stored.ArrayModel):
    """The lexical model. Made by `create`.

    The last weight is for words that are not among the others. By the rules of `distinctions`
    values are apart, whatever words they have; who encodes values applies them.
    """

    kind = "lexical"
    dimensions = SKETCH_DIMENSIONS

    def __init__(
        self,
        words: pa.LargeStringArray,
        weights: np.ndarray,
        *,
        whole_word_share: float,
        distinctions: Sequence[str] = (),
        notes: dict[str, Any],
        fingerprint: str | None = None,
    ) -> None:
        stored.check_weights(self.kind, weights, len(words))
        self._words, self._weights = Vocabulary(words), weights
        self.distinctions = tuple(distinctions)
        penalty = PENALTY if UNMATCHED_WORDS in self.distinctions else 0.0
        self.space = {"whole_word_share": whole_word_share, "penalty": penalty}
        self._notes, self._fingerprint = dict(notes), fingerprint

    @property
    def options(self) -> MappingProxyType[str, Any]:
        """The share of whole words, what tells values apart, and how the model was made."""
        named = {"distinctions": list(self.distinctions), "notes": self._notes}
        return MappingProxyType({"whole_word_share": self.space["whole_word_share"], **named})

    def encode(self, values: Values) -> WeightedWords:
        """Split values into words, and look up what each word counts."""
        values = as_strings(values)
        if pc.any(pc.match_substring_regex(values, _CONTROL)).as_py():
            # A control character would be taken for `SPELLED`, or come before it.
            values = pc.replace_substring_regex(values, _CONTROL, " ")
        index = split_words(values)
        text, starts = string_buffers(spelled_words(index.words))
        begin = int(starts[0]) if len(starts) else 0
        weights = self._weights[self._words.find(index.words)]
        return WeightedWords(
            np.ascontiguousarray(text[begin : int(starts[-1])]),
            np.ascontiguousarray(starts - begin),
            np.ascontiguousarray(weights, np.float32),
            index.offsets,
            index.word_ids,
        )

    def embed(self, values: Values) -> np.ndarray:
        """Return a dense sketch of each value, float32 (n, `SKETCH_DIMENSIONS`).

        It keeps distances roughly, which is enough to put similar columns together; no search
        compares it.
        """
        return self._sketcher.embed(values)

    @cached_property
    def _sketcher(self) -> HashingEmbedder:
        from embed.hashing import sketcher

        return sketcher(self._words.words, self._weights, self.dimensions)

    @classmethod
    def from_stored(cls, model: stored.StoredModel) -> LexicalEmbedder:
        return cls(
            model.words("words"),
            model.array("weights", np.float32, 1),
            whole_word_share=model.option("whole_word_share", float),
            distinctions=model.option("distinctions", list),
            notes=model.option("notes", dict),
            fingerprint=model.fingerprint,
        )

    def _arrays(self) -> dict[str, np.ndarray | pa.LargeStringArray]:
        return {"weights": self._weights, "words": self._words.words}


def create(
    *, corpus: str | Path | None = None, distinctions: Sequence[str] = ()
) -> LexicalEmbedder:
    """Make the lexical model; rare words of a corpus count more in a value."""
    words, weights = _with_light_forms(*weighed_words(corpus))
    return LexicalEmbedder(
        words, weights, whole_word_share=WHOLE_WORD_SHARE, distinctions=distinctions, notes={}
    )


def _with_light_forms(
    words: pa.LargeStringArray, weights: np.ndarray
) -> tuple[pa.LargeStringArray, np.ndarray]:
    forms = pa.array(COMPANY_FORMS, pa.large_string())
    words = pa.concat_arrays([words, forms.filter(pc.invert(pc.is_in(forms, words)))])
    # The last weight is that of all other words.
    weights = np.append(weights, np.full(len(words) + 1 - len(weights), weights[-1]))
    is_form = pc.is_in(words, forms).to_numpy(zero_copy_only=False)
    weights[:-1][is_form] *= FORM_WEIGHT
    return words, weights.astype(np.float32)


def spelled_words(words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Add their spellings to distinct words, in Latin letters.

    A word that is spelled otherwise than it is written, such as a Cyrillic one, becomes the word,
    the sign `SPELLED`, and the spelling. Words of one spelling have all letters in common and are
    not the same, so that they are near each other: by no more than the share of whole words.

    `embed.spelling` spells them. ``ae``, ``oe`` and ``ue`` before a consonant
    are spelled as one letter, since German names are written with them or without.
    """
    spelled = pc.replace_substring_regex(spellings(words), _WRITTEN_OUT, r"\1\2")
    differs = pc.and_(pc.not_equal(spelled, words), pc.not_equal(spelled, ""))
    if not pc.any(differs).as_py():
        return words
    both = pc.binary_join_element_wise(words, spelled, pa.scalar(SPELLED, pa.large_string()))
    return pc.if_else(differs, both, words)
