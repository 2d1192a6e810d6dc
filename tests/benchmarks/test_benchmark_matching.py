"""The rivals must be exact too: pairs planted around tau, where float32 alone would be luck."""

import numpy as np
import pytest
import torch

from benchmarks.checking import normal_form, oracle_answer
from benchmarks.declared import load_candidates
from benchmarks.lake import METRIC, BenchmarkLake, BenchmarkQuery
from benchmarks.matching import count_columns, product_error, square_error
from pexeso.engine.postings import csr_from_pairs

RIVALS = ("brute_gemm", "faiss_flat", "ball_tree", "pexeso", "pexeso_h")


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def near_tau_lake(dimensions, tau, n_values=400, seed=0):
    """A lake of one value a column, each as near to distance tau from one query vector as float32 allows."""
    generator = np.random.default_rng(seed)
    query = unit(generator.standard_normal((1, dimensions)))
    away = generator.standard_normal((n_values, dimensions))
    away -= (away @ query.T) * query
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    cosine = 1 - tau**2 / 2
    vectors = (cosine * query + np.sqrt(1 - cosine**2) * away).astype(np.float32)
    one = np.ones(n_values, dtype=np.int64)
    names = [str(number) for number in range(n_values)]
    lake = BenchmarkLake("tau", vectors, np.arange(n_values + 1), np.arange(n_values), one, one, names, {})
    return lake, torch.from_numpy(query)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("dimensions", [16, 100, 300])
def test_pairs_at_tau_are_decided_as_defined(name, dimensions):
    if name == "faiss_flat":
        pytest.importorskip("faiss")
    max_distance = 0.06
    lake, vectors = near_tau_lake(dimensions, METRIC.threshold(max_distance, dimensions))
    query = BenchmarkQuery("q", vectors, torch.ones(1, dtype=torch.int64), 1, max_distance, 1)
    right = oracle_answer(lake, query)
    assert 0 < len(right) < lake.n_columns, "the planted pairs must lie on both sides"
    (candidate,) = load_candidates([name], torch.device("cpu"))
    algorithm = candidate.adapter(torch.device("cpu"))
    algorithm.build(lake, candidate.build_arguments)
    algorithm.set_query_arguments(candidate.query_arguments)
    assert normal_form(algorithm.query(query)) == right


@pytest.mark.parametrize("dimensions", [16, 100, 1024])
def test_error_bounds_hold(dimensions):
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.nn.functional.normalize(torch.randn((100, dimensions), generator=generator)) for _ in "ab")
    exact = left.double() @ right.double().T
    assert float(((left @ right.T).double() - exact).abs().max()) < product_error(dimensions, 1.0 + 1e-6)
    squares = ((left[:, None] - right[None]) ** 2).sum(2)
    exact_squares = ((left.double()[:, None] - right.double()[None]) ** 2).sum(2)
    assert float((squares.double() - exact_squares).abs().max()) < square_error(dimensions, 1.0 + 1e-6)


def test_a_query_value_counts_once_for_a_column_with_its_weight(monkeypatch):
    # Values 0 and 1 are in column 0, value 1 and 2 in column 2.
    postings = csr_from_pairs(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 2, 2]), 3)
    query = BenchmarkQuery("q", torch.zeros((3, 2)), torch.tensor([5, 7, 1]), 20, 0.1, needed=5)
    pairs = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 2, 2])
    expected = {0: 5, 2: 13}  # column 0: query value 0 alone; column 2: all three
    assert normal_form(count_columns(*pairs, query, postings, 3)) == expected
    monkeypatch.setattr("benchmarks.matching.MATRIX_CELLS", 3)  # one query value at a time
    monkeypatch.setattr("benchmarks.matching.POSTINGS_AT_ONCE", 1)
    assert normal_form(count_columns(*pairs, query, postings, 3)) == expected
