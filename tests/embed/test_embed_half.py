"""Vectors of half precision: what rounding may change, and that a model keeps it."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from embed import create_embedder, load_embedder
from embed.stored import HALF, SINGLE, HalfPrecision, in_half, with_precision
from pexeso.engine import metrics
from pexeso.engine.options import METRICS, Metric
from pexeso.errors import EmbedderError, InputError

VALUES = ["oslo", "bergen", "", "new york city", None]


def unit_rows(rng: np.random.Generator, n: int, dims: int, spread: float) -> np.ndarray:
    """Return unit vectors whose entries differ in size by up to so many powers of ten."""
    rows = rng.normal(size=(n, dims)) * 10.0 ** rng.uniform(-spread, 0, size=(n, dims))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("metric", METRICS)
@given(st.integers(0, 2**32), st.sampled_from((1, 2, 7, 64, 4096)), st.sampled_from((0, 2, 6)))
def test_no_distance_moves_by_more_than_is_said(metric, seed, dims, spread):
    rng, measure = np.random.default_rng(seed), Metric(metric)
    left, right = unit_rows(rng, 40, dims, spread), unit_rows(rng, 40, dims, spread)
    right[:20] = left[:20] + 1e-3 * right[:20]
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    whole, rounded = (
        metrics.distances(*(torch.from_numpy(vectors) for vectors in pair)).numpy()
        for pair in ((left, right), (in_half(left), in_half(right)))
    )
    moved = np.abs(whole - rounded) / measure.threshold(1.0)
    assert moved.max() <= 2.0**-11 + dims**0.5 * 2.0**-25 + 1e-7 <= 0.0004908


def test_rounding_is_to_the_nearest_number_and_done_once():
    vectors = np.float32([[1 / 3, -(1 + 2.0**-11), 1 + 3 * 2.0**-11, 2.0**-25, 3 * 2.0**-25, 1e-9]])
    expected = [0.333251953125, -1.0, 1 + 2 * 2.0**-10, 0.0, 2.0**-23, 0.0]
    assert in_half(vectors).tolist() == [expected]
    assert in_half(in_half(vectors)).tolist() == [expected]
    assert in_half(vectors).dtype == np.float32


def test_a_model_gives_rounded_vectors_and_another_fingerprint():
    whole = create_embedder("hashing", dimensions=33)
    half = with_precision(whole, HALF)
    assert np.array_equal(half.embed(VALUES), in_half(whole.embed(VALUES)))
    assert not np.array_equal(half.embed(VALUES), whole.embed(VALUES))
    assert (half.kind, half.dimensions) == (whole.kind, whole.dimensions)
    assert half.fingerprint != whole.fingerprint
    assert with_precision(whole, SINGLE) is whole
    assert with_precision(half, HALF) is half


def test_a_model_without_vectors_of_its_own_is_left_alone():
    lexical = create_embedder("lexical")
    assert with_precision(lexical, HALF) is lexical


def test_a_saved_model_keeps_its_precision(tmp_path: Path):
    half = with_precision(create_embedder("hashing", dimensions=33), HALF)
    half.save(tmp_path / "model")
    opened = load_embedder(tmp_path / "model", verify=True)
    assert isinstance(opened, HalfPrecision)
    assert opened.fingerprint == half.fingerprint
    assert np.array_equal(opened.embed(VALUES), half.embed(VALUES))
    again = create_embedder(str(tmp_path / "model"))
    assert again.fingerprint == half.fingerprint
    again.save(tmp_path / "again")
    assert load_embedder(tmp_path / "again", verify=True).fingerprint == half.fingerprint


def test_a_precision_that_is_not_known_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"must be one of half, single\. Got 'double'"):
        with_precision(create_embedder("hashing", dimensions=33), "double")
    with_precision(create_embedder("hashing", dimensions=33), HALF).save(tmp_path / "model")
    path = tmp_path / "model" / "embedder.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "precision": "quarter"}))
    with pytest.raises(EmbedderError, match="is not complete"):
        load_embedder(tmp_path / "model")
