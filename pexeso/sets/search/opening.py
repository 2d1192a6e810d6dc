"""The token sets of an index, opened without the model and without torch.

They are all that a command for exact-value comparison needs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pexeso.build.parts.metadata import has_aliases, require_contents
from pexeso.lake.catalog import Catalog
from pexeso.lake.containers.table_names import name_within
from pexeso.sets.part.open import Shard, open_shards
from pexeso.sets.search.searches import TokenSearches
from pexeso.store.io.location import Location, locate
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere

if TYPE_CHECKING:
    from pexeso.lake.normalise.normaliser import Normaliser


@dataclass(frozen=True)
class TokenSets:
    """One snapshot of the token sets of an index."""

    store: Store

    @cached_property
    def shards(self) -> list[Shard]:
        """The open shards."""
        return open_shards(self.store)

    @cached_property
    def normaliser(self) -> Normaliser | None:
        """What replaces aliases; None where the index has none."""
        if not has_aliases(self.store.manifest):
            return None
        from pexeso.build.opening import normaliser_of  # most indexes do without

        return normaliser_of(self.store)

    @property
    def catalog(self) -> Catalog:
        """Every table and column of the lake, those left out with the reason."""
        return Catalog(self.store.catalog_files)

    def table_of(self, file: str | os.PathLike[str]) -> str | None:
        """Return the table name of a file in this lake, or None if it lies outside the lake."""
        name = name_within(locate(self.store.manifest.facts["lake"]), file)
        return None if name is None else self.catalog.named(name)


def open_token_sets(path: str | os.PathLike[str] | Path | Location) -> TokenSearches:
    """Open the token sets of an index, read-only, in milliseconds."""
    store = open_store_anywhere(path)
    require_contents(store.manifest)
    return TokenSearches(TokenSets(store))
