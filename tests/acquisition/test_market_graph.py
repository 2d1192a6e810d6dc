"""Join graphs for requests over an index, against joins by DuckDB."""

import duckdb
import pyarrow as pa
import pytest

from pexeso.acquisition import market_graph as module
from pexeso.acquisition.plans import AcquisitionRequest, Terminal
from pexeso.acquisition.tables import CodedColumns
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition.indexes import opened_lake, write_lake
from tests.acquisition.small_lake import own_sales, shop_tables


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shops")
    write_lake(folder / "lake", shop_tables())
    return opened_lake(folder / "lake", folder / "index")


SALES = ("sales", own_sales())


def market_graph(opened, own=None, **options):
    settings = {"prices": "free", "max_tables": 100, "max_joins": 4, "exclude": ()}
    settings |= {"have": (), "wanted": (), "coded": CodedColumns(), **options}
    return module.market_graph(opened, own, **settings)


def test_tables_between_ones_own_and_the_wanted(opened):
    graph, notes = market_graph(
        opened, own=SALES, wanted=[("geo/states.csv", "currency")], have=[("sales", "amount")]
    )
    assert sorted(graph.tables) == [
        "geo/cities.csv",
        "geo/states.csv",
        "sales",
        "shops.csv",
        "weather.csv",
    ]
    pairs = {ends: [keys.pairs for keys in edge.join_sets] for ends, edge in graph.edges.items()}
    assert pairs == {
        ("sales", "shops.csv"): [(("shop", "shop_name"),)],
        ("geo/cities.csv", "shops.csv"): [(("City", "city"),)],
        ("geo/cities.csv", "geo/states.csv"): [(("state", "state"),)],
        ("geo/cities.csv", "weather.csv"): [(("City", "city"),)],
        ("sales", "weather.csv"): [(("week", "week"),)],
        ("shops.csv", "weather.csv"): [(("city", "city"),)],
    }
    assert notes == []
    assert graph.tables["sales"].owned
    assert graph.tables["sales"].numeric == {"amount"}
    assert graph.tables["weather.csv"].numeric == {"rain", "area"}
    assert graph.tables["shops.csv"].numeric == {"area"}
    # A request can be made of it.
    have = Terminal.of(graph, "amount", "sales")
    AcquisitionRequest((have,), (Terminal.of(graph, "currency"),))


def test_weights_rest_on_all_rows(opened):
    graph, _ = market_graph(opened, own=SALES, wanted=[("weather.csv", "rain")])
    (by_week,) = graph.edge("sales", "weather.csv").join_sets
    sales, weather = SALES[1], graph.tables["weather.csv"].read(["week"])  # noqa: F841
    matched = duckdb.sql("SELECT count(*) FROM sales JOIN weather USING (week)").fetchall()[0][0]
    assert matched == 720
    assert (by_week.n_keys, by_week.left_most, by_week.right_most) == (10, 12, 6)


def test_a_wanted_column_of_any_table(opened):
    graph, notes = market_graph(opened, own=SALES, wanted=[(None, "rain")])
    assert notes == []
    assert {"sales", "weather.csv"} <= set(graph.tables)
    _, notes = market_graph(opened, own=SALES, wanted=[(None, "city")], max_tables=2)
    assert "2 tables have a column 'city'. The search began with 1" in notes[0]
    assert "2 tables were looked at, the limit (max_tables)" in notes[1]


def test_wanted_columns_keep_their_kind(opened):
    # Both measures have one name; as a key of a join one would be categorical.
    graph, _ = market_graph(
        opened,
        wanted=[("shops.csv", "area"), ("weather.csv", "area")],
    )
    assert all("area" in graph.tables[name].numeric for name in ("shops.csv", "weather.csv"))


def test_ones_own_table_replaces_that_of_the_lake(opened):
    shops = shop_tables()["shops.csv"]
    graph, _ = market_graph(
        opened, own=("shops.csv", pa.table(shops)), wanted=[("weather.csv", "rain")]
    )
    assert graph.tables["shops.csv"].owned
    graph, _ = market_graph(
        opened, own=SALES, wanted=[("weather.csv", "rain")], exclude=["shops.csv"]
    )
    assert "shops.csv" not in graph.tables


def test_tables_that_cannot_be_read_are_told(tmp_path):
    write_lake(tmp_path / "lake", shop_tables())
    opened = opened_lake(tmp_path / "lake", tmp_path / "index")
    (tmp_path / "lake" / "geo" / "cities.csv").unlink()
    graph, notes = market_graph(opened, own=SALES, wanted=[("weather.csv", "rain")])
    assert "geo/cities.csv" not in graph.tables
    assert len(notes) == 1
    assert notes[0].startswith("'geo/cities.csv' is left out: ")


def test_what_cannot_be_asked(opened):
    def refused(error, why, **options):
        with pytest.raises(error, match=why):
            market_graph(opened, **options)

    wanted = [("weather.csv", "rain")]
    refused(InputError, "no table 'x'", wanted=[("x", "rain")])
    refused(InputError, "has no column 'snow'", wanted=[("weather.csv", "snow")])
    refused(InputError, "No table of the lake has a column 'snow'", wanted=[(None, "snow")])
    refused(
        InputError,
        r"^Only tables that are left out have a column 'rain': 'weather\.csv'\. Leave fewer out, "
        r"or want another column\.$",
        wanted=[(None, "rain")],
        exclude=["weather.csv"],
    )
    refused(InputError, "wanted and left out", wanted=wanted, exclude=["weather.csv"])
    refused(ColumnNotFoundError, "no column", wanted=wanted, have=[("shops.csv", "no")])
