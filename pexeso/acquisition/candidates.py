"""Which columns explain the shopper's best, if any that joins reach may be wanted.

Each column of each table within reach is a candidate, and is measured on all plans for it. Joins
lead to one row each unless `max_fan_out` of the bounds says otherwise: where rows multiply, whole
groups of the shopper's rows meet, by a league or a state, and what they tell is of groups.

Candidates are ranked by their gain,

    share of the shopper's rows that are joined * (correlation - chance).

A column with many values seems to explain anything: one with a value of its own for each key says
no more than the key. So chance is measured: the correlation with the candidate shuffled among the
rows of its table, which keeps how many values there are and how often, and loses what they say.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count, islice
from typing import Any

import numpy as np

from pexeso.acquisition.coded_columns import CodedColumns
from pexeso.acquisition.evaluation import Column, Evaluator, OutOfTime
from pexeso.acquisition.exact import Limits
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.plans import (
    AcquisitionRequest,
    FoundPlan,
    FoundPlans,
    Join,
    JoinTree,
    Terminal,
)
from pexeso.acquisition.row_counts import RowsOf
from pexeso.acquisition.trees import Distances, TreeSearch, is_closed
from pexeso.errors import InputError

_SHUFFLES = 3

_MAX_TREES = 32
"""Plans of a candidate that are measured; where there are more its plan is not proved best."""


def rank_candidates(
    graph: JoinGraph,
    have: Sequence[Terminal],
    bounds: Mapping[str, Any] | None = None,
    coded: CodedColumns | None = None,
    limits: Limits | None = None,
    *,
    seed: int = 0,
    rows_of: RowsOf | None = None,
) -> FoundPlans:
    """Rank the columns that joins reach by how well they explain some columns."""
    tables = {terminal.tables for terminal in have}
    if len(tables) != 1 or len(min(tables)) != 1:
        raise InputError(
            "Candidates are ranked by what they tell of columns of one table. Got "
            f"{[terminal.column for terminal in have]} of {sorted(tables)}."
        )
    limits = Limits() if limits is None else limits
    return _Ranking(graph, tuple(have), bounds, coded, limits, seed, rows_of).plans()


@dataclass(frozen=True)
class _Ranked:
    plan: FoundPlan
    gain: float

    @property
    def rank(self) -> tuple[float, tuple[object, ...]]:
        return -self.gain, self.plan.tree.signature


class _Ranking:
    def __init__(
        self,
        graph: JoinGraph,
        have: tuple[Terminal, ...],
        bounds: Mapping[str, Any] | None,
        coded: CodedColumns | None,
        limits: Limits,
        seed: int,
        rows_of: RowsOf | None,
    ) -> None:
        self._started = time.perf_counter()
        self._graph, self._have, self._bounds, self._limits = graph, have, bounds, limits
        self._distances = Distances(graph)
        self._start = have[0].tables[0]
        self._joined: dict[str, tuple[list[JoinTree], Iterator[JoinTree]]] = {}
        self._shares: dict[tuple[Join, ...], float] = {}
        coded = CodedColumns() if coded is None else coded
        options = self._request(Terminal("", (self._start,)))  # of which numbers are measured how
        deadline = self._started + limits.max_seconds
        self._evaluator = Evaluator(graph, options, coded, rows_of=rows_of, deadline=deadline)
        self._shuffled = [
            self._evaluator.in_order(_Shuffles(graph, self._start, seed, number))
            for number in range(_SHUFFLES)
        ]

    def _request(self, want: Terminal) -> AcquisitionRequest:
        bounds = {"max_fan_out": 1, **(self._bounds or {})}
        return AcquisitionRequest(self._have, (want,), **bounds)

    def plans(self) -> FoundPlans:
        ranked, stopped = [], ""
        n_columns = n_trees = 0
        try:
            for column in self._columns():
                n_columns += 1
                best, n_measured = self._measured(column)
                n_trees += n_measured
                if best is not None and best.gain > 0:
                    ranked.append(best)
        except OutOfTime:
            stopped = "time"
        ranked.sort(key=lambda candidate: candidate.rank)
        reason = ""
        if not ranked:
            reason = (
                f"None of the {n_columns:,} columns within reach tells more than chance."
                if n_columns
                else "No joins lead from your table to another within the bounds."
            )
        plans = tuple(candidate.plan for candidate in ranked)
        return FoundPlans(plans, reason, n_columns, n_trees, self._seconds(), stopped)

    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    def _columns(self) -> Iterator[Terminal]:
        """Yield the columns of all tables within reach, nearest tables first."""
        hops = self._distances.of(self._start)[0]
        for table in sorted(hops, key=lambda name: (hops[name], name)):
            if not self._graph.tables[table].owned and table != self._start:
                for column in self._graph.tables[table].columns:
                    yield Terminal(column, (table,))

    def _trees(self, want: Terminal, request: AcquisitionRequest) -> Iterator[JoinTree]:
        """Yield the plans for a column, which are those for its table that keep the bounds."""
        (table,) = want.tables
        if table not in self._joined:
            whole = replace(request, want=(Terminal("", want.tables),), budget=math.inf)
            search = TreeSearch(self._graph, whole, self._limits.max_states, self._distances)
            self._joined[table] = [], iter(search)
        formed, others = self._joined[table]
        for at in count():
            if at == len(formed):
                tree = next(others, None)
                if tree is None:
                    return
                formed.append(tree)
            tree = replace(formed[at], want=((table, want.column),))
            is_cheap = math.isinf(request.budget) or tree.price(self._graph) <= request.budget
            if is_cheap and is_closed(self._graph, tree.joins, tree.columns):
                yield tree

    def _share(self, tree: JoinTree) -> float:
        """Return the share of the rows to be explained that a plan joins."""
        if tree.joins not in self._shares:
            self._shares[tree.joins] = self._evaluator.share_of_rows(tree, self._start)
        return self._shares[tree.joins]

    def _measured(self, want: Terminal) -> tuple[_Ranked | None, int]:
        """Measure the plans of a candidate; None if it has none, or is only a key."""
        request = self._request(want)
        trees = self._trees(want, request)
        best, n_measured = None, 0
        for tree in islice(trees, _MAX_TREES):
            if self._seconds() > self._limits.max_seconds:
                raise OutOfTime
            if _joins_by(tree, tree.want[0]):
                continue
            measures = self._evaluator.measures(tree)
            share = self._share(tree)
            n_measured += 1
            max_gain = share * measures.correlation  # the gain if chance told nothing
            if (
                not max_gain
                or measures.quality < request.min_quality
                or (best and max_gain <= best.gain)
            ):
                continue
            chance = (
                math.fsum(evaluator.correlation(tree) for evaluator in self._shuffled) / _SHUFFLES
            )
            plan = FoundPlan(tree, measures, True, 0.0, chance)
            ranked = _Ranked(plan, share * (measures.correlation - chance))
            best = ranked if best is None or ranked.rank < best.rank else best
        if best is not None and next(trees, None) is not None:
            plan = best.plan
            best = _Ranked(FoundPlan(plan.tree, plan.measures, False, 1.0, plan.chance), best.gain)
        return best, n_measured


class _Shuffles:
    """One random order of the rows of each table, made when it is first asked for."""

    def __init__(self, graph: JoinGraph, start: str, seed: int, number: int) -> None:
        self._graph, self._start, self._name = graph, start, f"{seed}\x1f{number}"
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, column: Column) -> np.ndarray | None:
        """Return the order in which a column is taken; None as its rows stand."""
        table = column[0]
        if table == self._start:
            return None
        if table not in self._known:
            key = blake2b(f"{self._name}\x1f{table}".encode(), digest_size=8).digest()
            random = np.random.Generator(np.random.Philox(int.from_bytes(key, "little")))
            self._known[table] = random.permutation(self._graph.tables[table].n_rows)
        return self._known[table]


def _joins_by(tree: JoinTree, column: Column) -> bool:
    """Return whether a column is one by which its table joins: it repeats what is known."""
    return any(
        column[1] in join.columns_of(column[0])
        for join in tree.joins
        if column[0] in (join.left, join.right)
    )
