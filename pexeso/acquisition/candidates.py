"""Which columns explain the shopper's best, if any that joins reach may be wanted.

Each column of each table within reach is a candidate, and is measured on all plans for it, which
are paths of joins. Joins lead to one row each unless `max_fan_out` of the bounds says otherwise:
where rows multiply, whole groups of the shopper's rows meet, by a league or a state, and what they
tell is of groups.

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
from itertools import count, repeat
from typing import Any

import numpy as np

from pexeso.acquisition.evaluation import Column, Evaluator, OutOfTime
from pexeso.acquisition.exact import Limits
from pexeso.acquisition.graph import JoinGraph
from pexeso.acquisition.paths import Path, Paths
from pexeso.acquisition.plans import (
    AcquisitionRequest,
    Distances,
    FoundPlan,
    FoundPlans,
    Join,
    JoinTree,
    PlanMeasures,
    Terminal,
    TreeSearch,
    is_closed,
)
from pexeso.acquisition.row_counts import RowsOf
from pexeso.acquisition.tables import CodedColumns
from pexeso.runtime.progress import advance, begin_steps, checkpoint

_SHUFFLES = 3

# Plans of a candidate that are measured; where there are more its plan is not proved best.
_MAX_TREES = 32


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
    """Rank the columns that joins reach by how well they explain some columns of one table."""
    limits = Limits() if limits is None else limits
    coded = CodedColumns() if coded is None else coded
    return _Ranking(graph, tuple(have), bounds or {}, coded, limits, seed, rows_of).plans()


@dataclass(frozen=True)
class _Ranked:
    """The best plan of a candidate, with its place among all: highest gain, then fewest joins."""

    rank: tuple[float, tuple[object, ...], Column]
    joins: tuple[Join, ...]
    n_rows: float
    correlation: float
    chance: float
    is_best: bool = True

    @property
    def gain(self) -> float:
        """The share of the rows that are joined times what the candidate tells beyond chance."""
        return -self.rank[0]


class _Ranking:
    def __init__(
        self,
        graph: JoinGraph,
        have: tuple[Terminal, ...],
        bounds: Mapping[str, Any],
        coded: CodedColumns,
        limits: Limits,
        seed: int,
        rows_of: RowsOf | None,
    ) -> None:
        self._started = time.perf_counter()
        self._deadline = self._started + limits.max_seconds
        self._graph, self._seed = graph, seed
        self._start = have[0].tables[0]
        self._have = tuple((self._start, terminal.column) for terminal in have)
        # Of which columns are numbers is known of the graph, and what is wanted is any column.
        any_column = Terminal("", (self._start,))
        self._request = AcquisitionRequest(have, (any_column,), **{"max_fan_out": 1, **bounds})
        self._is_limited = graph.has_natural or self._request.budget < math.inf
        self._evaluator = Evaluator(graph, coded, rows_of=rows_of)
        self._distances = Distances(graph)
        self._paths = Paths(graph, self._have, coded, rows_of, self._deadline)
        self._formed: list[tuple[tuple[Join, ...], Path, float, tuple[object, ...]]] = []

    def plans(self) -> FoundPlans:
        ranked, stopped = [], ""
        n_columns = n_trees = 0
        try:
            tables = [*self._tables()]
            begin_steps(len(tables))
            for n_done, table in enumerate(tables):
                advance(0, to=n_done)
                self._formed, parts = [], self._parts(table)
                known = self._graph.tables[table]
                orders = [self._order(table, known.n_rows, number) for number in range(_SHUFFLES)]
                for column in known.columns:
                    n_columns += 1
                    best, n_measured = self._best_plan((table, column), parts, orders)
                    n_trees += n_measured
                    if best is not None and best.gain > 0:
                        ranked.append(best)
        except OutOfTime:
            stopped = "time"
        ranked.sort(key=lambda candidate: candidate.rank)
        reason = ""
        if not ranked:
            reason = (
                f"None of the {n_columns:,} columns within reach explains more than chance."
                if n_columns
                else "No joins lead from your table to another within the bounds."
            )
        plans = tuple(map(self._found_plan, ranked))
        seconds = time.perf_counter() - self._started
        return FoundPlans(plans, reason, n_columns, n_trees, seconds, stopped)

    def _found_plan(self, candidate: _Ranked) -> FoundPlan:
        tree = self._tree(candidate.joins, candidate.rank[-1])
        measures = PlanMeasures(
            tree.price(self._graph),
            tree.weight,
            self._evaluator.quality(tree),
            candidate.correlation,
            round(candidate.n_rows),
        )
        gap = 0.0 if candidate.is_best else 1.0
        return FoundPlan(tree, measures, candidate.is_best, gap, candidate.chance)

    def _tables(self) -> Iterator[str]:
        """Yield the tables within reach that can be bought, nearest first."""
        hops = self._distances.of(self._start)[0]
        for table in sorted(hops, key=lambda name: (hops[name], name)):
            if not self._graph.tables[table].owned and table != self._start:
                yield table

    def _parts(self, table: str) -> Iterator[tuple[tuple[Join, ...], tuple[str, ...]]]:
        request = replace(self._request, want=(Terminal("", (table,)),), budget=math.inf)
        return TreeSearch(self._graph, request, self._distances).parts()

    def _order(self, table: str, n_rows: int, number: int) -> np.ndarray:
        """Return one random order of the rows of a table."""
        key = blake2b(f"{self._seed}\x1f{number}\x1f{table}".encode(), digest_size=8).digest()
        random = np.random.Generator(np.random.Philox(int.from_bytes(key, "little")))
        return random.permutation(n_rows)

    def _best_plan(
        self,
        want: Column,
        parts: Iterator[tuple[tuple[Join, ...], tuple[str, ...]]],
        orders: Sequence[np.ndarray],
    ) -> tuple[_Ranked | None, int]:
        """Measure the plans of a candidate; None if it has none, or is only a key."""
        best: _Ranked | None = None
        n_trees = n_measured = 0
        cells: tuple[np.ndarray, int] | None = None
        for at in count():
            checkpoint()
            if at == len(self._formed):
                part = next(parts, None)
                if part is None:
                    return best, n_measured
                path = self._paths.path(reversed(part[0]))
                names = [(join.left, join.right, join.join_set.pairs) for join in part[0]]
                order = (len(names), tuple(sorted(names)))
                self._formed.append((part[0], path, self._paths.share(path), order))
            joins, path, share, order = self._formed[at]
            if self._is_limited and not self._is_open(self._tree(joins, want)):
                continue
            n_trees += 1
            if n_trees > _MAX_TREES:
                return None if best is None else replace(best, is_best=False), n_measured
            if time.perf_counter() > self._deadline:
                raise OutOfTime
            if want[1] in path.join_columns:  # it repeats what is known
                continue
            if cells is None:
                cells = self._paths.cells(want)
                shuffled = [(cells[0][order], cells[1]) for order in orders]
            correlation = self._paths.correlation(path, cells)
            n_measured += 1
            max_gain = share * correlation  # the gain if chance told nothing
            if not max_gain or (best is not None and max_gain <= best.gain):
                continue
            min_quality = self._request.min_quality
            if min_quality > 0 and self._evaluator.quality(self._tree(joins, want)) < min_quality:
                continue
            by_chance = map(self._paths.correlation, repeat(path), shuffled)
            chance = math.fsum(by_chance) / _SHUFFLES
            rank = (-share * (correlation - chance), order, want)
            if best is None or rank < best.rank:
                best = _Ranked(rank, joins, path.n_rows, correlation, chance)
        return best, n_measured

    def _tree(self, joins: tuple[Join, ...], want: Column) -> JoinTree:
        return JoinTree.of(joins, self._have, [want])

    def _is_open(self, tree: JoinTree) -> bool:
        if tree.price(self._graph) > self._request.budget:
            return False
        return is_closed(self._graph, tree.joins, tree.columns)
