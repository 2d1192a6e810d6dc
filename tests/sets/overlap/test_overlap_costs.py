"""The cost model and the estimates of overlaps, against their definitions."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.sets.overlap.costs import ReadCosts
from pexeso.sets.overlap.josie import expected_matches, rate_since_first


@given(st.integers(0, 10**6))
def test_what_is_held_by_chance_is_near_its_definition(seed):
    rng = np.random.default_rng(seed)
    n_lists, largest = int(rng.integers(1, 200)), int(10 ** rng.uniform(0, 5))
    rest, n_pairs = rng.integers(0, largest + 1, 20), int(rng.integers(100, 10**7))
    frequencies, weights = np.sort(rng.integers(1, n_pairs, n_lists)), rng.integers(1, 4, n_lists)
    estimates = expected_matches(rest, frequencies, weights, n_pairs)
    exact = np.array(
        [((1 - np.exp(-z * frequencies / n_pairs)) * weights).sum() for z in rest.tolist()]
    )
    assert estimates == pytest.approx(exact, rel=0.25, abs=2)
    assert (estimates[rest == 0] == 0).all()
    assert (estimates <= weights.sum() + 1e-9).all()


def test_matches_since_the_first_do_not_count_the_first():
    w = SimpleNamespace(count=np.array([1, 1, 5]), first=np.array([4, 1, 1]))
    assert rate_since_first(w, 4).tolist() == [0, 0, 0.8]


def test_no_read_costs_less_than_the_least_but_reading_nothing_does():
    disk = ReadCosts(-9.42, 0.00125, 1.01, 0.00166, min_cost=1.0)
    assert disk.of_sets(np.array([0, 1, 100_000])).tolist() == pytest.approx([0, 1, 115.58])
    assert ReadCosts(-5, 1, -5, 1, min_cost=2).of_lists(np.array([1, 10])).tolist() == [2, 5]


def test_costs_are_finite():
    with pytest.raises(InputError, match="list_fixed of a read must be a finite number"):
        ReadCosts(1, 1, float("inf"), 1)
