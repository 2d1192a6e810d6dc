import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partition import clustering as divergence
from partition.clustering import jensen_shannon, normalise

COUNTS = arrays(np.int64, st.tuples(st.integers(1, 6), st.just(5)), elements=st.integers(0, 9)).map(
    lambda counts: counts + (counts.sum(axis=1, keepdims=True) == 0)
)


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
