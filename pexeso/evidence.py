"""What the matches of one search rest on: pairs, kinds, carrying words, nearest values; found when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.carrying import CarriedBy, carried_by
from pexeso.engine.metrics import Metric
from pexeso.engine.stats import SearchStats
from pexeso.explanation import Unmatched, find_unmatched, texts_without_value
from pexeso.kinds import KindCounts
from pexeso.lake.catalog import Catalog
from pexeso.lake.content import DEFAULT_MAX_BYTES
from pexeso.options import SearchOptions
from pexeso.pair_table import PairTable
from pexeso.prepared import PreparedQuery
from pexeso.results import Pair
from pexeso.searching import Hit, PartitionScan, find_pairs
from pexeso.side_by_side import TwoTables

if TYPE_CHECKING:
    from embed.protocol import Embedder
    from pexeso.lake.normalise import Normaliser


class Evidence:
    """What the matches of one search rest on; `place` is that of a column in the result.

    Pairs are found together for all columns when those of the first are asked for, unless `find` was told which are wanted. They stay in memory
    with the result, as arrays; all else is found anew each time.
    """

    def __init__(
        self,
        scan: PartitionScan,
        query: PreparedQuery,
        hits: Sequence[Hit],
        options: SearchOptions,
        stats: SearchStats,
        embedder: Embedder,
        normaliser: Normaliser,
    ) -> None:
        self._scan, self._query, self._hits = scan, query, hits
        self._options, self._stats = options, stats
        self._embedder, self._normaliser = embedder, normaliser
        self._tables: dict[int, PairTable] = {}

    def find(self, places: Iterable[int]) -> None:
        """Find the pairs of these columns, as far as they are not known, and of no others."""
        wanted = [place for place in places if place not in self._tables]
        if wanted:
            hits = [self._hits[place] for place in wanted]
            tables = find_pairs(self._scan, self._query, hits, self._options, self._stats)
            self._tables.update(zip(wanted, tables, strict=True))

    def table(self, place: int) -> PairTable:
        """Give the pairs of a column as arrays."""
        if place not in self._tables:
            self.find(range(len(self._hits)))
        return self._tables[place]

    def pairs(self, place: int, most: int | None = None) -> list[Pair]:
        """Give the first `most` pairs of a column, or all, in the query's order, nearest first."""
        return self.table(place).to_pairs(most)

    def matched(self, place: int) -> int:
        """Count the rows of the query column with a pair in a column."""
        return int(self._query.rows_of_text[self.table(place).is_matched].sum())

    def kinds(self, place: int) -> KindCounts:
        """Count pairs and rows of a column by kind."""
        return self.table(place).count_kinds(self._query.rows_of_text)

    def carried_by(self, place: int, n: int) -> CarriedBy:
        """Find the words that carry the match of a column, in the nearest pair of each query value: by that its rows match and are joined."""
        table = self.table(place)
        _, value_of_text = self._query.texts
        values, first = np.unique(value_of_text[table.text[table.starts]], return_index=True)
        keys = table.keys.take(pa.array(table.starts[first]))
        metric = Metric(self._scan.store.manifest.options["grid"]["metric"])
        return carried_by(self._query.values.take(pa.array(values)), keys, self._embedder, metric, n)

    def unmatched(self, place: int, most: int | None) -> tuple[Unmatched, ...]:
        """List the texts of the query without a match in a column, with the nearest lake value of each: the first `most`, or all."""
        return find_unmatched(self._scan, self._query, self._hits[place], self.table(place).is_matched, most)

    def n_unmatched(self, place: int) -> int:
        """Count the texts of the query without a match in a column."""
        return int((~self.table(place).is_matched).sum()) + len(texts_without_value(self._query))

    def two_tables(self) -> TwoTables:
        """Give what reads the user's table and those found."""
        store = self._scan.store
        lake = store.manifest.facts["lake"]
        most = store.manifest.options.get("max_table_bytes", DEFAULT_MAX_BYTES)
        return TwoTables(self._query.column, lake, self._normaliser, Catalog(store.catalog_files), most)
