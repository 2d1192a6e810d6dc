"""Samples for learning are as large as the bounds ask, and do not depend on the rows' order."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from pexeso.transform import texts
from pexeso.transform.learning.example_sets import sample_sizes, sample_texts


@given(st.integers(1, 40), st.integers(1, 60), st.sampled_from([0.25, 0.5, 1.0]))
def test_no_smaller_samples_would_do(n_source, n_target, participation):
    source, target, expected = sample_sizes(n_source, n_target, participation=participation)
    enough = [
        one + other
        for one in range(1, n_source + 1)
        for other in range(1, n_target + 1)
        if one * other / n_source * participation >= 20 - 1e-9
    ]
    if enough:
        assert expected >= 20
        assert source + target == min(enough)
        assert source <= n_source
        assert target <= n_target
    else:
        assert (source, target) == (n_source, n_target)
    assert expected == pytest.approx(source * target / n_source * participation)


def test_too_few_pairs_are_as_rare_as_promised():
    n_rows, participation = 2_000, 0.5
    n_source, n_target, expected = sample_sizes(n_rows, n_rows, participation=participation)
    rng = np.random.default_rng(0)
    n_trials, n_pairs = 10_000, int(n_rows * participation)
    # How many of the pairs' sources are drawn, and of these, how many of the targets.
    sources = rng.hypergeometric(n_pairs, n_rows - n_pairs, n_source, n_trials)
    pairs = rng.hypergeometric(sources, n_rows - sources, n_target)
    assert pairs.mean() == pytest.approx(expected, rel=0.02)
    assert (pairs <= 4).mean() <= 0.0017


def test_empty_tables_need_no_sample():
    assert sample_sizes(0, 5) == (0, 0, 0.0)
    assert sample_sizes(5, 0) == (0, 0, 0.0)


@given(st.lists(st.text("abcdé ", max_size=4), unique=True), st.integers(0, 12), st.integers(0, 3))
def test_the_sample_depends_on_the_texts_alone(texts, size, seed):
    values = pa.array(texts, pa.string())
    places = sample_texts(values, size, seed)
    assert np.array_equal(places, np.unique(places))
    assert len(places) == min(size, len(texts))
    chosen = {texts[place] for place in places}
    backwards = texts[::-1]
    assert chosen == {
        backwards[place] for place in sample_texts(pa.array(backwards, pa.string()), size, seed)
    }


def test_another_seed_draws_other_texts_and_all_are_drawn_alike_often():
    values = pa.array([f"text {number}" for number in range(100)])
    counts = np.zeros(100, np.int64)
    for seed in range(1000):
        counts[sample_texts(values, 20, seed)] += 1
    assert counts.sum() == 20_000
    assert counts.min() > 140  # 200 on average, standard deviation 13
    assert counts.max() < 260


def test_texts_of_one_hash_are_taken_by_their_order(monkeypatch):
    monkeypatch.setattr(texts, "hash_bytes", lambda values, seed: np.zeros(len(values), "u8"))
    values = pa.array(["d", "a", "c", "b"])
    assert sample_texts(values, 2).tolist() == [1, 3]
