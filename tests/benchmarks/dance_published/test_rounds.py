from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dance_published.walk import PublishedOptions, published_plans
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, FoundPlans, PlanMeasures, Terminal
from pexeso.acquisition.results import AcquisitionPlan
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.exhaustive import all_plans, is_within, measured
from tests.acquisition.markets import markets, requests
from tests.acquisition.motivating_graphs import RULES, age_and_disease, graph_of
from tests.acquisition.weighted_graphs import weighted_graph

quick = settings(derandomize=True, deadline=None, max_examples=25)


def searched(graph: JoinGraph, request: AcquisitionRequest, options=None) -> FoundPlans:
    return published_plans(graph, partial(measured, graph, request), request, options)


def two_tables() -> JoinGraph:
    return graph_of("D3", "D4", dependencies={"D3": RULES})


def test_statements_of_the_worked_example():
    graph = two_tables()
    outcome = searched(graph, age_and_disease(graph, "D4", "D3", budget=10))
    (plan,) = outcome.plans
    assert [bought.sql for bought in AcquisitionPlan.of(plan, graph, CodedColumns()).tables] == [
        'SELECT "Age", "Race" FROM "D4"',
        'SELECT "Disease", "Race" FROM "D3"',
    ]
    assert (plan.optimal, plan.gap) == (False, 1.0)
    assert plan.measures.correlation == pytest.approx(1 / 3)
    assert (outcome.reason, outcome.stopped) == ("", "")
    assert (outcome.n_trees, outcome.n_evaluated) == (3, 3)
    assert 0 < outcome.seconds < 600


def test_without_a_way_to_leave_it_out_the_meaningless_option_is_chosen():
    names = ("DS", "D1", "D2", "D3", "D4", "D5")
    graph = graph_of(*names, owned=["DS"])
    (plan,) = searched(graph, age_and_disease(graph, "DS")).plans
    assert plan.tree.tables == ("D5", "DS")
    assert plan.measures.correlation == pytest.approx(0.591673, abs=1e-6)
    less = graph_of(*names[:-1], owned=["DS"])
    (plan,) = searched(less, age_and_disease(less, "DS")).plans
    assert plan.tree.tables == ("D3", "D4", "DS")
    less = graph.without([("D5", "DS")])
    (plan,) = searched(less, age_and_disease(less, "DS")).plans
    assert ("D5", "DS") not in [(join.left, join.right) for join in plan.tree.joins]


@pytest.mark.parametrize("bounds", [{"budget": 4}, {"min_quality": 0.8}, {"max_tables": 1}])
def test_a_bound_that_no_plan_keeps_leaves_none(bounds):
    graph = two_tables()
    outcome = searched(graph, age_and_disease(graph, "D4", "D3", **bounds))
    assert (outcome.plans, outcome.stopped) == ((), "")
    assert outcome.reason == "No plan that was met is within all bounds."


def test_only_the_lightest_minimal_graph_is_walked():
    weights = {("a", "b"): 0.1, ("a", "c"): 0.2}
    graph = weighted_graph(weights, {"a": "x", "b": "y", "c": "y"})
    request = AcquisitionRequest((Terminal.of(graph, "x"),), (Terminal.of(graph, "y"),))

    def measure(tree) -> PlanMeasures:
        quality = 0.9 if "c" in tree.tables else 0.1
        return PlanMeasures(tree.price(graph), tree.weight, quality, 0.5, 2)

    (plan,) = published_plans(graph, measure, request).plans
    assert plan.tree.tables == ("a", "b")
    assert published_plans(graph, measure, replace(request, min_quality=0.5)).plans == ()


@quick
@given(st.data())
def test_what_is_found_is_a_plan_within_the_bounds(data):
    graph = data.draw(markets(max_tables=3))
    request = data.draw(requests(graph))
    options = PublishedOptions(n_steps=20, n_walks=2, always_walk=data.draw(st.booleans()))
    outcome = searched(graph, request, options)
    turned = JoinGraph(
        dict(reversed(graph.tables.items())), dict(reversed(list(graph.edges.items())))
    )
    again = searched(turned, request, options)
    assert replace(outcome, seconds=0) == replace(again, seconds=0)
    assert bool(outcome.plans) != bool(outcome.reason)
    possible = {tree.signature: tree for tree in all_plans(graph, request)}
    for plan in outcome.plans:
        assert plan.tree.signature in possible
        assert plan.measures == measured(graph, request, plan.tree)
        assert is_within(request, plan.measures)
        assert [column for _, column in (*plan.tree.have, *plan.tree.want)] == [
            terminal.column for terminal in request.terminals
        ]
        bought = {
            table: columns
            for table, columns in plan.tree.columns.items()
            if not graph.tables[table].owned
        }
        assert bought == {
            table: columns
            for table, columns in plan.tree.columns.items()
            if not graph.tables[table].owned
        }


@quick
@given(st.data())
def test_the_search_finds_the_best_plan_where_it_is_on_the_minimal_graph(data):
    graph = data.draw(markets(max_tables=3))
    request = data.draw(requests(graph))
    (plan,) = searched(graph, request).plans or (None,)
    if plan is None:
        return
    within = [(tree, measured(graph, request, tree)) for tree in all_plans(graph, request)]
    best = max(measures.correlation for _, measures in within if is_within(request, measures))
    pairs = [(join.left, join.right) for join in plan.tree.joins]
    on_it = max(
        measures.correlation
        for tree, measures in within
        if is_within(request, measures)
        and (tree.have, tree.want) == (plan.tree.have, plan.tree.want)
        and [(join.left, join.right) for join in tree.joins] == pairs
    )
    assert plan.measures.correlation == pytest.approx(on_it, abs=1e-12)
    assert plan.measures.correlation <= best + 1e-12
