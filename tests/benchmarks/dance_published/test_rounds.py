from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dance_published.walk import PublishedOptions, published_plans
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, FoundPlans, PlanMeasures, Terminal
from pexeso.errors import InputError
from tests.acquisition.exhaustive import all_plans, is_within, measured
from tests.acquisition.markets import markets, requests
from tests.acquisition.motivating_graphs import RULES, age_and_disease, graph_of
from tests.acquisition.weighted_graphs import weighted_graph

quick = settings(derandomize=True, deadline=None, max_examples=25)
WHOLE = PublishedOptions(first_rate=1.0)


def searched(graph: JoinGraph, request: AcquisitionRequest, options=WHOLE, **more) -> FoundPlans:
    return published_plans(
        lambda rate: (graph, partial(measured, graph, request)), request, options, **more
    )


def two_tables() -> JoinGraph:
    return graph_of("D3", "D4", dependencies={"D3": RULES})


def test_statements_of_the_worked_example():
    graph = two_tables()
    outcome = searched(graph, age_and_disease(graph, "D4", "D3", budget=10))
    (plan,) = outcome.plans
    assert [purchase.sql for purchase in plan.tree.purchases(graph)] == [
        'SELECT "Disease", "Race" FROM "D3"',
        'SELECT "Age", "Race" FROM "D4"',
    ]
    assert (plan.optimal, plan.gap) == (False, 1.0)
    assert plan.measures.correlation == pytest.approx(1 / 3)
    assert (outcome.reason, outcome.stopped, outcome.best_seen) == ("", "", {})
    assert (outcome.n_trees, outcome.n_evaluated) == (3, 3)
    assert 0 < outcome.seconds < 600


def test_without_a_way_to_leave_it_out_the_meaningless_option_is_chosen():
    names = ("DS", "D1", "D2", "D3", "D4", "D5")
    graph = graph_of(*names, owned=["DS"])
    (plan,) = searched(graph, age_and_disease(graph, "DS")).plans
    assert plan.tree.tables == ("D5", "DS")
    assert plan.measures.correlation == pytest.approx(0.591673, abs=1e-6)
    less = graph.without(["D5"])
    (plan,) = searched(less, age_and_disease(less, "DS")).plans
    assert plan.tree.tables == ("D3", "D4", "DS")
    less = graph.without(joins=[("D5", "DS")])
    (plan,) = searched(less, age_and_disease(less, "DS")).plans
    assert ("D5", "DS") not in [(join.left, join.right) for join in plan.tree.joins]


@pytest.mark.parametrize(
    ("bounds", "reason", "seen"),
    [
        (
            {"budget": 4},
            "None of 3 plans that were met is within all bounds. The cheapest that keeps the other "
            "bounds costs 4.62256, the budget is 4.",
            {"price": 4.622556},
        ),
        (
            {"min_quality": 0.8},
            "None of 3 plans that were met is within all bounds. The highest quality of those that "
            "keep the other bounds is 0.7, min_quality is 0.8.",
            {"quality": 0.7},
        ),
        (
            # The cheapest within the bound on quality is not the cheapest of all.
            {"budget": 4, "min_quality": 0.69},
            "None of 3 plans that were met is within all bounds. The cheapest that keeps the other "
            "bounds costs 4.62256, the budget is 4.",
            {"price": 4.622556},
        ),
        (
            {"budget": 4, "min_quality": 0.9},
            "None of 3 plans that were met is within all bounds.",
            {},
        ),
        (
            {"max_tables": 1},
            "The connections that were found have 2 tables or more, max_tables is 1.",
            {},
        ),
    ],
)
def test_reasons(bounds, reason, seen):
    graph = two_tables()
    outcome = searched(graph, age_and_disease(graph, "D4", "D3", **bounds))
    assert outcome.plans == ()
    assert outcome.reason == reason
    assert outcome.best_seen == pytest.approx(seen, abs=1e-6)
    assert outcome.stopped == ""


EXAMPLE = {
    ("1", "2"): 0.1,
    ("2", "3"): 0.2,
    ("1", "4"): 0.3,
    ("3", "4"): 0.3,
    ("3", "5"): 0.1,
    ("2", "6"): 0.05,
}


def ends(graph: JoinGraph, **bounds) -> AcquisitionRequest:
    return AcquisitionRequest((Terminal.of(graph, "1"),), (Terminal.of(graph, "5"),), **bounds)


def test_a_bound_that_no_connection_keeps():
    graph = weighted_graph(EXAMPLE)
    outcome = searched(graph, ends(graph, max_informativeness=0.3))
    assert outcome.reason == (
        "The connection of least informativeness that was found has 0.4, max_informativeness is "
        "0.3. The least informativeness of those that keep the other bounds is 0.4, "
        "max_informativeness is 0.3."
    )
    assert outcome.best_seen == pytest.approx({"informativeness": 0.4})
    (plan,) = searched(graph, ends(graph, max_informativeness=0.41)).plans
    assert plan.tree.tables == ("1", "2", "3", "5")


def test_a_landmark_that_is_far_off_hides_plans():
    graph = weighted_graph(EXAMPLE)
    outcomes = {}
    for seed in range(20):
        options = replace(WHOLE, n_landmarks=1, seed=seed)
        outcome = searched(graph, ends(graph, max_informativeness=0.5), options)
        outcomes[bool(outcome.plans)] = outcome
    assert outcomes[True].plans[0].tree.weight == pytest.approx(0.4)
    assert "has 0.7, max_informativeness is 0.5." in outcomes[False].reason


