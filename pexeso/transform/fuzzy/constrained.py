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

from pexeso.errors import InputError
from pexeso.runtime.jit import loop
from pexeso.runtime.ranges import offsets_of, ranges
from pexeso.transform.programs.program import lower

# Texts as sets of words or of q-grams, for the fuzzy join.
#
# Case does not count. A text without tokens (shorter than q, or without a word) is a token itself,
# of a kind that no other text has pieces of: it shares all with an equal text and nothing with
# others.

MIN_Q, MAX_Q = 2, 10

TOKENISERS = ("word", *(f"{q}-gram" for q in range(MIN_Q, MAX_Q + 1)))
"""Words end at white space and commas; q-grams are all pieces of q characters."""


@dataclass(frozen=True, slots=True)
class TokenSets:
    """Sets of tokens.

    Attributes
    ----------
    offsets : int64 (n + 1,)
        Where the set of each text begins and ends.
    tokens : int32
        Ascending within a set.
    n_tokens : int
        Tokens are below it.
    """

    offsets: np.ndarray
    tokens: np.ndarray
    n_tokens: int


def token_sets(texts: Sequence[str], tokenisers: Iterable[str]) -> Iterator[tuple[str, TokenSets]]:
    """Yield the token sets of texts for several tokenisers, in the order of `TOKENISERS`.

    Takes about 80 bytes a character.

    Examples
    --------
    >>> [(_, sets)] = token_sets(["Reagan, Ronald", "ronald reagan"], ["word"])
    >>> sets.tokens.tolist(), sets.offsets.tolist()
    ([0, 1, 0, 1], [0, 2, 4])
    """
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
    """Return the text of each word, and the word's number."""
    words = [text.replace(",", " ").split() for text in texts]
    numbers: dict[str, int] = {}
    tokens = [numbers.setdefault(word, len(numbers)) for own_words in words for word in own_words]
    owners = np.repeat(np.arange(len(texts)), [len(own_words) for own_words in words])
    return owners, np.array(tokens, np.int64)


