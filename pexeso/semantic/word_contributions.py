"""Contributions of words to a match.

A contribution is how much farther apart two values would lie without the word.

Of every pair each word is left out once, on its own side, and the distance of what is left from the
other value is computed under the model and the metric of the index. What the distance grows by is
the weight of the word; the weights of a side add up to half of the pair, so that each pair counts
as much as any other. A word of one value and the same word of the other, or one near in letters,
count as one. At most `MAX_TEXTS` texts' worth of pairs are summed up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embed.protocol import Embedder
from pexeso.build.parts.metadata import encode_values
from pexeso.engine.vector_space import VectorSpace
from pexeso.results.match_kinds import LEAST_LIKENESS
from pexeso.runtime.formatting import Shown, many, named, percent

MAX_TEXTS = 4096
"""Most texts that are embedded for a column: of a column with more, pairs evenly spread over it are
looked at."""

MAX_WORDS = 32
"""So many different words of a value are left out in turn, the first ones."""

CHUNK_SIZE = 512


@dataclass(frozen=True)
class ContributingWord:
    """A word that two columns share, or one in the values of one side only.

    Attributes
    ----------
    query, value : str or None
        The word, normalised, in the query's values and in those of the lake; they differ where they
        are only near in letters. None where the other side has no such word.
    share : float
        Of the whole match, in [0, 1]; the shares of all words add up to 1.
    pairs : int
        Pairs that it carries.
    """

    query: str | None
    value: str | None
    share: float
    pairs: int

    @property
    def label(self) -> str:
        """The word, both where they differ; a word of one side says whose it is."""
        if self.query is None or self.value is None:
            return f"{self.value} (lake)" if self.query is None else f"{self.query} (yours)"
        return self.query if self.query == self.value else f"{self.query} ~ {self.value}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {**vars(self), "share": round(self.share, 6)}


@dataclass(frozen=True, repr=False)
class WordContributions(Shown):
    """The words that carry a match, and how much of it they were taken from.

    Attributes
    ----------
    words : tuple of ContributingWord
        Heaviest first.
    n_words : int
        How many there are in all.
    pairs_read : int
        Pairs that were looked at, at most `pairs`: all of them unless there are too many.
    pairs : int
        Pairs that the match rests on: the nearest of each query value.
    """

    words: tuple[ContributingWord, ...]
    n_words: int
    pairs_read: int
    pairs: int

    def _summary(self) -> str:
        return f"{many(self.n_words, 'word')}: {named([word.label for word in self.words])}"

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        rows = [[word.label, percent(word.share), word.pairs] for word in self.words]
        return ["word", "share", "pairs"], rows

    @property
    def extent(self) -> str:
        is_all = self.pairs_read == self.pairs
        return "" if is_all else f" (of {self.pairs_read:,} of {self.pairs:,} values)"

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {**vars(self), "words": [word.to_dict() for word in self.words]}


def word_contributions(
    ours: pa.Array, theirs: pa.Array, embedder: Embedder, space: VectorSpace, n: int
) -> WordContributions:
    """Find the words that carry a match, at most `n`.

    Pair i is ``(ours[i], theirs[i])``: normalised values of the query and of the lake. At most
    `MAX_TEXTS` texts are embedded, in one call, whatever the number of pairs; that takes
    milliseconds with word vectors, and seconds with a sentence model.
    """
    rows = _spread(ours, theirs)
    chosen = list(zip(ours.take(rows).to_pylist(), theirs.take(rows).to_pylist(), strict=True))
    sides = [side for pair in chosen for side in _sides(pair)]
    losses = _losses(sides, embedder, space)
    shares: dict[tuple[str | None, str | None], float] = {}
    counts: dict[tuple[str | None, str | None], int] = {}
    for carried in _by_pair(sides, losses):
        for words, share in _put_together(carried).items():
            shares[words] = shares.get(words, 0.0) + share / len(chosen)
            counts[words] = counts.get(words, 0) + 1
    order = sorted(
        shares, key=lambda words: (-shares[words], words[0] or words[1] or "", words[1] or "")
    )
    contributions = tuple(
        ContributingWord(*words, shares[words], counts[words]) for words in order[:n]
    )
    return WordContributions(contributions, len(order), len(chosen), len(ours))


@dataclass(frozen=True)
class _Side:
    value: str
    other: str
    words: tuple[str, ...]
    is_last: bool  # of its pair


def _sides(pair: tuple[str, str]) -> list[_Side]:
    one, other = (tuple(dict.fromkeys(value.split()))[:MAX_WORDS] for value in pair)
    if pair[0] == pair[1]:
        return [_Side(*pair, one, True)]  # the other side is the same
    return [_Side(*pair, one, False), _Side(*pair[::-1], other, True)]


def _spread(ours: pa.Array, lake_texts: pa.Array) -> pa.Array:
    """Choose rows of pairs that together need no more than `MAX_TEXTS` texts."""
    costs = 2 + _at_most_words(ours) + _at_most_words(lake_texts)
    step = max(1, int(costs.sum()) // MAX_TEXTS)
    while costs[::step].sum() > MAX_TEXTS:
        step += 1 + step // 8
    return pa.array(np.arange(0, len(costs), step))


def _at_most_words(values: pa.Array) -> np.ndarray:
    blanks = pc.count_substring(values, " ").to_numpy(zero_copy_only=False).astype(np.int64)
    return np.minimum(blanks + 1, MAX_WORDS)


def _losses(sides: Sequence[_Side], embedder: Embedder, space: VectorSpace) -> list[np.ndarray]:
    """Compute how much the distance of each side's pair grows without each of its words, >= 0."""
    positions: dict[str, int] = {}
    left, right, starts = [], [], [0]
    for side in sides:
        if len(side.words) > 1:  # of a value of one word that word carries all
            every = side.value.split()
            without = [" ".join(one for one in every if one != word) for word in side.words]
            for text in (side.value, *without):
                left.append(positions.setdefault(text, len(positions)))
                right.append(positions.setdefault(side.other, len(positions)))
        starts.append(len(left))
    distances = _distances(list(positions), left, right, embedder, space)
    parts = [distances[start:end] for start, end in pairwise(starts)]
    return [np.maximum(part[1:] - part[0], 0.0) if len(part) else np.zeros(0) for part in parts]


