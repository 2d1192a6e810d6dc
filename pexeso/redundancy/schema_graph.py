"""Schema Graph Builder: which schemas contain which (R2D2, section 4: SGB).

Schemas join every cluster whose center contains them, widest schemas first; only members of one
cluster are compared. Equal schemas are one, and a pair that shares several clusters is compared in
the first.

What contains a schema has all of its tokens. So comparisons are answered by an index of the schemas
by token, the rarest one first, which finds the same clusters and edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

PAIRS_OF_A_BLOCK = 1 << 20

_LISTED = 64
"""Schemas with a token are listed up to so many; more of them are the bits of a number."""


@dataclass(frozen=True)
class SchemaGraph:
    """Containment among distinct schemas.

    Attributes
    ----------
    members : list of int arrays
        Of each distinct schema the tables that have it, ascending.
    """

    members: list[np.ndarray]
    edges: list[tuple[int, int]]
    centers: tuple[int, ...]
    clusters_of: list[tuple[int, ...]]
    center_tests: int

    @cached_property
    def pair_tests(self) -> int:
        """Comparisons of two members of a cluster, as the algorithm counts them."""
        members: list[list[int]] = [[] for _ in self.centers]
        for schema, clusters in enumerate(self.clusters_of):
            for cluster in clusters:
                members[cluster].append(schema)
        arrays = [np.array(schemas) for schemas in members]
        n_others = 0
        for clusters, n_schemas in Counter(self.clusters_of).items():
            near = np.zeros(len(self.clusters_of), bool)
            for cluster in clusters:
                near[arrays[cluster]] = True
            n_others += n_schemas * (int(near.sum()) - 1)
        return n_others // 2

    @property
    def n_edges(self) -> int:
        """Ordered pairs of different tables of which the first's schema contains the second's."""
        sizes = [len(tables) for tables in self.members]
        return sum(
            sizes[parent] * sizes[child] if parent != child else sizes[parent] * (sizes[parent] - 1)
            for parent, child in self.edges
        )

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the edges between tables: parents and children, int64, `PAIRS_OF_A_BLOCK` at most.

        All children of a block have one schema, and so have all parents.
        """
        for parent, child in self.edges:
            parents, children = self.members[parent], self.members[child]
            step = max(1, PAIRS_OF_A_BLOCK // len(children))
            for begin in range(0, len(parents), step):
                some = parents[begin : begin + step]
                for first in range(0, len(children), PAIRS_OF_A_BLOCK):
                    others = children[first : first + PAIRS_OF_A_BLOCK]
                    parent_tables = np.repeat(some, len(others))
                    child_tables = np.tile(others, len(some))
                    apart = parent_tables != child_tables
                    if apart.any():
                        yield parent_tables[apart], child_tables[apart]


def schema_graph(schemas: Sequence[frozenset[Hashable]]) -> SchemaGraph:
    """Find all containments among the schemas of tables.

    Examples
    --------
    >>> graph = schema_graph([frozenset(each) for each in ("abcd", "cd", "cde", "cd")])
    >>> graph.n_edges
    6
    """
    tables: dict[frozenset[Hashable], list[int]] = {}
    for table, schema in enumerate(schemas):
        tables.setdefault(schema, []).append(table)
    distinct = list(tables)
    index = _Index(distinct)
    is_center = np.zeros(len(distinct), bool)
    cluster_numbers = np.zeros(len(distinct), np.int64)
    centers: list[int] = []
    clusters_of: list[tuple[int, ...]] = [()] * len(distinct)
    edges = [(schema, schema) for schema in range(len(distinct))]
    center_tests = 0
    for schema in sorted(range(len(distinct)), key=lambda number: (-len(distinct[number]), number)):
        center_tests += len(centers)
        wider = index.containing(schema)
        index.add(schema)
        edges += [(parent, schema) for parent in wider.tolist()]
        own_centers = wider[is_center[wider]]
        if not len(own_centers):
            is_center[schema], cluster_numbers[schema] = True, len(centers)
            centers.append(schema)
            own_centers = np.array([schema])
        clusters_of[schema] = tuple(np.sort(cluster_numbers[own_centers]).tolist())
    members = [np.array(tables[schema], np.int64) for schema in distinct]
    return SchemaGraph(members, sorted(edges), tuple(centers), clusters_of, center_tests)


class _Index:
    """Schemas by token, in the order in which they are added."""

    def __init__(self, schemas: Sequence[frozenset[Hashable]]) -> None:
        self._schemas = schemas
        self._n_with = Counter(token for schema in schemas for token in schema)
        self._added: list[int] = []
        self._lists: dict[Hashable, list[int]] = {}
        self._bits: dict[Hashable, int] = {}

    def add(self, schema: int) -> None:
        bit = 1 << len(self._added)
        self._added.append(schema)
        for token in self._schemas[schema]:
            if self._n_with[token] > _LISTED:
                self._bits[token] = self._bits.get(token, 0) | bit
            else:
                self._lists.setdefault(token, []).append(schema)

    def containing(self, schema: int) -> np.ndarray:
        """Return which of the schemas contain one that is not among them: int64."""
        ours = self._schemas[schema]
        tokens = sorted(ours, key=self._n_with.__getitem__)
        if tokens and self._n_with[tokens[0]] <= _LISTED:
            near = self._lists.get(tokens[0], [])
            return np.array([other for other in near if ours <= self._schemas[other]], np.int64)
        bits = (1 << len(self._added)) - 1
        for token in tokens:
            bits &= self._bits.get(token, 0)
            if not bits:
                break
        data = np.frombuffer(bits.to_bytes(len(self._added) // 8 + 1, "little"), np.uint8)
        positions = np.flatnonzero(np.unpackbits(data, bitorder="little"))
        return np.array(self._added, np.int64)[positions] if len(positions) else positions
