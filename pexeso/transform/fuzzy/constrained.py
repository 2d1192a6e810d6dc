"""The constrained fuzzy join: texts that are nearly equal, as far as no one gets two partners.

Source: E. Zhu, Search and Join Algorithms for Tables in Data Lakes, PhD thesis, University of
Toronto, 2019, section 4.4. Of all configurations (a tokeniser and a distance of token sets) and
thresholds, those are sought that give the most keys a partner while no text has more than one. The
search printed there moves its interval the wrong way; here the optimum is found directly: a
threshold is allowed below the smallest second-nearest distance, and the best one is the largest
nearest distance below that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import nextafter

import numpy as np

from pexeso.errors import InputError
from pexeso.runtime.ranges import offsets_of
from pexeso.transform.fuzzy.fuzzy_loops import COSINE, DICE, INCLUSION, JACCARD, N_MEASURES, probe
from pexeso.transform.fuzzy.token_sets import TOKENISERS, TokenSets, chosen_sets, token_sets

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
