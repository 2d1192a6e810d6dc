"""Tables of an index as a market: kinds, prices, and tables on short paths."""

import math
from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.acquisition import market_graph
from pexeso.acquisition.lake_market import LakeMarket, own_table
from pexeso.acquisition.quality import Dependency
from pexeso.acquisition.tables import MarketPrices, projection_price, read_prices
from pexeso.errors import ColumnNotFoundError, InputError, TableReadError
from pexeso.joins.tables import SPARK_LAKE
from tests.acquisition import oracle
from tests.acquisition.indexes import opened_lake, write_lake
from tests.acquisition.motivating_tables import TABLES

LAKE = {
    "sales.csv": {
        "cust_id": [1, 2, 3, 4, 5, 6],
        "amount": ["1,200", "30", "n/a", "7.5", "-2", "$9"],
        "region": ["N", "N", "S", "S", "N", "S"],
        "branch": ["010", "020", "030", "040", "050", "060"],
        "size": [1, 2, 3, 4, 5, 6],
    },
    "more/regions.csv": {"region": ["N", "S"], "label": ["North", "South"]},
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    tables = {name: dict(columns) for name, columns in LAKE.items()}
    tables["sales.csv"]["amount"] = [f'"{amount}"' for amount in LAKE["sales.csv"]["amount"]]
    write_lake(folder / "lake", tables)
    typed = {"price": [1.5, 2.5, None], "year": [2001, 2002, 2002], "year_copy": [1, 1, 1]}
    pq.write_table(pa.table(typed), folder / "lake" / "typed.parquet")
    return opened_lake(folder / "lake", folder / "index")


def test_columns_are_numeric_or_categorical(opened):
    market = LakeMarket.of(opened)
    sales, typed = market.tables(["sales.csv", "typed.parquet"], {"sales.csv": ["size"]})
    assert sales.numeric == {"amount"}
    assert sales.columns == tuple(LAKE["sales.csv"])
    assert (sales.n_rows, sales.owned) == (6, False)
    amounts = sales.read(["amount", "cust_id"])
    assert amounts["amount"].to_pylist() == [1200, 30, None, 7.5, -2, 9]
    assert amounts["cust_id"].to_pylist() == ["1", "2", "3", "4", "5", "6"]
    assert typed.read(["price"])["price"].to_pylist() == [1.5, 2.5, None]
    assert typed.read(["price"])["price"].type == pa.float64()


def test_prices(opened, tmp_path):
    def price(table, names, **options):
        return LakeMarket.of(opened, **options).tables([table], {})[0].price(names)

    assert price("more/regions.csv", ["region", "label"]) == 0
    assert price("more/regions.csv", ["region", "label"], prices="entropy") == 2.0
    six = price("sales.csv", ["cust_id"], prices="entropy")
    assert six == pytest.approx(math.log2(6))
    path = tmp_path / "prices.csv"
    path.write_text(
        "table,column,price\nsales.csv,amount,2.5\nsales.csv,*,1\n*,*,0.25\n", encoding="utf-8"
    )
    assert price("sales.csv", ["amount", "region"], prices=path) == 3.5
    assert price("more/regions.csv", ["label", "region"], prices=path) == 0.5
    path.write_text("table,column,price\nsales.csv,amount,2.5\n", encoding="utf-8")
    with pytest.raises(InputError, match="no price for 'label' of 'more"):
        price("more/regions.csv", ["label"], prices=path)
    with pytest.raises(InputError, match="has no such column"):
        price("sales.csv", ["size"], prices={"sales.csv": {"sizes": 1.0}})
    with pytest.raises(InputError, match=r"no table 'sale\.csv'"):
        LakeMarket.of(opened, prices={"sale.csv": {"*": 1.0}})


def test_dependencies(opened):
    market = LakeMarket.of(opened)
    (regions,) = market.tables(["more/regions.csv"], {})
    assert list(regions.dependencies) == []  # each column is a key


def test_tables_that_are_not_there_or_have_changed(opened, tmp_path):
    market = LakeMarket.of(opened)
    with pytest.raises(InputError, match="no table 'none'"):
        market.tables(["none"], {})
    write_lake(tmp_path / "lake", {"a.csv": {"x": ["a", "b"], "y": [1, 2]}})
    changing = opened_lake(tmp_path / "lake", tmp_path / "index")
    (table,) = LakeMarket.of(changing).tables(["a.csv"], {})
    write_lake(tmp_path / "lake", {"a.csv": {"x": ["a", "b", "c"], "y": [1, 2, 3]}})
    with pytest.raises(InputError, match="has changed since it was indexed: it has 3 rows"):
        table.read(["x"])
    write_lake(tmp_path / "lake", {"a.csv": {"z": ["a", "b"]}})
    (table,) = LakeMarket.of(changing).tables(["a.csv"], {})
    with pytest.raises(InputError, match="it has no column 'x'"):
        table.read(["x"])


def test_tables_of_spark_are_refused(opened):
    tables = SimpleNamespace(**{**vars(opened), "lake": f"{SPARK_LAKE}sales.*"})
    with pytest.raises(InputError, match="Spark's tables, whose rows are not read here"):
        LakeMarket.of(tables)


def test_tables_that_have_a_column(opened):
    market = LakeMarket.of(opened)
    assert market.tables_with("region") == ["more/regions.csv", "sales.csv"]
    assert market.labels(["typed.parquet"]) == {"typed.parquet": ["price", "year", "year_copy"]}


def test_the_shoppers_table():
    rows = pa.table(
        {
            "id": [1, 2, 3, 4],
            "paid": ["1.5", "$2", "x", "3"],
            "code": ["01", "02", "03", "04"],
            "n": [1, 1, 2, 2],
            "word": ["a", "a", "b", "b"],
            "also": ["a", "a", "b", "b"],
        }
    )
    table = own_table("mine", rows, ["n"])
    assert table.numeric == {"paid"}
    assert table.owned
    assert table.price(["id", "paid"]) == 0
    assert table.read(["paid"])["paid"].to_pylist() == [1.5, 2, None, 3]
    assert Dependency(("word",), "also") in tuple(table.dependencies)
    assert own_table("mine", rows).numeric == {"paid", "n"}


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


def reachable(ends, neighbours, *, max_tables=100, max_joins=4, belongs=None):
    return market_graph.reachable(
        ends, neighbours, max_tables=max_tables, max_joins=max_joins, belongs=belongs
    )


def neighbours_in(edges):
    visited = []

    def neighbours(table):
        visited.append(table)
        return {ends: [("x", "x")] * number for ends, number in edges.items() if table in ends}

    return neighbours, visited


def path(*names):
    return {tuple(sorted(ends)): 1 for ends in pairwise(names)}


def test_tables_between_two_ends():
    edges = path("a", "b", "c", "d", "e") | path("b", "x", "y") | path("a", "z")
    neighbours, visited = neighbours_in(edges)
    reached = reachable([["a"], ["e"]], neighbours, max_joins=4)
    assert reached.tables == ("a", "b", "c", "d", "e")
    assert set(reached.pairs) == set(path("a", "b", "c", "d", "e"))
    assert sorted(visited) == sorted(["a", "b", "c", "d", "e", "x", "z"])  # two joins from an end
    assert (reached.n_looked_at, reached.n_waiting) == (7, 0)
    # A detour of one table more is within five joins, and not within four.
    detour = edges | path("b", "q", "r", "d")
    assert "q" not in reachable([["a"], ["e"]], neighbours_in(detour)[0], max_joins=4).tables
    assert "q" in reachable([["a"], ["e"]], neighbours_in(detour)[0], max_joins=5).tables


def test_one_end_has_all_within_reach():
    neighbours, _ = neighbours_in(path("a", "b", "c", "d") | path("a", "e"))
    assert reachable([["a"]], neighbours, max_joins=2).tables == ("a", "b", "c", "e")


def test_limits_take_the_nearest_and_those_that_share_most():
    edges = {("a", f"n{at}"): 1 + at % 3 for at in range(9)} | path("n2", "far")
    neighbours, visited = neighbours_in(edges)
    reached = reachable([["a"]], neighbours, max_tables=4)
    assert visited == ["a", "n2", "n5", "n8"]
    assert reached.tables == ("a", "n2", "n5", "n8")
    assert (reached.n_looked_at, reached.n_waiting) == (4, 7)


def test_ends_that_can_be_several_tables():
    edges = path("a", "b", "w1") | path("w2", "c") | path("a", "w3")
    neighbours, _ = neighbours_in(edges)
    reached = reachable(
        [["a"], ["w1", "w2"]],
        neighbours,
        belongs={1: frozenset(["w1", "w2", "w3"])},
    )
    assert reached.tables == ("a", "b", "w1", "w2", "w3")


@pytest.mark.parametrize("seed", range(8))
def test_kept_are_all_tables_of_short_paths(seed):
    random = np.random.default_rng(seed)
    names = [f"t{at:02}" for at in range(16)]
    edges = {tuple(sorted(map(str, random.choice(names, 2, replace=False)))): 1 for _ in range(20)}
    beside = {name: {other for ends in edges if name in ends for other in ends} for name in names}

    def paths(at, seen):
        if at == "t01":
            yield seen
        elif len(seen) < 5:
            for other in beside[at] - set(seen):
                yield from paths(other, [*seen, other])

    # None is on a dead end.
    on_paths = {name for route in paths("t00", ["t00"]) for name in route} | {"t00", "t01"}
    reached = reachable([["t00"], ["t01"]], neighbours_in(edges)[0], max_joins=4)
    assert on_paths <= set(reached.tables)
    assert set(reached.pairs) == {ends for ends in edges if set(ends) <= set(reached.tables)}
