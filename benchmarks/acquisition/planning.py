"""What plans of purchase cost to find in a market, and how good those of the published search are.

Everything is measured on the queries of a market, with plans of at most as many tables as the query
is meant for. Seconds are those after the join graph is built, processor and wall, the median of
several runs; a search that took longer than `PATIENCE` is run once.

exact       all plans by branch and bound, with a proof
published   minimal graphs and walks on them, on whole tables and on samples
all plans   each plan measured, none left out: on whole tables GP of the paper, on samples LP. Plans
            are measured by counts and their joins are not formed, so it is faster than the paper's.

A correlation is that of whole tables, whatever a search saw. The difference of a plan to
the best one is CD = (X_OPT - X) / X_OPT.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from benchmarks.acquisition.market import Market, Query
from benchmarks.dance_published.natural import natural_graph
from benchmarks.dance_published.walk import PublishedOptions, published_plans
from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.evaluation import Evaluator, OutOfTime
from pexeso.acquisition.exact import Limits, find_plans
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import (
    AcquisitionRequest,
    FoundPlan,
    FoundPlans,
    JoinTree,
    PlanMeasures,
    Terminal,
)
from pexeso.acquisition.row_counts import RowsOf
from pexeso.acquisition.tables import ListedPrices, MarketTable
from pexeso.acquisition.trees import TreeSearch

PATIENCE = 5.0
"""Seconds: what takes longer is run once."""

CODES_BYTES = 8 << 30

Result = dict[str, Any]
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Setting:
    """A market as a graph, with what all measurements share.

    Attributes
    ----------
    market : Market
    graph : JoinGraph
        Of whole tables.
    coded : CodedColumns
    building : dict
        Seconds to read nothing and build the graph, its tables, edges and join sets.
    max_seconds : float
        Of one search.
    repeats : int
    seed : int
        Of samples and walks.
    """

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
        """Build the graph of a market."""
        coded = CodedColumns(CODES_BYTES)
        graph, seconds = timed(lambda: natural_graph(market_tables(market), coded), 1)
        building = {
            **seconds,
            "tables": len(graph.tables),
            "edges": len(graph.edges),
            "join_sets": sum(len(edge.join_sets) for edge in graph.edges.values()),
        }
        return cls(market, graph, coded, building, max_seconds, repeats, seed)

    def request(
        self, query: Query, *, budget: float = math.inf, graph: JoinGraph | None = None
    ) -> AcquisitionRequest:
        """Return the request of a query, for plans of at most as many tables as it is meant for."""
        graph = self.graph if graph is None else graph
        have, want = (
            tuple(Terminal.of(graph, column) for column in side)
            for side in (query.source, query.target)
        )
        return AcquisitionRequest(have, want, budget=budget, max_tables=query.length)

    def timed(self, run: Callable[[], Answer]) -> tuple[Answer, Result]:
        """Return what `timed` does, with the repeats of the setting."""
        return timed(run, self.repeats)

    def real(self, request: AcquisitionRequest, tree: JoinTree) -> PlanMeasures | None:
        """Return the measures of a plan on whole tables; None if that takes too long."""
        deadline = time.perf_counter() + self.max_seconds
        try:
            return Evaluator(self.graph, request, self.coded, deadline=deadline).measures(
                on_whole(self.graph, tree)
            )
        except OutOfTime:
            return None


def on_whole(graph: JoinGraph, tree: JoinTree) -> JoinTree:
    """Return a plan with the join sets that a graph has, which weigh what they do there."""
    joins = [
        replace(
            join,
            join_set=next(
                join_set
                for join_set in graph.edge(join.left, join.right).join_sets
                if join_set.pairs == join.join_set.pairs
            ),
        )
        for join in tree.joins
    ]
    return JoinTree.of(joins, tree.have, tree.want)


def market_tables(market: Market) -> list[MarketTable]:
    """Return the tables of a market with their prices, amounts and dependencies."""
    of_table: dict[str, dict[str, float]] = {name: {} for name in market.tables}
    for (name, column), price in market.prices.items():
        of_table[name][column] = price
    return [
        MarketTable.of(
            name,
            rows,
            price=ListedPrices(name, of_table[name]),
            numeric=set(market.about.numeric) & set(rows.column_names),
            dependencies=market.about.dependencies.get(name, ()),
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


def exact_search(
    setting: Setting,
    request: AcquisitionRequest,
    *,
    front: bool = False,
    graph: JoinGraph | None = None,
) -> Result:
    """Search all plans of a request, for the best or for all that none beats."""
    limits = Limits(max_seconds=setting.max_seconds, front=front)
    graph = setting.graph if graph is None else graph
    search, seconds = setting.timed(lambda: find_plans(graph, request, setting.coded, limits))
    result = {
        **seconds,
        "formed": search.n_trees,
        "measured": search.n_evaluated,
        "found": len(search.plans),
        "stopped": search.stopped,
    }
    if search.plans:
        first = search.plans[0]
        result |= {"proved": first.optimal, "gap": first.gap, "plan": plan_to_json(first)}
        if front:
            result["all_proved"] = not search.stopped and all(plan.optimal for plan in search.plans)
    return result


def published_search(
    setting: Setting,
    request: AcquisitionRequest,
    *,
    graph: JoinGraph | None = None,
    rows_of: RowsOf | None = None,
) -> Result:
    """Search as published, on the rows of a graph or on those of samples."""
    seen = setting.graph if graph is None else graph
    options = PublishedOptions(first_rate=1.0, seed=setting.seed)

    def run() -> FoundPlans | None:
        deadline = time.perf_counter() + setting.max_seconds
        evaluator = Evaluator(seen, request, setting.coded, rows_of=rows_of, deadline=deadline)
        try:
            return published_plans(lambda _: (seen, evaluator.measures), request, options)
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
        "reason": search.reason,
    }
    if search.plans:
        [plan] = search.plans
        result["estimate"] = plan.measures.correlation
        result |= _scored(setting, request, plan.tree)
    return result


def all_measured(
    setting: Setting,
    request: AcquisitionRequest,
    *,
    graph: JoinGraph | None = None,
    rows_of: RowsOf | None = None,
) -> Result:
    """Measure each plan of a request, on whole tables or on samples; take the best."""
    seen = setting.graph if graph is None else graph

    def run() -> tuple[int, str, tuple[JoinTree, PlanMeasures] | None]:
        deadline = time.perf_counter() + setting.max_seconds
        evaluator = Evaluator(seen, request, setting.coded, rows_of=rows_of, deadline=deadline)
        best, n_measured = None, 0
        try:
            for tree in TreeSearch(seen, request):
                if time.perf_counter() > deadline:
                    raise OutOfTime
                measures = evaluator.measures(tree)
                n_measured += 1
                if measures.n_rows and (best is None or _order(tree, measures) < _order(*best)):
                    best = tree, measures
        except OutOfTime:
            return n_measured, "time", best
        return n_measured, "", best

    (n_measured, stopped, best), seconds = setting.timed(run)
    result = {**seconds, "measured": n_measured, "stopped": stopped}
    if best is not None:
        result["estimate"] = best[1].correlation
        result |= _scored(setting, request, best[0])
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


def plan_to_json(plan: FoundPlan) -> Result:
    """Return a plan with its measures as plain JSON."""
    return _plan_fields(plan.tree, plan.measures)


def difference(optimum: Result | None, plan: Result | None) -> float | None:
    """Return CD, the difference of a plan to the optimum; None where one of them is not there.

    Examples
    --------
    >>> difference({"correlation": 4.0}, {"correlation": 3.0})
    0.25
    """
    if optimum is None or plan is None:
        return None
    best = optimum["correlation"]
    return (best - plan["correlation"]) / best if best else 0.0


def _scored(setting: Setting, request: AcquisitionRequest, tree: JoinTree) -> Result:
    measures = setting.real(request, tree)
    if measures is None:
        return {"unscored": "time"}
    return {"plan": _plan_fields(on_whole(setting.graph, tree), measures)}


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