def test_columns_that_no_joins_connect():
    graph = weighted_graph({("1", "2"): 0.2, ("5", "6"): 0.1})
    outcome = searched(graph, ends(graph))
    assert outcome.reason == "No joins connect tables that have all of '1', '5'."
    assert (outcome.n_trees, outcome.n_evaluated) == (0, 0)


def test_the_literal_mode_says_what_it_missed():
    graph = weighted_graph(EXAMPLE)
    outcome = searched(graph, ends(graph), replace(WHOLE, mode="literal"))
    assert outcome.plans == ()
    assert "take mode='repaired'" in outcome.reason
    graph = two_tables()
    request = age_and_disease(graph, "D4", "D3", budget=5)
    outcome = searched(graph, request, replace(WHOLE, mode="literal"))
    assert outcome.plans == ()
    assert "take mode='repaired'" in outcome.reason


def test_a_bound_on_the_correlation_tells_the_gap():
    graph = two_tables()
    request = age_and_disease(graph, "D4", "D3")
    (plan,) = searched(graph, request, bound=0.5).plans
    assert (plan.optimal, plan.gap) == (False, pytest.approx(1 / 3))
    (plan,) = searched(graph, request, bound=plan.measures.correlation).plans
    assert (plan.optimal, plan.gap) == (True, 0.0)


def test_more_minimal_graphs_on_request():
    weights = {("a", "b"): 0.1, ("a", "c"): 0.2}
    graph = weighted_graph(weights, {"a": "x", "b": "y", "c": "y"})
    request = AcquisitionRequest((Terminal.of(graph, "x"),), (Terminal.of(graph, "y"),))

    def measure(tree) -> PlanMeasures:
        better = "c" in tree.tables
        return PlanMeasures(tree.price(graph), tree.weight, 0.9 if better else 0.1, 0.5, 2)

    strict = replace(request, min_quality=0.5)
    outcome = published_plans(lambda rate: (graph, measure), strict, WHOLE)
    assert outcome.plans == ()
    assert "1 connections were not tried: raise max_graphs." in outcome.reason
    both = replace(WHOLE, max_graphs=2)
    (plan,) = published_plans(lambda rate: (graph, measure), strict, both).plans
    assert plan.tree.tables == ("a", "c")
    # Of equal correlations the cheaper plan, then the first.
    (plan,) = published_plans(lambda rate: (graph, measure), request, both).plans
    assert plan.tree.tables == ("a", "b")


def rounds_of(first_good: float, options: PublishedOptions) -> tuple[list[float], FoundPlans]:
    """Return the rates that are asked for where only samples from a rate on have a plan."""
    rates = []
    whole = two_tables()
    request = age_and_disease(whole, "D4", "D3", min_quality=0.5)

    def graph_at(rate: float):
        rates.append(rate)

        def measure(tree) -> PlanMeasures:
            quality = 0.6 if rate >= first_good else 0.2
            return replace(measured(whole, request, tree), quality=quality)

        return whole, measure

    return rates, published_plans(graph_at, request, options)


def test_samples_grow_until_a_plan_is_found():
    rates, outcome = rounds_of(0.4, PublishedOptions(first_rate=0.125))
    assert rates == [0.125, 0.25, 0.5]
    assert len(outcome.plans) == 1
    assert (outcome.n_trees, outcome.n_evaluated) == (9, 9)
    assert outcome.best_seen == {}


def test_samples_grow_up_to_whole_tables():
    rates, outcome = rounds_of(2, PublishedOptions(first_rate=0.3, growth=3))
    assert rates == [0.3, pytest.approx(0.9), 1.0]
    assert outcome.plans == ()
    assert outcome.stopped == ""
    assert outcome.best_seen == {"quality": 0.2}


def test_rounds_can_be_limited():
    rates, outcome = rounds_of(2, PublishedOptions(first_rate=0.125, max_rounds=2))
    assert rates == [0.125, 0.25]
    assert outcome.stopped == "max_rounds=2, at samples of rate 0.25"


@quick
@given(st.data())
def test_what_is_found_is_a_plan_within_the_bounds(data):
    graph = data.draw(markets(max_tables=3))
    request = data.draw(requests(graph))
    mode = data.draw(st.sampled_from(["repaired", "literal"]))
    options = PublishedOptions(
        first_rate=1.0,
        n_steps=20,
        n_walks=2,
        max_graphs=data.draw(st.integers(1, 3)),
        mode=mode,
        auto_exhaustive=data.draw(st.booleans()),
    )
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
        bought = {purchase.table: purchase.columns for purchase in plan.tree.purchases(graph)}
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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mode", "printed", "mode must be one of"),
        ("n_steps", 0, "n_steps must be 1 or more, got 0"),
        ("n_walks", 0, "n_walks must be 1 or more, got 0"),
        ("max_graphs", 0, "max_graphs must be 1 or more, got 0"),
        ("n_landmarks", 0, "n_landmarks must be 1 or more, got 0"),
        ("max_rounds", 0, "max_rounds must be 1 or more, got 0"),
        ("max_covers", -1, "max_covers must be 0 or more, got -1"),
        ("first_rate", 0.0, "first_rate must be above 0 and at most 1"),
        ("first_rate", 1.5, "first_rate must be above 0 and at most 1"),
        ("growth", 1.0, "growth must be above 1"),
        ("growth", float("nan"), "growth must be above 1"),
    ],
)
def test_options_out_of_range_are_refused(name, value, message):
    with pytest.raises(InputError, match=message):
        PublishedOptions(**{name: value})
