"""The graph of contained tables, drawn: which tables are connected, and which lines say it all.

Of each connected part of the graph there is a drawing. Tables that hold each other share a frame.
Lines that follow from others, as every table holds what is in the tables that it holds, are left
out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_TABLES = 60
"""Tables of a drawing; of more connected tables the largest are drawn."""

MAX_DRAWINGS = 20
"""The largest connected parts are drawn."""

MAX_PARTLY_CONTAINED = 100
"""Lines of a drawing for tables that are partly contained."""


@dataclass(frozen=True)
class LakeGraph:
    """The tables and pairs of a report as arrays.

    Attributes
    ----------
    names : list of str
        Of all tables, sorted.
    sizes : int64 (n,)
        Bytes of each.
    parents, children : int64 (e,)
        Pairs of tables, by position in `names`.
    containments : float64 (e,)
        Which share of the child's rows the parent holds.
    rebuilt_from : int64 (n,)
        The parent in the plan of each table that can go; -1 for one that stays.
    """

    names: list[str]
    sizes: np.ndarray
    parents: np.ndarray
    children: np.ndarray
    containments: np.ndarray
    rebuilt_from: np.ndarray


@dataclass(frozen=True)
class Part:
    """Connected tables of which there is a drawing.

    Attributes
    ----------
    tables : int64 (m,)
        Those that are drawn, by name.
    n_tables : int
        How many are connected, also those that are not drawn.
    """

    tables: np.ndarray
    n_tables: int


@dataclass(frozen=True)
class Skeleton:
    """The tables of a drawing in groups of equal ones, and the lines that say what holds what.

    Tables are numbered in the drawing, groups by their first tables.

    Attributes
    ----------
    n_implied : int
        Pairs of tables that follow from what is drawn.
    n_omitted : int
        Lines that were too many.
    """

    groups: list[list[int]]
    levels: list[int]
    whole: list[tuple[int, int]]
    partly: list[tuple[int, int, bool]]
    rebuilds: list[tuple[int, int]]
    n_implied: int
    n_omitted: int


def lake_graph(report: Mapping[str, Any]) -> LakeGraph:
    """Make arrays of a report of `pexeso.Redundancy.to_dict`."""
    edges, deletions = report["edges"], report["plan"]["delete"]
    size_of = {table["name"]: table["bytes"] for table in report["tables"]}
    pairs = {(edge["parent"], edge["child"]): edge["containment"] for edge in edges}
    pairs |= {(deletion["parent"], deletion["table"]): 1.0 for deletion in deletions}
    names = sorted({*size_of, *(name for pair in pairs for name in pair)})
    position = {name: at for at, name in enumerate(names)}
    rebuilt_from = np.full(len(names), -1, dtype=np.int64)
    for deletion in deletions:
        rebuilt_from[position[deletion["table"]]] = position[deletion["parent"]]
    ends = np.array(
        [(position[parent], position[child]) for parent, child in pairs], dtype=np.int64
    ).reshape(-1, 2)
    return LakeGraph(
        names,
        np.array([size_of.get(name, 0) for name in names], dtype=np.int64),
        ends[:, 0],
        ends[:, 1],
        np.array(list(pairs.values()), dtype=np.float64),
        rebuilt_from,
    )


def connected_parts(graph: LakeGraph) -> tuple[list[Part], int]:
    """Return the parts that are drawn, largest first, and how many there are in all.

    Tables that are in no pair are in no part.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n_tables = len(graph.names)
    if not len(graph.parents):
        return [], 0
    matrix = coo_matrix(
        (np.ones(len(graph.parents), dtype=np.int8), (graph.parents, graph.children)),
        shape=(n_tables, n_tables),
    )
    n_parts, numbers = connected_components(matrix, directed=False)
    counts = np.bincount(numbers, minlength=n_parts)
    first = np.full(n_parts, n_tables)
    np.minimum.at(first, numbers, np.arange(n_tables))
    order = np.lexsort((first, -counts))
    order = order[counts[order] > 1]
    parts = []
    for number in order[:MAX_DRAWINGS].tolist():
        tables = np.flatnonzero(numbers == number)
        largest = np.lexsort((tables, -graph.sizes[tables]))[:MAX_TABLES]
        parts.append(Part(np.sort(tables[largest]), len(tables)))
    return parts, len(order)


