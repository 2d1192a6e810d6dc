"""The constrained fuzzy join: texts that are nearly equal, as far as no one gets two partners.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.4. Of all configurations (a tokeniser and a distance of token sets) and
thresholds, those are sought that give the most keys a partner while no text has more than one. The
search printed there moves its interval the wrong way; here the optimum is found directly: a
threshold is allowed below the smallest second-nearest distance, and the best one is the largest
nearest distance below that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import nextafter

import numpy as np
import pyarrow as pa

from pexeso.engine.lists import offsets_of, ranges
from pexeso.runtime.compiled import compiled
from pexeso.transform.programs.program import lower

loops = compiled("pexeso.transform.loops")

# Texts as sets of words or of q-grams, for the fuzzy join.
#
# Case does not count. A text without tokens (shorter than q, or without a word) is a token itself,
# of a kind that no other text has pieces of: it shares all with an equal text and nothing with
# others.

MIN_Q, MAX_Q = 2, 10

# Words end at white space and commas; q-grams are all pieces of q characters.
TOKENISERS = ("word", *(f"{q}-gram" for q in range(MIN_Q, MAX_Q + 1)))


@dataclass(frozen=True, slots=True)
class TokenSets:
    """Sets of tokens."""

    offsets: np.ndarray  # int64 (n + 1,): where the set of each text begins and ends
    tokens: np.ndarray  # int32: ascending within a set
    n_tokens: int  # Tokens are below it


def token_sets(texts: Sequence[str], tokenisers: Iterable[str]) -> Iterator[tuple[str, TokenSets]]:
    requested = set(tokenisers)
    texts = [lower(text) for text in texts]
    whole = _numbered(pa.array([text.encode("utf-8", "surrogatepass") for text in texts]))
    if "word" in requested:
        yield "word", _as_sets(*_words(texts), whole)
    longest = max((q for q in range(MIN_Q, MAX_Q + 1) if f"{q}-gram" in requested), default=0)
    for q, grams in enumerate(_grams(texts, longest), start=1):
        if f"{q}-gram" in requested:
            yield f"{q}-gram", _as_sets(*grams, whole)


def _words(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    words = [text.replace(",", " ").split() for text in texts]
    numbers: dict[str, int] = {}
    tokens = [numbers.setdefault(word, len(numbers)) for own_words in words for word in own_words]
    owners = np.repeat(np.arange(len(texts)), [len(own_words) for own_words in words])
    return owners, np.array(tokens, np.int64)


def _grams(texts: list[str], longest: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    letters = _numbered(pa.array(letters))
    n_letters = int(letters.max(initial=-1)) + 1
    owners = np.repeat(np.arange(len(texts)), lengths)
    ends = np.repeat(np.cumsum(lengths), lengths)
    starts, grams = np.arange(len(letters)), letters
    for q in range(1, longest + 1):
        if q > 1:  # longer by the letter behind it
            inside = starts + q <= ends[starts]
            starts = starts[inside]
            grams = _numbered(pa.array(grams[inside] * n_letters + letters[starts + q - 1]))
        yield owners[starts], grams


def _numbered(values: pa.Array) -> np.ndarray:
    return values.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _as_sets(owners: np.ndarray, tokens: np.ndarray, whole: np.ndarray) -> TokenSets:
    n = len(whole)
    first_whole = int(tokens.max(initial=-1)) + 1
    bare = np.flatnonzero(np.bincount(owners, minlength=n) == 0)
    owners = np.concatenate([owners, bare])
    tokens = np.concatenate([tokens, first_whole + whole[bare]])
    n_tokens = int(tokens.max(initial=-1)) + 1
    return TokenSets(*_by_owner(owners, tokens, n, n_tokens), n_tokens)


def _by_owner(
    owners: np.ndarray, tokens: np.ndarray, n: int, n_tokens: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sort pairs of a text and a token, and keep one of each."""
    pairs = np.sort(owners * n_tokens + tokens)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    owners, tokens = np.divmod(pairs, max(n_tokens, 1))
    return offsets_of(np.bincount(owners, minlength=n)), tokens.astype(np.int32)


