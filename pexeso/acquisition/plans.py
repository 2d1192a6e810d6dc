"""Requests, and plans as trees of joins: which tables, by which columns, and what is bought."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pexeso.acquisition.defaults import DEFAULT_MAX_TABLES
from pexeso.acquisition.graph import JoinGraph, JoinSet
from pexeso.acquisition.intervals import Estimate
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
        if table not in graph.tables:
            raise InputError(f"There is no table '{table}'.")
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
        for name in ("budget", "max_informativeness"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be a number from 0, got {getattr(self, name)}.")
        if not 0 <= self.min_quality <= 1:
            raise InputError(f"min_quality must be from 0 to 1, got {self.min_quality}.")
        if self.max_tables < 1:
            raise InputError(f"max_tables must be 1 or more, got {self.max_tables}.")
        if not self.max_fan_out >= 1:
            raise InputError(f"max_fan_out must be 1 or more, got {self.max_fan_out}.")
        _require_distinct(self.terminals)

    @property
    def terminals(self) -> tuple[Terminal, ...]:
        """All columns that a plan must have, the shopper's first."""
        return (*self.have, *self.want)


def _require_distinct(terminals: Iterable[Terminal]) -> None:
    seen: set[Terminal] = set()
    for terminal in terminals:
        if terminal in seen:
            raise InputError(f"The column {terminal.column!r} is named twice.")
        seen.add(terminal)


@dataclass(frozen=True)
class Join:
    """A join of a plan: two tables and the columns by which they join."""

    left: str
    right: str
    join_set: JoinSet

    @cached_property
    def _hash(self) -> int:
        return hash((self.left, self.right, self.join_set.pairs))

    def __hash__(self) -> int:
        return self._hash  # plans are looked up often, and a join set is slow to hash

    def columns_of(self, table: str) -> tuple[str, ...]:
        """Return the columns of one of its tables that it joins by."""
        return self.join_set.left if table == self.left else self.join_set.right

    def other(self, table: str) -> str:
        """Return its other table."""
        return self.right if table == self.left else self.left


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
        """Return a plan with its joins in order."""
        ordered = sorted(joins, key=lambda join: (join.left, join.right))
        return cls(tuple(ordered), tuple(have), tuple(want))

    @cached_property
    def joins_at(self) -> dict[str, tuple[Join, ...]]:
        """The joins at each table that has any."""
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
        """Its tables, by name."""
        return tuple(self.columns)

    @property
    def weight(self) -> float:
        """The sum of the weights of its joins, w(TG)."""
        return math.fsum(join.join_set.weight for join in self.joins)

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
        return math.fsum(
            graph.tables[table].price(columns)
            for table, columns in self.columns.items()
            if not graph.tables[table].owned
        )

    def purchases(self, graph: JoinGraph) -> list[Purchase]:
        """Return what is to be bought, by table."""
        return [
            Purchase(table, columns, graph.tables[table].price(columns))
            for table, columns in self.columns.items()
            if not graph.tables[table].owned
        ]

    def rooted(self, root: str) -> list[tuple[str, Join | None]]:
        """Return each table and the join that leads to it, from a root outwards."""
        order: list[tuple[str, Join | None]] = [(root, None)]
        seen, used = {root}, set()
        for table, _ in order:
            for join in self.joins:
                if table in (join.left, join.right) and id(join) not in used:
                    used.add(id(join))
                    other = join.other(table)
                    if other in seen:
                        raise InputError(f"The joins of a plan go in a circle at '{other}'.")
                    seen.add(other)
                    order.append((other, join))
        if len(seen) < len(self.columns):
            apart = sorted(set(self.columns) - seen)
            raise InputError(f"The joins of a plan do not reach {', '.join(apart)}.")
        return order

    def joins_between(self, one: set[str], other: set[str]) -> list[Join]:
        """Return the joins that have all of some tables on one side and all others beyond it."""
        joins = []
        for join in self.joins:
            _, side = self.beyond(join, join.left)
            if (one <= side and not other & side) or (other <= side and not one & side):
                joins.append(join)
        return joins

    def beyond(self, join: Join, table: str) -> tuple[frozenset[Join], set[str]]:
        """Return the joins and tables on a table's side of one of its joins, the join apart."""
        joins, tables, stack = set(), {table}, [table]
        while stack:
            name = stack.pop()
            for next_join in self.joins_at[name]:
                if next_join is not join and next_join not in joins:
                    joins.add(next_join)
                    other = next_join.other(name)
                    tables.add(other)
                    stack.append(other)
        return frozenset(joins), tables


@dataclass(frozen=True)
class Purchase:
    """A projection to buy."""

    table: str
    columns: tuple[str, ...]
    price: float

    @property
    def sql(self) -> str:
        """The statement that asks for it, with quoted names."""
        return f"SELECT {', '.join(map(quoted, self.columns))} FROM {quoted(self.table)}"


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


@dataclass(frozen=True)
class PlanMeasures:
    """What a plan is worth."""

    price: float
    informativeness: float
    quality: float
    correlation: float
    n_rows: int


@dataclass(frozen=True)
class PlanEstimates:
    """What samples tell of a plan."""

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
    """The answer to a request."""

    plans: tuple[FoundPlan, ...]
    reason: str = ""
    n_trees: int = 0
    n_evaluated: int = 0
    seconds: float = 0.0
    stopped: str = ""
    best_seen: Mapping[str, float] = field(default_factory=dict)
