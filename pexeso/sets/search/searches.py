"""Exact-value searches over one snapshot: queries are checked and token sets are searched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pexeso.lake.catalog import TABLES
from pexeso.lake.left_out.groups import groups_of
from pexeso.options import ALL, columns_wanted
from pexeso.results.column_matches import MAX_NEAREST, Hints, NearColumn
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import plain_scalar
from pexeso.sets.part.open import require_part
from pexeso.sets.search.containment_search import search_containment
from pexeso.sets.search.copies import Request
from pexeso.sets.search.overlap_search import search_overlap, search_overlap_batch
from pexeso.sets.search.query import TokenQuery, token_query

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.sets.search.opening import TokenSets
    from pexeso.sets.search.results import TokenSearchResult


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
