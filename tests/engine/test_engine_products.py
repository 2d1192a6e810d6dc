"""Tests of products in place of a walk: exact answers, and use only where they cost less."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
import torch
from engine_lakes import (
    ROW_KERNELS,
    as_dict,
    build,
    cases,
    kernel_named,
    listed,
    real_query,
    smallest_count,
    sphere,
    threads_of_torch,
    unit,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from long_runs import examples

from pexeso.engine.dense import prefixes, products
from pexeso.engine.dense.prefixes import prepare_query, threshold_of
from pexeso.engine.dense.products import product_candidates, products_pay
from pexeso.engine.dense.search import (
    BatchQuery,
    Goal,
    exact_partition,
    search_batch_partition,
    search_partition,
)
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, MAX_PAIRS, Lemma

BLOCK_CASES = cases(min_values=1, cells=("blocks",))
FREE = products.WalkCosts(1e9, 0.0, 1e9, 0.0, least_pairs=0)
"""A walk so dear that products always pay."""

DEAR_CANDIDATES = products.WalkCosts(0.0, 0.0, 1e9, 0.0, least_pairs=1 << 60)
"""A walk that is begun, and given up at the first candidate."""


@contextmanager
def walks_cost(costs):
    with (
        patch.dict(products._WALKS, dict.fromkeys(ROW_KERNELS, costs)),
        patch.multiple(
            products,
            LEAST_LIMIT=0,
            _MANY_OF_A_TILE=1,
            QUERIES_CHUNK_SIZE=4,
            _LEAST_ROWS=3,
            _TILE={"cpu": 7, "cuda": 7},
        ),
    ):
        yield


@settings(max_examples=examples(150))
@given(BLOCK_CASES, st.sampled_from((1, 3, 20, MAX_PAIRS)))
def test_products_leave_out_no_match_and_are_sure_of_nothing_else(case, max_pairs):
    query, matches = real_query(case)
    stats = SearchStats()
    candidates, begin = [], 0
    with walks_cost(FREE):
        for part, pairs in product_candidates(query, max_pairs, stats):
            assert len(part) == 1 or len(pairs) <= max_pairs
            candidates += [(begin + place, row) for place, row in listed(pairs)]
            begin += len(part)
    assert begin == (len(query) if case.partition.n_values else 0)
    rows = {(place, row if row >= 0 else ~row) for place, row in candidates}
    assert len(rows) == len(candidates)
    assert (
        {(place, ~row) for place, row in candidates if row < 0}
        <= set(map(tuple, np.argwhere(matches).tolist()))
        <= rows
    )
    assert stats.candidates == len(candidates)
    assert stats.distances >= len(query) * case.partition.n_values


@settings(max_examples=examples(150))
@given(
    BLOCK_CASES,
    st.sampled_from(ROW_KERNELS),
    st.sampled_from((FREE, DEAR_CANDIDATES)),
    st.sampled_from((2, MAX_PAIRS)),
)
def test_answers_are_those_of_the_definition(case, name, costs, max_pairs):
    kernel = kernel_named(name)

    def search(**goal):
        goal = Goal(case.tau, **goal)
        return as_dict(
            search_partition(
                *case.arguments(), goal, SearchStats(), kernel=kernel, max_pairs=max_pairs
            )
        )

    with walks_cost(costs), patch.multiple(prefixes, LEAST_WORK_MULTIPLIED=0, _GATHERED=0):
        for joinability in ("0.000000001", "0.6", "1"):
            needed = smallest_count(joinability, case.total)
            assert search(min_count=needed) == case.joinable(needed)
            answer = search(min_count=needed, decide=True)
            assert answer.keys() == case.joinable(needed).keys()
            assert all(needed <= count <= case.counts[column] for column, count in answer.items())
        assert search(k=2) == case.best(2, 1)


@settings(max_examples=examples(60))
@given(BLOCK_CASES, st.sampled_from(ROW_KERNELS), st.sampled_from((2, MAX_PAIRS)))
def test_batches_have_the_answers_of_the_definition(case, name, max_pairs):
    partition, vectors, weights, _ = case.arguments()
    halves = torch.tensor_split(torch.arange(len(vectors)), 2)
    batch = [BatchQuery(half, weights[half], 1) for half in halves]
    with walks_cost(FREE):
        answers = search_batch_partition(
            partition,
            vectors,
            batch,
            case.tau,
            SearchStats(),
            kernel=kernel_named(name),
            max_pairs=max_pairs,
        )
    for query, answer in zip(batch, answers, strict=True):
        goal = Goal(case.tau, query.min_count)
        assert as_dict(answer) == as_dict(
            exact_partition(partition, vectors[query.members], query.weights, goal)
        )


def spread(dimensions, n_axes):
    rng = np.random.default_rng(0)
    vectors = sphere(rng, 6000, dimensions)
    columns = [rng.integers(6000, size=30).tolist() for _ in range(300)]
    partition, _ = build(
        vectors, columns, PartitionLayoutOptions(map="projection", n_axes=n_axes), raw_tau=False
    )
    return partition, torch.from_numpy(vectors[:100].copy())


@pytest.fixture(scope="module")
def wide():
    """Vectors that spread over all of many dimensions, some near to each other."""
    return spread(256, n_axes=15)


@pytest.fixture(scope="module")
def flat():
    """Vectors that a few axes tell apart."""
    return spread(8, n_axes=7)


def query_of(lake, max_distance, lemmas=ALL_LEMMAS):
    partition, vectors = lake
    ones, threshold = torch.ones(len(vectors)).long(), threshold_of(partition, max_distance, lemmas)
    return prepare_query(partition, vectors, ones, len(vectors), threshold)[0]


def pays(lake, max_distance, name, lemmas=ALL_LEMMAS, least_pairs=0):
    costs = products._WALKS[name]._replace(least_pairs=least_pairs)
    with patch.dict(products._WALKS, {name: costs}):
        return products_pay(query_of(lake, max_distance, lemmas), kernel_named(name))


@pytest.mark.parametrize("name", ROW_KERNELS)
def test_products_are_taken_where_filters_leave_nearly_all(name, wide, flat):
    assert pays(wide, 0.35, name)
    assert pays(wide, 0.5, name)
    assert not pays(wide, 0.01, name)
    assert not pays(flat, 0.01, name)
    # Compiled loops walk so fast that products must spare them candidates, not rows.
    assert not pays(flat, 0.06, "compiled")


def test_a_short_walk_is_begun_without_a_look_and_given_up_where_it_finds_too_much(wide):
    partition, vectors = wide
    kernel, n = kernel_named("compiled"), len(vectors)
    assert not pays(wide, 0.35, "compiled", least_pairs=n * partition.n_values + 1)
    weights = torch.ones(n, dtype=torch.int64)
    for max_distance, multiplied in ((0.35, True), (0.01, False)):
        stats, goal = SearchStats(), Goal(max_distance)
        answer = search_partition(partition, vectors, weights, n, goal, stats, kernel=kernel)
        assert as_dict(answer) == as_dict(exact_partition(partition, vectors, weights, goal))
        assert (stats.distances == n * partition.n_values) == multiplied
        assert stats.vectors_touched < n * partition.n_values / 4


def test_many_matches_in_one_place_are_walked_on_by_many_threads():
    rng = np.random.default_rng(1)
    vectors = sphere(rng, 40_000, 12)
    vectors[:1000] = unit(vectors[:1] + 1e-3 * rng.normal(size=(1000, 12)))
    options = PartitionLayoutOptions(map="projection", n_axes=11)
    partition, _ = build(vectors, [[0, 1], [2, 30_000]], options, raw_tau=False)
    query, weights = torch.from_numpy(vectors[:20]), torch.ones(20, dtype=torch.int64)
    stats, goal = SearchStats(), Goal(0.01)
    with threads_of_torch(4):
        answer = search_partition(
            partition, query, weights, 20, goal, stats, kernel=kernel_named("compiled")
        )
    assert (
        as_dict(answer)
        == as_dict(exact_partition(partition, query, weights, goal))
        == {0: 20, 1: 20}
    )
    assert 0 < stats.distances < 20 * 40_000


def test_a_search_with_a_filter_switched_off_never_multiplies(wide):
    assert not pays(wide, 0.5, "torch", ALL_LEMMAS - {Lemma.PIVOT_FILTERING})


def test_products_of_lesser_precision_are_not_trusted(wide):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert not pays(wide, 0.5, "torch")
    finally:
        torch.set_float32_matmul_precision(before)


def test_threads_give_what_one_gives(wide):
    query, pair_lists = query_of(wide, 0.45), []
    for n_threads in (1, 3):
        with threads_of_torch(n_threads):
            runs = product_candidates(query, 500, SearchStats())
            pair_lists.append([listed(pairs) for _, pairs in runs])
    assert pair_lists[0] == pair_lists[1]
    assert pair_lists[0]
