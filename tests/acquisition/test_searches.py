"""What searches ask for and refuse: your table, wanted columns, bounds, exclusions."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pexeso.acquisition.searches import AcquisitionSearches
from pexeso.errors import ColumnNotFoundError, InputError, QueryError, TableReadError
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
