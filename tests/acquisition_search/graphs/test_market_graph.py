"""Join graphs for requests over an index, against joins by DuckDB."""

import duckdb
import pyarrow as pa
import pytest

from pexeso.acquisition.measures.quality import Dependency
from pexeso.acquisition.search.request import AcquisitionRequest, Terminal
from pexeso.acquisition_search.graphs import market_graph as module
from pexeso.acquisition_search.graphs.market_graph import edges_of, market_graph
from pexeso.acquisition_search.graphs.stored_graph import save_graph, updated_graph
from pexeso.acquisition_search.market.lake_market import Market
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition_search.graphs.small_lake import own_sales, shop_tables
from tests.acquisition_search.indexes import opened_lake, write_lake


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shops")
    write_lake(folder / "lake", shop_tables())
    return opened_lake(folder / "lake", folder / "index")


SALES = ("sales", own_sales())


def test_tables_between_ones_own_and_the_wanted(opened):
    graph, _, notes = market_graph(
        opened, own=[SALES], wanted=[("geo/states.csv", "currency")], have=[("sales", "amount")]
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
    graph, _, _ = market_graph(opened, own=[SALES], wanted=[("weather.csv", "rain")])
    (by_week,) = graph.edge("sales", "weather.csv").join_sets
    sales, weather = SALES[1], graph.tables["weather.csv"].read(["week"])  # noqa: F841
    matched = duckdb.sql("SELECT count(*) FROM sales JOIN weather USING (week)").fetchall()[0][0]
    assert by_week.informativeness.matched == matched == 720
    assert (by_week.n_keys, by_week.left_most, by_week.right_most) == (10, 12, 6)


def test_names_that_are_equal_join_as_the_paper_has_it(opened):
    graph, _, _ = market_graph(opened, own=[SALES], wanted=[("weather.csv", "rain")], match="names")
    assert ("sales", "shops.csv") not in graph.edges
    edge = graph.edge("sales", "weather.csv")
    assert (edge.natural, edge.join_sets[0].pairs) == (True, (("week", "week"),))
    graph, _, _ = market_graph(opened, wanted=[("shops.csv", "shop_name")], match="names")
    edge = graph.edge("shops.csv", "weather.csv")
    assert {keys.left for keys in edge.join_sets} == {("area",), ("city",), ("area", "city")}


def test_a_wanted_column_of_any_table(opened):
    graph, _, notes = market_graph(opened, own=[SALES], wanted=[(None, "rain")])
    assert notes == []
    assert {"sales", "weather.csv"} <= set(graph.tables)
    _, _, notes = market_graph(opened, own=[SALES], wanted=[(None, "city")], max_tables=2)
    assert "2 tables have a column 'city'. The search began with 1" in notes[0]
    assert "2 tables were looked at, the limit (max_tables)" in notes[1]


def test_wanted_columns_keep_their_kind(opened):
    # Both measures have one name; as a key of a join one would be categorical.
    graph, _, _ = market_graph(
        opened,
        wanted=[("shops.csv", "area"), ("weather.csv", "area")],
        match="values",
    )
    assert all("area" in graph.tables[name].numeric for name in ("shops.csv", "weather.csv"))


def test_ones_own_tables_join_each_other(opened):
    offers = pa.table({"store": SALES[1]["shop"].unique(), "offer": [f"o{at}" for at in range(12)]})
    graph, _, _ = market_graph(
        opened, own=[SALES, ("offers", offers)], wanted=[("weather.csv", "rain")]
    )
    (join,) = graph.edge("offers", "sales").join_sets
    assert (join.pairs, join.n_keys, join.right_most) == ((("store", "shop"),), 12, 10)
    assert ("offers", "shops.csv") in graph.edges


def test_kinds_and_dependencies_can_be_given(opened, tmp_path):
    path = tmp_path / "dependencies.json"
    path.write_text('{"sales": [{"left": ["shop"], "right": "week"}]}', encoding="utf-8")
    graph, _, _ = market_graph(
        opened,
        own=[SALES],
        wanted=[("weather.csv", "rain")],
        numeric={"weather.csv": ["week"]},
        categorical={"sales": ["amount"], "weather.csv": ["rain"]},
        dependencies=path,
    )
    assert graph.tables["sales"].numeric == frozenset()
    assert tuple(graph.tables["sales"].dependencies) == (Dependency(("shop",), "week"),)
    assert tuple(graph.tables["weather.csv"].dependencies) == ()
    assert graph.tables["weather.csv"].numeric == {"week", "area"}
    assert ("sales", "weather.csv") not in graph.edges
    numeric = {"weather.csv": ["city"]}
    market = Market.of(opened, numeric=numeric)
    stored, _ = updated_graph(market)
    assert stored.edges == updated_graph(Market.of(opened))[0].edges
    assert not any("weather.csv" in ends for ends in stored.graph(market).edges)
    with pytest.raises(InputError, match=r"no table 'sale'"):
        market_graph(opened, own=[SALES], wanted=[("weather.csv", "rain")], numeric={"sale": []})


def test_ones_own_table_replaces_that_of_the_lake(opened):
    shops = shop_tables()["shops.csv"]
    graph, _, _ = market_graph(
        opened, own=[("shops.csv", pa.table(shops))], wanted=[("weather.csv", "rain")]
    )
    assert graph.tables["shops.csv"].owned
    graph, _, _ = market_graph(
        opened, own=[SALES], wanted=[("weather.csv", "rain")], exclude=["shops.csv"]
    )
    assert "shops.csv" not in graph.tables


def test_tables_that_cannot_be_read_are_told(tmp_path):
    write_lake(tmp_path / "lake", shop_tables())
    opened = opened_lake(tmp_path / "lake", tmp_path / "index")
    (tmp_path / "lake" / "geo" / "cities.csv").unlink()
    graph, _, notes = market_graph(opened, own=[SALES], wanted=[("weather.csv", "rain")])
    assert "geo/cities.csv" not in graph.tables
    assert len(notes) == 1
    assert notes[0].startswith("'geo/cities.csv' is left out: ")


def test_what_cannot_be_asked(opened):
    def refused(error, why, **options):
        with pytest.raises(error, match=why):
            market_graph(opened, **options)

    wanted = [("weather.csv", "rain")]
    refused(InputError, "Got neither")
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
    refused(InputError, "different names", own=[SALES, SALES])
    refused(InputError, "max_tables must be", wanted=wanted, max_tables=1)
    refused(InputError, "match must be", wanted=wanted, match="all")
    refused(ColumnNotFoundError, "no column", wanted=wanted, have=[("shops.csv", "no")])


def test_a_saved_graph_gives_the_same(tmp_path, monkeypatch):
    write_lake(tmp_path / "lake", shop_tables())
    opened = opened_lake(tmp_path / "lake", tmp_path / "index")
    stored, _ = updated_graph(Market.of(opened))
    save_graph(stored, tmp_path / "lake.graph")
    options = {"own": [SALES], "wanted": [("geo/states.csv", "currency")]}
    plain, _, _ = market_graph(opened, **options)
    weighed = []

    def counting(tables, pairs, coded, **more):
        weighed.extend(pairs)
        return edges_of(tables, pairs, coded, **more)

    monkeypatch.setattr(module, "edges_of", counting)
    graph, _, notes = market_graph(opened, saved=tmp_path / "lake.graph", **options)
    assert graph.edges == plain.edges
    assert set(graph.tables) == set(plain.tables)
    assert notes == []
    assert weighed == [("sales", "shops.csv"), ("sales", "weather.csv")]
    # A measure that is wanted joins nothing, saved or not.
    graph, _, _ = market_graph(opened, wanted=[("shops.csv", "area")], saved=stored)
    assert "area" in graph.tables["shops.csv"].numeric
    # What has changed since is found and weighed as without it.
    tables = shop_tables()
    tables["weather.csv"] = {name: values[:30] for name, values in tables["weather.csv"].items()}
    write_lake(tmp_path / "lake", tables)
    opened = opened_lake(tmp_path / "lake", tmp_path / "index.2")
    plain, _, _ = market_graph(opened, **options)
    graph, _, notes = market_graph(opened, saved=stored, **options)
    assert graph.edges == plain.edges
    assert notes[0].startswith("Tables that have changed since the graph was saved, or are new: 1.")
    with pytest.raises(InputError, match="joins by values"):
        market_graph(opened, saved=stored, match="names", **options)
