"""Tests of the published grid under the Triton kernel, in Triton's interpreter.

`test_kernel_triton` runs this file with ``TRITON_INTERPRET=1``.
"""

import numpy as np
import pytest
import torch
from engine_lakes import Case, as_dict, build, draw_case, draw_columns, real_query, sphere, unit
from long_runs import long_but, long_cases_but
from triton_in_interpreter import ROOM, check_batch, check_matches, check_search

from pexeso.engine.blocks import pad_axes
from pexeso.engine.dense.search import Goal, search_partition
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernels.triton import lists as workspace
from pexeso.engine.kernels.triton import search
from pexeso.engine.kernels.triton import search as walk
from pexeso.engine.kernels.triton.kernel import TritonKernel
from pexeso.engine.kernels.triton.search import DecidedPairs
from pexeso.engine.kernels.triton.values import FAR, QueryPlaces
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.published.grid import blocks_bytes
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma


def grid(map_name: str = "pivots", metric: str = "euclidean", **given: int):
    given = {"n_levels": 3, "n_pivots": 3, "n_axes": 4} | given
    return PartitionLayoutOptions(metric=metric, map=map_name, cells="grid", **given)


def case_of(vectors: np.ndarray, options: PartitionLayoutOptions, seed: int, tau: float) -> Case:
    """Ask for stored values and for values near to them, one of them twice."""
    rng = np.random.default_rng(seed)
    columns = draw_columns(rng, len(vectors), 12)
    partition, order = build(vectors, columns, options)
    some = vectors[rng.integers(len(vectors), size=5)]
    query = np.concatenate([some, unit(some + 0.02 * rng.normal(size=some.shape))])
    weights = np.ones(len(query), np.int64)
    weights[0] = 2
    return Case(vectors, columns, partition, order, query, weights, len(query) + 1, tau)


@pytest.mark.parametrize(
    ("map_name", "metric", "shape"),
    long_cases_but(
        [("pivots", "euclidean", "clustered"), ("projection", "angular", "coarse")],
        [
            (map_name, metric, shape)
            for map_name, metrics in (
                ("pivots", ("euclidean", "angular")),
                ("projection", ("euclidean", "angular")),
            )
            for metric in metrics
            for shape in ("clustered", "coarse", "uniform")
        ],
    ),
)
@pytest.mark.parametrize("tau", long_but(["tie"], ["zero", "tie", "above", "below", "largest"]))
def test_random_lakes(map_name, metric, shape, tau):
    rng = np.random.default_rng(len(metric) + len(shape))
    case = draw_case(rng, grid(map_name, metric), 9, 150, 12, 9, shape, tau)
    stats = check_matches(case)
    assert stats.box_pairs > 0
    check_search(case)
    check_batch(case, rng)


@pytest.mark.parametrize("metric", long_but(["euclidean"], ["euclidean", "angular"]))
def test_programs_do_a_whole_search_of_a_grid(metric):
    vectors = sphere(np.random.default_rng(3), 600, 9)
    case = case_of(vectors, grid(metric=metric), 3, 0.05)
    query, _ = real_query(case)
    kernel, stats = TritonKernel(), SearchStats()
    assert kernel.search_all([query], 1, ROOM, stats)[0] is not None
    pairs = kernel.candidates(query, ROOM, SearchStats())
    assert isinstance(pairs, DecidedPairs)
    # Boxes rule out some blocks, and codes some rows of the others.
    assert 0 < stats.candidates < stats.vectors_touched < len(query) * case.partition.n_values


@pytest.mark.parametrize("few", [0, 32])
def test_a_leaf_of_thousands_of_rows_and_leaves_of_one(monkeypatch, few):
    monkeypatch.setattr(search, "FEW", few)
    rng = np.random.default_rng(5)
    centre = sphere(rng, 1, 6)
    near = unit(centre + 0.05 * rng.normal(size=(2100, 6)))
    # Some are the same, others lie alone.
    vectors = np.concatenate([near, near[:40], sphere(rng, 60, 6)])
    for n_levels in (1, 12):
        case = case_of(vectors, grid(n_levels=n_levels), n_levels, 0.01)
        count = case.partition.cells.grid.leaves.count
        assert int(count.max()) > 1000 if n_levels == 1 else int(count.min()) == 1
        stats = check_matches(case)
        assert stats.vectors_touched + stats.matched_by_map < len(case.query) * len(vectors) / 2
        given = search_partition(
            *case.arguments(), Goal(case.tau, min_count=2), SearchStats(), kernel=TritonKernel()
        )
        assert as_dict(given) == case.joinable(2)


@pytest.mark.parametrize("n", [0, 1, 2, 65])
@pytest.mark.parametrize("map_name", long_but(["pivots"], ["pivots", "projection"]))
def test_tiny_partitions(n, map_name):
    rng = np.random.default_rng(n)
    case = draw_case(rng, grid(map_name), 5, n, 4, 5, "uniform", "middle")
    check_search(case)
    if n:
        check_matches(case)


