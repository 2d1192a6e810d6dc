"""Plans and results: what they tell of a plan, in which order, and their machine form."""

import math
from dataclasses import replace

import pyarrow as pa
import pytest

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.plans import FoundPlan, FoundPlans, Join, JoinTree, PlanMeasures
from pexeso.acquisition.results import FEW_ROWS, AcquisitionPlan, AcquisitionResult, PlanJoin
from pexeso.acquisition.searches import Market
from pexeso.acquisition.tables import CodedColumns
from tests.acquisition.motivating_tables import TABLES
from tests.acquisition.oracle import market_table

CODED = CodedColumns()
OWN = market_table("DS", TABLES["DS"], owned=True)
GRAPH = natural_graph(
    [OWN, *(market_table(name, TABLES[name]) for name in ("D1", "D2", "D3", "D4"))], CODED
)


def join(one, other, columns):
    edge = GRAPH.edge(one, other)
    [chosen] = [join_set for join_set in edge.join_sets if set(join_set.left) == set(columns)]
    return Join(edge.left, edge.right, chosen)


def plan(joins, want, *, optimal=True, gap=0.0, n_rows=6, correlation=0.5):
    tree = JoinTree.of(joins, [("DS", "Age")], want)
    measures = PlanMeasures(tree.price(GRAPH), tree.weight, 0.75, correlation, n_rows)
    return FoundPlan(tree, measures, optimal, gap)


CHAIN = plan([join("D1", "DS", ["Zipcode"]), join("D1", "D2", ["State"])], [("D2", "Disease")])
BRANCHES = plan(
    [
        join("D1", "DS", ["Zipcode"]),
        join("D1", "D2", ["State"]),
        join("D4", "DS", ["Age"]),
        join("D3", "D4", ["Race", "Gender"]),
    ],
    [("D2", "Disease"), ("D3", "Disease")],
)


def result(*plans, **more):
    return AcquisitionResult.of(
        FoundPlans(tuple(plans), n_trees=9, n_evaluated=4, seconds=1.25, **more),
        Market(GRAPH, CODED),
        query={"have": ["Age"], "want": ["Disease"]},
        options={"budget": None},
        stats={"sampled": False},
    )


def test_a_path_goes_from_your_table_outwards():
    plan = AcquisitionPlan.of(CHAIN, GRAPH, CODED)
    assert [step.condition for step in plan.path] == [
        "DS:Zipcode = D1:Zipcode",
        "D1:State = D2:State",
    ]
    assert [table.table for table in plan.tables] == ["D1", "D2"]
    assert [table.sql for table in plan.tables] == [
        'SELECT "State", "Zipcode" FROM "D1"',
        'SELECT "Disease", "State" FROM "D2"',
    ]
    assert [(own.table, own.columns) for own in plan.own_tables] == [("DS", ("Age", "Zipcode"))]
    assert sum(table.price for table in plan.tables) == pytest.approx(plan.price)
    assert [step.informativeness for step in plan.path] == [
        pytest.approx(0.127783, abs=1e-6),
        pytest.approx(0.268494, abs=1e-6),
    ]


def test_branches_come_one_after_the_other():
    plan = AcquisitionPlan.of(BRANCHES, GRAPH, CODED)
    assert [step.condition for step in plan.path] == [
        "DS:Zipcode = D1:Zipcode",
        "D1:State = D2:State",
        "DS:Age = D4:Age",
        "D4:Gender,Race = D3:Gender,Race",
    ]
    assert [table.table for table in plan.tables] == ["D1", "D2", "D4", "D3"]


@pytest.mark.parametrize(
    ("rows", "relation", "words"),
    [
        ((4, 1, 1), "1:1", None),
        ((4, 3, 1), "N:1", None),
        ((4, 1, 3), "1:N", "a row meets up to 3 rows"),
        (
            (4, 2, 3),
            "N:M",
            "keys repeat in both tables (up to 2 and 3 rows), so that rows multiply",
        ),
        ((0, 0, 0), "none", None),
    ],
)
def test_a_join_says_what_it_does_to_rows(rows, relation, words):
    plan_join = PlanJoin("a", ("x",), "b", ("x",), 0.5, *rows)
    assert (plan_join.relation, plan_join.fan_out) == (relation, words)


def test_rows_of_keys_are_those_of_the_side_that_is_shown():
    # Zip code 07003 has two rows in DS and one in D1; 10001, with two in D1, is not in DS.
    near_own = PlanJoin.of(join("D1", "DS", ["Zipcode"]), "DS")
    assert (near_own.left_rows, near_own.right_rows, near_own.relation) == (2, 1, "N:1")
    states = PlanJoin.of(join("D1", "D2", ["State"]), "D2")
    assert (states.left, states.left_rows, states.right_rows) == ("D2", 2, 3)


def test_warnings_of_keys_that_multiply_and_few_rows():
    chain_plan = AcquisitionPlan.of(CHAIN, GRAPH, CODED)
    assert chain_plan.warnings == (
        "In D1:State = D2:State keys repeat in both tables (up to 3 and 2 rows), so that rows "
        "multiply.",
        "The join has 6 rows: figures from so few rows say little of others.",
    )
    many = plan([join("D4", "DS", ["Age"])], [("D4", "Gender")], n_rows=FEW_ROWS)
    warnings = AcquisitionPlan.of(many, GRAPH, CODED).warnings
    assert [warning for warning in warnings if "The join has" in warning] == []


