"""Step 1 of the search: trees of tables of little weight that have all columns of a request.

The paper's minimal weighted graphs IG at the I-layer. For each landmark and each cover, the paths
from the tables of the cover to the landmark are put together. Paths to one landmark that meet go on
together, so the union is a tree; what leads to the landmark alone is cut off.

The weight of a join is here the least over all column sets by which two tables join, so the weight
of a minimal graph is a lower bound for all plans on its joins. That none is below a bound on the
weight does not prove that there is no plan: a landmark that is far off makes detours.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.search.plans import Join, JoinTree
from pexeso.acquisition.search.published.covers import MAX_COVERS, Cover, minimal_covers, near_cover
from pexeso.acquisition.search.published.landmarks import Landmark, Pair
from pexeso.acquisition.search.request import AcquisitionRequest, Terminal


@dataclass(frozen=True)
class MinimalGraph:
    """Tables that joins connect without a circle, and where each column of a request is from.

    Attributes
    ----------
    pairs : tuple of (str, str)
        The joins, left and right table of each; sorted.
    have, want : tuple of (str, str)
        As those of `JoinTree`.
    weight : float
        The sum of the least weights of the joins, w(IG).
    """

    pairs: tuple[Pair, ...]
    have: tuple[Pair, ...]
    want: tuple[Pair, ...]
    weight: float

    @property
    def tables(self) -> tuple[str, ...]:
        """Its tables, by name."""
        joined = {table for pair in self.pairs for table in pair}
        return tuple(sorted(joined | {table for table, _ in (*self.have, *self.want)}))

    @property
    def order(self) -> tuple[object, ...]:
        """What tells minimal graphs apart and orders them; those of less weight come first."""
        return self.weight, len(self.pairs), self.pairs, self.have, self.want

    def tree(self, graph: JoinGraph) -> JoinTree:
        """Return the plan whose joins have the least weights."""
        return JoinTree.of(
            (Join(*pair, graph.edges[pair].join_sets[0]) for pair in self.pairs),
            self.have,
            self.want,
        )


def minimal_graphs(
    graph: JoinGraph,
    request: AcquisitionRequest,
    landmarks: Sequence[Landmark],
    *,
    prune: bool = True,
    max_covers: int = MAX_COVERS,
) -> list[MinimalGraph]:
    """Return the minimal graphs of a request, whatever its bounds, least weight first.

    Parameters
    ----------
    graph : JoinGraph
        The graph; without the tables and joins that are to be left out (`JoinGraph.without`).
    request : AcquisitionRequest
        Its terminals count.
    landmarks : sequence of Landmark
        Of this graph.
    prune : bool
        Cut off what leads to a landmark alone. Without it a graph has its landmark.
    max_covers : int
        See `minimal_covers`; beyond it there is one cover for each landmark, of near tables.

    Returns
    -------
    list of MinimalGraph
        Each once. Of several tables of a cover that have a column, one's own goes first, then the
        first by name. Empty if joins do not connect tables that have all columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.acquisition.graph.building import natural_graph
    >>> from pexeso.acquisition.graph.coded import CodedColumns
    >>> from pexeso.acquisition.graph.tables import MarketTable
    >>> from pexeso.acquisition.search.published.landmarks import landmarks_of
    >>> tables = {"x": {"k": [1, 2], "age": [30, 40]}, "y": {"k": [1, 2], "pay": [5, 6]}}
    >>> market = [MarketTable.of(name, pa.table(rows)) for name, rows in tables.items()]
    >>> graph = natural_graph(market, CodedColumns())
    >>> request = AcquisitionRequest((Terminal.of(graph, "age"),), (Terminal.of(graph, "pay"),))
    >>> found = minimal_graphs(graph, request, landmarks_of(graph))
    >>> [(each.pairs, each.weight) for each in found]
    [((('x', 'y'),), 0.0)]
    """
    known: dict[tuple[Terminal, ...], list[Cover]] = {}
    graphs = set()
    for landmark in landmarks:
        terminals = tuple(
            Terminal(end.column, tuple(name for name in end.tables if name in landmark.distances))
            for end in request.terminals
        )
        if not all(terminal.tables for terminal in terminals):
            continue
        if terminals not in known:
            known[terminals] = minimal_covers(terminals, max_covers)
        for cover in known[terminals] or [near_cover(terminals, landmark.distances)]:
            pairs = {pair for table in cover for pair in landmark.path(table)}
            if prune:
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
    weight = math.fsum(graph.edges[pair].weight for pair in pairs)
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
