"""The fuzzy join against its definition: all thresholds of all configurations tried."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.runtime.compiled import compiled
from pexeso.transform.fuzzy import (
    ALL_CONFIGURATIONS,
    DISTANCES,
    Configuration,
    fuzzy_join,
    squared_similarity,
)
from pexeso.transform.programs.program import lower


def tokens(text, tokeniser):
    text = lower(text)
    if tokeniser == "word":
        pieces = set(text.replace(",", " ").split())
    else:
        q = int(tokeniser.removesuffix("-gram"))
        pieces = {text[at : at + q] for at in range(len(text) - q + 1)}
    return pieces


def squared_similarity_of(text, other, configuration):
    one, two = tokens(text, configuration.tokeniser), tokens(other, configuration.tokeniser)
    if not one and not two:
        return Fraction(lower(text) == lower(other))
    if not one or not two:
        return Fraction(0)
    shared = len(one & two)
    match configuration.distance:
        case "Jaccard":
            return Fraction(shared, len(one | two)) ** 2
        case "Dice":
            return Fraction(2 * shared, len(one) + len(two)) ** 2
        case "cosine":
            return Fraction(shared**2, len(one) * len(two))
        case "max-inclusion":
            return Fraction(shared, min(len(one), len(two))) ** 2


def by_definition(derived, keys, configuration, max_distance):
    """Return (keys reached, smallest squared similarity, pairs) of the best threshold, or None."""
    grid = {
        (c, k): squared_similarity_of(derived[c], keys[k], configuration)
        for c in range(len(derived))
        for k in range(len(keys))
    }
    best = None
    smallest = (1 - Fraction(str(max_distance))) ** 2
    for lowest in sorted({score for score in grid.values() if 0 < score >= smallest}, reverse=True):
        pairs = {pair for pair, score in grid.items() if score >= lowest}
        if len({c for c, _ in pairs}) < len(pairs):
            break
        if len({k for _, k in pairs}) < len(pairs):
            break
        reached = len({k for _, k in pairs})
        if best is None or reached > best[0]:
            best = reached, lowest, pairs
    return best


def best_by_definition(derived, keys, configurations, max_distance):
    every = []
    for number, configuration in enumerate(configurations):
        best = by_definition(derived, keys, configuration, max_distance)
        if best:
            rank = (-best[0], -best[1], configuration.tokeniser != "3-gram", number)
            every.append((rank, configuration, best))
    return min(every, key=lambda candidate: candidate[0])[1:] if every else None


texts = st.lists(
    st.one_of(
        st.text("ab", max_size=6),
        st.text("aAb ,cİΣ", max_size=12),
        st.builds(" ".join, st.lists(st.sampled_from(["ann", "bob", "Ann", "x,"]), max_size=4)),
    ),
    unique=True,
    max_size=6,
)


@given(texts, texts, st.sampled_from([1.0, 0.5, 0.3, 0.0]), st.data())
@settings(max_examples=examples(300))
def test_the_optimum_is_that_of_an_exhaustive_search(derived, keys, max_distance, data):
    configurations = data.draw(
        st.one_of(
            st.just(ALL_CONFIGURATIONS),
            st.lists(st.sampled_from(ALL_CONFIGURATIONS), min_size=1, max_size=4, unique=True),
        )
    )
    join = fuzzy_join(derived, keys, max_distance=max_distance, configurations=configurations)
    wanted = best_by_definition(derived, keys, configurations, max_distance)
    pairs = set(zip(join.derived.tolist(), join.keys.tolist(), strict=True))
    assert len(pairs) == len(join.distances)
    assert np.array_equal(join.derived, np.unique(join.derived))
    assert len(set(join.keys.tolist())) == len(pairs)
    if wanted is None:
        assert all(derived[c] == keys[k] for c, k in pairs)
        return
    configuration, (reached, lowest, wanted_pairs) = wanted
    assert join.configuration == configuration
    assert pairs == wanted_pairs
    assert len({k for _, k in pairs}) == reached
    assert (1 - join.threshold) ** 2 == pytest.approx(float(lowest))
    for (c, k), distance in zip(
        zip(join.derived, join.keys, strict=True), join.distances, strict=True
    ):
        exact = squared_similarity_of(derived[c], keys[k], configuration)
        assert (1 - distance) ** 2 == pytest.approx(float(exact))


@given(texts, texts)
def test_equal_texts_are_joined_whatever_else_is(derived, keys):
    join = fuzzy_join(derived, keys)
    pairs = set(zip(join.derived.tolist(), join.keys.tolist(), strict=True))
    equal = {(derived.index(text), keys.index(text)) for text in set(derived) & set(keys)}
    assert equal <= pairs


def test_the_worked_example_of_what_cannot_be_told_apart_by_words():
    words = Configuration("word", "Jaccard")
    left, right = ["Ronald Reagan", "George W. Bush"], ["Reagan, Ronald(1911-2004)"]
    spaced, other = "Bush, George H. W. (1924-)", "Bush, George H. W.(1924-)"
    assert squared_similarity_of(left[0], right[0], words) == Fraction(1, 3) ** 2
    assert squared_similarity_of(left[1], spaced, words) == Fraction(3, 5) ** 2
    assert squared_similarity_of(left[1], other, words) == Fraction(2, 5) ** 2
    join = fuzzy_join(left, [right[0], other], configurations=[words])
    assert join.keys.tolist() == [0, 1]  # the second is wrong: it is nearer than the first
    assert join.distances.tolist() == pytest.approx([2 / 3, 0.6])


def test_texts_of_equal_tokens_are_no_partners_for_one_text():
    words = [Configuration("word", distance) for distance in DISTANCES]
    join = fuzzy_join(["b a", "c"], ["a b", "b  a", "c"], configurations=words)
    assert join.configuration is None
    assert (join.derived.tolist(), join.keys.tolist()) == ([1], [2])
    # By grams they can be told apart.
    assert fuzzy_join(["b a", "c"], ["a b", "b a", "c"]).keys.tolist() == [1, 2]


@pytest.mark.parametrize(("size", "other_size"), [(8192, 8191), (100_000, 99_999)])
def test_similarities_of_large_sets_keep_their_order(size, other_size):
    """The floats of the loop, against whole numbers."""
    similarity = compiled("pexeso.transform.loops").similarity
    rng = np.random.default_rng(0)
    for shared in rng.integers(size // 2, other_size, 50).tolist():
        for measure, distance in enumerate(DISTANCES):
            near = [
                (shared, size, other_size),
                (shared + 1, size, other_size),
                (shared, size - 1, other_size),
            ]
            floats = [similarity(measure, *sizes) for sizes in near]
            exact = [squared_similarity(measure, *sizes) for sizes in near]
            for one, two in [(0, 1), (1, 2), (0, 2)]:
                if exact[one] > exact[two]:
                    assert floats[one] >= floats[two], distance
                    assert floats[one] > floats[two] or size > 8192, distance
                if exact[one] == exact[two]:
                    assert floats[one] == floats[two], distance


def test_the_order_of_the_texts_does_not_matter():
    rng = np.random.default_rng(1)
    names = [
        f"{first} {last}"
        for first in ("anna", "bert", "carla", "dora", "emil")
        for last in ("smith", "miller", "jones", "brown", "wilson", "moore")
    ]
    derived = [name[:4] + name[5:] for name in names[:20]]
    first = fuzzy_join(derived, names)
    pairs = {(derived[c], names[k]) for c, k in zip(first.derived, first.keys, strict=True)}
    for _ in range(3):
        one, two = rng.permutation(derived).tolist(), rng.permutation(names).tolist()
        again = fuzzy_join(one, two)
        assert again.configuration == first.configuration
        assert {(one[c], two[k]) for c, k in zip(again.derived, again.keys, strict=True)} == pairs
