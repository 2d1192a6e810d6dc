"""Tests of the published cost model: its distance bound, walk estimate and choice of levels."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_lakes import sphere

from pexeso.engine.dense.building import build_partition, n_levels, resolve_options
from pexeso.engine.kernel import Query, Threshold
from pexeso.engine.options import Metric, PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.published import grid as levels
from pexeso.engine.published.grid import MAX_DISTANCES, choose_levels, expected_distances
from pexeso.engine.published.walk import Walk, block, grid_candidates, query_grid
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import Lemma
from pexeso.errors import InputError

OPTIONS = PartitionLayoutOptions(map="pivots", n_pivots=2, cells="grid", n_levels=None)
WALK_ALONE = frozenset({Lemma.CELL_CELL_FILTERING, Lemma.VECTOR_CELL_FILTERING})


def lake(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    vectors = sphere(np.random.default_rng(seed), n, 8, "clustered")
    return vectors, np.arange(0, n + 1, 20), np.arange(n)


def test_the_edge_of_a_leaf_is_the_extent_over_two_to_the_m_whatever_the_number_of_pivots():
    # Sixteen values at 0, 1/16, ..., 15/16 on both axes; tau = 1/16 around 8/16.
    axis = torch.arange(16) / 16
    rows, point = torch.stack([axis, axis], dim=1), torch.tensor([[0.5, 0.5]])
    edges = torch.tensor([[1 / 2**m] * 2 for m in (1, 2, 3, 4)])
    bounds = expected_distances(rows, point, torch.tensor([1 / 16]), edges)
    # 8/16 -+ (1/16 + 1/2**m): all 16, then 3/16 to 13/16, 5/16 to 11/16, 6/16 to 10/16.
    assert bounds.tolist() == [[[16]], [[11]], [[7]], [[5]]]


def test_the_smallest_marginal_count_is_the_bound():
    rng = np.random.default_rng(3)
    rows, points = torch.from_numpy(rng.random((300, 3))), torch.from_numpy(rng.random((20, 3)))
    edges = torch.tensor([[0.1, 0.02, 0.3], [0.05, 0.01, 0.15]], dtype=torch.float64)
    taus = torch.tensor([0.02, 0.05], dtype=torch.float64)
    reach = taus[None, :, None] + edges[:, None]
    apart = (rows[:, None] - points[None]).abs()
    near = apart <= reach[:, :, None, None]  # grids, taus, rows, points, axes
    bounds = expected_distances(rows, points, taus, edges)
    assert bounds.tolist() == near.sum(2).amin(3).tolist()
    # What is near on every axis is near on the best one.
    assert bool((bounds >= near.all(4).sum(2)).all())


def test_cells_touched_are_those_of_the_walk_and_rows_touched_stay_below_the_bound(monkeypatch):
    monkeypatch.setattr(levels, "MAX_LEVELS", 5)
    monkeypatch.setattr(levels, "_SAMPLE_CELLS", 1 << 20)
    vectors, offsets, values = lake()
    built = {}
    for m in range(1, 6):
        options = replace(OPTIONS, n_levels=m)
        built[m] = Partition.from_arrays(
            build_partition(vectors, offsets, values, options)[0], options
        )
    mapped = built[1].cells.mapped
    queries, taus = (
        mapped[::40],
        [Metric("euclidean").threshold(fraction) for fraction in MAX_DISTANCES],
    )
    trials = {trial.n_levels: trial for trial in choose_levels(mapped, queries, taus)}
    assert sorted(trials) == [1, 2, 3, 4, 5]
    for m, partition in built.items():
        stats = SearchStats()
        for tau in taus:
            for point in queries:
                # Without the tolerance of coordinates, which the model has no part in.
                threshold = Threshold(tau, 0.0, WALK_ALONE)
                grid = query_grid(partition.cells, point[None])
                block(Walk(partition.cells, partition.map, grid, threshold, stats))
                one = torch.ones(1, dtype=torch.int64)
                query = Query(partition, threshold, partition.vectors[:1], point[None], one, 1)
                touched = SearchStats()
                list(grid_candidates(query, 1 << 30, touched))
                stats.vectors_touched += touched.vectors_touched
        n = len(taus) * len(queries)
        assert trials[m].cells == len(partition.cells.grid.leaves)
        assert stats.box_pairs / n == pytest.approx(trials[m].cell_pairs, abs=0.06)
        assert 0 < stats.vectors_touched / n <= trials[m].distances


def test_more_levels_leave_fewer_distances_and_touch_more_cells():
    vectors, offsets, values = lake(3000)
    chosen, trials = resolve_options(vectors, offsets, values, OPTIONS)
    by_level = sorted(trials, key=lambda trial: trial.n_levels)
    assert [trial.n_levels for trial in by_level] == list(range(1, 13))
    for coarse, fine in itertools.pairwise(by_level):
        assert fine.distances <= coarse.distances
        assert fine.cells >= coarse.cells
        assert fine.cell_pairs > coarse.cell_pairs
    assert trials[0].microseconds == min(trial.microseconds for trial in trials)
    assert chosen == replace(OPTIONS, n_levels=trials[0].n_levels)
    assert 1 < chosen.n_levels < 12
    arrays, _ = build_partition(vectors, offsets, values, OPTIONS)
    assert n_levels(arrays) == chosen.n_levels


def test_the_cells_of_a_large_partition_are_those_that_all_its_rows_fill():
    # A sample of the rows fills fewer of the fine cells, which then look too cheap.
    rows = torch.from_numpy(np.random.default_rng(4).random((1_200_000, 3), dtype=np.float32))
    filled = torch.floor((rows - rows.amin(0)).double() / (rows.amax(0) - rows.amin(0)) * 2**8)
    codes = (filled.clamp(0, 2**8 - 1).long() * torch.tensor([1 << 16, 1 << 8, 1])).sum(1)
    trials = {trial.n_levels: trial for trial in choose_levels(rows, rows[:4], [0.001])}
    assert trials[8].cells == len(codes.unique())


def test_codes_must_fit_so_that_many_pivots_have_few_levels():
    vectors, offsets, values = lake()
    chosen, trials = resolve_options(vectors, offsets, values, replace(OPTIONS, n_pivots=20))
    assert max(trial.n_levels for trial in trials) == 3
    assert chosen.n_levels in (1, 2, 3)
    with pytest.raises(InputError, match=r"63 \* 1"):
        replace(OPTIONS, n_pivots=63)


@pytest.mark.parametrize("n", [0, 5])
def test_a_partition_without_vectors_has_one_level(n):
    nothing = np.zeros((n, 4), dtype=np.float32)
    assert resolve_options(nothing, np.array([0]), np.array([], np.int64), OPTIONS) == (
        replace(OPTIONS, n_levels=1),
        [],
    )
    arrays, _ = build_partition(nothing, np.array([0]), np.array([], np.int64), OPTIONS)
    assert n_levels(arrays) == 1


def test_values_without_columns_are_a_workload_too():
    vectors, *_ = lake(50)
    chosen, trials = resolve_options(vectors, np.array([0]), np.array([], np.int64), OPTIONS)
    assert chosen.n_levels == trials[0].n_levels
