"""The columns that share most values with a query column, read as deep as is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pexeso.options import ALL
from pexeso.sets.part.open import require_part
from pexeso.sets.search.overlap_search import overlap_with
from pexeso.sets.search.query import TokenQuery, token_query

if TYPE_CHECKING:
    from pexeso.results.query import QueryColumn
    from pexeso.sets.search.results import TokenMatch, TokenSearchResult
    from pexeso.sets.search.searches import TokenSearches


class OverlapList:
    """The columns that share most values with a query column, best first, each for itself."""

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
