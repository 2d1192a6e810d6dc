"""Tests that search answers equal plain loops over all pairs."""

import functools

import numpy as np
import pytest
import torch
from engine_lakes import (
    KERNELS,
    METRICS,
    Case,
    as_dict,
    build,
    cases,
    draw_case,
    kernel_named,
    smallest_count,
    sphere,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine import metrics
from pexeso.engine.dense import verification
from pexeso.engine.dense.search import Goal, exact_partition, search_partition
from pexeso.engine.dense.space import DenseSpace
from pexeso.engine.kernel import Kernel
from pexeso.engine.kernels import torch_kernel
from pexeso.engine.options import CELLS, MAPS, Metric, PartitionLayoutOptions
from pexeso.engine.published import walk
from pexeso.engine.published.walk import block
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MAX_PAIRS, Lemma, count_needed
from pexeso.errors import InputError


def search(
    case: Case,
    left_out: torch.Tensor | None = None,
    stats: SearchStats | None = None,
    kernel: Kernel | None = None,
    max_pairs: int = MAX_PAIRS,
    **goal,
) -> dict[int, int]:
    goal, stats = Goal(case.tau, **goal), stats or SearchStats()
    return as_dict(
        search_partition(
            *case.arguments(), goal, stats, left_out, kernel=kernel, max_pairs=max_pairs
        )
    )


@settings(max_examples=18)
@given(
    cases(),
    st.sets(st.sampled_from(list(Lemma)), min_size=5),
    st.integers(2, 30),
    st.integers(5, 90),
)
def test_the_answer_does_not_depend_on_how_the_work_is_cut(case, lemmas, few, some):
    needed, lemmas = smallest_count("0.4", case.total), frozenset(lemmas)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "block", functools.partial(block, max_frontier=few))
        patch.setattr(torch_kernel, "FRONTIER", 16 * few)
        patch.setattr(torch_kernel, "CHUNK_SIZE", few)
        patch.setattr(verification, "FEW_PAIRS", 0)
        patch.setattr(verification, "LATER_ROUNDS", some)
        for name in ("compiled", "torch"):
            cut = {"kernel": kernel_named(name), "max_pairs": some}
            assert search(case, **cut, min_count=needed, lemmas=lemmas) == case.joinable(needed)
            assert search(case, **cut, k=2, lemmas=lemmas) == case.best(2, 1)
            answer = search(case, **cut, min_count=needed, lemmas=lemmas, decide=True)
            assert answer.keys() == case.joinable(needed).keys()
        check_pairs(case, list(range(len(case.columns))))


def check_pairs(case: Case, columns: list[int]) -> None:
    """Compare the pairs of some columns with those that loops find."""
    partition, vectors, _, _ = case.arguments()
    space, numbers = DenseSpace(partition.options), np.array(columns, np.int64)
    pairs = space.column_pairs(partition, vectors, numbers, case.tau, SearchStats())
    column, query, posting, distance, _ = (part.tolist() for part in pairs)
    keys = list(zip(column, query, distance, posting, strict=True))
    assert keys == sorted(keys)
    value = case.order[partition.column_lists.members[pairs[2]]].tolist()
    expected = {
        (place, row, member): case.distances[row, member]
        for place, number in enumerate(columns)
        for row in range(len(case.query))
        for member in set(case.columns[number])
        if case.matches[row, member]
    }
    assert len(column) == len(expected)
    assert set(zip(column, query, value, strict=True)) == expected.keys()
    starts = partition.column_values.offsets.tolist()
    assert all(
        starts[columns[c]] <= p < starts[columns[c] + 1]
        for c, p in zip(column, posting, strict=True)
    )
    wanted = torch.tensor(
        [expected[key] for key in zip(column, query, value, strict=True)], dtype=torch.float64
    )
    fractions = Metric(partition.options.metric).fraction(wanted)
    np.testing.assert_allclose(distance, fractions.numpy(), rtol=1e-14)
    nearest = np.full((len(columns), len(case.query)), case.tau)
    for place, row, near in zip(column, query, distance, strict=True):
        nearest[place, row] = min(nearest[place, row], near)
    answer = space.nearest_in_columns(partition, vectors, numbers, case.tau, SearchStats())
    np.testing.assert_array_equal(answer, nearest)


