"""What the matches of one search rest on: pairs, kinds, carrying words, nearest values; found when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pexeso.carrying import CarriedBy, carried_by
from pexeso.engine.metrics import Metric
from pexeso.engine.stats import SearchStats
from pexeso.explanation import Unmatched, find_unmatched
from pexeso.kinds import KindCounts, count_kinds
from pexeso.lake.catalog import Catalog
from pexeso.options import SearchOptions
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
    with the result; all else is found anew each time.
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
        self._pairs: dict[int, list[Pair]] = {}

    def find(self, places: Iterable[int]) -> None:
        """Find the pairs of these columns, as far as they are not known, and of no others."""
        wanted = [place for place in places if place not in self._pairs]
        if wanted:
            hits = [self._hits[place] for place in wanted]
            lists = find_pairs(self._scan, self._query, hits, self._options, self._stats)
            self._pairs.update(zip(wanted, lists, strict=True))

    def pairs(self, place: int) -> list[Pair]:
        """Give the pairs of a column, in the query's order, nearest first."""
        if place not in self._pairs:
            self.find(range(len(self._hits)))
        return self._pairs[place]

    def kinds(self, place: int) -> KindCounts:
        """Count pairs and rows of a column by kind."""
        return count_kinds(self.pairs(place), self._rows_of_text)

    def carried_by(self, place: int, n: int) -> CarriedBy:
        """Find the words that carry the match of a column, in the nearest pair of each query value: by that its rows match and are joined."""
        of_text = self._value_of_text
        nearest: dict[str, str] = {}
        for pair in self.pairs(place):
            nearest.setdefault(of_text[pair.query], pair.key)
        metric = Metric(self._scan.store.manifest.options["grid"]["metric"])
        return carried_by(list(nearest.items()), self._embedder, metric, n)

    def unmatched(self, place: int, most: int | None) -> tuple[Unmatched, ...]:
        """List the texts of the query without a match in a column, with the nearest lake value of each: the first `most`, or all."""
        return find_unmatched(self._scan, self._query, self._hits[place], self.pairs(place), most)

    def n_unmatched(self, place: int) -> int:
        """Count the texts of the query without a match in a column."""
        texts = pc.drop_null(self._query.column.values.unique())
        return len(texts) - len({pair.query for pair in self.pairs(place)})

    def two_tables(self) -> TwoTables:
        """Give what reads the user's table and those found."""
        store = self._scan.store
        return TwoTables(
            self._query.column, store.manifest.facts["lake"], self._normaliser, Catalog(store.catalog_files)
        )

    @cached_property
    def _rows_of_text(self) -> dict[str, int]:
        texts, _ = self._query.texts
        return dict(zip(texts, self._query.rows_of_text.tolist(), strict=True))

    @cached_property
    def _value_of_text(self) -> dict[str, str]:
        texts, places = self._query.texts
        return dict(zip(texts, np.asarray(self._query.values.to_pylist(), dtype=object)[places].tolist(), strict=True))
