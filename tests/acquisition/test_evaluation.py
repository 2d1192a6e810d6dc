"""Measures by counting against those of materialised joins, for every tree of random markets."""

import math
from dataclasses import replace

import pytest
from long_runs import long_but

from benchmarks.acquisition.plan_figures import measures_of
from pexeso.acquisition import row_counts
from pexeso.acquisition.evaluation import Evaluator, OutOfTime
from pexeso.acquisition.plans import TreeSearch
from tests.acquisition.exhaustive import all_plans, measured
from tests.acquisition.random_markets import random_market


@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize("seed", long_but(range(60, 67), range(60, 80)))
def test_measures_are_those_of_the_rows(seed, natural, monkeypatch):
    graph, request = random_market(seed, natural=natural)
    evaluator = Evaluator(graph)
    for tree in all_plans(graph, request):
        expected = measured(graph, request, tree)
        measures = measures_of(evaluator, tree)
        assert measures.n_rows == expected.n_rows
        with monkeypatch.context() as patch:
            patch.setattr(row_counts, "MAX_ENTRIES", 2)
            in_blocks = measures_of(Evaluator(graph), tree)
        for actual in (measures, in_blocks):
            assert (actual.price, actual.informativeness, actual.quality, actual.correlation) == (
                pytest.approx(
                    (
                        expected.price,
                        expected.informativeness,
                        expected.quality,
                        expected.correlation if expected.n_rows else 0,
                    ),
                    abs=1e-9,
                )
            )


@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize("seed", range(60, 80))
def test_no_correlation_is_above_its_bounds(seed, natural):
    graph, request = random_market(seed, natural=natural)
    evaluator = Evaluator(graph)
    for tree in all_plans(graph, request):
        bounds = evaluator.bounds(tree)
        if bounds.n_rows:
            correlation = evaluator.correlation(tree)
            assert correlation <= bounds.correlation + 1e-9
            assert correlation <= evaluator.tighter_bound(tree) + 1e-9


@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize("seed", range(80, 100))
def test_each_tree_within_the_cheap_bounds_is_formed_once(seed, natural):
    graph, request = random_market(seed, natural=natural)
    signatures = [tree.signature for tree in TreeSearch(graph, request)]
    expected = [
        tree.signature
        for tree in all_plans(graph, request)
        if tree.price(graph) <= request.budget
        and tree.weight <= request.max_informativeness
        and all(join.join_set.n_keys for join in tree.joins)
    ]
    assert len(set(signatures)) == len(signatures)
    assert sorted(signatures) == sorted(expected)
    n_tables = [signature[0] for signature in signatures]
    assert n_tables == sorted(n_tables)


def test_joins_that_multiply_rows_can_be_left_out():
    graph, request = random_market(3)
    wide = [*TreeSearch(graph, request)]
    assert wide
    for tree in wide:
        root = (tree.have or tree.want)[0][0]
        fan_outs = [
            join.join_set.left_most if table == join.left else join.join_set.right_most
            for table, join in tree.rooted(root)
            if join is not None
        ]
        limit = max(fan_outs, default=1)
        kept = [plan.signature for plan in TreeSearch(graph, replace(request, max_fan_out=limit))]
        assert tree.signature in kept
        if limit > 1:
            fewer = replace(request, max_fan_out=limit - 1)
            assert tree.signature not in [plan.signature for plan in TreeSearch(graph, fewer)]


def test_few_partial_plans_in_memory_are_told():
    graph, request = random_market(3)
    search = TreeSearch(graph, request, max_states=1)
    list(search)
    assert search.truncated


def test_time_ends_a_correlation():
    graph, request = random_market(3)
    tree = next(tree for tree in TreeSearch(graph, request) if len(tree.tables) > 1)
    with pytest.raises(OutOfTime):
        Evaluator(graph, deadline=-math.inf).correlation(tree)
