"""The rivals must be exact too: pairs planted around tau, where float32 alone would be luck."""

import numpy as np
import pytest
import torch

from benchmarks.checking import normal_form, oracle_answer
from benchmarks.counting import count_columns
from benchmarks.declared import load_candidates
from benchmarks.lake import METRIC, BenchmarkLake, BenchmarkQuery
from benchmarks.matching import (
    product_error,
    rounded_product_error,
    rounding_loss,
    square_error,
)
from pexeso.engine.arrays import csr_from_pairs

RIVALS = (
    "brute_gemm",
    "brute_gemm:bf16",
    "faiss_flat",
    "faiss_flat:l2",
    "ball_tree",
    "ept",
    "pexeso",
    "pexeso_h",
)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def near_tau_lake(dimensions, tau, n_values=400, seed=0):
    """Return a lake of one value per column, all near distance tau from a query, and the query.

    The distances are as near to tau as float32 allows.
    """
    generator = np.random.default_rng(seed)
    query = unit(generator.standard_normal((1, dimensions)))
    away = generator.standard_normal((n_values, dimensions))
    away -= (away @ query.T) * query
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    cosine = 1 - tau**2 / 2
    vectors = (cosine * query + np.sqrt(1 - cosine**2) * away).astype(np.float32)
    one = np.ones(n_values, dtype=np.int64)
    names = [str(number) for number in range(n_values)]
    lake = BenchmarkLake(
        "tau", vectors, np.arange(n_values + 1), np.arange(n_values), one, one, names, {}
    )
    return lake, torch.from_numpy(query)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("dimensions", [16, 100, 300])
def test_pairs_at_tau_are_decided_as_defined(name, dimensions):
    if name.startswith("faiss"):
        pytest.importorskip("faiss")
    max_distance = 0.06
    lake, vectors = near_tau_lake(dimensions, METRIC.threshold(max_distance))
    query = BenchmarkQuery("q", vectors, torch.ones(1, dtype=torch.int64), 1, max_distance, 1)
    right = oracle_answer(lake, query)
    assert 0 < len(right) < lake.n_columns, "the planted pairs must lie on both sides"
    (candidate,) = load_candidates([name], torch.device("cpu"))
    algorithm = candidate.adapter(torch.device("cpu"))
    algorithm.build(lake, **candidate.build_arguments)
    algorithm.set_query_arguments(**candidate.query_arguments)
    assert normal_form(algorithm.query(query)) == right


@pytest.mark.parametrize("dimensions", [16, 100, 1024])
def test_error_bounds_hold(dimensions):
    generator = torch.Generator().manual_seed(0)
    left, right = (
        torch.nn.functional.normalize(torch.randn((100, dimensions), generator=generator))
        for _ in "ab"
    )
    exact = left.double() @ right.double().T
    assert float(((left @ right.T).double() - exact).abs().max()) < product_error(
        dimensions, 1.0 + 1e-6
    )
    squares = ((left[:, None] - right[None]) ** 2).sum(2)
    exact_squares = ((left.double()[:, None] - right.double()[None]) ** 2).sum(2)
    assert float((squares.double() - exact_squares).abs().max()) < square_error(
        dimensions, 1.0 + 1e-6
    )


def test_a_query_value_counts_once_for_a_column_with_its_weight(monkeypatch):
    # Values 0 and 1 are in column 0, value 1 and 2 in column 2.
    postings = csr_from_pairs(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 2, 2]), 3)
    query = BenchmarkQuery("q", torch.zeros((3, 2)), torch.tensor([5, 7, 1]), 20, 0.1, needed=5)
    pairs = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 1, 2, 2])
    expected = {0: 5, 2: 13}  # column 0: query value 0 alone; column 2: all three
    assert normal_form(count_columns(*pairs, query, postings, 3)) == expected
    monkeypatch.setattr("benchmarks.counting.POSTINGS_AT_ONCE", 1)
    assert normal_form(count_columns(*pairs, query, postings, 3)) == expected


@pytest.mark.parametrize(
    ("dtype", "roundoff"), [(torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)]
)
@pytest.mark.parametrize("dimensions", [16, 300, 1024])
def test_the_bound_of_rounded_products_holds_where_rounding_is_worst(dtype, roundoff, dimensions):
    # Every component lies half-way between two numbers of the short format, and loses nearly its
    # whole share.
    component = (1.0 + roundoff) / (1.0 + 3.0 * roundoff)
    vectors = torch.full((1, dimensions), 1.0 + roundoff) / 2.0 ** (dimensions.bit_length() // 2)
    rounded = vectors.to(dtype)
    loss, norm = rounding_loss(vectors, rounded), float(torch.linalg.vector_norm(vectors.double()))
    assert component * roundoff * norm < loss <= roundoff * norm
    exact = float((vectors.double() ** 2).sum())
    error = abs(float((rounded.float() ** 2).sum()) - exact)
    bound = rounded_product_error(dimensions, norm, loss, loss)
    assert 0.9 * bound < error + product_error(dimensions, norm)
    assert error < bound
    assert abs(float((rounded @ rounded.T).float()) - exact) < rounded_product_error(
        dimensions, norm, loss, loss, output_roundoff=roundoff
    )
