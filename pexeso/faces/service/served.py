"""The index that is served: one snapshot of it, until somebody asks for the newest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

from pexeso.errors import PexesoError
from pexeso.faces.service.encoded_queries import EncodedQueries
from pexeso.faces.service.open_indexes import State
from pexeso.faces.service.verbs import Service

if TYPE_CHECKING:
    from pexeso.faces.service.bases import Request
    from pexeso.faces.service.requests import SearchRequest
    from pexeso.faces.service.responses import SearchResponse
    from pexeso.index import Index

LOOK_EVERY = 2.0
"""Seconds between two looks at whether the index has changed."""


class ServedIndex:
    """An index that many ask at once; it is opened when it is first asked, or by `of`.

    Parameters
    ----------
    path : str
        Folder or URL.

    Attributes
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._service = Service(keep_open=True, follow=False)
        self._encoded = EncodedQueries()
        # Of two at least, so that a long request does not hold up all others.
        self._turns = BoundedSemaphore(max(2, os.cpu_count() or 1))
        self._looked: float | None = None
        self._state: State = "current"

    @classmethod
    def of(cls, path: str) -> ServedIndex:
        """Open an index to serve it.

        Raises
        ------
        StoredIndexError, PlaceError
            There is no index that this version can search.
        """
        served = cls(path)
        served._service.open(path)
        return served

    @property
    def index(self) -> Index:
        """The snapshot."""
        return self._service.open(self.path)

    @contextmanager
    def turn(self) -> Iterator[Service]:
        """Wait for a turn, of which there are as many at once as processors, and two at least.

        Yields
        ------
        Service
            It answers from the snapshot of now in the whole block, whoever reloads meanwhile.
        """
        with self._turns:
            yield self._service.pinned()

    def prepare(self) -> None:
        """Load what the first search needs ahead of it; what goes wrong is told by the search."""
        with suppress(PexesoError, OSError):
            self.index._opened.loader  # noqa: B018

    def run(self, request: Request, **live: Any) -> Any:
        """Answer a request in a turn of its own; see `Service.run`."""
        with self.turn() as service:
            return service.run(request, **live)

    def search(self, request: SearchRequest, *, is_kept: bool) -> SearchResponse:
        """Answer a search; `is_kept`: the file of its query column does not change."""
        return self.run(request, encoded=self._encoded if is_kept else None)

    def state(self) -> State:
        """Return whether the index has been updated or deleted since it was opened."""
        now = time.monotonic()
        if self._looked is None or now - self._looked >= LOOK_EVERY:
            self._looked = now
            with suppress(PexesoError, OSError):  # of a storage that cannot be reached now
                self._state = self._service.state(self.path)
        return self._state

    def reload(self) -> None:
        """Answer from the newest state of the index from now on; turns that have begun go on.

        Raises
        ------
        StoredIndexError
            There is none any more; the snapshot goes on answering.
        """
        self._service.reload(self.path)
        self._looked = None
