"""Estimates from samples: the enumerated and simulated figures, and the exact values at rate 1."""

import math

import numpy as np
import pyarrow as pa
import pytest

from pexeso.acquisition.intervals import (
    correlation_estimate,
    quality_estimate,
)
from pexeso.acquisition.key_hashes import KeyTest
from pexeso.acquisition.quality import Dependency
from pexeso.joins.measures import correlation
from tests.acquisition.oracle import quality
from tests.acquisition.sampled_pairs import correlated_sample


def drawn(rng, n_keys, n_rows):
    keys = rng.integers(0, n_keys, n_rows)
    x = np.where(rng.random(n_rows) < 0.7, keys % 3, rng.integers(0, 3, n_rows))
    y = np.where(rng.random(n_rows) < 0.7, keys % 3, rng.integers(0, 3, n_rows))
    numbers = x + rng.random(n_rows)
    return pa.table({"k": keys, "x": x.astype(str), "y": y.astype(str), "number": numbers})


def test_ac15_errors_shrink_with_the_rate_and_vanish_at_one():
    table = drawn(np.random.default_rng(2), 1500, 4000)
    exact = correlation(table, ["x"], ["y"])
    errors, widths = [], []
    for rate in (0.1, 0.5, 1.0):
        estimates = []
        for seed in range(12):
            test = [KeyTest(("k",), rate)]
            rows = correlated_sample(table, test, seed=seed)
            estimates.append(correlation_estimate(rows, None, test, ["x"], ["y"], seed=seed))
        errors.append(np.mean([abs(one.value - exact) for one in estimates]))
        widths.append(np.mean([one.high - one.low for one in estimates]))
        assert all(one.reliable for one in estimates)
    assert errors[0] > errors[1] > errors[2] == 0
    assert widths[0] > widths[1] > widths[2] == 0


def test_at_the_rate_one_all_estimates_are_the_exact_values():
    table = drawn(np.random.default_rng(3), 60, 100)
    counts = np.random.default_rng(3).integers(0, 4, 100)
    edges = [KeyTest(("k",), 1.0)]
    dependencies = [Dependency(("x",), "y"), Dependency(("y",), "k")]
    result = quality_estimate(table, counts, edges, dependencies)
    assert result.value == result.low == result.high == quality(table, dependencies, counts)
    options = {"numeric": ["number"]}
    result = correlation_estimate(table, counts, edges, ["number", "x"], ["y"], **options)
    expected = correlation(table, ["number", "x"], ["y"], counts=counts, **options)
    assert result.low == result.high == pytest.approx(expected, rel=1e-12)


def test_rows_with_counts_and_their_order_change_nothing():
    rng = np.random.default_rng(5)
    table = drawn(rng, 400, 900)
    edges = [KeyTest(("k",), 0.4)]
    rows = correlated_sample(table, edges).select(["k", "x", "y"])
    counts = rng.integers(0, 3, rows.num_rows)
    order = rng.permutation(np.repeat(np.arange(rows.num_rows), counts))
    for estimate, of in (
        (correlation_estimate, (["x"], ["y"])),
        (quality_estimate, ([Dependency(("x",), "y")],)),
    ):
        interval = estimate(rows, counts, edges, *of)
        assert interval.low < interval.value < interval.high
        assert estimate(rows.take(pa.array(order)), None, edges, *of) == interval


def test_each_edge_with_a_test_of_its_own_counts_once():
    rng = np.random.default_rng(6)
    table = drawn(rng, 300, 3000)
    table = table.append_column("l", pa.array(rng.integers(0, 400, 3000)))
    edges = [KeyTest(("k",), 0.5), KeyTest(("l",), 0.5)]
    rows = correlated_sample(table, edges)
    both = correlation_estimate(rows, None, edges, ["x"], ["y"])
    again = correlation_estimate(rows, None, [*edges, edges[0]], ["x"], ["y"])
    assert again == both
    one = correlation_estimate(rows, None, [edges[0], KeyTest(("l",), 1.0)], ["x"], ["y"])
    assert one.standard_error < both.standard_error
    assert both.low <= correlation(table, ["x"], ["y"]) <= both.high


def test_heavy_keys_outside_of_the_sample_widen_the_interval():
    table = drawn(np.random.default_rng(7), 900, 2000)
    edges = [KeyTest(("k",), 0.3)]
    rows = correlated_sample(table, edges)
    plain, wide, none = (
        correlation_estimate(rows, None, edges, ["x"], ["y"], unsampled=[squares])
        for squares in (0.0, 15_000.0, 1e9)
    )
    assert plain.reliable
    assert wide.reliable
    assert correlation_estimate(rows, None, edges, ["x"], ["y"]) == plain
    assert wide.high - wide.low > plain.high - plain.low
    assert (none.low, none.high, none.reliable) == (0.0, math.inf, False)


def test_values_of_one_key_each_carry_no_interval():
    keys = [str(k) for k in range(400)]
    table = pa.table({"k": keys, "x": keys, "y": keys})
    edges = [KeyTest(("k",), 0.5)]
    rows = correlated_sample(table, edges)
    estimate = correlation_estimate(rows, None, edges, ["x"], ["y"])
    assert not estimate.reliable
    assert "not in the sample" in estimate.reason
    # For quality rows with equal x and k are all there, where k is on the left side.
    assert quality_estimate(rows, None, edges, [Dependency(("k", "x"), "y")]).reliable
    assert not quality_estimate(rows, None, edges, [Dependency(("x",), "y")]).reliable


def test_no_wrong_row_in_the_sample_does_not_mean_that_there_is_none():
    keys = [str(k) for k in range(2000)]
    table = pa.table({"k": keys, "x": ["a", "b"] * 1000, "y": ["u", "v"] * 999 + ["w", "w"]})
    edges, dependency = [KeyTest(("k",), 0.1)], [Dependency(("x",), "y")]
    exact = quality(table, dependency)
    n_missed = 0
    for seed in range(20):
        rows = correlated_sample(table, edges, seed=seed)
        estimate = quality_estimate(rows, None, edges, dependency, seed=seed)
        n_missed += estimate.value == 1
        assert estimate.low <= exact < 1
        assert estimate.low > 0.95
    assert n_missed > 10


def test_p9_few_rows_of_the_join_carry_no_interval():
    keys = [str(k) for k in range(160)]
    table = pa.table({"k": keys, "x": ["a", "b"] * 80, "y": ["u", "u", "v", "v"] * 40})
    edges = [KeyTest(("k",), 0.5)]
    rows = correlated_sample(table, edges)
    assert 50 < rows.num_rows < 100
    estimate = quality_estimate(rows, None, edges, [Dependency(("x",), "y")])
    assert (estimate.low, estimate.high, estimate.reliable) == (0.0, 1.0, False)
    assert "rows in the join" in estimate.reason
    twice = np.full(rows.num_rows, 2)
    assert quality_estimate(rows, twice, edges, [Dependency(("x",), "y")]).reliable


def test_no_row_in_the_sample():
    table = pa.table({"k": ["a"], "x": ["a"], "y": ["b"]}).slice(1)
    edges = [KeyTest(("k",), 0.5)]
    result = quality_estimate(table, None, edges, [Dependency(("x",), "y")])
    assert (result.value, result.low, result.high, result.reliable) == (0.0, 0.0, 1.0, False)
    result = correlation_estimate(table, None, edges, ["x"], ["y"])
    assert (result.value, result.high, result.reason) == (0.0, math.inf, "no row in the sample")
