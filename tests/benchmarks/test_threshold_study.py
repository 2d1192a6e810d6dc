"""The study of thresholds chooses on other data sets, and tells the mean and the worst."""

import numpy as np
import pytest

from benchmarks.effectiveness.lexical.scores import DISTANCES
from benchmarks.effectiveness.scoring import JOINABILITIES
from benchmarks.effectiveness.threshold_study import (
    DEFAULT,
    ThresholdScores,
    best_thresholds,
    compared,
)


def scores(peak: tuple[float, float], advised: float) -> ThresholdScores:
    """An F1 of 1 at some thresholds, 0.25 at the default ones and 0 elsewhere."""
    grid = np.zeros((len(DISTANCES), len(JOINABILITIES)))
    for (distance, joinability), f1 in ((DEFAULT, 0.25), (peak, 1.0)):
        row = int(np.argmin(np.abs(np.array(DISTANCES) - distance)))
        grid[row, int(np.argmin(np.abs(JOINABILITIES - joinability)))] = f1
    return ThresholdScores(grid, {"f1": advised})


def test_the_best_thresholds_have_the_highest_mean():
    assert best_thresholds([scores((0.3, 0.7), 0).f1, scores((0.3, 0.7), 0).f1]) == (0.3, 0.7)


def test_each_set_is_scored_at_the_thresholds_of_the_others():
    comparison = compared(
        {"a": scores((0.3, 0.7), 0.5), "b": scores((0.3, 0.7), 0.75), "c": scores((0.2, 0.4), 1)}
    )
    assert [comparison["sets"][name]["held_out"] for name in "abc"] == [0.0, 0.0, 0.0]
    assert comparison["sets"]["c"]["thresholds_of_others"] == (0.3, 0.7)
    assert comparison["best_of_all"] == (0.3, 0.7)
    assert comparison["mean"] == {
        "default": pytest.approx(0.25),
        "held_out": 0.0,
        "advised": pytest.approx(0.75),
    }
    assert comparison["worst"] == {"default": 0.25, "held_out": 0.0, "advised": 0.5}
