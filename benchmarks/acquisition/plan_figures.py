"""The part ``plans``: searches for plans of purchase by budget, and of thinned joins."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from benchmarks.acquisition.market import Market, Query
from benchmarks.dance_published.natural import natural_graph
from benchmarks.dance_published.walk import PublishedOptions, published_plans
from pexeso.acquisition.evaluation import Evaluator, OutOfTime
from pexeso.acquisition.exact import Limits, find_plans
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import (
    AcquisitionRequest,
    FoundPlans,
    JoinTree,
    PlanMeasures,
    Terminal,
    TreeSearch,
)
from pexeso.acquisition.samples import TreeEdge, sample_join
from pexeso.acquisition.tables import CodedColumns, ListedPrices, MarketTable
from pexeso.joins.measures import correlation

# What plans of purchase cost to find in a market, and how good those of the published search are.
#
# Everything is measured on the queries of a market, with plans of at most as many tables as the
# query is meant for. Seconds are those after the join graph is built, processor and wall, the
# median of several runs; a search that took longer than `PATIENCE` is run once.
#
# exact       all plans by branch and bound, with a proof
# published   minimal graphs and walks on them
# all plans   each plan measured, none left out: GP of the paper. Plans are measured by counts, and
#             their joins are not formed.
#
# The difference of a plan to the best one is CD = (X_OPT - X) / X_OPT.

PATIENCE = 5.0
"""Seconds: what takes longer is run once."""

CODES_BYTES = 8 << 30

Result = dict[str, Any]
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Setting:
    """A market as a graph, with what all measurements share."""

    market: Market
    graph: JoinGraph
    coded: CodedColumns
    building: Result
    max_seconds: float
    repeats: int
    seed: int

    @classmethod
    def of(
        cls, market: Market, *, max_seconds: float = 60.0, repeats: int = 3, seed: int = 0
    ) -> Setting:
        coded = CodedColumns(CODES_BYTES)
        graph, seconds = timed(lambda: natural_graph(market_tables(market), coded), 1)
        building = {
            **seconds,
            "tables": len(graph.tables),
            "edges": len(graph.edges),
            "join_sets": sum(len(edge.join_sets) for edge in graph.edges.values()),
        }
        return cls(market, graph, coded, building, max_seconds, repeats, seed)

    def request(self, query: Query, *, budget: float = math.inf) -> AcquisitionRequest:
        """Return the request of a query, for plans of at most as many tables as it is meant for."""
        have, want = (
            tuple(Terminal.of(self.graph, column) for column in side)
            for side in (query.source, query.target)
        )
        return AcquisitionRequest(have, want, budget=budget, max_tables=query.length)

    def timed(self, run: Callable[[], Answer]) -> tuple[Answer, Result]:
        """Return what `timed` does, with the repeats of the setting."""
        return timed(run, self.repeats)

    def evaluator(self) -> Evaluator:
        """Return what measures plans, until the time of a search is over."""
        deadline = time.perf_counter() + self.max_seconds
        return Evaluator(self.graph, self.coded, deadline=deadline)


def market_tables(market: Market) -> list[MarketTable]:
    """Return the tables of a market with their prices, amounts and dependencies."""
    of_table: dict[str, dict[str, float]] = {name: {} for name in market.tables}
    for (name, column), price in market.prices.items():
        of_table[name][column] = price
    return [
        MarketTable(
            name,
            tuple(rows.column_names),
            rows.num_rows,
            rows.select,
            ListedPrices(name, of_table[name]),
            numeric=frozenset(market.about.numeric) & set(rows.column_names),
            find_dependencies=partial(tuple, market.about.dependencies.get(name, ())),
        )
        for name, rows in market.tables.items()
    ]


def timed(run: Callable[[], Answer], repeats: int) -> tuple[Answer, Result]:
    """Return what is run with its seconds."""
    processor, wall = [], []
    while True:
        begin = time.perf_counter(), time.process_time()
        answer = run()
        wall.append(time.perf_counter() - begin[0])
        processor.append(time.process_time() - begin[1])
        if len(wall) >= repeats or wall[0] > PATIENCE:
            return answer, {
                "seconds": statistics.median(processor),
                "wall": statistics.median(wall),
                "repeats": len(wall),
            }


def exact_search(setting: Setting, request: AcquisitionRequest, *, front: bool = False) -> Result:
    """Search all plans of a request, for the best or for all that none beats."""
    limits = Limits(max_seconds=setting.max_seconds, front=front)
    search, seconds = setting.timed(
        lambda: find_plans(setting.graph, request, setting.coded, limits)
    )
    result = {
        **seconds,
        "formed": search.n_trees,
        "measured": search.n_evaluated,
        "found": len(search.plans),
        "stopped": search.stopped,
    }
    if search.plans:
        first = search.plans[0]
        plan = _plan_fields(first.tree, first.measures)
        result |= {"proved": first.optimal, "gap": first.gap, "plan": plan}
        if front:
            result["all_proved"] = not search.stopped and all(plan.optimal for plan in search.plans)
    return result


def published_search(setting: Setting, request: AcquisitionRequest) -> Result:
    """Search as published, on whole tables."""
    options = PublishedOptions(seed=setting.seed)

    def run() -> FoundPlans | None:
        measures = partial(measures_of, setting.evaluator())
        try:
            return published_plans(setting.graph, measures, request, options)
        except OutOfTime:
            return None

    search, seconds = setting.timed(run)
    if search is None:
        return {**seconds, "stopped": "time"}
    result = {
        **seconds,
        "formed": search.n_trees,
        "measured": search.n_evaluated,
        "stopped": "",
    }
    if search.plans:
        [plan] = search.plans
        result["plan"] = _plan_fields(plan.tree, plan.measures)
    return result


def measures_of(evaluator: Evaluator, tree: JoinTree) -> PlanMeasures:
    """Return what a plan is worth."""
    bounds = evaluator.bounds(tree)
    correlation = evaluator.correlation(tree) if bounds.n_rows else 0.0
    return PlanMeasures(
        bounds.price, bounds.informativeness, bounds.quality, correlation, bounds.n_rows
    )


def all_measured(setting: Setting, request: AcquisitionRequest) -> Result:
    """Measure each plan of a request on whole tables; take the best."""

    def run() -> tuple[int, str, tuple[JoinTree, PlanMeasures] | None]:
        evaluator, best, n_measured = setting.evaluator(), None, 0
        try:
            for tree in TreeSearch(setting.graph, request):
                if time.perf_counter() > evaluator.deadline:
                    raise OutOfTime
                measures = measures_of(evaluator, tree)
                n_measured += 1
                if measures.n_rows and (best is None or _order(tree, measures) < _order(*best)):
                    best = tree, measures
        except OutOfTime:
            return n_measured, "time", best
        return n_measured, "", best

    (n_measured, stopped, best), seconds = setting.timed(run)
    result = {**seconds, "measured": n_measured, "stopped": stopped}
    if best is not None:
        result["plan"] = _plan_fields(*best)
    return result


def price_range(setting: Setting, query: Query) -> Result:
    """Return the least and the greatest price of a plan, and that of the whole market."""
    prices = [
        tree.price(setting.graph) for tree in TreeSearch(setting.graph, setting.request(query))
    ]
    return {
        "least": min(prices),
        "most": max(prices),
        "plans": len(prices),
        "market": math.fsum(setting.market.prices.values()),
    }


def difference(optimum: Result | None, plan: Result | None) -> float | None:
    """Return CD, the difference of a plan to the optimum; None where one of them is not there."""
    if optimum is None or plan is None:
        return None
    best = optimum["correlation"]
    return (best - plan["correlation"]) / best if best else 0.0


def _plan_fields(tree: JoinTree, measures: PlanMeasures) -> Result:
    return {
        "tables": list(tree.tables),
        "joins": [[join.left, join.right, list(join.join_set.left)] for join in tree.joins],
        "correlation": measures.correlation,
        "quality": measures.quality,
        "informativeness": measures.informativeness,
        "price": measures.price,
        "rows": measures.n_rows,
    }


def _order(tree: JoinTree, measures: PlanMeasures) -> tuple[Any, ...]:
    return -measures.correlation, measures.price, tree.signature


SEEDS = 3
MOST_ROWS = 2_000_000
"""Joins with more rows are not formed."""

THINNED_FROM = 1_000
"""Rows: intermediate results with more are thinned (eta)."""


def resampled(setting: Setting, query: Query) -> Result | None:
    """Form a large join with its intermediate results thinned, and measure its correlation."""
    request = setting.request(query)
    evaluator = Evaluator(setting.graph, setting.coded)
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
    for rho in RHOS:
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


DIRECT_RATIO = 0.13
"""The budget of the paper's comparison with direct purchase."""


RHOS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Shares of intermediate rows that are kept."""

BUDGET_SECONDS = 10.0
"""Of a search within a budget."""


def measured_plans(
    market: Market, max_seconds: float = 60.0, repeats: int = 3, seed: int = 0
) -> Result:
    """Measure the searches for plans on the queries of a market."""
    setting = Setting.of(market, max_seconds=max_seconds, repeats=repeats, seed=seed)
    return {
        "market": market.about.name,
        "options": market.options,
        "building": setting.building,
        "queries": {query.name: _query(setting, query) for query in market.about.queries},
    }


def _query(setting: Setting, query: Query) -> Result:
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
    setting = replace(setting, max_seconds=min(setting.max_seconds, BUDGET_SECONDS))
    return {
        "length": query.length,
        "prices": prices,
        **whole,
        "budgets": [_budget(setting, query, prices, DIRECT_RATIO)],
        "resampling": resampled(setting, query),
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
