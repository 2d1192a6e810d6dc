"""Entropies, logarithms and sums against the standard library and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pexeso.joins.measures import (
    conditional_cumulative_entropy,
    cumulative_entropy,
    exact_sum,
    information,
    log2,
)
from tests.acquisition import oracle


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([0, 1], 0.5), ([0, 1, 2, 3], 1.311278), ([0, 0, 3], 1.169925), ([0, 3, 3], 1.584963)],
)
def test_w8_and_p7_cumulative_entropy(numbers, expected):
    assert cumulative_entropy(numbers) == pytest.approx(expected, abs=1e-6)


def test_w8_uniform_numbers():
    numbers = (np.arange(100_000) + 0.5) / 100_000
    assert cumulative_entropy(numbers) == pytest.approx(1 / (4 * math.log(2)), abs=1e-5)


def test_it_is_the_integral_and_the_mean_over_y():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = rng.integers(1, 12)
        numbers, y, counts = (
            rng.integers(-5, 6, n) / 2,
            rng.integers(0, 3, n),
            rng.integers(0, 4, n),
        )
        rows, groups = np.repeat(numbers, counts), np.repeat(y, counts)
        expected = oracle.cumulative_entropy(rows.tolist())
        assert cumulative_entropy(numbers, counts) == pytest.approx(expected, abs=1e-12)
        parts = [rows[groups == code].tolist() for code in range(3)]
        expected = sum(len(part) * oracle.cumulative_entropy(part) for part in parts)
        entropy = conditional_cumulative_entropy(numbers, y, counts)
        assert entropy * len(rows) == pytest.approx(expected, abs=1e-11)


def test_fewer_than_two_numbers():
    assert cumulative_entropy([]) == cumulative_entropy([5.0]) == 0


def drawn(rng, n):
    return rng.standard_normal(n) * 2.0 ** rng.integers(-60, 60, n)


def test_sums_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50, 3000):
        values = drawn(rng, n)
        expected = float(sum(map(Fraction, values.tolist()), Fraction(0)))
        assert exact_sum(values) == expected
        assert exact_sum(rng.permutation(values)) == expected


def test_numbers_of_all_sizes_have_an_exact_sum():
    rng = np.random.default_rng(2)
    values = rng.standard_normal(3000) * 10.0 ** rng.integers(-300, 290, 3000)
    assert exact_sum(values) == math.fsum(values.tolist())


def test_sums_of_what_is_not_finite_are_those_of_the_standard_library():
    assert exact_sum(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(exact_sum(np.array([np.nan, 1.0])))
    with pytest.raises(OverflowError, match="intermediate overflow"):
        exact_sum(np.array([1e308, 1e308]))


def test_what_cancels_leaves_the_rest():
    values = drawn(np.random.default_rng(1), 1000)
    assert exact_sum(np.concatenate([values, [2.0**-80], -values])) == 2.0**-80
    assert exact_sum(np.array([5e-324, 1e308, -1e308])) == 5e-324


def test_information_is_that_of_each_count():
    counts = np.random.default_rng(2).zipf(1.5, 2000).clip(1, 10**6)
    n = int(counts.sum())
    expected = math.fsum(c * math.log2(n / c) for c in counts.tolist())
    assert information(counts) == pytest.approx(expected, rel=1e-14)
    assert information(counts[:0]) == 0


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
