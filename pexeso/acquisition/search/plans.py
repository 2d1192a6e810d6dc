"""Plans as trees of joins, TG in the paper: which tables, by which columns, and what is bought."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pexeso.acquisition.graph.joins import JoinGraph, JoinSet
from pexeso.errors import InputError


@dataclass(frozen=True)
class Join:
    """A join of a plan: two tables and the columns by which they join.

    Attributes
    ----------
    left, right : str
        The tables, as in `JoinEdge`.
    join_set : JoinSet
        One of those of their edge.
    """

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
    """A plan: tables that joins connect without a circle, and where each wanted column is from.

    Attributes
    ----------
    joins : tuple of Join
        By left and right table; none where one table has everything.
    have, want : tuple of (str, str)
        A table and a column of it, for each terminal of the request, in its order.
    """

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

    def is_closed(self, graph: JoinGraph) -> bool:
        """Return whether each join is by all columns that both its tables share in the plan.

        Only natural joins can fail to be: where equal names are equal attributes, a plan that has
        a shared column on both sides joins by it.
        """
        return all(
            set(join.join_set.left) == set(self.columns[join.left]) & set(self.columns[join.right])
            for join in self.joins
            if graph.edge(join.left, join.right).natural
        )

    def closed(self, graph: JoinGraph) -> JoinTree | None:
        """Return the plan that joins by all shared columns; None if such a join is not weighed."""
        joins = []
        for join in self.joins:
            edge = graph.edge(join.left, join.right)
            shared = set(self.columns[join.left]) & set(self.columns[join.right])
            if not edge.natural or shared == set(join.join_set.left):
                joins.append(join)
                continue
            join_sets = [join_set for join_set in edge.join_sets if set(join_set.left) == shared]
            if not join_sets:
                return None
            joins.append(Join(join.left, join.right, join_sets[0]))
        return JoinTree(tuple(joins), self.have, self.want)

    def purchases(self, graph: JoinGraph) -> list[Purchase]:
        """Return what is to be bought, by table."""
        return [
            Purchase(table, columns, graph.tables[table].price(columns))
            for table, columns in self.columns.items()
            if not graph.tables[table].owned
        ]

    def rooted(self, root: str) -> list[tuple[str, Join | None]]:
        """Return each table and the join that leads to it, from a root outwards.

        Raises
        ------
        InputError
            If the joins are no tree: there is a circle, or a table that they do not reach.
        """
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
    """A projection to buy.

    Attributes
    ----------
    table : str
        The table.
    columns : tuple of str
        Its columns, by name.
    price : float
        What they cost.
    """

    table: str
    columns: tuple[str, ...]
    price: float

    @property
    def sql(self) -> str:
        """The statement that asks for it, with quoted names.

        Examples
        --------
        >>> Purchase("D3", ("Disease", "Race"), 3.0).sql
        'SELECT "Disease", "Race" FROM "D3"'
        """
        return f"SELECT {', '.join(map(quoted, self.columns))} FROM {quoted(self.table)}"


def quoted(name: str) -> str:
    """Return a name as SQL quotes it.

    Examples
    --------
    >>> print(quoted('net "size" of it'), quoted("id"))
    "net ""size"" of it" "id"
    """
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


@dataclass(frozen=True)
class PlanMeasures:
    """What a plan is worth.

    Attributes
    ----------
    price : float
        Of its purchases.
    informativeness : float
        The sum of the weights of its joins.
    quality : float
        Q of the join result, 0 to 1.
    correlation : float
        CORR of what the shopper has and wants, in the join result.
    n_rows : int
        Rows of the join result.
    """

    price: float
    informativeness: float
    quality: float
    correlation: float
    n_rows: int
