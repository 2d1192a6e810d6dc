"""Which tables to keep: deletions of least cost, each rebuilt from a table that is kept (Opt-Ret).

The problem is R2D2's: keep a table at its retention cost, or delete it and pay what rebuilding it
from one kept parent is expected to cost. A deleted table is nobody's source. It is solved as an
integer program, weakly connected components apart where they are large.

Symbols of the paper: rho_v is `keep_cost`, d_e is `rebuild_cost`, x_v is `kept`, y_e is `source`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.redundancy.solver.reductions import reduced

TIME_LIMIT = 60.0
"""Seconds that the solver may take for all components together."""

_ROUNDING = 1e-9

_SOLVED_COST = 1e6
"""What the dearest table costs in a program for the solver."""

_EDGES_TOGETHER = 20_000
"""Components are solved together up to so many edges."""

_LEAST_SECONDS = 0.1
"""What every component gets, so that each has a bound."""


@dataclass(frozen=True)
class RetentionProblem:
    """Tables, and by which edges they can be rebuilt.

    Attributes
    ----------
    keep_cost : float64 (n,)
        Of each table for a period, 0 or more.
    parents, children : int64 (e,)
        Numbers of tables: the child can be rebuilt from the parent.
    rebuild_cost : float64 (e,)
        Expected for a period where the child is deleted, 0 or more.
    """

    keep_cost: np.ndarray
    parents: np.ndarray
    children: np.ndarray
    rebuild_cost: np.ndarray

    def __post_init__(self) -> None:
        n, n_edges = len(self.keep_cost), len(self.parents)
        if not len(self.children) == len(self.rebuild_cost) == n_edges:
            raise InputError(
                f"Edges need a parent, a child and a cost each. Got {n_edges}, "
                f"{len(self.children)} and {len(self.rebuild_cost)}."
            )
        for name, costs in (("keep_cost", self.keep_cost), ("rebuild_cost", self.rebuild_cost)):
            if len(costs) and not (np.isfinite(costs).all() and costs.min() >= 0):
                raise InputError(f"{name} must be finite and 0 or more, inclusive.")
        for ends in (self.parents, self.children):
            if n_edges and not (ends.min() >= 0 and ends.max() < n):
                raise InputError(f"Edges are among the tables 0 to {n - 1}, inclusive.")
        if (self.parents == self.children).any():
            raise InputError("No table can be rebuilt from itself.")


@dataclass(frozen=True)
class Retention:
    """Which tables are kept, and from which the others are rebuilt.

    Attributes
    ----------
    source : int64 (n,)
        Of a deleted table the parent that it is rebuilt from; -1 for one that is kept.
    """

    kept: np.ndarray
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

    Parameters
    ----------
    time_limit : float
        Seconds, above 0. Where the solver stops before it has proved its plan, the plan is the best
        it has found, and `Retention.gap` is above 0.

    Notes
    -----
    Reductions that leave the least cost as it is: an edge that costs as much as keeping its child,
    or more, is never used (on a tie the table is kept); a table without edges is kept; others are
    those of `pexeso.redundancy.solver.reductions`.

    Examples
    --------
    >>> sizes = np.array([400.0, 240.0, 240.0, 40.0])
    >>> parents, children = np.array([0, 0, 1, 2, 0, 1, 2]), np.array([1, 2, 2, 1, 3, 3, 3])
    >>> costs = np.array([350.0, 70, 66, 330, 20, 16, 16])
    >>> plan = plan_retention(RetentionProblem(sizes, parents, children, costs))
    >>> plan.cost, plan.source.tolist(), plan.optimal
    (722.0, [-1, -1, 1, 1], True)
    """
    if not time_limit > 0:
        raise InputError(f"time_limit is in seconds and above 0. Got {time_limit!r}.")
    useful = problem.rebuild_cost < problem.keep_cost[problem.children]
    parents, children = problem.parents[useful], problem.children[useful]
    costs = problem.rebuild_cost[useful]
    fewer = reduced(problem.keep_cost, parents, children, costs)
    parents, children, costs = (array[fewer.edges] for array in (parents, children, costs))
    is_kept = np.ones(len(problem.keep_cost), bool)
    bound = float(problem.keep_cost.sum())
    if len(parents):
        nodes, ends = np.unique(np.concatenate([parents, children]), return_inverse=True)
        part_kept, part_bound = _by_component(
            problem.keep_cost[nodes],
            fewer.able[nodes],
            ends[: len(parents)],
            ends[len(parents) :],
            costs,
            time_limit,
        )
        is_kept[nodes] = part_kept
        bound += part_bound - float(problem.keep_cost[nodes].sum())
    return with_sources(problem, _without_needless(problem, is_kept), bound)


