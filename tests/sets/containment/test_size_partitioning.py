"""Division by size: the published example, exhaustive search, and what holds for every division."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError
from pexeso.sets.containment.conversion import jaccard_of
from pexeso.sets.containment.partitioning import equal_partitions, optimal_partitions

W4_SIZES = np.array([3] * 4 + [4] * 4 + [99] * 3 + [100] * 3)
SIZES = st.lists(st.integers(1, 40) | st.sampled_from([1000, 10**6, 10**9]), max_size=30)


def cost_of(sizes: np.ndarray, uppers: tuple[int, ...]) -> float:
    largest = np.array(uppers)[np.searchsorted(uppers, sizes)]
    return float((1 - sizes / largest).sum())


def least_cost(sizes: np.ndarray, n: int) -> float:
    distinct = np.unique(sizes).tolist()
    n = min(n, len(distinct))
    return min(
        (cost_of(sizes, (*inner, distinct[-1])) for inner in combinations(distinct[:-1], n - 1)),
        default=0.0,
    )


@pytest.mark.parametrize(
    ("n", "cost", "ranges"),
    [
        (1, 7.75, [(3, 100)]),
        (2, 1.03, [(3, 4), (99, 100)]),
        (3, 0.03, [(3, 3), (4, 4), (99, 100)]),
        (4, 0.0, [(3, 3), (4, 4), (99, 99), (100, 100)]),
        (9, 0.0, [(3, 3), (4, 4), (99, 99), (100, 100)]),
    ],
)
def test_w4_partition_cost(n, cost, ranges):
    partitions = optimal_partitions(W4_SIZES, n)
    assert partitions.cost == pytest.approx(cost, abs=1e-12)
    assert list(zip(partitions.lower.tolist(), partitions.upper.tolist(), strict=True)) == ranges


@pytest.mark.parametrize(("cut", "cost"), [(3, 3.87), (99, 7.717)])
def test_w4_the_other_cuts(cut, cost):
    assert cost_of(W4_SIZES, (cut, 100)) == pytest.approx(cost, abs=5e-4)


def passing_wrongly(q: int, t: float, ranges: list[tuple[int, int]]) -> float:
    """Compute E7 over the sizes of W4."""
    total = 0.0
    for low, u in ranges:
        for x in W4_SIZES[(low <= W4_SIZES) & (u >= W4_SIZES)]:
            effective = (x + q) * t / (u + q)
            if x >= t * q:
                total += (t - effective) / t
            elif x >= effective * q:
                total += (x / q - effective) / (x / q)
    return total


@pytest.mark.parametrize(("q", "one", "two"), [(2, 7.598, 0.696), (10, 6.603, 0.0273)])
def test_w4_exact_expectation(q, one, two):
    assert passing_wrongly(q, 0.5, [(3, 100)]) == pytest.approx(one, abs=5e-4)
    assert passing_wrongly(q, 0.5, [(3, 4), (99, 100)]) == pytest.approx(two, abs=5e-4)
    assert one <= optimal_partitions(W4_SIZES, 1).cost
    assert two <= optimal_partitions(W4_SIZES, 2).cost


def test_acceptance_4_the_optimum_is_that_of_exhaustive_search():
    rng = np.random.default_rng(3)
    for _ in range(200):
        distinct = rng.choice(
            np.unique(np.geomspace(1, 1e5, 60).astype(int)), rng.integers(1, 13), replace=False
        )
        sizes = np.repeat(distinct, rng.integers(1, 30, len(distinct)))
        n = int(rng.integers(1, len(distinct) + 1))
        partitions = optimal_partitions(sizes, n)
        assert len(partitions) == n
        assert partitions.cost == pytest.approx(least_cost(sizes, n), abs=1e-9)
        assert partitions.cost == pytest.approx(cost_of(sizes, tuple(partitions.upper)), abs=1e-9)


@given(SIZES, st.integers(1, 6))
def test_the_optimum_is_that_of_exhaustive_search(sizes, n):
    sizes = np.array(sorted(set(sizes[:9])) + sizes[:9], np.int64)
    if len(sizes):
        assert optimal_partitions(sizes, n).cost == pytest.approx(least_cost(sizes, n), abs=1e-9)


@given(SIZES, st.integers(1, 12), st.sampled_from([optimal_partitions, equal_partitions]))
def test_partitions_are_apart_and_cover_all_sets(sizes, n, divide):
    sizes = np.array(sizes, np.int64)
    partitions = divide(sizes, n)
    assert len(partitions) <= n
    assert (partitions.lower <= partitions.upper).all()
    assert (partitions.upper[:-1] < partitions.lower[1:]).all()
    assert np.isin(np.concatenate([partitions.lower, partitions.upper]), sizes).all()
    places = np.searchsorted(partitions.upper, sizes)
    assert (places < len(partitions)).all()
    assert (partitions.lower[places] <= sizes).all()


@given(SIZES)
def test_more_partitions_never_cost_more_and_equal_ones_never_less(sizes):
    sizes = np.array(sizes, np.int64)
    costs = [optimal_partitions(sizes, n).cost for n in range(1, 9)]
    assert all(b <= a + 1e-9 for a, b in pairwise(costs))
    assert all(equal_partitions(sizes, n).cost >= costs[n - 1] - 1e-9 for n in range(1, 9))


def test_equal_partitions_have_about_as_many_sets_each():
    sizes = np.random.default_rng(5).integers(1, 10_000, 50_000)
    partitions = equal_partitions(sizes, 10)
    counts = np.bincount(np.searchsorted(partitions.upper, sizes))
    assert len(partitions) == 10
    assert (abs(counts - 5000) < 50).all()


@pytest.mark.parametrize("n", [1, 3, 20])
def test_acceptance_5_a_perfect_filter_at_the_converted_threshold_loses_nothing(n):
    rng = np.random.default_rng(11)
    sizes = (30 * rng.pareto(0.8, 5000)).astype(np.int64) + 1
    partitions = optimal_partitions(sizes, n)
    u = partitions.upper[np.searchsorted(partitions.upper, sizes)]
    for q, t in ((10, 0.5), (100, 0.9), (1000, 1.0)):
        contained = np.floor(rng.random(5000) * (np.minimum(sizes, q) + 1)) / q
        passed = jaccard_of(contained, sizes / q) >= jaccard_of(t, u / q) - 1e-12
        assert passed[contained >= t].all()


def test_acceptance_6_with_a_perfect_filter_more_partitions_are_more_precise():
    rng = np.random.default_rng(13)
    sizes = (30 * rng.pareto(0.8, 20_000)).astype(np.int64) + 1
    means = []
    for n in (1, 2, 4, 8, 16, 32, 64):
        partitions = optimal_partitions(sizes, n)
        u = partitions.upper[np.searchsorted(partitions.upper, sizes)]
        precisions = []
        for q in (10, 30, 100, 300, 1000):
            contained = (
                np.floor(np.random.default_rng(q).random(20_000) * (np.minimum(sizes, q) + 1)) / q
            )
            for t in (0.3, 0.5, 0.8):
                passed = jaccard_of(contained, sizes / q) >= jaccard_of(t, u / q) - 1e-12
                precisions.append((contained[passed] >= t).mean())
        means.append(np.mean(precisions))
    assert all(a <= b for a, b in pairwise(means))
    assert means[-1] > 0.9 > means[0]


@pytest.mark.parametrize(("sizes", "n"), [([1, 2], 0), ([0, 2], 1), ([-3], 1)])
@pytest.mark.parametrize("divide", [optimal_partitions, equal_partitions])
def test_what_cannot_be_divided_is_refused(sizes, n, divide):
    with pytest.raises(InputError, match="at least"):
        divide(np.array(sizes), n)
