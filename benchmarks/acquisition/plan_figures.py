"""The part ``plans``: searches for plans of purchase by budget, by rate of samples and by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.acquisition.market import Market, Query
from benchmarks.acquisition.planning import (
    Setting,
    all_measured,
    difference,
    exact_search,
    price_range,
    published_search,
)
from benchmarks.acquisition.resampling import resampled
from benchmarks.acquisition.sampled_graph import sampled_graph
from pexeso.acquisition.graph.joins import JoinGraph

Result = dict[str, Any]

DIRECT_RATIO = 0.13
"""The budget of the paper's comparison with direct purchase."""


@dataclass(frozen=True)
class Varied:
    """What is varied.

    Attributes
    ----------
    ratios : tuple of float
        Budgets as shares of the price of the whole market.
    rates : tuple of float
        Of samples.
    rhos : tuple of float
        Shares of intermediate joins that are kept.
    sizes : tuple of (str, tuple of int)
        By market: how many of its tables there are.
    max_seconds : float
        Of a search where something is varied, no longer than that of others.
    """

    ratios: tuple[float, ...] = (0.04, 0.06, 0.08, 0.1, 0.12, DIRECT_RATIO)
    rates: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    rhos: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
    sizes: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("tpch", (5, 6, 7, 8)),
        ("tpce", (10, 15, 20, 25, 29)),
    )
    max_seconds: float = 10.0


def measured_plans(
    market: Market,
    *,
    max_seconds: float = 60.0,
    repeats: int = 3,
    seed: int = 0,
    varied: Varied | None = None,
) -> Result:
    """Measure the searches for plans on the queries of a market."""
    varied = Varied() if varied is None else varied
    setting = Setting.of(market, max_seconds=max_seconds, repeats=repeats, seed=seed)
    sizes = dict(varied.sizes).get(market.about.name, ())
    return {
        "market": market.about.name,
        "options": market.options,
        "building": setting.building,
        "queries": {
            query.name: _query(setting, query, varied, sizes) for query in market.about.queries
        },
    }


def _query(setting: Setting, query: Query, varied: Varied, sizes: Sequence[int]) -> Result:
    request = setting.request(query)
    prices = price_range(setting, query)
    exact = exact_search(setting, request)
    whole = {
        "exact": exact,
        "front": exact_search(setting, request, front=True),
        "all_plans": all_measured(setting, request),
        "published": published_search(setting, request),
        "unbounded": published_search(
            setting, replace(request, max_tables=len(setting.graph.tables))
        ),
    }
    best = exact.get("plan")
    for name in ("all_plans", "published", "unbounded"):
        whole[name]["difference"] = difference(best, whole[name].get("plan"))
    setting = replace(setting, max_seconds=min(setting.max_seconds, varied.max_seconds))
    by_rate = []
    for rate in varied.rates:
        graph, rows_of = sampled_graph(setting.graph, setting.coded, rate, setting.seed)
        row: Result = {"rate": rate}
        for name, search in (("published", published_search), ("all_plans", all_measured)):
            row[name] = search(setting, request, graph=graph, rows_of=rows_of)
            row[name]["difference"] = difference(best, row[name].get("plan"))
        by_rate.append(row)
    return {
        "length": query.length,
        "prices": prices,
        **whole,
        "budgets": [_budget(setting, query, prices, ratio) for ratio in varied.ratios],
        "rates": by_rate,
        "resampling": resampled(setting, query, varied.rhos),
        "sizes": [_size(setting, query, n_tables) for n_tables in sizes],
    }


def _budget(setting: Setting, query: Query, prices: Result, ratio: float) -> Result:
    budget = ratio * prices["market"]
    if budget < prices["least"]:
        return {"ratio": ratio, "budget": budget, "affordable": False}
    request = setting.request(query, budget=budget)
    exact, published = exact_search(setting, request), published_search(setting, request)
    published["difference"] = difference(exact.get("plan"), published.get("plan"))
    return {
        "ratio": ratio,
        "budget": budget,
        "affordable": True,
        "exact": exact,
        "published": published,
    }


def _size(setting: Setting, query: Query, n_tables: int) -> Result:
    graph = smaller_graph(setting.graph, query, n_tables)
    request = setting.request(query, graph=graph)
    published = published_search(setting, request, graph=graph)
    return {
        "tables": n_tables,
        "edges": len(graph.edges),
        "exact": exact_search(setting, request, graph=graph),
        "published": published,
        "all_plans": all_measured(setting, request, graph=graph),
        "graph_size": len(published["plan"]["tables"]) if "plan" in published else None,
    }


def smaller_graph(graph: JoinGraph, query: Query, n_tables: int) -> JoinGraph:
    """Return a graph with fewer tables."""
    others = sorted(set(graph.tables) - set(query.path))
    remaining = {*query.path, *others[: max(n_tables - len(query.path), 0)]}
    return graph.without(set(graph.tables) - remaining)
