"""Intervals by leaving groups of keys out: figures, exact values at rate 1, what keys say."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import t as student

from pexeso.acquisition import intervals
from pexeso.acquisition.intervals import (
    Estimate,
    Support,
    correlation_estimate,
    jackknife,
    key_groups,
    quality_estimate,
    support_of_keys,
    unseen_share,
    with_rare_keys,
    without_groups,
)
from pexeso.acquisition.key_hashes import KeyTest
from pexeso.acquisition.quality import Dependency
from pexeso.joins.measures import correlation
from tests.acquisition.oracle import quality
from tests.acquisition.sampled_pairs import correlated_sample


def test_quantiles_are_those_of_student_rounded_up():
    for freedom, quantile in enumerate(intervals._QUANTILES, 1):
        assert 0 <= quantile - student.ppf(0.975, freedom) < 1.1e-4


def test_a_mean_has_its_textbook_error_and_no_bias():
    numbers = np.random.default_rng(0).normal(5, 2, 32)
    without = [np.delete(numbers, i).mean() for i in range(32)]
    estimate = jackknife(numbers.mean(), [without], [0.25], bounds=(-math.inf, math.inf))
    error = numbers.std(ddof=1) / math.sqrt(32)
    assert estimate.standard_error == pytest.approx(error * math.sqrt(0.75), rel=1e-12)
    assert estimate.value == pytest.approx(numbers.mean(), rel=1e-12)
    assert estimate.high - estimate.value == pytest.approx(estimate.value - estimate.low, rel=1e-9)
    assert estimate.high - estimate.value > 1.95 * estimate.standard_error


def test_a_bias_that_falls_like_one_by_n_is_taken_off_to_the_size_of_the_whole():
    numbers = np.random.default_rng(1).normal(size=64)
    without = [np.delete(numbers, i).var() for i in range(64)]
    unbiased = numbers.var(ddof=1)
    estimate = jackknife(numbers.var(), [without], [0.5])
    assert estimate.value == pytest.approx((numbers.var() + unbiased) / 2, rel=1e-3)
    assert estimate.plug_in == numbers.var()


def test_a_logarithm_of_the_sample_size_is_within_the_interval():
    n = 320
    whole, without = math.log2(n), [math.log2(n - n / 32)] * 32
    for rate in (0.1, 0.25, 0.5):
        estimate = jackknife(whole, [without], [rate])
        assert estimate.low == whole < estimate.value
        # Twice as far, since the direction is itself an estimate.
        assert estimate.high == pytest.approx(whole - 2 * math.log2(rate), abs=0.12)


def test_at_the_rate_one_nothing_is_left_open():
    result = jackknife(0.4, [[0.1, 0.2, 0.3]], [1.0], supports=[Support(1, 1.0)])
    assert (result.low, result.value, result.high, result.standard_error) == (0.4, 0.4, 0.4, 0.0)
    assert result.reliable


def test_edges_add_their_variances_and_one_at_the_rate_one_adds_nothing():
    rng = np.random.default_rng(2)
    one, two = rng.normal(1, 0.1, (2, 32))
    parts = [jackknife(1.0, [edge], [0.2], bounds=(-9, 9)) for edge in (one, two)]
    both = jackknife(1.0, [one, two], [0.2, 0.2], bounds=(-9, 9))
    squares = [part.standard_error**2 for part in parts]
    assert both.standard_error**2 == pytest.approx(sum(squares), rel=1e-12)
    assert both.value - 1 == pytest.approx(sum(part.value - 1 for part in parts), rel=1e-9)
    with_exact = jackknife(1.0, [one, two], [0.2, 1.0], bounds=(-9, 9))
    assert with_exact == parts[0]


def test_values_stay_within_the_bounds():
    without = np.linspace(0.5, 1.5, 32)
    estimate = jackknife(0.95, [without], [0.1], bounds=(0.0, 1.0))
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_few_keys_heavy_keys_and_unseen_cells_leave_what_is_possible():
    without = [np.linspace(0.4, 0.6, 32)]
    cases = [
        (Support(29, 29.0), "29 keys"),
        (Support(500, 19.9), "19.9 equally heavy"),
        (Support(500, 300.0, unseen=0.3), "30%"),
        (support_of_keys(np.zeros(3), 0.1), "0 keys"),
    ]
    for support, message in cases:
        estimate = jackknife(0.5, without, [0.1], bounds=(0.0, 1.0), supports=[support])
        assert (estimate.low, estimate.high, estimate.reliable) == (0.0, 1.0, False)
        assert message in estimate.reason
        assert estimate.value == pytest.approx(0.5, abs=0.05)
    good = jackknife(0.5, without, [0.1], supports=[Support(30, 20.0, unseen=0.2)])
    assert good.reliable
    assert good.reason == ""
    none = jackknife(math.nan, without, [0.1])
    assert (none.low, none.high, none.reliable) == (0.0, math.inf, False)


def test_a_share_of_few_keys_is_as_uncertain_as_a_poisson_variable():
    estimate = Estimate(0.03, 0.028, 0.032, 0.001, 0.03)
    support = support_of_keys(np.ones(100), 0.75)
    part = np.repeat([1.0, 0.0], [3, 97])
    wide = with_rare_keys(estimate, part, 1 - part, support, 0.75)
    # 95 % limits for a count of 3 are 0.619 and 8.767; a quarter of the keys is open.
    assert wide.low == pytest.approx(0.03 + 0.5 * (0.00619 - 0.03), abs=2e-4)
    assert wide.high == pytest.approx(0.03 + 0.5 * (0.08767 - 0.03), abs=2e-4)
    other = with_rare_keys(
        replace(estimate, value=0.97, low=0.968, high=0.972), 1 - part, part, support, 0.75
    )
    assert (other.low, other.high) == pytest.approx((1 - wide.high, 1 - wide.low))
    many = np.repeat([1.0, 0.0], [30, 970])
    assert with_rare_keys(estimate, many, 1 - many, support, 0.75) == estimate
    assert with_rare_keys(estimate, part, 1 - part, support, 1.0) == estimate
    unreliable = replace(estimate, reliable=False)
    assert with_rare_keys(unreliable, part, 1 - part, support, 0.75) == unreliable


def test_groups_have_equally_many_keys_and_all_rows_of_a_key():
    rng = np.random.default_rng(3)
    positions = rng.choice(rng.random(100), 1000)
    groups = key_groups(positions)
    sizes = [len(np.unique(positions[groups == g])) for g in range(intervals.N_GROUPS)]
    assert max(sizes) - min(sizes) <= 1
    for position in np.unique(positions):
        assert len(np.unique(groups[positions == position])) == 1
    order = rng.permutation(1000)
    assert key_groups(positions[order]).tolist() == groups[order].tolist()


def test_statistics_without_groups():
    counts, groups = np.array([3, 4, 5]), np.array([1, 0, 1])
    statistics = without_groups(lambda left: float(left.sum()), counts, groups)
    assert statistics[:3].tolist() == [8.0, 4.0, 12.0]
    assert set(statistics[3:]) == {12.0}


def test_effective_keys_with_heavy_ones_outside_of_the_sample():
    equal = support_of_keys(np.full(40, 5), 0.2, unsampled_squares=0)
    assert (equal.keys, equal.effective_keys, equal.inflation) == (40, 40.0, 1.0)
    # The squares of the whole are 40 * 25 / 0.2 = 5000 by the sample, and 1000 + 9000 as known.
    heavy = support_of_keys(np.full(40, 5), 0.2, unsampled_squares=9000)
    assert heavy.inflation == pytest.approx(math.sqrt(2))
    assert heavy.effective_keys == pytest.approx(20)
    assert support_of_keys(np.full(40, 5), 0.2, unsampled_squares=100) == equal


def test_unseen_share_is_that_of_cells_with_one_key():
    cells = np.array([0, 0, 1, 1, 2, 3])
    keys = np.array([0.1, 0.2, 0.3, 0.3, 0.1, 0.1])
    counts = np.array([1, 1, 2, 2, 3, 0])
    assert unseen_share(cells, keys, counts, 0.2) == pytest.approx(0.8 * 7 / 9)
    assert unseen_share(cells[:0], keys[:0], counts[:0], 0.2) == 0


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
