"""Which tables to keep: deletions of least cost, each rebuilt from a table that is kept (Opt-Ret).

The problem is R2D2's: keep a table at its retention cost, or delete it and pay what rebuilding it
from one kept parent is expected to cost. A deleted table is nobody's source. It is solved as an
integer program by HiGHS.

Symbols of the paper: rho_v is `keep_cost`, d_e is `rebuild_cost`, x_v is `kept`, y_e is `source`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.runtime.compiled import compiled
from pexeso.runtime.extras import require

loops = compiled("pexeso.redundancy.loops")

TIME_LIMIT = 60.0  # seconds

_ROUNDING = 1e-9
_SOLVED_COST = 1e6  # of the dearest table in a program for the solver


@dataclass(frozen=True)
class RetentionProblem:
    """Tables, and by which edges they can be rebuilt; no cost is below 0."""

    keep_cost: np.ndarray  # float64 (n,)
    # int64 (e,): numbers of tables: the child can be rebuilt from the parent
    parents: np.ndarray
    children: np.ndarray
    rebuild_cost: np.ndarray  # float64 (e,): expected for a period where the child is deleted

    def with_edges(self, edges: np.ndarray) -> RetentionProblem:
        """Return the problem with some of the edges: numbers, or bool (e,)."""
        parents, children = self.parents[edges], self.children[edges]
        return RetentionProblem(self.keep_cost, parents, children, self.rebuild_cost[edges])


@dataclass(frozen=True)
class Retention:
    """Which tables are kept, and from which the others are rebuilt."""

    kept: np.ndarray
    # int64 (n,): of a deleted table the parent that it is rebuilt from; -1 for one that is kept
    source: np.ndarray
    cost: float
    keep_all_cost: float
    bound: float

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no plan costs less, but for rounding."""
        return self.cost <= self.bound + _ROUNDING * self.keep_all_cost

    @property
    def gap(self) -> float:
        """The share of the cost that a better plan could save at most."""
        return 0.0 if self.optimal else (self.cost - self.bound) / self.cost


def plan_retention(problem: RetentionProblem, *, time_limit: float = TIME_LIMIT) -> Retention:
    """Choose which tables to keep, at least cost.

    Where the solver stops before it has proved its plan, the plan is the best one known, and
    `Retention.gap` is above 0.

    Examples
    --------
    >>> sizes = np.array([400.0, 240.0, 240.0, 40.0])
    >>> parents, children = np.array([0, 0, 1, 2, 0, 1, 2]), np.array([1, 2, 2, 1, 3, 3, 3])
    >>> costs = np.array([350.0, 70, 66, 330, 20, 16, 16])
    >>> plan = plan_retention(RetentionProblem(sizes, parents, children, costs))
    >>> plan.cost, plan.source.tolist(), plan.optimal
    (722.0, [-1, -1, 1, 1], True)
    """
    # An edge that costs as much as keeping its child is never used: on a tie the table is kept.
    useful = problem.with_edges(problem.rebuild_cost < problem.keep_cost[problem.children])
    able = ~dominated(useful)
    useful = useful.with_edges(able[useful.parents])
    is_kept, bound = np.ones(len(able), bool), float(problem.keep_cost.sum())
    if len(useful.parents):
        is_kept, bound = _solved(useful, able, time_limit)
    return with_sources(problem, _without_needless(problem, is_kept), bound)


def dominated(problem: RetentionProblem) -> np.ndarray:
    """Return tables that some best plan does not keep: bool (n,).

    Let there be an edge from u to w, and for each edge from w to a table v other than u an edge
    from u to v that costs no more. Let m be the least cost of an edge to u (infinite where there is
    none), and ``keep[u] + cost[u, w] - m <= keep[w]``. Then a best plan does not keep w:

    - A plan that keeps both saves ``keep[w] - cost[u, w] > 0`` by deleting w: what was rebuilt from
      w is rebuilt from u for no more.
    - A plan that keeps w and not u pays m or more for u. Keep u and delete w: ``keep[u]`` and
      ``cost[u, w]`` are added, ``keep[w]`` and at least m are saved, and what was rebuilt from w is
      rebuilt from u for no more.

    Once w may not be kept, its edges go. That only raises m for other tables, and removes
    conditions, so steps made one after the other each hold for the problem that the former left. Of
    n equal copies one is left, which an integer program would have to find among n like it.
    """
    n = len(problem.keep_cost)
    n_children = np.bincount(problem.parents, minlength=n)
    spared = np.full(n, np.inf)
    np.minimum.at(spared, problem.children, problem.rebuild_cost)
    # Those first that are likely to dominate many others.
    order = np.lexsort((-n_children, problem.keep_cost - spared))
    able = np.ones(n, bool)
    loops.drop_dominated(
        *_edges_by(problem.parents, problem.children, problem.rebuild_cost, n),
        *_edges_by(problem.children, problem.parents, problem.rebuild_cost, n),
        problem.keep_cost,
        order[n_children[order] > 0],
        able,
        np.full(n, np.inf),
    )
    return ~able


