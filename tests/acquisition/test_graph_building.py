"""Columns as numbers, join informativeness, and join graphs made of them."""

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.dance_published.graphs import components
from benchmarks.dance_published.natural import natural_graph
from pexeso.acquisition.graph import JoinEdge, candidate_sets, edges_of, join_informativeness
from pexeso.acquisition.searches import require_prices
from pexeso.acquisition.tables import CodedColumns, EntropyPrices, ListedPrices, MarketTable
from pexeso.errors import ColumnNotFoundError, InputError
from tests.acquisition import oracle
from tests.acquisition.motivating_tables import TABLES
from tests.acquisition.oracle import market_table, table_informativeness
from tests.acquisition.random_markets import random_market


def test_w4_the_nine_edges_and_their_weights():
    graph = natural_graph(
        [market_table(name, rows) for name, rows in TABLES.items()], CodedColumns()
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
    assert {pair: edge.join_sets[0].weight for pair, edge in graph.edges.items()} == pytest.approx(
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
            assert join_set.weight == (expected if both else 1)
            for side, max_rows in zip(keys, (join_set.left_most, join_set.right_most), strict=True):
                assert max_rows == max((side.count(key) for key in both), default=0)
        assert edge.join_sets[0].weight == min(join_set.weight for join_set in edge.join_sets)


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
        "one": market_table("one", pa.table({"k": [1, 2, None]})),
        "two": market_table("two", pa.table({"key": ["1", "1.0", "x"]})),
    }
    (edge,) = edges_of(tables, {("two", "one"): [("key", "k")]}, CodedColumns())
    assert (edge.left, edge.right) == ("one", "two")
    (join_set,) = edge.join_sets
    assert join_set.pairs == (("k", "key"),)
    assert (join_set.n_keys, join_set.left_most, join_set.right_most) == (1, 1, 2)


def test_tables_without_a_common_name_have_no_edge():
    tables = [
        market_table("a", pa.table({"x": [1]})),
        market_table("b", pa.table({"y": [1]})),
        market_table("c", pa.table({"x": [2], "y": [2]})),
    ]
    graph = natural_graph(tables, CodedColumns())
    assert sorted(graph.edges) == [("a", "c"), ("b", "c")]
    assert all(edge.join_sets[0].weight == 1 for edge in graph.edges.values())  # no key is in both
    assert {pair for pair in combinations(sorted(graph.tables), 2)} - set(graph.edges) == {
        ("a", "b")
    }


def table(name, **columns):
    return market_table(name, pa.table(columns))


def test_keys_are_equal_where_their_tokens_are():
    left = table("left", a=["x", "y", None, "x"], b=[1, 2, 3, 1])
    right = table("right", c=["y", "x", "x"], d=["2", "1.0", "7"])
    keys = CodedColumns().keys(left, right, [("a", "c"), ("b", "d")])
    assert keys.left[2] == -1
    assert keys.left[0] == keys.left[3] == keys.right[1]
    assert keys.left[1] == keys.right[0]
    assert keys.right[2] not in keys.left
    assert max(keys.left.max(), keys.right.max()) < keys.n_codes


def test_both_directions_are_the_same_keys():
    left, right = table("left", a=[1, 2]), table("right", a=[2, 3])
    coded = CodedColumns()
    there, back = coded.keys(left, right, [("a", "a")]), coded.keys(right, left, [("a", "a")])
    assert np.array_equal(there.left, back.right)
    assert np.array_equal(there.right, back.left)


def test_values_have_a_code_for_what_is_missing():
    column = CodedColumns().values(table("t", a=["x", None, "x"]), "a")
    assert column.codes[0] == column.codes[2] != column.codes[1]
    assert column.values.to_pylist()[column.codes[1]] is None


def test_what_was_used_longest_ago_is_read_again():
    reads = []

    def read(names):
        reads.append(tuple(names))
        return pa.table({name: list(range(1000)) for name in names})

    big = MarketTable("big", ("a", "b"), 1000, read)
    coded = CodedColumns(max_bytes=20_000)
    coded.values(big, "a")
    coded.values(big, "a")
    assert reads == [("a",)]
    coded.values(big, "b")
    coded.values(big, "a")
    assert reads == [("a",), ("b",), ("a",)]


def test_what_is_refused():
    left, right = table("left", a=[1]), table("right", a=[1])
    with pytest.raises(ColumnNotFoundError, match="'left' has no column 'z'"):
        CodedColumns().keys(left, right, [("z", "a")])
    with pytest.raises(ColumnNotFoundError, match="'left' has no column 'z'"):
        CodedColumns().values(left, "z")


@pytest.fixture
def graph():
    tables = [
        market_table("a", pa.table({"x": [1, 2]})),
        market_table("b", pa.table({"x": [1, 2], "y": [1, 1]})),
        market_table("c", pa.table({"y": [1]})),
        market_table("lone", pa.table({"z": [1]})),
    ]
    return natural_graph(tables, CodedColumns())


def test_parts_of_a_graph(graph):
    assert components(graph) == [["a", "b", "c"], ["lone"]]
    assert [(edge.left, edge.right) for edge in graph.edges_of("b")] == [("a", "b"), ("b", "c")]
    assert graph.edge("b", "a") is graph.edge("a", "b")
    assert components(graph.without([("b", "a")])) == [["b", "c"], ["a"], ["lone"]]


def test_a_join_that_is_not_there_cannot_be_left_out(graph):
    with pytest.raises(InputError, match="'a' and 'c' have no join to leave out"):
        graph.without([("c", "a")])


def test_an_edge_is_the_same_from_both_sides(graph):
    edge = graph.edge("b", "c")
    turned = JoinEdge.of("c", "b", [keys.swapped() for keys in edge.join_sets], natural=True)
    assert turned == edge
    assert (edge.join_sets[0].left_most, edge.join_sets[0].right_most) == (2, 1)


@pytest.mark.parametrize("price", [-1, math.inf, math.nan])
def test_prices_are_finite_and_not_negative(price):
    with pytest.raises(InputError, match="finite number from 0"):
        require_prices({"t": {"a": price}})


def test_a_missing_price_is_named():
    with pytest.raises(InputError, match="no price for 'b' of 't'"):
        ListedPrices("t", {"a": 1})(["a", "b"])


def test_prices_add_up_and_own_tables_are_free():
    rows = pa.table({"a": [1, 2, 3, 4], "b": ["x", "x", "y", "y"]})
    assert EntropyPrices(rows.select)(["a", "b", "a"]) == 3
    assert market_table("mine", rows, owned=True).price(["a"]) == 0


W4 = [
    ("DS", "D1", ["Zipcode"], 0.127783),
    ("DS", "D4", ["Age"], 0),
    ("DS", "D4", ["Population"], 0.687350),
    ("DS", "D4", ["Age", "Population"], 0.687350),
    ("DS", "D5", ["Age"], 0),
    ("D1", "D2", ["State"], 0.268494),
    ("D2", "D3", ["Disease"], 0.126787),
    ("D2", "D3", ["Cases"], 0.531454),
    ("D2", "D3", ["Disease", "Cases"], 0.687350),
    ("D2", "D5", ["Disease"], 0),
    ("D3", "D4", ["Gender"], 0),
    ("D3", "D4", ["Race"], 0),
    ("D3", "D4", ["Gender", "Race"], 0),
    ("D3", "D5", ["Disease"], 0.171652),
    ("D4", "D5", ["Age"], 0),
]


def drawn(rng, n, names="ab", n_values=5):
    return pa.table({name: rng.integers(0, n_values, n).astype(str) for name in names})


@pytest.mark.parametrize(("left", "right", "names", "expected"), W4)
def test_w4_full_join_graph(left, right, names, expected):
    result = table_informativeness(TABLES[left], TABLES[right], names)
    assert result == pytest.approx(expected, abs=1e-6)


def test_it_is_the_definition_on_the_outer_join():
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(300):
        left = drawn(rng, rng.integers(1, 9))
        right = drawn(rng, rng.integers(1, 9))
        for names in (["a"], ["b"], ["a", "b"]):
            rows = [
                list(zip(*table.select(names).to_pydict().values(), strict=True))
                for table in (left, right)
            ]
            if len(set(oracle.outer_join(*rows))) == 1:
                continue
            result = table_informativeness(left, right, names)
            assert result == pytest.approx(oracle.informativeness(*rows), abs=1e-12)
            assert 0 <= result <= 1
            checked += 1
    assert checked > 800


def test_it_is_symmetric_and_independent_of_the_order_of_rows_to_the_last_bit():
    rng = np.random.default_rng(1)
    for _ in range(50):
        left, right = rng.integers(0, 6, (2, 40))
        order = rng.permutation(40)
        value = join_informativeness(left, right)
        assert join_informativeness(right, left) == value
        assert join_informativeness(left[order], right[order]) == value


def test_2000_matched_1000_left_500_right():
    left, right = np.repeat([1, 1, 0], [2000, 1000, 500]), np.repeat([1, 0, 1], [2000, 1000, 500])
    assert join_informativeness(left, right) == pytest.approx(0.35065, abs=1e-5)


@pytest.mark.parametrize(("left", "right", "expected"), [([4], [2], 0), ([4], [0], 1)])
def test_one_distinct_pair(left, right, expected):
    assert join_informativeness(left, right) == expected


def test_no_row_gives_nan():
    assert math.isnan(join_informativeness([], []))


def test_missing_keys_match_nothing():
    left = pa.table({"k": ["a", None, "b"], "l": [1, 1, None]})
    right = pa.table({"k": ["a", None, "c"], "l": pa.array([1, 1, 3], pa.int16())})
    known = pa.table({"k": ["a", "b"]}), pa.table({"k": ["a", "c"]})
    assert table_informativeness(left, right, ["k"]) == table_informativeness(*known, ["k"])


def test_counts_beyond_64_bits_are_multiplied():
    small, large = (join_informativeness([2**n, 1, 1], [2**n, 0, 0]) for n in (20, 40))
    assert 0 < large < small


def test_refused_input():
    table = pa.table({"k": ["a"]})
    with pytest.raises(InputError, match="at least one column"):
        table_informativeness(table, table, [])
    with pytest.raises(ColumnNotFoundError, match="'other'"):
        table_informativeness(table, table, ["other"])
    with pytest.raises(InputError, match="same type"):
        table_informativeness(table, pa.table({"k": [1]}), ["k"])
    lists = pa.table({"k": [[1]]})
    with pytest.raises(InputError, match="Flatten"):
        table_informativeness(lists, lists, ["k"])
