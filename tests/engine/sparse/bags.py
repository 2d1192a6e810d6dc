"""Values as bags of words for tests, and the definition of their distances in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from embed.words import split_words
from pexeso.engine.sparse.vectors import LetterSpace, SparseVectors
from pexeso.runtime.buffers import string_buffers

SPACE = LetterSpace(0.1)

LONG = [
    "a" * 10_000,
    "a" * 9_999,
    "a" * 9_999 + "b",
    "qw" * 5_000,
    "".join(chr(0x4E00 + 7 * n % 20_000) for n in range(10_000)),
    "".join(chr(0x4E00 + 7 * n % 20_000) for n in range(10_000) if n != 5_000),
    "ab" * 5_000 + " " + "a" * 10_000,
    " ".join(["abcd" * 50] * 50),
    " ".join(["abcd" * 50] * 49) + " abce",
    " ".join(f"{n:b}" * 20 for n in range(500, 560)),
    "a",
    "abcd",
    "😀" * 3_333,
]
"""Values of ten thousand letters: of one letter, of pairs, of many letters, of many words."""


@cache
def weight_of(word: str) -> float:
    """Weigh a word by its letters: any float32 above 0 will do."""
    return float(np.float32(0.25 + (sum(word.encode()) % 97) / 16))


def vectors_of(values: Sequence[str], space: LetterSpace = SPACE) -> SparseVectors:
    """Return the vectors of values under the weights of `weight_of`."""
    index = split_words(pa.array(values, pa.large_string()))
    text, starts = string_buffers(index.words)
    weights = np.array([weight_of(word) for word in index.words.to_pylist()], np.float32)
    begin = int(starts[0])
    return SparseVectors.from_words(
        space,
        np.ascontiguousarray(text[begin : int(starts[-1])]),
        starts - begin,
        weights,
        index.offsets,
        index.word_ids,
    )


@cache
def features_of(word: str) -> Counter[tuple]:
    """Count the features of a word: pairs of characters at most two apart, and pairs in blocks."""
    if word.isascii() and word.isdigit() and len(word) < 15:
        places = (word, "from the beginning", 0), (word, "from the end", 0)
        return Counter({(word, "number"): 1, **dict.fromkeys(places, 1)})
    letters, features = ["begin", *word, "end"], Counter()
    for first in range(len(letters)):
        for second in letters[first + 1 : first + 3]:
            pair = letters[first], second
            features[pair] += 1
            features[pair, "from the beginning", min(first // 3, 63)] += 1
            features[pair, "from the end", min((len(letters) - first) // 3, 63)] += 1
    return features


@cache
def common_features(word: str, other: str) -> int:
    """Return the dot product of the counts of two words: pairs count four times."""
    ours, theirs = sorted((features_of(word), features_of(other)), key=len)
    return sum(
        count * theirs[feature] * (1 if len(feature) == 3 else 4) for feature, count in ours.items()
    )


@cache
def alike(word: str, other: str, whole_word_share: float) -> float:
    """Return how alike two words are, from 0 to 1."""
    if word == other:
        return 1.0
    squares = (float(common_features(text, text)) for text in (word, other))
    common = common_features(*sorted((word, other)))
    return (1.0 - whole_word_share) * (common / math.sqrt(math.prod(squares)))


def dot(words: Sequence[str], others: Sequence[str], space: LetterSpace) -> float:
    """Return the dot product of two bags of words."""
    total = 0.0
    for other in others:
        nearness = 0.0
        for word in words:
            nearness += weight_of(word) * alike(word, other, space.whole_word_share)
        total += weight_of(other) * nearness
    return total


@cache
def square_of(words: tuple[str, ...], space: LetterSpace) -> float:
    """Return the dot product of a bag of words with itself."""
    return dot(words, words, space)


def distance_of(left: str, right: str, space: LetterSpace = SPACE) -> float:
    """Return the distance of two values as `pexeso.engine.sparse.vectors` defines it."""
    mine, theirs = (tuple(sorted(value.split(), key=str.encode)) for value in (left, right))
    if not mine or not theirs:
        return math.inf
    squares = square_of(mine, space), square_of(theirs, space)
    cosine = dot(mine, theirs, space) / math.sqrt(math.prod(squares))
    return math.sqrt(max(1.0 - cosine, 0.0) * 0.5)


def unmatched_share(left: str, right: str, space: LetterSpace = SPACE) -> float:
    """Return the lesser share of two values that is like no word of the other."""
    shares = []
    for words, others in ((left.split(), right.split()), (right.split(), left.split())):
        weights = [weight_of(word) for word in words]
        near = [
            max(alike(word, other, space.whole_word_share) for other in others) for word in words
        ]
        missing = sum(weight * (1 - nearest) for weight, nearest in zip(weights, near, strict=True))
        shares.append(missing / sum(weights))
    return min(shares)


def distances_of(
    values: Sequence[str], others: Sequence[str], space: LetterSpace = SPACE
) -> np.ndarray:
    """Return all distances of two lists of values."""
    distances = [[distance_of(value, other, space) for other in others] for value in values]
    return np.array(distances).reshape(len(values), len(others))