def _edges_by(
    ends: np.ndarray, others: np.ndarray, costs: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(ends, kind="stable")
    return np.searchsorted(ends[order], np.arange(n + 1)), others[order], costs[order]


def _without_needless(problem: RetentionProblem, is_kept: np.ndarray) -> np.ndarray:
    """Delete what is kept for nothing: savings too small for the solver to tell."""
    source = with_sources(problem, is_kept, 0.0).source
    needed = np.zeros(len(is_kept), bool)
    needed[source[source >= 0]] = True
    saved = problem.keep_cost[problem.children] - problem.rebuild_cost
    free = is_kept[problem.parents] & is_kept[problem.children] & (saved > 0)
    edges = np.flatnonzero(free & ~needed[problem.children])
    is_kept = is_kept.copy()
    for edge in edges[np.argsort(-saved[edges], kind="stable")].tolist():
        parent, child = int(problem.parents[edge]), int(problem.children[edge])
        if is_kept[parent] and is_kept[child] and not needed[child]:
            is_kept[child], needed[parent] = False, True
    return is_kept


def _solved(
    problem: RetentionProblem, able: np.ndarray, time_limit: float
) -> tuple[np.ndarray, float]:
    """Solve the integer program: which tables are kept, bool (n,), and a bound on the cost.

    Those that are not `able` are deleted.
    """
    require("scipy", "The cheapest plan")
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, n_edges = len(able), len(problem.parents)
    unit = float(problem.keep_cost.max()) / _SOLVED_COST  # the solver's tolerances are absolute
    tables, edges = np.arange(n), np.arange(n_edges)
    # The source of a table is kept: y_e <= x_u.
    ends = np.concatenate([edges, edges]), np.concatenate([n + edges, problem.parents])
    sources = coo_array((np.repeat([1.0, -1.0], n_edges), ends), (n_edges, n + n_edges))
    # Kept, or rebuilt from one: x_v + sum y = 1. With >= 1 a plan could only cost more.
    ends = np.concatenate([tables, problem.children]), np.concatenate([tables, n + edges])
    one = coo_array((np.ones(n + n_edges), ends), (n, n + n_edges))
    solution = milp(
        np.concatenate([problem.keep_cost, problem.rebuild_cost]) / unit,
        integrality=np.concatenate([np.ones(n), np.zeros(n_edges)]),
        bounds=Bounds(0, np.concatenate([able, np.ones(n_edges)]).astype(float)),
        constraints=[
            LinearConstraint(sources.tocsr(), -np.inf, 0),
            LinearConstraint(one.tocsr(), 1, 1),
        ],
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    cheapest = np.where(able, problem.keep_cost, np.inf)
    np.minimum.at(cheapest, problem.children, problem.rebuild_cost)
    best = float(cheapest.sum())  # as if every table had its best source
    bound = getattr(solution, "mip_dual_bound", None)
    if bound is not None and np.isfinite(bound):
        best = max(best, float(bound) * unit)
    choices = [] if solution.x is None else [solution.x[:n] > 0.5]
    if solution.status != 0:  # stopped: what is simple may be better
        choices.append(greedily_kept(problem))
    plans = [with_sources(problem, choice, best) for choice in choices]
    return min(plans, key=lambda plan: plan.cost).kept, best


def greedily_kept(problem: RetentionProblem) -> np.ndarray:
    """Delete the tables by what each saves, as long as a parent is left: bool (n,)."""
    n = len(problem.keep_cost)
    order = np.lexsort((problem.parents, problem.rebuild_cost, problem.children))
    begins = np.searchsorted(problem.children[order], np.arange(n + 1))
    sources = problem.parents[order].tolist()
    prices = problem.rebuild_cost[order].tolist()
    cheapest = np.full(n, np.inf)
    np.minimum.at(cheapest, problem.children, problem.rebuild_cost)
    is_kept, needed = np.ones(n, bool), np.zeros(n, bool)
    for table in np.argsort(cheapest - problem.keep_cost, kind="stable").tolist():
        if needed[table]:
            continue
        for edge in range(begins[table], begins[table + 1]):
            if is_kept[sources[edge]] and prices[edge] < problem.keep_cost[table]:
                is_kept[table], needed[sources[edge]] = False, True
                break
    return is_kept


def with_sources(problem: RetentionProblem, kept: np.ndarray, bound: float) -> Retention:
    """Return a plan: every deleted table has its cheapest kept parent, ties by number."""
    usable = kept[problem.parents] & ~kept[problem.children]
    order = np.lexsort((problem.parents, problem.rebuild_cost))
    order = order[usable[order]][::-1]
    source = np.full(len(kept), -1, np.int64)
    cost = np.where(kept, problem.keep_cost, 0.0)
    source[problem.children[order]] = problem.parents[order]
    cost[problem.children[order]] = problem.rebuild_cost[order]
    if (source[~kept] < 0).any():
        lost = np.flatnonzero(~kept & (source < 0))[0]
        raise InputError(f"Table {lost} is deleted, and no table that it is rebuilt from is kept.")
    return Retention(kept, source, float(cost.sum()), float(problem.keep_cost.sum()), bound)
