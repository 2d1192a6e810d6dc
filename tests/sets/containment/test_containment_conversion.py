"""Worked examples of the specification on containment and similarity."""

import numpy as np
import pytest
from scipy.integrate import quad

from pexeso.sets.containment.conversion import candidate_probability, containment_of, jaccard_of

W1_QUERY = {"Ontario", "Toronto"}
W1_FIRST = {"Alberta", "Ontario", "Manitoba"}
W1_SECOND = {
    *("Illinois", "Chicago", "New York City", "New York", "Nova Scotia", "Halifax", "California"),
    *("San Francisco", "Seattle", "Washington", "Ontario", "Toronto"),
}


@pytest.mark.parametrize(
    ("candidate", "jaccard", "containment"), [(W1_FIRST, 0.25, 0.5), (W1_SECOND, 1 / 6, 1.0)]
)
def test_w1_jaccard_against_containment(candidate, jaccard, containment):
    ratio = len(candidate) / len(W1_QUERY)
    assert jaccard_of(containment, ratio) == pytest.approx(jaccard, abs=1e-15)
    assert containment_of(jaccard, ratio) == pytest.approx(containment, abs=1e-15)
    assert len(W1_QUERY & candidate) / len(W1_QUERY | candidate) == jaccard


@pytest.mark.parametrize(
    ("ratio", "t", "s"), [(1.1, 0.6, 0.4), (2.6, 0.6, 0.2), (2, 0.5, 0.2), (5, 0.6, 1 / 9)]
)
def test_w3_conversion(ratio, t, s):
    assert jaccard_of(t, ratio) == pytest.approx(s, abs=1e-12)


def test_w3_effective_threshold():
    q, u, x, t = 2, 10, 4, 0.6
    assert jaccard_of(t, u / q) == pytest.approx(1 / 9, abs=1e-15)
    assert containment_of(1 / 9, x / q) == pytest.approx(0.3, abs=1e-15)
    assert (x + q) * t / (u + q) == pytest.approx(0.3, abs=1e-15)


def test_acceptance_2_conversions_are_inverse_and_give_the_effective_threshold():
    ratio, share = np.meshgrid(np.geomspace(0.1, 1000, 41), np.linspace(0.01, 1, 50))
    t = share * np.minimum(1, ratio)
    assert np.abs(containment_of(jaccard_of(t, ratio), ratio) - t).max() < 1e-12
    q, x = 100.0, 100.0 * ratio
    u = 3 * x + 7
    assert np.abs(containment_of(jaccard_of(t, u / q), x / q) - (x + q) * t / (u + q)).max() < 1e-12


def areas(bands, rows):
    positives = quad(lambda s: float(candidate_probability(s, bands, rows)), 0, 0.5, epsabs=1e-12)[
        0
    ]
    return positives, quad(
        lambda s: 1 - float(candidate_probability(s, bands, rows)), 0.5, 1, epsabs=1e-12
    )[0]


def test_w5_s_curve():
    positives, negatives = areas(42, 6)
    assert (round(positives, 5), round(negatives, 5), round(positives + negatives, 5)) == (
        0.03982,
        0.03627,
        0.07609,
    )
    positives, negatives = areas(16, 16)
    assert (f"{positives:.1e}", round(negatives, 5)) == ("7.2e-06", 0.31197)
    # E2, the step of the curve: there the probability is about 1 - 1/e.
    assert (round((1 / 42) ** (1 / 6), 4), round((1 / 16) ** (1 / 16), 4)) == (0.5364, 0.8409)
    assert float(candidate_probability((1 / 42) ** (1 / 6), 42, 6)) == pytest.approx(
        1 - np.exp(-1), abs=0.01
    )


def test_w5_the_optimum_over_all_settings():
    nodes, weights = np.polynomial.legendre.leggauss(200)
    low, high = 0.25 * (nodes + 1), 0.25 * (nodes + 3)
    grid = [(b, r) for b in range(1, 257) for r in range(1, 256 // b + 1)]
    sums = [
        0.25
        * (
            candidate_probability(low, b, r) @ weights
            + (1 - candidate_probability(high, b, r)) @ weights
        )
        for b, r in grid
    ]
    assert grid[int(np.argmin(sums))] == (42, 6)


def test_w6_containment_domain():
    chances = candidate_probability(jaccard_of(np.array([0.1, 0.25, 0.5, 0.6, 0.75]), 2.0), 256, 4)
    assert np.abs(chances - [0.000362, 0.01733, 0.33630, 0.63284, 0.95842]).max() < 5e-6


@pytest.mark.parametrize(
    ("largest", "with_128", "with_256"),
    [
        (1e3, 1.0, 1.0),
        (1e4, 0.7237, 0.9237),
        (1e5, 0.1202, 0.2260),
        (1e6, 0.01272, 0.02528),
        (22_075_531, 0.00058, 0.00116),
    ],
)
def test_w7_asymmetric(largest, with_128, with_256):
    similarity = jaccard_of(1.0, largest / 100)
    assert similarity == pytest.approx(100 / largest)
    probabilities = candidate_probability(similarity, np.array([128, 256]), 1)
    assert np.abs(probabilities - [with_128, with_256]).max() < 6e-5


@pytest.mark.parametrize(("largest", "functions"), [(1e4, 69), (1e5, 693), (1e6, 6932)])
def test_w7_functions_for_even_odds(largest, functions):
    similarity = jaccard_of(1.0, largest / 100)
    assert np.abs(candidate_probability(similarity, functions, 1) - 0.5) < 0.005
    assert round(np.log(0.5) / np.log1p(-similarity)) == pytest.approx(functions, abs=1)


def test_equal_sets_are_always_candidates():
    assert candidate_probability(1.0, 1, 8) == 1.0
    assert candidate_probability(0.0, 256, 1) == 0.0
