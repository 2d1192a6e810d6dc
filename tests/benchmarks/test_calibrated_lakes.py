"""Tests of generated lakes: the rates of the real lake, reproducibility and bounded memory."""

import numpy as np
import pytest
import torch
from lake_profile import WEB_RATES, profile_lake
from long_runs import long_but

from benchmarks.datasets.calibrated import MODELS, VectorChunks, plan_lake
from benchmarks.datasets.calibrated_data import CalibratedData

SMALL = {"swdc": 0.01, "open": 0.01, "lwdc": 0.001}
TINY = {"swdc": 0.0005, "open": 0.001, "lwdc": 0.00001}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("lakes")


@pytest.mark.parametrize("name", long_but(["swdc"], SMALL))
def test_small_scales_keep_the_rates_of_the_real_lake(name, cache):
    lake = CalibratedData(MODELS[name], SMALL[name], 0, cache).load()
    profile = profile_lake(lake, n_columns=500, n_lake_values=1 << 15)
    ratios = {rate: profile[rate] / web_rate for rate, web_rate in WEB_RATES.items()}
    assert all(0.5 <= ratio <= 2.0 for ratio in ratios.values()), ratios


@pytest.mark.parametrize("name", TINY)
def test_a_lake_is_whole(name, cache):
    model = MODELS[name]
    lake = CalibratedData(model, TINY[name], 0, cache).load()
    assert (lake.n_values, lake.n_columns) == model.size_at(TINY[name])
    assert lake.dimensions == model.dimensions
    sizes = np.diff(lake.column_offsets)
    assert sizes.min() >= 2
    assert np.allclose(np.linalg.norm(lake.vectors, axis=1), 1.0, atol=1e-5)
    assert len(np.unique(lake.vectors, axis=0)) == lake.n_values
    # Every value stands in a column, none twice in one, in ascending order.
    assert np.array_equal(np.unique(lake.column_values), np.arange(lake.n_values))
    owner = np.repeat(np.arange(lake.n_columns), sizes)
    inside = np.diff(owner) == 0
    assert (np.diff(lake.column_values)[inside] > 0).all()
    assert lake.value_rows.min() == 1
    assert np.array_equal(
        lake.column_rows, np.bincount(owner, lake.value_rows, minlength=lake.n_columns)
    )
    assert len(lake.columns) == lake.n_columns


def test_the_seed_decides(tmp_path):
    first, again = (
        CalibratedData(MODELS["swdc"], 0.001, 7, tmp_path / folder).load() for folder in "ab"
    )
    other = CalibratedData(MODELS["swdc"], 0.001, 8, tmp_path / "a").load()
    assert first.fingerprint == again.fingerprint
    assert not np.array_equal(first.column_offsets, other.column_offsets)
    assert not np.array_equal(first.vectors, other.vectors)


def test_every_pass_over_the_chunks_gives_the_vectors_of_the_lake(tmp_path):
    lake = CalibratedData(MODELS["swdc"], 0.001, 3, tmp_path).load()
    chunks = VectorChunks(MODELS["swdc"], plan_lake(MODELS["swdc"], 0.001, 3), torch.device("cpu"))
    for _ in range(2):
        assert np.array_equal(torch.cat(list(chunks)).numpy(), lake.vectors)
    assert chunks.shape == lake.vectors.shape
