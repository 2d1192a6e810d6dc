"""Tests of range search by nearest neighbours, as faiss searches on a GPU.

`faiss.IndexFlatL2` on the CPU finds neighbours by the same interface.
"""

import numpy as np
import pytest
import torch
from engine_lakes import as_dict, draw_case, sphere

from benchmarks.gpu import neighbours
from benchmarks.gpu.neighbours import FaissKernel, pairs_by_neighbours, pairs_within
from pexeso.engine import metrics
from pexeso.engine.dense.oracle import oracle_pairs
from pexeso.engine.dense.search import Goal, search_partition
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats

faiss = pytest.importorskip("faiss", reason="the package faiss-cpu is not installed")


@pytest.fixture
def counts(monkeypatch):
    """The numbers of neighbours that faiss is asked for."""
    counts: list[int] = []
    nearest = neighbours._nearest

    def counted(index, queries, count):
        counts.append(count)
        return nearest(index, queries, count)

    monkeypatch.setattr(neighbours, "_nearest", counted)
    return counts


def lake_and_queries(dims: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Return vectors with 3,000 equal ones, ties and zeros, and query values near them."""
    rng = np.random.default_rng(dims)
    vectors = np.concatenate(
        [
            np.repeat(sphere(rng, 1, dims), 3000, 0),
            sphere(rng, 800, dims, "clustered"),
            sphere(rng, 400, dims, "coarse"),
            np.zeros((3, dims), np.float32),
        ]
    )[rng.permutation(4203)]
    queries = np.concatenate([vectors[:150:3], sphere(rng, 10, dims), np.zeros((1, dims))])
    return torch.from_numpy(vectors), torch.from_numpy(queries.astype(np.float32))


def decided(
    pairs: tuple[torch.Tensor, torch.Tensor],
    queries: torch.Tensor,
    vectors: torch.Tensor,
    tau: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pairs that the defining distance leaves, as the oracle orders them."""
    order = (pairs[0] * len(vectors) + pairs[1]).argsort()
    query, value = (part[order] for part in pairs)
    real = (queries != 0).any(1)[query] & (vectors != 0).any(1)[value]
    near = metrics.distances(queries[query], vectors[value]) <= tau
    return query[real & near], value[real & near]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("max_neighbours", [1, 24, 2048])
def test_ranges_are_whole_whatever_is_found_at_a_time(counts, monkeypatch, max_neighbours, half):
    monkeypatch.setattr(neighbours, "MAX_NEIGHBOURS", max_neighbours)
    monkeypatch.setattr(neighbours, "_PAIRS_AT_ONCE", 20_000)
    vectors, queries = lake_and_queries()
    if half:
        vectors = vectors.half().float()
    by_products = neighbours._pairs_by_products
    multiplied: list[int] = []

    def counted(queries, vectors, chosen, limit):
        multiplied.append(len(chosen))
        return by_products(queries, vectors, chosen, limit)

    monkeypatch.setattr(neighbours, "_pairs_by_products", counted)
    tie = float(metrics.distances(queries[1], vectors[9])[None])
    for tau in (0.0, 0.12, tie, float(np.nextafter(tie, 0)), 2.0):
        given = pairs_by_neighbours(neighbours.neighbours_of(vectors), vectors, queries, tau)
        right = oracle_pairs(queries, vectors, tau)[:2]
        for ours, theirs in zip(decided(given, queries, vectors, tau), right, strict=True):
            assert torch.equal(ours, theirs)
    # 3,000 equal ones are more than faiss finds on a GPU.
    assert max(multiplied) >= 1
    assert max(counts) == max_neighbours


def test_few_values_are_asked_for_all_of_them(counts):
    vectors, queries = lake_and_queries()
    for n_values in (1, 15, 16, 40):
        some = vectors[:n_values]
        counts.clear()
        rows = pairs_within(neighbours.neighbours_of(some), queries, some, 5.0)[1]
        assert len(rows) == len(queries) * n_values
        assert max(counts) == n_values
    for empty in ((queries[:0], vectors), (queries, vectors[:0])):
        pairs = pairs_within(lambda queries, count: pytest.fail("asked"), *empty, 4.0)
        assert [len(part) for part in pairs] == [0, 0]


@pytest.mark.parametrize("precision", ["single", "half"])
@pytest.mark.parametrize("metric", ["euclidean", "angular"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_searches_by_faiss_find_the_columns(counts, monkeypatch, device, metric, precision):
    monkeypatch.setitem(neighbours._SEARCHES, "cpu", neighbours._SEARCHES[device])
    monkeypatch.setattr(neighbours, "FIRST_NEIGHBOURS", 2)
    monkeypatch.setattr(neighbours, "MAX_NEIGHBOURS", 8)
    options = PartitionLayoutOptions(
        map="projection", n_axes=5, block_size=8, metric=metric, vector_precision=precision
    )
    for seed, (shape, tau) in enumerate(
        (shape, tau) for shape in ("clustered", "coarse") for tau in ("tie", "paper", "largest")
    ):
        case = draw_case(np.random.default_rng(seed), options, 8, 120, 15, 20, shape, tau)
        for max_pairs in (50, 1 << 20):
            answer = search_partition(
                *case.arguments(),
                Goal(case.tau, min_count=2),
                SearchStats(),
                kernel=FaissKernel(),
                max_pairs=max_pairs,
            )
            assert as_dict(answer) == case.joinable(2)
    assert bool(counts) == (device == "cuda")