@pytest.mark.parametrize("lemma", long_but([Lemma.CELL_CELL_FILTERING], list(Lemma)))
def test_without_a_lemma(lemma):
    rng = np.random.default_rng(8)
    case = draw_case(rng, grid(), 7, 120, 12, 8, "clustered", "middle")
    for lemmas in (ALL_LEMMAS - {lemma}, frozenset({lemma})):
        given = search_partition(
            *case.arguments(),
            Goal(case.tau, min_count=2, lemmas=lemmas),
            SearchStats(),
            kernel=TritonKernel(),
        )
        assert as_dict(given) == case.joinable(2)


def test_columns_left_out_and_the_best():
    rng = np.random.default_rng(10)
    case = draw_case(rng, grid(), 7, 120, 12, 8, "clustered", "middle")
    left_out = torch.zeros(12, dtype=torch.bool)
    left_out[[0, 3]] = True
    for k, needed in ((None, 1), (2, 1), (None, 3)):
        given = search_partition(
            *case.arguments(), Goal(case.tau, needed, k=k), SearchStats(), left_out,
            kernel=TritonKernel(),
        )  # fmt: skip
        right = case.best(k, needed, (0, 3)) if k else case.joinable(needed, (0, 3))
        assert as_dict(given) == right


@pytest.mark.parametrize("map_name", long_but(["pivots"], ["pivots", "projection"]))
def test_levels_slabs_and_lists_that_grow(monkeypatch, map_name):
    monkeypatch.setattr(walk, "DENSE_UNITS", 0)
    monkeypatch.setattr(search, "SLAB", 16)
    monkeypatch.setattr(workspace, "FIRST_ROOM", dict.fromkeys(workspace.FIRST_ROOM, 1))
    rng = np.random.default_rng(6)
    case = draw_case(rng, grid(map_name), 6, 1100, 12, 20, "clustered", "paper")
    assert case.partition.blocks.n_levels > 1
    check_matches(case)
    given = search_partition(
        *case.arguments(), Goal(case.tau), SearchStats(), kernel=TritonKernel(), max_pairs=200
    )
    assert as_dict(given) == case.joinable(1)


@pytest.mark.parametrize("map_name", long_but(["projection"], ["pivots", "projection"]))
def test_a_query_column_on_the_host(map_name):
    """Search it twice, as a recording would, with a zero vector and a value that never occurs."""
    rng = np.random.default_rng(12)
    case = draw_case(rng, grid(map_name), 9, 130, 12, 8, "clustered", "middle")
    case.query[1] = 0
    case.weights[2] = 0
    kernel = TritonKernel()
    for needed in (2, 1):
        answers = DenseSpace(case.partition.options).search_all(
            [case.partition], torch.from_numpy(case.query), case.weights, case.total,
            Goal(case.tau, needed), SearchStats(), [None], kernel=kernel, max_pairs=ROOM,
        )  # fmt: skip
        assert [as_dict(answer) for answer in answers] == [case.joinable(needed)]


@pytest.mark.parametrize("dims", [3, 20, 130])
@pytest.mark.parametrize("cells", ["grid", "blocks"])
def test_distances_to_pivots_are_prepared_as_tensor_operations_do(dims, cells):
    rng = np.random.default_rng(dims)
    options = PartitionLayoutOptions(cells=cells, n_pivots=5, n_levels=3)
    case = draw_case(rng, options, dims, 50, 6, 11, "clustered", "middle")
    query, _ = real_query(case)
    n, partition = len(query), case.partition
    places = QueryPlaces(16, dims, partition.blocks.codes.shape[1], torch.device("cpu"))
    places.fill(query, 4)
    places.send()
    space = workspace.Workspaces().take(
        TritonKernel._list_limits(partition, ROOM), partition.blocks.n_levels, 1, partition.device
    )
    threshold = query.threshold
    search.CandidateSearch(partition, places, threshold, space).launch()
    right, far = pad_axes(query.mapped).t(), FAR.value
    assert (places.points[:, :n] - right).abs().max() < threshold.slack / 4
    assert (places.points[:, n:] == far).all()
    np.testing.assert_array_equal(places.point_rows, places.points.t())
    upper = pad_axes(query.mapped, partition.map.upper_fill).t()
    assert (places.upper_points[:, :n] - upper).abs().max() < threshold.slack / 4
    np.testing.assert_array_equal(places.halves[:n], query.vectors.half())
    accept = threshold.tau - threshold.slack
    able = (places.points[: query.mapped.shape[1], :n] <= accept).any(0)
    np.testing.assert_array_equal(places.may_accept[:n], able.to(torch.int8))
    assert not places.may_accept[n:].any()


@pytest.mark.parametrize(("n", "n_pivots"), [(0, 3), (1, 3), (64, 9), (2000, 3)])
def test_what_a_device_holds_besides(n, n_pivots):
    rng = np.random.default_rng(n)
    case = draw_case(rng, grid(n_pivots=n_pivots, n_levels=2), 12, n, 4, 3, "uniform", "middle")
    blocks, mapped = case.partition.blocks, case.partition.cells.mapped
    assert blocks.boxes.nbytes + blocks.codes.nbytes == blocks_bytes(*mapped.shape)
