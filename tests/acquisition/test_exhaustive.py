"""All plans one by one, against numbers worked out by hand for the paper's tables."""

import pytest

from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from tests.acquisition.exhaustive import all_plans, measured
from tests.acquisition.motivating_graphs import RULES, age_and_disease, graph_of


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
