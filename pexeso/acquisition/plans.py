"""Requests, plans as trees of joins, and all plans of a request, fewest tables first."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from pexeso.acquisition import DEFAULT_MAX_TABLES
from pexeso.acquisition.graph import JoinGraph, JoinSet
from pexeso.acquisition.intervals import Estimate
from pexeso.acquisition.tables import free
from pexeso.errors import InputError


@dataclass(frozen=True)
class Terminal:
    """A column that a plan must have."""

    column: str
    tables: tuple[str, ...]

    @classmethod
    def of(cls, graph: JoinGraph, column: str, table: str | None = None) -> Terminal:
        """Return a column of one table, or of any table that has it."""
        if table is None:
            tables = tuple(
                name for name in sorted(graph.tables) if column in graph.tables[name].columns
            )
            if not tables:
                raise InputError(f"No table has a column {column!r}.")
            return cls(column, tables)
        graph.tables[table].require(column)
        return cls(column, (table,))


@dataclass(frozen=True)
class AcquisitionRequest:
    """What a shopper has and wants, and the bounds of a plan."""

    have: tuple[Terminal, ...]
    want: tuple[Terminal, ...]
    budget: float = math.inf
    max_informativeness: float = math.inf
    min_quality: float = 0.0
    max_tables: int = DEFAULT_MAX_TABLES
    max_fan_out: float = math.inf

    def __post_init__(self) -> None:
        if not self.want or (not self.have and len(self.want) < 2):
            raise InputError(
                "A plan needs a wanted column, and two if there is nothing to explain. Got "
                f"{[terminal.column for terminal in self.want]}."
            )
        for terminal in self.terminals:
            if self.terminals.count(terminal) > 1:
                raise InputError(f"The column {terminal.column!r} is named twice.")

    @property
    def terminals(self) -> tuple[Terminal, ...]:
        return (*self.have, *self.want)


@dataclass(frozen=True)
class Join:
    left: str
    right: str
    join_set: JoinSet

    @cached_property
    def _hash(self) -> int:
        return hash((self.left, self.right, self.join_set.pairs))

    def __hash__(self) -> int:
        return self._hash  # plans are looked up often, and a join set is slow to hash

    def columns_of(self, table: str) -> tuple[str, ...]:
        return self.join_set.left if table == self.left else self.join_set.right

    def other(self, table: str) -> str:
        return self.right if table == self.left else self.left


BY_ENDS = attrgetter("left", "right")  # the order of the joins of a plan


@dataclass(frozen=True)
class JoinTree:
    """A plan: tables that joins connect without a circle, and where each wanted column is from."""

    joins: tuple[Join, ...]
    have: tuple[tuple[str, str], ...]
    want: tuple[tuple[str, str], ...]

    @cached_property
    def _hash(self) -> int:
        return hash((self.joins, self.have, self.want))

    def __hash__(self) -> int:
        return self._hash

    @classmethod
    def of(
        cls,
        joins: Iterable[Join],
        have: Iterable[tuple[str, str]],
        want: Iterable[tuple[str, str]],
    ) -> JoinTree:
        ordered = sorted(joins, key=BY_ENDS)
        return cls(tuple(ordered), tuple(have), tuple(want))

    @cached_property
    def join_ids(self) -> tuple[int, ...]:
        """The joins as Python numbers its objects: quick to compare while they exist."""
        return tuple(map(id, self.joins))

    @cached_property
    def joins_at(self) -> dict[str, tuple[Join, ...]]:
        by_table: dict[str, list[Join]] = {}
        for join in self.joins:
            for table in (join.left, join.right):
                by_table.setdefault(table, []).append(join)
        return {table: tuple(joins) for table, joins in by_table.items()}

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that the plan has of each table, AS(v), both sorted by name."""
        columns: dict[str, set[str]] = {}
        for table, column in (*self.have, *self.want):
            columns.setdefault(table, set()).add(column)
        for join in self.joins:
            for table in (join.left, join.right):
                columns.setdefault(table, set()).update(join.columns_of(table))
        return {table: tuple(sorted(columns[table])) for table in sorted(columns)}

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def weight(self) -> float:
        """The sum of the weights of its joins, w(TG)."""
        return math.fsum([join.join_set.weight for join in self.joins])

    @property
    def signature(self) -> tuple[object, ...]:
        """What tells plans apart and orders them; smaller plans come first."""
        return (
            len(self.joins),
            tuple((join.left, join.right, join.join_set.pairs) for join in self.joins),
            self.have,
            self.want,
        )

    def price(self, graph: JoinGraph) -> float:
        """Return what the plan costs: the prices of its projections, one's own tables for free."""
        tables = graph.tables
        if graph.is_free:
            return 0.0
        prices = [
            tables[name].price(columns)
            for name, columns in self.columns.items()
            if not tables[name].owned and tables[name].price is not free
        ]
        return math.fsum(prices)

    def rooted(self, root: str) -> list[tuple[str, Join | None]]:
        """Return each table and the join that leads to it, from a root outwards."""
        order: list[tuple[str, Join | None]] = [(root, None)]
        used = set()
        for table, _ in order:
            for join in self.joins:
                if table in (join.left, join.right) and id(join) not in used:
                    used.add(id(join))
                    order.append((join.other(table), join))
        return order

    def joins_between(self, one: set[str], other: set[str]) -> list[Join]:
        """Return the joins that have all of some tables on one side and all others beyond it."""
        joins = []
        for join in self.joins:
            side, tables = {join.left}, [join.left]
            for name in tables:
                for further in self.joins_at[name]:
                    table = further.other(name)
                    if further is not join and table not in side:
                        side.add(table)
                        tables.append(table)
            if (one <= side and not other & side) or (other <= side and not one & side):
                joins.append(join)
        return joins


