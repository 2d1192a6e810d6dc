"""Distances of bags of words are those of the definition, to the last bit."""

import time

import numpy as np
import pytest
from bags import LONG, SPACE, common_features, distances_of, unmatched_share, vectors_of
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from embed.lexical import SPELLED
from pexeso.engine.sparse.vectors import (
    LetterSpace,
    SparseVectors,
    distances_at,
    loops,
    pair_costs,
    pair_distances,
)
from pexeso.errors import InputError

ODD = [
    "",
    "a",
    "new york city",
    "new new york",
    "york new",
    "aaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaa",
    "ab ab ab",
    "łódź fabryczna",
    "東京都 新宿区",
    "東京",
    "😀😀 😀",
    "שלום עולם",
    "é",
    "é",
    "x" * 1_000,
    "qw" * 500,
    "</s>",
]

texts = st.text(st.sampled_from("abcé東 <019"), max_size=20)


@pytest.mark.parametrize("space", [SPACE, LetterSpace(0.0), LetterSpace(0.9)])
def test_odd_values_have_the_distances_of_the_definition(space):
    vectors = vectors_of(ODD, space)
    np.testing.assert_array_equal(vectors.distances(vectors), distances_of(ODD, ODD, space))


def test_values_of_ten_thousand_letters_have_the_distances_of_the_definition():
    vectors = vectors_of(LONG)
    expected = distances_of(LONG, LONG)
    np.testing.assert_array_equal(vectors.distances(vectors), expected)
    turned = vectors_of(LONG[::-1])
    np.testing.assert_array_equal(pair_distances(vectors, turned), np.diag(expected[:, ::-1]))


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=10), st.sampled_from([0.0, 0.3]))
@settings(max_examples=examples(200), deadline=None)
def test_pairs_with_unmatched_words_on_both_sides_cost_more(pairs, penalty):
    space = LetterSpace(0.1, penalty)
    left, right = (vectors_of(side, space) for side in zip(*pairs, strict=True))
    distances = pair_distances(left, right)
    costs = pair_costs(left, right, distances)
    for (value, other), distance, cost in zip(pairs, distances, costs, strict=True):
        share = unmatched_share(value, other) if 0 < distance < np.inf else 0.0
        assert cost == pytest.approx(distance + penalty * share, abs=1e-12)
    np.testing.assert_array_equal(pair_costs(right, left, distances), costs)


def test_a_value_with_a_word_more_costs_no_more_than_its_distance():
    space = LetterSpace(0.1, 0.3)
    shorter, longer = vectors_of(["a b"], space), vectors_of(["a b cccc"], space)
    distances = pair_distances(shorter, longer)
    assert pair_costs(shorter, longer, distances).tolist() == distances.tolist()


@pytest.mark.parametrize(
    "value", [lambda n: "a" * n, lambda n: "ab" * (n // 2), lambda n: "abcd " * (n // 5)]
)
def test_time_does_not_grow_with_the_square_of_the_letters_of_a_value(value):
    """Ten times the letters would take a hundred times as long, by far more than any noise."""
    vectors_of(["warm up"])
    seconds = []
    for n_letters in (20_000, 200_000):
        times = []
        for _ in range(3):
            started = time.process_time()
            vectors_of([value(n_letters)])
            times.append(time.process_time() - started)
        seconds.append(min(times))
    assert seconds[1] < 40 * seconds[0] + 0.05


@given(st.lists(texts, max_size=6), st.lists(texts, max_size=6))
@settings(max_examples=examples(150), deadline=None)
def test_distances_are_those_of_the_definition(left, right):
    distances = vectors_of([*left, "a"])[: len(left)].distances(vectors_of([*right, "b"]))
    np.testing.assert_array_equal(distances[:, :-1], distances_of(left, right))


@given(st.lists(texts, min_size=1, max_size=6))
@settings(max_examples=examples(100), deadline=None)
def test_a_value_is_at_distance_0_of_itself_whatever_the_order_of_its_words(values):
    turned = [" ".join(reversed(value.split())) for value in values]
    distances = pair_distances(vectors_of(values), vectors_of(turned))
    known = np.array([bool(value.split()) for value in values])
    assert (distances[known] == 0).all()
    assert np.isinf(distances[~known]).all()


@pytest.mark.parametrize("order", ["by value", "mixed"])
def test_distances_of_pairs_are_those_of_the_matrix_in_any_order(order):
    values = [*ODD, "new york", "york", "new york city hall", "ab", "東京 新宿区"]
    left, right = vectors_of(values), vectors_of(values[::-1])
    query, rows = (ends.ravel() for ends in np.indices((len(values), len(values))))
    if order == "mixed":
        mixed = np.random.default_rng(0).permutation(len(query))
        query, rows = query[mixed], rows[mixed]
    np.testing.assert_array_equal(
        distances_at(left, query, right, rows), left.distances(right)[query, rows]
    )


def test_pair_distances_are_the_diagonal():
    left, right = vectors_of(ODD), vectors_of(ODD[::-1])
    np.testing.assert_array_equal(pair_distances(left, right), np.diag(left.distances(right)))


def test_many_values_are_compared_in_runs(monkeypatch):
    vectors = vectors_of(ODD)
    whole = vectors.distances(vectors)
    monkeypatch.setattr("pexeso.engine.sparse.vectors._SIMILARITIES", 1)
    np.testing.assert_array_equal(vectors.distances(vectors), whole)


@given(st.lists(texts, min_size=1, max_size=8), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_rows_taken_and_put_together_keep_their_vectors(values, data):
    vectors = vectors_of(values)
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
    subset = vectors[np.array(rows, np.int64)]
    whole = vectors.distances(vectors)
    np.testing.assert_array_equal(subset.distances(vectors), whole[rows])
    together = SparseVectors.concatenate([subset, vectors, vectors[:0]])
    np.testing.assert_array_equal(together.distances(vectors), np.concatenate([whole[rows], whole]))
    words = together.words.to_pylist()
    assert words == sorted(set(words))


def test_squares_count_repeated_pairs():
    vectors = vectors_of(["banana aaaa " + "ab" * 150])
    words = [word.decode() for word in vectors.words.to_pylist()]
    assert vectors.squares.tolist() == [common_features(word, word) for word in words]


@pytest.mark.parametrize("share", [1.0, -0.1, 1, None, float("nan")])
def test_a_space_that_cannot_be_is_refused(share):
    with pytest.raises(InputError, match="share of whole words must be at least 0"):
        LetterSpace(share)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_a_weight_that_cannot_be_is_refused(weight):
    with pytest.raises(InputError, match="weights of words must be finite and above 0"):
        SparseVectors.from_words(
            SPACE,
            np.frombuffer(b"a", np.uint8),
            np.array([0, 1]),
            np.array([weight]),
            np.array([0, 1]),
            np.array([0]),
        )


def test_the_engine_parts_a_word_from_its_spelling_where_the_model_does():
    assert chr(loops.SPELLED) == SPELLED
