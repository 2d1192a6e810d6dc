"""Cumulative entropies against the integral of the step function."""

import math

import numpy as np
import pytest

from pexeso.errors import InputError
from pexeso.joins.measures.entropies import conditional_cumulative_entropy, cumulative_entropy
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


def test_it_scales_with_the_unit_and_not_with_the_origin_or_the_order():
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 1000, 50)
    value = cumulative_entropy(numbers)
    assert cumulative_entropy(4 * numbers + 7) == 4 * value
    assert cumulative_entropy(rng.permutation(numbers)) == value


def test_fewer_than_two_numbers():
    assert cumulative_entropy([]) == cumulative_entropy([5.0]) == 0


@pytest.mark.parametrize(
    ("numbers", "y", "counts", "message"),
    [
        ([1.0, 2.0], [0], None, "one finite number"),
        ([1.0, math.nan], [0, 0], None, "one finite number"),
        ([1.0, 2.0], [0, -1], None, "whole numbers from 0"),
        ([1.0, 2.0], [0, 1], [1], "one count"),
        ([1.0, 2.0], [0, 1], [1, -1], "from 0"),
        ([1.0, 2.0], [0, 1], [0.5, 1], "whole numbers"),
    ],
)
def test_refused_input(numbers, y, counts, message):
    with pytest.raises(InputError, match=message):
        conditional_cumulative_entropy(numbers, y, counts)
