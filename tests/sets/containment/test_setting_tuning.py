"""Tests of settings: specification tables, an independent integrator, and the recall floor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.sets.containment.conversion import candidate_probability, jaccard_of
from pexeso.sets.containment.tuning import Tuner, tune_recall_floor

W8_FLOOR = {
    0.5: [(80, 3), (74, 2), (32, 1), (122, 1), (256, 1)],
    1.0: [(1, 8), (47, 4), (74, 2), (59, 1), (256, 1)],
}
W8_REACHED = {0.5: 0.721, 1.0: 0.924}


@pytest.mark.parametrize("threshold", W8_FLOOR)
def test_w8_the_choice_that_keeps_the_recall(threshold):
    settings = [tune_recall_floor(ratio, threshold, 256, 8) for ratio in (1, 2, 5, 20, 100)]
    assert [(one.bands, one.rows) for one in settings] == W8_FLOOR[threshold]
    assert all(one.recall >= 0.95 for one in settings[:4])
    assert settings[4].recall == pytest.approx(W8_REACHED[threshold], abs=5e-4)


@given(
    st.floats(0.01, 1000),
    st.floats(0.01, 1),
    st.floats(0.5, 0.99),
    st.sampled_from([1, 16, 128, 256]),
)
def test_acceptance_8_the_recall_is_kept_or_all_is_asked_for(
    ratio, threshold, recall, permutations
):
    ratio = max(ratio, threshold)
    setting = tune_recall_floor(ratio, threshold, permutations, 8, recall)
    chance = float(candidate_probability(jaccard_of(threshold, ratio), setting.bands, setting.rows))
    assert setting.recall == pytest.approx(chance)
    assert setting.bands * setting.rows <= permutations
    assert chance >= recall - 1e-12 or (setting.bands, setting.rows) == (permutations, 1)


@given(st.floats(0.01, 1000), st.floats(0.001, 1), st.floats(0.1, 1))
def test_the_grid_keeps_the_recall_of_what_it_stands_for(ratio, threshold, smaller):
    ratio = max(ratio, threshold)
    setting = Tuner().choose(ratio, threshold)
    x = max(ratio * smaller, threshold)  # a set of the partition, smaller than its largest
    chance = float(candidate_probability(jaccard_of(threshold, x), setting.bands, setting.rows))
    assert chance >= min(Tuner().recall, setting.recall) - 1e-9


def test_more_contained_is_found_more_often():
    setting = tune_recall_floor(5.0, 0.6, 256, 8)
    chances = candidate_probability(
        jaccard_of(np.linspace(0.6, 1, 30), 5.0), setting.bands, setting.rows
    )
    assert (np.diff(chances) >= 0).all()


@pytest.mark.parametrize("options", [{"recall": 0.0}, {"recall": 1.0}])
def test_a_tuner_that_there_is_not_is_refused(options):
    with pytest.raises(InputError, match="must be"):
        Tuner(**options)


@given(st.lists(st.floats(0.01, 1000), max_size=8), st.floats(0.01, 1))
def test_many_ratios_are_given_what_each_is(ratios, threshold):
    ratios = [max(ratio, threshold) for ratio in ratios]
    tuner = Tuner(permutations=32)
    bands, rows, recalls = tuner.choose_all(np.array(ratios, np.float64), threshold)
    choices = [tuner.choose(ratio, threshold) for ratio in ratios]
    assert bands.tolist() == [one.bands for one in choices]
    assert rows.tolist() == [one.rows for one in choices]
    assert recalls.tolist() == [one.recall for one in choices]
