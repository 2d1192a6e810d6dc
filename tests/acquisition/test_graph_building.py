"""Weights of joins against informativeness of tables, and the graph of the motivating tables."""

from itertools import combinations

import pyarrow as pa
import pytest

from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.graph import candidate_sets, edges_of
from pexeso.acquisition.tables import MarketTable
from tests.acquisition.motivating_tables import TABLES
from tests.acquisition.oracle import table_informativeness
from tests.acquisition.random_markets import random_market


def test_w4_the_nine_edges_and_their_weights():
    graph = natural_graph(
        [MarketTable.of(name, rows) for name, rows in TABLES.items()], CodedColumns()
    )
    expected = {
        ("D1", "DS"): 0.127783,
        ("D4", "DS"): 0,
        ("D5", "DS"): 0,
        ("D1", "D2"): 0.268494,
        ("D2", "D3"): 0.126787,
        ("D2", "D5"): 0,
        ("D3", "D4"): 0,
        ("D3", "D5"): 0.171652,
        ("D4", "D5"): 0,
    }
    assert {pair: edge.weight for pair, edge in graph.edges.items()} == pytest.approx(
        expected, abs=1e-6
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_weight_is_that_of_the_two_tables_on_the_columns(seed):
    graph, _ = random_market(seed)
    for edge in graph.edges.values():
        left, right = (graph.tables[name] for name in (edge.left, edge.right))
        shared = sorted(set(left.columns) & set(right.columns))
        assert len(edge.join_sets) == 2 ** len(shared) - 1
        for join_set in edge.join_sets:
            names = list(join_set.left)
            expected = table_informativeness(left.read(names), right.read(names), names)
            assert join_set.informativeness == expected
            keys = [
                [row for row in zip(*table.read(names).to_pydict().values(), strict=True)]
                for table in (left, right)
            ]
            keys = [[row for row in side if None not in row] for side in keys]
            both = set(keys[0]) & set(keys[1])
            assert join_set.n_keys == len(both)
            assert join_set.weight == (expected.value if both else 1)
            for side, max_rows in zip(keys, (join_set.left_most, join_set.right_most), strict=True):
                assert max_rows == max((side.count(key) for key in both), default=0)
        assert edge.weight == min(join_set.weight for join_set in edge.join_sets)


def test_many_pairs_are_weighed_by_few_and_by_all():
    pairs = [(f"a{number}", f"b{number}") for number in range(8)]
    sets = candidate_sets(pairs)
    sizes = [len(candidate) for candidate in sets]
    assert sizes == [1] * 8 + [2] * 28 + [3] * 56 + [8]
    assert sets[:8] == [(pair,) for pair in pairs]


def test_no_column_is_in_two_pairs_of_a_set():
    pairs = [("home", "team"), ("away", "team"), ("year", "season"), ("year", "year")]
    for chosen in candidate_sets(pairs):
        for side in (0, 1):
            assert len({pair[side] for pair in chosen}) == len(chosen)
    assert (("away", "team"), ("year", "year")) in candidate_sets(pairs)


def test_names_may_differ_and_types_too():
    tables = {
        "one": MarketTable.of("one", pa.table({"k": [1, 2, None]})),
        "two": MarketTable.of("two", pa.table({"key": ["1", "1.0", "x"]})),
    }
    (edge,) = edges_of(tables, {("two", "one"): [("key", "k")]}, CodedColumns())
    assert (edge.left, edge.right) == ("one", "two")
    (join_set,) = edge.join_sets
    assert join_set.pairs == (("k", "key"),)
    assert (join_set.n_keys, join_set.left_most, join_set.right_most) == (1, 1, 2)
    assert join_set.informativeness.matched == 2
    assert join_set.informativeness.null_rows == 1


def test_tables_without_a_common_name_have_no_edge():
    tables = [
        MarketTable.of("a", pa.table({"x": [1]})),
        MarketTable.of("b", pa.table({"y": [1]})),
        MarketTable.of("c", pa.table({"x": [2], "y": [2]})),
    ]
    graph = natural_graph(tables, CodedColumns())
    assert sorted(graph.edges) == [("a", "c"), ("b", "c")]
    assert all(edge.weight == 1 for edge in graph.edges.values())  # no key is in both
    assert {pair for pair in combinations(sorted(graph.tables), 2)} - set(graph.edges) == {
        ("a", "b")
    }
