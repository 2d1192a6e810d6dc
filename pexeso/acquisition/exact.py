"""The best plan of a request with its proof, and all plans that none beats (branch and bound).

Plans are formed by `trees`, measured but for their correlation, and kept where they are within the
bounds of the request. Their correlations are then measured in the order of the bounds on them
(`evaluation`), highest first. A plan is left out unmeasured where a measured one costs no more, has
no less quality and a correlation of at least its bound. The first plan is proved best once no bound
is left above its correlation, and the front is complete once nothing is left.

With a limit on time or memory what is left gives the gap: the share by which a correlation could
still be exceeded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from pexeso.acquisition.evaluation import Column, Evaluator, OutOfTime
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import (
    BY_ENDS,
    AcquisitionRequest,
    Distances,
    FoundPlan,
    FoundPlans,
    JoinTree,
    PlanMeasures,
    Terminal,
    TreeSearch,
)
from pexeso.acquisition.tables import CodedColumns
from pexeso.joins.measures import log2
from pexeso.runtime.formatting import listed_names
from pexeso.runtime.progress import checkpoint

_BATCH = 64  # So many plans are bounded before the most promising of them are measured

_TOLERANCE = 1e-12  # Correlations that differ by less are equal


@dataclass(frozen=True)
class Limits:
    max_seconds: float = math.inf
    front: bool = True


@dataclass(frozen=True)
class _Bounded:
    tree: JoinTree
    bounds: PlanMeasures  # Of which the correlation is a bound
    number: int
    is_tight: bool = False


@dataclass
class _Front:
    is_whole: bool
    plans: list[tuple[JoinTree, PlanMeasures]] = field(default_factory=list)

    @property
    def best(self) -> float:
        return max((measures.correlation for _, measures in self.plans), default=-math.inf)

    def beats(self, price: float, quality: float, max_correlation: float) -> bool:
        """Return whether a measured plan is at least as good in all that counts."""
        for _, measures in self.plans:
            if measures.correlation < max_correlation - _TOLERANCE:
                continue
            is_cheaper = measures.price <= price + _TOLERANCE
            if self.is_whole:
                if is_cheaper and measures.quality >= quality:
                    return True
            elif is_cheaper or measures.correlation > max_correlation + _TOLERANCE:
                return True
        return False

    def add(self, tree: JoinTree, plan_measures: PlanMeasures) -> None:
        """Add a plan unless one beats it, and drop those that it beats."""
        if self.beats(plan_measures.price, plan_measures.quality, plan_measures.correlation):
            return
        new = _Front(self.is_whole, [(tree, plan_measures)])
        self.plans = [
            (other, measures)
            for other, measures in self.plans
            if not new.beats(measures.price, measures.quality, measures.correlation)
        ]
        self.plans.append((tree, plan_measures))

    def ranked(self) -> list[tuple[JoinTree, PlanMeasures]]:
        """Return the plans by correlation, highest first, then price and signature."""
        return sorted(
            self.plans, key=lambda plan: (-plan[1].correlation, plan[1].price, plan[0].signature)
        )


def find_plans(
    graph: JoinGraph,
    request: AcquisitionRequest,
    coded: CodedColumns | None = None,
    limits: Limits | None = None,
    evaluator: Evaluator | None = None,
) -> FoundPlans:
    """Find the plans that no other beats, and prove it."""
    limits = Limits() if limits is None else limits
    coded = CodedColumns() if coded is None else coded
    evaluator = Evaluator(graph, coded) if evaluator is None else evaluator
    return _Search(graph, request, coded, limits, evaluator).plans()


class _Search:
    def __init__(
        self,
        graph: JoinGraph,
        request: AcquisitionRequest,
        coded: CodedColumns,
        limits: Limits,
        evaluator: Evaluator,
    ) -> None:
        self._graph, self._request, self._coded = graph, request, coded
        self._limits, self._evaluator = limits, evaluator
        self._started = time.perf_counter()
        self._front = _Front(limits.front)
        self._waiting: list[_Bounded] = []
        self._unmeasured: list[_Bounded] = []
        evaluator.deadline = self._started + limits.max_seconds
        self._n_trees = self._n_evaluated = 0

    def plans(self) -> FoundPlans:
        trees = TreeSearch(self._graph, self._request)
        is_whole = True
        columns = [terminal.column for terminal in self._request.have]
        beaten = set()
        # Most plans have no rows, or too little to tell of what is explained.
        for joins, sources in trees.parts():
            self._n_trees += 1
            have = [*zip(sources, columns, strict=False)]
            ceiling = self._evaluator.ceiling(tuple(sorted(joins, key=BY_ENDS)), have)
            if ceiling >= 0 and ceiling not in beaten:
                if self._graph.is_free and self._front.beats(0.0, 1.0, ceiling):
                    beaten.add(ceiling)
                else:
                    self._bound(trees.tree(joins, sources))
            if len(self._waiting) % _BATCH == _BATCH - 1:
                self._measure_best(1)
            checkpoint()
            if time.perf_counter() > self._evaluator.deadline:
                is_whole = False
                break
        self._measure_best()
        self._measure_others()
        self._unmeasured = [plan for plan in self._unmeasured if not self._is_beaten(plan)]
        stopped = "" if is_whole and not self._unmeasured else "time"
        if trees.truncated:
            is_whole, stopped = False, "memory"
        reason, best_seen = "", {}
        if not self._front.plans:
            reason, best_seen = why_none(self._graph, self._request, self._evaluator, stopped)
        return FoundPlans(
            tuple(self._proved(is_whole)),
            reason,
            self._n_trees,
            self._n_evaluated,
            time.perf_counter() - self._started,
            stopped,
            best_seen,
        )

    def _bound(self, tree: JoinTree) -> None:
        price = tree.price(self._graph)
        if tree.weight > self._request.max_informativeness:
            return
        if self._front.beats(price, 1.0, self._static_bound(tree.have, tree.want)):
            return
        bounds = self._evaluator.bounds(tree)
        if not bounds.n_rows or bounds.quality < self._request.min_quality:
            return
        plan = _Bounded(tree, bounds, self._n_trees)
        if not self._is_beaten(plan):
            self._waiting.append(plan)

    def _static_bound(self, have: Iterable[Column], want: Iterable[Column]) -> float:
        """Return a bound on the correlation of some columns that takes no pass over rows."""
        have, want = list(have), list(want)
        if not have or any(name in self._graph.tables[table].numeric for table, name in have):
            return math.inf
        return min(self._log_distinct(have), self._log_distinct(want))

    def _bound_of_all(self) -> float:
        sides = []
        for terminals in (self._request.have, self._request.want):
            bounds = [
                [
                    self._static_bound([(table, terminal.column)], [(table, terminal.column)])
                    for table in terminal.tables
                ]
                for terminal in terminals
            ]
            sides.append(math.fsum(max(of_terminal) for of_terminal in bounds))
        return min(sides) if self._request.have else math.inf

    def _log_distinct(self, columns: Iterable[Column]) -> float:
        sizes = (
            len(self._coded.values(self._graph.tables[table], name).values)
            for table, name in columns
        )
        return math.fsum(float(log2([max(size, 1)])[0]) for size in sizes)

    def _measure_best(self, limit: int | None = None) -> None:
        """Measure the plans of the highest bounds until none is above what was measured."""
        self._waiting.sort(key=_by_bound)
        while self._waiting and limit != 0:
            plan = self._waiting[-1]
            if plan.bounds.correlation <= self._front.best + _TOLERANCE:
                break
            if not plan.is_tight:
                self._waiting[-1] = self._tightened(plan)
                self._waiting.sort(key=_by_bound)
            else:
                self._waiting.pop()
                self._measure(plan)
                limit = None if limit is None else limit - 1

    def _measure_others(self) -> None:
        """Measure all plans that no measured one beats, those of few rows first."""
        waiting, self._waiting = self._waiting, []
        waiting.sort(key=lambda plan: (-plan.bounds.n_rows, *_by_bound(plan)))
        while waiting:
            plan = waiting.pop()
            if not self._is_beaten(plan) and not self._is_beaten(plan := self._tightened(plan)):
                self._measure(plan)

    def _is_beaten(self, plan: _Bounded) -> bool:
        bounds = plan.bounds
        return self._front.beats(bounds.price, bounds.quality, bounds.correlation)

    def _measure(self, plan: _Bounded) -> None:
        """Measure a plan's correlation; where time is over it is put back."""
        try:
            if time.perf_counter() > self._evaluator.deadline and self._front.plans:
                raise OutOfTime
            correlation = self._evaluator.correlation(plan.tree)
        except OutOfTime:
            self._unmeasured.append(plan)
            return
        self._n_evaluated += 1
        self._front.add(plan.tree, replace(plan.bounds, correlation=correlation))

    def _tightened(self, plan: _Bounded) -> _Bounded:
        tight = min(plan.bounds.correlation, self._evaluator.tighter_bound(plan.tree))
        return replace(plan, bounds=replace(plan.bounds, correlation=tight), is_tight=True)

    def _proved(self, is_whole: bool) -> Iterable[FoundPlan]:
        for position, (tree, measures) in enumerate(self._front.ranked()):
            bound = measures.correlation
            if not is_whole:
                bound = max(bound, self._bound_of_all())
            for other in self._unmeasured:
                beatable = position == 0 or (
                    other.bounds.price <= measures.price
                    and other.bounds.quality >= measures.quality
                )
                if beatable:
                    bound = max(bound, other.bounds.correlation)
            optimal = bound <= measures.correlation + _TOLERANCE
            gap = 0.0 if optimal else _gap(bound, measures.correlation)
            yield FoundPlan(tree, measures, optimal, gap)


