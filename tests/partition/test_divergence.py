import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partition import clustering as divergence
from partition.clustering import LN2, jensen_shannon, normalise

COUNTS = arrays(np.int64, st.tuples(st.integers(1, 6), st.just(5)), elements=st.integers(0, 9)).map(
    lambda counts: counts + (counts.sum(axis=1, keepdims=True) == 0)
)


def test_jensen_shannon_hand_computed():
    # A = (1/2, 1/2), B = (1/4, 3/4), M = (3/8, 5/8)
    to_mean_a = 0.5 * math.log(0.5 / 0.375) + 0.5 * math.log(0.5 / 0.625)
    to_mean_b = 0.25 * math.log(0.25 / 0.375) + 0.75 * math.log(0.75 / 0.625)
    table = jensen_shannon(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.25, 0.75], [0.0, 1.0]]))
    assert table[0, 0] == pytest.approx((to_mean_a + to_mean_b) / 2, abs=2**-37)
    assert table[1, 1] == pytest.approx(math.log(2), abs=2**-37)
    # A = (1/2, 1/2), B = (0, 1), M = (1/4, 3/4): the region that only A has counts too.
    half = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert table[0, 1] == pytest.approx((half + math.log(4 / 3)) / 2, abs=2**-37)


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_divergences_are_symmetric_and_zero_only_between_equals(first, second):
    a, b = normalise(first), normalise(second)
    equal = (np.abs(a[:, None] - b[None]) < 1e-15).all(axis=2)
    table = jensen_shannon(a, b)
    np.testing.assert_allclose(table, jensen_shannon(b, a).T, atol=1e-12)
    assert (table >= 0).all()
    assert (table <= LN2).all()
    np.testing.assert_array_equal(table < 1e-9, equal)


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_jensen_shannon_equals_the_definition_over_all_regions(first, second):
    a, b = normalise(first)[:, None, :], normalise(second)[None]
    mean = (a + b) / 2

    def relative_entropy(p):
        p, m = np.broadcast_arrays(p, mean)
        return (p * np.log(np.divide(p, m, out=np.ones_like(m), where=p > 0))).sum(axis=2)

    expected = (relative_entropy(a) + relative_entropy(b)) / 2
    np.testing.assert_allclose(jensen_shannon(a[:, 0], b[0]), expected, atol=1e-12)


def test_a_row_gives_the_same_bits_in_any_chunk(monkeypatch):
    generator = np.random.default_rng(3)
    rows = normalise(generator.poisson(0.3, (101, 257)) + np.eye(101, 257))
    centres = normalise(generator.random((7, 257)))
    whole = jensen_shannon(rows, centres)
    monkeypatch.setattr(divergence, "CHUNK_ELEMENTS", 257 * 3)
    np.testing.assert_array_equal(jensen_shannon(rows, centres), whole)
    np.testing.assert_array_equal(
        np.vstack([jensen_shannon(rows[i : i + 1], centres) for i in range(101)]), whole
    )


def test_chunks_stay_under_the_budget(monkeypatch):
    monkeypatch.setattr(divergence, "CHUNK_ELEMENTS", 100)
    slices = list(divergence.row_chunks(10, 40))
    assert [(part.start, part.stop) for part in slices] == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert [part.stop - part.start for part in divergence.row_chunks(3, 1000)] == [1, 1, 1]
