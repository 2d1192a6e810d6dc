"""Tests of the source's choice of bands and rows.

The tables of the specification and an independent integrator are the reference.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from benchmarks.containment_lists import hashed_ensemble
from benchmarks.containment_source import SourceTuner, false_areas, tune_source
from pexeso.containment.conversion import candidate_probability, jaccard_of
from pexeso.containment.options import EnsembleOptions

RATIOS = (1, 2, 5, 10, 100)
W8_SOURCE = {
    0.5: [
        (64, 4, 0.053, 0.031), (85, 3, 0.064, 0.060), (128, 2, 0.127, 0.054),
        (25, 1, 0.207, 0.080), (251, 1, 0.214, 0.081),
    ],
    0.7: [
        (36, 7, 0.026, 0.039), (64, 4, 0.056, 0.071), (42, 2, 0.132, 0.096),
        (128, 2, 0.113, 0.123), (128, 2, 0.001, 0.297),
    ],
    0.9: [
        (3, 8, 0.033, 0.020), (42, 6, 0.024, 0.065), (51, 5, 0.001, 0.099),
        (42, 6, 0.000, 0.100), (42, 6, 0.000, 0.100),
    ],
    1.0: [
        (1, 8, 0.062, 0.0), (1, 8, 0.0, 0.0), (1, 8, 0.0, 0.0),
        (1, 8, 0.0, 0.0), (1, 8, 0.0, 0.0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("threshold", W8_SOURCE)
def test_w8_the_sources_choice(threshold):
    for ratio, (bands, rows, positive, negative) in zip(RATIOS, W8_SOURCE[threshold], strict=True):
        setting = tune_source(ratio, threshold, 256, 8)
        assert (setting.bands, setting.rows) == (bands, rows)
        positives, negatives = false_areas(ratio, threshold, np.array([bands]), np.array([rows]))
        assert (round(positives[0], 3), round(negatives[0], 3)) == (positive, negative)


def test_w6_areas():
    positives, negatives = false_areas(2.0, 0.5, np.array([256]), np.array([4]))
    assert (round(positives[0], 5), round(negatives[0], 5)) == (0.03252, 0.07984)


def areas(ratio, threshold, bands, rows):
    """Integrate by adaptive quadrature."""
    max_containment = min(1.0, ratio)

    def chance(t):
        return float(candidate_probability(jaccard_of(t, ratio), bands, rows))

    positives = quad(chance, 0, min(threshold, max_containment), limit=200)[0]
    return positives, quad(lambda t: 1 - chance(t), threshold, max_containment, limit=200)[
        0
    ] if max_containment > threshold else 0.0


@given(st.floats(0.05, 500), st.floats(0.01, 1), st.integers(1, 64), st.integers(1, 8))
def test_areas_are_those_of_an_independent_integrator(ratio, threshold, bands, rows):
    integrals = false_areas(ratio, threshold, np.array([bands]), np.array([rows]))
    assert np.abs(np.concatenate(integrals) - areas(ratio, threshold, bands, rows)).max() < 1e-5


@pytest.mark.parametrize(("ratio", "threshold"), [(1.0, 0.5), (3.3, 0.8), (40.0, 0.2), (0.6, 0.9)])
def test_acceptance_8_the_sources_choice_is_the_least_of_all(ratio, threshold):
    grid = [(b, r) for b in range(1, 33) for r in range(1, min(4, 32 // b) + 1)]
    sums = [sum(areas(ratio, threshold, b, r)) for b, r in grid]
    setting = tune_source(ratio, threshold, 32, 4)
    assert sums[grid.index((setting.bands, setting.rows))] <= min(sums) + 1e-6


def test_it_loses_supersets_at_high_thresholds_and_never_turns_to_lists():
    rng = np.random.default_rng(21)
    queries = [np.unique(rng.integers(0, 2**63, 60, dtype=np.uint64)) for _ in range(40)]
    sets = [
        np.unique(np.append(one, rng.integers(0, 2**63, 19 * 60, dtype=np.uint64)))
        for one in queries
    ]
    index = hashed_ensemble(
        np.concatenate(sets),
        np.cumsum([0, *map(len, sets)]),
        EnsembleOptions(permutations=64, partitions=2),
    )
    tuner = SourceTuner(permutations=64)
    hits = [
        row in index.search(query, 0.9, tuner=tuner, route="bands").sets
        for row, query in enumerate(queries)
    ]
    kept = [row in index.search(query, 0.9).sets for row, query in enumerate(queries)]
    assert np.mean(hits) < 0.1
    assert all(kept)
