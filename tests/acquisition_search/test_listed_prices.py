"""Prices from files and mappings, and what is refused."""

import pytest

from pexeso.acquisition_search.listed_prices import read_prices
from pexeso.errors import InputError, TableReadError

LISTED = {"a.csv": {"x": 1.5, "y": 0.0}, "b.csv": {"x": 2.0}}


@pytest.fixture
def listed(tmp_path):
    def write(text):
        path = tmp_path / "prices.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_file_and_mappings_say_the_same(listed):
    path = listed("price,table,column,note\n1.5,a.csv,x,\n0,a.csv,y,free\n2,b.csv,x,\n")
    assert read_prices(path) == read_prices(str(path)) == read_prices(LISTED) == LISTED
    pairs = {("a.csv", "x"): 1.5, ("a.csv", "y"): 0, ("b.csv", "x"): 2}
    assert read_prices(pairs) == LISTED


def test_models_need_no_list():
    assert [read_prices(each) for each in (None, "free", "entropy")] == ["free", "free", "entropy"]


@pytest.mark.parametrize("price", [-1, "-0.5", "cheap", "", None, float("nan"), "inf", True])
def test_a_price_is_a_number_from_zero(price):
    with pytest.raises(InputError, match=r"^The price of 'x' of 'a\.csv' must be a finite number"):
        read_prices({"a.csv": {"x": price}})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("table,column\na.csv,x\n", "needs one column each named table, column, price"),
        ("table,column,price\na.csv,x,1\na.csv,x,2\n", "has two prices of 'x' of 'a.csv'"),
        ("table,column,price\n,x,1\n", "has no table or no column"),
        ("table,column,price\na.csv,x,-3\n", "must be a finite number from 0. Got '-3'"),
        ("table,column,price\na.csv,x,\n", "must be a finite number from 0. Got None"),
    ],
)
def test_lists_that_cannot_be_used(listed, text, words):
    with pytest.raises(InputError) as raised:
        read_prices(listed(text))
    assert words in str(raised.value)


def test_a_list_that_is_not_there_says_what_else_there_is(tmp_path):
    with pytest.raises(TableReadError, match="'free', 'entropy' or a file with the columns"):
        read_prices(tmp_path / "none.csv")


@pytest.mark.parametrize("prices", [7, {"a.csv": 3}, {("a", "b", "c"): 3}])
def test_what_is_no_list(prices):
    with pytest.raises(InputError, match=r"^prices "):
        read_prices(prices)