def skeleton(graph: LakeGraph, part: Part) -> Skeleton:
    """Find the groups, levels and lines of a drawing."""
    n = len(part.tables)
    number = np.full(len(graph.names), -1, dtype=np.int64)
    number[part.tables] = np.arange(n)
    drawn = (number[graph.parents] >= 0) & (number[graph.children] >= 0)
    parents, children = number[graph.parents[drawn]], number[graph.children[drawn]]
    containments = graph.containments[drawn]
    is_whole = containments == 1.0
    holds = np.zeros((n, n), dtype=bool)
    holds[parents[is_whole], children[is_whole]] = True
    group_of, groups = _groups(closure(holds))
    n_groups = len(groups)
    between = np.zeros((n_groups, n_groups), dtype=bool)
    between[group_of[parents[is_whole]], group_of[children[is_whole]]] = True
    np.fill_diagonal(between, False)
    reached = closure(between)
    reduced = reduction(between)
    shares = np.zeros((n_groups, n_groups))
    np.maximum.at(
        shares,
        (group_of[parents[~is_whole]], group_of[children[~is_whole]]),
        containments[~is_whole],
    )
    shares[reached | np.eye(n_groups, dtype=bool)] = 0.0
    some = shares > 0.0
    some &= ~(_product(reached, some))
    levels = _levels(between, some)
    rebuilds = [
        (int(number[parent]), child)
        for child, parent in enumerate(graph.rebuilt_from[part.tables].tolist())
        if parent >= 0 and number[parent] >= 0
    ]
    for parent, child in rebuilds:
        reduced[group_of[parent], group_of[child]] = False  # that line is drawn as the plan's
    partly = _partly(some, shares)
    shown = np.zeros((n, n), dtype=bool)
    shown[tuple(np.array(rebuilds, dtype=np.int64).reshape(-1, 2).T)] = True
    shown |= reduced[np.ix_(group_of, group_of)] | (group_of[:, None] == group_of[None, :])
    shown |= some[np.ix_(group_of, group_of)]
    return Skeleton(
        groups,
        levels,
        [(one, other) for one, other in np.argwhere(reduced).tolist()],
        partly[:MAX_PARTLY_CONTAINED],
        rebuilds,
        int((~shown[parents, children]).sum()),
        max(0, len(partly) - MAX_PARTLY_CONTAINED),
    )


def closure(holds: np.ndarray) -> np.ndarray:
    """Return which nodes are reached from which by one step or more."""
    while True:
        further = holds | _product(holds, holds)
        if (further == holds).all():
            return holds
        holds = further


def reduction(holds: np.ndarray) -> np.ndarray:
    """Return the edges of a graph without cycles that do not follow from other ones."""
    return holds & ~_product(holds, closure(holds))


def _product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the product of two relations; sums of at most 60 ones are exact in 32 bits."""
    return (one.astype(np.float32) @ other.astype(np.float32)) > 0.5


def _groups(reached: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    equal = (reached & reached.T) | np.eye(len(reached), dtype=bool)
    first = equal.argmax(axis=1)
    leaders, group_of = np.unique(first, return_inverse=True)
    members: dict[int, list[int]] = defaultdict(list)
    for table, group in enumerate(group_of.tolist()):
        members[group].append(table)
    return group_of, [members[group] for group in range(len(leaders))]


def _levels(between: np.ndarray, some: np.ndarray) -> list[int]:
    """Return the longest path to each group; tables that partly hold each other bring no order."""
    reached = closure(between | some)
    steps = between | (some & ~reached.T)
    levels = np.zeros(len(steps), dtype=np.int64)
    while True:
        further = np.where(steps, levels[:, None] + 1, 0).max(axis=0, initial=0)
        if (further == levels).all():
            return levels.tolist()
        levels = further


def _partly(some: np.ndarray, shares: np.ndarray) -> list[tuple[int, int, bool]]:
    """Return lines for tables that are partly contained, the largest shares first."""
    both = some & some.T
    lines: list[tuple[int, int]] = [
        (one, other) for one, other in np.argwhere(some & ~np.tril(both)).tolist()
    ]
    ordered = sorted(lines, key=lambda line: (-max(shares[line], shares[line[::-1]]), line))
    return [(one, other, bool(both[one, other])) for one, other in ordered]