@dataclass(frozen=True)
class PlanMeasures:
    price: float
    informativeness: float
    quality: float
    correlation: float
    n_rows: int


@dataclass(frozen=True)
class PlanEstimates:
    correlation: Estimate
    quality: Estimate
    n_rows: int


@dataclass(frozen=True)
class FoundPlan:
    """A plan with what it is worth, and how sure it is that none is better."""

    tree: JoinTree
    measures: PlanMeasures
    optimal: bool
    gap: float
    chance: float | None = None
    estimates: PlanEstimates | None = None


@dataclass(frozen=True)
class FoundPlans:
    plans: tuple[FoundPlan, ...]
    reason: str = ""
    n_trees: int = 0
    n_evaluated: int = 0
    seconds: float = 0.0
    stopped: str = ""
    best_seen: Mapping[str, float] = field(default_factory=dict)


MAX_STATES = 500_000  # Partial plans that wait


class TreeSearch:
    """The plans of a request that keep its bounds on tables, weight and price.

    A plan is a tree whose leaves all have a column that is required: a leaf without one would only
    multiply or drop rows. Such a tree is a path from each table with a wanted column to the tables
    before it, in the order of the columns, so plans are formed path by path, each of them once. A
    partial plan is dropped where no plan that continues it keeps the bounds: each table that is
    missing adds one, the joins that are missing weigh at least what the lightest path does, and a
    price never falls with further columns.

    Memory: about a kilobyte for each partial plan, at most `MAX_STATES` of them.
    """

    def __init__(
        self,
        graph: JoinGraph,
        request: AcquisitionRequest,
        distances: Distances | None = None,
    ) -> None:
        self._graph, self._request = graph, request
        self._distances = Distances(graph) if distances is None else distances
        self._prices: dict[tuple[str, frozenset[str]], float] = {}
        self.truncated = False

    def __iter__(self) -> Iterator[JoinTree]:
        """Yield plans, fewest tables first, then the lightest."""
        for joins, sources in self.parts():
            yield self.tree(joins, sources)

    def tree(self, joins: tuple[Join, ...], sources: tuple[str, ...]) -> JoinTree:
        """Return a plan of `parts`."""
        columns = [terminal.column for terminal in self._request.terminals]
        named, n_have = list(zip(sources, columns, strict=True)), len(self._request.have)
        return JoinTree.of(joins, named[:n_have], named[n_have:])

    def parts(self) -> Iterator[tuple[tuple[Join, ...], tuple[str, ...]]]:
        """Yield the joins of plans, path by path, and the table of each required column."""
        # One loop without calls: most partial plans are dropped, and a call costs more than that.
        request, distances, graph = self._request, self._distances, self._graph
        terminals, steps = request.terminals, distances.steps
        # Sums of the same weights in another order differ in the last digits.
        max_tables, max_weight = request.max_tables, request.max_informativeness + 1e-9
        is_limited = graph.has_natural or not math.isinf(request.budget)
        heap: list[tuple[float, float, int, tuple]] = []
        n_pushed = 0
        # Each has joins, tables, sources, a path that is to reach the tables, and a weight.
        partials: list[tuple] = [((), (table,), (table,), (), 0.0) for table in terminals[0].tables]
        while True:
            for partial in partials:
                joins, tables, sources, path, weight = partial
                n_tables = len(tables) + len(path)
                if path:
                    nearest = distances.nearest.get((path[-1], tables))
                    hops, distance = nearest or distances.to_any(path[-1], tables)
                    n_tables += hops - 1
                    weight += distance
                if n_tables > max_tables or weight > max_weight:
                    continue
                if is_limited and not self._is_open(joins, sources):
                    continue
                if len(heap) >= MAX_STATES:
                    self.truncated = True
                    break
                heapq.heappush(heap, (n_tables, weight, n_pushed, partial))
                n_pushed += 1
            if not heap:
                return
            joins, tables, sources, path, weight = heapq.heappop(heap)[-1]
            partials = []
            if path:
                head = path[-1]
                for other, join, fan_out, step_weight in steps.get(head) or distances.find(head):
                    if other in path or fan_out > request.max_fan_out:
                        continue
                    longer = (*joins, join), weight + step_weight
                    if other in tables:
                        partials.append((longer[0], tables + path, sources, (), longer[1]))
                    else:
                        partials.append((longer[0], tables, sources, (*path, other), longer[1]))
            elif len(sources) == len(terminals):
                yield joins, sources
            else:
                column = terminals[len(sources)].column
                used_tables = [
                    table
                    for terminal, table in zip(terminals, sources, strict=False)
                    if terminal.column == column
                ]
                for table in terminals[len(sources)].tables:
                    if table not in used_tables:  # a column explains all of itself
                        path = () if table in tables else (table,)
                        partials.append((joins, tables, (*sources, table), path, weight))

    def _is_open(self, joins: tuple[Join, ...], sources: tuple[str, ...]) -> bool:
        """Return whether a plan is closed under natural joins so far, and not too dear."""
        columns: dict[str, set[str]] = {}
        for terminal, table in zip(self._request.terminals, sources, strict=False):
            columns.setdefault(table, set()).add(terminal.column)
        for join in joins:
            columns.setdefault(join.left, set()).update(join.join_set.left)
            columns.setdefault(join.right, set()).update(join.join_set.right)
        if not is_closed(self._graph, joins, columns):
            return False
        if math.isinf(self._request.budget):
            return True
        prices = (self._price(table, frozenset(names)) for table, names in columns.items())
        return math.fsum(prices) <= self._request.budget

    def _price(self, table: str, names: frozenset[str]) -> float:
        if (table, names) not in self._prices:
            known = self._graph.tables[table]
            self._prices[table, names] = 0.0 if known.owned else known.price(sorted(names))
        return self._prices[table, names]