def _distances(
    texts: list[str], left: list[int], right: list[int], embedder: Embedder, space: VectorSpace
) -> np.ndarray:
    if not left:
        return np.zeros(0)
    vectors = encode_values(embedder, pa.array(texts, pa.string()))
    pieces = (slice(begin, begin + CHUNK_SIZE) for begin in range(0, len(left), CHUNK_SIZE))
    distances = [
        space.pair_distances(vectors[np.array(left[some])], vectors[np.array(right[some])])
        for some in pieces
    ]
    return np.concatenate(distances)


def _by_pair(
    sides: Sequence[_Side], losses: Sequence[np.ndarray]
) -> Iterator[list[dict[str, float]]]:
    """Yield, for each pair, the shares of the words of each of its sides, which add up to 1."""
    gathered: list[dict[str, float]] = []
    for side, loss in zip(sides, losses, strict=True):
        total, n_words = loss.sum(), len(side.words)
        # Where no word makes a difference, all carry alike.
        shares = loss / total if total > 0 else np.full(n_words, 1 / max(1, n_words))
        gathered.append(dict(zip(side.words, shares.tolist(), strict=True)))
        if side.is_last:
            yield gathered
            gathered = []


def _put_together(carried: list[dict[str, float]]) -> dict[tuple[str | None, str | None], float]:
    """Return the shares of the words of a pair; a word and its partner count as one."""
    if len(carried) == 1:
        return {(word, word): share for word, share in carried[0].items() if share}
    ours, lake_shares = carried
    partner = _partners(tuple(ours), tuple(lake_shares))
    shares: dict[tuple[str | None, str | None], float] = {}
    for word, share in ours.items():
        shares[word, partner.get(word)] = share / 2
    owner = {other: word for word, other in partner.items()}
    for word, share in lake_shares.items():
        key = (owner.get(word), word)
        shares[key] = shares.get(key, 0.0) + share / 2
    return {words: share for words, share in shares.items() if share}


def _partners(ours: tuple[str, ...], lake_words: tuple[str, ...]) -> dict[str, str]:
    """Find, for words of one value, the same word of the other or the one nearest in letters."""
    from rapidfuzz import fuzz, process

    partners = {word: word for word in ours if word in lake_words}
    rest = [word for word in ours if word not in partners]
    others = [word for word in lake_words if word not in partners]
    if not rest or not others:
        return partners
    alike = process.cdist(rest, others, scorer=fuzz.ratio, score_cutoff=LEAST_LIKENESS)
    for position in np.argsort(-alike, axis=None, kind="stable").tolist():
        row, column = divmod(position, len(others))
        if alike[row, column] < LEAST_LIKENESS:
            break
        if rest[row] not in partners and others[column] not in partners.values():
            partners[rest[row]] = others[column]
    return partners
