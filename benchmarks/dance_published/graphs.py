"""Covers: smallest sets of tables that have all the columns that a plan must have.

A cover needs each of its tables for some column: without it that column is in none of the others.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from pexeso.acquisition.graph import JoinEdge, JoinGraph
from pexeso.acquisition.plans import AcquisitionRequest, Terminal


def weight_of(edge: JoinEdge) -> float:
    """Return the least weight of the joins of two tables."""
    return edge.join_sets[0].weight


def other_end(edge: JoinEdge, table: str) -> str:
    """Return the table that an edge joins with one of its own."""
    return edge.right if table == edge.left else edge.left


Cover = tuple[str, ...]


def minimal_covers(terminals: Sequence[Terminal]) -> list[Cover]:
    """Return all minimal covers of the columns of a request; they can be exponentially many."""
    groups = sorted({frozenset(terminal.tables) for terminal in terminals}, key=_order)
    return sorted(set(_covers(groups, frozenset())), key=lambda cover: (len(cover), cover))


def _covers(groups: Sequence[frozenset[str]], chosen: frozenset[str]) -> Iterator[Cover]:
    """Yield minimal covers that have the chosen tables, some twice."""
    left = [group for group in groups if not group & chosen]
    if not left:
        yield tuple(sorted(chosen))
        return
    for table in sorted(left[0]):
        more = chosen | {table}
        # A table that is needed for no column alone stays so whatever is added.
        if all(any(group & more == {member} for group in groups) for member in more):
            yield from _covers(groups, more)


def _order(group: frozenset[str]) -> tuple[int, list[str]]:
    return len(group), sorted(group)


Pair = tuple[str, str]


@dataclass(frozen=True)
class Landmark:
    """A table and its paths of least weight to all tables that joins connect with it."""

    table: str
    distances: dict[str, float]
    hops: dict[str, int]
    towards: dict[str, str]

    def path(self, table: str) -> Iterator[Pair]:
        """Yield the joins from a table to the landmark, left and right table of each."""
        while table != self.table:
            following = self.towards[table]
            yield min(table, following), max(table, following)
            table = following


def landmarks_of(
    graph: JoinGraph, tables: Collection[str] | None = None, seed: int = 0
) -> list[Landmark]:
    """Return landmarks of a graph, drawn by hashes of the names of tables."""
    requested = set(graph.tables) if tables is None else set(tables)
    landmarks = []
    for part in components(graph):
        if requested & set(part):
            n = max(1, (len(part) - 1).bit_length())
            drawn = sorted(part, key=lambda name: (_hash(name, seed), name))[:n]
            landmarks += [shortest_paths(graph, name) for name in drawn]
    return landmarks


def shortest_paths(graph: JoinGraph, table: str) -> Landmark:
    """Return the paths of least weight from all tables to one, by Dijkstra's algorithm."""
    queue: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 0, (table,))]
    known = {table: queue[0]}
    result = Landmark(table, {}, {}, {})
    while queue:
        distance, hops, path = heapq.heappop(queue)
        current = path[-1]
        if current in result.distances:
            continue
        result.distances[current], result.hops[current] = distance, hops
        if hops:
            result.towards[current] = path[-2]
        for edge in graph.edges_of(current):
            other = other_end(edge, current)
            label = (distance + weight_of(edge), hops + 1, (*path, other))
            if other not in known or label < known[other]:
                known[other] = label
                heapq.heappush(queue, label)
    return result


def _hash(name: str, seed: int) -> bytes:
    return blake2b(f"{seed}\x1f{name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True)
class MinimalGraph:
    """Tables that joins connect without a circle, and where each column of a request is from."""

    pairs: tuple[Pair, ...]
    have: tuple[Pair, ...]
    want: tuple[Pair, ...]
    weight: float

    @property
    def tables(self) -> tuple[str, ...]:
        joined = {table for pair in self.pairs for table in pair}
        return tuple(sorted(joined | {table for table, _ in (*self.have, *self.want)}))

    @property
    def order(self) -> tuple[object, ...]:
        """What tells minimal graphs apart and orders them; those of less weight come first."""
        return self.weight, len(self.pairs), self.pairs, self.have, self.want


def minimal_graphs(
    graph: JoinGraph,
    request: AcquisitionRequest,
    landmarks: Sequence[Landmark],
) -> list[MinimalGraph]:
    """Return the minimal graphs of a request, whatever its bounds, least weight first."""
    graphs = set()
    for landmark in landmarks:
        terminals = tuple(
            Terminal(end.column, tuple(name for name in end.tables if name in landmark.distances))
            for end in request.terminals
        )
        if not all(terminal.tables for terminal in terminals):
            continue
        for cover in minimal_covers(terminals):
            pairs = {pair for table in cover for pair in landmark.path(table)}
            pairs = _pruned(pairs, set(cover))
            graphs.add(_minimal_graph(graph, request, pairs, cover))
    return sorted(graphs, key=lambda minimal_graph: minimal_graph.order)


def _minimal_graph(
    graph: JoinGraph, request: AcquisitionRequest, pairs: set[Pair], cover: Sequence[str]
) -> MinimalGraph:
    first = sorted(cover, key=lambda name: (not graph.tables[name].owned, name))
    sources = [
        (next(name for name in first if name in set(terminal.tables)), terminal.column)
        for terminal in request.terminals
    ]
    n_have = len(request.have)
    weight = math.fsum(weight_of(graph.edges[pair]) for pair in pairs)
    return MinimalGraph(
        tuple(sorted(pairs)), tuple(sources[:n_have]), tuple(sources[n_have:]), weight
    )


def _pruned(pairs: set[Pair], cover: set[str]) -> set[Pair]:
    """Return a tree without ends that are not to be kept, again and again."""
    while True:
        degrees = Counter(table for pair in pairs for table in pair)
        ends = {table for table, degree in degrees.items() if degree == 1} - cover
        if not ends:
            return pairs
        pairs = {pair for pair in pairs if not ends & set(pair)}


def components(graph: JoinGraph) -> list[list[str]]:
    """Return the tables that are connected by joins, largest component first."""
    left, parts = set(graph.tables), []
    for start in sorted(graph.tables):
        part = [start] if start in left else []
        left -= {start}
        for name in part:
            others = sorted({other_end(edge, name) for edge in graph.edges_of(name)} & left)
            part += others
            left -= set(others)
        parts += [sorted(part)] if part else []
    return sorted(parts, key=lambda names: (-len(names), names))
