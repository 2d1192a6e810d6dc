"""Entropies of counts against their definitions on rows."""

import numpy as np
import pytest

from pexeso.joins.measures import entropy, mutual_information
from tests.acquisition import oracle


def drawn(rng):
    n = rng.integers(1, 12)
    x, y = rng.integers(0, 4, n), rng.integers(0, 3, n)
    counts = rng.integers(0, 4, n)
    rows = list(zip(np.repeat(x, counts).tolist(), np.repeat(y, counts).tolist(), strict=True))
    return x, y, counts, rows


def test_they_are_the_definitions_on_rows():
    rng = np.random.default_rng(0)
    for _ in range(300):
        x, y, counts, rows = drawn(rng)
        of_x = np.bincount(x, counts)
        near = pytest.approx
        assert entropy(of_x) == near(oracle.entropy(a for a, _ in rows), abs=1e-12)
        expected = oracle.mutual_information(rows)
        assert mutual_information(x, y, counts) == near(expected, abs=1e-12)


def test_the_order_of_rows_and_of_sides_does_not_change_a_bit():
    rng = np.random.default_rng(1)
    for _ in range(50):
        x, y, counts = rng.integers(0, 5, (3, 60))
        order = rng.permutation(60)
        value = mutual_information(x, y, counts)
        assert mutual_information(y, x, counts) == value
        assert mutual_information(x[order], y[order], counts[order]) == value


def test_what_is_determined_has_no_entropy_left_to_the_last_bit():
    y = np.random.default_rng(2).integers(0, 7, 100)
    assert mutual_information(y, np.zeros(100, int)) == 0
    assert mutual_information(*np.indices((7, 9)).reshape(2, -1)) == 0


def test_no_row_has_no_entropy():
    assert entropy([]) == entropy([0]) == 0
    assert mutual_information([], []) == mutual_information([1], [1], [0]) == 0
