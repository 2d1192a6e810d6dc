"""The token sets of an index opened by themselves: what a command that compares equal texts needs, without the model and without torch."""

from __future__ import annotations

import os
from pathlib import Path

from pexeso.contents import require_contents
from pexeso.elsewhere import open_store_anywhere
from pexeso.equal_text.searches import EqualTextSearches
from pexeso.places import Place
from pexeso.store.reader import Store


class TokenSets(EqualTextSearches):
    """The parts for equal text of an open index. Made by `open_token_sets`; `pexeso.index.Index` answers the same and more.

    Attributes
    ----------
    store : Store
    path : Path or Place
    """

    def __init__(self, store: Store) -> None:
        self.store, self.path = store, store.path

    def refresh(self) -> bool:
        """Go over to the newest generation of the index; say whether there was a newer one."""
        newer = open_token_sets(self.path)
        if newer.store.manifest.generation == self.store.manifest.generation:
            return False
        self.__dict__ = newer.__dict__
        return True


def open_token_sets(path: str | os.PathLike[str] | Path | Place) -> TokenSets:
    """Open the parts for equal text of an index, read-only, in milliseconds.

    Raises
    ------
    IndexNotFoundError, IndexVersionError, IndexCorruptError
        When there is no index that this version can search.
    """
    store = open_store_anywhere(path)
    require_contents(store.manifest)
    return TokenSets(store)
