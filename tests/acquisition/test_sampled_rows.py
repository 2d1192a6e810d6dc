"""Rows in samples: whole keys, alike on both sides of a join, and plans measured on them."""

import math

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.acquisition.plan_figures import measures_of
from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.candidates import rank_candidates
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.graph import JoinGraph, edges_of
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree, Terminal
from pexeso.acquisition.samples import SampledPlans
from pexeso.acquisition.searches import Market
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.oracle import market_table

N = 4000


def market():
    random = np.random.default_rng(3)
    kinds = random.integers(0, 4, N)
    mine = pa.table({"id": np.repeat(np.arange(N), 2), "x": np.repeat(kinds, 2)})
    other = pa.table({"key": [f"{at}.0" for at in range(N)] + [None], "y": [*kinds % 2, 1]})
    tables = {
        "mine": market_table("mine", mine, owned=True),
        "other": market_table("other", other),
    }
    coded = CodedColumns()
    edges = edges_of(tables, {("mine", "other"): [("id", "key")]}, coded)
    return JoinGraph.of(tables.values(), edges), coded


def tree_of(graph):
    edge = graph.edge("mine", "other")
    return JoinTree.of(
        [Join("mine", "other", edge.join_sets[0])], [("mine", "x")], [("other", "y")]
    )


def test_a_key_is_in_both_samples_or_in_none():
    graph, coded = market()
    tree, sampled = tree_of(graph), SampledPlans(graph, 0.25, 1, coded)
    mine, other = sampled.rows_of(tree, "mine"), sampled.rows_of(tree, "other")
    assert np.array_equal(mine[::2], mine[1::2])
    assert np.array_equal(mine[::2], other[:N])
    assert not other[N]  # no key
    assert abs(other.sum() - N / 4) < 4 * np.sqrt(N * 0.25 * 0.75)
    again = SampledPlans(graph, 0.25, 1)
    assert np.array_equal(again.rows_of(tree, "other"), other)
    assert not np.array_equal(SampledPlans(graph, 0.25, 2).rows_of(tree, "other"), other)
    smaller = SampledPlans(graph, 0.1, 1).rows_of(tree, "other")
    assert not (smaller & ~other).any()


def test_plans_are_measured_on_the_rows_of_the_sample():
    graph, coded = market()
    sampled = SampledPlans(graph, 0.25, 0, coded)
    request = AcquisitionRequest(
        (Terminal.of(graph, "x", "mine"),), (Terminal.of(graph, "y", "other"),)
    )
    tree = tree_of(graph)
    expected = measures_of(Evaluator(graph, coded, rows_of=sampled.rows_of), tree)
    assert expected.n_rows == 2 * sampled.rows_of(tree, "other").sum()
    samples = Market(graph, coded, sampled)
    [plan] = samples.plans(request, math.inf).plans
    assert plan.measures == expected
    whole = Market(graph, coded).plans(request, math.inf).plans[0].measures
    assert whole.n_rows == 2 * N
    assert expected.correlation == pytest.approx(whole.correlation, abs=0.05)
    [ranked] = rank_candidates(graph, request.have, coded=coded, rows_of=samples.rows_of).plans
    assert ranked.measures == expected
    assert rank_candidates(graph, request.have, coded=coded).plans[0].measures == whole


def test_a_sample_without_rows_has_no_plan():
    graph, coded = market()
    request = AcquisitionRequest(
        (Terminal.of(graph, "x", "mine"),), (Terminal.of(graph, "y", "other"),)
    )
    market_of_none = Market(graph, coded, SampledPlans(graph, 1e-9, 0, coded))
    outcome = market_of_none.plans(request, math.inf)
    assert outcome.plans == ()
    assert "no join of them has a row" in outcome.reason
    rows_of = market_of_none.rows_of
    assert rank_candidates(graph, request.have, coded=coded, rows_of=rows_of).plans == ()


def test_few_keys_are_not_sampled():
    tables = [
        market_table("a", pa.table({"k": ["x", "y"], "v": [1, 2]})),
        market_table("b", pa.table({"k": ["x", "y"], "w": [1, 2]})),
    ]
    graph = natural_graph(tables, CodedColumns())
    edge = graph.edge("a", "b")
    tree = JoinTree.of([Join("a", "b", edge.join_sets[0])], [("a", "v")], [("b", "w")])
    assert SampledPlans(graph, 0.5).rows_of(tree, "a") is None
