"""The command ``python -m benchmarks redundancy``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.commands import benchmark, setting
from benchmarks.redundancy.measuring import LAKES, measured_lake
from pexeso.redundancy.planning import RetentionProblem, plan_retention

SIZES = (500, 2_000, 10_000)
DEGREES = (2, 5, 10)
"""Mean edges of a table in graphs whose edges are drawn one by one (Erdos and Renyi)."""


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


PLANS = "plans"


@dataclass(frozen=True)
class Request:
    lakes: tuple[str, ...] = setting((), nargs=-1)
    repeats: int = setting(3, "Of each way, in turn.")
    rows: int = setting(10, "Sampled of each table (paper: t).")
    seed: int = setting(0, "Of lakes, samples and graphs.")


@benchmark("redundancy", Request)
def redundancy_command(request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
    """Search LAKES for contained tables, all rows compared and as published; time the plans.

    What is found is held against full comparison. LAKES are containment, baseball,
    fivethirtyeight, derived-24MB, derived-240MB, derived-324MB, derived-2.4GB, and plans, which is
    the solver alone; all of them by default.
    """
    for name in request.lakes or (*LAKES, PLANS):
        if name == PLANS:
            result = {"solver": solver_times(request.repeats, request.seed)}
        else:
            result = _lake(name, request)
        yield f"redundancy/{name}", {"lake": name, "seed": request.seed, **result}


def _lake(name: str, request: Request) -> dict[str, Any]:
    from pexeso.build.job import SMALL_LAKE_SETTINGS
    from pexeso.build.spark.session import spark_session

    options = {"seed": request.seed, "repeats": request.repeats, "rows": request.rows}
    with spark_session(None, conf=SMALL_LAKE_SETTINGS) as spark:
        return measured_lake(spark, name, **options)
