"""Semantic searches of an open index.

Query columns are encoded, searched by an executor, ranked, and described.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError
from pexeso.options import SearchOptions, columns_wanted
from pexeso.results.copies import (
    MOST_LINES,
    first_request,
    fold,
    lines_compared,
    lines_of,
    next_request,
    sets_of_hits,
)
from pexeso.results.matches import Explanation, Match, SearchResult
from pexeso.results.query import exact_kind, query_from_values
from pexeso.results.table_columns import TableColumns
from pexeso.semantic.answers.hints import semantic_hints
from pexeso.semantic.thresholds.advice import Advice

if TYPE_CHECKING:
    from pexeso.options import SearchOptions
    from pexeso.results.column_matches import Details
    from pexeso.results.matches import Renderer
    from pexeso.results.ranking import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.executor import Answer, Executor
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.semantic.partition_loader import PartitionLoader
    from pexeso.semantic.thresholds.thresholds import Thresholds

    Search = Callable[[Sequence[EncodedQuery], Sequence[SearchOptions]], list[Answer]]


# The lines of semantic answers: columns found, copies folded, searched for until there are enough.
#
# A search with a threshold finds all columns that meet it, and the lines are counted. One for the
# k best columns alone asks for some more than k, since some may be copies of others, and for more
# still where these were too few.


@dataclass(frozen=True)
class Lines:
    """What was found for one query column.

    Attributes
    ----------
    n_more : int or None
        How many lines there are behind them; None where there may be some that nobody counted.
    """

    lines: list[list[Hit]]
    n_more: int | None
    stats: SearchStats = field(default_factory=SearchStats)


def find_lines(
    search: Search,
    loader: PartitionLoader,
    queries: Sequence[EncodedQuery],
    options: Sequence[SearchOptions],
    *,
    folds: bool,
    with_tied: bool = False,
) -> list[Lines]:
    """Search for several query columns, each with its options.

    Parameters
    ----------
    search : callable
        The executor's, over `loader`.
    folds : bool
        Fold copies; False makes every column found a line.
    with_tied : bool
        Without a threshold, give lines with as many matches as the last one wanted too, up to
        `MOST_LINES` in all, so that something else can choose among them. Only columns among the
        first `MOST_LINES`, or some times as many, are looked at for that.

    Returns
    -------
    list of Lines
        In the order of the queries. Without a threshold the first `k` lines and those tied with
        them; with one all.
    """
    limits = [_limit(query_options, folds) for query_options in options]
    by_position: dict[int, Lines] = {}
    stats = [SearchStats() for _ in queries]
    while pending := [position for position in range(len(queries)) if position not in by_position]:
        answers = search(
            [queries[position] for position in pending],
            [replace(options[position], k=limits[position]) for position in pending],
        )
        for position, (hits, spent) in zip(pending, answers, strict=True):
            stats[position].add(spent)
            limit, n_wanted = limits[position], columns_wanted(options[position].k)
            near = lines_compared(n_wanted)
            lines = fold_hits(loader, hits, near) if folds else [[hit] for hit in hits]
            if limit is None or n_wanted is None:
                by_position[position] = Lines(lines, 0, stats[position])
                continue
            is_whole = len(hits) < limit
            selected = lines[: _end_of_tied(lines, n_wanted) if with_tied else n_wanted]
            has_all_tied = not with_tied or len(selected) < len(lines) or limit >= MOST_LINES
            if is_whole or (len(selected) >= n_wanted and has_all_tied):
                n_more = len(lines) - len(selected) if is_whole else None
                by_position[position] = Lines(selected, n_more, stats[position])
            else:
                limits[position] = next_request(limit)
    return [by_position[position] for position in range(len(queries))]


def fold_hits(loader: PartitionLoader, hits: Sequence[Hit], limit: int | None) -> list[list[Hit]]:
    """Fold columns found, given in order; see `pexeso.results.copies.fold`."""
    if len(hits) < 2:
        return [[hit] for hit in hits]
    first_of = fold(sets_of_hits(loader, hits), limit)
    return [[hits[position] for position in line] for line in lines_of(first_of)]


def by_leader(lines: Sequence[Sequence[Hit]]) -> Mapping[int, list[Hit]]:
    """Return the lines by the id of the column that stands for each."""
    return {line[0].column_id: list(line) for line in lines}


def _end_of_tied(lines: list[list[Hit]], n_wanted: int) -> int:
    """Return how many lines there are up to the last with as many matches as the last wanted."""
    end = min(n_wanted, len(lines))
    limit = min(len(lines), MOST_LINES)
    while 0 < end < limit and lines[end][0].matched == lines[end - 1][0].matched:
        end += 1
    return end


def _limit(options: SearchOptions, folds: bool) -> int | None:
    """Return how many columns the executor is first asked for; None for all that there are."""
    n_wanted = columns_wanted(options.k)
    if options.min_joinability is not None or n_wanted is None:
        return None
    return first_request(n_wanted, folds=folds)


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
    details : callable
        What makes the evidence of matches, such as `pexeso.joins.match_details.MatchDetails`.
    """

    opened: OpenIndex
    executor: Executor
    thresholds: Thresholds
    renderer: Renderer
    details: Callable[..., Details]

    def search_batch(
        self,
        queries: Iterable[Any],
        exclude_self: bool,
        rerank: bool,
        fold_copies: bool,
        given: Mapping[str, Any],
    ) -> list[SearchResult]:
        """Search with several query columns; see `pexeso.Index.search_batch`."""
        common = self.thresholds.search_options(given)
        from pexeso.semantic.encoded_query import EncodedQuery

        encoded, seconds = [], []
        # All are looked at before any is embedded: one that is no column is refused at once.
        for column in [
            query if isinstance(query, EncodedQuery) else query_from_values(query)
            for query in queries
        ]:
            started = time.perf_counter()
            encoded.append(
                column if isinstance(column, EncodedQuery) else self.opened.encode(column)
            )
            seconds.append(time.perf_counter() - started)
        options = [self.options_for(query, common, exclude_self, given) for query in encoded]
        answers = find_lines(
            partial(self.executor.search, self.opened.loader),
            self.opened.loader,
            encoded,
            options,
            folds=fold_copies,
            with_tied=rerank,
        )
        ranked = []
        for query, chosen, embedding, lines in zip(encoded, options, seconds, answers, strict=True):
            lines.stats.add_seconds("open", self.opened.seconds)
            lines.stats.add_seconds("embed", embedding)
            ranked.append(self._ranked(query, chosen, lines, rerank))
        tables = {line[0].table or "" for ranking in ranked for line in ranking.lines}
        columns = TableColumns(self.opened, tables)
        return [
            self._result(query, chosen, ranking, columns, fold_copies)
            for query, chosen, ranking in zip(encoded, options, ranked, strict=True)
        ]

    def explain(
        self, values: Any, table: str, column: str, given: Mapping[str, Any]
    ) -> Explanation:
        """Explain how a query column and one column of the lake compare.

        See `pexeso.Index.explain`.
        """
        from pexeso.semantic.explain.explanation import locate_column

        self.thresholds.require_search_options(given)
        hit = locate_column(self.opened.store, table, column)
        query = self.opened.encode(values)
        options = _by_kind(self.thresholds.pair_options(given, query, hit), query, given)
        options = replace(options, min_joinability=None, k=None)
        details = self.details(self.opened, query, [hit], options, SearchStats())
        hit = replace(hit, matched=details.matched(0))
        match = _matches(query, options, [hit], details)[0]
        return Explanation(query.describe(), options, match, match.unmatched(), self.renderer)

    def options_for(
        self,
        query: EncodedQuery,
        options: SearchOptions,
        exclude_self: bool,
        given: Mapping[str, Any],
    ) -> SearchOptions:
        """Return the options of one query column: thresholds chosen, its own table excluded."""
        options = _by_kind(self.thresholds.for_query(options, query), query, given)
        file = query.column.file
        table = self.opened.table_of(file) if exclude_self and file is not None else None
        if table is None or table == options.exclude_table:
            return options
        if options.exclude_table is not None:
            raise InputError(
                f"One table is left out of a search: exclude_self leaves out '{table}', the "
                f"query's own, and exclude_table '{options.exclude_table}'. Give one of them."
            )
        return replace(options, exclude_table=table)

    def counts_of(
        self, query: EncodedQuery, options: SearchOptions, hits: Sequence[Hit], stats: SearchStats
    ) -> list[int]:
        """Count the values, or rows, of a query column that match in each of some columns."""
        details = self.details(self.opened, query, hits, options, stats)
        return [details.matched(position) for position in range(len(hits))]

    def matches_of(
        self,
        query: EncodedQuery,
        options: SearchOptions,
        hits: Sequence[Hit],
        stats: SearchStats,
        columns: TableColumns,
    ) -> tuple[Match, ...]:
        """Describe columns found; their evidence is found together when it is asked for."""
        details = self.details(self.opened, query, hits, options, stats)
        return _matches(query, options, hits, details, columns=columns)

    def _ranked(
        self, query: EncodedQuery, options: SearchOptions, answer: Lines, rerank: bool
    ) -> _Ranked:
        """Order lines by similarity if asked to, and keep as many as are wanted.

        Of those that are wanted by their number alone the joinability decides, and of equal ones
        the similarity.
        """
        lines, similarities, limit = answer.lines, None, columns_wanted(options.k)
        if rerank:
            from pexeso.semantic.answers.similarity import by_similarity

            of_leader = by_leader(lines)
            leaders, similarities = by_similarity(
                self.opened.loader,
                query,
                [line[0] for line in lines],
                self.opened.usual_max_distance,
                answer.stats,
            )
            if options.min_joinability is None and limit is not None:
                order = sorted(range(len(leaders)), key=lambda position: -leaders[position].matched)
                positions = sorted(order[:limit]) + order[limit:]
                leaders = [leaders[position] for position in positions]
                similarities = [similarities[position] for position in positions]
            lines = [of_leader[hit.column_id] for hit in leaders]
        n_more = None if answer.n_more is None else answer.n_more + len(lines[limit:])
        return _Ranked(
            lines[:limit], similarities, n_more if limit is not None else 0, answer.stats
        )

    def _result(
        self,
        query: EncodedQuery,
        options: SearchOptions,
        ranking: _Ranked,
        columns: TableColumns,
        folded: bool,
    ) -> SearchResult:
        leaders = [line[0] for line in ranking.lines]
        copies = [hit for line in ranking.lines for hit in line[1:]]
        # Evidence is found for the columns shown together, and for their copies when asked for.
        stats = ranking.stats
        details = self.details(self.opened, query, leaders, options, stats)
        of_copies = iter(
            _matches(
                query,
                options,
                copies,
                self.details(self.opened, query, copies, options, stats),
                columns=columns,
            )
        )
        matches = _matches(
            query,
            options,
            leaders,
            details,
            ranking.similarities,
            columns=columns,
            copies=[tuple(islice(of_copies, len(line) - 1)) for line in ranking.lines],
        )
        return SearchResult(
            query.describe(),
            options,
            matches,
            stats,
            self.renderer,
            ranking.similarities is not None,
            n_more=ranking.n_more,
            folded=folded,
            _find_hints=partial(semantic_hints, self.opened, query, options),
        )


