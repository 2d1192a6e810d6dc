from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dance_published.graphs import landmarks_of, shortest_paths
from pexeso.acquisition.graph import JoinGraph
from tests.acquisition.weighted_graphs import weighted_graph

quick = settings(derandomize=True, deadline=None, max_examples=60)

# Quarters add up without rounding, so that equal weights are equal.
GRAPHS = st.dictionaries(
    st.sampled_from([(a, b) for a in "abcdef" for b in "abcdef" if a < b]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    min_size=1,
)


def best_path(graph: JoinGraph, start: str, end: str) -> tuple | None:
    """Return the weight, the joins and the tables of the best of all paths."""
    others = sorted(set(graph.tables) - {start, end})
    paths = [
        (start, *middle, end) for n in range(len(others) + 1) for middle in permutations(others, n)
    ]
    steps = [[tuple(sorted(step)) for step in pairwise(path)] for path in paths]
    return min(
        (
            (sum(graph.edges[pair].join_sets[0].weight for pair in pairs), len(pairs), path)
            for path, pairs in zip(paths, steps, strict=True)
            if all(pair in graph.edges for pair in pairs)
        ),
        default=None,
    )


@quick
@given(GRAPHS)
def test_paths_have_the_least_weight_then_the_fewest_joins_then_the_first_names(weights):
    graph = weighted_graph(weights)
    start = min(graph.tables)
    landmark = shortest_paths(graph, start)
    assert (landmark.distances[start], landmark.hops[start]) == (0, 0)
    assert list(landmark.path(start)) == []
    for end in sorted(set(graph.tables) - {start}):
        best = best_path(graph, start, end)
        assert (end in landmark.distances) == (best is not None)
        if best:
            weight, hops, path = best
            assert (landmark.distances[end], landmark.hops[end]) == (weight, hops)
            steps = [tuple(sorted(step)) for step in pairwise(path)]
            assert list(landmark.path(end)) == steps[::-1]


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 4)])
def test_a_part_has_the_logarithm_of_its_size_in_landmarks(n, expected):
    names = "abcdefghi"[:n]
    graph = weighted_graph({(names[0], other): 0.5 for other in names[1:]}, {names[0]: ""})
    tables = [landmark.table for landmark in landmarks_of(graph)]
    assert len(set(tables)) == len(tables) == expected


def test_each_part_has_its_own():
    graph = weighted_graph({("a", "b"): 0.5, ("a", "c"): 0.5, ("x", "y"): 0.5})
    tables = [landmark.table for landmark in landmarks_of(graph)]
    assert len(tables) == 3
    assert set(tables[:2]) < set("abc")
    assert tables[2] in "xy"
    assert [landmark.table for landmark in landmarks_of(graph, ["y"])] == tables[2:]


@quick
@given(GRAPHS, st.integers(0, 3))
def test_the_draw_does_not_depend_on_the_order_of_tables(weights, seed):
    graph = weighted_graph(weights)
    turned = JoinGraph(
        dict(reversed(graph.tables.items())), dict(reversed(list(graph.edges.items())))
    )
    assert landmarks_of(graph, seed=seed) == landmarks_of(turned, seed=seed)
