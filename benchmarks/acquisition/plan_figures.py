"""The part ``plans``: searches for plans of purchase by budget, and of thinned joins."""

from __future__ import annotations

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
    rhos : tuple of float
        Shares of intermediate joins that are kept.
    max_seconds : float
        Of a search where something is varied, no longer than that of others.
    """

    ratios: tuple[float, ...] = (0.04, 0.06, 0.08, 0.1, 0.12, DIRECT_RATIO)
    rhos: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
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
    return {
        "market": market.about.name,
        "options": market.options,
        "building": setting.building,
        "queries": {query.name: _query(setting, query, varied) for query in market.about.queries},
    }


def _query(setting: Setting, query: Query, varied: Varied) -> Result:
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
    return {
        "length": query.length,
        "prices": prices,
        **whole,
        "budgets": [_budget(setting, query, prices, ratio) for ratio in varied.ratios],
        "resampling": resampled(setting, query, varied.rhos),
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
