"""All plans one by one, against numbers worked out by hand for the paper's tables."""

import pyarrow as pa
import pytest

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.exhaustive import all_plans, is_tree, measured, plans_within, trees
from tests.acquisition.motivating_graphs import RULES, age_and_disease, graph_of
from tests.acquisition.oracle import market_table


def test_the_three_plans_of_two_tables():
    graph = graph_of("D3", "D4", dependencies={"D3": RULES})
    request = age_and_disease(graph, "D4")
    plans = {tree.joins[0].join_set.left: tree for tree in all_plans(graph, request)}
    assert set(plans) == {("Gender",), ("Race",), ("Gender", "Race")}
    for columns, price, correlation, quality, n_rows in [
        (("Gender",), 4.622556, 0.144484, 0.7, 10),
        (("Race",), 6.0, 0.333333, 0.666667, 6),
        (("Gender", "Race"), 7.622556, 0.333333, 0.333333, 6),
    ]:
        measures = measured(graph, request, plans[columns])
        assert (measures.price, measures.correlation, measures.quality) == pytest.approx(
            (price, correlation, quality), abs=1e-6
        )
        assert measures.n_rows == n_rows
        assert measures.informativeness == 0


def test_a_plan_joins_by_all_shared_columns_that_it_has():
    # Race is wanted of D3 and D4 has it: a join by Gender alone that buys Race twice is no plan.
    graph = graph_of("D3", "D4")
    request = AcquisitionRequest(
        (Terminal.of(graph, "Race", "D4"),),
        (Terminal.of(graph, "Race", "D3"), Terminal.of(graph, "Disease", "D3")),
    )
    columns = [tree.joins[0].join_set.left for tree in all_plans(graph, request)]
    assert sorted(columns) == [("Gender", "Race"), ("Race",)]


def test_options_of_the_introduction():
    graph = graph_of("DS", "D1", "D2", "D3", "D4", "D5", owned=("DS",))
    request = age_and_disease(graph, "DS")
    measures = {
        tree.tables: measured(graph, request, tree)
        for tree in all_plans(graph, request)
        if tree.tables in {("D1", "D2", "DS"), ("D5", "DS")}
    }
    assert (measures["D1", "D2", "DS"].correlation, measures["D1", "D2", "DS"].n_rows) == (0, 6)
    assert measures["D5", "DS"].correlation == pytest.approx(0.591673, abs=1e-6)
    assert measures["D5", "DS"].n_rows == 7
    alone = age_and_disease(graph, "D5", "D5")
    plan = next(tree for tree in all_plans(graph, alone) if not tree.joins)
    assert measured(graph, alone, plan).correlation == pytest.approx(0.918296, abs=1e-6)


def test_options_of_the_introduction_that_join_the_own_table_by_age_alone():
    graph = graph_of("DS", "D3", "D4", owned=("DS",))
    request = age_and_disease(graph, "DS", "D3")
    measured_plans = {
        (tree.joins[0].join_set.left, tree.joins[1].join_set.left): measured(graph, request, tree)
        for tree in all_plans(graph, request)
    }
    for columns, correlation, n_rows in [
        (("Gender",), 0.141620, 13),
        (("Race",), 0.197160, 9),
        (("Gender", "Race"), 0.197160, 9),
    ]:
        measures = measured_plans[columns, ("Age",)]
        assert measures.correlation == pytest.approx(correlation, abs=1e-6)
        assert measures.n_rows == n_rows


def test_trees_of_a_circle():
    graph = graph_of("D2", "D3", "D5")
    pairs = sorted(graph.edges)
    assert pairs == [("D2", "D3"), ("D2", "D5"), ("D3", "D5")]
    assert not is_tree(tuple(pairs))
    assert len(trees(graph, 3)) == 1 + 3 + 3
    assert len(trees(graph, 2)) == 1 + 3
    assert not is_tree((("a", "b"), ("c", "d")))


def test_ends_of_a_tree_are_terminals_and_bounds_are_kept():
    graph = graph_of("D3", "D4", "D5")
    request = age_and_disease(graph, "D4", "D3", budget=5)
    plans = all_plans(graph, request)
    assert {tree.tables for tree in plans} == {("D3", "D4"), ("D3", "D4", "D5")}
    within = [tree for tree, _ in plans_within(graph, request)]
    assert [[join.join_set.left for join in tree.joins] for tree in within] == [
        [("Gender",)],
        [("Disease",), ("Age",)],
    ]


def test_keys_compare_by_tokens_and_missing_ones_match_nothing():
    one = market_table("one", pa.table({"k": ["1", "2", None, "-"], "a": ["p", "q", "r", "s"]}))
    other = market_table("other", pa.table({"k": [1.0, 1.0, None, 3.0], "b": [5, 6, 7, 8]}))
    graph = natural_graph([one, other], CodedColumns())
    request = AcquisitionRequest((Terminal.of(graph, "a"),), (Terminal.of(graph, "b"),))
    (tree,) = all_plans(graph, request)
    assert measured(graph, request, tree).n_rows == 2
    assert measured(graph, request, tree).quality == 1


def test_nothing_joined_is_worth_nothing():
    one = market_table("one", pa.table({"k": ["1"], "a": ["p"]}))
    other = market_table("other", pa.table({"k": ["2"], "b": ["q"]}))
    graph = natural_graph([one, other], CodedColumns())
    request = AcquisitionRequest((Terminal.of(graph, "a"),), (Terminal.of(graph, "b"),))
    (tree,) = all_plans(graph, request)
    measures = measured(graph, request, tree)
    assert (measures.quality, measures.correlation, measures.n_rows) == (0, 0, 0)
    assert measures.informativeness == 1
