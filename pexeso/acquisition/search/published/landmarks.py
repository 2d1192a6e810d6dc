"""Landmarks: a few tables of the graph, with the path of least weight from each to all others.

With landmarks, tables are connected by the paths that each has to a common landmark, which costs a
table look-up, where the connection of least weight, a Steiner tree, is NP-hard (section on the
minimal weighted graph). There are ceil(log2 n) landmarks of n tables, the number in the paper's
complexity. The paper draws them from all tables; here each part of the graph that joins connect
has its own, since a landmark says nothing of tables that no join leads to.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.errors import InputError

Pair = tuple[str, str]


@dataclass(frozen=True)
class Landmark:
    """A table and its paths of least weight to all tables that joins connect with it.

    Attributes
    ----------
    table : str
        The landmark.
    distances : dict of str to float
        The weight of the path from each table: the sum of the least weights of its joins.
    hops : dict of str to int
        How many joins the path has.
    towards : dict of str to str
        The next table of the path from each table; none of the landmark itself.
    """

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
    graph: JoinGraph,
    tables: Collection[str] | None = None,
    *,
    n_landmarks: int | None = None,
    seed: int = 0,
) -> list[Landmark]:
    """Return landmarks of a graph, drawn by hashes of the names of tables.

    The same table has the same hash in each graph, so the draw does not depend on the order of
    tables, and a further table changes one landmark at most, or adds one.

    Parameters
    ----------
    graph : JoinGraph
        The graph.
    tables : collection of str, optional
        Landmarks are for parts of the graph that have one of these; for all parts if not given.
    n_landmarks : int, optional
        Landmarks of a part; of n tables max(1, ceil(log2 n)) if not given.
    seed : int
        Another one draws others.

    Returns
    -------
    list of Landmark
        Part by part, the largest first; by hash in each.

    Raises
    ------
    InputError
        If `n_landmarks` is below 1.
    """
    if n_landmarks is not None and n_landmarks < 1:
        raise InputError(f"n_landmarks must be 1 or more, got {n_landmarks}.")
    requested = set(graph.tables) if tables is None else set(tables)
    landmarks = []
    for part in graph.components():
        if requested & set(part):
            n = n_landmarks or max(1, (len(part) - 1).bit_length())
            drawn = sorted(part, key=lambda name: (_hash(name, seed), name))[:n]
            landmarks += [shortest_paths(graph, name) for name in drawn]
    return landmarks


def shortest_paths(graph: JoinGraph, table: str) -> Landmark:
    """Return the paths of least weight from all tables to one, by Dijkstra's algorithm.

    Of paths of equal weight the one with fewer joins is taken, then the one whose tables come
    first by name: weights of 0 are common. The work is that of sorting the edges.

    Parameters
    ----------
    graph : JoinGraph
        The graph.
    table : str
        One of its tables.

    Returns
    -------
    Landmark

    Raises
    ------
    InputError
        If there is no such table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.acquisition.graph.building import natural_graph
    >>> from pexeso.acquisition.graph.coded import CodedColumns
    >>> from pexeso.acquisition.graph.tables import MarketTable
    >>> tables = {"a": {"k": [1]}, "b": {"k": [1], "m": [2]}, "c": {"m": [2]}}
    >>> market = [MarketTable.of(name, pa.table(rows)) for name, rows in tables.items()]
    >>> landmark = shortest_paths(natural_graph(market, CodedColumns()), "a")
    >>> list(landmark.path("c")), landmark.hops["c"]
    ([('b', 'c'), ('a', 'b')], 2)
    """
    if table not in graph.tables:
        raise InputError(f"There is no table '{table}'.")
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
            other = edge.other(current)
            label = (distance + edge.weight, hops + 1, (*path, other))
            if other not in known or label < known[other]:
                known[other] = label
                heapq.heappush(queue, label)
    return result


def _hash(name: str, seed: int) -> bytes:
    return blake2b(f"{seed}\x1f{name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
