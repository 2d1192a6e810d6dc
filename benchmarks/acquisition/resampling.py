"""How far correlations of joins with thinned intermediate results are from those of whole joins."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.acquisition.market import Query
from benchmarks.acquisition.planning import Setting
from pexeso.acquisition.evaluation import Evaluator
from pexeso.acquisition.plans import JoinTree
from pexeso.acquisition.sampled_join import TreeEdge, sample_join
from pexeso.acquisition.trees import TreeSearch
from pexeso.joins.measures.correlation import correlation

SEEDS = 3
MOST_ROWS = 2_000_000
"""Joins with more rows are not formed."""

THINNED_FROM = 1_000
"""Rows: intermediate results with more are thinned (eta)."""

Result = dict[str, Any]


def resampled(setting: Setting, query: Query, rhos: Sequence[float]) -> Result | None:
    """Form a large join with its intermediate results thinned, and measure its correlation."""
    request = setting.request(query)
    evaluator = Evaluator(setting.graph, request, setting.coded)
    sizes = [
        (evaluator.n_rows(tree), tree)
        for tree in TreeSearch(setting.graph, request)
        if len(tree.tables) > 2
    ]
    fitting = [size for size in sizes if size[0] <= MOST_ROWS]
    if not fitting:
        return None
    n_rows, plan = max(fitting, key=lambda size: size[0])
    whole = _correlation(setting, query, plan, 1.0, 0)
    rows = []
    for rho in rhos:
        seeds = range(setting.seed, setting.seed + SEEDS)
        correlations = [_correlation(setting, query, plan, rho, seed) for seed in seeds]
        rows.append(
            {
                "rho": rho,
                "correlation": statistics.mean(correlations),
                "difference": statistics.mean(abs(estimate - whole) for estimate in correlations),
            }
        )
    return {"rows": n_rows, "tables": list(plan.tables), "kept": rows}


def _correlation(setting: Setting, query: Query, plan: JoinTree, rho: float, seed: int) -> float:
    tables = {table: setting.market.tables[table] for table in plan.tables}
    terminals = (*plan.have, *plan.want)
    joined = sample_join(
        tables,
        [TreeEdge(join.left, join.right, join.join_set.left) for join in plan.joins],
        {name: [column for table, column in terminals if table == name] for name in tables},
        start=plan.have[0][0],
        eta=THINNED_FROM,
        rho=rho,
        seed=seed,
    )
    have, want = ([".".join(terminal) for terminal in side] for side in (plan.have, plan.want))
    numeric = [".".join(pair) for pair in terminals if pair[1] in setting.market.about.numeric]
    return correlation(joined.rows, have, want, numeric=numeric, counts=joined.counts)