def _by_bound(plan: _Bounded) -> tuple[float, int]:
    return plan.bounds.correlation, -plan.number


def _gap(bound: float, correlation: float) -> float:
    return 1.0 if math.isinf(bound) else (bound - correlation) / bound


_MAX_SECONDS = 10.0  # For each bound that is tried without

_NAMED = 5  # Tables of a component that are named


def why_none(
    graph: JoinGraph, request: AcquisitionRequest, evaluator: Evaluator, stopped: str
) -> tuple[str, Mapping[str, float]]:
    """Return why no plan was found, and the best values of plans that break one bound alone."""
    apart = _apart(graph, request)
    if apart:
        return apart, {}
    if stopped:
        return f"The search was stopped by its limit on {stopped} before it found a plan.", {}
    best = _best_values(graph, request, evaluator)
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
    unbound = replace(request, **dict(_loosest(graph).values()))
    if next(_within(graph, unbound, evaluator), None) is None:
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
    return f"'{table}' is connected with {listed_names(others, _NAMED, str)}"


def _loosest(graph: JoinGraph) -> dict[str, tuple[str, float]]:
    """Return the bound of each measure of a plan that excludes none."""
    return {
        "price": ("budget", math.inf),
        "informativeness": ("max_informativeness", math.inf),
        "quality": ("min_quality", 0.0),
        "tables": ("max_tables", max(len(graph.tables), 1)),
        "fan_out": ("max_fan_out", math.inf),
    }


