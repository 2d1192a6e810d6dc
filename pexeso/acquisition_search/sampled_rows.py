"""Which rows of tables an estimate looks at: those whose keys of joins are in a sample.

A key is in the samples of both tables of a join or of none, since its hash decides. Joins with few
distinct keys are not sampled: leaving some out would lose much and save little.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pexeso.acquisition.graph.coded import CodedColumns
from pexeso.acquisition.graph.joins import JoinGraph
from pexeso.acquisition.sampling.correlated import SMALL_DOMAIN, edge_rate
from pexeso.acquisition.sampling.hashing import hash_positions
from pexeso.acquisition.search.plans import Join, JoinTree


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Tells which rows of the tables of a plan are in its sample.

    Attributes
    ----------
    graph : JoinGraph
        The tables.
    coded : CodedColumns
        Their keys.
    rate : float
        Share of the keys that are in the sample, above 0 and at most 1.
    seed : int
        Different seeds give independent samples.
    small_domain : int
        Most distinct keys of a table whose joins are not sampled.

    Notes
    -----
    Memory: a byte for each row of each table and each set of columns that it joins by.
    """

    graph: JoinGraph
    coded: CodedColumns
    rate: float
    seed: int = 0
    small_domain: int = SMALL_DOMAIN
    _known: dict[tuple[str, tuple[str, ...]], np.ndarray] = field(default_factory=dict, repr=False)

    def __call__(self, tree: JoinTree, table: str) -> np.ndarray | None:
        """Return which rows of a table are in the sample of a plan, None for all of them."""
        kept: np.ndarray | None = None
        for join in tree.joins:
            if table in (join.left, join.right) and self._is_sampled(join):
                rows = self._rows(table, join.columns_of(table))
                kept = rows if kept is None else kept & rows
        return kept

    def _is_sampled(self, join: Join) -> bool:
        left, right = self.graph.tables[join.left], self.graph.tables[join.right]
        keys = self.coded.keys(left, right, join.join_set.pairs)
        n_keys = (len(np.unique(side[side >= 0])) for side in (keys.left, keys.right))
        return edge_rate(*n_keys, self.rate, small_domain=self.small_domain) < 1

    def _rows(self, table: str, columns: tuple[str, ...]) -> np.ndarray:
        if (table, columns) not in self._known:
            # Numbers for names: the columns of both tables have to hash alike.
            found = (self.coded.tokens(self.graph.tables[table], name) for name in columns)
            tokens = {
                str(at): each.values.take(pa.array(each.codes, mask=each.codes < 0))
                for at, each in enumerate(found)
            }
            positions = hash_positions(pa.table(tokens), list(tokens), seed=self.seed)
            self._known[table, columns] = positions <= self.rate  # not where a key is missing
        return self._known[table, columns]