def chosen_sets(sets: TokenSets, texts: np.ndarray, ranks: np.ndarray) -> TokenSets:
    sizes = np.diff(sets.offsets)[texts]
    owners = np.repeat(np.arange(len(texts)), sizes)
    tokens = ranks[sets.tokens[ranges(sets.offsets[texts], sizes)]]
    return TokenSets(*_by_owner(owners, tokens, len(texts), sets.n_tokens), sets.n_tokens)


JACCARD, DICE, COSINE, INCLUSION = loops.JACCARD, loops.DICE, loops.COSINE, loops.INCLUSION
N_MEASURES = loops.N_MEASURES

# 1 minus the common tokens' share of all tokens of both sets, of their mean number, of the root of
# the product of their numbers, and of the smaller set.
DISTANCES = ("Jaccard", "Dice", "cosine", "max-inclusion")


@dataclass(frozen=True, slots=True)
class Configuration:
    tokeniser: str
    distance: str


# Those of the source.
ALL_CONFIGURATIONS = tuple(
    Configuration(tokeniser, distance) for tokeniser, distance in product(TOKENISERS, DISTANCES)
)


@dataclass(frozen=True, slots=True)
class FuzzyJoin:
    """Pairs of texts within a threshold."""

    # The one that was chosen; None where none joins a pair, and only equal texts are joined
    configuration: Configuration | None
    threshold: float
    bound: float
    # int64 (p,): positions of the texts of each pair, `derived` ascending
    derived: np.ndarray
    keys: np.ndarray
    distances: np.ndarray  # float64 (p,)


def fuzzy_join(
    derived: Sequence[str],
    keys: Sequence[str],
    *,
    max_distance: float = 1.0,
    configurations: Iterable[Configuration] = ALL_CONFIGURATIONS,
) -> FuzzyJoin:
    """Join nearly equal texts, by the configuration and threshold that reach the most keys."""
    distinct_configurations = tuple(dict.fromkeys(configurations))
    min_similarity = 1 - Fraction(str(float(max_distance)))
    best, best_rank = _equal_texts(derived, keys), None
    for tokeniser, sets in token_sets(
        [*derived, *keys], [candidate.tokeniser for candidate in distinct_configurations]
    ):
        measures = [
            DISTANCES.index(candidate.distance)
            for candidate in distinct_configurations
            if candidate.tokeniser == tokeniser
        ]
        nearest = _Nearest(sets, len(derived), measures, min_similarity)
        for measure in measures:
            configuration = Configuration(tokeniser, DISTANCES[measure])
            rank = nearest.rank(measure)
            if rank is None:
                continue
            rank = (*rank, tokeniser != "3-gram", distinct_configurations.index(configuration))
            if best_rank is None or rank < best_rank:
                best_rank = rank
                best = nearest.join(measure, configuration, max_distance)
    return best