@dataclass(frozen=True)
class _Ranked:
    """The lines of a result: as `Lines`, re-ranked where there are similarities."""

    lines: list[list[Hit]]
    similarities: list[float | None] | None
    n_more: int | None
    stats: SearchStats


def _matches(
    query: EncodedQuery,
    options: SearchOptions,
    hits: Sequence[Hit],
    details: Details,
    similarities: Sequence[float | None] | None = None,
    *,
    columns: TableColumns | None = None,
    copies: Sequence[tuple[Match, ...]] | None = None,
) -> tuple[Match, ...]:
    total = query.total(options)
    return tuple(
        Match(
            table=hit.table or "",
            column=hit.label or "",
            joinability=hit.matched / total if total else 0.0,
            matched=hit.matched,
            total=total,
            column_id=hit.column_id,
            _details=details,
            _position=position,
            similarity=None if similarities is None else similarities[position],
            joinability_of=options.joinability_of,
            copies=() if copies is None else copies[position],
            _columns=columns,
        )
        for position, hit in enumerate(hits)
    )


def _by_kind(
    options: SearchOptions, query: EncodedQuery, user_options: Mapping[str, Any]
) -> SearchOptions:
    """Match equal values alone where near ones are others, unless a distance is asked for."""
    if options.advice is not None or user_options.get("max_distance") is not None:
        return options
    kind = exact_kind(query.column.values)
    if kind is None:
        return options
    why = f"the values are {kind}s, and near {kind}s are other {kind}s."
    return replace(options, max_distance=0.0, advice=Advice(0.0, None, why, {"kind": kind}))
