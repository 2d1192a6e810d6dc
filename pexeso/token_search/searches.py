"""Exact-value searches over one snapshot: queries are checked and token sets are searched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pexeso.options import small_enough
from pexeso.parts.token_sets.open import require_part
from pexeso.runtime.formatting import plain_scalar
from pexeso.token_search.containment_search import search_containment
from pexeso.token_search.overlap_search import search_overlap, search_overlap_batch
from pexeso.token_search.query import TokenQuery, token_query

if TYPE_CHECKING:
    from pexeso.search.open_index import OpenIndex
    from pexeso.token_search.opening import TokenSets
    from pexeso.token_search.results import TokenSearchResult


@dataclass(frozen=True)
class TokenSearches:
    """Exact-value searches of one snapshot.

    See `pexeso.Index` for the meaning of the arguments.
    """

    opened: OpenIndex | TokenSets

    def overlap(self, values: Any, k: int, exclude_self: bool) -> TokenSearchResult:
        """Find the k columns that share most distinct values with a query column."""
        require_part(self.opened.store, "overlap")
        query = token_query(values)
        return search_overlap(
            self.opened.shards,
            query,
            small_enough("k", k),
            exclude_table=self._own_table(query, exclude_self),
        )

    def overlap_batch(
        self, queries: Iterable[Any], k: int, exclude_self: bool, device: str | None
    ) -> list[TokenSearchResult]:
        """Search with several query columns as `overlap` does.

        The posting lists of all query columns are counted together.
        """
        require_part(self.opened.store, "overlap")
        from pexeso.search.opening import (
            choose_device,
        )  # brings torch, which other searches do without

        columns = [token_query(values) for values in queries]
        return search_overlap_batch(
            self.opened.shards,
            columns,
            small_enough("k", k),
            device=str(self.opened.device if device is None else choose_device(device)),
            exclude_tables=[self._own_table(query, exclude_self) for query in columns],
        )

    def contain(
        self, values: Any, min_containment: float, verify: bool, k: int | None, exclude_self: bool
    ) -> TokenSearchResult:
        """Find the columns that have at least a share of a query column's distinct values."""
        require_part(self.opened.store, "containment")
        query = token_query(values)
        return search_containment(
            self.opened.shards,
            query,
            plain_scalar(min_containment),
            verify=verify,
            k=small_enough("k", k),
            exclude_table=self._own_table(query, exclude_self),
        )

    def _own_table(self, query: TokenQuery, exclude_self: bool) -> str | None:
        file = query.column.file
        return self.opened.table_of(file) if exclude_self and file is not None else None
