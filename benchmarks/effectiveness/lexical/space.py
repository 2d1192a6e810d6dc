"""The sparse space of values: words made of n-grams, values made of words.

A word w has the unit vector ``u(w)``: a share ``1 - sigma`` of its squared length is its features,
the counts of each kind times a small whole number, and ``sigma`` is the word itself. A value is
the sum over its words of ``weight(w) * u(w)``, brought to unit length. All sums are float64. So two
words are as similar as ``(1 - sigma) * cosine of counts + sigma * [same word]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from benchmarks.effectiveness.lexical.grams import WordGrams, counted
from embed.lexical.hashing import create
from embed.lexical.weights import MOST_OF_A_NUMBER

N_GRAMS = {"2": 1, "3": 1, "4": 1}
PLACED_PAIRS = {"near": 2, "start": 1, "end": 1}


@dataclass(frozen=True)
class LexicalModel:
    """How words and values become vectors.

    Attributes
    ----------
    grams : mapping of str to int
        Kinds of features (`benchmarks.effectiveness.lexical.grams.KINDS`), and by which whole
        number the counts of each are multiplied.
    sigma : float
        The share of a word's squared length that is the word itself, in [0, 1).
    exponent : float
        Of the rarity of a word: ``weight = log(1 + 1 / p) ** exponent``.
    most_of_a_number : int or None
        Occurrences beyond which a word with a digit is not taken to be more common.
    unknown : float
        The weight of a word that the lake lacks, as a multiple of the average weight.
    is_counted : bool
        Whether a feature counts as often as a word has it.
    has_rare_grams : bool
        Whether features are weighted by their rarity among the words.
    has_repeated_words : bool
        Whether a word counts as often as a value has it.
    has_whole_numbers : bool
        Whether a word of 1 to 14 digits and nothing else is itself alone.
    """

    grams: Mapping[str, int]
    sigma: float
    exponent: float = 2.0
    most_of_a_number: int | None = MOST_OF_A_NUMBER
    unknown: float = 1.0
    is_counted: bool = True
    has_rare_grams: bool = False
    has_repeated_words: bool = True
    has_whole_numbers: bool = False


SPELLED = LexicalModel(PLACED_PAIRS, 0.05)
RECOMMENDED = replace(SPELLED, has_whole_numbers=True)


def is_number(word: str) -> bool:
    """Return whether a word is a number that the lexical model takes for a feature of its own.

    Examples
    --------
    >>> is_number("1814"), is_number("1814a"), is_number("1" * 15)
    (True, False, False)
    """
    return word.isascii() and word.isdigit() and len(word) < 15


def weights_of(words: Sequence[str], counts: Mapping[str, int], model: LexicalModel) -> np.ndarray:
    """Return the weights of words in their values, float64.

    Parameters
    ----------
    words : sequence of str
    counts : mapping of str to int
        How often each word of the lake occurs, each distinct value of a column counted once.
    model : LexicalModel
    """
    total = max(sum(counts.values()), 1)
    known = {}
    for word, count in counts.items():
        if model.most_of_a_number is not None and any(map(str.isdigit, word)):
            known[word] = min(count, model.most_of_a_number)
        else:
            known[word] = count
    known = {word: np.log1p(total / n) ** model.exponent for word, n in known.items()}
    average = sum(known[word] * count for word, count in counts.items()) / total if known else 1.0
    return np.array([known.get(word, average * model.unknown) for word in words])


def word_vectors(grams: WordGrams, model: LexicalModel) -> sp.csr_matrix:
    """Return the unit vectors of words, float64 (words, features + words)."""
    parts = []
    for kind, times in model.grams.items():
        counts = grams.counts(kind)
        parts.append((counts if model.is_counted else (counts > 0).astype(float)) * float(times))
    spelled = sp.hstack(parts, "csr")
    if model.has_rare_grams:
        holding = np.asarray((spelled > 0).sum(0)).ravel()
        spelled = spelled @ sp.diags(np.log1p(spelled.shape[0] / np.maximum(holding, 1)))
    sigma = np.full(len(grams.words), model.sigma)
    if model.has_whole_numbers:
        sigma[[is_number(word) for word in grams.words]] = 1.0
    spelled = sp.diags(np.sqrt(1 - sigma)) @ with_unit_rows(spelled)
    vectors = sp.hstack([spelled, sp.diags(np.sqrt(sigma))], "csr")
    vectors.eliminate_zeros()
    return with_unit_rows(vectors)


def value_vectors(
    values: Sequence[str], grams: WordGrams, counts: Mapping[str, int], model: LexicalModel
) -> sp.csr_matrix:
    """Return the unit vectors of values, float64 (values, features + words).

    A value without words has zeros. Every word must be one of `grams`.
    """
    held = counted([value.split() for value in values], grams.number)
    if not model.has_repeated_words:
        held.data[:] = 1
    weights = sp.diags(weights_of(grams.words, counts, model))
    return with_unit_rows(held @ weights @ word_vectors(grams, model))


def projected_vectors(values: Sequence[str], counts: Mapping[str, int], place: str) -> np.ndarray:
    """Return the vectors of the hashing embedder with its defaults, float32 (values, 256).

    Parameters
    ----------
    values : sequence of str
    counts : mapping of str to int
        The words of the lake.
    place : path
        A file for the text that the words are counted in again.
    """
    with open(place, "w", encoding="utf-8") as file:
        file.writelines(f"{' '.join([word] * count)}\n" for word, count in counts.items())
    return create(corpus=place).embed(pa.array(values, pa.string()))


def with_unit_rows(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Bring rows to unit length; rows of zeros stay."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.where(lengths > 0, lengths, 1)) @ matrix)


def cosines_of(distances: Sequence[float] | np.ndarray) -> np.ndarray:
    """Turn distances, as a share of the largest (2), into cosines: ``d**2 = (2 - 2 cos) / 4``."""
    return 1 - 2 * np.square(np.asarray(distances, float)) - 1e-9
