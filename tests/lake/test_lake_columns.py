import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import ColumnNotFoundError, QueryError
from pexeso.lake.columns import (
    find_column,
    find_key_columns,
    label_columns,
    names_in,
    names_one_column,
    spec_of,
)


def test_labels_are_names_where_these_are_plain_and_unique():
    assert label_columns(["a", "b", "a", "", "#0", "#x", "A"]) == [
        *("#0", "b", "#2", "#3", "#4", "#x", "A"),
    ]
    assert label_columns([]) == []


@given(st.lists(st.sampled_from(["", "a", "b", "#0", "#1", "#12", "# 1", "x"]), max_size=8))
def test_labels_are_unique_and_find_their_columns(names):
    labels = label_columns(names)
    assert len(set(labels)) == len(names)
    assert [find_column(names, label) for label in labels] == list(range(len(names)))


def test_a_position_wins_over_a_name_of_its_form():
    assert find_column(["#1", "b"], "#1") == 1


def test_an_unknown_name_lists_the_columns_and_the_close_ones():
    with pytest.raises(ColumnNotFoundError) as error:
        find_column(["City", "country", ""], "city")
    assert str(error.value) == (
        "There is no column 'city' (did you mean 'City'?). The columns are 'City', 'country', '#2'."
    )


def test_many_columns_are_listed_shortened():
    with pytest.raises(ColumnNotFoundError, match=r"'c19' and 1,980 more\.$"):
        find_column([f"c{i}" for i in range(2000)], "?")


def test_a_repeated_name_is_told_with_its_positions():
    with pytest.raises(
        ColumnNotFoundError,
        match=r"^2 columns are named 'a'; choose one by its position: #0, #2\.$",
    ):
        find_column(["a", "b", "a"], "a")
    with pytest.raises(ColumnNotFoundError, match=r"columns without a name: #1, #2\.$"):
        find_column(["a", "", ""], "")


@pytest.mark.parametrize("spec", ["#2", "#99999999999", "#" + "9" * 10_000])
def test_a_position_out_of_range_says_what_is_allowed(spec):
    with pytest.raises(ColumnNotFoundError, match=r"positions count from 0, here #0 to #1\.$"):
        find_column(["a", "b"], spec)


def test_leading_zeros_and_tables_without_columns():
    assert find_column(["a", "b"], "#0001") == 1
    with pytest.raises(ColumnNotFoundError, match=r"here none\.$"):
        find_column([], "#0")


NAMES = ["year", "country", "city, state", "rate~", "", "x", "x"]


@pytest.mark.parametrize(
    ("spec", "positions", "similar"),
    [
        ("country,year", [1, 0], [False, False]),
        ("country , year", [1, 0], [False, False]),
        ("country~,year", [1, 0], [True, False]),
        ('"city, state",year', [2, 0], [False, False]),
        ('"city, state"~,year', [2, 0], [True, False]),
        ("#3,#5", [3, 5], [False, False]),
        ("#4~,#6", [4, 6], [True, False]),
        ("rate~,year", [3, 0], [False, False]),
        ("rate~~,year", [3, 0], [True, False]),
        (["city, state", "year~"], [2, 0], [False, True]),
    ],
)
def test_columns_are_found_in_the_order_in_which_they_are_named(spec, positions, similar):
    columns = find_key_columns(NAMES, spec)
    assert [column.position for column in columns] == positions
    assert [column.similar for column in columns] == similar


def test_labels_are_those_of_results():
    assert [column.label for column in find_key_columns(NAMES, "year,#4")] == ["year", "#4"]


@pytest.mark.parametrize(
    "names", [["country", "year"], ["city, state", 'the "old" town', "#3"], ["a\nb", "c\rd"], ["x"]]
)
def test_names_are_written_as_they_are_read(names):
    assert names_in(spec_of(names)) == names


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("year,year", "'year' twice"),
        ("year,#0", "'year' twice"),
        ("year,year~", "'year' twice"),
        ("year", "two columns or more"),
        ([], "two columns or more"),
        (",".join(f"#{i}" for i in range(11)), "at most 10"),
        ("year,", "Got ''"),
        ([1, 2], "named by a text"),
        (3, "named by a text, such as 'country,year', or by a list of texts. Got 3"),
        (None, "or by a list of texts. Got None"),
    ],
)
def test_what_is_no_composite_key_is_refused(spec, message):
    names = NAMES if not isinstance(spec, str) or spec.count(",") < 9 else list("abcdefghijklm")
    with pytest.raises(QueryError, match=message):
        find_key_columns(names, spec)


@pytest.mark.parametrize("spec", ["year,countri", "year,#7", "x,year"])
def test_a_column_that_is_not_there_is_refused(spec):
    with pytest.raises(ColumnNotFoundError):
        find_key_columns(NAMES, spec)


def test_a_name_with_a_comma_is_one_column_where_it_is_there():
    assert names_one_column(NAMES, "city, state")
    assert not names_one_column(NAMES, "country,year")
    assert names_one_column(NAMES, "nothing of this name")
    assert names_in("a,b") == ["a", "b"]
