import numpy as np
import pytest

from partition import clustering as divergence
from partition.codebook import assign, fit_codebook
from pexeso.errors import InputError


def _vectors(n, seed=0, dimensions=12):
    vectors = np.random.default_rng(seed).normal(size=(n, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_codebook_finds_planted_groups():
    generator = np.random.default_rng(1)
    groups = np.eye(5, dtype=np.float32)
    truth = generator.integers(5, size=500)
    vectors = groups[truth] + generator.normal(scale=0.02, size=(500, 5)).astype(np.float32)
    codes = assign(vectors, fit_codebook(vectors, n_codes=5, seed=2))
    assert len({(group, code) for group, code in zip(truth, codes, strict=True)}) == 5


def test_codebook_is_the_same_for_any_order_of_the_sample_and_differs_by_seed():
    vectors = _vectors(600)
    first = fit_codebook(vectors, n_codes=16, seed=1)
    shuffled = fit_codebook(vectors[np.random.default_rng(5).permutation(600)], n_codes=16, seed=1)
    np.testing.assert_array_equal(first, shuffled)
    assert not np.array_equal(first, fit_codebook(vectors, n_codes=16, seed=2))


def test_few_distinct_vectors_become_the_codebook_themselves():
    vectors = np.repeat(_vectors(3), 4, axis=0)
    codebook = fit_codebook(np.vstack([vectors, np.zeros((2, 12), np.float32)]), n_codes=8)
    assert codebook.shape == (3, 12)
    np.testing.assert_array_equal(codebook[assign(vectors, codebook)], vectors)


def test_assign_equals_distances_computed_one_by_one(monkeypatch):
    vectors, codebook = _vectors(200, seed=3), _vectors(9, seed=4) * 0.7
    squared = np.square(vectors[:, None].astype(np.float64) - codebook[None]).sum(axis=2)
    codes = assign(vectors, codebook)
    assert codes.dtype == np.int32
    np.testing.assert_array_equal(codes, squared.argmin(axis=1))
    monkeypatch.setattr(divergence, "CHUNK_ELEMENTS", 12 * 7)
    np.testing.assert_array_equal(assign(vectors, codebook), codes)


def test_vectors_without_meaning_have_a_region_of_their_own():
    codebook = _vectors(4)
    assert assign(np.zeros((2, 12), np.float32), codebook).tolist() == [4, 4]
    nothing = fit_codebook(np.zeros((5, 12), np.float32))
    assert len(nothing) == 0
    assert assign(_vectors(3), nothing).tolist() == [0, 0, 0]
    assert assign(np.empty((0, 12), np.float32), codebook).shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_codebook(_vectors(5), n_codes=257), "from 1 to 256. Got 257"),
        (lambda: fit_codebook(np.full((3, 2), np.nan)), "Row 0 of 3 is not"),
        (
            lambda: assign(_vectors(5, dimensions=3), _vectors(2)),
            "the 12 dimensions of the codebook. Got 3",
        ),
        (lambda: assign(np.ones(4), _vectors(2)), "shape"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