def _best_values(
    graph: JoinGraph, request: AcquisitionRequest, evaluator: Evaluator
) -> dict[str, float]:
    best: dict[str, float] = {}
    for name, (bound, loosest) in _loosest(graph).items():
        is_least = name == "quality"
        limit = getattr(request, bound)
        if limit <= loosest if is_least else limit >= loosest:
            continue
        plans = _within(graph, replace(request, **{bound: loosest}), evaluator)
        if name == "tables":  # the first plan has the fewest
            plans = islice(plans, 1)
        values = [plan[name] for plan in plans]
        if values:
            best[name] = max(values) if is_least else min(values)
    return best


def _within(
    graph: JoinGraph, request: AcquisitionRequest, evaluator: Evaluator
) -> Iterator[dict[str, float]]:
    """Yield what is quickly known of the plans of a request that have rows, for some seconds.

    Those of the fewest tables come first.
    """
    started = time.perf_counter()
    for tree in TreeSearch(graph, request):
        if time.perf_counter() - started > _MAX_SECONDS:
            return
        bounds = evaluator.bounds(tree)
        if (
            bounds.n_rows
            and bounds.quality >= request.min_quality
            and bounds.informativeness <= request.max_informativeness
        ):
            known = {
                name: getattr(bounds, name) for name in ("price", "informativeness", "quality")
            }
            yield {**known, "tables": len(tree.tables), "fan_out": _fan_out(tree)}


def _fan_out(tree: JoinTree) -> int:
    """Return the most rows of a key in the tables that the joins of a plan lead to."""
    fan_out = 1
    for table, join in tree.rooted((*tree.have, *tree.want)[0][0]):
        if join is not None:
            chosen = join.join_set
            fan_out = max(fan_out, chosen.left_most if table == join.left else chosen.right_most)
    return fan_out
