"""Correlated samples: which rows they keep, and what is counted in their joins."""

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.dance_published.samples import correlated_sample, distinct_keys
from pexeso.acquisition.key_hashes import KeyTest, hash_positions
from pexeso.errors import InputError


def keys_of(table):
    return set(table["k"].to_pylist())


def drawn(rng, n, n_keys):
    return pa.table({"k": rng.integers(0, n_keys, n), "row": range(n)})


def test_ac14_a_key_is_kept_on_both_sides_or_neither_with_all_its_rows():
    rng = np.random.default_rng(0)
    left, right = drawn(rng, 20_000, 4000), drawn(rng, 9000, 5000)
    right = right.set_column(0, "k", right["k"].cast(pa.string()))
    for rate in (0.05, 0.3, 0.9):
        test = [KeyTest(("k",), rate)]
        kept = correlated_sample(left, test, seed=3).rows
        other = correlated_sample(right, test, seed=3).rows
        numbers, texts = keys_of(kept), {int(key) for key in keys_of(other)}
        common = keys_of(left) & {int(key) for key in keys_of(right)}
        assert numbers & common == texts & common
        assert kept.num_rows == sum(key in numbers for key in left["k"].to_pylist())
        n = len(keys_of(left))
        assert abs(len(numbers) / n - rate) < 4 * math.sqrt(rate * (1 - rate) / n)


def test_ac14_samples_are_nested_and_an_increment_adds_the_rest():
    table = drawn(np.random.default_rng(1), 5000, 1500)
    low, high = [KeyTest(("k",), 0.2)], [KeyTest(("k",), 0.5)]
    one, two = (set(correlated_sample(table, t).rows["row"].to_pylist()) for t in (low, high))
    added = correlated_sample(table, high, bought=low).rows["row"].to_pylist()
    assert one < two
    assert sorted(one | set(added)) == sorted(two)
    assert not one & set(added)
    assert correlated_sample(table, high, bought=high).rows.num_rows == 0
    whole = [KeyTest(("k",), 1.0)]
    assert correlated_sample(table, whole, bought=low).rows.num_rows == 5000 - len(one)


def test_ac14_expected_count_of_a_join_by_all_subsets_of_keys():
    left, right = {"a": 2, "b": 1, "c": 3}, {"a": 1, "b": 4, "d": 2}
    keys = sorted(left | right)
    subsets = [set(kept) for n in range(5) for kept in combinations(keys, n)]
    counts = [sum(left.get(k, 0) * right.get(k, 0) for k in kept) for kept in subsets]
    assert sum(left.get(k, 0) * right.get(k, 0) for k in keys) == 6
    assert np.mean(counts) == 3
    # Over seeds the samples draw each subset equally often, so its count has the same mean.
    tables = [
        pa.table({"k": [k for k, n in side.items() for _ in range(n)]}) for side in (left, right)
    ]
    sizes = []
    for seed in range(1500):
        rows = [correlated_sample(t, [KeyTest(("k",), 0.5)], seed=seed).rows for t in tables]
        one, two = (row["k"].to_pylist() for row in rows)
        sizes.append(sum(a == b for a in one for b in two))
    assert abs(np.mean(sizes) - 3) < 4 * np.std(counts) / math.sqrt(1500)


def test_rows_pass_the_tests_of_all_edges():
    rng = np.random.default_rng(2)
    table = pa.table({"a": rng.integers(0, 900, 4000), "b": rng.integers(0, 700, 4000)})
    sample = correlated_sample(table, [KeyTest(("a",), 0.5), KeyTest(("a", "b"), 0.3)], seed=1)
    one = hash_positions(table, ["a"], seed=1) <= 0.5
    two = hash_positions(table, ["b", "a"], seed=1) <= 0.3
    assert sample.rows.equals(table.filter(pa.array(one & two)))
    assert 0.1 < sample.rows.num_rows / 4000 < 0.2
    twice = [KeyTest(("a",), 0.5), KeyTest(("a",), 0.2), KeyTest(("a",), 0.9)]
    once = correlated_sample(table, [KeyTest(("a",), 0.2)], seed=1)
    assert correlated_sample(table, twice, seed=1).rows.equals(once.rows)


def test_an_increment_of_several_edges():
    rng = np.random.default_rng(3)
    table = pa.table({"a": rng.integers(0, 90, 900), "b": rng.integers(0, 70, 900)})
    low = [KeyTest(("a",), 0.3), KeyTest(("b",), 1.0)]
    high = [KeyTest(("a",), 0.6), KeyTest(("b",), 1.0)]
    one, two = (correlated_sample(table, tests).rows for tests in (low, high))
    added = correlated_sample(table, high, bought=low).rows
    assert one.num_rows + added.num_rows == two.num_rows
    assert set(added["a"].to_pylist()) == set(two["a"].to_pylist()) - set(one["a"].to_pylist())


def test_rows_without_a_key_are_left_out_and_counted():
    table = pa.table({"a": ["x", None, "?", "y"], "b": [1, 2, None, None]})
    for rate in (0.999999, 1.0):
        sample = correlated_sample(table, [KeyTest(("a",), rate), KeyTest(("b",), rate)])
        assert (sample.rows.num_rows, sample.n_rows, sample.null_rows) == (1, 4, 3)
    assert correlated_sample(table, []).rows.num_rows == 4


def test_a_table_read_in_parts_gives_the_same_sample():
    table = drawn(np.random.default_rng(4), 300, 50)
    tests = [KeyTest(("k",), 0.4)]
    parts = [correlated_sample(part, tests).rows for part in table.to_batches(max_chunksize=70)]
    assert pa.concat_tables(parts).equals(correlated_sample(table, tests).rows.combine_chunks())


def test_distinct_keys():
    assert distinct_keys(pa.table({"a": [1, 1, 2, None], "b": [1, 1, 1, 1]}), ["a", "b"]) == 2


def test_refused_input():
    table = pa.table({"k": [1]})
    for rate in (0, -0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="rate"):
            KeyTest(("k",), rate)
    with pytest.raises(InputError, match="each named once"):
        KeyTest((), 0.5)
    for bought in ([KeyTest(("k",), 0.6)], [KeyTest(("j",), 0.1)]):
        with pytest.raises(InputError, match="enlarged"):
            correlated_sample(table, [KeyTest(("k",), 0.5)], bought=bought)
