"""Problems of retention made smaller, with the same least cost.

A plan keeps some tables; each other one is rebuilt from a kept one at the least cost of an edge.
Keeping a table also spares its rebuilding, so a plan costs the sum of ``keep[u]`` over the kept
tables u, and of the least ``cost[u, v]`` from a kept u over the others v.

Each step forbids to keep some tables, demands to keep others, or drops edges, and leaves at least
one of the best plans. Below, *certain* tables are kept in all plans that are left, *able* tables
may be kept, and every edge costs less than keeping its child.

**Certain tables.** An able table without a parent must be kept; so must the only parent of a
table that may not be kept. A table that must be kept needs no parent. A child of certain tables
needs the cheapest of those edges, and no edge that costs as much or more.

**Tables too dear to keep.** Let c be the least cost of w from a certain table. If w is kept,
delete it instead: w costs c at most. Each v that was rebuilt from w is rebuilt from a certain
table, or kept, whichever is cheaper and possible. Where ``keep[w]`` is more than c and what all v
then cost in addition, no best plan keeps w.

**Dominated tables.** Let there be an edge from u to w, and for each edge from w to a table v other
than u an edge from u to v that costs no more. Let m be the least cost of an edge to u (infinite
where there is none), and ``keep[u] + cost[u, w] - m <= keep[w]``. Then a best plan does not keep w:

- A plan that keeps both saves ``keep[w] - cost[u, w] > 0`` by deleting w: what was rebuilt from w
  is rebuilt from u for no more.
- A plan that keeps w and not u pays m or more for u. Keep u and delete w: ``keep[u]`` and
  ``cost[u, w]`` are added, ``keep[w]`` and at least m are saved, and what was rebuilt from w is
  rebuilt from u for no more. So the plan costs no more than before.

Once w may not be kept, its edges go. That only raises m for other tables, and removes conditions,
so steps that are made one after the other each hold for the problem that the former ones left. Of
n equal copies, where all edges cost the same, one stays able to be kept, and n - 1 edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.runtime.jit import loop


@dataclass(frozen=True)
class Reduced:
    """A smaller problem.

    Attributes
    ----------
    edges : int64 (e,)
        Numbers of the edges that are left, ascending.
    """

    able: np.ndarray
    edges: np.ndarray


def reduced(
    keep_cost: np.ndarray, parents: np.ndarray, children: np.ndarray, costs: np.ndarray
) -> Reduced:
    """Reduce a problem of retention.

    Parameters
    ----------
    keep_cost : float64 (n,)
    parents, children : int64 (e,)
    costs : float64 (e,)
        Of rebuilding the child from the parent; each less than keeping the child.

    Examples
    --------
    >>> parents, children = np.nonzero(~np.eye(4, dtype=bool))
    >>> found = reduced(np.full(4, 5.0), parents, children, np.ones(12))
    >>> found.able.tolist(), len(found.edges)
    ([True, False, False, False], 3)
    """
    n = len(keep_cost)
    able, edges = np.ones(n, bool), np.arange(len(parents))
    before = -1
    while before != (before := len(edges) + int(able.sum())):
        edges, from_certain = _with_certain(able, edges, parents, children, costs)
        able &= ~_too_dear(keep_cost, able, edges, parents, children, costs, from_certain)
        edges = edges[able[parents[edges]]]
        _drop_dominated(
            *_by_end(n, edges, parents, children, costs),
            *_by_end(n, edges, children, parents, costs),
            keep_cost,
            _order(keep_cost, edges, parents, children, costs),
            able,
            np.full(n, np.inf),
        )
        edges = edges[able[parents[edges]]]
    return Reduced(able, edges)


def _with_certain(
    able: np.ndarray,
    edges: np.ndarray,
    parents: np.ndarray,
    children: np.ndarray,
    costs: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges that certain tables leave, and what each table costs from them at least."""
    n = len(able)
    certain = able & (np.bincount(children[edges], minlength=n) == 0)
    pairs = np.unique(children[edges] * n + parents[edges])  # parallel edges are one
    n_parents = np.bincount(pairs // n, minlength=n)
    alone = ~able & (n_parents == 1)
    certain[parents[edges[alone[children[edges]]]]] = True
    edges = edges[~certain[children[edges]]]
    is_certain = certain[parents[edges]]
    cheapest = np.full(n, np.inf)
    np.minimum.at(cheapest, children[edges[is_certain]], costs[edges[is_certain]])
    order = edges[is_certain][np.lexsort((edges[is_certain], costs[edges[is_certain]]))]
    _, first = np.unique(children[order], return_index=True)
    left = edges[~is_certain & (costs[edges] < cheapest[children[edges]])]
    return np.sort(np.concatenate([left, order[first]])), cheapest


def _too_dear(
    keep_cost: np.ndarray,
    able: np.ndarray,
    edges: np.ndarray,
    parents: np.ndarray,
    children: np.ndarray,
    costs: np.ndarray,
    from_certain: np.ndarray,
) -> np.ndarray:
    """Return the tables that no best plan keeps, whatever else it keeps: bool (n,)."""
    otherwise = np.minimum(from_certain, np.where(able, keep_cost, np.inf))
    more = np.maximum(otherwise[children[edges]] - costs[edges], 0)
    n = len(keep_cost)
    return keep_cost > from_certain + np.bincount(parents[edges], weights=more, minlength=n)


def _by_end(
    n: int, edges: np.ndarray, ends: np.ndarray, others: np.ndarray, costs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the edges of each table begin, their other ends and costs."""
    order = edges[np.argsort(ends[edges], kind="stable")]
    begins = np.searchsorted(ends[order], np.arange(n + 1))
    return begins, others[order], costs[order]


def _order(
    keep_cost: np.ndarray,
    edges: np.ndarray,
    parents: np.ndarray,
    children: np.ndarray,
    costs: np.ndarray,
) -> np.ndarray:
    """Return parents, those that are likely to dominate many others first."""
    n = len(keep_cost)
    spared = np.full(n, np.inf)
    np.minimum.at(spared, children[edges], costs[edges])
    n_children = np.bincount(parents[edges], minlength=n)
    order = np.lexsort((-n_children, keep_cost - spared))
    return order[n_children[order] > 0]


@loop
def _drop_dominated(
    begins, children, costs, in_begins, in_parents, in_costs, keep_cost, order, able, reach
):
    """Set `able` to False for dominated tables; `reach` is infinite, and is so again."""
    for table in order:
        if not able[table]:
            continue
        for edge in range(begins[table], begins[table + 1]):
            reach[children[edge]] = min(reach[children[edge]], costs[edge])
        spared = np.inf
        for edge in range(in_begins[table], in_begins[table + 1]):
            if able[in_parents[edge]]:
                spared = min(spared, in_costs[edge])
        for edge in range(begins[table], begins[table + 1]):
            other = children[edge]
            if not able[other] or reach[other] - spared > keep_cost[other] - keep_cost[table]:
                continue
            dominated = True
            for other_edge in range(begins[other], begins[other + 1]):
                if (
                    children[other_edge] != table
                    and reach[children[other_edge]] > costs[other_edge]
                ):
                    dominated = False
                    break
            if dominated:
                able[other] = False
        for edge in range(begins[table], begins[table + 1]):
            reach[children[edge]] = np.inf
