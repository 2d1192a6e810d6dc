"""Exact-value searches over one snapshot, with copies of one column folded into one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.copies import (
    ColumnSets,
    first_request,
    foldable_sizes,
    folded,
    next_request,
    numbered_by_text,
)
from pexeso.engine.lists import offsets_of, ranges
from pexeso.errors import IndexCorruptError
from pexeso.lake.catalog import TABLES
from pexeso.lake.left_out import groups_of
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.tokens import distinct_tokens, tokens_of
from pexeso.options import ALL, columns_wanted, require_min_containment
from pexeso.results.column_matches import MAX_NEAREST, Hints, NearColumn, TableColumns
from pexeso.results.query import QueryColumn, query_from_values
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import plain_scalar
from pexeso.sets.overlap.index import Overlaps, Reads, prepare_query
from pexeso.sets.part.open import Shard, require_part
from pexeso.sets.results import TokenMatch, TokenSearchResult
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex

OVERLAP_FIELDS = ("table", "column", "overlap")
CONTAINMENT_FIELDS = ("table", "column", "containment", "estimated")


@dataclass(frozen=True)
class TokenQuery:
    """The distinct tokens of a query column.

    `resolved` are its values, those that are aliases replaced; None for an index without.
    """

    column: QueryColumn
    tokens: pa.LargeStringArray
    resolved: pa.StringArray | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """By the token of what they mean, the texts of the column that are aliases, sorted."""
        aliases: dict[str, list[str]] = {}
        if self.resolved is not None:
            rows = pc.indices_nonzero(pc.not_equal(self.column.values, self.resolved))
            texts = self.column.values.take(rows).to_pylist()
            tokens = tokens_of(self.resolved.take(rows)).to_pylist()
            for text, token in sorted(set(zip(texts, tokens, strict=True))):
                aliases.setdefault(token, []).append(text)
        return aliases

    def result(
        self,
        options: dict[str, Any],
        matches: Sequence[TokenMatch],
        fields: tuple[str, ...],
        stats: dict[str, Any],
    ) -> TokenSearchResult:
        described = {**self.column.describe(), "values": len(self)}
        return TokenSearchResult(described, options, tuple(matches), fields, stats)


def token_query(values: Any, normaliser: Normaliser | None = None) -> TokenQuery:
    """Make the query of a column of values, given as in `pexeso.index.Index.search`.

    The aliases of the normaliser, if it has some, are replaced by what they mean.
    """
    column = query_from_values(values)
    if normaliser is None or normaliser.aliases is None:
        return TokenQuery(column, distinct_tokens(column.values))
    resolved = normaliser.resolved(column.values)
    return TokenQuery(column, distinct_tokens(resolved), resolved)


def shared_values(shard: Shard, number: int, tokens: pa.LargeStringArray) -> list[str]:
    index = shard.overlap
    is_shared = np.isin(index.find(tokens), index.suffix(number, 0))
    return sorted(tokens.filter(pa.array(is_shared)).to_pylist())


def _match(
    query: TokenQuery,
    shard: Shard,
    number: int,
    name: tuple[str, str],
    size: int,
    overlap: int | None,
    containment: float,
) -> TokenMatch:
    shared = partial(shared_values, shard, number, query.tokens)
    aliases = partial(getattr, query, "aliases")
    return TokenMatch(*name, overlap, containment, size, (shard, number), shared, aliases)


def _rank(match: TokenMatch) -> tuple[float, str, str]:
    return -match.containment, match.table, match.column


def _counted(query: TokenQuery, shard: Shard, answer: Overlaps) -> list[TokenMatch]:
    """Return the sets of an answer of `pexeso.sets.overlap`; ids are numbers in a shard."""
    numbers, offsets = answer.ids, shard.overlap.set_offsets
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < shard.overlap.n_sets:
        raise IndexCorruptError(
            f"The ids in '{shard.folder}' are not those of its sets: restore the index from a "
            "copy, or build it again."
        )
    sizes = (offsets[numbers + 1] - offsets[numbers]).tolist()
    columns = numbers.tolist(), shard.names.of(numbers), sizes, answer.overlaps.tolist()
    return [
        _match(query, shard, number, name, size, overlap, overlap / len(query))
        for number, name, size, overlap in zip(*columns, strict=True)
    ]


def _counted_ways(ways: list[str]) -> dict[str, int]:
    return {way: ways.count(way) for way in sorted(set(ways))}


def search_overlap(
    shards: Sequence[Shard], query: TokenQuery, k: int, *, exclude_table: str | None = None
) -> TokenSearchResult:
    """Find the k columns that share most distinct values with a query; see `pexeso.Index.overlap`.

    The k-th overlap found so far is what the shards that follow must reach, so that they stop
    early.
    """
    started, matches, reads, ways = time.perf_counter(), [], [], []
    for shard in shards if len(query) else ():
        lowest = matches[k - 1].overlap if len(matches) >= k else 1
        index, planner = shard.overlap, shard.planner
        token_query = prepare_query(index, query.tokens)
        ways.append(planner.choose(index, token_query, k))
        hidden = shard.hidden(exclude_table)
        answer = planner.search(index, token_query, k, exclude=hidden, at_least=lowest)
        matches = sorted([*matches, *_counted(query, shard, answer)], key=_rank)[:k]
        reads.append(answer.reads)
    stats = _overlap_stats(shards, ways, reads, started)
    options = {"k": k, "exclude_table": exclude_table}
    return query.result(options, matches, OVERLAP_FIELDS, stats)


def search_overlap_batch(
    shards: Sequence[Shard],
    queries: Sequence[TokenQuery],
    k: int,
    *,
    device: str,
    exclude_tables: Sequence[str | None],
) -> list[TokenSearchResult]:
    """Find the k columns that share most distinct values with each of several queries.

    The lists of the queries are counted together on a device.
    """
    started = time.perf_counter()
    matches: list[list[TokenMatch]] = [[] for _ in queries]
    reads: list[list[Reads]] = [[] for _ in queries]
    for shard in shards:
        prepared = [prepare_query(shard.overlap, query.tokens) for query in queries]
        hidden = [shard.hidden(table) for table in exclude_tables]
        answers = shard.batched(device).search(prepared, k, exclude=hidden)
        for row, (query, answer) in enumerate(zip(queries, answers, strict=True)):
            more = _counted(query, shard, answer)
            matches[row] = sorted([*matches[row], *more], key=_rank)[:k]
            reads[row].append(answer.reads)
    ways = ["batched"] * len(shards)
    return [
        query.result(
            {"k": k, "exclude_table": table},
            best,
            OVERLAP_FIELDS,
            _overlap_stats(shards, ways, read, started),
        )
        for query, table, best, read in zip(queries, exclude_tables, matches, reads, strict=True)
    ]


def _overlap_stats(
    shards: Sequence[Shard], ways: list[str], reads: Sequence[Reads], started: float
) -> dict[str, Any]:
    names = ("lists", "sets", "entries", "tokens", "n_bytes")
    return {
        "shards": len(shards),
        "ways": _counted_ways(ways),
        **{name: sum(getattr(read, name) for read in reads) for name in names},
        "seconds": round(time.perf_counter() - started, 6),
    }


def overlap_with(
    shards: Sequence[Shard], query: TokenQuery, columns: Sequence[tuple[str, str]]
) -> list[TokenMatch | None]:
    """Count what named columns share with a query; None for nothing, or where no shard has it."""
    matches: list[TokenMatch | None] = [None] * len(columns)
    for shard in shards if columns and len(query) else ():
        numbers = shard.numbers_of(columns)
        query_tokens = shard.overlap.find(query.tokens)
        for position in np.flatnonzero(numbers >= 0).tolist():
            number, name = int(numbers[position]), columns[position]
            tokens = shard.overlap.suffix(number, 0)
            overlap = int(np.isin(query_tokens, tokens).sum())
            if overlap:
                share = overlap / len(query)
                matches[position] = _match(query, shard, number, name, len(tokens), overlap, share)
    return matches


def search_containment(
    shards: Sequence[Shard],
    query: TokenQuery,
    min_containment: float,
    *,
    verify: bool = True,
    exclude_table: str | None = None,
) -> TokenSearchResult:
    """Find the columns that have at least a share of a query's distinct values.

    See `pexeso.Index.contain`.
    """
    require_min_containment(min_containment)
    started, matches, n_candidates, routes = time.perf_counter(), [], 0, []
    for shard in shards if len(query) else ():
        hidden = shard.hidden(exclude_table)
        some, n_some, way = _containing(shard, query, float(min_containment), verify, hidden)
        n_candidates += n_some
        routes.append(way)
        matches += some
    stats = {
        "shards": len(shards),
        "ways": _counted_ways(routes),
        "candidates": n_candidates,
        "seconds": round(time.perf_counter() - started, 6),
    }
    options = {
        "min_containment": min_containment,
        "verify": verify,
        "k": None,
        "exclude_table": exclude_table,
    }
    return query.result(options, sorted(matches, key=_rank), CONTAINMENT_FIELDS, stats)


def _containing(
    shard: Shard, query: TokenQuery, min_containment: float, verify: bool, hidden: np.ndarray
) -> tuple[list[TokenMatch], int, str]:
    """Search one shard: matches, the number of candidates, and the way that was used."""
    if shard.bands is None:
        from pexeso.sets.containment.ensemble import search_lists

        answer = search_lists(shard.lists, query.tokens, min_containment, exclude=hidden)
    else:
        answer = shard.bands.search(query.tokens, min_containment, verify=verify, exclude=hidden)
    columns = (
        answer.sets.tolist(),
        shard.names.of(answer.sets),
        answer.sizes.tolist(),
        answer.overlaps.tolist(),
        answer.containments.tolist(),
    )
    matches = [
        _match(query, shard, number, name, size, overlap if overlap >= 0 else None, share)
        for number, name, size, overlap, share in zip(*columns, strict=True)
    ]
    return matches, answer.n_candidates, answer.route


# Numbers of a dictionary that are read at a time, where texts are looked for.
CHUNK_NUMBERS = 1 << 20


@dataclass(frozen=True)
class TokenSearches:
    """Exact-value searches of one snapshot.

    See `pexeso.Index` for the meaning of the arguments.
    """

    opened: OpenIndex

    def overlap(
        self, values: Any, k: int | str | None, exclude_self: bool, fold_copies: bool = True
    ) -> TokenSearchResult:
        request = Request(columns_wanted(k), fold_copies)
        require_part(self.opened.store, "overlap")
        query = token_query(values, self.opened.normaliser)
        own_table = self._own_table(query, exclude_self)
        search = partial(search_overlap, self.opened.shards, query, exclude_table=own_table)
        result = request.first_best(search, self._n_sets, self.opened)
        return self._complete(result, request, query)

    def overlap_batch(
        self,
        queries: Iterable[Any],
        k: int | str | None,
        exclude_self: bool,
        device: str | None,
        fold_copies: bool = True,
    ) -> list[TokenSearchResult]:
        """Search with several query columns as `overlap` does.

        The posting lists of all query columns are counted together.
        """
        request = Request(columns_wanted(k), fold_copies)
        require_part(self.opened.store, "overlap")
        from pexeso.build.parts.metadata import choose_device

        columns = [token_query(values, self.opened.normaliser) for values in queries]
        torch_device = str(self.opened.device if device is None else choose_device(device))
        own_tables = [self._own_table(query, exclude_self) for query in columns]
        answers: dict[tuple[int, int], TokenSearchResult] = {}

        def search_one(position: int, n: int) -> TokenSearchResult:
            # All are searched together at first; the few that need more are searched again.
            if (position, n) not in answers:
                positions = range(len(columns)) if not answers else [position]
                results = search_overlap_batch(
                    self.opened.shards,
                    [columns[at] for at in positions],
                    n,
                    device=torch_device,
                    exclude_tables=[own_tables[at] for at in positions],
                )
                answers.update(zip(((at, n) for at in positions), results, strict=True))
            return answers[position, n]

        results = []
        for position, query in enumerate(columns):
            search = partial(search_one, position)
            result = request.first_best(search, self._n_sets, self.opened)
            results.append(self._complete(result, request, query))
        return results

    def contain(
        self,
        values: Any,
        min_containment: float,
        verify: bool,
        k: int | str | None,
        exclude_self: bool,
        fold_copies: bool = True,
    ) -> TokenSearchResult:
        request = Request(columns_wanted(k), fold_copies)
        require_part(self.opened.store, "containment")
        require_flag("verify", verify)
        query = token_query(values, self.opened.normaliser)
        answer = search_containment(
            self.opened.shards,
            query,
            plain_scalar(min_containment),
            verify=plain_scalar(verify),
            exclude_table=self._own_table(query, exclude_self),
        )
        result = request.lay_out(answer, self.opened, is_whole=True)
        return self._complete(result, request, query)

    @property
    def _n_sets(self) -> int:
        return sum(len(shard.names) for shard in self.opened.shards)

    def _complete(
        self, result: TokenSearchResult, request: Request, query: TokenQuery
    ) -> TokenSearchResult:
        """Return a result with what was requested, and what helps where nothing was found."""
        options = {**result.options, "k": ALL if request.k is None else request.k}
        return replace(result, options=options, _find_hints=partial(self._hints, query, options))

    def _hints(self, query: TokenQuery, options: dict[str, Any]) -> Hints:
        """Find the columns with most of the values, and count the files that the index is without.

        Which columns are left out is another matter here than in semantic search.
        """
        near: Iterable[TokenMatch] = ()
        if "min_containment" in options:
            near = search_overlap(
                self.opened.shards, query, MAX_NEAREST, exclude_table=options["exclude_table"]
            )
        nearest = tuple(
            NearColumn(match.table, match.column, match.containment, match.overlap, len(query))
            for match in near
        )
        return Hints(nearest, groups_of(self.opened.catalog, TABLES))

    def _own_table(self, query: TokenQuery, exclude_self: bool) -> str | None:
        require_flag("exclude_self", exclude_self)
        file = query.column.file
        return self.opened.table_of(file) if exclude_self and file is not None else None


class OverlapList:
    """The columns that share most values with a query column, best first, read as deep as needed.

    Copies are not folded.
    """

    def __init__(self, searches: TokenSearches, column: QueryColumn, exclude_self: bool) -> None:
        require_part(searches.opened.store, "overlap")
        self.query: TokenQuery = token_query(column, searches.opened.normaliser)
        self._searches, self._exclude_self = searches, exclude_self
        self._matches_by_name: dict[tuple[str, str], TokenMatch | None] = {}

    def read(self, n: int | None) -> TokenSearchResult:
        """Search for the first n columns; None: for all."""
        limit = ALL if n is None else n
        result = self._searches.overlap(self.query.column, limit, self._exclude_self, False)
        self._matches_by_name |= {(match.table, match.column): match for match in result}
        return result

    def matches(self, names: Sequence[tuple[str, str]]) -> list[TokenMatch | None]:
        """Return what named columns share with the query; those that were not read are counted."""
        unknown = [name for name in names if name not in self._matches_by_name]
        counted = overlap_with(self._searches.opened.shards, self.query, unknown)
        self._matches_by_name |= dict(zip(unknown, counted, strict=True))
        return [self._matches_by_name[name] for name in names]


@dataclass(frozen=True)
class Request:
    """How many lines are wanted, None for all, and whether copies are folded."""

    k: int | None
    folds: bool

    def __post_init__(self) -> None:
        require_flag("fold_copies", self.folds)

    def lay_out(
        self, result: TokenSearchResult, opened: OpenIndex, *, is_whole: bool
    ) -> TokenSearchResult:
        """Fold the columns of a result, and keep as many lines as are wanted."""
        lines = [[match] for match in result]
        if self.folds and len(result) > 1:
            lines = folded(sets_of_matches(result), result, self.k)
        columns = TableColumns(opened, {line[0].table for line in lines[: self.k]})
        shown = []
        for line in lines[: self.k]:
            first, *copies = (replace(match, _columns=columns) for match in line)
            shown.append(replace(first, copies=tuple(copies)))
        n_more = len(lines) - len(shown) if is_whole else None
        return replace(result, matches=tuple(shown), n_more=n_more, folded=self.folds)

    def first_best(
        self, search: Callable[[int], TokenSearchResult], n_columns: int, opened: OpenIndex
    ) -> TokenSearchResult:
        """Search for the best of all columns, for more where too few lines come of them."""
        limit = n_columns if self.k is None else first_request(self.k, folds=self.folds)
        while True:
            answer = search(max(limit, 1))
            is_whole = len(answer) < limit or limit >= n_columns
            result = self.lay_out(answer, opened, is_whole=is_whole)
            if is_whole or len(result) == self.k:
                return result
            limit = next_request(limit)


def sets_of_matches(matches: Sequence[TokenMatch]) -> ColumnSets:
    """Read the distinct tokens of columns found.

    Columns that `pexeso.engine.copies.foldable_sizes` leaves out are empty. Where columns
    come from several shards the numbers of the dictionary of each are read once through for the
    texts.
    """
    sizes = foldable_sizes(np.array([match.size for match in matches], np.int64))
    offsets = offsets_of(sizes)
    tokens = np.zeros(offsets[-1], np.int64)
    rows_of_shard: dict[int, list[int]] = {}
    for row in np.flatnonzero(sizes).tolist():
        rows_of_shard.setdefault(id(matches[row]._at[0]), []).append(row)
    shards, parts = [], []
    for rows in rows_of_shard.values():
        shard = matches[rows[0]]._at[0]
        numbers = np.array([matches[row]._at[1] for row in rows], np.int64)
        suffixes, lengths = shard.overlap.suffixes(numbers, np.zeros(len(numbers), np.int64))
        if (lengths != sizes[rows]).any():
            raise IndexCorruptError(
                f"The sizes of sets in '{shard.folder}' are not those of its lists: restore the "
                "index from a copy, or build it again."
            )
        positions = ranges(offsets[rows], sizes[rows])
        tokens[positions] = suffixes
        part = np.zeros(len(tokens), bool)
        part[positions] = True
        shards.append(shard)
        parts.append(part)
    if len(shards) > 1:
        texts = [partial(_texts_of, shard) for shard in shards]
        tokens = numbered_by_text(tokens, parts, texts)
    return ColumnSets(offsets, tokens)


def _texts_of(shard: Shard, tokens: np.ndarray) -> pa.Array:
    """Return the texts of tokens, given by ascending numbers."""
    dictionary = shard.overlap.dictionary
    positions = np.full(len(tokens), -1, np.int64)
    for start in range(0, len(dictionary), CHUNK_NUMBERS):
        numbers = np.asarray(dictionary.numbers[start : start + CHUNK_NUMBERS])
        at = np.minimum(np.searchsorted(tokens, numbers), len(tokens) - 1)
        hits = np.flatnonzero(tokens[at] == numbers)
        positions[at[hits]] = start + hits
    return take_texts(dictionary.texts, positions)
