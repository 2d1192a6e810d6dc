import math

import pyarrow as pa
import pytest

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.graph import JoinEdge, JoinGraph
from pexeso.acquisition.tables import EntropyPrices, ListedPrices, MarketTable
from pexeso.errors import InputError


@pytest.fixture
def graph():
    tables = [
        MarketTable.of("a", pa.table({"x": [1, 2]})),
        MarketTable.of("b", pa.table({"x": [1, 2], "y": [1, 1]})),
        MarketTable.of("c", pa.table({"y": [1]})),
        MarketTable.of("lone", pa.table({"z": [1]})),
    ]
    return natural_graph(tables, CodedColumns())


def test_parts_of_a_graph(graph):
    assert graph.components() == [["a", "b", "c"], ["lone"]]
    assert [edge.other("b") for edge in graph.edges_of("b")] == ["a", "c"]
    assert graph.edge("b", "a") is graph.edge("a", "b")
    assert graph.without(["b"]).components() == [["a"], ["c"], ["lone"]]
    assert graph.without((), [("b", "a")]).components() == [["b", "c"], ["a"], ["lone"]]


def test_what_is_not_there_cannot_be_left_out(graph):
    with pytest.raises(InputError, match="There is no table 'd' to leave out"):
        graph.without(["d"])
    with pytest.raises(InputError, match="'a' and 'c' have no join to leave out"):
        graph.without((), [("c", "a")])


def test_names_are_unique(graph):
    with pytest.raises(InputError, match="got 'a' twice"):
        JoinGraph.of([*graph.tables.values(), MarketTable.of("a", pa.table({"x": [1]}))])
    rows = pa.table([[1], [2]], names=["x", "x"])
    with pytest.raises(InputError, match="columns of 'twice' must have different names"):
        MarketTable.of("twice", rows)


def test_edges_join_two_tables_of_the_graph(graph):
    edge = graph.edge("a", "b")
    with pytest.raises(InputError, match="must join two tables of the graph"):
        JoinGraph({"a": graph.tables["a"]}, {("a", "b"): edge})
    with pytest.raises(InputError, match="two different tables"):
        JoinEdge("b", "a", edge.join_sets)
    with pytest.raises(InputError, match="No columns join"):
        JoinEdge("a", "b", ())


def test_an_edge_is_the_same_from_both_sides(graph):
    edge = graph.edge("b", "c")
    turned = JoinEdge.of("c", "b", [keys.swapped() for keys in edge.join_sets], natural=True)
    assert turned == edge
    assert (edge.join_sets[0].left_most, edge.join_sets[0].right_most) == (2, 1)


@pytest.mark.parametrize("price", [-1, math.inf, math.nan])
def test_prices_are_finite_and_not_negative(price):
    with pytest.raises(InputError, match="finite number from 0"):
        ListedPrices("t", {"a": price})


def test_a_missing_price_is_named():
    with pytest.raises(InputError, match="no price for 'b' of 't'"):
        ListedPrices("t", {"a": 1})(["a", "b"])


def test_prices_add_up_and_own_tables_are_free():
    rows = pa.table({"a": [1, 2, 3, 4], "b": ["x", "x", "y", "y"]})
    assert EntropyPrices(rows.select)(["a", "b", "a"]) == 3
    assert MarketTable.of("mine", rows, owned=True).price(["a"]) == 0
