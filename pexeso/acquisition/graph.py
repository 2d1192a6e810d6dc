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

from pexeso.acquisition.tables import CodedColumns, JoinKeys, MarketTable, free
from pexeso.errors import InputError
from pexeso.joins.measures import information


def join_informativeness(left_counts: np.ndarray, right_counts: np.ndarray) -> float:
    """Return the join informativeness of two columns from the counts of their values."""
    # As doubles, since products may exceed int64.
    left, right = np.asarray(left_counts, np.float64), np.asarray(right_counts, np.float64)
    # The full outer join has each distinct pair of values as often as the two counts multiply.
    in_left, in_right = left > 0, right > 0
    matched = (left * right)[in_left & in_right]
    left_only, right_only = left[in_left & ~in_right], right[in_right & ~in_left]
    pairs = np.concatenate([matched, left_only, right_only])
    if not len(pairs):
        return math.nan
    whole = information(pairs)
    if whole == 0:
        return 0.0 if len(matched) else 1.0
    return min((information(left_only) + information(right_only)) / whole, 1.0)


@dataclass(frozen=True)
class JoinSet:
    """A set of columns by which two tables join, J, and what the join is worth."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    informativeness: float
    n_keys: int
    left_most: int
    right_most: int

    @cached_property
    def weight(self) -> float:
        """JI, from 0 to 1, smaller is better; 1 where no key matches, whatever JI is.

        JI is 0, the best, for two tables that have one key each and share none.
        """
        return self.informativeness if self.n_keys else 1.0

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.left, self.right, strict=True))

    def swapped(self) -> JoinSet:
        counts = self.informativeness, self.n_keys, self.right_most, self.left_most
        return JoinSet(self.right, self.left, *counts)


@dataclass(frozen=True)
class JoinEdge:
    """Two tables that join, an I-edge with its AS-edges."""

    left: str
    right: str
    join_sets: tuple[JoinSet, ...]
    natural: bool = False

    @classmethod
    def of(
        cls, left: str, right: str, join_sets: Iterable[JoinSet], *, natural: bool = False
    ) -> JoinEdge:
        if left > right:
            left, right = right, left
            join_sets = (join_set.swapped() for join_set in join_sets)
        ordered = sorted(join_sets, key=lambda join: (join.weight, len(join.left), join.pairs))
        return cls(left, right, tuple(ordered), natural)


@dataclass(frozen=True, eq=False)
class JoinGraph:
    tables: Mapping[str, MarketTable]
    edges: Mapping[tuple[str, str], JoinEdge] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Iterable[MarketTable], edges: Iterable[JoinEdge] = ()) -> JoinGraph:
        by_name = {table.name: table for table in tables}
        return cls(by_name, {(edge.left, edge.right): edge for edge in edges})

    def without(self, joins: Iterable[tuple[str, str]]) -> JoinGraph:
        removed = {tuple(sorted(pair)) for pair in joins}
        for one, other in sorted(removed - set(self.edges)):
            raise InputError(f"'{one}' and '{other}' have no join to leave out.")
        edges = {pair: edge for pair, edge in self.edges.items() if pair not in removed}
        return JoinGraph(self.tables, edges)

    @cached_property
    def _edges_of(self) -> dict[str, tuple[JoinEdge, ...]]:
        by_table: dict[str, list[JoinEdge]] = {name: [] for name in self.tables}
        for pair in sorted(self.edges):
            for name in pair:
                by_table[name].append(self.edges[pair])
        return {name: tuple(edges) for name, edges in by_table.items()}

    @cached_property
    def has_natural(self) -> bool:
        return any(edge.natural for edge in self.edges.values())

    @cached_property
    def is_free(self) -> bool:
        """Whether no table costs anything."""
        return all(table.owned or table.price is free for table in self.tables.values())

    def edges_of(self, table: str) -> tuple[JoinEdge, ...]:
        return self._edges_of[table]

    def edge(self, one: str, other: str) -> JoinEdge:
        return self.edges[min(one, other), max(one, other)]


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
    for (left, right), edge_pairs in pairs.items():
        sets = [
            weighed(chosen, coded.keys(tables[left], tables[right], chosen))
            for chosen in candidate_sets(edge_pairs)
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
        chosen
        for size in sizes
        for chosen in combinations(ordered, size)
        if len(set(dict(chosen).values())) == size
    ]


def weighed(pairs: Sequence[Pair], keys: JoinKeys) -> JoinSet:
    size = keys.n_codes + 1
    left = np.bincount(keys.left + 1, minlength=size)[1:]  # -1 is no key
    right = np.bincount(keys.right + 1, minlength=size)[1:]
    shared = ((left > 0) & (right > 0)).nonzero()[0]
    return JoinSet(
        *map(tuple, zip(*pairs, strict=True)),
        join_informativeness(left, right),
        len(shared),
        int(np.maximum.reduce(left[shared], initial=0)),
        int(np.maximum.reduce(right[shared], initial=0)),
    )
