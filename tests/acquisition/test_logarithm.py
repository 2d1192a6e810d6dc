"""Logarithms to base 2 against those of the C library."""

import math

import numpy as np

from pexeso.joins.measures.entropies import log2


def test_powers_of_two_are_exact():
    powers = np.arange(-60, 61)
    assert log2(2.0**powers).tolist() == powers.tolist()


def test_random_numbers_are_within_a_few_units_of_the_last_place():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(20_000) + 1e-9, rng.random(20_000) * 1e14 + 1])
    expected = np.array([math.log2(value) for value in values.tolist()])
    np.testing.assert_allclose(log2(values), expected, rtol=1e-15, atol=0)


def test_whole_numbers_and_their_ratios():
    n = np.arange(1, 5000)
    for values in (n, 5000 / n, n / (n + 1)):
        expected = [math.log2(value) for value in np.asarray(values, float).tolist()]
        np.testing.assert_allclose(log2(values), expected, rtol=2e-15, atol=0)
