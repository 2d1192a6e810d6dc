"""Which columns a text names as those of a composite key."""

import pytest

from pexeso.errors import ColumnNotFoundError, QueryError
from pexeso.lake.key_columns import find_key_columns, names_in, names_one_column, spec_of

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
    "names",
    [["country", "year"], ["city, state", 'the "old" town', "#3"], ["a\nb", "c\rd"], ["x"]],
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
