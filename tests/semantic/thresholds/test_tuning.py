"""Tests of thresholds from labels: the best on many, the advice on few, and the uncertainty."""

import numpy as np
import pytest

from pexeso.semantic.thresholds.advice import Advice
from pexeso.semantic.thresholds.labels import ColumnLabel, ValueLabel
from pexeso.semantic.thresholds.tuning import (
    COLUMN_DISTANCES,
    choose,
    f1_interval,
    tune_columns,
    tune_values,
)

PRIOR = Advice(0.2, 0.5, "because")


def labelled(n: int, seed: int = 0):
    """Values of which those that are the same lie about 0.25 apart, the others about 0.45."""
    generator = np.random.default_rng(seed)
    same = np.arange(n) % 2 == 0
    distances = np.where(same, generator.normal(0.25, 0.05, n), generator.normal(0.45, 0.05, n))
    return [ValueLabel("a", "b", bool(flag)) for flag in same], distances


def f1_at(distance, labels, distances):
    same, hits = np.array([label.same for label in labels]), distances <= distance
    return 2 * (hits & same).sum() / (hits.sum() + same.sum())


def test_many_labels_decide():
    labels, distances = labelled(2000)
    advice = tune_values(labels, distances, PRIOR, None)
    best = max(f1_at(distance, labels, distances) for distance in np.arange(0, 1, 0.002))
    assert f1_at(advice.max_distance, labels, distances) > best - 0.005
    assert 0.32 < advice.max_distance < 0.38
    assert advice.min_joinability == 0.5
    low, high = advice.evidence["f1_interval"]
    assert low < advice.evidence["f1"] < high
    assert high - low < 0.03
    assert "few labels" not in advice.why


def test_few_labels_keep_to_the_advice_where_they_leave_a_choice():
    labels = [ValueLabel("a", "b", same) for same in (True, True, False)]
    distances = np.array([0.1, 0.15, 0.6])
    assert tune_values(labels, distances, PRIOR, None).max_distance == 0.2
    assert tune_values(labels, distances, Advice(0.9, 0.5, ""), None).max_distance == 0.598
    advice = tune_values(labels, distances, PRIOR, None)
    low, high = advice.evidence["f1_interval"]
    assert advice.evidence["f1"] == 1.0
    assert high - low > 0.3
    assert "These are few labels" in advice.why
    assert "Without labels it would be 0.2 and 0.5." in advice.why


def test_the_score_on_labels_left_out_is_not_that_on_all():
    # Answers by the toss of a coin: whatever is chosen on some of them is no better on others.
    generator = np.random.default_rng(3)
    labels = [ValueLabel("a", "b", bool(answer)) for answer in generator.integers(0, 2, 60)]
    advice = tune_values(labels, generator.random(60), PRIOR, None)
    assert advice.evidence["f1_on_labels_left_out"] < advice.evidence["f1"]
    labels, distances = labelled(400)
    advice = tune_values(labels, distances, PRIOR, None)
    assert advice.evidence["f1_on_labels_left_out"] == pytest.approx(
        advice.evidence["f1"], abs=0.02
    )


def test_a_precision_that_must_hold_holds_or_is_said_not_to():
    labels, distances = labelled(1000)
    advice = tune_values(labels, distances, PRIOR, 0.99)
    assert advice.evidence["precision"] >= 0.99
    assert advice.max_distance < tune_values(labels, distances, PRIOR, None).max_distance
    labels = [ValueLabel("a", "b", same) for same in (False, True)]
    advice = tune_values(labels, np.array([0.1, 0.2]), PRIOR, 0.9)
    assert "No threshold reaches the precision of 90.0 % on these labels" in advice.why


def test_values_without_a_vector_never_match():
    labels = [ValueLabel("a", "b", same) for same in (True, True, False)]
    advice = tune_values(labels, np.array([np.inf, 0.1, np.inf]), PRIOR, None)
    assert advice.evidence["recall"] == 0.5


def test_columns_choose_both_thresholds():
    # Joinable columns have 60 % from 0.3 on, the others 40 % from 0.1 on and everything from 0.7
    # on.
    yes = np.where(COLUMN_DISTANCES >= 0.295, 0.6, 0.0)
    no = np.where(COLUMN_DISTANCES >= 0.695, 1.0, np.where(COLUMN_DISTANCES >= 0.095, 0.4, 0.0))
    labels = [ColumnLabel(None, "t", "c", same) for same in [True] * 30 + [False] * 30]
    advice = tune_columns(labels, np.array([yes] * 30 + [no] * 30), PRIOR, None)
    assert advice.evidence["f1"] == 1.0
    assert 0.3 <= advice.max_distance < 0.7
    assert 0.4 < advice.min_joinability <= 0.6
    assert (advice.max_distance, advice.min_joinability) == (
        0.3,
        0.5,
    )  # nearest to the advice without labels


def test_of_equal_options_the_nearest_is_chosen():
    hits = np.array([[True, True, True], [False, False, False]])
    assert choose(hits, np.array([True, False]), np.array([2.0, 0.5, 1.0]), None).position == 1


@pytest.mark.parametrize("n", [20, 200])
def test_the_interval_holds_the_true_f1_as_often_as_it_says(n):
    generator = np.random.default_rng(1)
    rates = np.array([0.6, 0.15, 0.25])  # found rightly, found wrongly, missed
    true = 2 * rates[0] / (2 * rates[0] + rates[1] + rates[2])
    ends = [f1_interval(*generator.multinomial(n, rates)) for _ in range(150)]
    assert 0.82 < np.mean([low <= true <= high for low, high in ends]) < 0.98
