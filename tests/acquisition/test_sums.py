"""Correctly rounded sums against those of the standard library, and against fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pexeso.joins.measures import entropies as sums
from pexeso.joins.measures.entropies import exact_sum, information


def drawn(rng, n):
    return rng.standard_normal(n) * 2.0 ** rng.integers(-60, 60, n)


def test_few_and_many_terms_have_the_same_sum_in_any_order(monkeypatch):
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50, 3000):
        values = drawn(rng, n)
        expected = float(sum(map(Fraction, values.tolist()), Fraction(0)))
        for min_compiled in (0, 10**9):
            monkeypatch.setattr(sums, "_MIN_COMPILED", min_compiled)
            assert exact_sum(values) == expected
            assert exact_sum(rng.permutation(values)) == expected


def test_what_cancels_leaves_the_rest(monkeypatch):
    monkeypatch.setattr(sums, "_MIN_COMPILED", 0)
    values = drawn(np.random.default_rng(1), 1000)
    assert exact_sum(np.concatenate([values, [2.0**-80], -values])) == 2.0**-80
    assert exact_sum(np.array([5e-324, 1e308, -1e308])) == 5e-324


def test_information_is_that_of_each_count():
    counts = np.random.default_rng(2).zipf(1.5, 2000).clip(1, 10**6)
    n = int(counts.sum())
    expected = math.fsum(c * math.log2(n / c) for c in counts.tolist())
    assert information(counts) == pytest.approx(expected, rel=1e-14)
    assert information(counts[:0]) == 0
