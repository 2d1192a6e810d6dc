"""Exact-value searches over one snapshot, with copies of one column folded into one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.engine.copies import (
    ColumnSets,
    first_request,
    fold,
    foldable_sizes,
    lines_of,
    next_request,
    numbered_by_text,
)
from pexeso.engine.lists import offsets_of, places_among, ranges
from pexeso.errors import IndexCorruptError
from pexeso.lake.catalog import TABLES
from pexeso.lake.left_out import groups_of
from pexeso.options import ALL, columns_wanted
from pexeso.results.column_matches import (
    MAX_NEAREST,
    Hints,
    NearColumn,
    WouldMatch,
    shown_lines,
)
from pexeso.results.query import QueryColumn, order_of_dates
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import plain_scalar
from pexeso.sets.part.open import Shard, require_part
from pexeso.sets.results import TokenMatch, TokenSearchResult
from pexeso.sets.shard_searches import (
    FEW_SHARE,
    TokenQuery,
    overlap_with,
    search_containment,
    search_overlap,
    search_overlap_batch,
    token_query,
    with_judgements,
    would_match,
)
from pexeso.store.arrays import take_texts

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex

# Numbers of a dictionary that are read at a time, where texts are looked for.
CHUNK_NUMBERS = 1 << 20


def encode_tokens(opened: OpenIndex, values: Any) -> TokenQuery:
    """Make the query of a column of values, with the judgements of now."""
    judgements, way = opened.judgements, (opened.normaliser, opened.value_key)
    query = token_query(values, *way)
    if not judgements.rows:
        return query
    return with_judgements(query, opened.name_of(query.column), judgements, *way)


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
        query = encode_tokens(self.opened, values)
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

        columns = [encode_tokens(self.opened, values) for values in queries]
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
        query = encode_tokens(self.opened, values)
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
        best = max((match.containment for match in result), default=0.0)
        find_hints = partial(self._hints, query, options, best)
        matches = (one for match in result for one in (match, *match.copies))
        described = {**result.query, **order_of_dates(match._day_first for match in matches)}
        return replace(result, query=described, options=options, _find_hints=find_hints)

    def _hints(self, query: TokenQuery, options: dict[str, Any], best: float) -> Hints:
        """Find the columns with most of the values, and count the files that the index is without.

        Which columns are left out is another matter here than in semantic search. Where a column
        was found with a share of the values, `best`, it is only said what more would match.
        """
        hidden, near = options["exclude_table"], ()
        is_found, enough = best > 0, options.get("min_containment", FEW_SHARE)
        if not is_found and "min_containment" in options:
            near = search_overlap(self.opened.shards, query, MAX_NEAREST, exclude_table=hidden)
            best = max((match.containment for match in near), default=0.0)
        readings: tuple[WouldMatch, ...] = ()
        if best < max(FEW_SHARE, enough):
            readings = would_match(self.opened.shards, query, best, exclude_table=hidden)
        if is_found:
            return Hints(readings=readings)
        nearest = tuple(
            NearColumn(match.table, match.column, match.containment, match.overlap, len(query))
            for match in near
        )
        return Hints(nearest, groups_of(self.opened.catalog, TABLES), readings)

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
        self.query: TokenQuery = encode_tokens(searches.opened, column)
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
            lines = lines_of(fold(sets_of_matches(result), self.k), result)
        shown = shown_lines(lines, opened, self.k)
        n_more = len(lines) - len(shown) if is_whole else None
        return replace(result, matches=shown, n_more=n_more, folded=self.folds)

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
        at = places_among(numbers, tokens)
        hits = np.flatnonzero(at >= 0)
        positions[at[hits]] = start + hits
    return take_texts(dictionary.texts, positions)
