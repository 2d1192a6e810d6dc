"""Files of prices: what they may hold, and what errors name."""

import pytest

from pexeso.acquisition.tables import MarketPrices, read_prices
from pexeso.errors import InputError, TableReadError


def written(tmp_path, *lines, header="table,column,price"):
    path = tmp_path / "prices.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def test_prices_by_table_and_column(tmp_path):
    path = written(tmp_path, "a.csv,x,1", '"b,c.csv","y ""z""", 2.50 ', "*,*,.5", "a.csv,*,0")
    assert read_prices(path) == {
        "a.csv": {"x": 1.0, "*": 0.0},
        "b,c.csv": {'y "z"': 2.5},
        "*": {"*": 0.5},
    }
    path = written(tmp_path, "1,more,a.csv,x", header="price,note,table,column")
    assert read_prices(path) == {"a.csv": {"x": 1.0}}


@pytest.mark.parametrize("price", ["-1", "", "nan", "inf", "1e3", "1,5", "free", "1 2"])
def test_what_is_no_price_is_named_with_its_line(tmp_path, price):
    path = written(tmp_path, "a.csv,x,1", f'a.csv,y,"{price}"')
    with pytest.raises(InputError, match=r"Line 3 .*table 'a\.csv', column 'y': a price must be"):
        read_prices(path)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a.csv,x,2", "Line 3 .*it has a price in a line before"),
        (",x,2", "Line 3 .*the table must have a name"),
        ("a.csv,,2", "Line 3 .*the column must have a name"),
        ("*,x,2", "Line 3 .*all other tables"),
    ],
)
def test_lines_that_cannot_be(tmp_path, line, why):
    with pytest.raises(InputError, match=why):
        read_prices(written(tmp_path, "a.csv,x,1", line))


def test_files_that_are_no_list_of_prices(tmp_path):
    with pytest.raises(InputError, match="must have the columns table, column and price"):
        read_prices(written(tmp_path, "a,b", header="table,price"))
    with pytest.raises(TableReadError, match=r"a list of prices: No such file or directory\.$"):
        read_prices(tmp_path / "missing.csv")
    with pytest.raises(TableReadError, match="cannot be read as a list of prices"):
        read_prices(written(tmp_path, "a,b,1,2"))


def test_models():
    assert MarketPrices.of("free").of_table("a", ["x"], None)(["x"]) == 0
    listed = MarketPrices.of({"a": {"x": 2.0, "*": 1.0}}).of_table("a", ["x", "y"], None)
    assert listed(["x", "y"]) == 3
