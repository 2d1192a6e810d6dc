"""Semantic searches of an open index: query columns are encoded, searched, ranked and described."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.copies import MOST_LINES, first_request, fold, lines_of, next_request
from pexeso.engine.lists import damage_of
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError
from pexeso.lake.left_out import left_out
from pexeso.options import SearchOptions, search_options
from pexeso.results.column_matches import (
    MAX_NEAREST,
    Hints,
    NearColumn,
    TableColumns,
    common_names,
    join_rank,
)
from pexeso.results.matches import Explanation, Match, SearchResult
from pexeso.results.query import QueryColumn, query_from_values
from pexeso.semantic.executor import search_store
from pexeso.semantic.partition_loader import PartitionLoader, sets_of_hits
from pexeso.semantic.thresholds.advice import ADVICE_OPTIONS, kind_advice
from pexeso.store.arrays import take_texts

if TYPE_CHECKING:
    from pexeso.joins.match_details import MatchDetails
    from pexeso.results.query import Hit
    from pexeso.semantic.encoded_query import EncodedQuery
    from pexeso.semantic.executor import Answer, Executor
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.semantic.thresholds.advisor import Advisor
    from pexeso.semantic.thresholds.judging import Doubt

    Search = Callable[[Sequence[EncodedQuery], Sequence[SearchOptions]], list[Answer]]

WIDER = ((1.0, 0.0), (1.15, 0.02), (1.3, 0.05), (1.5, 0.1))
"""The distances at which the nearest columns are looked for, until there are some: so many times
what was asked for, or so much more, whichever is larger."""


def semantic_hints(opened: OpenIndex, query: EncodedQuery, options: SearchOptions) -> Hints:
    """Find the columns nearest to being found, in this process, and count what was left out."""
    total = query.total(options)
    hits: Sequence[Hit] = ()
    distance = options.max_distance
    for factor, step in WIDER:
        distance = min(1.0, max(factor * options.max_distance, options.max_distance + step))
        wider = replace(
            options, max_distance=distance, min_joinability=None, k=MAX_NEAREST, counts="exact"
        )
        [(hits, _)] = search_store(opened.loader, [query], [wider])
        if hits:
            break
    nearest = [
        NearColumn(hit.table, hit.label, hit.matched / total, hit.matched, total, distance)
        for hit in hits
    ]
    return Hints(tuple(nearest), left_out(opened.catalog))


@dataclass(frozen=True)
class Lines:
    """What was found for one query column: columns, each followed by its copies."""

    lines: list[list[Hit]]
    n_more: int | None  # lines beyond these; None where there may be some that were not counted
    stats: SearchStats
    n_wanted: int | None  # None for all
    similarities: list[float | None] | None = None  # of lines that were re-ranked


def find_lines(
    search: Search,
    loader: PartitionLoader,
    queries: Sequence[EncodedQuery],
    options: Sequence[SearchOptions],
    *,
    folds: bool,
    with_tied: bool = False,
) -> list[Lines]:
    """Search for several query columns, each with its options, until there are enough lines.

    A search with a threshold finds all columns that meet it. One for the k best columns alone asks
    for some more than k, since some may be copies of others, and for more still where these were
    too few. `with_tied` also returns lines with as many matches as the last one wanted, up to
    `MOST_LINES` in all, so that something else can choose among them.
    """
    limits = [
        None
        if chosen.min_joinability is not None or chosen.limit is None
        else first_request(chosen.limit, folds=folds)
        for chosen in options
    ]
    by_position: dict[int, Lines] = {}
    stats: dict[int, SearchStats] = {}
    while pending := [position for position in range(len(queries)) if position not in by_position]:
        answers = search(
            [queries[position] for position in pending],
            [
                options[position]
                if options[position].k == limits[position]
                else options[position].with_limit(limits[position])
                for position in pending
            ],
        )
        for position, (hits, spent) in zip(pending, answers, strict=True):
            if stats.setdefault(position, spent) is not spent:
                stats[position].add(spent)
            limit, n_wanted = limits[position], options[position].limit
            if folds and len(hits) > 1:
                lines = lines_of(fold(sets_of_hits(loader, hits), n_wanted), hits)
            else:
                lines = [[hit] for hit in hits]
            if limit is None or n_wanted is None:
                by_position[position] = Lines(lines, 0, stats[position], n_wanted)
                continue
            is_whole = len(hits) < limit
            selected = lines[: _end_of_tied(lines, n_wanted) if with_tied else n_wanted]
            has_all_tied = not with_tied or len(selected) < len(lines) or limit >= MOST_LINES
            if is_whole or (len(selected) >= n_wanted and has_all_tied):
                n_more = len(lines) - len(selected) if is_whole else None
                by_position[position] = Lines(selected, n_more, stats[position], n_wanted)
            else:
                limits[position] = next_request(limit)
    return [by_position[position] for position in range(len(queries))]


def _end_of_tied(lines: list[list[Hit]], n_wanted: int) -> int:
    """Return how many lines there are up to the last with as many matches as the last wanted."""
    end = min(n_wanted, len(lines))
    limit = min(len(lines), MOST_LINES)
    while 0 < end < limit and lines[end][0].matched == lines[end - 1][0].matched:
        end += 1
    return end


@dataclass(frozen=True)
class SemanticSearch:
    """Answers semantic searches of one snapshot."""

    opened: OpenIndex
    executor: Executor
    details: Callable[..., MatchDetails]  # makes the evidence of matches
    # Of the columns of tables that were found, what orders them where as many values match.
    _ranks: dict[str, dict[str, tuple[bool, bool, int]]] = field(default_factory=dict)

    @cached_property
    def advisor(self) -> Advisor:
        """What advises on this index, and keeps what it has learnt while the index is open."""
        from pexeso.semantic.thresholds.advisor import Advisor  # brings scipy

        return Advisor(self.opened.loader, self.opened.usual_max_distance)

    @cached_property
    def doubts(self) -> tuple[list[Doubt], list[Doubt]]:
        """Pairs of columns, and of values, that are worth a question to a person."""
        from pexeso.semantic.thresholds.judging import all_doubts

        return all_doubts(self)

    def search_options(self, given: Mapping[str, Any]) -> SearchOptions:
        if not given.keys().isdisjoint(ADVICE_OPTIONS):
            given = self.advisor.column_options(given)
        return search_options({"max_distance": self.opened.usual_max_distance, **given})

    def search_batch(
        self,
        queries: Iterable[Any],
        exclude_self: bool,
        rerank: bool,
        fold_copies: bool,
        given: Mapping[str, Any],
    ) -> list[SearchResult]:
        common = self.search_options(given)
        from pexeso.semantic.encoded_query import EncodedQuery

        opened = self.opened
        # All are looked at before any is embedded: one that is no column is refused at once.
        columns = [
            query if isinstance(query, QueryColumn | EncodedQuery) else query_from_values(query)
            for query in queries
        ]
        encoded: list[EncodedQuery] = []
        seconds, starts = [], []
        for column in columns:
            started = time.perf_counter()
            starts.append(len(encoded))
            encoded += opened.orders(column)
            seconds += [time.perf_counter() - started] * (len(encoded) - starts[-1])
        options = [self.options_for(query, common, exclude_self, given) for query in encoded]
        loader, ranked = opened.loader, []
        search = partial(self.executor, loader)
        try:
            answers = find_lines(
                search, loader, encoded, options, folds=fold_copies, with_tied=rerank
            )
            for query, chosen, spent, lines in zip(encoded, options, seconds, answers, strict=True):
                lines.stats.seconds |= {"open": opened.seconds, "embed": spent}
                ranked.append(self._ranked(query, chosen, lines, rerank))
        except IndexError as error:
            raise damage_of("the index") from error
        if len(encoded) > len(columns):
            # Dates that may have the day or the month first are read as more of them match.
            n_matched = [max([0, *(line[0].matched for line in one.lines)]) for one in ranked]
            ends = pairwise([*starts, len(encoded)])
            best = [max(range(*some), key=n_matched.__getitem__) for some in ends]
            encoded, options = [encoded[at] for at in best], [options[at] for at in best]
            ranked = [ranked[at] for at in best]
        tables = {line[0].table for ranking in ranked for line in ranking.lines}
        columns_of_tables = TableColumns(opened, tables)
        return [
            self._result(query, chosen, ranking, columns_of_tables, fold_copies)
            for query, chosen, ranking in zip(encoded, options, ranked, strict=True)
        ]

    def explain(
        self, values: Any, table: str, column: str, given: Mapping[str, Any]
    ) -> Explanation:
        from pexeso.semantic.explanation import locate_column

        # What no search options are is refused before anything is looked for.
        search_options({name: given[name] for name in given.keys() - ADVICE_OPTIONS})
        hit = locate_column(self.opened.store, table, column)
        queries = self.opened.orders(values)
        asks_advice = not given.keys().isdisjoint(ADVICE_OPTIONS)
        advised = self.advisor.pair_options(given, queries[0], hit) if asks_advice else given
        options = _by_kind(self.search_options(advised), queries[0], given)
        options = replace(options, min_joinability=None, k=None)
        orders = [
            self.details(self.opened, query, [hit], options, SearchStats()) for query in queries
        ]
        for details in orders:
            details.leave_out_unlike_numbers(0)
            if details.are_codes:
                details.read_codes(0)
            details.match_equal_cells(0)
        number = max(range(len(orders)), key=lambda at: orders[at].matched(0))
        query, details = queries[number], orders[number]
        hit = replace(hit, matched=details.matched(0))
        match = self.matches_of(query, options, [hit], details)[0]
        readings = details.would_match(0)
        name = self.opened.name_of(query.column)
        is_rejected = (hit.table, hit.label) in self.opened.judgements.rejected(name)
        return Explanation(query.describe(), options, match, readings, is_rejected)

    def options_for(
        self,
        query: EncodedQuery,
        options: SearchOptions,
        exclude_self: bool,
        given: Mapping[str, Any],
    ) -> SearchOptions:
        """Return the options of one query column: thresholds chosen, its own table excluded."""
        options = _by_kind(options, query, given)
        if options.advice is not None:
            from pexeso.semantic.thresholds.advisor import for_query

            options = for_query(options, query)
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
        details = self.details(self.opened, query, hits, options, stats)
        return [details.matched(position) for position in range(len(hits))]

    def matches_of(
        self,
        query: EncodedQuery,
        options: SearchOptions,
        hits: Sequence[Hit],
        evidence: SearchStats | MatchDetails,
        columns: TableColumns | None = None,
        similarities: Sequence[float | None] | None = None,
        copies: Sequence[tuple[Match, ...]] | None = None,
    ) -> tuple[Match, ...]:
        """Describe columns found; their evidence is known, or found for all when needed."""
        if isinstance(evidence, SearchStats):
            evidence = self.details(self.opened, query, hits, options, evidence)
        total = query.total(options)
        matches = [
            Match(
                table=hit.table,
                column=hit.label,
                joinability=hit.matched / total if total else 0.0,
                matched=hit.matched,
                total=total,
                column_id=hit.column_id,
                _details=evidence,
                _position=position,
                similarity=None if similarities is None else similarities[position],
                joinability_of=options.joinability_of,
                copies=() if copies is None else copies[position],
                _columns=columns,
            )
            for position, hit in enumerate(hits)
        ]
        return tuple(matches)

    def _ranked(
        self, query: EncodedQuery, options: SearchOptions, answer: Lines, rerank: bool
    ) -> Lines:
        """Order lines by similarity if asked to, and keep as many as are wanted.

        Of those that are wanted by their number alone the joinability decides, and of equal ones
        the similarity.
        """
        lines, limit = answer.lines, answer.n_wanted
        for number, line in enumerate(lines):
            leader = line[0]
            alike = [
                hit for hit in line if (hit.table, hit.matched) == (leader.table, leader.matched)
            ]
            if len(alike) > 1:
                counts = self._n_equal(query, alike)
                best = alike[max(range(len(alike)), key=counts.__getitem__)]
                lines[number] = [best, *(hit for hit in line if hit is not best)]
        leaders, similarities = [line[0] for line in lines], None
        of_leader = {line[0].column_id: line for line in lines}
        if rerank:
            from pexeso.semantic.similarity import by_similarity

            leaders, similarities = by_similarity(
                self.opened.loader, query, leaders, self.opened.usual_max_distance, answer.stats
            )
        order = self._better_first(query, leaders, similarities or [None] * len(leaders))
        leaders = [leaders[position] for position in order]
        if similarities is not None:
            similarities = [similarities[position] for position in order]
            if options.min_joinability is None and limit is not None:
                order = sorted(range(len(leaders)), key=lambda position: -leaders[position].matched)
                positions = sorted(order[:limit]) + order[limit:]
                leaders = [leaders[position] for position in positions]
                similarities = [similarities[position] for position in positions]
        lines = [of_leader[hit.column_id] for hit in leaders]
        n_more = answer.n_more
        if limit is None:
            n_more = 0
        elif n_more is not None:
            n_more += len(lines[limit:])
        return Lines(lines[:limit], n_more, answer.stats, limit, similarities)

    def _n_equal(self, query: EncodedQuery, hits: Sequence[Hit]) -> list[list[int]]:
        """Count the texts of columns that are the query's, letter by letter and but for their case.

        They tell a column of names from one of codes that stand for the same.
        """
        loader, texts = self.opened.loader, query.text_array
        counts = np.zeros((len(hits), 2), np.int64)
        partitions = np.array([hit.partition for hit in hits])
        for number in np.unique(partitions).tolist():
            of_partition = np.flatnonzero(partitions == number)
            positions = np.array([hits[at].position for at in of_partition.tolist()])
            owner, posting = loader.mapped(number).column_lists.of(positions)
            rows, stored = loader.texts(number)
            theirs = pc.cast(take_texts(stored, rows[posting]), texts.type)
            for side, pair in enumerate([(theirs, texts), map(pc.utf8_lower, (theirs, texts))]):
                is_equal = pc.is_in(*pair).to_numpy(zero_copy_only=False)
                counts[of_partition, side] = np.bincount(owner[is_equal], minlength=len(positions))
        return counts.tolist()

    def _better_first(
        self, query: EncodedQuery, hits: Sequence[Hit], similarities: Sequence[float | None]
    ) -> Sequence[int]:
        """Return the order of hits in which those that are alike go by the join that they make.

        That is `join_rank`; then it counts how many texts they have in common with the query, and
        whether a column's name, and that of its table, has a word of the query's.
        """
        alike: dict[tuple[float, int], list[int]] = {}
        for position, (hit, similarity) in enumerate(zip(hits, similarities, strict=True)):
            shown = -1.0 if similarity is None else float(np.round(similarity, 2))
            alike.setdefault((shown, hit.matched), []).append(position)
        if len(alike) == len(hits):
            return range(len(hits))
        names = ["table", "label", "n_rows", "n_missing", "n_distinct"]
        tables = {
            hits[position].table for some in alike.values() if len(some) > 1 for position in some
        }
        # To read the catalog takes longer than to search a small lake.
        if new := tables - self._ranks.keys():
            ranks: dict[str, dict[str, tuple[bool, bool, int]]] = {name: {} for name in new}
            for row in self.opened.catalog.columns(names, among=pa.array(sorted(new))).to_pylist():
                n_rows = (row["n_rows"] or 0) - (row["n_missing"] or 0)
                ranks[row["table"]][row["label"]] = join_rank(n_rows, row["n_distinct"] or 0)
            self._ranks.update(ranks)
        last = join_rank(0, 0)
        described = query.column.describe()

        def rank_of(position: int) -> tuple[bool, bool, int]:
            hit = hits[position]
            return self._ranks.get(hit.table, {}).get(hit.label, last)

        runs = [
            list(run)
            for some in alike.values()
            for _, run in groupby(sorted(some, key=rank_of), key=rank_of)
        ]
        tied = [at for run in runs if len(run) > 1 for at in run if similarities[at] is not None]
        n_equal = dict(zip(tied, self._n_equal(query, [hits[at] for at in tied]), strict=True))

        def likeness_of(position: int) -> tuple[Any, ...]:
            hit = hits[position]
            common = common_names(described, hit.table, hit.label)
            return n_equal.get(position, []), common

        return [at for run in runs for at in sorted(run, key=likeness_of, reverse=True)]

    def _result(
        self,
        query: EncodedQuery,
        options: SearchOptions,
        ranking: Lines,
        columns: TableColumns,
        folded: bool,
    ) -> SearchResult:
        # Evidence is found for the columns shown together, and for their copies when asked for.
        stats, leaders = ranking.stats, [line[0] for line in ranking.lines]
        copies = [hit for line in ranking.lines for hit in line[1:]]
        of_copies = self.matches_of(query, options, copies, stats, columns) if copies else ()
        by_line, end = [], 0
        for line in ranking.lines:
            by_line.append(of_copies[end : end + len(line) - 1])
            end += len(line) - 1
        matches = self.matches_of(
            query, options, leaders, stats, columns, ranking.similarities, by_line
        )
        return SearchResult(
            query.describe(),
            options,
            matches,
            stats,
            ranking.similarities is not None,
            n_more=ranking.n_more,
            folded=folded,
            _find_hints=partial(semantic_hints, self.opened, query, options),
        )


def _by_kind(
    options: SearchOptions, query: EncodedQuery, user_options: Mapping[str, Any]
) -> SearchOptions:
    """Match equal values alone where near ones are others, unless a distance is asked for."""
    if user_options.get("max_distance") is not None:
        return options
    kind = query.column.exact_kind
    if kind is None:
        return options
    return replace(options, max_distance=0.0, advice=kind_advice(kind))
