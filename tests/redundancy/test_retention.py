"""Plans of least cost: worked numbers, all plans tried on small graphs, and the rules checked."""

from itertools import product

import numpy as np
import pytest
from long_runs import EVERYTHING

from pexeso.errors import InputError
from pexeso.redundancy import retention as module
from pexeso.redundancy.retention import (
    Retention,
    RetentionProblem,
    check_retention,
    greedily_kept,
    plan_retention,
    with_sources,
)

N_GRAPHS = 1500 if EVERYTHING else 600


def problem(keep, edges):
    rows = np.array(edges, float).reshape(-1, 3)
    ends = rows[:, :2].astype(np.int64)
    return RetentionProblem(np.array(keep, float), ends[:, 0], ends[:, 1], rows[:, 2])


def least_cost(given):
    """Try all sets of kept tables."""
    edges = list(
        zip(
            given.parents.tolist(),
            given.children.tolist(),
            given.rebuild_cost.tolist(),
            strict=True,
        )
    )
    costs = []
    for kept in product([True, False], repeat=len(given.keep_cost)):
        table_costs = [
            given.keep_cost[table]
            if kept[table]
            else min((c for p, v, c in edges if v == table and kept[p]), default=np.inf)
            for table in range(len(kept))
        ]
        costs.append(sum(table_costs))
    return min(costs)


def drawn(rng, n):
    edges = [
        (parent, child, int(rng.integers(0, 6)))
        for parent in range(n)
        for child in range(n)
        if parent != child and rng.random() < 0.35
    ]
    return problem(rng.integers(0, 8, n), edges)


@pytest.mark.parametrize("together", [0, 3, 20_000])
def test_no_plan_costs_less(together, monkeypatch):
    monkeypatch.setattr(module, "_EDGES_TOGETHER", max(1, together))
    rng = np.random.default_rng(together)
    for _ in range(N_GRAPHS // 3):
        given = drawn(rng, int(rng.integers(1, 8)))
        plan = plan_retention(given)
        check_retention(given, plan)
        assert plan.optimal
        assert plan.cost == pytest.approx(least_cost(given))
        greedy = with_sources(
            given,
            greedily_kept(given.keep_cost, given.parents, given.children, given.rebuild_cost),
            plan.bound,
        )
        check_retention(given, greedy)
        assert greedy.cost >= plan.cost - 1e-9


def sizes_example(write_only=False, max_seconds=None):
    size = np.array([100.0, 60, 60, 10])
    accesses = np.array([0.0, 5, 1, 1])
    edges = [(0, 1), (0, 2), (1, 2), (2, 1), (0, 3), (1, 3), (2, 3)]
    if max_seconds is not None:
        edges = [(p, v) for p, v in edges if 0.5 * size[p] + size[v] < max_seconds]
    read = 0.0 if write_only else 0.1
    return problem(
        size * (2 + 0.5 * 4),
        [(p, v, accesses[v] * (read * size[p] + size[v])) for p, v in edges],
    )


@pytest.mark.parametrize(
    ("given", "cost", "source"),
    [
        (sizes_example(), 722, [-1, -1, 1, 1]),
        (sizes_example(write_only=True), 710, None),
        (sizes_example(max_seconds=90), 896, None),
        (sizes_example(max_seconds=60), 896, None),
        (sizes_example(max_seconds=100), 722, None),
        (sizes_example(max_seconds=111), 722, None),
        (problem([10, 10, 10], [(0, 1, 1), (1, 2, 1)]), 21, [-1, -1, 1]),
        (problem([3, 5], [(0, 1, 5)]), 8, [-1, -1]),
        (problem([10, 4, 6, 3, 5], [(0, 1, 1), (1, 2, 2), (2, 3, 1), (3, 4, 4)]), 23, None),
        (
            problem([5, 7, 8, 2, 9, 4], [(0, 1, 3), (1, 2, 6), (2, 3, 1), (3, 4, 2), (4, 5, 5)]),
            24,
            [-1, 0, -1, -1, 3, -1],
        ),
        (problem([], []), 0, []),
    ],
)
def test_worked_numbers(given, cost, source):
    plan = plan_retention(given)
    assert plan.cost == pytest.approx(cost)
    assert plan.optimal
    assert source is None or plan.source.tolist() == source


@pytest.mark.parametrize(
    ("sets", "cost"), [(["123", "456", "145", "236", "345"], 114), (["123", "145", "346"], 115)]
)
def test_sets_that_cover_all_elements(sets, cost):
    edges = [(0, 1 + number, 0) for number in range(len(sets))]
    edges += [
        (1 + number, len(sets) + int(element), 2)
        for number, elements in enumerate(sets)
        for element in elements
    ]
    edges += [(0, len(sets) + element, 40) for element in range(1, 7)]
    given = problem([100] + [1] * len(sets) + [50] * 6, edges)
    assert plan_retention(given).cost == pytest.approx(cost)


def test_costs_that_are_all_multiplied_give_the_same_plan_at_that_price():
    rng = np.random.default_rng(5)
    for _ in range(50):
        given = drawn(rng, 7)
        more = RetentionProblem(
            given.keep_cost * 8, given.parents, given.children, given.rebuild_cost * 8
        )
        assert plan_retention(more).cost == pytest.approx(8 * plan_retention(given).cost)


def test_a_solver_out_of_time_says_so_and_its_plan_holds():
    rng = np.random.default_rng(6)
    n = 300
    ends = rng.integers(0, n, (n * 60, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    keep = rng.integers(50, 100, n).astype(float)
    given = RetentionProblem(
        keep, ends[:, 0], ends[:, 1], rng.integers(1, 90, len(ends)).astype(float)
    )
    plan = plan_retention(given, time_limit=1e-3)
    check_retention(given, plan)
    assert not plan.optimal
    assert 0 < plan.gap < 1
    assert plan.cost < plan.keep_all_cost


@pytest.mark.parametrize(
    ("kept", "source", "rule"),
    [
        ([True, True, True], [-1, 0, -1], "is kept and has the source"),
        ([True, False, True], [-1, 2, -1], "cannot be rebuilt from"),
        ([False, False, True], [2, 0, -1], "which is deleted"),
        ([True, True, True], [-1, -1, -1], "costs"),
    ],
)
def test_broken_plans_are_told(kept, source, rule):
    given = problem([10, 10, 10], [(0, 1, 1), (2, 0, 1)])
    plan = Retention(np.array(kept), np.array(source), 12.0, 30.0, 12.0)
    with pytest.raises(InputError, match=rule):
        check_retention(given, plan)


@pytest.mark.parametrize(
    ("keep", "edges", "said"),
    [
        ([-1.0], [], "keep_cost"),
        ([1.0, np.nan], [], "keep_cost"),
        ([1.0, 1.0], [(0, 1, -1)], "rebuild_cost"),
        ([1.0], [(0, 1, 1)], "among the tables"),
        ([1.0], [(0, 0, 1)], "itself"),
    ],
)
def test_wrong_problems_are_refused(keep, edges, said):
    with pytest.raises(InputError, match=said):
        problem(keep, edges)


@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1.0, 1e9])
def test_the_plan_does_not_depend_on_the_unit_of_costs(unit):
    sizes = np.array([903.0, 598.0, 903.0, 310.0])
    parents, children = np.array([0, 2, 0, 2, 0, 2]), np.array([2, 0, 1, 1, 3, 3])
    plan = plan_retention(RetentionProblem(sizes * unit, parents, children, np.zeros(6)))
    assert plan.kept.sum() == 1
    assert plan.optimal
    assert plan.cost == pytest.approx(903 * unit)
