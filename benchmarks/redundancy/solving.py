"""Plans of deletions: against exhaustive search on small graphs, and timed on large ones."""

from __future__ import annotations

import time
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from pexeso.redundancy.retention import RetentionProblem, plan_retention

SIZES = (500, 2_000, 10_000)
DEGREES = (2, 5, 10)
"""Mean edges of a table in graphs whose edges are drawn one by one (Erdos and Renyi)."""


def against_exhaustive(n_graphs: int, seed: int) -> dict[str, Any]:
    """Solve small graphs, cycles and costs of zero among them, in both ways."""
    rng = np.random.Generator(np.random.PCG64(seed))
    equal = 0
    for _ in range(n_graphs):
        problem = _drawn(rng, int(rng.integers(1, 10)), float(rng.uniform(0, 0.6)))
        plan = plan_retention(problem)
        equal += bool(np.isclose(plan.cost, _least_cost(problem), rtol=1e-9)) and plan.optimal
    return {"graphs": n_graphs, "equal": equal}


def solver_times(repeats: int, seed: int) -> list[dict[str, Any]]:
    """Time plans over drawn graphs, and over graphs of versions that contain each other."""
    rows = []
    for n in SIZES:
        for kind in (*DEGREES, "versions"):
            runs = []
            for repeat in range(repeats):
                rng = np.random.Generator(np.random.PCG64([seed, n, repeat]))
                problem = _versions(rng, n) if kind == "versions" else _drawn(rng, n, int(kind) / n)
                started = time.perf_counter()
                plan = plan_retention(problem)
                runs.append((time.perf_counter() - started, plan, len(problem.parents)))
            rows.append(
                {
                    "tables": n,
                    "graph": "versions" if kind == "versions" else f"{kind} edges a table",
                    "edges": int(median(edges for _, _, edges in runs)),
                    "seconds": [seconds for seconds, _, _ in runs],
                    "optimal": all(plan.optimal for _, plan, _ in runs),
                    "largest_gap": max(plan.gap for _, plan, _ in runs),
                }
            )
    return rows


def _drawn(rng: np.random.Generator, n: int, share: float) -> RetentionProblem:
    """Draw each edge by itself, and costs of whole numbers, zero among them."""
    n_edges = int(rng.binomial(n * (n - 1), min(1.0, share))) if n > 1 else 0
    edges = rng.choice(n * (n - 1), n_edges, replace=False) if n_edges else np.empty(0, np.int64)
    parents, others = np.divmod(edges.astype(np.int64), max(1, n - 1))
    children = others + (others >= parents)
    keep = rng.integers(0, 20, n).astype(float)
    return RetentionProblem(keep, parents, children, rng.integers(0, 12, n_edges).astype(float))


def _versions(rng: np.random.Generator, n: int) -> RetentionProblem:
    """Draw families of versions, each of which holds all that are smaller, copies each other."""
    parents, children, sizes = [], [], np.empty(n)
    begin = 0
    while begin < n:
        members = np.arange(begin, min(n, begin + int(rng.integers(1, 60))))
        sizes[members] = rng.integers(1, 1 + len(members), len(members))  # equal ones are copies
        ours, others = np.meshgrid(members, members, indexing="ij")
        held = (sizes[ours] >= sizes[others]) & (ours != others)
        parents.append(ours[held])
        children.append(others[held])
        begin += len(members)
    parents, children = np.concatenate(parents), np.concatenate(children)
    accesses = rng.integers(0, 3, n)
    cost = accesses[children] * (sizes[parents] + 10 * sizes[children])
    return RetentionProblem(20 * sizes, parents, children, cost)


def _least_cost(problem: RetentionProblem) -> float:
    """Try all choices of tables to keep."""
    n = len(problem.keep_cost)
    best = np.inf
    for is_kept in product((False, True), repeat=n):
        cost = sum(problem.keep_cost[table] for table in range(n) if is_kept[table])
        for table in range(n):
            if not is_kept[table]:
                table_edges = problem.children == table
                sources = problem.rebuild_cost[table_edges & np.array(is_kept)[problem.parents]]
                cost += sources.min() if len(sources) else np.inf
        best = min(best, cost)
    return float(best)
