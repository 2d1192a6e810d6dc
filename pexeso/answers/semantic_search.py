"""Semantic searches of an open index.

Query columns are encoded, searched by an executor, ranked, and described.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pexeso.answers.match_details import MatchDetails
from pexeso.engine.stats import SearchStats
from pexeso.results import Explanation, Match, SearchResult
from pexeso.search.query import QueryColumn, query_from_values

if TYPE_CHECKING:
    from pexeso.options import SearchOptions
    from pexeso.rerank.attributions import Opinion
    from pexeso.rerank.features import Lake
    from pexeso.results import Renderer
    from pexeso.search.encoded_query import EncodedQuery
    from pexeso.search.executor import Executor
    from pexeso.search.open_index import OpenIndex
    from pexeso.search.ranking import Hit
    from pexeso.thresholds.thresholds import Thresholds


@dataclass(frozen=True)
class SemanticSearch:
    """Answers semantic searches of one snapshot.

    Attributes
    ----------
    executor : Executor
        Where the partitions are searched.
    thresholds : Thresholds
        What makes the options of searches.
    renderer : Renderer
        What makes pages of results.
    """

    opened: OpenIndex
    executor: Executor
    thresholds: Thresholds
    renderer: Renderer

    def search_batch(
        self, queries: Iterable[Any], exclude_self: bool, rerank: bool, given: Mapping[str, Any]
    ) -> list[SearchResult]:
        """Search with several query columns; see `pexeso.Index.search_batch`."""
        common = self.thresholds.search_options(given)
        encoded, seconds = [], []
        # All are looked at before any is embedded: one that is no column is refused at once.
        for column in [query_from_values(query) for query in queries]:
            started = time.perf_counter()
            encoded.append(self.opened.encode(column))
            seconds.append(time.perf_counter() - started)
        options = [self._options_for(query.column, common, exclude_self) for query in encoded]
        answers = self.executor.search(self.opened.loader, encoded, options)
        lake = None
        if rerank:
            from pexeso.rerank.reranker import lake_of_hits

            lake = lake_of_hits(self.opened.loader, [hits for hits, _ in answers])
        return [
            self._result(query, chosen, hits, stats, embedding, lake)
            for query, chosen, embedding, (hits, stats) in zip(
                encoded, options, seconds, answers, strict=True
            )
        ]

    def explain(
        self, values: Any, table: str, column: str, given: Mapping[str, Any]
    ) -> Explanation:
        """Explain how a query column and one column of the lake compare.

        See `pexeso.Index.explain`.
        """
        from pexeso.explain.explanation import locate_column  # brings torch, as engines do

        self.thresholds.require_search_options(given)
        hit = locate_column(self.opened.store, table, column)
        query = self.opened.encode(values)
        options = replace(
            self.thresholds.pair_options(given, query, hit), min_joinability=None, k=None
        )
        details = MatchDetails(self.opened, query, [hit], options, SearchStats())
        hit = replace(hit, matched=details.matched(0))
        match = _matches(query, options, [hit], details)[0]
        return Explanation(query.describe(), options, match, match.unmatched(), self.renderer)

    def _options_for(
        self, column: QueryColumn, options: SearchOptions, exclude_self: bool
    ) -> SearchOptions:
        options = self.thresholds.for_column(options, column)
        table = (
            self.opened.table_of(column.file) if exclude_self and column.file is not None else None
        )
        return options if table is None else replace(options, exclude_table=table)

    def _result(
        self,
        query: EncodedQuery,
        options: SearchOptions,
        hits: list[Hit],
        stats: SearchStats,
        embedding: float,
        lake: Lake | None,
    ) -> SearchResult:
        stats.add_seconds("open", self.opened.seconds)
        stats.add_seconds("embed", embedding)
        opinions = None
        if lake is not None:
            from pexeso.rerank.reranker import reranked

            hits, opinions = reranked(
                self.opened.loader, query, hits, lake, self.opened.usual_max_distance, stats
            )
        details = MatchDetails(self.opened, query, hits, options, stats)
        matches = _matches(query, options, hits, details, opinions)
        return SearchResult(
            query.describe(), options, matches, stats, self.renderer, opinions is not None
        )


def _matches(
    query: EncodedQuery,
    options: SearchOptions,
    hits: Sequence[Hit],
    details: MatchDetails,
    opinions: Sequence[Opinion | None] | None = None,
) -> tuple[Match, ...]:
    total = query.total(options.ignore_missing)
    return tuple(
        Match(
            table=hit.table,
            column=hit.label,
            joinability=hit.matched / total if total else 0.0,
            matched=hit.matched,
            total=total,
            column_id=hit.column_id,
            _details=details,
            _position=position,
            opinion=None if opinions is None else opinions[position],
        )
        for position, hit in enumerate(hits)
    )
