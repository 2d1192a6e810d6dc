"""The best plans with their proof, and why there is none."""

import math

import pyarrow as pa
import pytest
from long_runs import long_but

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.exact import Limits, _Front, find_plans
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import CodedColumns, ListedPrices
from tests.acquisition.exhaustive import plans_within
from tests.acquisition.oracle import market_table
from tests.acquisition.random_markets import random_market


def values(measures):
    return measures.price, measures.informativeness, measures.quality, measures.correlation


@pytest.mark.parametrize("natural", [True, False])
@pytest.mark.parametrize("seed", long_but(range(8), range(60)))
def test_the_front_is_that_of_all_plans(seed, natural):
    graph, request = random_market(seed, natural=natural)
    within = [candidate for candidate in plans_within(graph, request) if candidate[1].n_rows]
    front = _Front(is_whole=True)
    for candidate in within:
        front.add(*candidate)
    expected = [measures for _, measures in front.ranked()]
    outcome = find_plans(graph, request)
    assert [
        (plan.measures.price, plan.measures.quality, plan.measures.correlation)
        for plan in outcome.plans
    ] == [
        pytest.approx((measures.price, measures.quality, measures.correlation), abs=1e-9)
        for measures in expected
    ]
    of_tree = {tree.signature: measures for tree, measures in within}
    for plan in outcome.plans:
        assert values(plan.measures) == pytest.approx(
            values(of_tree[plan.tree.signature]), abs=1e-9
        )
        assert plan.measures.n_rows == of_tree[plan.tree.signature].n_rows
        assert plan.optimal
        assert plan.gap == 0
    if not within:
        assert outcome.reason
    first = find_plans(graph, request, limits=Limits(front=False))
    best = max((measures.correlation for _, measures in within), default=-math.inf)
    assert [plan.measures.correlation for plan in first.plans] == pytest.approx(
        [best] if within else [], abs=1e-9
    )


@pytest.fixture
def market():
    tables = [
        market_table("mine", pa.table({"zip": [1, 2, 3], "age": [30, 40, 50]}), owned=True),
        market_table(
            "towns",
            pa.table({"zip": [1, 2, 2, 8, 9], "state": ["NJ", "NY", "MA", "NJ", "NJ"]}),
            price=ListedPrices("towns", {"zip": 1, "state": 2}),
            dependencies=[Dependency(("zip",), "state")],
        ),
        market_table(
            "states",
            pa.table({"state": ["NJ", "NY", "MA"], "smog": ["low", "high", "low"]}),
            price=ListedPrices("states", {"state": 3, "smog": 4}),
        ),
        market_table("moons", pa.table({"moon": ["new"]})),
        market_table("islands", pa.table({"state": ["HI"], "beach": ["long"]})),
    ]
    coded = CodedColumns()
    return natural_graph(tables, coded), coded


def reason(market, want, **bounds):
    graph, coded = market
    request = AcquisitionRequest(
        (Terminal.of(graph, "age", "mine"),), (Terminal.of(graph, want),), **bounds
    )
    outcome = find_plans(graph, request, coded)
    assert not outcome.plans
    return outcome.reason, outcome.best_seen


def test_no_path_names_the_components(market):
    message, _ = reason(market, "moon")
    assert message == (
        "No joins of at most 6 tables (max_tables) lead from 'age' of 'mine' to 'moon' of 'moons'. "
        "'mine' is connected with states, towns; 'moons' joins no table that leads there."
    )


def test_keys_that_do_not_meet(market):
    message, _ = reason(market, "beach")
    assert message.endswith("'islands' joins no table that leads there.")


def test_a_small_budget_tells_the_least_that_would_do(market):
    message, best = reason(market, "smog", budget=9)
    assert "the budget of 9 is too small: the least that a plan costs is 10" in message
    assert best["price"] == 10


def test_a_threshold_of_quality(market):
    message, best = reason(market, "smog", min_quality=0.99, budget=10)
    said = f"the best that one has is {best['quality']:.6g}."
    assert f"min_quality of 0.99 excludes all plans: {said}" in message
    assert 0 < best["quality"] < 0.99


def test_a_threshold_of_informativeness(market):
    message, best = reason(market, "smog", max_informativeness=0)
    said = f"the least that joins add up to is {best['informativeness']:.6g}."
    assert f"max_informativeness of 0 excludes all plans: {said}" in message
    assert best["informativeness"] > 0


def test_too_few_tables(market):
    message, best = reason(market, "smog", max_tables=2)
    assert "max_tables of 2 is too small: a plan has at least 3" in message
    assert best["tables"] == 3


def test_several_bounds_at_once(market):
    message, best = reason(market, "smog", budget=1, max_tables=2)
    assert message == "No plan keeps the bounds, not even with one of them left out: relax several."
    assert not best


def test_a_limit_of_memory_is_told(market):
    graph, coded = market
    request = AcquisitionRequest(
        (Terminal.of(graph, "age", "mine"),), (Terminal.of(graph, "smog"),)
    )
    outcome = find_plans(graph, request, coded, Limits(max_states=0))
    assert outcome.stopped == "memory"
    assert "limit on memory" in outcome.reason
