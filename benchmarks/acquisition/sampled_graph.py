"""The join graph of correlated samples of a market at several rates, and the rows of plans in them.

A table has no sample of its own: a plan keeps the rows that pass the tests of all its joins at the
table. So samples are masks over whole tables, and time falls with the rate only where rows that are
left out are passed over. Joins with few keys on a side are not sampled (`sampling.correlated`).
"""

from __future__ import annotations

import numpy as np

from pexeso.acquisition.graph.building import weighed
from pexeso.acquisition.graph.coded import CodedColumns, JoinKeys
from pexeso.acquisition.graph.joins import JoinEdge, JoinGraph, JoinSet
from pexeso.acquisition.sampling.correlated import edge_rate
from pexeso.acquisition.sampling.hashing import hash_positions
from pexeso.acquisition.search.plans import JoinTree
from pexeso.acquisition.search.row_counts import RowsOf


class SampledGraph:
    """Samples of the tables of a graph, drawn by the keys of its joins.

    Memory: 8 bytes for each row of a table and each set of columns that it joins by.

    Parameters
    ----------
    graph : JoinGraph
        Of whole tables whose columns join by equal names.
    coded : CodedColumns
        Their keys.
    seed : int
        Of the samples. Those at a higher rate hold all of those at a lower one.
    """

    def __init__(self, graph: JoinGraph, coded: CodedColumns, seed: int = 0):
        self.graph, self._coded, self._seed = graph, coded, seed
        self._positions: dict[tuple[str, tuple[str, ...]], np.ndarray] = {}
        self._distinct: dict[tuple[str, tuple[str, ...]], int] = {}

    def at(self, rate: float) -> tuple[JoinGraph, RowsOf]:
        """Return the graph with the weights that samples have, and which rows a plan keeps.

        Parameters
        ----------
        rate : float
            Of the keys of joins that are sampled, above 0 and at most 1.

        Returns
        -------
        (JoinGraph, callable)
            Tables are the whole ones. The callable is what `Evaluator` takes as `rows_of`.
        """
        edges = [
            JoinEdge.of(
                edge.left,
                edge.right,
                [self._weighed(edge, each, rate) for each in edge.join_sets],
                natural=edge.natural,
            )
            for edge in self.graph.edges.values()
        ]

        def rows_of(tree: JoinTree, table: str) -> np.ndarray | None:
            kept = None
            for join in tree.joins:
                if table in (join.left, join.right):
                    rows = self._kept(join.left, join.right, table, join.columns_of(table), rate)
                    kept = rows if kept is None else kept & rows
            return kept

        return JoinGraph.of(self.graph.tables.values(), edges), rows_of

    def _weighed(self, edge: JoinEdge, join_set: JoinSet, rate: float) -> JoinSet:
        tables = self.graph.tables
        keys = self._coded.keys(tables[edge.left], tables[edge.right], join_set.pairs)
        left, right = (
            np.where(self._kept(edge.left, edge.right, table, names, rate), codes, -1)
            for table, names, codes in (
                (edge.left, join_set.left, keys.left),
                (edge.right, join_set.right, keys.right),
            )
        )
        return weighed(join_set.pairs, JoinKeys(left, right, keys.n_codes))

    def _kept(
        self, left: str, right: str, table: str, names: tuple[str, ...], rate: float
    ) -> np.ndarray:
        """Return which rows of a table pass the test of a join: bool (n,)."""
        sides = [self._n_keys(side, names) for side in (left, right)]
        return self._at(table, names) <= edge_rate(*sides, rate)

    def _n_keys(self, table: str, names: tuple[str, ...]) -> int:
        key = table, tuple(sorted(names))
        if key not in self._distinct:
            positions = self._at(table, names)
            self._distinct[key] = len(np.unique(positions[~np.isnan(positions)]))
        return self._distinct[key]

    def _at(self, table: str, names: tuple[str, ...]) -> np.ndarray:
        key = table, tuple(sorted(names))
        if key not in self._positions:
            rows = self.graph.tables[table].read(list(key[1]))
            self._positions[key] = hash_positions(rows, key[1], seed=self._seed)
        return self._positions[key]
