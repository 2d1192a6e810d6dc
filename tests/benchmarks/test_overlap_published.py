"""Tests of JOSIE as published and ProbeSet."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.overlap_published import (
    benefit_of_lists,
    estimated_overlap,
    expected_after_lists,
    net_cost_of_sets,
    probe_set,
    published_josie,
    threshold_after,
)
from pexeso.sets.overlap.index import build_index, prepare_query
from pexeso.sets.overlap.josie import ReadCosts, prefix_length, upper_bound
from pexeso.sets.overlap.planner import merge_list

W7_COSTS = ReadCosts(10, 0.1, 5, 0.05)
W7_LISTS = np.array([2, 2, 4, 4, 6, 8, 10, 20, 40, 80])


def w7_candidates():
    columns = np.array([[1, 3, 20, 120, 3], [2, 1, 4, 10, 2], [3, 4, 5, 7, 2], [4, 9, 9, 12, 1]]).T
    return SimpleNamespace(
        **dict(zip(("first", "begin", "end", "size", "count"), columns, strict=True))
    )


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
    prefixes = 8, np.array([6, 6, 7, 7])
    assert prefix_length(10, 3) == prefixes[0]
    assert [prefix_length(10, one) for one in after.tolist()] == prefixes[1].tolist()
    rest = w.size - w.end
    list_costs = np.concatenate([[0], np.cumsum(W7_COSTS.of_lists(W7_LISTS))])
    net = net_cost_of_sets(rest, bound, after, 3, prefixes, 4, list_costs, W7_COSTS)
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


@given(st.integers(0, 10**6))
def test_net_costs_are_those_of_their_definition(seed):
    rng = np.random.default_rng(seed)
    n, n_candidates = int(rng.integers(2, 20)), int(rng.integers(1, 12))
    accounted = int(rng.integers(1, n + 1))
    rest, bound = rng.integers(0, 30, n_candidates), rng.integers(1, n + 1, n_candidates)
    threshold = int(rng.integers(1, 6))
    after = threshold + rng.integers(0, 4, n_candidates)
    lists = rng.random(n)
    summed = np.concatenate([[0], np.cumsum(lists)])
    p, then = prefix_length(n, threshold), [prefix_length(n, one) for one in after.tolist()]
    net = net_cost_of_sets(
        rest, bound, after, threshold, (p, np.array(then)), accounted, summed, W7_COSTS
    )
    for x in range(n_candidates):
        benefit = 0.0
        if after[x] > threshold:
            benefit = sum(lists[a - 1] for a in range(then[x] + 1, p + 1) if a > accounted)
            benefit += sum(
                W7_COSTS.of_sets(rest[y])
                for y in range(n_candidates)
                if y != x and bound[y] <= after[x]
            )
        assert net[x] == pytest.approx(W7_COSTS.of_sets(rest[x]) - benefit)


def index_of(sets, **options):
    ids = np.repeat(np.arange(len(sets)), [len(tokens) for tokens in sets])
    return build_index(
        ids, pa.array([token for tokens in sets for token in tokens], pa.large_string()), **options
    )


def query_of(index, texts):
    return prepare_query(index, pa.array(list(dict.fromkeys(texts)), pa.large_string()))


def first_lake():
    """Return the index of the worked example W1 and its query.

    The tokens of the index are in the order of their numbers.
    """
    sets = [{1, 100, 200}, {2, 5}, {2}, set(range(2, 102))]
    texts = [[f"t{n:03}" for n in sorted(tokens)] for tokens in sets]
    index = index_of(texts, order=lambda offsets, _: np.arange(len(offsets) - 1))
    return index, query_of(index, ["t001", "t002", "t100", "t200"])


def skewed_sets(rng):
    """Draw sets whose tokens are skewed, some of them twice."""
    weights = 1 / np.arange(1, 81)
    drawn = [
        rng.choice(80, int(rng.integers(1, 40)), replace=False, p=weights / weights.sum())
        .astype(str)
        .tolist()
        for _ in range(int(rng.integers(1, 60)))
    ]
    return [*drawn, *drawn[: len(drawn) // 4]]


def test_w2_probe_set_reads_three_lists_and_three_sets():
    index, query = first_lake()
    # The bound of 1 of the third set ties with the second set, found before it with a smaller id:
    # nothing more is read.
    run = probe_set(index, query, 2)
    assert run.pairs() == [(0, 3), (3, 2)]
    assert (run.reads.lists, run.reads.sets, run.reads.tokens) == (3, 3, 2 + 1 + 99)


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("batch", [1, 4])
def test_answers_are_those_of_merge_list(k, batch):
    rng = np.random.default_rng(k)
    costs = [ReadCosts(100, 1, 0, 0), ReadCosts(0, 0.01, 50, 1), ReadCosts(-9, 0.5, -3, 0.1)]
    for _ in range(30):
        sets = skewed_sets(rng)
        index = index_of(sets)
        query = query_of(index, [*sets[0], "nowhere"])
        truth = merge_list(index, query, k, exclude=[0]).pairs()
        for one in costs:
            assert (
                published_josie(index, query, k, batch=batch, costs=one, exclude=[0]).pairs()
                == truth
            )
        assert probe_set(index, query, k, exclude=[0]).pairs() == truth
