"""Edges of a join graph: the sets of columns by which two tables join, with their weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pexeso.acquisition.graph.tables import MarketTable
from pexeso.acquisition.measures.informativeness import JoinInformativeness
from pexeso.errors import InputError


@dataclass(frozen=True)
class JoinSet:
    """A set of columns by which two tables join, J, and what the join is worth.

    Attributes
    ----------
    left, right : tuple of str
        Columns of the edge's tables: `left[i]` joins `right[i]`. Sorted by pair.
    informativeness : JoinInformativeness
        JI and the counts that it rests on.
    n_keys : int
        Distinct keys that both tables have.
    left_most, right_most : int
        The most rows of one matched key, on either side: 1 where keys are unique.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    informativeness: JoinInformativeness
    n_keys: int
    left_most: int
    right_most: int

    @property
    def weight(self) -> float:
        """JI, from 0 to 1, smaller is better; 1 where no key matches, whatever JI is.

        JI is 0, the best, for two tables that have one key each and share none.
        """
        return self.informativeness.value if self.n_keys else 1.0

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that are equal, left then right."""
        return tuple(zip(self.left, self.right, strict=True))

    def swapped(self) -> JoinSet:
        """Return the same set as seen from the right table."""
        informativeness = self.informativeness
        return JoinSet(
            self.right,
            self.left,
            JoinInformativeness(
                informativeness.value,
                informativeness.matched,
                informativeness.right_only,
                informativeness.left_only,
                informativeness.null_rows,
            ),
            self.n_keys,
            self.right_most,
            self.left_most,
        )


@dataclass(frozen=True)
class JoinEdge:
    """Two tables that join, an I-edge with its AS-edges.

    Attributes
    ----------
    left, right : str
        Names of the tables, `left` before `right`.
    join_sets : tuple of JoinSet
        By weight, number of columns and names; at least one.
    natural : bool
        Columns join where their names are equal, as the paper has it: then a plan that buys a
        shared column on both sides joins by it, asked or not.
    """

    left: str
    right: str
    join_sets: tuple[JoinSet, ...]
    natural: bool = False

    def __post_init__(self) -> None:
        if not self.left < self.right:
            raise InputError(
                f"An edge has two different tables, the first by name on its left. Got "
                f"'{self.left}' and '{self.right}'."
            )
        if not self.join_sets:
            raise InputError(f"No columns join '{self.left}' and '{self.right}'.")

    @classmethod
    def of(
        cls, left: str, right: str, join_sets: Iterable[JoinSet], *, natural: bool = False
    ) -> JoinEdge:
        """Return an edge with its tables and join sets in order."""
        if left > right:
            left, right = right, left
            join_sets = (join_set.swapped() for join_set in join_sets)
        ordered = sorted(join_sets, key=lambda join: (join.weight, len(join.left), join.pairs))
        return cls(left, right, tuple(ordered), natural)

    @property
    def weight(self) -> float:
        """The least weight of its join sets."""
        return self.join_sets[0].weight

    def other(self, table: str) -> str:
        """Return the table at the other end."""
        return self.right if table == self.left else self.left


@dataclass(frozen=True, eq=False)
class JoinGraph:
    """The join graph of a market.

    Attributes
    ----------
    tables : mapping of str to MarketTable
        By name.
    edges : mapping of (str, str) to JoinEdge
        By left and right table.
    """

    tables: Mapping[str, MarketTable]
    edges: Mapping[tuple[str, str], JoinEdge] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pair, edge in self.edges.items():
            if pair != (edge.left, edge.right) or not set(pair) <= set(self.tables):
                raise InputError(f"The edge {pair} must join two tables of the graph.")

    @classmethod
    def of(cls, tables: Iterable[MarketTable], edges: Iterable[JoinEdge] = ()) -> JoinGraph:
        """Return the graph of tables and edges.

        Raises
        ------
        InputError
            If two tables have one name, or an edge joins tables that are not there.
        """
        by_name: dict[str, MarketTable] = {}
        for table in tables:
            if table.name in by_name:
                raise InputError(f"Tables must have different names, got '{table.name}' twice.")
            by_name[table.name] = table
        return cls(by_name, {(edge.left, edge.right): edge for edge in edges})

    def with_tables(
        self, tables: Iterable[MarketTable], edges: Iterable[JoinEdge] = ()
    ) -> JoinGraph:
        """Return this graph with further tables, such as the shopper's own, and their edges."""
        return JoinGraph.of([*self.tables.values(), *tables], [*self.edges.values(), *edges])

    def without(
        self, tables: Iterable[str] = (), joins: Iterable[tuple[str, str]] = ()
    ) -> JoinGraph:
        """Return this graph without some tables and edges.

        Raises
        ------
        InputError
            If one of them is not there.
        """
        removed, cut = set(tables), {tuple(sorted(pair)) for pair in joins}
        for name in sorted(removed - set(self.tables)):
            raise InputError(f"There is no table '{name}' to leave out.")
        for pair in sorted(cut - set(self.edges)):
            raise InputError(f"'{pair[0]}' and '{pair[1]}' have no join to leave out.")
        return JoinGraph(
            {name: table for name, table in self.tables.items() if name not in removed},
            {
                pair: edge
                for pair, edge in self.edges.items()
                if pair not in cut and not removed & set(pair)
            },
        )

    @cached_property
    def _edges_of(self) -> dict[str, tuple[JoinEdge, ...]]:
        by_table: dict[str, list[JoinEdge]] = {name: [] for name in self.tables}
        for pair in sorted(self.edges):
            for name in pair:
                by_table[name].append(self.edges[pair])
        return {name: tuple(edges) for name, edges in by_table.items()}

    def edges_of(self, table: str) -> tuple[JoinEdge, ...]:
        """Return the edges at a table, by the names of their tables."""
        return self._edges_of[table]

    def edge(self, one: str, other: str) -> JoinEdge:
        """Return the edge between two tables."""
        return self.edges[min(one, other), max(one, other)]

    def components(self) -> list[list[str]]:
        """Return the tables that are connected by joins, largest component first."""
        left, components = set(self.tables), []
        for start in sorted(self.tables):
            if start in left:
                components.append(sorted(self._reached(start, left)))
        return sorted(components, key=lambda names: (-len(names), names))

    def _reached(self, start: str, left: set[str]) -> Iterator[str]:
        stack = [start]
        left.discard(start)
        while stack:
            name = stack.pop()
            yield name
            for edge in self.edges_of(name):
                other = edge.other(name)
                if other in left:
                    left.discard(other)
                    stack.append(other)
