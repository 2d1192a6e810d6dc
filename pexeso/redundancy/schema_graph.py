"""Schema Graph Builder: which schemas contain which (R2D2, section 4: SGB).

Schemas join every cluster whose center contains them, widest schemas first; only members of one
cluster are compared. Equal schemas are one, and a pair that shares several clusters is compared in
the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

PAIRS_OF_A_BLOCK = 1 << 20


@dataclass(frozen=True)
class SchemaGraph:
    """Containment among distinct schemas.

    Attributes
    ----------
    members : list of int arrays
        Of each distinct schema the tables that have it, ascending.
    edges : list of (int, int)
        Distinct schemas (parent, child) of which the first contains the second, and each with
        itself.
    centers : tuple of int
        The schemas that are centers of clusters, in the order in which they became so.
    center_tests, pair_tests : int
        Comparisons made.
    """

    members: list[np.ndarray]
    edges: list[tuple[int, int]]
    centers: tuple[int, ...]
    center_tests: int
    pair_tests: int

    @property
    def n_edges(self) -> int:
        """Ordered pairs of different tables of which the first's schema contains the second's."""
        sizes = [len(each) for each in self.members]
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
                    ours = np.repeat(some, len(others))
                    theirs = np.tile(others, len(some))
                    apart = ours != theirs
                    if apart.any():
                        yield ours[apart], theirs[apart]


def schema_graph(schemas: Sequence[frozenset[Hashable]]) -> SchemaGraph:
    """Find all containments among the schemas of tables.

    Parameters
    ----------
    schemas : sequence of frozenset
        Of each table its tokens, one or more.

    Examples
    --------
    >>> graph = schema_graph([frozenset(each) for each in ("abcd", "cd", "cde", "cd")])
    >>> graph.n_edges
    6
    """
    numbers: dict[Hashable, int] = {}
    tables: dict[int, list[int]] = {}
    for table, schema in enumerate(schemas):
        mask = 0
        for token in schema:
            mask |= 1 << numbers.setdefault(token, len(numbers))
        tables.setdefault(mask, []).append(table)
    masks = list(tables)
    order = sorted(range(len(masks)), key=lambda each: (-masks[each].bit_count(), each))
    centers: list[int] = []
    clusters: list[list[int]] = []
    shared: list[list[int]] = [[] for _ in masks]
    center_tests = pair_tests = 0
    for schema in order:
        mask = masks[schema]
        center_tests += len(centers)
        found = [place for place, center in enumerate(centers) if masks[center] & mask == mask]
        if not found:
            found = [len(centers)]
            centers.append(schema)
            clusters.append([])
        for place in found:
            clusters[place].append(schema)
        shared[schema] = found
    edges = [(schema, schema) for schema in range(len(masks))]
    for place, members in enumerate(clusters):
        for wide, narrow in combinations(members, 2):  # widest first
            if _first_shared(shared[wide], shared[narrow]) != place:
                continue
            pair_tests += 1
            if masks[wide] & masks[narrow] == masks[narrow]:
                edges.append((wide, narrow))
    members_of = [np.array(tables[mask], np.int64) for mask in masks]
    return SchemaGraph(members_of, sorted(edges), tuple(centers), center_tests, pair_tests)


def _first_shared(ours: list[int], theirs: list[int]) -> int:
    """Return the first cluster of both; each list ascends, and one is shared."""
    if ours[0] == theirs[0]:
        return ours[0]
    return min(set(ours) & set(theirs))
