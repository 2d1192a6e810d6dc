import math
from collections import Counter
from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pexeso.acquisition.graph.building import natural_graph
from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.lattice import (
    Lattice,
    join_set_between,
    lattice_edges,
    n_lattice_edges,
)
from pexeso.acquisition.graph.tables import MarketTable
from pexeso.errors import InputError
from tests.acquisition.motivating_tables import TABLES
from tests.acquisition.oracle import informativeness

quick = settings(derandomize=True, deadline=None, max_examples=40)
COLUMNS = st.sets(st.sampled_from("ABCDEF"), min_size=1, max_size=5)


@pytest.mark.parametrize("m", range(8))
def test_counts_are_those_of_the_sets_of_at_least_two_columns(m):
    names = "abcdefgh"[:m]
    lattice = Lattice.of(names)
    vertices = list(lattice.vertices())
    assert lattice.n_vertices == len(vertices) == len(set(vertices))
    assert Counter(map(len, vertices)) == lattice.level_sizes
    assert all(lattice.level_sizes[k] == math.comb(m, k) for k in lattice.level_sizes)
    assert lattice.height == len(lattice.level_sizes)
    pairs = [
        (one, other)
        for one in vertices
        for other in vertices
        if set(one) < set(other) and len(other) == len(one) + 1
    ]
    assert lattice.n_links == len(pairs)
    assert sorted(pairs) == sorted(
        (node, child) for node in vertices for child in lattice.children(node)
    )
    assert sorted(pairs) == sorted((up, node) for node in vertices for up in lattice.parents(node))
    if m >= 2:
        assert [node for node in vertices if not lattice.children(node)] == [tuple(names)]


def test_counts_of_the_paper_and_of_its_widest_tables():
    four = Lattice.of("ABCD")
    assert (four.n_vertices, four.n_links, four.level_sizes) == (11, 16, {2: 6, 3: 4, 4: 1})
    assert Lattice.of(map(str, range(20))).n_vertices == 1_048_555
    widest = Lattice.of([f"{i:02}" for i in range(28)])
    assert widest.n_vertices == 268_435_427
    # Nothing of it is listed.
    assert len(widest.children(["00", "01"])) == 26
    assert next(widest.vertices(27)) == tuple(f"{i:02}" for i in range(27))


def test_vertices_of_the_tables_of_the_introduction():
    sizes = {name: Lattice.of(table.column_names).n_vertices for name, table in TABLES.items()}
    assert sizes == {"DS": 4, "D1": 1, "D2": 4, "D3": 11, "D4": 11, "D5": 11}
    assert sum(sizes.values()) == 42


def test_edges_of_the_figure_of_the_paper():
    one, other = Lattice.of("ABC"), Lattice.of("BCDE")
    edges = list(lattice_edges(one, other))
    assert len(edges) == n_lattice_edges(one, other) == 34
    assert Counter(edge.shared for edge in edges) == {("B",): 13, ("C",): 13, ("B", "C"): 8}
    assert [n_lattice_edges(one, other, shared) for shared in ("B", "C", "BC")] == [13, 13, 8]
    assert sum(edge.left == ("B", "C") for edge in edges) == 10


@quick
@given(COLUMNS, COLUMNS)
def test_counted_edges_are_those_that_are_listed(mine, theirs):
    one, other = Lattice.of(mine), Lattice.of(theirs)
    listed = Counter(edge.shared for edge in lattice_edges(one, other))
    both = sorted(mine & theirs)
    for size in range(1, len(both) + 1):
        for shared in combinations(both, size):
            assert n_lattice_edges(one, other, shared) == listed[shared]
    assert n_lattice_edges(one, other) == listed.total()


ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=3, max_size=8)


@quick
@given(ROWS, ROWS)
def test_the_weight_of_an_edge_depends_on_the_tables_and_the_shared_columns_alone(left, right):
    tables = {
        "D1": pa.table(dict(zip("ABC", map(list, zip(*left, strict=True)), strict=True))),
        "D2": pa.table(dict(zip("BCD", map(list, zip(*right, strict=True)), strict=True))),
    }
    graph = natural_graph([MarketTable.of(*entry) for entry in tables.items()], CodedColumns())
    edge = graph.edge("D1", "D2")
    for join in lattice_edges(*(Lattice.of(table.column_names) for table in tables.values())):
        join_set = join_set_between(edge, join.left, join.right)
        assert join_set.left == join_set.right == join.shared
        # Measured on the two projections, whatever further columns they have.
        keys = [
            [tuple(row[name] for name in join.shared) for row in table.select(names).to_pylist()]
            for table, names in zip(tables.values(), (join.left, join.right), strict=True)
        ]
        if len(set(keys[0]) | set(keys[1])) > 1:
            expected = informativeness(*keys)
            assert join_set.informativeness.value == pytest.approx(expected, abs=1e-9)
    assert edge.weight == min(join_set.weight for join_set in edge.join_sets)


def test_columns_that_do_not_join_or_are_not_weighed():
    table = pa.table({"a": [1], "b": [2]})
    graph = natural_graph([MarketTable.of("x", table), MarketTable.of("y", table)], CodedColumns())
    edge = graph.edge("x", "y")
    assert join_set_between(edge, ["a"], ["b"]) is None
    assert join_set_between(edge, ["a", "b"], ["b"]).left == ("b",)


@pytest.mark.parametrize("vertex", [["a"], ["a", "z"], []])
def test_what_is_no_vertex_is_refused(vertex):
    with pytest.raises(InputError, match="A vertex has 2 or more of the columns a, b"):
        Lattice.of("ab").children(vertex)
    with pytest.raises(InputError, match="A vertex has 2 or more"):
        Lattice.of("ab").parents(vertex)


def test_what_is_not_shared_is_refused():
    with pytest.raises(InputError, match=r"Columns of both tables are b\. Got a"):
        n_lattice_edges(Lattice.of("ab"), Lattice.of("bc"), "a")
    with pytest.raises(InputError, match="different names"):
        Lattice(("a", "a"))
