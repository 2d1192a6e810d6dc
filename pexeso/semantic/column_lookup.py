"""The values of one lake column that are near query values, looked up again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lists import damage_made_plain
from pexeso.results.query import Hit
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.open_index import OpenIndex
from pexeso.semantic.pairs import posting_arrays
from pexeso.store.arrays import take_wide


class NearValues(NamedTuple):
    """The values found, best first for each query value, those in ascending order.

    query, position: int64 (p,), in the query's values and in those of the column; distance: float64
    (p,); equal: bool (p,), whether the two are equal once normalised.
    """

    query: np.ndarray
    position: np.ndarray
    distance: np.ndarray
    equal: np.ndarray


class ColumnLookup:
    """One column of an index: its distinct `texts` and normalised `keys`, and lists of its own.

    Memory: the texts, and some hundred bytes a value for the lists.
    """

    def __init__(self, opened: OpenIndex, hit: Hit) -> None:
        loader = opened.loader
        partition = loader.on_host(hit.partition)
        lists = partition.column_lists
        postings = np.arange(*lists.offsets[hit.position : hit.position + 2])
        rows = lists.members[postings].astype(np.int64)
        order = np.argsort(rows)
        self.table, self.label = hit.table, hit.label
        self.texts, self.keys = posting_arrays(loader, hit.partition, postings[order])
        self._find = loader.space.finder(partition, rows[order])

    def __len__(self) -> int:
        return len(self.texts)

    @damage_made_plain("the index")
    def near(self, query: EncodedQuery, max_distance: float, limit: int) -> NearValues:
        """Find at most `limit` values near each query value: equal ones first, then nearest."""
        runs = [
            self._best(query, limit, *pairs) for pairs in self._find(query.vectors, max_distance)
        ]
        none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool)
        return NearValues(*map(np.concatenate, zip(none, *runs, strict=True)))

    def _best(
        self,
        query: EncodedQuery,
        limit: int,
        which: np.ndarray,
        position: np.ndarray,
        distance: np.ndarray,
    ) -> NearValues:
        ours = take_wide(query.values, pa.array(which)).cast(pa.large_string())
        theirs = take_wide(self.keys, pa.array(position))
        equal = pc.equal(ours, theirs).to_numpy(zero_copy_only=False)
        order = np.lexsort((position, ~equal, distance, which))
        first = np.searchsorted(which[order], which[order])
        order = order[np.arange(len(order)) - first < limit]
        return NearValues(which[order], position[order], distance[order], equal[order])
