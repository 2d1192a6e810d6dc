"""The columns that one model finds for a query column, best first, read as deep as is asked for.

What puts several lists together asks for more of one where the first columns leave open which are
the best of all, and for the counts of columns that only another list has named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.engine.stats import SearchStats
from pexeso.lake.catalog import Catalog
from pexeso.semantic.answers.hints import semantic_hints

if TYPE_CHECKING:
    from pexeso.results.column_matches import Hints
    from pexeso.results.matches import Match
    from pexeso.results.query import QueryColumn
    from pexeso.results.ranking import Hit
    from pexeso.results.table_columns import TableColumns
    from pexeso.semantic.answers.semantic_search import SemanticSearch
    from pexeso.store.local.reader import Store

    Name = tuple[str, str]

COUNTED_AT_ONCE = 16
"""Columns whose pairs with the query are held at a time, where they are counted."""


class SemanticList:
    """The columns that one model finds for a query column.

    Attributes
    ----------
    options : SearchOptions
        Defaults filled in. With `min_joinability` the search finds every column that meets it at
        once, however many are wanted; without it as many as are asked for.
    """

    def __init__(
        self,
        search: SemanticSearch,
        column: QueryColumn,
        exclude_self: bool,
        user_options: Mapping[str, Any],
    ) -> None:
        common = search.thresholds.search_options(user_options)
        started = time.perf_counter()
        self._search, self._query = search, search.opened.encode(column)
        self.stats = SearchStats()
        self.stats.add_seconds("open", search.opened.seconds)
        self.stats.add_seconds("embed", time.perf_counter() - started)
        self.options = search.options_for(self._query, common, exclude_self, user_options)
        self._total = self._query.total(self.options)
        self._hits: list[Hit] = []
        self._is_whole = False
        self._n_read = 0
        self._counted: dict[Name, Hit | None] = {}

    def describe(self) -> dict[str, Any]:
        """Return what is told of the query."""
        return self._query.describe()

    def find_hints(self) -> Callable[[], Hints]:
        """Return what finds hints where nothing was found; it can be sent to another process."""
        opened = self._search.opened
        return partial(semantic_hints, opened, self._query, self.options)

    def read(self, n: int | None) -> None:
        """Search for the first n columns at least; None: for all."""
        if self._is_whole or (n is not None and n <= self._n_read):
            return
        limit = None if self.options.min_joinability is not None else n
        [(hits, spent)] = self._search.executor.search(
            self._search.opened.loader, [self._query], [replace(self.options, k=limit)]
        )
        self.stats.add(spent)
        self._is_whole = limit is None or len(hits) < limit
        self._n_read = len(hits)
        self._hits = hits
        self._counted |= {_name(hit): hit for hit in self._hits}

    @property
    def is_whole(self) -> bool:
        """Whether all columns that the search finds are read."""
        return self._is_whole

    def first(self, n: int | None) -> list[Name]:
        """Return the names of the first n columns read, or all of them; best first."""
        return [_name(hit) for hit in self._hits[:n]]

    def last_read(self, n: int | None) -> tuple[float, Name] | None:
        """Return share and name of the column behind which those not among the first n are.

        None where there are no more.
        """
        if self._is_whole and (n is None or len(self._hits) <= n):
            return None
        if not self._hits:
            return 0.0, ("", "")
        last = self._hits[-1 if n is None else min(n, len(self._hits)) - 1]
        return self._share(last), _name(last)

    def shares(self, names: Sequence[Name]) -> list[float]:
        """Return the joinability of named columns, 0 where the search would not find them.

        Those that were not read are compared with the query one by one.
        """
        unknown = [name for name in names if name not in self._counted]
        if self._is_whole:
            self._counted |= dict.fromkeys(unknown)
        else:
            self._count(unknown)
        hits = [self._counted[name] for name in names]
        return [0.0 if hit is None else self._share(hit) for hit in hits]

    def matches(self, names: Sequence[Name], columns: TableColumns) -> list[Match | None]:
        """Return the matches of named columns, whose evidence is found for all of them together."""
        self.shares(names)
        hits = [hit for name in names if (hit := self._counted[name]) is not None]
        matches = self._search.matches_of(self._query, self.options, hits, self.stats, columns)
        by_name = {_name(hit): match for hit, match in zip(hits, matches, strict=True)}
        return [by_name.get(name) for name in names]

    def _share(self, hit: Hit) -> float:
        return hit.matched / self._total if self._total else 0.0

    def _count(self, names: Sequence[Name]) -> None:
        self._counted |= dict.fromkeys(names)
        hits = locate_columns(self._search.opened.store, names)
        hits = [hit for hit in hits if hit.table != self.options.exclude_table]
        for start in range(0, len(hits), COUNTED_AT_ONCE):
            some = hits[start : start + COUNTED_AT_ONCE]
            counts = self._search.counts_of(self._query, self.options, some, self.stats)
            self._counted |= {
                _name(hit): replace(hit, matched=matched)
                for hit, matched in zip(some, counts, strict=True)
                if matched
            }


def locate_columns(store: Store, names: Sequence[tuple[str, str]]) -> list[Hit]:
    """Find named columns of the lake in the partitions of an index.

    Parameters
    ----------
    names
        (table, label) of each.

    Returns
    -------
    list of Hit
        With counts of 0; columns that no partition holds are not among them.
    """
    from pexeso.semantic.explain.explanation import stored_columns

    if not names:
        return []
    rows = Catalog(store.catalog_files).columns(
        ["table", "label", "column_id"], among=pa.array(sorted({table for table, _ in names}))
    )
    requested, ids = set(names), {}
    for row in rows.to_pylist():
        if row["column_id"] is not None and (row["table"], row["label"]) in requested:
            ids[row["column_id"]] = (row["table"], row["label"])
    return list(stored_columns(store, ids)) if ids else []


def _name(hit: Hit) -> tuple[str, str]:
    return hit.table or "", hit.label or ""
