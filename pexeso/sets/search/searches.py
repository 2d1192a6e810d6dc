"""Exact-value searches over one snapshot: queries are checked and token sets are searched."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pexeso.lake.catalog import TABLES
from pexeso.lake.left_out.groups import groups_of
from pexeso.options import ALL, columns_wanted, require_min_containment
from pexeso.results.column_matches import MAX_NEAREST, Hints, NearColumn
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import plain_scalar
from pexeso.runtime.jit import loops_pay
from pexeso.sets.containment.conversion import tokens_needed
from pexeso.sets.overlap.merge import merge_list
from pexeso.sets.overlap.query import prepare_query
from pexeso.sets.overlap.topk import require_k
from pexeso.sets.part.open import Shard, require_part
from pexeso.sets.search.copies import Request
from pexeso.sets.search.hits import SetFound, counted_ways, found_by_lists, result_of
from pexeso.sets.search.overlap_search import search_overlap, search_overlap_batch
from pexeso.sets.search.query import TokenQuery, token_query
from pexeso.sets.search.results import TokenSearchResult

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.sets.containment.ensemble import ContainingSets
    from pexeso.sets.search.opening import TokenSets
    from pexeso.sets.search.results import TokenSearchResult


# Containment searches: the shards are searched in turn, and the results merged in one order.
#
# The columns found contain at least a share of a query.

FIELDS = ("table", "column", "containment", "estimated")


def search_containment(
    shards: Sequence[Shard],
    query: TokenQuery,
    min_containment: float,
    *,
    verify: bool = True,
    k: int | None = None,
    exclude_table: str | None = None,
) -> TokenSearchResult:
    """Find the columns that have at least a share of a query's distinct values.

    See `pexeso.Index.contain`.
    """
    require_min_containment(min_containment)
    if k is not None:
        require_k(k)
    started, hits, n_candidates, routes = time.perf_counter(), [], 0, []
    for shard in shards if len(query) else ():
        some, n_some, way = _containing(
            shard, query, float(min_containment), verify, shard.hidden(exclude_table)
        )
        n_candidates += n_some
        routes.append(way)
        hits += some
    hits = sorted(hits, key=lambda hit: hit.key)[:k]
    stats = {
        "shards": len(shards),
        "ways": counted_ways(routes),
        "candidates": n_candidates,
        "seconds": round(time.perf_counter() - started, 6),
    }
    options = {
        "min_containment": min_containment,
        "verify": verify,
        "k": k,
        "exclude_table": exclude_table,
    }
    return result_of(query, options, hits, FIELDS, stats)


def _containing(
    shard: Shard, query: TokenQuery, min_containment: float, verify: bool, hidden: np.ndarray
) -> tuple[list[SetFound], int, str]:
    """Search one shard: what is found, how many candidates there were, and which way was taken."""
    token_query = prepare_query(shard.overlap, query.tokens)
    if not loops_pay(int(token_query.frequencies.sum())):
        # Loading the loops would take longer than they save: arrays count every set that shares a
        # token.
        needed, limit = (
            tokens_needed(token_query.n_asked, min_containment),
            max(shard.overlap.n_sets, 1),
        )
        counted = merge_list(shard.overlap, token_query, limit, exclude=hidden, at_least=needed)
        return found_by_lists(shard, counted, len(query)), len(counted.ids), "merge_list"
    if shard.bands is None:
        from pexeso.sets.containment.ensemble import search_lists

        answer = search_lists(shard.lists, query.tokens, min_containment, exclude=hidden)
    else:
        answer = shard.bands.search(query.tokens, min_containment, verify=verify, exclude=hidden)
    return _contained(shard, answer), answer.n_candidates, answer.route


def _contained(shard: Shard, answer: ContainingSets) -> list[SetFound]:
    """Name the sets of an answer of `pexeso.sets.containment`."""
    return [
        SetFound(shard, number, table, label, size, overlap if overlap >= 0 else None, containment)
        for number, (table, label), size, overlap, containment in zip(
            answer.sets.tolist(),
            shard.names.of(answer.sets),
            answer.sizes.tolist(),
            answer.overlaps.tolist(),
            answer.containments.tolist(),
            strict=True,
        )
    ]


@dataclass(frozen=True)
class TokenSearches:
    """Exact-value searches of one snapshot.

    See `pexeso.Index` for the meaning of the arguments.
    """

    opened: OpenIndex | TokenSets

    def overlap(
        self, values: Any, k: int | str | None, exclude_self: bool, fold_copies: bool = True
    ) -> TokenSearchResult:
        """Find the k columns that share most distinct values with a query column."""
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
        from pexeso.build.opening import (
            choose_device,
        )  # brings torch, which other searches do without

        columns = [token_query(values, self.opened.normaliser) for values in queries]
        search = partial(
            search_overlap_batch,
            self.opened.shards,
            device=str(self.opened.device if device is None else choose_device(device)),
        )
        own_tables = [self._own_table(query, exclude_self) for query in columns]
        answers: dict[tuple[int, int], TokenSearchResult] = {}

        def search_one(position: int, n: int) -> TokenSearchResult:
            # All are asked for together at first; the few that need more are asked for again.
            if (position, n) not in answers:
                positions = range(len(columns)) if not answers else [position]
                results = search(
                    [columns[position] for position in positions],
                    n,
                    exclude_tables=[own_tables[position] for position in positions],
                )
                answers.update(
                    ((position, n), result)
                    for position, result in zip(positions, results, strict=True)
                )
            return answers[position, n]

        return [
            self._complete(
                request.first_best(partial(search_one, position), self._n_sets, self.opened),
                request,
                query,
            )
            for position, query in enumerate(columns)
        ]

    def contain(
        self,
        values: Any,
        min_containment: float,
        verify: bool,
        k: int | str | None,
        exclude_self: bool,
        fold_copies: bool = True,
    ) -> TokenSearchResult:
        """Find the columns that have at least a share of a query column's distinct values."""
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
        """Return a result with what was asked for, and what helps where nothing was found."""
        options = {**result.options, "k": ALL if request.k is None else request.k}
        return replace(result, options=options, _find_hints=partial(self._hints, query, options))

    def _hints(self, query: TokenQuery, options: dict[str, Any]) -> Hints:
        """Find the columns with most of the values, and count the files that the index is without.

        Which columns are left out is another matter here than in semantic search.
        """
        near = []
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
