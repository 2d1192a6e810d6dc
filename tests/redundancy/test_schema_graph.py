"""The graph of schemas: held against all pairs; and what its worked example counts."""

import random
import time
from itertools import combinations

import pytest

from pexeso.redundancy import schema_graph as module
from pexeso.redundancy.schema_graph import schema_graph

WORKED = [frozenset(columns) for columns in ("1234", "345", "12", "34", "1", "56")]


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


def counted_as_written(schemas):
    """Follow the pseudocode of the source on distinct schemas; a pair is tested once."""
    distinct = list(dict.fromkeys(schemas))
    order = sorted(range(len(distinct)), key=lambda schema: (-len(distinct[schema]), schema))
    clusters, center_tests = [], 0
    for schema in order:
        center_tests += len(clusters)
        matches = [cluster for cluster in clusters if distinct[schema] <= distinct[cluster[0]]]
        for cluster in matches:
            cluster.append(schema)
        if not matches:
            clusters.append([schema])
    pairs = {frozenset(pair) for cluster in clusters for pair in combinations(cluster, 2)}
    return [cluster[0] for cluster in clusters], center_tests, len(pairs)


@pytest.mark.parametrize("listed", [0, 2, 64])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_edges_are_all_containments(block, listed, monkeypatch):
    monkeypatch.setattr(module, "PAIRS_OF_A_BLOCK", block)
    monkeypatch.setattr(module, "_LISTED", listed)
    draw = random.Random(block)
    for _ in range(500):
        n_tokens = draw.randint(1, 8)
        schemas = [
            frozenset(draw.sample(range(n_tokens), draw.randint(1, n_tokens)))
            for _ in range(draw.randint(0, 9))
        ]
        graph = schema_graph(schemas)
        assert pairs(graph) == all_pairs(schemas)
        assert graph.n_edges == len(all_pairs(schemas))
        assert all(len(parents) <= block for parents, _ in graph.blocks())
        centers, center_tests, pair_tests = counted_as_written(schemas)
        assert list(graph.centers) == centers
        assert (graph.center_tests, graph.pair_tests) == (center_tests, pair_tests)


class Watched(frozenset):
    """A set that counts how often it is compared."""

    n_tests = 0

    def __le__(self, other):
        Watched.n_tests += 1
        return super().__le__(other)

    __hash__ = frozenset.__hash__


@pytest.mark.parametrize("n_tokens", [200, 20_000])
def test_ten_thousand_wide_schemas_need_few_comparisons(n_tokens, monkeypatch):
    monkeypatch.setattr(Watched, "n_tests", 0)
    draw, n = random.Random(n_tokens), 10_000
    schemas = [Watched(["id", *draw.sample(range(n_tokens), 40)]) for _ in range(n - 10)]
    schemas += [Watched(draw.sample(sorted(schemas[7], key=str), size)) for size in range(10, 20)]
    begin = time.perf_counter()
    graph = schema_graph(schemas)
    assert time.perf_counter() - begin < 20
    assert graph.n_edges >= 10
    assert {(7, table) for table in range(n - 10, n)} <= set(pairs(graph))
    assert Watched.n_tests <= 64 * n
    assert graph.center_tests > n * n // 3