def _grams(texts: list[str], longest: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the text and the number of each piece of one character, of two, and so on."""
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
    """Return numbers from 0 for values, equal ones alike: int64."""
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
    """Return the sets of some texts, with other numbers for the tokens.

    Parameters
    ----------
    texts : int64 (c,)
    ranks : int64 (n_tokens,)
        The new number of each token.
    """
    sizes = np.diff(sets.offsets)[texts]
    owners = np.repeat(np.arange(len(texts)), sizes)
    tokens = ranks[sets.tokens[ranges(sets.offsets[texts], sizes)]]
    return TokenSets(*_by_owner(owners, tokens, len(texts), sets.n_tokens), sets.n_tokens)


# Compiled loop of the fuzzy join: pairs of sets that are more similar than any second-best pair.
#
# Similarities are quotients of whole numbers (for the cosine its square), rounded correctly to
# float64, so that equal ones are equal and the order of different ones is never reversed, on any
# machine. Different ones stay different where the numbers below the line are at most 2**26, as
# they are for sets of up to 8,192 tokens (cosine) or 33 million (others); beyond, near equals may
# count as equal, by which a join gets smaller but never breaks its promises.

JACCARD, DICE, COSINE, INCLUSION = range(4)
N_MEASURES = 4


@loop
def similarity(measure, shared, size, other_size):
    """Return how similar two sets are that share a number of tokens: 0 to 1, for COSINE squared."""
    if measure == JACCARD:
        return shared / (size + other_size - shared)
    if measure == DICE:
        return 2 * shared / (size + other_size)
    if measure == COSINE:
        return (shared * shared) / (size * other_size)
    return shared / min(size, other_size)


@loop
def any_above(shared, size, other_size, floors):
    """Return whether two sets are more similar than the floor of some measure."""
    for measure in range(N_MEASURES):
        if similarity(measure, shared, size, other_size) > floors[measure]:
            return True
    return False


@loop
def probe(
    offsets, tokens, other_offsets, other_tokens, begins, ends, lists, at_least,
    floors, best, other_best, watched, other_watched, partners, shares, own_partners,
):  # fmt: skip
    """Compare each set with those of the other side that are at least as large.

    Pairs above a floor count. The floor of a measure rises to the second-best similarity of every
    watched set, so that in the end each of these has at most one partner above it. Sets are in
    ascending order of size on both sides; tokens of a set, by the length of their lists.

    Of two sets of which the other is at least as large, some among the first ``size - shared + 1``
    tokens is common if `shared` tokens are (a prefix filter): only the lists of these are read.

    Parameters
    ----------
    offsets, tokens : int64 (n + 1,), int32
    other_offsets, other_tokens : int64 (m + 1,), int32
    begins, ends : int64 (t,)
        The list of sets of the other side of each token; `begins` is changed.
    lists : int32
        Sets of the other side, ascending within a list.
    floors : float64 (4,)
        Changed.
    best, other_best : float64 (n, 4), float64 (m, 4)
        The largest similarity of each set so far; changed.
    partners, shares : int32 (n or m, 4)
        The best partner of each set of the side that is meant by `own_partners`, and how many
        tokens they share; changed.
    """
    n_others = len(other_offsets) - 1
    counts = np.zeros(n_others, np.int32)
    touched = np.empty(n_others, np.int32)
    stamps = np.full(len(begins), -1, np.int32)
    first_other = 0
    for own_set in range(len(offsets) - 1):
        size = offsets[own_set + 1] - offsets[own_set]
        while first_other < n_others and (
            other_offsets[first_other + 1] - other_offsets[first_other] < size + at_least
        ):
            first_other += 1
        needed = size + 1
        while needed > 1 and any_above(needed - 1, size, size, floors):
            needed -= 1
        n_touched, unread = 0, needed - 1
        for at in range(offsets[own_set], offsets[own_set + 1] - unread):
            token = tokens[at]
            while begins[token] < ends[token] and lists[begins[token]] < first_other:
                begins[token] += 1
            for position in range(begins[token], ends[token]):
                other = lists[position]
                if counts[other] == 0:
                    touched[n_touched] = other
                    n_touched += 1
                counts[other] += 1
        stamped = False
        for i in range(n_touched):
            other = np.int64(touched[i])
            shared = np.int64(counts[other])
            counts[other] = 0
            other_size = other_offsets[other + 1] - other_offsets[other]
            if not any_above(shared + unread, size, other_size, floors):
                continue
            if unread:
                if not stamped:
                    for at in range(offsets[own_set], offsets[own_set + 1]):
                        stamps[tokens[at]] = own_set
                    stamped = True
                shared = np.int64(0)
                for at in range(other_offsets[other], other_offsets[other + 1]):
                    shared += stamps[other_tokens[at]] == own_set
            for measure in range(N_MEASURES):
                score = similarity(measure, shared, size, other_size)
                if score <= floors[measure]:
                    continue
                holder, partner = (own_set, other) if own_partners else (other, own_set)
                holders = best if own_partners else other_best
                if score > holders[holder, measure]:
                    partners[holder, measure], shares[holder, measure] = partner, shared
                if watched:
                    floors[measure] = max(floors[measure], min(score, best[own_set, measure]))
                if other_watched:
                    floors[measure] = max(floors[measure], min(score, other_best[other, measure]))
                best[own_set, measure] = max(best[own_set, measure], score)
                other_best[other, measure] = max(other_best[other, measure], score)


DISTANCES = ("Jaccard", "Dice", "cosine", "max-inclusion")
"""1 minus the common tokens' share of all tokens of both sets, of their mean number, of the root of
the product of their numbers, and of the smaller set."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """How texts are compared."""

    tokeniser: str
    distance: str

    def __post_init__(self) -> None:
        for name, allowed in (("tokeniser", TOKENISERS), ("distance", DISTANCES)):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"The {name} of a fuzzy join must be one of {', '.join(allowed)}. "
                    f"Got {getattr(self, name)!r} instead."
                )


ALL_CONFIGURATIONS = tuple(
    Configuration(tokeniser, distance) for tokeniser, distance in product(TOKENISERS, DISTANCES)
)
"""Those of the source."""


@dataclass(frozen=True, slots=True)
class FuzzyJoin:
    """Pairs of texts within a threshold.

    Attributes
    ----------
    configuration : Configuration, optional
        The one that was chosen; None where none joins a pair, and only equal texts are joined.
    derived, keys : int64 (p,)
        Positions of the texts of each pair, `derived` ascending.
    distances : float64 (p,)
    """

    configuration: Configuration | None
    threshold: float
    bound: float
    derived: np.ndarray
    keys: np.ndarray
    distances: np.ndarray


def fuzzy_join(
    derived: Sequence[str],
    keys: Sequence[str],
    *,
    one_to_one: bool = True,
    max_distance: float = 1.0,
    configurations: Iterable[Configuration] = ALL_CONFIGURATIONS,
) -> FuzzyJoin:
    """Join nearly equal texts, by the configuration and threshold that reach the most keys.

    Texts that share no token are never joined. Of equally good configurations the one with the
    smaller threshold is chosen, then 3-grams, then the one named first.

    Parameters
    ----------
    one_to_one : bool
        A key has one partner at most, as a derived text always does.

    Examples
    --------
    >>> found = fuzzy_join(
    ...     ["mpayne@school.us", "kmoore@school.us"], ["kmoore@school.us", "mipayne@school.us"]
    ... )
    >>> list(zip(found.derived.tolist(), found.keys.tolist()))
    [(0, 1), (1, 0)]
    """
    if not 0 <= max_distance <= 1:
        raise InputError(f"The largest distance must be 0 to 1. Got {max_distance!r} instead.")
    distinct_configurations = tuple(dict.fromkeys(configurations))
    min_similarity = 1 - Fraction(str(float(max_distance)))
    best, best_rank = _equal_texts(derived, keys), None
    for tokeniser, sets in token_sets(
        [*derived, *keys], [candidate.tokeniser for candidate in distinct_configurations]
    ):
        sides = _Sides(sets, len(derived))
        measures = [
            DISTANCES.index(candidate.distance)
            for candidate in distinct_configurations
            if candidate.tokeniser == tokeniser
        ]
        nearest = sides.nearest(measures, min_similarity, one_to_one=one_to_one)
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


class _Sides:
    """Derived texts and keys as sets of the same tokens, both in ascending order of size."""

    def __init__(self, sets: TokenSets, n_derived: int) -> None:
        sizes = np.diff(sets.offsets)
        self.orders = (
            np.argsort(sizes[:n_derived], kind="stable"),
            np.argsort(sizes[n_derived:], kind="stable"),
        )
        self.sizes = (sizes[:n_derived], sizes[n_derived:])
        texts = (self.orders[0], self.orders[1] + n_derived)
        edge = sets.offsets[n_derived]
        n_holders = [
            np.bincount(tokens, minlength=sets.n_tokens)
            for tokens in (sets.tokens[:edge], sets.tokens[edge:])
        ]
        # Tokens of both sides have one number, the rarer the smaller.
        ranks = np.empty(sets.n_tokens, np.int64)
        ranks[np.argsort(np.minimum(*n_holders), kind="stable")] = np.arange(sets.n_tokens)
        self.sets = tuple(chosen_sets(sets, side, ranks) for side in texts)

    def nearest(
        self, measures: Sequence[int], min_similarity: Fraction, *, one_to_one: bool
    ) -> _Nearest:
        floors = np.full(N_MEASURES, np.inf)
        for measure in measures:
            floor = min_similarity**2 if measure == COSINE else min_similarity
            floors[measure] = max(0.0, nextafter(float(floor), -1.0))
        start = floors.copy()
        derived, keys = self.sets
        n_derived, n_keys = len(self.sizes[0]), len(self.sizes[1])
        best = np.zeros((n_derived, N_MEASURES)), np.zeros((n_keys, N_MEASURES))
        partners = np.full((n_derived, N_MEASURES), -1, np.int32)
        shares = np.zeros((n_derived, N_MEASURES), np.int32)
        probe(
            derived.offsets, derived.tokens, keys.offsets, keys.tokens, *_lists(keys), 0,
            floors, best[0], best[1], True, one_to_one, partners, shares, True,
        )  # fmt: skip
        probe(
            keys.offsets, keys.tokens, derived.offsets, derived.tokens, *_lists(derived), 1,
            floors, best[1], best[0], one_to_one, True, partners, shares, False,
        )  # fmt: skip
        return _Nearest(self, floors, start, best[0], partners, shares)


@dataclass(frozen=True, slots=True)
class _Nearest:
    """The nearest key of each derived text, where it is more similar than the floor.

    Texts are numbered as in `sides.sets`.
    """

    sides: _Sides
    floors: np.ndarray
    start: np.ndarray
    best: np.ndarray
    partners: np.ndarray
    shares: np.ndarray

    def rank(self, measure: int) -> tuple[int, Fraction] | None:
        """Return what is the smaller the better: minus the keys reached, minus the similarity."""
        joined = self._joined(measure)
        if not len(joined):
            return None
        n_keys = len(np.unique(self.partners[joined, measure]))
        farthest = int(joined[np.argmin(self.best[joined, measure])])
        return -n_keys, -self._squared_similarity(measure, farthest)

    def join(self, measure: int, configuration: Configuration, max_distance: float) -> FuzzyJoin:
        joined = self._joined(measure)
        derived = self.sides.orders[0][joined]
        order = np.argsort(derived)
        joined = joined[order]
        distances = _distances(measure, self.best[joined, measure])
        raised = self.floors[measure] > self.start[measure]
        return FuzzyJoin(
            configuration,
            float(distances.max(initial=0.0)),
            float(_distances(measure, self.floors[measure])) if raised else max_distance,
            derived[order],
            self.sides.orders[1][self.partners[joined, measure]],
            distances,
        )

    def _joined(self, measure: int) -> np.ndarray:
        """Return the derived texts within the smallest threshold that reaches all keys it can."""
        similar = self.best[:, measure]
        joined = np.flatnonzero(similar > self.floors[measure])
        nearest = np.zeros(len(self.sides.orders[1]))
        np.maximum.at(nearest, self.partners[joined, measure], similar[joined])
        return joined[similar[joined] >= nearest[nearest > 0].min(initial=1)]

    def _squared_similarity(self, measure: int, position: int) -> Fraction:
        """Return the similarity of a derived text and its key, squared since a cosine is a root."""
        shared = int(self.shares[position, measure])
        size = int(self.sides.sizes[0][self.sides.orders[0][position]])
        key = self.sides.orders[1][self.partners[position, measure]]
        return squared_similarity(measure, shared, size, int(self.sides.sizes[1][key]))


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
    """Return where the list of texts of each token begins and ends, and the lists."""
    offsets = offsets_of(np.bincount(sets.tokens, minlength=sets.n_tokens))
    owners = np.repeat(np.arange(len(sets.offsets) - 1, dtype=np.int32), np.diff(sets.offsets))
    return offsets[:-1].copy(), offsets[1:], owners[np.argsort(sets.tokens, kind="stable")]


def _equal_texts(derived: Sequence[str], keys: Sequence[str]) -> FuzzyJoin:
    positions = {key: position for position, key in enumerate(keys)}
    pairs = [(i, positions[text]) for i, text in enumerate(derived) if text in positions]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return FuzzyJoin(None, 0.0, 0.0, both[:, 0], both[:, 1], np.zeros(len(both)))
