"""The words that carry a match: shares by hand, alike for both sides, bounded."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.semantic import word_contributions
from pexeso.semantic.word_contributions import ContributingWord

EUCLIDEAN = DenseSpace(PartitionLayoutOptions())


def contributions(pairs, model, space, n):
    ours, theirs = (pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
    return word_contributions.word_contributions(ours, theirs, model, space, n)


class Axes:
    """A model with one axis of a given weight for each word it knows.

    Distances can be computed by hand.
    """

    kind, fingerprint, dimensions = "axes", "0", 8

    def __init__(self, **weights: float) -> None:
        self.weights, self.batch_sizes = weights, []

    def embed(self, values: pa.Array) -> np.ndarray:
        self.batch_sizes.append(len(values))
        vectors = np.zeros((len(values), self.dimensions), np.float32)
        axis = {word: place for place, word in enumerate(self.weights)}
        for row, value in enumerate(values.to_pylist()):
            for word in value.split():
                if word in axis:
                    vectors[row, axis[word]] += self.weights[word]
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(length > 0, length, 1)


def shares(result):
    return {(word.query, word.value): round(word.share, 6) for word in result.words}


def test_an_exact_pair_is_carried_by_its_words_as_they_weigh():
    # Without "new" the vector turns from (3, 4) / 5 to (0, 1): a chord of sqrt(2 - 2 * 0.8);
    # without "york" of sqrt(2 - 2 * 0.6).
    new, york = np.sqrt(0.4), np.sqrt(0.8)
    result = contributions([("new york", "new york")], Axes(new=3.0, york=4.0), EUCLIDEAN, 10)
    assert shares(result) == {
        ("york", "york"): pytest.approx(york / (new + york), abs=1e-6),
        ("new", "new"): pytest.approx(new / (new + york), abs=1e-6),
    }
    assert (result.n_words, result.pairs_read, result.pairs) == (2, 1, 1)


def test_a_value_of_one_word_is_carried_by_it_and_nothing_is_embedded():
    model = Axes(oslo=1.0)
    result = contributions([("oslo", "oslo"), ("uk", "britain")], model, EUCLIDEAN, 10)
    assert shares(result) == {("oslo", "oslo"): 0.5, ("uk", None): 0.25, (None, "britain"): 0.25}
    assert [word.label for word in result.words] == ["oslo", "britain (lake)", "uk (yours)"]
    assert model.batch_sizes == []


def test_words_near_in_letters_are_told_as_one():
    result = contributions([("mendelev", "mendeleev")], Axes(), EUCLIDEAN, 10)
    assert result.words == (ContributingWord("mendelev", "mendeleev", 1.0, 1),)
    assert result.words[0].label == "mendelev ~ mendeleev"


def test_a_word_that_every_value_holds_is_seen_to_carry_the_match():
    pairs = [(f"{name} county", f"{name} county") for name in ("kings", "essex", "surrey")]
    result = contributions(pairs, Axes(county=10.0, kings=1.0, essex=1.0, surrey=1.0), EUCLIDEAN, 1)
    assert result.words[0].query == "county"
    assert result.words[0].share > 0.8
    assert (result.words[0].pairs, result.n_words) == (3, 4)


def test_where_no_word_makes_a_difference_all_carry_alike():
    result = contributions([("a b", "a b")], Axes(), EUCLIDEAN, 10)
    assert shares(result) == {("a", "a"): 0.5, ("b", "b"): 0.5}


def test_a_word_twice_in_a_value_is_left_out_as_a_whole():
    result = contributions([("new new york", "new york")], Axes(new=1.0, york=1.0), EUCLIDEAN, 10)
    assert sum(shares(result).values()) == pytest.approx(1)
    assert {word.query for word in result.words} == {"new", "york"}


def test_shares_add_up_to_one_and_the_model_is_asked_once_for_a_bounded_number_of_texts(
    monkeypatch,
):
    monkeypatch.setattr(word_contributions, "MAX_TEXTS", 60)
    pairs = [(f"a{place} b c", f"c a{place} d") for place in range(500)]
    model = Axes(a1=1.0, b=2.0, c=3.0, d=1.0)
    result = contributions(pairs, model, EUCLIDEAN, 1000)
    assert sum(word.share for word in result.words) == pytest.approx(1)
    assert len(model.batch_sizes) == 1
    assert model.batch_sizes[0] <= 60
    assert 1 < result.pairs_read < 500 == result.pairs
    assert result.extent == f" (of {result.pairs_read} of 500 values)"


def test_of_many_pairs_those_looked_at_are_spread_evenly(monkeypatch):
    monkeypatch.setattr(word_contributions, "MAX_TEXTS", 60)
    result = contributions(
        [(f"{place:03}", f"{place:03}") for place in range(500)], Axes(), EUCLIDEAN, 1000
    )
    looked_at = sorted(int(word.query) for word in result.words)
    assert len(looked_at) == result.pairs_read >= 12
    assert looked_at[-1] > 450
    assert {later - earlier for earlier, later in pairwise(looked_at)} == {38}


def test_no_pairs_are_carried_by_nothing():
    result = contributions([], Axes(), EUCLIDEAN, 10)
    assert (result.words, result.n_words, result.pairs_read, result.extent) == ((), 0, 0, "")


def test_shares_are_those_of_the_definition_under_a_real_model(small_index):
    import torch

    from pexeso import open_index

    index = open_index(small_index)
    match = index.explain(
        ["nordlys energy", "fratelli conte"], "nested/companies.csv", "name", max_distance=0.5
    ).match
    (word,) = [word for word in match.word_contributions(20).words if word.query == "nordlys"]

    def distance(one, other):
        vectors = torch.from_numpy(index.embedder.embed([one, other]))
        return float(torch.linalg.vector_norm(vectors[0].double() - vectors[1].double()))

    expected = 0.0
    for mine, its in (("nordlys energy", "nordlys energi"), ("nordlys energi", "nordlys energy")):
        base = distance(mine, its)
        without = [
            max(0.0, distance(text, its) - base) for text in (mine.split()[1], mine.split()[0])
        ]
        expected += without[0] / sum(without) / 4  # half a pair, of two pairs
    assert word.share == pytest.approx(expected, rel=1e-5)
