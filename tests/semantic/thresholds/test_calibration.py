"""The probability of a join: close to the one that drew the answers, and none of too few."""

import numpy as np
import pytest

from pexeso.semantic.thresholds.calibration import MIN_JUDGED, calibrate


def draw(n: int, intercept: float, slope: float):
    chance = np.random.default_rng(3)
    x = chance.uniform(0, 1, n)
    return x, chance.uniform(size=n) < 1 / (1 + np.exp(-(intercept + slope * x)))


def test_the_curve_is_that_which_drew_the_answers():
    calibration = calibrate(*draw(4000, -4, 8))
    shares = np.array([0.1, 0.5, 0.9])
    truth = 1 / (1 + np.exp(-(-4 + 8 * shares)))
    assert calibration.probability(shares) == pytest.approx(truth, abs=0.03)
    assert calibration.brier < 0.7 * calibration.usual_brier
    for expected, observed, n in calibration.bins:
        assert abs(expected - observed) < 4 * np.sqrt(0.25 / n)
    assert sum(n for _, _, n in calibration.bins) == calibration.n == 4000


def test_answers_without_a_pattern_are_no_more_certain_than_their_share():
    x, _ = draw(400, 0, 0)
    joins = np.arange(400) % 4 == 0
    calibration = calibrate(x, joins)
    assert calibration.probability(x) == pytest.approx(0.25, abs=0.1)
    assert calibration.brier == pytest.approx(calibration.usual_brier, abs=0.01)


def test_more_values_in_common_never_say_less():
    x = np.linspace(0, 1, 60)
    calibration = calibrate(x, x < 0.5)
    assert calibration.slope == 0
    assert calibration.probability(0.1) == calibration.probability(0.9)


def test_separable_answers_stay_short_of_certain():
    x = np.linspace(0, 1, MIN_JUDGED)
    calibration = calibrate(x, x > 0.5)
    assert 0 < calibration.probability(0.0) < 0.2
    assert 0.8 < calibration.probability(1.0) < 1


@pytest.mark.parametrize("n_yes", [0, 7, 20])
def test_there_is_none_of_too_few_answers_or_of_one_verdict(n_yes):
    n = MIN_JUDGED - 1 if n_yes == 7 else MIN_JUDGED
    assert calibrate(np.linspace(0, 1, n), np.arange(n) < n_yes) is None