class _Nearest:
    """The nearest key of each derived text, where it is more similar than the floor.

    Derived texts and keys are sets of the same tokens, numbered in ascending order of size.
    """

    def __init__(
        self, sets: TokenSets, n_derived: int, measures: Sequence[int], min_similarity: Fraction
    ) -> None:
        sizes = np.diff(sets.offsets)
        self.sizes = sizes[:n_derived], sizes[n_derived:]
        self.orders = tuple(np.argsort(side, kind="stable") for side in self.sizes)
        edge = sets.offsets[n_derived]
        n_holders = [
            np.bincount(tokens, minlength=sets.n_tokens)
            for tokens in (sets.tokens[:edge], sets.tokens[edge:])
        ]
        # Tokens of both sides have one number, the rarer the smaller.
        ranks = np.empty(sets.n_tokens, np.int64)
        ranks[np.argsort(np.minimum(*n_holders), kind="stable")] = np.arange(sets.n_tokens)
        derived = chosen_sets(sets, self.orders[0], ranks)
        keys = chosen_sets(sets, self.orders[1] + n_derived, ranks)
        self.floors = np.full(N_MEASURES, np.inf)
        for measure in measures:
            floor = min_similarity**2 if measure == COSINE else min_similarity
            self.floors[measure] = max(0.0, nextafter(float(floor), -1.0))
        self.start = self.floors.copy()
        self.best, best_of_keys = (np.zeros((len(side), N_MEASURES)) for side in self.sizes)
        self.partners = np.full((n_derived, N_MEASURES), -1, np.int32)
        self.shares = np.zeros((n_derived, N_MEASURES), np.int32)
        loops.probe(
            derived.offsets, derived.tokens, keys.offsets, keys.tokens, *_lists(keys), 0,
            self.floors, self.best, best_of_keys, True, True,
            self.partners, self.shares, True,
        )  # fmt: skip
        loops.probe(
            keys.offsets, keys.tokens, derived.offsets, derived.tokens, *_lists(derived), 1,
            self.floors, best_of_keys, self.best, True, True,
            self.partners, self.shares, False,
        )  # fmt: skip

    def rank(self, measure: int) -> tuple[int, Fraction] | None:
        """Return what is the smaller the better: minus the keys reached, minus the similarity."""
        joined = self._joined(measure)
        if not len(joined):
            return None
        n_keys = len(np.unique(self.partners[joined, measure]))
        farthest = int(joined[np.argmin(self.best[joined, measure])])
        size = int(self.sizes[0][self.orders[0][farthest]])
        key_size = int(self.sizes[1][self.orders[1][self.partners[farthest, measure]]])
        shared = int(self.shares[farthest, measure])
        return -n_keys, -squared_similarity(measure, shared, size, key_size)

    def join(self, measure: int, configuration: Configuration, max_distance: float) -> FuzzyJoin:
        joined = self._joined(measure)
        derived = self.orders[0][joined]
        order = np.argsort(derived)
        joined = joined[order]
        distances = _distances(measure, self.best[joined, measure])
        raised = self.floors[measure] > self.start[measure]
        return FuzzyJoin(
            configuration,
            float(distances.max(initial=0.0)),
            float(_distances(measure, self.floors[measure])) if raised else max_distance,
            derived[order],
            self.orders[1][self.partners[joined, measure]],
            distances,
        )

    def _joined(self, measure: int) -> np.ndarray:
        """Return the derived texts within the smallest threshold that reaches all keys it can."""
        similar = self.best[:, measure]
        joined = np.flatnonzero(similar > self.floors[measure])
        nearest = np.zeros(len(self.orders[1]))
        np.maximum.at(nearest, self.partners[joined, measure], similar[joined])
        return joined[similar[joined] >= nearest[nearest > 0].min(initial=1)]


def squared_similarity(measure: int, shared: int, size: int, other_size: int) -> Fraction:
    """Return the square of 1 minus the distance of two sets, exactly."""
    if measure == COSINE:
        return Fraction(shared * shared, size * other_size)
    below = {
        JACCARD: size + other_size - shared,
        DICE: Fraction(size + other_size, 2),
        INCLUSION: min(size, other_size),
    }
    return (Fraction(shared) / below[measure]) ** 2


def _distances(measure: int, similarities: np.ndarray) -> np.ndarray:
    return 1 - (np.sqrt(similarities) if measure == COSINE else similarities)


def _lists(sets: TokenSets) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    offsets = offsets_of(np.bincount(sets.tokens, minlength=sets.n_tokens))
    owners = np.repeat(np.arange(len(sets.offsets) - 1, dtype=np.int32), np.diff(sets.offsets))
    return offsets[:-1].copy(), offsets[1:], owners[np.argsort(sets.tokens, kind="stable")]


def _equal_texts(derived: Sequence[str], keys: Sequence[str]) -> FuzzyJoin:
    positions = {key: position for position, key in enumerate(keys)}
    pairs = [(i, positions[text]) for i, text in enumerate(derived) if text in positions]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return FuzzyJoin(None, 0.0, 0.0, both[:, 0], both[:, 1], np.zeros(len(both)))
