import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import ColumnNotFoundError
from pexeso.lake.columns import find_column, label_columns


def test_labels_are_names_where_these_are_plain_and_unique():
    assert label_columns(["a", "b", "a", "", "#0", "#x", "A"]) == [
        "#0",
        "b",
        "#2",
        "#3",
        "#4",
        "#x",
        "A",
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
