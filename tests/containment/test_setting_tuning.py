"""Settings: the tables of the specification, an independent integrator, and the floor of the recall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from pexeso.containment.conversion import candidate_probability, jaccard_of
from pexeso.containment.tuning import Tuner, false_areas, tune_recall_floor, tune_source
from pexeso.errors import InputError

RATIOS = (1, 2, 5, 10, 100)
W8_SOURCE = {
    0.5: [(64, 4, 0.053, 0.031), (85, 3, 0.064, 0.060), (128, 2, 0.127, 0.054), (25, 1, 0.207, 0.080), (251, 1, 0.214, 0.081)],
    0.7: [(36, 7, 0.026, 0.039), (64, 4, 0.056, 0.071), (42, 2, 0.132, 0.096), (128, 2, 0.113, 0.123), (128, 2, 0.001, 0.297)],
    0.9: [(3, 8, 0.033, 0.020), (42, 6, 0.024, 0.065), (51, 5, 0.001, 0.099), (42, 6, 0.000, 0.100), (42, 6, 0.000, 0.100)],
    1.0: [(1, 8, 0.062, 0.0), (1, 8, 0.0, 0.0), (1, 8, 0.0, 0.0), (1, 8, 0.0, 0.0), (1, 8, 0.0, 0.0)],
}  # fmt: skip
W8_FLOOR = {
    0.5: [(80, 3), (74, 2), (32, 1), (122, 1), (256, 1)],
    1.0: [(1, 8), (47, 4), (74, 2), (59, 1), (256, 1)],
}
W8_REACHED = {0.5: 0.721, 1.0: 0.924}


@pytest.mark.parametrize("threshold", W8_SOURCE)
def test_w8_the_sources_choice(threshold):
    for ratio, (bands, rows, positive, negative) in zip(RATIOS, W8_SOURCE[threshold], strict=True):
        setting = tune_source(ratio, threshold, 256, 8)
        assert (setting.bands, setting.rows) == (bands, rows)
        positives, negatives = false_areas(ratio, threshold, np.array([bands]), np.array([rows]))
        assert (round(positives[0], 3), round(negatives[0], 3)) == (positive, negative)


@pytest.mark.parametrize("threshold", W8_FLOOR)
def test_w8_the_choice_that_keeps_the_recall(threshold):
    settings = [tune_recall_floor(ratio, threshold, 256, 8) for ratio in (1, 2, 5, 20, 100)]
    assert [(one.bands, one.rows) for one in settings] == W8_FLOOR[threshold]
    assert all(one.recall >= 0.95 for one in settings[:4])
    assert settings[4].recall == pytest.approx(W8_REACHED[threshold], abs=5e-4)


def areas(ratio, threshold, bands, rows):
    """Integrate by adaptive quadrature."""
    most = min(1.0, ratio)

    def chance(t):
        return float(candidate_probability(jaccard_of(t, ratio), bands, rows))

    positives = quad(chance, 0, min(threshold, most), limit=200)[0]
    return positives, quad(lambda t: 1 - chance(t), threshold, most, limit=200)[0] if most > threshold else 0.0


@given(st.floats(0.05, 500), st.floats(0.01, 1), st.integers(1, 64), st.integers(1, 8))
def test_areas_are_those_of_an_independent_integrator(ratio, threshold, bands, rows):
    found = false_areas(ratio, threshold, np.array([bands]), np.array([rows]))
    assert np.abs(np.concatenate(found) - areas(ratio, threshold, bands, rows)).max() < 1e-5


@pytest.mark.parametrize(("ratio", "threshold"), [(1.0, 0.5), (3.3, 0.8), (40.0, 0.2), (0.6, 0.9)])
def test_acceptance_8_the_sources_choice_is_the_least_of_all(ratio, threshold):
    grid = [(b, r) for b in range(1, 33) for r in range(1, min(4, 32 // b) + 1)]
    sums = [sum(areas(ratio, threshold, b, r)) for b, r in grid]
    setting = tune_source(ratio, threshold, 32, 4)
    assert sums[grid.index((setting.bands, setting.rows))] <= min(sums) + 1e-6


@given(st.floats(0.01, 1000), st.floats(0.01, 1), st.floats(0.5, 0.99), st.sampled_from([1, 16, 128, 256]))
def test_acceptance_8_the_recall_is_kept_or_all_is_asked_for(ratio, threshold, recall, permutations):
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
    chances = candidate_probability(jaccard_of(np.linspace(0.6, 1, 30), 5.0), setting.bands, setting.rows)
    assert (np.diff(chances) >= 0).all()


@pytest.mark.parametrize("options", [{"name": "best"}, {"recall": 0.0}, {"recall": 1.0}])
def test_a_tuner_that_there_is_not_is_refused(options):
    with pytest.raises(InputError, match="must be"):
        Tuner(**options)


@given(st.lists(st.floats(0.01, 1000), max_size=8), st.floats(0.01, 1), st.sampled_from(["source", "recall_floor"]))
def test_many_ratios_are_given_what_each_is(ratios, threshold, name):
    tuner = Tuner(name, permutations=32)
    bands, rows, recalls = tuner.choose_all(np.array(ratios, np.float64), threshold)
    each = [tuner.choose(ratio, threshold) for ratio in ratios]
    assert bands.tolist() == [one.bands for one in each]
    assert rows.tolist() == [one.rows for one in each]
    assert recalls.tolist() == [one.recall for one in each]
