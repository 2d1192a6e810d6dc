"""Why a request has no plan, and which bound would have to give way."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.search.evaluation import Evaluator
from pexeso.acquisition.search.plans import JoinTree
from pexeso.acquisition.search.request import AcquisitionRequest, Terminal
from pexeso.acquisition.search.trees import Distances, TreeSearch

_MAX_SECONDS = 10.0
"""For each bound that is tried without."""

_NAMED = 5
"""Tables of a component that are named."""


def why_none(
    graph: JoinGraph,
    request: AcquisitionRequest,
    evaluator: Evaluator,
    stopped: str,
    max_states: int,
) -> tuple[str, Mapping[str, float]]:
    """Return why no plan was found, and the best values of plans that break one bound alone.

    Parameters
    ----------
    graph : JoinGraph
        The tables and their joins.
    request : AcquisitionRequest
        What was asked for.
    evaluator : Evaluator
        Measures plans.
    stopped : str
        The limit that ended the search, "" if it was complete.
    max_states : int
        As that of the search.

    Returns
    -------
    tuple of (str, mapping of str to float)
        A sentence or more; and ``price``, ``informativeness``, ``quality``, ``tables`` and
        ``fan_out`` as far as they were met.
    """
    apart = _apart(graph, request)
    if apart:
        return apart, {}
    if stopped:
        return f"The search was stopped by its limit on {stopped} before it found a plan.", {}
    best = _best_values(graph, request, evaluator, max_states)
    sentences = {
        "price": f"the budget of {request.budget:g} is too small: the least that a plan costs is "
        f"{best.get('price', 0):.6g}",
        "informativeness": f"max_informativeness of {request.max_informativeness:g} excludes all "
        f"plans: the least that joins add up to is {best.get('informativeness', 0):.6g}",
        "quality": f"min_quality of {request.min_quality:g} excludes all plans: the best that one "
        f"has is {best.get('quality', 0):.6g}",
        "tables": f"max_tables of {request.max_tables} is too small: a plan has at least "
        f"{best.get('tables', 0):g}",
        "fan_out": f"max_fan_out of {request.max_fan_out:g} excludes all plans: the least rows of "
        f"one key that a plan has are {best.get('fan_out', 0):g}",
    }
    reasons = [sentence for name, sentence in sentences.items() if name in best]
    if reasons:
        return f"No plan keeps the bounds: {'; or '.join(reasons)}.", best
    unbound = replace(
        request,
        budget=math.inf,
        max_informativeness=math.inf,
        min_quality=0.0,
        max_tables=max(len(graph.tables), 1),
        max_fan_out=math.inf,
    )
    if next(_within(graph, unbound, evaluator, max_states), None) is None:
        return (
            "The tables are connected, but no join of them has a row: their keys do not meet.",
            {},
        )
    return "No plan keeps the bounds, not even with one of them left out: relax several.", {}


def _apart(graph: JoinGraph, request: AcquisitionRequest) -> str:
    """Return which columns no joins connect, or an empty text."""
    distances = Distances(graph)
    first, *others = request.terminals
    for terminal in others:
        if not any(
            table in distances.of(start)[0] for start in first.tables for table in terminal.tables
        ):
            return (
                f"No joins of at most {request.max_tables} tables (max_tables) lead from "
                f"{_where(first)} to {_where(terminal)}. "
                f"{_component(distances, first)}; {_component(distances, terminal)}."
            )
    return ""


def _where(terminal: Terminal) -> str:
    more = f" and {len(terminal.tables) - 1} more" if len(terminal.tables) > 1 else ""
    return f"{terminal.column!r} of '{terminal.tables[0]}'{more}"


def _component(distances: Distances, terminal: Terminal) -> str:
    table = terminal.tables[0]
    others = sorted(set(distances.of(table)[0]) - {table})
    if not others:
        return f"'{table}' joins no table that leads there"
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return f"'{table}' is connected with {', '.join(others[:_NAMED])}{more}"


def _best_values(
    graph: JoinGraph, request: AcquisitionRequest, evaluator: Evaluator, max_states: int
) -> dict[str, float]:
    """Return the best values of plans that break one bound alone."""
    best: dict[str, float] = {}
    if request.budget < math.inf:
        plans = _within(graph, replace(request, budget=math.inf), evaluator, max_states)
        best["price"] = min((plan.price for plan in plans), default=math.nan)
    if request.max_informativeness < math.inf:
        relaxed = replace(request, max_informativeness=math.inf)
        plans = _within(graph, relaxed, evaluator, max_states)
        best["informativeness"] = min((plan.informativeness for plan in plans), default=math.nan)
    if request.min_quality > 0:
        plans = _within(graph, replace(request, min_quality=0.0), evaluator, max_states)
        best["quality"] = max((plan.quality for plan in plans), default=math.nan)
    if request.max_tables < len(graph.tables):
        relaxed = replace(request, max_tables=len(graph.tables))
        first = next(_within(graph, relaxed, evaluator, max_states), None)  # of the fewest tables
        best["tables"] = math.nan if first is None else first.n_tables
    if request.max_fan_out < math.inf:
        plans = _within(graph, replace(request, max_fan_out=math.inf), evaluator, max_states)
        best["fan_out"] = min((plan.fan_out for plan in plans), default=math.nan)
    return {name: value for name, value in best.items() if not math.isnan(value)}


@dataclass(frozen=True)
class _Known:
    """What is quickly known of a plan."""

    price: float
    informativeness: float
    quality: float
    n_tables: int
    fan_out: int


def _within(
    graph: JoinGraph, request: AcquisitionRequest, evaluator: Evaluator, max_states: int
) -> Iterator[_Known]:
    """Yield the plans of a request that have rows, fewest tables first, for some seconds."""
    started = time.perf_counter()
    for tree in TreeSearch(graph, request, max_states):
        if time.perf_counter() - started > _MAX_SECONDS:
            return
        bounds = evaluator.bounds(tree)
        if (
            bounds.n_rows
            and bounds.quality >= request.min_quality
            and bounds.informativeness <= request.max_informativeness
        ):
            yield _Known(
                bounds.price,
                bounds.informativeness,
                bounds.quality,
                len(tree.tables),
                _fan_out(tree),
            )


def _fan_out(tree: JoinTree) -> int:
    """Return the most rows of a key in the tables that the joins of a plan lead to."""
    fan_out = 1
    for table, join in tree.rooted((*tree.have, *tree.want)[0][0]):
        if join is not None:
            chosen = join.join_set
            fan_out = max(fan_out, chosen.left_most if table == join.left else chosen.right_most)
    return fan_out