def test_warnings_of_columns_that_tell_nothing_or_everything():
    tables = [
        market_table("own", pa.table({"k": ["a", "b"], "x": ["1", "2"]}), owned=True),
        market_table("t", pa.table({"k": ["a", "b"], "one": ["z", "z"], "id": ["7", "8"]})),
    ]
    graph = natural_graph(tables, coded := CodedColumns())
    edge = graph.edge("own", "t")
    [keys] = [join_set for join_set in edge.join_sets if join_set.left == ("k",)]
    for column, said in (
        ("one", "t:one has one value alone, which tells nothing."),
        (
            "id",
            "t:id has 2 values in 2 rows: with a value for nearly each row it seems to tell "
            "everything.",
        ),
    ):
        tree = JoinTree.of([Join("own", "t", keys)], [("own", "x")], [("t", column)])
        found_plan = FoundPlan(tree, PlanMeasures(0, 0, 1, 0, 99), True, 0)
        assert AcquisitionPlan.of(found_plan, graph, coded).warnings == (said,)


@pytest.mark.parametrize(
    ("optimal", "gap", "words"),
    [
        (True, 0.0, "proved best"),
        (False, 0.12, "within 12.0 % of the best"),
        (False, 1.0, "not proved"),
    ],
)
def test_the_proof_in_words(optimal, gap, words):
    found_plan = plan([join("D4", "DS", ["Age"])], [("D4", "Gender")], optimal=optimal, gap=gap)
    assert AcquisitionPlan.of(found_plan, GRAPH, CODED).proof == words


def test_what_is_told_is_a_share_of_what_is_unknown():
    # The join result of the chain has 6 rows; those of DS that it has differ in age.
    rows = TABLES["DS"].to_pandas().merge(TABLES["D1"].to_pandas(), on="Zipcode")
    rows = rows.merge(TABLES["D2"].to_pandas(), on="State")
    shares = rows["Age"].value_counts(normalize=True)
    unknown = -sum(share * math.log2(share) for share in shares)
    assert len(rows) == 6
    plan = AcquisitionPlan.of(CHAIN, GRAPH, CODED)
    assert plan.uncertainty == pytest.approx(unknown)
    assert plan.share == pytest.approx(0.5 / unknown)
    assert (plan.chance, plan.chance_share) == (None, None)


@pytest.mark.parametrize(
    ("optimal", "words"),
    [
        (True, "best of all plans for this column"),
        (False, "best of the plans tried for this column"),
    ],
)
def test_a_plan_for_any_column_is_told_with_what_chance_tells(optimal, words):
    plan = AcquisitionPlan.of(replace(CHAIN, chance=0.25, optimal=optimal), GRAPH, CODED)
    assert plan.chance_share == pytest.approx(plan.share / 2)
    assert plan.proof == words
    answer = AcquisitionResult.of(
        FoundPlans((CHAIN,), n_trees=9, n_evaluated=4),
        Market(GRAPH, CODED),
        query={"have": ["Age"], "want": None},
        options={},
    )
    assert (answer.stats["columns"], answer.stats["plans_measured"]) == (9, 4)
    assert "plans_formed" not in answer.stats


def test_without_a_plan_there_is_a_reason():
    answer = result(reason="The budget is too small.", best_seen={"price": 7.5})
    assert (len(answer), answer.reason) == (0, "The budget is too small.")
    assert answer.best_seen == {"price": 7.5}
    document = answer.to_dict()
    assert (document["plans"], document["reason"]) == ([], "The budget is too small.")
    assert repr(answer) == "AcquisitionResult(no plan: The budget is too small.)"
    assert len(answer.to_pandas()) == answer.to_arrow().num_rows == 0


def test_plans_are_a_sequence_and_told_as_tables():
    answer = AcquisitionResult.of(
        FoundPlans((CHAIN, BRANCHES)), Market(GRAPH, CODED), query={}, options={}, k=1
    )
    assert (len(answer), answer.n_more) == (1, 1)
    assert answer[0] == next(iter(answer)) == answer[:1][0]
    frame = answer.to_pandas()
    assert frame["path"][0] == ["DS:Zipcode = D1:Zipcode", "D1:State = D2:State"]
    assert frame.to_dict("records") == answer.to_arrow().to_pylist()
    assert repr(answer) == (
        f"AcquisitionResult(1 plan, the best with 0.5 bits for a price of {CHAIN.measures.price:g})"
    )


def test_numbers_to_be_explained_change_the_unit():
    own = market_table("own", pa.table({"k": ["a"], "x": [1.5]}), owned=True, numeric=["x"])
    other = market_table("t", pa.table({"k": ["a"], "y": ["b"]}))
    graph = natural_graph([own, other], coded := CodedColumns())
    tree = JoinTree.of(
        [Join("own", "t", graph.edge("own", "t").join_sets[0])], [("own", "x")], [("t", "y")]
    )
    found_plans = FoundPlans((FoundPlan(tree, PlanMeasures(0, 0, 1, 0, 1), True, 0),))
    answer = AcquisitionResult.of(found_plans, Market(graph, coded), query={}, options={})
    assert answer.unit == "units of 'x'"
