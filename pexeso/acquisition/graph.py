"""The join graph of a market: tables, the columns by which they join, and what joins are worth.

A weight depends on the two tables and the columns of the join alone (Property 4.1 of DANCE), so a
graph has one `JoinSet` for each set of columns by which two tables join. With k pairs of columns
all 2**k - 1 sets are weighed, beyond `MAX_ALL_SETS` pairs those of at most `MAX_JOIN_SIZE` and the
full one.

The weight is join informativeness, JI = (H - I) / H of the pairs of keys in the full outer join,
from 0 (each key has a partner) to 1. The outer join is never formed: n1 rows of one table and n2 of
the other give n1 * n2 equal pairs where both have a key, n1 or n2 otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from pexeso.acquisition.coded_columns import CodedColumns, JoinKeys
from pexeso.acquisition.tables import MarketTable
from pexeso.errors import InputError
from pexeso.joins.measures.codes import checked_counts
from pexeso.joins.measures.entropies import exact_sum, information


@dataclass(frozen=True)
class JoinInformativeness:
    """The join informativeness of two tables and what it rests on."""

    value: float
    matched: float
    left_only: float
    right_only: float
    null_rows: int = 0


def join_informativeness(
    left_counts: np.ndarray, right_counts: np.ndarray, null_rows: int = 0
) -> JoinInformativeness:
    """Return the join informativeness of two columns from the counts of their values."""
    matched, left_only, right_only = outer_join_counts(left_counts, right_counts)
    dangling = information(left_only) + information(right_only)
    whole = information(np.concatenate([matched, left_only, right_only]))
    n_matched, n_left, n_right = map(exact_sum, (matched, left_only, right_only))
    if not n_matched + n_left + n_right:
        value = math.nan
    elif whole == 0:
        value = 0.0 if n_matched else 1.0
    else:
        value = min(dangling / whole, 1.0)
    return JoinInformativeness(value, n_matched, n_left, n_right, null_rows)


def outer_join_counts(
    left_counts: np.ndarray, right_counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how often each distinct pair of the full outer join of two columns is there."""
    # As doubles, since products may exceed int64.
    left, right = checked_counts(left_counts), checked_counts(right_counts)
    if len(left) != len(right):
        raise InputError(
            f"Both columns need a count for the same values, got {left.shape} and {right.shape}. "
            "Write 0 where a column lacks a value."
        )
    matched = (left * right)[(left > 0) & (right > 0)]
    return matched, left[(left > 0) & (right == 0)], right[(left == 0) & (right > 0)]


@dataclass(frozen=True)
class JoinSet:
    """A set of columns by which two tables join, J, and what the join is worth."""

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
    """Two tables that join, an I-edge with its AS-edges."""

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
    """The join graph of a market."""

    tables: Mapping[str, MarketTable]
    edges: Mapping[tuple[str, str], JoinEdge] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pair, edge in self.edges.items():
            if pair != (edge.left, edge.right) or not set(pair) <= set(self.tables):
                raise InputError(f"The edge {pair} must join two tables of the graph.")

    @classmethod
    def of(cls, tables: Iterable[MarketTable], edges: Iterable[JoinEdge] = ()) -> JoinGraph:
        """Return the graph of tables and edges."""
        by_name: dict[str, MarketTable] = {}
        for table in tables:
            if table.name in by_name:
                raise InputError(f"Tables must have different names, got '{table.name}' twice.")
            by_name[table.name] = table
        return cls(by_name, {(edge.left, edge.right): edge for edge in edges})

    def without(
        self, tables: Iterable[str] = (), joins: Iterable[tuple[str, str]] = ()
    ) -> JoinGraph:
        """Return this graph without some tables and edges."""
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


MAX_ALL_SETS = 6
MAX_JOIN_SIZE = 3

Pair = tuple[str, str]


def edges_of(
    tables: Mapping[str, MarketTable],
    pairs: Mapping[tuple[str, str], Sequence[Pair]],
    coded: CodedColumns,
    *,
    natural: bool = False,
) -> Iterator[JoinEdge]:
    """Weigh the joins of tables by known pairs of columns."""
    for (left, right), of_edge in pairs.items():
        sets = [
            weighed(chosen, coded.keys(tables[left], tables[right], chosen))
            for chosen in candidate_sets(of_edge)
        ]
        yield JoinEdge.of(left, right, sets, natural=natural)


def candidate_sets(pairs: Sequence[Pair]) -> list[tuple[Pair, ...]]:
    """Return the sets of pairs of columns that are weighed, small ones first.

    A column is in one pair of a set at most.
    """
    ordered = sorted(set(pairs))
    few = len(ordered) <= MAX_ALL_SETS
    sizes = range(1, len(ordered) + 1) if few else [*range(1, MAX_JOIN_SIZE + 1), len(ordered)]
    return [
        chosen for size in sizes for chosen in combinations(ordered, size) if _is_matching(chosen)
    ]


def weighed(pairs: Sequence[Pair], keys: JoinKeys) -> JoinSet:
    """Return the join set of two tables from their keys."""
    left, right = (
        np.bincount(side[side >= 0], minlength=keys.n_codes) for side in (keys.left, keys.right)
    )
    shared = (left > 0) & (right > 0)
    null_rows = sum(int((side < 0).sum()) for side in (keys.left, keys.right))
    return JoinSet(
        tuple(left_column for left_column, _ in pairs),
        tuple(right_column for _, right_column in pairs),
        join_informativeness(left, right, null_rows=null_rows),
        int(shared.sum()),
        int(left[shared].max(initial=0)),
        int(right[shared].max(initial=0)),
    )


def _is_matching(pairs: Sequence[Pair]) -> bool:
    return all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))