@settings(max_examples=examples(60))
@given(cases(), st.randoms(use_true_random=False))
def test_column_pairs_are_those_of_brute_force_with_their_distances(case, random):
    columns = [random.randrange(len(case.columns)) for _ in range(random.randrange(6))]
    check_pairs(case, columns)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", ["uniform", "coarse"])
@pytest.mark.parametrize("cells", CELLS)
def test_a_query_value_that_is_a_pivot_meets_every_tie(metric, shape, cells):
    """Check that a query value that is a pivot meets every tie.

    Lemma 1 and Lemma 2 have no room there: the mapped coordinate is the distance itself, rounded to
    float32.
    """
    rng = np.random.default_rng(3)
    dims = 12
    vectors = sphere(rng, 24, dims, shape)
    columns = [[value] for value in range(len(vectors))]
    options = PartitionLayoutOptions(metric, n_pivots=3, n_levels=8, cells=cells, block_size=4)
    partition, _ = build(vectors, columns, options)
    query = partition.map.pivots[:1]
    distances = metrics.distances(query, torch.from_numpy(vectors)).numpy()
    for distance in np.unique(distances):
        for tau in (distance, np.nextafter(distance, 9.0), np.nextafter(distance, -1.0)):
            hits, _ = search_partition(
                partition, query, torch.tensor([1]), 1, Goal(float(tau)), SearchStats()
            )
            assert hits.tolist() == np.flatnonzero(distances <= tau).tolist()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("max_distance", [0.0, 0.06, 0.3, 1.0])
def test_max_distance_is_a_fraction_of_the_largest_distance(metric, max_distance):
    rng = np.random.default_rng(11)
    dims = 6
    vectors = np.concatenate([sphere(rng, 30, dims, "clustered"), sphere(rng, 30, dims)])
    columns = [list(range(start, start + 4)) for start in range(0, 60, 4)]
    partition, _ = build(
        vectors, columns, PartitionLayoutOptions(metric, n_pivots=3, n_levels=4), raw_tau=False
    )
    query = vectors[::7]
    difference = query[:, None].astype(float) - vectors[None]
    total = query[:, None].astype(float) + vectors[None]
    fraction = {
        "euclidean": np.linalg.norm(difference, axis=2) / 2,
        "angular": 2
        * np.arctan2(np.linalg.norm(difference, axis=2), np.linalg.norm(total, axis=2))
        / np.pi,
    }[metric]
    counts = {
        c: int((fraction[:, column] <= max_distance).any(1).sum())
        for c, column in enumerate(columns)
    }
    arguments = partition, torch.from_numpy(query), torch.ones(len(query), dtype=torch.int64)
    expected = {column: count for column, count in counts.items() if count}
    assert (
        as_dict(search_partition(*arguments, len(query), Goal(max_distance), SearchStats()))
        == expected
    )
    assert as_dict(exact_partition(*arguments, Goal(max_distance))) == expected


@pytest.mark.parametrize("vectors", [np.zeros((0, 4), np.float32), np.zeros((3, 4), np.float32)])
@pytest.mark.parametrize("chosen", MAPS)
@pytest.mark.parametrize("cells", CELLS)
def test_a_partition_without_vectors_answers_with_nothing(vectors, chosen, cells):
    columns = [[], list(range(len(vectors)))]
    partition, order = build(
        vectors, columns, PartitionLayoutOptions(map=chosen, cells=cells, n_axes=5)
    )
    assert (partition.n_values, partition.n_columns, len(order)) == (0, 2, 0)
    query = torch.eye(4)[:2]
    for goal in (Goal(1.0), Goal(1.0, k=1), Goal(1.0, k=5), Goal(1.0, decide=True)):
        assert (
            as_dict(
                search_partition(partition, query, torch.tensor([1, 1]), 2, goal, SearchStats())
            )
            == {}
        )
        assert as_dict(exact_partition(partition, query, torch.tensor([1, 1]), goal)) == {}
    space = DenseSpace(partition.options)
    pairs = space.column_pairs(partition, query, np.arange(2), 1.0, SearchStats())
    assert [len(part) for part in pairs] == [0, 0, 0, 0, 0]


