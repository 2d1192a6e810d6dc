"""Join graphs over an index as it is built, appended to, deleted from and compacted."""

import pytest

from pexeso.acquisition_search.graphs.market_graph import market_graph
from pexeso.acquisition_search.graphs.stored_graph import updated_graph
from pexeso.acquisition_search.market.lake_market import Market
from pexeso.index import build_index, open_index
from tests.acquisition_search.graphs.small_lake import own_sales, shop_tables
from tests.acquisition_search.indexes import write_lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def graph_now(path, before=None):
    return updated_graph(Market.of(open_index(path)._opened), before)


@pytest.mark.long
def test_a_graph_follows_its_index(spark, tmp_path):
    lake, path = tmp_path / "lake", tmp_path / "lake.pexeso"
    tables = shop_tables()
    late = {"weather.csv": tables.pop("weather.csv")}
    write_lake(lake, tables)
    options = {"model": "hashing", "dimensions": 16, "parts": ["overlap"]}
    index = build_index(lake, path, **options)
    first, changes = graph_now(path)
    assert changes.added == tuple(sorted(tables))

    wanted = [("geo/states.csv", "currency")]
    graph, _, notes = market_graph(path, own=[("sales", own_sales())], wanted=wanted)
    assert sorted(graph.edges) == [
        ("geo/cities.csv", "geo/states.csv"),
        ("geo/cities.csv", "shops.csv"),
        ("sales", "shops.csv"),
    ]
    assert notes == []

    write_lake(lake, late)
    index.append()
    assert len(index.shards) == 2
    second, changes = graph_now(path, first)
    assert (changes.added, changes.changed, changes.removed) == (("weather.csv",), (), ())
    assert 0 < changes.n_weighed < 6
    assert second.edges.keys() > first.edges.keys()

    index.delete(["geo/cities.csv"])
    third, changes = graph_now(path, second)
    assert (changes.removed, changes.n_weighed) == (("geo/cities.csv",), 0)
    assert third.edges == {
        ends: edge for ends, edge in second.edges.items() if "geo/cities.csv" not in ends
    }

    index.compact()
    fourth, changes = graph_now(path, third)
    assert (fourth.edges, fourth.fingerprints) == (third.edges, third.fingerprints)
    assert changes.n_weighed == 0
    assert fourth.edges == graph_now(path)[0].edges
