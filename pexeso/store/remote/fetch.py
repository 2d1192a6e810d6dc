"""Fetch one file of an index from another storage, piece by piece, and verify it on the way."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from pexeso.errors import IndexCorruptError, PlaceError
from pexeso.store.files import new_checksum, writing
from pexeso.store.io.location import READ_BYTES, Location
from pexeso.store.manifest import FileEntry

_PIECES_AHEAD = 4
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.5


def fetch_into(part: Path, location: Location, entry: FileEntry) -> None:
    """Fill a local file with the bytes of a file elsewhere, and wait until they are on the disk.

    Memory: four pieces of 16 MiB.
    """
    with writing(part), open(part, "r+b") as file:
        checksum = fetch_checksum(location, entry, file.write)
        file.truncate(entry.n_bytes)
        file.flush()
        os.fsync(file.fileno())
    if checksum != entry.checksum:
        raise IndexCorruptError(
            f"'{location}' is not as it was written, by its checksum: restore it from a copy, or "
            "build the index again."
        )


def fetch_checksum(
    location: Location, entry: FileEntry, take: Callable[[bytes], object] | None = None
) -> str:
    """Read a whole file elsewhere, in order, and return its checksum.

    Parameters
    ----------
    take
        Called with each piece of bytes, if given.
    """
    running = new_checksum()
    for piece in _pieces(location, entry.n_bytes):
        running.update(piece)
        if take is not None:
            take(piece)
    return running.hexdigest()


def _pieces(location: Location, n_bytes: int) -> Iterator[bytes]:
    """Yield the pieces of a file in order, a few being asked for at a time."""
    starts = iter(range(0, n_bytes, READ_BYTES))
    with ThreadPoolExecutor(_PIECES_AHEAD) as pool:
        queue: deque[Future[bytes]] = deque()

        def ask() -> None:
            start = next(starts, None)
            if start is not None:
                queue.append(pool.submit(_piece, location, start, min(start + READ_BYTES, n_bytes)))

        try:
            for _ in range(_PIECES_AHEAD):
                ask()
            while queue:
                yield queue.popleft().result()
                ask()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _piece(location: Location, start: int, stop: int) -> bytes:
    for attempt in range(_ATTEMPTS):
        try:
            data = location.read(start, stop)
        except PlaceError:
            _require_there(location, stop)
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(_PAUSE_SECONDS * 2**attempt)
            continue
        if len(data) == stop - start:
            return data
        _require_there(location, stop)
    raise PlaceError(f"'{location}' cannot be read: the connection broke off {_ATTEMPTS} times.")


def _require_there(location: Location, n_bytes: int) -> None:
    entry = location.look()
    if entry is None:
        raise IndexCorruptError(
            f"'{location}' is missing. If the index has been written anew since it was opened, "
            "open it again; "
            "else restore the file from a copy, or build the index again."
        )
    if entry.n_bytes < n_bytes:
        raise IndexCorruptError(
            f"'{location}' has {entry.n_bytes} bytes, but at least {n_bytes} were written: it "
            "was cut short or changed."
        )
