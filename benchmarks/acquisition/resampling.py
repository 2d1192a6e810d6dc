"""How far correlations of joins with thinned intermediate results are from those of whole joins."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.acquisition.market import Query
from benchmarks.acquisition.planning import Setting
from pexeso.acquisition.measures.correlation import correlation
from pexeso.acquisition.sampling.thinned_join import TreeEdge, sample_join

SEEDS = 3
MOST_ROWS = 2_000_000
"""Joins with more rows are not formed."""

THINNED_FROM = 1_000
"""Rows: intermediate results with more are thinned (eta)."""

Result = dict[str, Any]


def resampled(
    setting: Setting, query: Query, plan: Result | None, rhos: Sequence[float]
) -> list[Result]:
    """Form the join of a plan with intermediate results thinned, and measure its correlation.

    Parameters
    ----------
    setting : Setting
    query : Query
    plan : dict, optional
        As `planning.told` returns it. Nothing is thinned in a plan of two tables.
    rhos : sequence of float
        Shares that are kept.

    Returns
    -------
    list of dict
        For each share ``correlation``, the mean over `SEEDS`, and ``difference``, the mean distance
        to the join that is not thinned. Empty without a plan of three tables, or if its join has
        more than `MOST_ROWS` rows.
    """
    if plan is None or len(plan["tables"]) < 3 or plan["rows"] > MOST_ROWS:
        return []
    whole = _correlation(setting, query, plan, 1.0, 0)
    rows = []
    for rho in rhos:
        seeds = range(setting.seed, setting.seed + SEEDS)
        found = [_correlation(setting, query, plan, rho, seed) for seed in seeds]
        rows.append(
            {
                "rho": rho,
                "correlation": statistics.mean(found),
                "difference": statistics.mean(abs(each - whole) for each in found),
            }
        )
    return rows


def _correlation(setting: Setting, query: Query, plan: Result, rho: float, seed: int) -> float:
    edges = [TreeEdge(left, right, tuple(names)) for left, right, names in plan["joins"]]
    placed = {
        column: next(
            table for table in plan["tables"] if column in setting.market.tables[table].column_names
        )
        for column in (*query.source, *query.target)
    }
    columns: dict[str, list[str]] = {table: [] for table in plan["tables"]}
    for column, table in placed.items():
        columns[table].append(column)
    joined = sample_join(
        {table: setting.market.tables[table] for table in plan["tables"]},
        edges,
        columns,
        start=placed[query.source[0]],
        eta=THINNED_FROM,
        rho=rho,
        seed=seed,
    )
    names = {column: f"{table}.{column}" for column, table in placed.items()}
    return correlation(
        joined.rows,
        [names[column] for column in query.source],
        [names[column] for column in query.target],
        numeric=[names[column] for column in names if column in setting.market.about.numeric],
        counts=joined.counts,
    )
