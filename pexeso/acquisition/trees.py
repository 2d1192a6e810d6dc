"""All plans of a request, fewest tables and lightest joins first.

A plan is a tree whose leaves all have a column that is asked for: a leaf without one would only
multiply or drop rows. Such a tree is a path from each table with a wanted column to the tables
before it, in the order of the columns, so plans are formed path by path, each of them once. A
partial plan is dropped where no plan that continues it keeps the bounds: each table that is missing
adds one, the joins that are missing weigh at least what the lightest path does, and a price never
falls with further columns.

Memory: about a kilobyte for each partial plan, at most `max_states` of them.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from pexeso.acquisition.graph import JoinEdge, JoinGraph, JoinSet
from pexeso.acquisition.plans import AcquisitionRequest, Join, JoinTree

DEFAULT_STATES = 500_000


@dataclass(frozen=True)
class _Partial:
    """A tree with the columns of the first terminals, and a path that is to reach it."""

    joins: tuple[Join, ...]
    tables: tuple[str, ...]
    sources: tuple[str, ...]
    path: tuple[str, ...]
    weight: float


class TreeSearch:
    """The plans of a request that keep its bounds on tables, weight and price."""

    def __init__(
        self,
        graph: JoinGraph,
        request: AcquisitionRequest,
        max_states: int = DEFAULT_STATES,
        distances: Distances | None = None,
    ) -> None:
        self._graph, self._request, self._max_states = graph, request, max_states
        self._distances = Distances(graph) if distances is None else distances
        self._joins: dict[tuple[object, ...], Join] = {}
        self._prices: dict[tuple[str, frozenset[str]], float] = {}
        self.truncated = False

    def __iter__(self) -> Iterator[JoinTree]:
        """Yield plans, fewest tables first, then the lightest."""
        heap: list[tuple[int, float, int, _Partial]] = []
        numbers = count()
        terminals = self._request.terminals
        starts = (_Partial((), (table,), (table,), (), 0.0) for table in terminals[0].tables)
        self._push(heap, starts, numbers)
        while heap:
            partial = heapq.heappop(heap)[-1]
            if not partial.path and len(partial.sources) == len(terminals):
                yield self._tree(partial)
            elif partial.path:
                self._push(heap, self._extended(partial), numbers)
            else:
                self._push(heap, self._next_terminal(partial), numbers)

    def _next_terminal(self, partial: _Partial) -> Iterator[_Partial]:
        terminals = self._request.terminals
        terminal = terminals[len(partial.sources)]
        used_tables = [
            table
            for other, table in zip(terminals, partial.sources, strict=False)
            if other.column == terminal.column
        ]
        for table in terminal.tables:
            if table in used_tables:  # a column explains all of itself
                continue
            path = () if table in partial.tables else (table,)
            yield replace(partial, sources=(*partial.sources, table), path=path)

    def _extended(self, partial: _Partial) -> Iterator[_Partial]:
        head = partial.path[-1]
        for edge in self._graph.edges_of(head):
            other = edge.other(head)
            if other in partial.path:
                continue
            for join_set in edge.join_sets:
                fan_out = join_set.left_most if head == edge.left else join_set.right_most
                if not join_set.n_keys or fan_out > self._request.max_fan_out:
                    continue
                joins = (*partial.joins, self._join(edge, join_set))
                weight = partial.weight + join_set.weight
                if other in partial.tables:
                    tables = (*partial.tables, *partial.path)
                    yield replace(partial, joins=joins, tables=tables, path=(), weight=weight)
                else:
                    path = (*partial.path, other)
                    yield replace(partial, joins=joins, path=path, weight=weight)

    def _push(
        self,
        heap: list[tuple[int, float, int, _Partial]],
        partials: Iterable[_Partial],
        numbers: Iterator[int],
    ) -> None:
        for partial in partials:
            bounds = self._lower_bounds(partial)
            if bounds is None or not self._is_open(partial):
                continue
            if len(heap) >= self._max_states:
                self.truncated = True
                return
            heapq.heappush(heap, (*bounds, next(numbers), partial))

    def _lower_bounds(self, partial: _Partial) -> tuple[int, float] | None:
        """Return the fewest tables and the least weight of what continues a partial plan.

        None if that is out of bounds.
        """
        n_tables, weight = len(partial.tables) + len(partial.path), partial.weight
        if partial.path:
            hops, distance = self._distances.to_any(partial.path[-1], partial.tables)
            if math.isinf(hops):
                return None
            n_tables += int(hops) - 1
            weight += distance
        request = self._request
        # Sums of the same weights in another order differ in the last digits.
        if n_tables > request.max_tables or weight > request.max_informativeness + 1e-9:
            return None
        return n_tables, weight

    def _is_open(self, partial: _Partial) -> bool:
        """Return whether the plan is closed under natural joins so far, and not too dear."""
        columns: dict[str, set[str]] = {}
        for terminal, table in zip(self._request.terminals, partial.sources, strict=False):
            columns.setdefault(table, set()).add(terminal.column)
        for join in partial.joins:
            columns.setdefault(join.left, set()).update(join.join_set.left)
            columns.setdefault(join.right, set()).update(join.join_set.right)
        if not is_closed(self._graph, partial.joins, columns):
            return False
        if math.isinf(self._request.budget):
            return True
        prices = (self._price(table, frozenset(names)) for table, names in columns.items())
        return math.fsum(prices) <= self._request.budget

    def _join(self, edge: JoinEdge, join_set: JoinSet) -> Join:
        """Return the join by a set of columns, the same object each time."""
        key = (edge.left, edge.right, join_set.pairs)
        if key not in self._joins:
            self._joins[key] = Join(edge.left, edge.right, join_set)
        return self._joins[key]

    def _price(self, table: str, names: frozenset[str]) -> float:
        if (table, names) not in self._prices:
            market_table = self._graph.tables[table]
            self._prices[table, names] = (
                0.0 if market_table.owned else market_table.price(sorted(names))
            )
        return self._prices[table, names]

    def _tree(self, partial: _Partial) -> JoinTree:
        columns = [
            (table, terminal.column)
            for terminal, table in zip(self._request.terminals, partial.sources, strict=True)
        ]
        n_have = len(self._request.have)
        return JoinTree.of(partial.joins, columns[:n_have], columns[n_have:])


def is_closed(
    graph: JoinGraph, joins: Iterable[Join], columns: Mapping[str, Collection[str]]
) -> bool:
    """Return whether each natural join is by all columns that its tables share in a plan."""
    return all(
        set(columns[join.left]).intersection(columns[join.right]) == set(join.join_set.left)
        for join in joins
        if graph.edge(join.left, join.right).natural
    )


class Distances:
    """Fewest joins and least weights between tables of a graph, found when they are asked for.

    Memory: two numbers for each pair of a table of a plan and a table that it reaches.
    """

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._known: dict[str, tuple[dict[str, int], dict[str, float]]] = {}

    def to_any(self, table: str, others: Iterable[str]) -> tuple[float, float]:
        """Return the fewest joins and the least weight from a table to any of several.

        The two may be those of different paths; infinite where there is none.
        """
        known = [self.of(other) for other in others]
        return (
            min(hops.get(table, math.inf) for hops, _ in known),
            min(weights.get(table, math.inf) for _, weights in known),
        )

    def of(self, table: str) -> tuple[dict[str, int], dict[str, float]]:
        """Return the fewest joins and the least weights from a table to each that it reaches."""
        if table not in self._known:
            self._known[table] = self._hops(table), self._weights(table)
        return self._known[table]

    def _hops(self, start: str) -> dict[str, int]:
        hops, order = {start: 0}, [start]
        for table in order:
            for edge in self._graph.edges_of(table):
                other = edge.other(table)
                if other not in hops and _joins(edge.join_sets):
                    hops[other] = hops[table] + 1
                    order.append(other)
        return hops

    def _weights(self, start: str) -> dict[str, float]:
        weights: dict[str, float] = {}
        heap = [(0.0, start)]
        while heap:
            weight, table = heapq.heappop(heap)
            if table in weights:
                continue
            weights[table] = weight
            for edge in self._graph.edges_of(table):
                other, sets = edge.other(table), _joins(edge.join_sets)
                if other not in weights and sets:
                    heapq.heappush(
                        heap, (weight + min(join_set.weight for join_set in sets), other)
                    )
        return weights


def _joins(join_sets: Iterable) -> list:
    return [join_set for join_set in join_sets if join_set.n_keys]
