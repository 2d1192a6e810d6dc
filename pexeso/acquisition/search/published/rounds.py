"""The published search as a whole: minimal graphs, walks on them, and larger samples if need be."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.search.found_plans import FoundPlan, FoundPlans
from pexeso.acquisition.search.published.known_plans import (
    JoinChoices,
    KnownPlan,
    KnownPlans,
    Measure,
)
from pexeso.acquisition.search.published.landmarks import landmarks_of
from pexeso.acquisition.search.published.minimal_graphs import MinimalGraph, minimal_graphs
from pexeso.acquisition.search.published.options import PublishedOptions
from pexeso.acquisition.search.published.walk import best_plan
from pexeso.acquisition.search.request import AcquisitionRequest

GraphAt = Callable[[float], tuple[JoinGraph, Measure]]
"""Returns the graph of samples at a rate, and what measures plans on these samples."""

_MAX_JOINED = 16
"""Plans that are joined for their quality alone, to say what a request would have to allow."""


def published_plans(
    graph_at: GraphAt,
    request: AcquisitionRequest,
    options: PublishedOptions | None = None,
    *,
    bound: float | None = None,
) -> FoundPlans:
    """Return the plan that the published search finds for a request, or why there is none.

    It starts with small samples. Where no plan is within the bounds it asks for larger ones, up to
    whole tables: on these a plan can cost less informativeness or have a better quality.

    Parameters
    ----------
    graph_at : callable
        From a rate, above 0 to 1, to a graph and its measure. Tables and joins that are to be left
        out are not in it.
    request : AcquisitionRequest
        What the shopper wants. Its terminals are valid in all graphs.
    options : PublishedOptions, optional
        Those of the class if not given.
    bound : float, optional
        No plan within the bounds of the request has a higher correlation. The search itself knows
        no such bound: then `gap` is 1, which says nothing, and `optimal` is False.

    Returns
    -------
    FoundPlans
        With one plan at most. Counts are those of all rounds; `best_seen` is of the last.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.acquisition.graph.building import natural_graph
    >>> from pexeso.acquisition.graph.coded import CodedColumns
    >>> from pexeso.acquisition.graph.tables import MarketTable
    >>> from pexeso.acquisition.search.plans import PlanMeasures
    >>> from pexeso.acquisition.search.request import Terminal
    >>> tables = {"x": {"k": [1, 2], "age": [30, 40]}, "y": {"k": [1, 2], "pay": [5, 6]}}
    >>> market = [MarketTable.of(name, pa.table(rows)) for name, rows in tables.items()]
    >>> graph = natural_graph(market, CodedColumns())
    >>> def measure(tree):  # what two joined rows are worth
    ...     return PlanMeasures(tree.price(graph), tree.weight, 1.0, 1.0, 2)
    >>> request = AcquisitionRequest(
    ...     (Terminal.of(graph, "age"),), (Terminal.of(graph, "pay"),), budget=3
    ... )
    >>> found = published_plans(lambda rate: (graph, measure), request)
    >>> found.plans, found.best_seen
    ((), {'price': 4.0})
    """
    options = options or PublishedOptions()
    started = time.monotonic()
    n_trees = n_evaluated = n_rounds = 0
    rate = options.first_rate
    while True:
        graph, measure = graph_at(rate)
        known = KnownPlans(graph, request, measure, strict_lattice=options.strict_lattice)
        best, reason = _searched(known, request, options)
        seen = {} if best else _best_seen(known.all())
        n_rounds += 1
        n_trees += len(known.all())
        n_evaluated += sum(plan.is_measured for plan in known.all())
        is_last = rate >= 1 or n_rounds == options.max_rounds
        if best or is_last:
            break
        rate = min(1.0, options.growth * rate)
    if best:
        plans, reason, stopped = (_with_bound(best, bound),), "", ""
    else:
        plans, reason = (), " ".join([reason, *_advice(request, seen)])
        stopped = "" if rate >= 1 else f"max_rounds={n_rounds}, at samples of rate {rate:g}"
    seconds = time.monotonic() - started
    return FoundPlans(plans, reason, n_trees, n_evaluated, seconds, stopped, seen)


def _searched(
    known: KnownPlans, request: AcquisitionRequest, options: PublishedOptions
) -> tuple[KnownPlan | None, str]:
    """Return the best plan of one round, or why there is none."""
    graph = known.graph
    tables = {table for terminal in request.terminals for table in terminal.tables}
    landmarks = landmarks_of(graph, tables, n_landmarks=options.n_landmarks, seed=options.seed)
    connected = minimal_graphs(
        graph, request, landmarks, prune=options.prune, max_covers=options.max_covers
    )
    small = [subgraph for subgraph in connected if len(subgraph.tables) <= request.max_tables]
    light = [subgraph for subgraph in small if subgraph.weight <= request.max_informativeness]
    if not light:
        for subgraph in small:
            known.plan(subgraph.tree(graph))
        return None, _no_graph(request, connected, small)
    best = None
    for subgraph in light[: options.max_graphs]:
        known.plan(subgraph.tree(graph))  # a literal walk without steps never meets its own start
        plan = best_plan(JoinChoices(subgraph, known), options)
        if plan and plan.is_better(best):
            best = plan
    return best, "" if best else _no_plan(known.all(), options, len(light))


def _no_graph(
    request: AcquisitionRequest,
    connected: Sequence[MinimalGraph],
    small: Sequence[MinimalGraph],
) -> str:
    if not connected:
        names = ", ".join(repr(terminal.column) for terminal in request.terminals)
        return f"No joins connect tables that have all of {names}."
    if not small:
        min_tables = min(len(subgraph.tables) for subgraph in connected)
        return (
            f"The connections that were found have {min_tables} tables or more, max_tables is "
            f"{request.max_tables}."
        )
    return (
        f"The connection of least informativeness that was found has {small[0].weight:.6g}, "
        f"max_informativeness is {request.max_informativeness:g}."
    )


def _no_plan(plans: Sequence[KnownPlan], options: PublishedOptions, n_graphs: int) -> str:
    if any(plan.is_within for plan in plans):
        return (
            "Plans within the bounds were met, but the literal mode scores no start and no "
            "correlation of 0: take mode='repaired'."
        )
    left = n_graphs - options.max_graphs
    more = f" {left} connections were not tried: raise max_graphs." if left > 0 else ""
    return f"None of {len(plans)} plans that were met is within all bounds.{more}"


def _best_seen(plans: Sequence[KnownPlan]) -> dict[str, float]:
    """Return for each bound the best value among plans that break it and keep all others."""
    seen = {}
    by_price = sorted(
        (plan for plan in plans if not plan.is_cheap and plan.is_informative),
        key=lambda plan: plan.price,
    )
    by_weight = sorted(
        (plan for plan in plans if plan.is_cheap and not plan.is_informative),
        key=lambda plan: plan.informativeness,
    )
    cheapest = next((plan for plan in by_price[:_MAX_JOINED] if plan.is_good), None)
    lightest = next((plan for plan in by_weight[:_MAX_JOINED] if plan.is_good), None)
    if cheapest:
        seen["price"] = cheapest.price
    if lightest:
        seen["informativeness"] = lightest.informativeness
    qualities = [plan.measures.quality for plan in plans if plan.is_cheap and plan.is_informative]
    if qualities:
        seen["quality"] = max(qualities)
    return seen


def _advice(request: AcquisitionRequest, seen: dict[str, float]) -> list[str]:
    sentences = {
        "price": f"The cheapest that keeps the other bounds costs {{:.6g}}, the budget is "
        f"{request.budget:g}.",
        "informativeness": "The least informativeness of those that keep the other bounds is "
        f"{{:.6g}}, max_informativeness is {request.max_informativeness:g}.",
        "quality": "The highest quality of those that keep the other bounds is {:.6g}, "
        f"min_quality is {request.min_quality:g}.",
    }
    return [sentences[name].format(value) for name, value in seen.items()]


def _with_bound(plan: KnownPlan, bound: float | None) -> FoundPlan:
    if bound is None:
        return FoundPlan(plan.tree, plan.measures, False, 1.0)
    missing = max(bound - plan.measures.correlation, 0.0)
    return FoundPlan(plan.tree, plan.measures, missing == 0, missing / bound if missing else 0.0)
