"""The indexes that requests are answered by: opened for one request, or kept open for the next."""

from __future__ import annotations

from copy import copy
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self

from pexeso.errors import StoredIndexError
from pexeso.faces.service.bases import DistanceRequest

if TYPE_CHECKING:
    from pexeso.answering import Answering
    from pexeso.index import Index
    from pexeso.store.local.reader import Store


State = Literal["current", "newer", "gone"]
"""Whether an index that is open is the one that is stored, or an older one, or the last of it."""


class OpenIndexes:
    """Opens indexes.

    Parameters
    ----------
    keep_open : bool
        Keep every index that was searched open: for a process that answers many requests.
    follow : bool
        Of an index that is kept open, search the newest generation; else the one that was opened,
        even if it is deleted, until `reload`.
    """

    def __init__(self, *, keep_open: bool = False, follow: bool = True) -> None:
        self._keep_open = keep_open
        self._follow = follow
        self._indexes: dict[tuple[Any, ...], Index] = {}
        self._lock = Lock()

    def open(
        self,
        path: str,
        device: str = "auto",
        budget: str | int | None = None,
        model: str | None = None,
    ) -> Index:
        """Return an open index; see `pexeso.open_index`."""
        from pexeso.index import open_index

        key = (path, device, budget, model)
        with self._lock:
            cached_index = self._indexes.get(key)
            if cached_index is not None:
                if self._follow:
                    cached_index.refresh()
                return cached_index
            index = open_index(
                path,
                device=device,
                memory_budget=budget,
                model=model,
                keep_files=not self._follow,
            )
            if self._keep_open:
                self._indexes[key] = index
            return index

    def pinned(self) -> Self:
        """Return what shares all that is open, and goes on with it after a `reload` of this one."""
        return copy(self)

    def is_open(self, path: str) -> bool:
        """Return whether an index is kept open."""
        with self._lock:
            return any(open_path == path for open_path, *_ in self._indexes)

    def store(self, path: str) -> Store:
        """Return the files of an index: those that are open, where these are to be kept."""
        from pexeso.store.opening import open_store_anywhere

        return open_store_anywhere(path) if self._follow else self.open(path)._opened.whole

    def reload(self, path: str) -> bool:
        """Switch what is kept open of an index to its newest generation; return if there was one.

        Raises
        ------
        StoredIndexError
            The index is gone; what is open stays.
        """
        with self._lock:
            # What is pinned has the indexes as they were.
            indexes = {
                key: copy(index) if key[0] == path else index
                for key, index in self._indexes.items()
            }
            newer = [
                index.refresh() for (open_path, *_), index in indexes.items() if open_path == path
            ]
            self._indexes = indexes
            return any(newer)

    def state(self, path: str) -> State:
        """Return how what is kept open of an index stands to what is stored."""
        from pexeso.store.opening import open_store_anywhere

        with self._lock:
            indexes = [
                index for (open_path, *_), index in self._indexes.items() if open_path == path
            ]
        if indexes and all(index.store.is_newest() for index in indexes):
            return "current"
        try:
            stored = open_store_anywhere(path).manifest.snapshot
        except StoredIndexError:
            return "gone"
        same = all(index.store.manifest.snapshot == stored for index in indexes)
        return "current" if same else "newer"

    def open_for(self, request: DistanceRequest) -> Index:
        """Return the index of a request, open where it is to be searched."""
        return self.open(request.index, request.device, request.memory_budget, request.model)

    def searches(self, path: str) -> Answering:
        """Return what searches an index by equal values, keys and programs, and finds tables.

        Models are not loaded, unless indexes are kept open.
        """
        if self._keep_open:
            return self.open(path)._answering
        from pexeso.answering import Answering
        from pexeso.semantic.executor import LocalExecutor
        from pexeso.semantic.open_index import open_without_models

        return Answering.of(open_without_models(path), LocalExecutor())
