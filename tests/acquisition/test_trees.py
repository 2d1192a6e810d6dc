import pyarrow as pa
import pytest

from benchmarks.dance_published.natural import natural_graph
from benchmarks.dance_published.walk import closed_tree
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree, Terminal
from pexeso.acquisition.tables import CodedColumns
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition.exhaustive import all_plans, is_closed
from tests.acquisition.oracle import market_table
from tests.acquisition.random_markets import random_market


@pytest.fixture
def graph():
    tables = [
        market_table("a", pa.table({"x": [1, 2], "y": [1, 2]})),
        market_table("b", pa.table({"x": [1, 2], "y": [1, 2], "z": [3, 4]})),
        market_table("c", pa.table({"x": [1, 2], "z": [3, 4]}), owned=True),
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


def test_terminals(graph):
    assert Terminal.of(graph, "x").tables == ("a", "b", "c")
    with pytest.raises(InputError, match="No table has a column 'w'"):
        Terminal.of(graph, "w")
    with pytest.raises(ColumnNotFoundError, match="'a' has no column 'z'"):
        Terminal.of(graph, "z", "a")


def test_something_must_be_wanted_and_nothing_twice():
    x, z = Terminal("x", ("a",)), Terminal("z", ("b",))
    with pytest.raises(InputError, match="needs a wanted column"):
        AcquisitionRequest((x,), ())
    with pytest.raises(InputError, match="two if there is nothing to explain"):
        AcquisitionRequest((), (z,))
    with pytest.raises(InputError, match="'z' is named twice"):
        AcquisitionRequest((x,), (z, z))
    assert AcquisitionRequest((), (x, z)).terminals == (x, z)
