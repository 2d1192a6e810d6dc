"""Plans of least cost: worked numbers, all plans tried on small graphs, and the rules checked."""

import time
from itertools import product

import numpy as np
import pytest
from long_runs import EVERYTHING

from pexeso.errors import InputError
from pexeso.redundancy.planning import (
    RetentionProblem,
    dominated,
    greedily_kept,
    plan_retention,
    with_sources,
)

N_GRAPHS = 1500 if EVERYTHING else 600


def problem(keep, edges):
    rows = np.array(edges, float).reshape(-1, 3)
    ends = rows[:, :2].astype(np.int64)
    return RetentionProblem(np.array(keep, float), ends[:, 0], ends[:, 1], rows[:, 2])


def least_cost(given, able=None):
    """Try all sets of kept tables."""
    keep = given.keep_cost
    matrix = np.full((len(keep), len(keep)), np.inf)
    np.minimum.at(matrix, (given.parents, given.children), given.rebuild_cost)
    best = np.inf
    for kept in product([False, True], repeat=len(keep)):
        kept = np.array(kept, bool)
        if able is None or not (kept & ~able).any():
            rebuilt = matrix[kept].min(axis=0, initial=np.inf)
            best = min(best, np.where(kept, keep, rebuilt).sum())
    return best


def check_retention(problem, plan):
    """Check a plan against the rules, by plain loops."""
    edges = {}
    ends = zip(problem.parents.tolist(), problem.children.tolist(), strict=True)
    for edge, cost in zip(ends, problem.rebuild_cost.tolist(), strict=True):
        edges[edge] = min(cost, edges.get(edge, cost))
    total = 0.0
    for table, source in enumerate(plan.source.tolist()):
        if plan.kept[table]:
            assert source == -1, f"table {table} is kept and has the source {source}"
            total += float(problem.keep_cost[table])
        else:
            assert (source, table) in edges, f"table {table} cannot be rebuilt from {source}"
            assert plan.kept[source], f"table {table} is rebuilt from {source}, which is deleted"
            total += edges[source, table]
    assert total == pytest.approx(plan.cost, rel=1e-9, abs=1e-9), "costs"
    assert plan.cost <= plan.keep_all_cost * (1 + 1e-9)


def drawn(rng, n):
    edges = [
        (parent, child, int(rng.integers(0, 6)))
        for parent in range(n)
        for child in range(n)
        if parent != child and rng.random() < 0.35
    ]
    return problem(rng.integers(0, 8, n), edges)


def test_no_plan_costs_less():
    rng = np.random.default_rng(3)
    for _ in range(N_GRAPHS):
        given = drawn(rng, int(rng.integers(1, 8)))
        plan = plan_retention(given)
        check_retention(given, plan)
        assert plan.optimal
        assert plan.cost == pytest.approx(least_cost(given))
        greedy = with_sources(given, greedily_kept(given), plan.bound)
        check_retention(given, greedy)
        assert greedy.cost >= plan.cost - 1e-9


def drawn_copies(rng):
    """Draw tables in classes of copies, most edges of whose closure are there."""
    n = int(rng.integers(2, 8))
    kind = rng.integers(0, rng.integers(1, n + 1), n)
    size = rng.integers(1, 6, n) if rng.random() < 0.5 else rng.integers(1, 6, n)[kind]
    accesses = rng.integers(0, 4, n) if rng.random() < 0.5 else np.full(n, rng.integers(0, 4))
    parents, children = np.nonzero(
        (kind[:, None] <= kind)
        & ~np.eye(n, dtype=bool)
        & (rng.random((n, n)) < rng.choice([0.7, 1]))
    )
    if rng.random() < 0.5:
        costs = accesses[children] * (rng.integers(0, 3) * size[parents] + size[children])
    else:
        costs = rng.integers(0, 5, len(parents))
    given = RetentionProblem(3.0 * size, parents, children, costs.astype(float))
    return given.with_edges(given.rebuild_cost < given.keep_cost[children])


@pytest.mark.long
def test_dominated_tables_are_kept_by_no_plan_that_is_needed():
    rng, n_dominated = np.random.default_rng(4), 0
    for _ in range(2 * N_GRAPHS):
        given = drawn_copies(rng)
        able = ~dominated(given)
        expected = least_cost(given)
        assert least_cost(given, able) == expected
        plan = plan_retention(given)
        assert plan.optimal
        assert plan.cost == pytest.approx(expected)
        n_dominated += not able.all()
    assert n_dominated > N_GRAPHS // 2


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


def test_a_deleted_table_without_a_source_is_refused():
    with pytest.raises(InputError, match="Table 1 is deleted, and no table"):
        with_sources(problem([1, 1], []), np.array([True, False]), 0.0)


@pytest.mark.parametrize("unit", [1e-12, 1e-7, 1.0, 1e9])
def test_the_plan_does_not_depend_on_the_unit_of_costs(unit):
    sizes = np.array([903.0, 598.0, 903.0, 310.0])
    parents, children = np.array([0, 2, 0, 2, 0, 2]), np.array([2, 0, 1, 1, 3, 3])
    plan = plan_retention(RetentionProblem(sizes * unit, parents, children, np.zeros(6)))
    assert plan.kept.sum() == 1
    assert plan.optimal
    assert plan.cost == pytest.approx(903 * unit)


def test_of_equal_copies_one_is_kept_and_that_is_proved_in_seconds():
    n = 1500
    parents, children = np.nonzero(~np.eye(n, dtype=bool))
    accesses = np.random.default_rng(0).integers(1, 4, n)
    given = RetentionProblem(np.full(n, 9.0), parents, children, accesses[children].astype(float))
    plan_retention(RetentionProblem(np.ones(2), parents[:1], children[:1], np.zeros(1)))  # compiled
    begin = time.perf_counter()
    plan = plan_retention(given)
    assert time.perf_counter() - begin < 30
    assert plan.optimal
    assert plan.kept.sum() == 1
    assert accesses[plan.kept] == 3
    assert plan.cost == 9 + accesses.sum() - 3


def families(rng, n):
    """Return sizes and edges of tables in families: selections of selections, and copies of them.

    Every table holds its copies and what was selected from it or from a copy, however often.
    """
    sizes, edges = [], []
    while len(sizes) < n:
        begin, above, copies = len(sizes), [[]], [[0]]
        own = [float(rng.integers(100, 10_000))]
        for table in range(1, int(rng.integers(20, 140))):
            other = int(rng.integers(0, table))
            if rng.random() < 0.45:
                own.append(own[other])
                above.append(above[other])
                copies.append(copies[other])
                copies[other].append(table)
            else:
                own.append(own[other] * float(rng.random()))
                above.append([*above[other], copies[other]])
                copies.append([table])
        for table in range(len(own)):
            holders = {holder for group in [*above[table], copies[table]] for holder in group}
            edges += [(begin + holder, begin + table) for holder in sorted(holders - {table})]
        sizes += own
    return np.array(sizes), np.array(edges)


def test_ten_thousand_tables_are_proved_in_seconds():
    rng = np.random.default_rng(2)
    size, edges = families(rng, 10_000)
    accesses = rng.lognormal(0, 1, len(size))
    assert len(size) > 10_000
    assert len(edges) > 137_248
    parents, children = edges.T
    costs = accesses[children] * (0.1 * size[parents] + 0.02 * size[children])
    given = RetentionProblem(size, parents, children, costs)
    begin = time.perf_counter()
    plan = plan_retention(given)
    assert time.perf_counter() - begin < 10
    check_retention(given, plan)
    assert plan.optimal
    assert plan.cost < plan.keep_all_cost / 2
