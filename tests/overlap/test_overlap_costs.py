"""The cost model: the worked examples, formulas against their definitions one candidate at a time, and the fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overlap_lakes import index_of, random_lake

from pexeso.errors import InputError
from pexeso.overlap.costs import DISK, ReadCosts, fit_costs, measure_costs
from pexeso.overlap.estimates import (
    benefit_of_lists,
    estimated_overlap,
    expected_after_lists,
    expected_matches,
    net_cost_of_sets,
    rate_since_first,
    threshold_after,
)
from pexeso.overlap.filters import prefix_length, upper_bound

W7_COSTS = ReadCosts(10, 0.1, 5, 0.05)
W7_LISTS = np.array([2, 2, 4, 4, 6, 8, 10, 20, 40, 80])


def w7_candidates():
    columns = np.array([[1, 3, 20, 120, 3], [2, 1, 4, 10, 2], [3, 4, 5, 7, 2], [4, 9, 9, 12, 1]]).T
    return SimpleNamespace(**dict(zip(("first", "begin", "end", "size", "count"), columns, strict=True)))


def test_w6_threshold_after_a_push():
    estimates = np.array([2, 3, 4, 5, 9])
    assert threshold_after(estimates, [3, 5], 3, 3).tolist() == [3, 3, 4, 5, 5]
    assert threshold_after(np.array([4]), [3], 1, 1).tolist() == [4]
    assert threshold_after(estimates, [3, 5], 2, 3).tolist() == [2, 3, 3, 3, 3]
    assert threshold_after(estimates, [], 0, 1).tolist() == estimates.tolist()
    assert threshold_after(estimates, [3], 1, 3).tolist() == [0] * 5


def test_w7_net_costs():
    w = w7_candidates()
    bound = upper_bound(w.count, 10, 4, w.size, w.end)
    assert bound.tolist() == [9, 8, 4, 4]
    estimates = estimated_overlap(w, 10, 4, bound)
    assert estimates.tolist() == [7, 6, 4, 4]
    after = threshold_after(estimates, [3, 5], 2, 2)
    assert after.tolist() == [5, 5, 4, 4]
    assert prefix_length(10, 3) == 8
    assert prefix_length(10, after).tolist() == [6, 6, 7, 7]
    rest = w.size - w.end
    list_costs = np.concatenate([[0], np.cumsum(W7_COSTS.of_lists(W7_LISTS))])
    net = net_cost_of_sets(rest, bound, after, 3, 10, 4, list_costs, W7_COSTS, "id")
    assert net == pytest.approx([-12.0, -21.4, -6.1, -5.9])
    ends, bounds_then = expected_after_lists(w, 10, 4, 7, bound)
    assert ends.tolist() == [55, 7, 6, 10]
    assert bounds_then.tolist() == [8, 7, 4, 4]
    assert list_costs[7] - list_costs[4] == pytest.approx(16.2)
    benefit = benefit_of_lists(rest, w.size - ends, bounds_then, 3, W7_COSTS)
    assert benefit == pytest.approx(4.0)
    of_lists = list_costs[7] - list_costs[4] - benefit
    assert of_lists == pytest.approx(12.2)
    assert of_lists > net.min()


def test_w7_by_the_misprinted_rate_the_decision_is_the_same():
    w = w7_candidates()
    bound, rest, step = upper_bound(w.count, 10, 4, w.size, w.end), w.size - w.end, 3
    ends, _ = expected_after_lists(w, 10, 4, 7, bound)
    more = w.count * step // (10 - w.first + 1)
    assert more.tolist() == [0, 0, 0, 0]
    bounds_then = np.minimum(bound, w.count + more + np.minimum(10 - 7, w.size - ends))
    assert (bounds_then <= 3).tolist() == [False, False, True, True]
    benefit = benefit_of_lists(rest, w.size - ends, bounds_then, 3, W7_COSTS)
    assert benefit == pytest.approx(24.3, abs=0.06)
    of_lists = W7_COSTS.of_lists(W7_LISTS[4:7]).sum() - benefit
    assert of_lists == pytest.approx(-8.1, abs=0.06)
    assert of_lists > -21.4


@given(st.integers(0, 10**6))
def test_what_is_held_by_chance_is_near_its_definition(seed):
    rng = np.random.default_rng(seed)
    n_lists, largest = int(rng.integers(1, 200)), int(10 ** rng.uniform(0, 5))
    rest, n_pairs = rng.integers(0, largest + 1, 20), int(rng.integers(100, 10**7))
    frequencies, weights = np.sort(rng.integers(1, n_pairs, n_lists)), rng.integers(1, 4, n_lists)
    found = expected_matches(rest, frequencies, weights, n_pairs)
    exact = np.array([((1 - np.exp(-z * frequencies / n_pairs)) * weights).sum() for z in rest.tolist()])
    assert found == pytest.approx(exact, rel=0.25, abs=2)
    assert (found[rest == 0] == 0).all()
    assert (found <= weights.sum() + 1e-9).all()


def test_matches_since_the_first_do_not_count_the_first():
    w = SimpleNamespace(count=np.array([1, 1, 5]), first=np.array([4, 1, 1]))
    assert rate_since_first(w, 4).tolist() == [0, 0, 0.8]


@given(st.integers(0, 10**6), st.sampled_from(["id", "any"]))
def test_net_costs_are_those_of_their_definition(seed, ties):
    rng = np.random.default_rng(seed)
    n, n_candidates = int(rng.integers(2, 20)), int(rng.integers(1, 12))
    accounted = int(rng.integers(1, n + 1))
    rest, bound = rng.integers(0, 30, n_candidates), rng.integers(1, n + 1, n_candidates)
    threshold = int(rng.integers(1, 6))
    after = threshold + rng.integers(0, 4, n_candidates)
    lists = rng.random(n)
    summed = np.concatenate([[0], np.cumsum(lists)])
    net = net_cost_of_sets(rest, bound, after, threshold, n, accounted, summed, W7_COSTS, ties)
    for x in range(n_candidates):
        benefit = 0.0
        if after[x] > threshold:
            p, then = prefix_length(n, threshold, ties), prefix_length(n, int(after[x]), ties)
            benefit = sum(lists[a - 1] for a in range(then + 1, p + 1) if a > accounted)
            benefit += sum(W7_COSTS.of_sets(rest[y]) for y in range(n_candidates) if y != x and bound[y] <= after[x])
        assert net[x] == pytest.approx(W7_COSTS.of_sets(rest[x]) - benefit)


def test_the_fit_recovers_planted_costs_from_noisy_times():
    rng = np.random.default_rng(0)
    planted = ReadCosts(2.0, 0.01, 0.5, 0.002)
    tokens, entries = (2 ** rng.uniform(0, 14, 1000)).astype(int), (2 ** rng.uniform(0, 14, 1000)).astype(int)
    set_times, list_times = (
        costs * (1 + 0.1 * rng.standard_normal(1000)) for costs in (planted.of_sets(tokens), planted.of_lists(entries))
    )
    fitted = fit_costs(tokens, set_times, entries, list_times)
    for name in ("set_fixed", "set_per_token", "list_fixed", "list_per_entry"):
        assert getattr(fitted, name) == pytest.approx(getattr(planted, name), rel=0.05)
    assert fitted.least == min(set_times.min(), list_times.min())


def test_no_read_costs_less_than_the_least_but_reading_nothing_does():
    assert DISK.of_sets(np.array([0, 1, 100_000])).tolist() == pytest.approx([0, 1, 115.58])
    assert ReadCosts(-5, 1, -5, 1, least=2).of_lists(np.array([1, 10])).tolist() == [2, 5]


def test_times_that_fall_with_size_are_taken_for_constant():
    fitted = fit_costs(np.array([1, 10]), np.array([3.0, 2.0]), np.array([1, 10]), np.array([1.0, 1.0]))
    assert fitted.set_per_token == 0
    assert 2 <= fitted.set_fixed <= 3


def test_times_are_taken_of_an_index():
    index = index_of(random_lake(np.random.default_rng(4)))
    ticks = iter(range(10**6))
    costs = measure_costs(index, samples=20, clock=lambda: next(ticks))
    assert costs.of_sets(np.array([1, 50])).tolist() == pytest.approx([1, 1])
    assert costs.of_lists(np.array([1, 50])).tolist() == pytest.approx([1, 1])


def test_what_cannot_be_fitted_is_refused():
    with pytest.raises(InputError, match="it has no sets"):
        measure_costs(index_of({}))
    one = np.array([1.0])
    for times in (np.array([]), np.array([-1.0]), np.array([np.nan]), np.array([1.0, 2.0])):
        with pytest.raises(InputError, match="reading lists is fitted"):
            fit_costs(one, one, one, times)


def test_costs_are_finite():
    with pytest.raises(InputError, match="list_fixed of a read must be a finite number"):
        ReadCosts(1, 1, float("inf"), 1)
