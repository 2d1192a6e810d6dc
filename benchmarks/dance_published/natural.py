"""The join graph of tables whose columns have one name where they join, as the paper has it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from pexeso.acquisition.graph import JoinGraph, Pair, edges_of
from pexeso.acquisition.tables import CodedColumns, MarketTable


def natural_graph(tables: Iterable[MarketTable], coded: CodedColumns) -> JoinGraph:
    """Return the graph whose tables join where columns have equal names, as the paper has it."""
    graph = JoinGraph.of(tables)
    pairs: dict[tuple[str, str], list[Pair]] = {}
    for one, other in combinations(sorted(graph.tables), 2):
        shared = sorted(set(graph.tables[one].columns) & set(graph.tables[other].columns))
        if shared:
            pairs[one, other] = [(name, name) for name in shared]
    return JoinGraph.of(graph.tables.values(), edges_of(graph.tables, pairs, coded, natural=True))
