import math

import pyarrow as pa
import pytest

from benchmarks.dance_published.natural import natural_graph
from benchmarks.dance_published.walk import closed_tree
from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree, Terminal
from pexeso.acquisition.tables import MarketTable
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition.exhaustive import all_plans, is_closed
from tests.acquisition.random_markets import random_market


@pytest.fixture
def graph():
    tables = [
        MarketTable.of("a", pa.table({"x": [1, 2], "y": [1, 2]})),
        MarketTable.of("b", pa.table({"x": [1, 2], "y": [1, 2], "z": [3, 4]})),
        MarketTable.of("c", pa.table({"x": [1, 2], "z": [3, 4]}), owned=True),
    ]
    return natural_graph(tables, CodedColumns())


def join(graph, one, other, *names):
    edge = graph.edge(one, other)
    (chosen,) = [join_set for join_set in edge.join_sets if join_set.left == names]
    return Join(edge.left, edge.right, chosen)


def test_columns_prices_and_statements_of_a_plan(graph):
    tree = JoinTree.of(
        [join(graph, "a", "b", "x"), join(graph, "b", "c", "z")], [("c", "x")], [("a", "y")]
    )
    assert tree.columns == {"a": ("x", "y"), "b": ("x", "z"), "c": ("x", "z")}
    assert tree.price(graph) == 4
    assert [purchase.sql for purchase in tree.purchases(graph)] == [
        'SELECT "x", "y" FROM "a"',
        'SELECT "x", "z" FROM "b"',
    ]
    assert [table for table, _ in tree.rooted("c")] == ["c", "b", "a"]


def test_closure_joins_by_all_shared_columns(graph):
    loose = JoinTree.of(
        [join(graph, "a", "b", "x"), join(graph, "b", "c", "z")], [("c", "x")], [("a", "y")]
    )
    assert not is_closed(loose, graph)  # b and c both have x
    closed = closed_tree(loose, graph)
    assert is_closed(closed, graph)
    assert [closed_join.join_set.left for closed_join in closed.joins] == [("x",), ("x", "z")]


@pytest.mark.parametrize("seed", range(10))
def test_ac_9_closed_plans_stay_and_have_what_is_asked_for(seed):
    graph, request = random_market(seed)
    for tree in all_plans(graph, request):
        assert closed_tree(tree, graph).signature == tree.signature
        for (table, column), terminal in zip(
            (*tree.have, *tree.want), request.terminals, strict=True
        ):
            assert column == terminal.column
            assert table in terminal.tables
            assert column in tree.columns[table]


def test_joins_that_are_no_tree(graph):
    circle = [
        join(graph, "a", "b", "x"),
        join(graph, "b", "c", "x"),
        join(graph, "a", "c", "x"),
    ]
    with pytest.raises(InputError, match="in a circle"):
        JoinTree.of(circle, [("a", "x")], [("c", "z")]).rooted("a")
    apart = JoinTree.of([join(graph, "a", "b", "x")], [("a", "x")], [("c", "z")])
    with pytest.raises(InputError, match="do not reach c"):
        apart.rooted("a")


def test_terminals(graph):
    assert Terminal.of(graph, "x").tables == ("a", "b", "c")
    with pytest.raises(InputError, match="No table has a column 'w'"):
        Terminal.of(graph, "w")
    with pytest.raises(InputError, match="There is no table 'd'"):
        Terminal.of(graph, "x", "d")
    with pytest.raises(ColumnNotFoundError, match="'a' has no column 'z'"):
        Terminal.of(graph, "z", "a")


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"budget": -1}, "budget must be a number from 0"),
        ({"budget": math.nan}, "budget must be a number from 0"),
        ({"max_informativeness": -0.1}, "max_informativeness must be a number from 0"),
        ({"min_quality": 1.1}, "min_quality must be from 0 to 1"),
        ({"max_tables": 0}, "max_tables must be 1 or more"),
        ({"max_fan_out": 0}, "max_fan_out must be 1 or more"),
    ],
)
def test_bounds_out_of_range(bounds, message):
    x, z = Terminal("x", ("a",)), Terminal("z", ("b",))
    with pytest.raises(InputError, match=message):
        AcquisitionRequest((x,), (z,), **bounds)


def test_something_must_be_wanted_and_nothing_twice():
    x, z = Terminal("x", ("a",)), Terminal("z", ("b",))
    with pytest.raises(InputError, match="needs a wanted column"):
        AcquisitionRequest((x,), ())
    with pytest.raises(InputError, match="two if there is nothing to explain"):
        AcquisitionRequest((), (z,))
    with pytest.raises(InputError, match="'z' is named twice"):
        AcquisitionRequest((x,), (z, z))
    assert AcquisitionRequest((), (x, z)).terminals == (x, z)