def _without_needless(problem: RetentionProblem, is_kept: np.ndarray) -> np.ndarray:
    """Delete what is kept for nothing: savings too small for the solver to tell."""
    source = with_sources(problem, is_kept, 0.0).source
    needed = np.zeros(len(is_kept), bool)
    needed[source[source >= 0]] = True
    free = is_kept[problem.parents] & is_kept[problem.children] & ~needed[problem.children]
    free &= problem.rebuild_cost < problem.keep_cost[problem.children]
    order = np.flatnonzero(free)
    saved = problem.keep_cost[problem.children[order]] - problem.rebuild_cost[order]
    is_kept = is_kept.copy()
    for edge in order[np.argsort(-saved, kind="stable")].tolist():
        parent, child = int(problem.parents[edge]), int(problem.children[edge])
        if is_kept[parent] and is_kept[child] and not needed[child]:
            is_kept[child], needed[parent] = False, True
    return is_kept


def _by_component(
    keep_cost: np.ndarray,
    able: np.ndarray,
    parents: np.ndarray,
    children: np.ndarray,
    costs: np.ndarray,
    time_limit: float,
) -> tuple[np.ndarray, float]:
    """Solve large components by themselves, and small ones together: a call has its own price."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(keep_cost)
    links = coo_array((np.ones(len(parents)), (parents, children)), (n, n))
    n_components, component = connected_components(links, directed=False)
    sizes = np.bincount(component[parents], minlength=n_components)
    group = np.zeros(n_components, np.int64)
    large = np.flatnonzero(sizes > _EDGES_TOGETHER)
    small = np.flatnonzero(sizes <= _EDGES_TOGETHER)
    group[small] = np.cumsum(sizes[small]) // _EDGES_TOGETHER
    group[large] = group.max(initial=0) + 1 + np.argsort(np.argsort(sizes[large], kind="stable"))
    is_kept, bound = np.ones(n, bool), 0.0
    until = time.monotonic() + time_limit
    for number in np.unique(group):  # the largest ones last
        nodes = np.flatnonzero(group[component] == number)
        edges = np.flatnonzero(group[component[parents]] == number)
        positions = np.zeros(n, np.int64)
        positions[nodes] = np.arange(len(nodes))
        is_kept[nodes], part = _solved(
            keep_cost[nodes],
            able[nodes],
            positions[parents[edges]],
            positions[children[edges]],
            costs[edges],
            max(_LEAST_SECONDS, until - time.monotonic()),
        )
        bound += part
    return is_kept, bound


def _solved(
    keep_cost: np.ndarray,
    able: np.ndarray,
    parents: np.ndarray,
    children: np.ndarray,
    costs: np.ndarray,
    time_limit: float,
) -> tuple[np.ndarray, float]:
    """Solve the integer program: which tables are kept, bool (n,), and a bound on the cost.

    Those that are not `able` are deleted.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, n_edges = len(keep_cost), len(parents)
    unit = float(keep_cost.max()) / _SOLVED_COST  # the solver's tolerances are absolute
    edges = np.arange(n_edges)
    # The source of a table is kept: y_e <= x_u.
    rows = np.concatenate([edges, edges])
    columns = np.concatenate([n + edges, parents])
    values = np.concatenate([np.ones(n_edges), -np.ones(n_edges)])
    sources = coo_array((values, (rows, columns)), (n_edges, n + n_edges))
    # Kept, or rebuilt from one: x_v + sum y = 1. With >= 1 a plan could only cost more.
    rows = np.concatenate([np.arange(n), children])
    columns = np.concatenate([np.arange(n), n + edges])
    one = coo_array((np.ones(n + n_edges), (rows, columns)), (n, n + n_edges))
    solution = milp(
        np.concatenate([keep_cost, costs]) / unit,
        integrality=np.concatenate([np.ones(n), np.zeros(n_edges)]),
        bounds=Bounds(0, np.concatenate([able, np.ones(n_edges)]).astype(float)),
        constraints=[
            LinearConstraint(sources.tocsr(), -np.inf, 0),
            LinearConstraint(one.tocsr(), 1, 1),
        ],
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    bound = getattr(solution, "mip_dual_bound", None)
    greedy = greedily_kept(keep_cost, parents, children, costs)
    cheapest = np.where(able, keep_cost, np.inf)
    np.minimum.at(cheapest, children, costs)
    best = float(cheapest.sum())  # as if every table had its best source
    if bound is not None and np.isfinite(bound):
        best = max(best, float(bound) * unit)
    if solution.x is None:
        return greedy, best
    is_kept = solution.x[:n] > 0.5
    problem = RetentionProblem(keep_cost, parents, children, costs)
    if solution.status != 0:  # stopped: what is simple may be better
        plans = [with_sources(problem, choice, best) for choice in (is_kept, greedy)]
        is_kept = min(plans, key=lambda plan: plan.cost).kept
    return is_kept, best


def greedily_kept(
    keep_cost: np.ndarray, parents: np.ndarray, children: np.ndarray, costs: np.ndarray
) -> np.ndarray:
    """Delete the tables by what each saves, as long as a parent is left: bool (n,).

    It is the fallback of a solver that has run out of time; a plan of its own is rarely the best.
    """
    order = np.lexsort((parents, costs, children))
    begins = np.searchsorted(children[order], np.arange(len(keep_cost) + 1))
    sources, prices = parents[order].tolist(), costs[order].tolist()
    cheapest = np.full(len(keep_cost), np.inf)
    np.minimum.at(cheapest, children, costs)
    is_kept, needed = np.ones(len(keep_cost), bool), np.zeros(len(keep_cost), bool)
    by_saving = np.argsort(-(keep_cost - cheapest), kind="stable")
    for table in by_saving.tolist():
        if needed[table] or cheapest[table] >= keep_cost[table]:
            continue
        for edge in range(begins[table], begins[table + 1]):
            if is_kept[sources[edge]] and prices[edge] < keep_cost[table]:
                is_kept[table] = False
                needed[sources[edge]] = True
                break
    return is_kept


def with_sources(problem: RetentionProblem, kept: np.ndarray, bound: float) -> Retention:
    """Return a plan: every deleted table has its cheapest kept parent, ties by number."""
    usable = kept[problem.parents] & ~kept[problem.children]
    order = np.lexsort((problem.parents, problem.rebuild_cost))
    order = order[usable[order]]
    source = np.full(len(kept), -1, np.int64)
    cost = np.where(kept, problem.keep_cost, 0.0)
    source[problem.children[order[::-1]]] = problem.parents[order[::-1]]
    cost[problem.children[order[::-1]]] = problem.rebuild_cost[order[::-1]]
    if (source[~kept] < 0).any():
        lost = np.flatnonzero(~kept & (source < 0))[0]
        raise InputError(f"Table {lost} is deleted, and no table that it is rebuilt from is kept.")
    return Retention(kept, source, float(cost.sum()), float(problem.keep_cost.sum()), bound)


def check_retention(problem: RetentionProblem, plan: Retention) -> None:
    """Check a plan against the rules, by plain loops."""
    edges: dict[tuple[int, int], float] = {}
    for parent, child, cost in zip(
        problem.parents.tolist(),
        problem.children.tolist(),
        problem.rebuild_cost.tolist(),
        strict=True,
    ):
        edges[parent, child] = min(cost, edges.get((parent, child), cost))
    total = 0.0
    for table, (is_kept, source) in enumerate(
        zip(plan.kept.tolist(), plan.source.tolist(), strict=True)
    ):
        if is_kept and source != -1:
            raise InputError(f"Table {table} is kept and has the source {source}.")
        if not is_kept and (source, table) not in edges:
            raise InputError(f"Table {table} cannot be rebuilt from {source}.")
        if not is_kept and not plan.kept[source]:
            raise InputError(f"Table {table} is to be rebuilt from {source}, which is deleted.")
        total += float(problem.keep_cost[table]) if is_kept else edges[source, table]
    if not np.isclose(total, plan.cost, rtol=_ROUNDING, atol=_ROUNDING):
        raise InputError(f"The plan costs {total}, and says {plan.cost}.")
    if plan.cost > plan.keep_all_cost * (1 + _ROUNDING):
        raise InputError("The plan costs more than keeping all tables.")
