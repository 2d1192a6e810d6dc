"""Which columns explain the shopper's best, if any that joins reach may be wanted.

Each column of each table within reach is a candidate. It is first measured on the plan with the
fewest tables and the lightest joins; for the most promising ones all plans are searched.

Joins lead to one row each unless `max_fan_out` of the bounds says otherwise: where rows multiply,
whole groups of the shopper's rows meet, by a league or a state, and what they tell is of groups.

A column with many values seems to explain anything: with a value of its own in each row it
determines every other column. So candidates are ranked by what they tell beyond chance, which is
measured: the correlation with the explained columns shuffled, the mean of `_SHUFFLES` times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.search.evaluation import Column, Evaluator, OutOfTime
from pexeso.acquisition.search.exact import Limits, find_plans
from pexeso.acquisition.search.found import FoundPlan, FoundPlans
from pexeso.acquisition.search.plans import JoinTree
from pexeso.acquisition.search.request import AcquisitionRequest, Terminal
from pexeso.acquisition.search.trees import Distances, TreeSearch
from pexeso.errors import InputError

_SHUFFLES = 3

_TREES = 8
"""Plans that are tried for a candidate until one has rows."""


@dataclass(frozen=True)
class _Candidate:
    tree: JoinTree
    request: AcquisitionRequest
    correlation: float
    chance: float

    @property
    def rank(self) -> tuple[float, tuple[object, ...]]:
        """Order candidates by what they tell beyond chance, most first."""
        return self.chance - self.correlation, self.tree.signature


def rank_candidates(
    graph: JoinGraph,
    have: Sequence[Terminal],
    bounds: Mapping[str, Any] | None = None,
    coded: CodedColumns | None = None,
    limits: Limits | None = None,
    *,
    k: int = 10,
    seed: int = 0,
) -> FoundPlans:
    """Rank the columns that joins reach by how well they explain some columns.

    Parameters
    ----------
    graph : JoinGraph
        The tables and their joins.
    have : sequence of Terminal
        The columns to be explained, each of one table.
    bounds : mapping of str to Any, optional
        Bounds and options of `AcquisitionRequest`, by name.
    coded : CodedColumns, optional
        Codes of columns and keys that are there already.
    limits : Limits, optional
        Beyond the time limit no further candidate is measured.
    k : int
        So many are returned at most.
    seed : int
        Of the shuffles.

    Returns
    -------
    FoundPlans
        One plan for each column, best first, those that tell no more than chance left out. Each is
        proved best for its column or has a gap; `FoundPlan.chance` is what shuffled columns tell.

    Raises
    ------
    InputError
        If there is nothing to explain.
    """
    if not have or any(len(each.tables) != 1 for each in have):
        raise InputError("Candidates are ranked by what they tell of columns of given tables.")
    limits = Limits() if limits is None else limits
    return _Ranking(graph, tuple(have), bounds, coded, limits, seed).found(k)


class _Ranking:
    def __init__(
        self,
        graph: JoinGraph,
        have: tuple[Terminal, ...],
        bounds: Mapping[str, Any] | None,
        coded: CodedColumns | None,
        limits: Limits,
        seed: int,
    ) -> None:
        self._started = time.perf_counter()
        self._graph, self._have, self._bounds, self._limits = graph, have, bounds, limits
        self._coded = CodedColumns() if coded is None else coded
        self._distances = Distances(graph)
        columns = [(each.tables[0], each.column) for each in have]
        deadline = self._started + limits.max_seconds
        request = self._request(Terminal("", (columns[0][0],)))  # of which the options count
        self._evaluator = Evaluator(graph, request, self._coded, deadline=deadline)
        self._by_chance = [
            Evaluator(
                graph,
                request,
                self._coded,
                deadline=deadline,
                orders=_orders(graph, columns, seed, number),
            )
            for number in range(_SHUFFLES)
        ]

    def _request(self, want: Terminal) -> AcquisitionRequest:
        return AcquisitionRequest(self._have, (want,), **{"max_fan_out": 1, **(self._bounds or {})})

    def found(self, k: int) -> FoundPlans:
        candidates, n_columns, stopped = [], 0, ""
        for column in self._columns():
            if self._seconds() > self._limits.max_seconds:
                stopped = "time"
                break
            n_columns += 1
            try:
                measured = self._screened(column)
            except OutOfTime:
                stopped = "time"
                break
            if measured is not None and measured.correlation > measured.chance:
                candidates.append(measured)
        candidates.sort(key=lambda each: each.rank)
        plans = [self._searched(each) for each in candidates[:k]]
        plans.sort(key=lambda plan: (plan.chance - plan.measures.correlation, plan.tree.signature))
        reason = ""
        if not plans:
            reason = (
                "No joins lead from your table to another within the bounds."
                if not n_columns
                else f"None of the {n_columns:,} columns within reach tells more than chance."
            )
        return FoundPlans(
            tuple(plans), reason, n_columns, len(candidates), self._seconds(), stopped
        )

    def _seconds(self) -> float:
        return time.perf_counter() - self._started

    def _columns(self) -> Iterator[Terminal]:
        """Yield the columns of all tables within reach, nearest tables first."""
        start = self._have[0].tables[0]
        hops = self._distances.of(start)[0]
        for table in sorted(hops, key=lambda name: (hops[name], name)):
            if not self._graph.tables[table].owned and table != start:
                for column in self._graph.tables[table].columns:
                    yield Terminal(column, (table,))

    def _screened(self, want: Terminal) -> _Candidate | None:
        """Measure a candidate on its lightest plan; None if it has none, or is only a key."""
        request = self._request(want)
        trees = TreeSearch(self._graph, request, self._limits.max_states, self._distances)
        for tree in islice(trees, _TREES):
            if _joins_by(tree, tree.want[0]):
                return None
            bounds = self._evaluator.bounds(tree)
            if bounds.n_rows and bounds.quality >= request.min_quality:
                correlation = self._evaluator.correlation(tree)
                return _Candidate(tree, request, correlation, self._chance(tree))
        return None

    def _chance(self, tree: JoinTree) -> float:
        return math.fsum(each.correlation(tree) for each in self._by_chance) / _SHUFFLES

    def _searched(self, candidate: _Candidate) -> FoundPlan:
        """Search all plans for a candidate, in the time that is left."""
        left = max(self._limits.max_seconds - self._seconds(), 0.0)
        limits = replace(self._limits, max_seconds=left, front=False)
        found = find_plans(self._graph, candidate.request, self._coded, limits)
        if found.plans and not _joins_by(found.plans[0].tree, found.plans[0].tree.want[0]):
            try:
                return replace(found.plans[0], chance=self._chance(found.plans[0].tree))
            except OutOfTime:
                pass
        measures = Evaluator(self._graph, candidate.request, self._coded).measures(candidate.tree)
        return FoundPlan(candidate.tree, measures, False, 1.0, candidate.chance)


def _joins_by(tree: JoinTree, column: Column) -> bool:
    """Return whether a column is one by which its table joins: it repeats what is known."""
    return any(
        column[1] in join.columns_of(column[0])
        for join in tree.joins
        if column[0] in (join.left, join.right)
    )


def _orders(
    graph: JoinGraph, columns: Sequence[Column], seed: int, number: int
) -> dict[Column, np.ndarray]:
    """Return one random order for each table, for its columns together."""
    orders = {}
    for table in sorted({table for table, _ in columns}):
        key = blake2b(f"{seed}\x1f{number}\x1f{table}".encode(), digest_size=8).digest()
        random = np.random.Generator(np.random.Philox(int.from_bytes(key, "little")))
        order = random.permutation(graph.tables[table].n_rows)
        orders.update({column: order for column in columns if column[0] == table})
    return orders
