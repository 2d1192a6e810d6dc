"""The index that is served: one snapshot of it, until somebody asks for the newest."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any

from pexeso.errors import PexesoError
from pexeso.faces.service.verbs import Service, State

if TYPE_CHECKING:
    from pexeso.faces.service.bases import Request
    from pexeso.faces.service.requests import SearchRequest
    from pexeso.faces.service.responses import SearchResponse
    from pexeso.index import Index
    from pexeso.semantic.encoded_query import EncodedQuery


# Columns that are kept; of more, the one not used for longest is dropped.
KEPT = 8

# Distinct values of a column that is kept: at 100 dimensions it takes 40 MB at most.
MAX_VALUES = 100_000


class EncodedQueries:
    """Keeps encoded query columns, for files that do not change.

    Examples
    --------
    >>> kept = EncodedQueries()
    >>> len(kept)
    0
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], EncodedQuery] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: tuple[object, ...], encode: Callable[[], EncodedQuery]) -> EncodedQuery:
        """Return the column of a key, which names the index's state too; encode it if it is new."""
        with self._lock:
            cached_query = self._kept.get(key)
            if cached_query is not None:
                self._kept.move_to_end(key)
                return cached_query
        encoded = encode()
        if len(encoded.values) <= MAX_VALUES:
            with self._lock:
                self._kept[key] = encoded
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return encoded


# Seconds between two looks at whether the index has changed.
LOOK_EVERY = 2.0


class ServedIndex:
    """An index for many clients at a time; it is opened on first use, or by `of`."""

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
        """Open an index to serve it."""
        served = cls(path)
        served._service.open(path)
        return served

    @property
    def index(self) -> Index:
        return self._service.open(self.path)

    @contextmanager
    def turn(self) -> Iterator[Service]:
        """Wait for a turn, of which there are as many at once as processors, and two at least.

        The service of a turn answers from the snapshot of now, whoever reloads meanwhile.
        """
        with self._turns:
            yield self._service.pinned()

    def prepare(self) -> None:
        """Load what the first search needs ahead of it; the search reports what goes wrong."""
        with suppress(PexesoError, OSError):
            self.index._opened.loader  # noqa: B018

    def run(self, request: Request, **live: Any) -> Any:
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
        """Answer from the newest state of the index from now on; turns that have begun go on."""
        self._service.reload(self.path)
        self._looked = None
