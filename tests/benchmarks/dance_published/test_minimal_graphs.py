from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dance_published.graphs import landmarks_of, minimal_graphs, shortest_paths
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree, Terminal
from tests.acquisition.exhaustive import all_plans
from tests.acquisition.weighted_graphs import weighted_graph

quick = settings(derandomize=True, deadline=None, max_examples=40)

EXAMPLE = {
    ("1", "2"): 0.1,
    ("2", "3"): 0.2,
    ("1", "4"): 0.3,
    ("3", "4"): 0.3,
    ("3", "5"): 0.1,
    ("2", "6"): 0.05,
}


def request_of(graph: JoinGraph, have: str, want: str, **options) -> AcquisitionRequest:
    return AcquisitionRequest(
        tuple(Terminal.of(graph, column) for column in have),
        tuple(Terminal.of(graph, column) for column in want),
        **options,
    )


@pytest.mark.parametrize(
    ("landmark", "weight"),
    [("1", 0.4), ("2", 0.4), ("3", 0.4), ("4", 0.7), ("5", 0.4), ("6", 0.4)],
)
def test_worked_example_of_six_tables(landmark, weight):
    graph = weighted_graph(EXAMPLE)
    (tree,) = minimal_graphs(graph, request_of(graph, "1", "5"), [shortest_paths(graph, landmark)])
    assert tree.weight == pytest.approx(weight)
    assert (tree.have, tree.want) == ((("1", "1"),), (("5", "5"),))
    through = ("1", "3", "4", "5") if landmark == "4" else ("1", "2", "3", "5")
    assert tree.tables == through


def test_graphs_of_several_landmarks_come_once_and_least_weight_first():
    graph = weighted_graph(EXAMPLE)
    marks = [shortest_paths(graph, name) for name in "123456"]
    trees = minimal_graphs(graph, request_of(graph, "1", "5"), marks)
    assert [tree.weight for tree in trees] == pytest.approx([0.4, 0.7])
    assert trees == minimal_graphs(graph, request_of(graph, "1", "5"), marks[::-1])


def test_ones_own_table_goes_first():
    graph = weighted_graph({("a", "b"): 0.2}, {"a": "x", "b": "x"})
    own = JoinGraph(
        {
            name: replace(table, owned=True) if name == "b" else table
            for name, table in graph.tables.items()
        },
        graph.edges,
    )
    # Both tables are needed, for columns of their names, and both have x.
    request = request_of(graph, "x", "ab")
    (bought,) = minimal_graphs(graph, request, landmarks_of(graph))
    (owned,) = minimal_graphs(own, request, landmarks_of(own))
    assert (bought.have, owned.have) == ((("a", "x"),), (("b", "x"),))


NAMES = "abcde"
GRAPHS = st.dictionaries(
    st.sampled_from([(a, b) for a in NAMES for b in NAMES if a < b]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    min_size=4,
    max_size=7,
)
EXTRAS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["x", "y", "xy"]), min_size=3)


@quick
@given(GRAPHS, EXTRAS)
def test_minimal_graphs_are_trees_with_all_columns(weights, extras):
    graph = weighted_graph(weights, {**extras, "a": "xy"})
    request = request_of(graph, "x", "yb") if "b" in graph.tables else request_of(graph, "x", "y")
    marks = landmarks_of(graph)
    graphs = minimal_graphs(graph, request, marks)
    turned = JoinGraph(dict(reversed(graph.tables.items())), graph.edges)
    assert graphs == minimal_graphs(turned, request, landmarks_of(turned))
    possible = {tree.signature for tree in all_plans(graph, request)}
    for minimal_graph in graphs:
        joins = (Join(*pair, graph.edges[pair].join_sets[0]) for pair in minimal_graph.pairs)
        tree = JoinTree.of(joins, minimal_graph.have, minimal_graph.want)
        assert tree.tables == minimal_graph.tables
        assert len(tree.rooted(tree.tables[0])) == len(tree.tables) == len(minimal_graph.pairs) + 1
        assert tree.weight == minimal_graph.weight
        assert tree.signature in possible
