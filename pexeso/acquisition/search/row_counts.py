"""How often each row of each table stands in the join result of a plan, without forming it.

Each table tells each neighbour, for each key, how many rows its side of the tree has: the sum over
its rows with the key of the product of what its other neighbours told it. The number of times that
a row stands in the result is the product of what all its neighbours tell of its keys. Time and
memory are linear in the rows of the tables, whatever the size of the result.

Counts are doubles, exact up to 2**53; greater ones are rounded, the same way on every processor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping

import numpy as np

from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.search.plans import Join, JoinTree

RowsOf = Callable[[JoinTree, str], np.ndarray | None]
"""Which rows of a table of a plan count, as bools; None for all."""

_MAX_BYTES = 512 << 20


class RowCounts:
    """Counts of rows in the join results of plans over one graph.

    Plans share what equal parts of their trees tell; up to half a gigabyte of it is kept.

    Parameters
    ----------
    graph : JoinGraph
        The tables.
    coded : CodedColumns
        Their keys.
    rows_of : callable, optional
        Which rows are in the sample; it may depend on the joins at the table alone.
    """

    def __init__(
        self, graph: JoinGraph, coded: CodedColumns, rows_of: RowsOf | None = None
    ) -> None:
        self.graph, self._coded, self._rows_of = graph, coded, rows_of
        self._kept: OrderedDict[object, np.ndarray] = OrderedDict()
        self._bytes = 0

    def keys(self, join: Join, table: str) -> np.ndarray:
        """Return the number of the key of a join in each row of one of its tables, or -1."""
        tables = self.graph.tables
        keys = self._coded.keys(tables[join.left], tables[join.right], join.join_set.pairs)
        return keys.left if table == join.left else keys.right

    def n_keys(self, join: Join) -> int:
        """Return a number above all those of the keys of a join."""
        tables = self.graph.tables
        return self._coded.keys(tables[join.left], tables[join.right], join.join_set.pairs).n_codes

    def of_rows(
        self,
        tree: JoinTree,
        table: str,
        *,
        without: Collection[Join] = (),
        masks: Mapping[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return how often each row of a table stands in the join result.

        Parameters
        ----------
        tree : JoinTree
            The plan.
        table : str
            One of its tables.
        without : collection of Join
            Joins at the table: the result is that of the tree without what lies beyond them.
        masks : mapping of str to numpy.ndarray of bool, optional
            Which rows of some tables count.

        Returns
        -------
        numpy.ndarray of float64
            One count for each row.
        """
        counts = np.ones(self.graph.tables[table].n_rows)
        if self._rows_of is not None:
            chosen = self._rows_of(tree, table)
            if chosen is not None:
                counts = chosen.astype(np.float64)
        if masks is not None and table in masks:
            counts = counts * masks[table]
        for join in tree.joins_at.get(table, ()):
            if join not in without:
                key_counts = self.of_keys(tree, join, join.other(table), masks=masks)
                counts = counts * key_counts[self.keys(join, table)]
        return counts

    def of_keys(
        self,
        tree: JoinTree,
        join: Join,
        table: str,
        *,
        masks: Mapping[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return how many rows the part of the tree beyond a join has for each of its keys.

        Parameters
        ----------
        tree : JoinTree
            The plan.
        join : Join
            One of its joins.
        table : str
            The table of the join at which that part begins.
        masks
            As those of `of_rows`.

        Returns
        -------
        numpy.ndarray of float64
            One count for each key, and 0 last, which stands for the key -1.
        """
        joins, tables = tree.beyond(join, table)
        masked = masks is not None and any(name in masks for name in tables)
        key = (join, table, joins)
        if not masked and key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        counts = self.of_rows(tree, table, without=(join,), masks=masks)
        codes, n_keys = self.keys(join, table), self.n_keys(join)
        matched = codes >= 0
        key_counts = np.bincount(codes[matched], counts[matched], minlength=n_keys + 1)
        if not masked:
            self._keep(key, key_counts)
        return key_counts

    def _keep(self, key: object, key_counts: np.ndarray) -> None:
        self._kept[key] = key_counts
        self._bytes += key_counts.nbytes
        while self._bytes > _MAX_BYTES and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
