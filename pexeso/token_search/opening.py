"""The token sets of an index opened by themselves: what a command that compares equal values needs, without the model and without torch."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

from pexeso.io.location import Place, locate, name_within
from pexeso.options import DEFAULT_MIN_CONTAINMENT, DEFAULT_OVERLAP_COLUMNS
from pexeso.parts.metadata import require_contents
from pexeso.parts.token_sets.open import Shard, open_shards
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere
from pexeso.token_search.results import EqualTextResult
from pexeso.token_search.searches import EqualTextSearches


class TokenSets:
    """One snapshot of the token sets of an index. Made by `open_token_sets`; `pexeso.Index` answers the same and more."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._searches = EqualTextSearches(self)

    @cached_property
    def shards(self) -> list[Shard]:
        """The open shards."""
        return open_shards(self.store)

    def table_of(self, file: str | os.PathLike[str]) -> str | None:
        """Return the name under which a file is a table of this lake, or None where it does not lie in the lake."""
        return name_within(locate(self.store.manifest.facts["lake"]), file)

    def overlap(self, values: Any, *, k: int = DEFAULT_OVERLAP_COLUMNS, exclude_self: bool = False) -> EqualTextResult:
        """Find the k columns that share most distinct values with a query column; see `pexeso.Index.overlap`."""
        return self._searches.overlap(values, k, exclude_self)

    def contain(
        self,
        values: Any,
        *,
        min_containment: float = DEFAULT_MIN_CONTAINMENT,
        verify: bool = True,
        k: int | None = None,
        exclude_self: bool = False,
    ) -> EqualTextResult:
        """Find the columns that have at least a share of a query column's values; see `pexeso.Index.contain`."""
        return self._searches.contain(values, min_containment, verify, k, exclude_self)


def open_token_sets(path: str | os.PathLike[str] | Path | Place) -> TokenSets:
    """Open the token sets of an index, read-only, in milliseconds.

    Raises
    ------
    IndexNotFoundError, IndexVersionError, IndexCorruptError
        When there is no index that this version can search.
    """
    store = open_store_anywhere(path)
    require_contents(store.manifest)
    return TokenSets(store)