def is_closed(
    graph: JoinGraph, joins: Iterable[Join], columns: Mapping[str, Collection[str]]
) -> bool:
    """Return whether each natural join is by all columns that its tables share in a plan."""
    return not graph.has_natural or all(
        set(columns[join.left]).intersection(columns[join.right]) == set(join.join_set.left)
        for join in joins
        if graph.edge(join.left, join.right).natural
    )


class Distances:
    """Fewest joins and least weights between tables of a graph, found when they are needed.

    Memory: two numbers for each pair of a table of a plan and a table that it reaches.
    """

    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._known: dict[str, tuple[dict[str, int], dict[str, float]]] = {}
        self._joins: dict[tuple[str, str], list[Join]] = {}
        # For each table found the other table of each join with keys, the join, the most rows of a
        # key in the first table, and the weight
        self.steps: dict[str, list[tuple[str, Join, int, float]]] = {}
        # For a table and some others the fewest joins and the least weight to any of them
        self.nearest: dict[tuple[str, tuple[str, ...]], tuple[float, float]] = {}

    def find(self, table: str) -> list[tuple[str, Join, int, float]]:
        """Return the steps from a table; a join is the same object in both directions."""
        steps = self.steps[table] = []
        for edge in self._graph.edges_of(table):
            ends = (edge.left, edge.right)
            if ends not in self._joins:
                sets = [join_set for join_set in edge.join_sets if join_set.n_keys]
                self._joins[ends] = [Join(*ends, join_set) for join_set in sets]
            for join in self._joins[ends]:
                chosen = join.join_set
                if table == edge.left:
                    steps.append((edge.right, join, chosen.left_most, chosen.weight))
                else:
                    steps.append((edge.left, join, chosen.right_most, chosen.weight))
        return steps

    def to_any(self, table: str, others: tuple[str, ...]) -> tuple[float, float]:
        """Return the fewest joins and the least weight from a table to any of several.

        The two may be those of different paths; infinite where there is none.
        """
        known = [self.of(other) for other in others]
        self.nearest[table, others] = (
            min(hops.get(table, math.inf) for hops, _ in known),
            min(weights.get(table, math.inf) for _, weights in known),
        )
        return self.nearest[table, others]

    def of(self, start: str) -> tuple[dict[str, int], dict[str, float]]:
        """Return the fewest joins and the least weights from a table to each that it reaches."""
        if start not in self._known:
            hops, order = {start: 0}, [start]
            for table in order:
                for other, *_ in self.steps.get(table) or self.find(table):
                    if other not in hops:
                        hops[other] = hops[table] + 1
                        order.append(other)
            weights: dict[str, float] = {}
            heap = [(0.0, start)]
            while heap:
                weight, table = heapq.heappop(heap)
                if table in weights:
                    continue
                weights[table] = weight
                for other, _, _, step in self.steps[table]:
                    if other not in weights:
                        heapq.heappush(heap, (weight + step, other))
            self._known[start] = hops, weights
        return self._known[start]
