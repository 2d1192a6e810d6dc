"""Prices of projections, and files of prices."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.tables import MarketPrices, projection_price, read_prices
from pexeso.errors import ColumnNotFoundError, InputError, TableReadError
from tests.acquisition import oracle
from tests.acquisition.motivating_tables import TABLES


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


NAMES = "abcd"
SETS = [chosen for n in range(5) for chosen in combinations(NAMES, n)]


def drawn(rng, n):
    return pa.table({name: rng.integers(0, 4, n) * 0.5 for name in NAMES})


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["Gender"], 4.622556), (["Race"], 6), (["Gender", "Race"], 7.622556)],
)
def test_w5_prices(names, expected):
    bought = ("D3", ["Disease", *names]), ("D4", ["Age", *names])
    prices = [projection_price(TABLES[name], chosen) for name, chosen in bought]
    assert sum(prices) == pytest.approx(expected, abs=1e-6)


def test_they_are_the_entropies_of_rows():
    rng = np.random.default_rng(0)
    for _ in range(40):
        table = drawn(rng, 9)
        columns = table.select(["a", "b"]).to_pydict().values()
        price = projection_price(table, ["a", "b"])
        assert price == pytest.approx(sum(map(oracle.entropy, columns)), abs=1e-12)


def test_they_are_monotone_and_subadditive():
    rng = np.random.default_rng(1)
    for _ in range(10):
        table = drawn(rng, 12)
        price = {frozenset(one): projection_price(table, one) for one in SETS}
        for one in price:
            for other in price:
                both = price[one | other]
                assert max(price[one], price[other]) <= both + 1e-12
                assert both <= price[one] + price[other] + 1e-12


def test_nothing_costs_nothing():
    table = TABLES["D3"]
    assert projection_price(table, []) == projection_price(table.slice(4), ["Race"]) == 0
    assert projection_price(table, ["Race", "Race"]) == projection_price(table, ["Race"]) == 1.5


def test_refused_input():
    table = TABLES["D3"]
    with pytest.raises(ColumnNotFoundError, match="'Age'"):
        projection_price(table, ["Age"])
