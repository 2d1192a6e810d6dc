"""Tables of an index as those of a market."""

import math
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pexeso.acquisition.lake_market import LakeMarket, own_table
from pexeso.acquisition.quality import Dependency
from pexeso.errors import InputError
from pexeso.joins.tables import SPARK_LAKE
from tests.acquisition.indexes import opened_lake, write_lake

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
