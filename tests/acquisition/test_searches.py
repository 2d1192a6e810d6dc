"""Searches for tables to buy, and their results."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.plans import FoundPlan, FoundPlans, Join, JoinTree, PlanMeasures
from pexeso.acquisition.results import FEW_ROWS, AcquisitionPlan, AcquisitionResult, PlanJoin
from pexeso.acquisition.searches import AcquisitionSearches, Market
from pexeso.acquisition.tables import CodedColumns
from pexeso.errors import ColumnNotFoundError, InputError, QueryError, TableReadError
from tests.acquisition.motivating_tables import TABLES
from tests.acquisition.oracle import market_table
from tests.acquisition.small_market import LAKE, PEOPLE, ZIPS, small_index

H_SICK = 0.25 * math.log2(4) + 0.75 * math.log2(4 / 3)


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    return AcquisitionSearches(small_index(tmp_path_factory.mktemp("market")))


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path, index=False)
    return path


def conditions(plan):
    return [join.condition for join in plan.path]


def test_a_file_is_explained_by_a_table_two_joins_away(searches, people):
    result = searches.acquire(f"{people}:sick", "states.csv:smog", budget=10)
    assert conditions(result[0]) == [
        "people.csv:zip = zips.csv:zip",
        "zips.csv:state = states.csv:state",
    ]
    assert result.query == {
        "file": str(people),
        "table": "people.csv",
        "have": ["sick"],
        "rows": 40,
        "want": ["states.csv:smog"],
    }
    assert [table.table for table in result[0].own_tables] == ["people.csv"]
    # New Jersey has two rows of smog, so that its ten people count twice.
    assert result[0].rows == 50
    assert result.options["budget"] == 10.0
    assert result.options["max_informativeness"] is None


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pa.table])
def test_tables_in_memory(searches, make):
    result = searches.acquire(make(PEOPLE), ["direct.csv:smog_level"], columns=["sick"])
    assert conditions(result[0]) == ["yours:zip = direct.csv:zip"]
    # Sick: 10 of 40; half of the people, the sick among them, have level a.
    assert result[0].correlation == pytest.approx(H_SICK - 0.5)
    assert result.query["file"] is None


def test_without_a_wanted_column_all_that_joins_reach_are_ranked(searches, people):
    result = searches.acquire(f"{people}:sick", max_fan_out=2)
    assert result.query["want"] is None
    # The state tells who lives in New Jersey, and so does its smog, in rows that are more evenly
    # sick: New Jersey has two rows of smog.
    assert [plan.want[0] for plan in result[:2]] == [("states.csv", "smog"), ("zips.csv", "state")]
    assert [plan.share for plan in result[:2]] == [pytest.approx(1), pytest.approx(1)]
    assert result[1].correlation == pytest.approx(H_SICK)
    assert all(0 <= plan.chance < plan.correlation for plan in result)
    assert len({plan.want for plan in result}) == len(result) > 1
    best = searches.acquire(f"{people}:sick", max_fan_out=2, k=1)
    assert (best.plans, best.n_more) == (result.plans[:1], len(result) - 1)


def test_joins_multiply_no_rows_unless_columns_are_wanted(searches, people):
    spec = f"{people}:sick"
    assert searches.acquire(spec).options["max_fan_out"] == 1.0
    assert {plan.want for plan in searches.acquire(spec)} == {(("zips.csv", "state"),)}
    assert searches.acquire(spec, "smog").options["max_fan_out"] is None
    result = searches.acquire(spec, "smog", max_fan_out=1)
    assert len(result) == 0
    assert "max_fan_out of 1 excludes all plans: the least rows of one key" in result.reason
    assert result.best_seen == {"fan_out": 2.0}


def test_wanted_columns_are_named_with_their_table_or_alone(searches, people):
    for want in ("smog", ["smog"], ["states.csv:smog"], "states.csv:smog"):
        result = searches.acquire(f"{people}:sick", want)
        assert result[0].want == (("states.csv", "smog"),)
    for want in ("states.csv:smog,flag", "smog,flag", ["smog", "flag"]):
        result = searches.acquire(f"{people}:sick", want)
        assert result[0].want == (("states.csv", "smog"), ("states.csv", "flag"))
        table = "states.csv:" if ":" in str(want) else ""
        assert result.query["want"] == [f"{table}smog", f"{table}flag"]
    assert searches.acquire(f"{people}:sick", "zip").query["want"] == ["zip"]


def test_your_copy_in_the_lake_is_left_out(tmp_path):
    index = small_index(tmp_path, {**LAKE, "people.csv": PEOPLE})
    searches, spec = AcquisitionSearches(index), f"{tmp_path / 'lake' / 'people.csv'}:sick"
    result = searches.acquire(spec, "smog_level")
    assert result.options["exclude_tables"] == ["people.csv"]
    note = "'people.csv' of the lake is left out: it is the table that you have."
    assert result.stats["notes"] == [note]
    assert [table.table for table in result[0].own_tables] == ["people.csv (yours)"]
    # Whoever has it calls it by its name in the lake.
    for own in ("people.csv", "people.csv (yours)"):
        far = searches.acquire(spec, "smog_level", exclude_joins=[("direct.csv", own)])
        assert [len(plan.path) for plan in far] == [2]
    with pytest.raises(InputError, match=r"^'people\.csv' is the table that you have"):
        searches.acquire(spec, "people.csv:zip")


def test_another_table_of_the_same_name_stays(tmp_path, people):
    index = small_index(
        tmp_path, {**LAKE, "people.csv": {"zip": ZIPS, "bed": ["soft", "hard", "hard", "hard"]}}
    )
    result = AcquisitionSearches(index).acquire(f"{people}:sick", "people.csv:bed")
    assert conditions(result[0]) == ["people.csv (yours):zip = people.csv:zip"]


def test_exclusions(searches, people):
    spec = f"{people}:sick"
    assert "direct.csv" in {table.table for table in searches.acquire(spec, "smog_level")[0].tables}
    without = searches.acquire(spec, "smog_level", exclude_tables=["zips.csv"])
    assert not any("zips.csv" in str(plan.path) for plan in without)
    assert without.options["exclude_tables"] == ["zips.csv"]
    for joins in ([("direct.csv", "people.csv")], ["direct.csv,people.csv"]):
        far = searches.acquire(spec, "smog_level", exclude_joins=joins)
        assert len(far[0].path) == 2
    with pytest.raises(InputError, match=r"^The lake has no table 'none\.csv'\."):
        searches.acquire(spec, "smog_level", exclude_tables=["none.csv"])
    with pytest.raises(InputError, match="have no join to leave out"):
        searches.acquire(spec, "smog_level", exclude_joins=[("alone.csv", "zips.csv")])


def test_listed_prices_and_budgets(searches, people, tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "table,column,price\n"
        + "".join(f"{name},{column},2\n" for name, columns in LAKE.items() for column in columns)
    )
    result = searches.acquire(f"{people}:sick", "smog_level", prices=prices, budget=4)
    assert (result[0].price, result.options["prices"]) == (4.0, str(prices))
    assert [table.price for table in result[0].tables] == [4.0]
    mapping = {name: dict.fromkeys(columns, 2) for name, columns in LAKE.items()}
    same = searches.acquire(f"{people}:sick", "smog_level", prices=mapping, budget=4)
    assert (same.plans, same.options["prices"]) == (result.plans, "listed")
    poor = searches.acquire(f"{people}:sick", "smog_level", prices=prices, budget=3.5)
    assert len(poor) == 0
    assert poor.best_seen == {"price": 4.0}
    assert poor.reason


def test_no_path_is_an_answer(searches, people):
    result = searches.acquire(f"{people}:sick", "alone.csv:moon")
    assert result.reason == (
        "No joins of at most 6 tables (max_tables) lead from 'sick' of 'people.csv' to 'moon' of "
        "'alone.csv'. 'people.csv' joins no table that leads there; 'alone.csv' joins no table "
        "that leads there."
    )


def test_whole_numbers_of_numpy_are_options_as_those_of_python_are(searches, people):
    numbers = {"k": 2, "seed": 1, "max_tables": 4}
    of_numpy = {name: np.int64(number) for name, number in numbers.items()}
    result = searches.acquire(f"{people}:sick", "smog_level", **of_numpy)
    assert {name: json.loads(json.dumps(result.options))[name] for name in numbers} == numbers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kk": 1}, "Options of a search for tables to buy are columns, budget, "),
        ({"budget": -1}, "budget must be a number from 0. Got -1."),
        ({"budget": math.nan}, "budget must be a number from 0. Got nan."),
        ({"budget": "10"}, "budget must be a number from 0. Got '10'."),
        ({"max_informativeness": -0.1}, "max_informativeness must be a number from 0. Got -0.1."),
        ({"min_quality": 1.2}, "min_quality must be a number from 0 to 1. Got 1.2."),
        ({"max_tables": 0}, "max_tables must be a whole number of at least 1. Got 0 instead."),
        ({"sample_rate": 0}, "sample_rate must be a number above 0 and at most 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0. Got -1 instead."),
        ({"k": 0}, "k must be a whole number of at least 1. Got 0 instead."),
        ({"max_seconds": -1}, "max_seconds must be a number from 0. Got -1."),
        ({"max_memory": "much"}, "A size must be a number with a unit"),
        ({"exclude_tables": "zips.csv"}, "exclude_tables must be a list of names, such as"),
        (
            {"exclude_tables": 3},
            "exclude_tables must be a list of names, such as ['a.csv']. Got 3.",
        ),
        ({"exclude_tables": None}, "exclude_tables must be a list of names"),
        ({"exclude_tables": [3]}, "exclude_tables must be a list of names. Got 3 among them."),
        ({"exclude_joins": [("zips.csv",)]}, "exclude_joins are pairs of tables"),
        ({"exclude_joins": [3]}, "exclude_joins are pairs of tables"),
        ({"exclude_joins": [(3, "zips.csv")]}, "exclude_joins are pairs of tables"),
        ({"exclude_joins": 3}, "exclude_joins must be a list of pairs of tables"),
        ({"min_quality": "a"}, "min_quality must be a number from 0 to 1. Got 'a'."),
        ({"min_quality": None}, "min_quality must be a number from 0 to 1. Got None."),
        ({"prices": 3}, "prices must be 'free', 'entropy', the file of a list, or prices by table"),
        ({"prices": pd.DataFrame()}, "prices must be 'free', 'entropy', the file of a list"),
        ({"prices": {"zips.csv": 3}}, "prices of a table are those of its columns"),
        ({"prices": {"zips.csv": {"zip": "2"}}}, "must be a finite number from 0. Got '2'."),
        ({"reading": {}}, "How a file is read is told by pexeso.ReadingOptions, such as"),
    ],
)
def test_options_out_of_range(searches, people, options, words):
    with pytest.raises(InputError) as raised:
        searches.acquire(f"{people}:sick", "smog_level", **options)
    assert words in str(raised.value)


def test_bounds_are_checked_without_a_wanted_column_too(searches, people):
    with pytest.raises(InputError, match="min_quality must be a number from 0 to 1"):
        searches.acquire(f"{people}:sick", min_quality=2)


@pytest.mark.parametrize(
    ("have", "want", "kind", "words"),
    [
        ("{people}", "smog", QueryError, "Name the columns that are to be explained"),
        ("{people}:sik", "smog", ColumnNotFoundError, "did you mean 'sick'?"),
        ("{people}:sick,sick", "smog", QueryError, "are different ones, at least one"),
        ("none.csv:x", "smog", TableReadError, "none.csv"),
        ("{people}:sick", "fog", InputError, "No table of the lake has a column 'fog'."),
        (
            "{people}:sick",
            "states.csv:fog",
            ColumnNotFoundError,
            "'states.csv': There is no column 'fog'.",
        ),
        ("{people}:sick", "nine.csv:fog", InputError, "The lake has no table 'nine.csv'. Tables"),
        ("{people}:sick", "state.csv:fog", InputError, "Did you mean 'states.csv' or"),
        (
            "{people}:sick",
            "smok",
            InputError,
            "has a column 'smok' (did you mean 'smog'?)",
        ),
        ("{people}:sick", "states.csv:smok", ColumnNotFoundError, "(did you mean 'smog'?)"),
        ("{people}:sick", [""], InputError, "A wanted column is TABLE:COLUMN"),
        ("{people}:sick", ["smog", "smog"], InputError, "The column 'smog' is named twice."),
        ("{people}:sick", 3, InputError, "want must be the wanted columns"),
        (None, None, InputError, "There is nothing to explain and nothing wanted"),
        (None, "smog", InputError, "A plan needs a wanted column, and two"),
    ],
)
def test_what_cannot_be_asked(searches, people, have, want, kind, words):
    spec = have if have is None else have.format(people=people)
    with pytest.raises(kind) as raised:
        searches.acquire(spec, want)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (3, "Columns are named by a text, such as 'country,year', or by a list of texts. Got 3."),
        ([3], "A column is named by a text, such as 'year', or '#3' by its position. Got 3."),
    ],
)
def test_columns_that_are_no_texts(searches, columns, words):
    with pytest.raises(QueryError if columns == 3 else ColumnNotFoundError) as raised:
        searches.acquire({"zip": ["07003"], "sick": ["yes"]}, "smog", columns=columns)
    assert words in str(raised.value)


def test_columns_without_a_table(searches):
    with pytest.raises(InputError, match="which is not given"):
        searches.acquire(None, "smog", columns="sick")


def test_repeated_names_of_columns_are_told_apart_by_position(searches, tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("zip,sick,sick\n07003,yes,no\n10001,no,no\n10002,no,yes\n02139,no,no\n")
    with pytest.raises(ColumnNotFoundError, match="2 columns are named 'sick'"):
        searches.acquire(f"{path}:sick", "smog_level")
    assert searches.acquire(f"{path}:#1", "smog_level")[0].have == (("twice.csv", "#1"),)


def test_a_budget_alone_counts_entropy(searches, people):
    free = searches.acquire(f"{people}:sick", "smog_level")
    assert (free.options["prices"], free[0].price) == ("free", 0)
    priced = searches.acquire(f"{people}:sick", "smog_level", budget=100)
    named = searches.acquire(f"{people}:sick", "smog_level", budget=100, prices="entropy")
    assert priced.options["prices"] == "entropy"
    assert priced[0].price > 0
    assert priced.plans == named.plans


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
