"""Plans formed and measured, the best with their proof, columns ranked, and why there is none."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from long_runs import long_but

from benchmarks.acquisition.plan_figures import measures_of
from benchmarks.dance_published.natural import natural_graph
from benchmarks.dance_published.walk import closed_tree
from pexeso.acquisition import paths, plans, row_counts
from pexeso.acquisition.candidates import rank_candidates
from pexeso.acquisition.evaluation import Evaluator, OutOfTime
from pexeso.acquisition.exact import Limits, _Front, find_plans
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree, Terminal, TreeSearch
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import CodedColumns, ListedPrices
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition.exhaustive import all_plans, is_closed, measured, plans_within
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


def test_a_limit_of_memory_is_told(market, monkeypatch):
    graph, coded = market
    request = AcquisitionRequest(
        (Terminal.of(graph, "age", "mine"),), (Terminal.of(graph, "smog"),)
    )
    monkeypatch.setattr(plans, "MAX_STATES", 0)
    outcome = find_plans(graph, request, coded)
    assert outcome.stopped == "memory"
    assert "limit on memory" in outcome.reason


@pytest.fixture
def graph():
    tables = [
        market_table("a", pa.table({"x": [1, 2], "y": [1, 2]})),
        market_table("b", pa.table({"x": [1, 2], "y": [1, 2], "z": [3, 4]})),
        market_table("c", pa.table({"x": [1, 2], "z": [3, 4]}), owned=True),
    ]
    return natural_graph(tables, CodedColumns())


def join(graph, one, other, *names):
    edge = graph.edge(one, other)
    (chosen,) = [join_set for join_set in edge.join_sets if join_set.left == names]
    return Join(edge.left, edge.right, chosen)


def test_columns_prices_and_statements_of_a_plan(graph):
    tree = JoinTree.of(
        [join(graph, "a", "b", "x"), join(graph, "b", "c", "z")], [("c", "x")], [("a", "y")]
    )
    assert tree.columns == {"a": ("x", "y"), "b": ("x", "z"), "c": ("x", "z")}
    assert tree.price(graph) == 4
    assert [table for table, _ in tree.rooted("c")] == ["c", "b", "a"]


def test_closure_joins_by_all_shared_columns(graph):
    loose = JoinTree.of(
        [join(graph, "a", "b", "x"), join(graph, "b", "c", "z")], [("c", "x")], [("a", "y")]
    )
    assert not is_closed(loose, graph)  # b and c both have x
    closed = closed_tree(loose, graph)
    assert is_closed(closed, graph)
    assert [closed_join.join_set.left for closed_join in closed.joins] == [("x",), ("x", "z")]


@pytest.mark.parametrize("seed", range(10))
def test_ac_9_closed_plans_stay_and_have_what_is_asked_for(seed):
    graph, request = random_market(seed)
    for tree in all_plans(graph, request):
        assert closed_tree(tree, graph).signature == tree.signature
        for (table, column), terminal in zip(
            (*tree.have, *tree.want), request.terminals, strict=True
        ):
            assert column == terminal.column
            assert table in terminal.tables
            assert column in tree.columns[table]


def test_terminals(graph):
    assert Terminal.of(graph, "x").tables == ("a", "b", "c")
    with pytest.raises(InputError, match="No table has a column 'w'"):
        Terminal.of(graph, "w")
    with pytest.raises(ColumnNotFoundError, match="'a' has no column 'z'"):
        Terminal.of(graph, "z", "a")


def test_something_must_be_wanted_and_nothing_twice():
    x, z = Terminal("x", ("a",)), Terminal("z", ("b",))
    with pytest.raises(InputError, match="needs a wanted column"):
        AcquisitionRequest((x,), ())
    with pytest.raises(InputError, match="two if there is nothing to explain"):
        AcquisitionRequest((), (z,))
    with pytest.raises(InputError, match="'z' is named twice"):
        AcquisitionRequest((x,), (z, z))
    assert AcquisitionRequest((), (x, z)).terminals == (x, z)


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
@pytest.mark.parametrize("seed", long_but(range(60, 68), range(60, 80)))
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
@pytest.mark.parametrize("seed", long_but(range(80, 88), range(80, 100)))
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


def test_few_partial_plans_in_memory_are_told(monkeypatch):
    graph, request = random_market(3)
    monkeypatch.setattr(plans, "MAX_STATES", 1)
    search = TreeSearch(graph, request)
    list(search)
    assert search.truncated


def test_time_ends_a_correlation():
    graph, request = random_market(3)
    tree = next(tree for tree in TreeSearch(graph, request) if len(tree.tables) > 1)
    with pytest.raises(OutOfTime):
        Evaluator(graph, deadline=-math.inf).correlation(tree)


N_PLACES, N_STATES = 200, 20


def market_of_smog(numeric: bool = False):
    draw = np.random.default_rng(0)
    smog = np.arange(N_STATES) % 2
    state = draw.integers(0, N_STATES, N_PLACES)
    place = draw.integers(0, N_PLACES, 2000)
    sick = np.where(draw.random(2000) < 0.9, smog[state[place]], draw.integers(0, 2, 2000))
    amount = sick * 100 + draw.integers(0, 10, 2000)
    tables = [
        market_table(
            "people",
            pa.table({"place": place, "sick": amount if numeric else sick}),
            owned=True,
            numeric=["sick"] if numeric else [],
        ),
        market_table(
            "places",
            pa.table(
                {
                    "place": np.arange(N_PLACES),
                    "state": state,
                    "mayor": [f"mayor {number}" for number in range(N_PLACES)],
                    "colour": draw.integers(0, 3, N_PLACES),
                }
            ),
        ),
        market_table("states", pa.table({"state": np.arange(N_STATES), "smog": smog})),
        market_table("moons", pa.table({"moon": ["new", "full"]})),
        # Several rows of a key: rows would multiply.
        market_table("visits", pa.table({"place": place[:600], "visitor": sick[:600]})),
    ]
    coded = CodedColumns()
    return natural_graph(tables, coded), coded


def ranked(graph, coded, **options):
    have = [Terminal.of(graph, "sick", "people")]
    return rank_candidates(graph, have, coded=coded, **options)


@pytest.mark.parametrize("numeric", [False, True])
def test_what_tells_most_comes_first_and_names_of_keys_tell_nothing(numeric):
    graph, coded = market_of_smog(numeric)
    ranking = ranked(graph, coded)
    columns = [plan.tree.want[0] for plan in ranking.plans]
    assert set(columns[:2]) == {("places", "state"), ("states", "smog")}  # a state has one smog
    smog = ranking.plans[columns.index(("states", "smog"))]
    assert smog.tree.tables == ("people", "places", "states")
    assert all(plan.optimal for plan in ranking.plans)
    assert ("places", "mayor") not in columns
    assert ("places", "place") not in columns
    assert not any(table in ("moons", "visits", "people") for table, _ in columns)
    gains = [plan.measures.correlation - plan.chance for plan in ranking.plans]
    assert gains == sorted(gains, reverse=True)
    assert gains[1] > 0
    assert all(gain < gains[1] / 10 for gain in gains[2:])


def test_rows_may_multiply_where_that_is_asked_for():
    graph, coded = market_of_smog()
    ranking = ranked(graph, coded, bounds={"max_fan_out": 1000})
    assert ("visits", "visitor") in [plan.tree.want[0] for plan in ranking.plans]


def test_bounds_and_limits():
    graph, coded = market_of_smog()
    near = ranked(graph, coded, bounds={"max_tables": 2})
    assert [plan.tree.want for plan in near.plans[:1]] == [(("places", "state"),)]
    free = ranked(graph, coded, bounds={"budget": 0})
    assert not free.plans
    assert "columns within reach explains more than chance" in free.reason
    late = ranked(graph, coded, limits=Limits(max_seconds=0))
    assert late.stopped == "time"
    assert not late.plans


def test_no_table_within_reach():
    graph, coded = market_of_smog()
    alone = ranked(JoinGraph.of([graph.tables["people"]]), coded)
    assert alone.reason == "No joins lead from your table to another within the bounds."


def test_the_same_seed_gives_the_same_answer():
    graph, coded = market_of_smog()
    one, other = (ranked(graph, coded, seed=5) for _ in range(2))
    assert one.plans == other.plans


@pytest.mark.parametrize("max_entries", [2, paths.MAX_ENTRIES])
@pytest.mark.parametrize("natural", [True, False])
def test_measures_are_those_of_the_evaluator_and_of_any_blocks(natural, max_entries, monkeypatch):
    monkeypatch.setattr(paths, "MAX_ENTRIES", max_entries)
    n_plans = 0
    for seed in range(60, 75):
        graph, request = random_market(seed, natural=natural)
        start = request.terminals[0].tables[0]
        have = [Terminal(name, (start,)) for name in graph.tables[start].columns[:2]]
        bounds = {"max_fan_out": math.inf, "max_tables": 3}
        for plan in rank_candidates(graph, have, bounds).plans:
            expected = measures_of(Evaluator(graph), plan.tree)
            assert plan.measures.correlation == pytest.approx(expected.correlation, abs=1e-12)
            assert replace(plan.measures, correlation=0) == replace(expected, correlation=0)
            n_plans += 1
    assert n_plans > 5


def test_little_memory_gives_the_same_answer(monkeypatch):
    graph, coded = market_of_smog()
    expected = ranked(graph, coded).plans
    monkeypatch.setattr(paths, "MAX_BYTES", 1)
    assert ranked(graph, coded).plans == expected