def test_a_query_of_zero_vectors_matches_nothing():
    partition, _ = build(np.eye(4, dtype=np.float32), [[0, 1], [2, 3]], PartitionLayoutOptions())
    query = torch.zeros(2, 4)
    for goal in (Goal(2.0), Goal(2.0, k=1)):
        assert (
            as_dict(
                search_partition(partition, query, torch.tensor([1, 1]), 2, goal, SearchStats())
            )
            == {}
        )
    space = DenseSpace(partition.options)
    assert len(space.column_pairs(partition, query, np.arange(1), 2.0, SearchStats())[0]) == 0


@pytest.mark.parametrize("entry", [float("nan"), float("inf"), 3.0])
def test_a_query_vector_that_is_not_of_unit_length_is_refused(entry):
    """It would share a cell, and so a box, with query values that have matches."""
    partition, _ = build(np.eye(4, dtype=np.float32), [[0, 1], [2, 3]], PartitionLayoutOptions())
    query = torch.eye(4)[:3]
    query[1, 0] = entry
    with pytest.raises(
        InputError, match=r"^Vectors must be of unit length or zero\. Got length \S+ at row 1 "
    ):
        search_partition(
            partition, query, torch.ones(3, dtype=torch.int64), 3, Goal(0.1), SearchStats()
        )
    with pytest.raises(InputError, match=r"Got float64 of shape \(3, 4\) instead\.$"):
        search_partition(
            partition, query.double(), torch.ones(3, dtype=torch.int64), 3, Goal(0.1), SearchStats()
        )


@given(st.integers(1, 10**6), st.integers(1, 10**9))
@example(5, 600_000_000)
@example(3, 333_333_333)
@example(10, 700_000_000)
def test_the_count_needed_is_the_smallest_that_suffices(total, billionths):
    needed = count_needed(billionths / 10**9, total)
    assert 1 <= needed <= total
    assert needed * 10**9 >= billionths * total
    assert needed == 1 or (needed - 1) * 10**9 < billionths * total


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("cells", CELLS)
def test_filters_leave_a_small_part_of_the_distances(metric, cells):
    """Filters that keep everything give right answers too, so the work is measured."""
    rng = np.random.default_rng(5)
    dims, n_clusters = 16, 60
    centres = sphere(rng, n_clusters, dims)
    vectors = unit_near(rng, np.repeat(centres, 30, axis=0))
    columns = [list(range(start, start + 15)) for start in range(0, len(vectors), 15)]
    options = PartitionLayoutOptions(metric, n_pivots=5, n_levels=5, cells=cells, block_size=8)
    partition, _ = build(vectors, columns, options)
    query = unit_near(rng, centres[:12])
    tau = Metric(metric).threshold(0.04)
    stats = SearchStats()
    weights = torch.ones(len(query), dtype=torch.int64)
    answer = search_partition(
        partition, torch.from_numpy(query), weights, len(query), Goal(tau), stats
    )
    assert as_dict(answer) == as_dict(
        exact_partition(partition, torch.from_numpy(query), weights, Goal(tau))
    )
    assert len(answer[0]) >= 20
    every_pair = len(query) * len(vectors)
    n_cells = len(partition.blocks) if cells == "blocks" else len(partition.cells.grid.leaves)
    assert stats.candidate_pairs < 0.3 * len(query) * n_cells
    assert stats.vectors_touched < 0.3 * every_pair
    assert 0 < stats.distances < 0.1 * every_pair


def unit_near(rng: np.random.Generator, centres: np.ndarray) -> np.ndarray:
    rows = centres + 0.002 * rng.normal(size=centres.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("cells", CELLS)
def test_a_column_short_of_the_count_costs_no_distance(kernel, cells):
    kernel = kernel_named(kernel)
    rng = np.random.default_rng(8)
    options = PartitionLayoutOptions(n_pivots=4, n_levels=5, cells=cells)
    case = draw_case(rng, options, 8, 60, 12, 9, "clustered", "paper")
    free, all_needed = SearchStats(), SearchStats()
    search(case, stats=free, kernel=kernel)
    search(case, stats=all_needed, kernel=kernel, min_count=case.total)
    assert all_needed.distances < free.distances
    assert all_needed.columns_dead > free.columns_dead
