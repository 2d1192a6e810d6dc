"""Problems of retention made smaller: the least cost stays, and copies come to few edges."""

import time
from itertools import product

import numpy as np
import pytest

from pexeso.redundancy.retention import RetentionProblem, check_retention, plan_retention
from pexeso.redundancy.solver.reductions import reduced

N_GRAPHS = 1200


def least_cost(keep, able, parents, children, costs):
    """Try all sets of kept tables."""
    matrix = np.full((len(keep), len(keep)), np.inf)
    np.minimum.at(matrix, (parents, children), costs)
    best = np.inf
    for kept in product([False, True], repeat=len(keep)):
        kept = np.array(kept)
        if not (kept & ~able).any():
            rebuilt = matrix[kept].min(axis=0, initial=np.inf)
            best = min(best, np.where(kept, keep, rebuilt).sum())
    return best


def drawn(rng):
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
    keep = 3 * size
    useful = costs < keep[children]
    edges = parents[useful], children[useful], costs[useful].astype(float)
    return keep.astype(float), *edges


@pytest.mark.long
def test_the_least_cost_stays_as_it_is():
    rng, n_less, n_unable = np.random.default_rng(4), 0, 0
    for _ in range(N_GRAPHS):
        keep, parents, children, costs = drawn(rng)
        reduction = reduced(keep, parents, children, costs)
        able = np.ones(len(keep), bool)
        left = [array[reduction.edges] for array in (parents, children, costs)]
        expected = least_cost(keep, able, parents, children, costs)
        assert least_cost(keep, reduction.able, *left) == expected
        plan = plan_retention(RetentionProblem(keep, parents, children, costs))
        assert plan.optimal
        assert plan.cost == pytest.approx(expected)
        n_less += len(reduction.edges) < len(parents)
        n_unable += not reduction.able.all()
    assert n_less > N_GRAPHS // 2
    assert n_unable > N_GRAPHS // 2


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
