"""A folder of samples as a market."""

import pyarrow as pa
import pytest

from pexeso.acquisition.graph.building import natural_graph
from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.tables import MarketTable
from pexeso.acquisition_search.graphs.sample_market import sample_graph
from pexeso.acquisition_search.graphs.stored_graph import updated_graph
from pexeso.acquisition_search.market.lake_market import Market
from pexeso.errors import InputError, LakeError
from tests.acquisition.motivating_tables import ROWS
from tests.acquisition_search.graphs.small_lake import own_sales, shop_tables
from tests.acquisition_search.indexes import opened_lake, write_lake


def test_names_give_the_natural_graph_of_the_paper(tmp_path):
    tables = shop_tables()
    write_lake(tmp_path, tables)
    graph, _, notes = sample_graph(tmp_path, rate=1.0, own=[("sales", own_sales())])
    texts = {
        name: pa.table({label: list(map(str, values)) for label, values in columns.items()})
        for name, columns in tables.items()
    }
    texts["sales"] = own_sales()
    truth = natural_graph(
        [MarketTable.of(name, rows) for name, rows in texts.items()], CodedColumns()
    )
    assert graph.edges == truth.edges
    assert notes == []
    assert graph.tables["sales"].owned
    assert not graph.tables["weather.csv"].owned
    assert graph.tables["weather.csv"].price(["city"]) == pytest.approx(2.584963, abs=1e-6)
    assert graph.tables["sales"].price(["week"]) == 0


def test_w4_the_graph_of_the_motivating_tables(tmp_path):
    for name, (columns, rows) in ROWS.items():
        cells = [columns, *rows]
        text = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in cells)
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    graph, _, _ = sample_graph(tmp_path, rate=1)
    weights = {
        tuple(name.removesuffix(".csv") for name in ends): edge.weight
        for ends, edge in graph.edges.items()
    }
    assert weights == pytest.approx(
        {
            ("D1", "DS"): 0.127783,
            ("D4", "DS"): 0,
            ("D5", "DS"): 0,
            ("D1", "D2"): 0.268494,
            ("D2", "D3"): 0.126787,
            ("D2", "D5"): 0,
            ("D3", "D4"): 0,
            ("D3", "D5"): 0.171652,
            ("D4", "D5"): 0,
        },
        abs=1e-6,
    )


def test_values_give_the_graph_of_an_index(tmp_path):
    write_lake(tmp_path / "lake", shop_tables())
    graph, _, notes = sample_graph(
        tmp_path / "lake", rate=0.5, match="values", prices="free", dependencies="off"
    )
    market = Market.of(opened_lake(tmp_path / "lake", tmp_path / "index"), dependencies="off")
    truth = updated_graph(market)[0].graph(market)
    assert graph.edges == truth.edges
    assert {name: table.numeric for name, table in graph.tables.items()} == {
        name: table.numeric for name, table in truth.tables.items()
    }
    assert "samples of 0.5 of the keys" in notes[0]


def test_what_cannot_be(tmp_path):
    with pytest.raises(LakeError, match="no table"):
        sample_graph(tmp_path, rate=1)
    write_lake(tmp_path, {"a.csv": {"x": [1, 2]}, "b.csv": {"x": [1, 2]}})
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    graph, _, notes = sample_graph(tmp_path, rate=1, exclude=["b.csv"])
    assert list(graph.tables) == ["a.csv"]
    assert notes[0].startswith("'c.parquet' is left out")
    for rate in (0, 1.5, True, "1"):
        with pytest.raises(InputError, match="rate must be"):
            sample_graph(tmp_path, rate=rate)
    with pytest.raises(InputError, match="match must be"):
        sample_graph(tmp_path, rate=1, match="all")
    with pytest.raises(InputError, match=r"no table 'd\.csv'"):
        sample_graph(tmp_path, rate=1, prices={"d.csv": {"*": 1.0}})
    rows = pa.table({"x": [1]})
    with pytest.raises(InputError, match="different names"):
        sample_graph(tmp_path, rate=1, own=[("mine", rows), ("mine", rows)])
