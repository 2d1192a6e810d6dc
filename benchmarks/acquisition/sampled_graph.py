"""The join graph of a market with the weights that samples of its tables give."""

from __future__ import annotations

import numpy as np

from pexeso.acquisition.graph.building import weighed
from pexeso.acquisition.graph.coded import CodedColumns, JoinKeys
from pexeso.acquisition.graph.joins import JoinEdge, JoinGraph, JoinSet
from pexeso.acquisition.search.plans import Join, JoinTree
from pexeso.acquisition.search.row_counts import RowsOf
from pexeso.acquisition.search.sampled import SampledPlans


def sampled_graph(
    graph: JoinGraph, coded: CodedColumns, rate: float, seed: int = 0
) -> tuple[JoinGraph, RowsOf]:
    """Return a graph whose joins are weighed on samples, and which rows a plan has of its tables.

    A table has no sample of its own: a plan keeps the rows that pass the tests of all its joins at
    the table. So tables stay whole, and rows that are left out are passed over.
    """
    samples = SampledPlans(graph, rate, seed, coded)
    masks: dict[tuple[str, str, tuple[tuple[str, str], ...], str], np.ndarray | None] = {}

    def in_sample(edge: JoinEdge, join_set: JoinSet) -> JoinSet:
        tree = JoinTree.of([Join(edge.left, edge.right, join_set)], (), ())
        keys = coded.keys(graph.tables[edge.left], graph.tables[edge.right], join_set.pairs)
        sides = []
        for table, codes in ((edge.left, keys.left), (edge.right, keys.right)):
            mask = masks[edge.left, edge.right, join_set.pairs, table] = samples.rows_of(
                tree, table
            )
            sides.append(codes if mask is None else np.where(mask, codes, -1))
        return weighed(join_set.pairs, JoinKeys(*sides, keys.n_codes))

    def rows_of(tree: JoinTree, table: str) -> np.ndarray | None:
        # By name: which joins are sampled depends on their keys in whole tables.
        mask = None
        for join in tree.joins_at.get(table, ()):
            passing = masks[join.left, join.right, join.join_set.pairs, table]
            if passing is not None:
                mask = passing if mask is None else mask & passing
        return mask

    edges = [
        JoinEdge.of(
            edge.left,
            edge.right,
            [in_sample(edge, join_set) for join_set in edge.join_sets],
            natural=edge.natural,
        )
        for edge in graph.edges.values()
    ]
    return JoinGraph.of(graph.tables.values(), edges), rows_of
