"""Two sampled tables: exact at rate 1, and covered by intervals in most of many samples."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.key_hashes import KeyTest, hash_positions
from pexeso.acquisition.quality import Dependency
from pexeso.joins.measures import correlation
from tests.acquisition import coverage_cases
from tests.acquisition.motivating_tables import TABLES, joined
from tests.acquisition.oracle import quality
from tests.acquisition.sampled_pairs import (
    SampledPair,
    correlated_sample,
    key_summary,
    unsampled_squares,
)


def test_w4_at_the_rate_one():
    pair = SampledPair(TABLES["D5"], TABLES["DS"], ["Age"], 1.0)
    assert pair.correlation(["Age"], ["Disease"]).value == pytest.approx(0.591673, abs=1e-6)


def test_it_measures_the_join_with_keys_as_tokens():
    rng = np.random.default_rng(0)
    left = pa.table({"k": rng.integers(0, 40, 200), "x": rng.integers(0, 3, 200).astype(str)})
    right = pa.table({"k": rng.integers(0, 60, 300), "y": rng.integers(0, 4, 300).astype(str)})
    texts = right.set_column(0, "k", right["k"].cast(pa.float64()))
    pair = SampledPair(left, texts, ["k"], 1.0)
    whole = joined(left, right, ["k"])
    assert pair.correlation(["x"], ["y"]).value == pytest.approx(
        correlation(whole, ["x"], ["y"]), rel=1e-12
    )
    dependencies = [Dependency(("k",), "y"), Dependency(("y",), "x")]
    assert pair.quality(dependencies).value == quality(whole, dependencies)
    rows, counts = pair.joined(["y"])
    assert (rows.column_names, int(counts.sum())) == (["k", "y"], whole.num_rows)


def test_rows_without_a_key_do_not_count():
    left = pa.table({"k": ["a", "b", "?", None], "x": ["1", "2", "3", "4"]})
    right = pa.table({"k": ["a", "c", "?", None], "y": ["1", "2", "3", "4"]})
    pair = SampledPair(left, right, ["k"], 1.0)
    assert pair.joined(["x", "y"])[0].to_pylist() == [{"k": "a", "x": "1", "y": "1"}]


def test_a_missing_giant_is_known_from_the_summaries():
    """One key has nine tenths of the join; the samples that lack it look like all others."""
    keys = np.concatenate([np.arange(2000), np.zeros(1000, int)])
    left = pa.table({"k": keys, "x": (keys == 0).astype(str)})
    right = pa.table({"k": keys[:2050], "y": (keys[:2050] % 3).astype(str)})
    n_missing = 0
    for seed in range(12):
        tests = [KeyTest(("k",), 0.2)]
        tables = [correlated_sample(table, tests, seed=seed).rows for table in (left, right)]
        if "0" in tables[0]["k"].cast(pa.string()).to_pylist():
            continue
        one, two = (key_summary(table, ["k"], seed=seed) for table in (left, right))
        blind = SampledPair(*tables, ["k"], 0.2, seed=seed)
        warned = SampledPair(*tables, ["k"], 0.2, seed=seed, summaries=(one, two))
        for measure in (
            lambda pair: pair.correlation(["x"], ["y"]),
            lambda pair: pair.quality([Dependency(("y",), "x")]),
        ):
            assert measure(blind).reliable
            assert not measure(warned).reliable
            assert "heavy" in measure(warned).reason
        n_missing += 1
    assert n_missing > 5


def test_intervals_cover_the_exact_values_in_most_of_100_samples():
    """A short form of the measurement with 1000 samples, for one seed: of 95 %, 3 deviations."""
    pair = replace(coverage_cases.random_pairs(0, n_keys=300)[2], numbers=())
    rows = coverage_cases.measure(100, 0, cases=[pair], rates=[0.4])
    assert {row["measure"] for row in rows} == {"CORR", "Q"}
    for row in rows:
        assert row["coverage"] >= 0.9, row
        assert row["reliable"] > 0.2, row
        assert row["mean_width"] < 1, row


@pytest.mark.lakes
def test_intervals_cover_in_samples_of_shared_tables(shared_lakes):
    pair = next(pair for pair in coverage_cases.lake_pairs() if pair.name == "people, awards")
    for row in coverage_cases.measure(10, 0, cases=[pair], rates=[0.5]):
        assert row["coverage"] >= 0.8, row


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


def skewed(rng, n, n_keys=60):
    keys = (n_keys * rng.random(n) ** 3).astype(int)
    return pa.table({"k": pa.array([None if k == 3 else f"k{k}" for k in keys.tolist()])})


def counted(table, seed):
    """Return the rows of each position."""
    positions = hash_positions(table, ["k"], seed=seed)
    return Counter(positions[~np.isnan(positions)].tolist())


def test_squares_of_what_a_sample_lacks_are_exact_with_all_keys_and_a_bound_with_some():
    rng = np.random.default_rng(2)
    for seed in range(20):
        tables = skewed(rng, 300), skewed(rng, 200, 90)
        left, right = (counted(table, seed) for table in tables)
        rows = {}
        for key in left | right:
            rows[key] = left[key] * right[key]
        expected = sum(n * n for key, n in rows.items() if key > 0.4)
        whole = [key_summary(table, ["k"], seed=seed) for table in tables]
        assert unsampled_squares(*whole, 0.4) == expected
        some = [key_summary(table, ["k"], seed=seed, n_heaviest=5) for table in tables]
        listed = set(some[0].positions.tolist()) | set(some[1].positions.tolist())
        expected = sum(n * n for key, n in rows.items() if key > 0.4 and key in listed)
        assert unsampled_squares(*some, 0.4) >= expected
        assert unsampled_squares(*some, 1.0) == 0
