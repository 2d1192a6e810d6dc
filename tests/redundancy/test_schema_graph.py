"""The graph of schemas: held against all pairs; and what its worked example counts."""

import random

import pytest

from pexeso.redundancy import schema_graph as module
from pexeso.redundancy.schema_graph import schema_graph

WORKED = [frozenset(each) for each in ("1234", "345", "12", "34", "1", "56")]


def pairs(graph):
    return sorted(
        (int(parent), int(child))
        for parents, children in graph.blocks()
        for parent, child in zip(parents, children, strict=True)
    )


def all_pairs(schemas):
    return [
        (parent, child)
        for parent, wide in enumerate(schemas)
        for child, narrow in enumerate(schemas)
        if parent != child and narrow <= wide
    ]


def test_the_worked_example():
    graph = schema_graph(WORKED)
    assert pairs(graph) == [(0, 2), (0, 3), (0, 4), (1, 3), (2, 4)]
    assert graph.centers == (0, 1, 5)
    assert (graph.center_tests, graph.pair_tests) == (10, 7)
    more = schema_graph([*WORKED, frozenset("12")])
    assert more.n_edges == 9
    assert set(pairs(more)) - set(pairs(graph)) == {(0, 6), (2, 6), (6, 2), (6, 4)}


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_edges_are_all_containments(block, monkeypatch):
    monkeypatch.setattr(module, "PAIRS_OF_A_BLOCK", block)
    draw = random.Random(block)
    for _ in range(1000):
        n_tokens = draw.randint(1, 8)
        schemas = [
            frozenset(draw.sample(range(n_tokens), draw.randint(1, n_tokens)))
            for _ in range(draw.randint(0, 9))
        ]
        graph = schema_graph(schemas)
        assert pairs(graph) == all_pairs(schemas)
        assert graph.n_edges == len(all_pairs(schemas))
        assert all(len(parents) <= block for parents, _ in graph.blocks())
