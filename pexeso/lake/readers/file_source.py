"""One file that is to be read, wherever it lies: on this machine, elsewhere, or in memory."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from pexeso.errors import PlaceError, TableReadError
from pexeso.lake.readers.budget import DEFAULT_MAX_BYTES, ReadingBudget
from pexeso.lake.readers.content import (
    bytes_fingerprint,
    check_size,
    fingerprint_file,
    require_regular_file,
)
from pexeso.store.io.location import Location, is_refusal

_COPIED_BYTES = 8 << 20


def log_beside(location: Path | Location) -> Path | None:
    """Return the log of a SQLite database where it holds changes: the database is older than they.

    Of files elsewhere the log is not read.
    """
    if isinstance(location, Location):
        return None
    log = location.with_name(f"{location.name}-wal")
    try:
        return log if log.stat().st_size else None
    except OSError:
        return None


@dataclass(frozen=True)
class FileSource:
    """A file, as the formats that hold several tables want it: a stream or a path.

    Attributes
    ----------
    location : Path, Location or None
        Where it lies; None for one that was taken out of another file.
    data : bytes or None
        What it holds, where that is in memory already.
    n_stored : int or None
        Size of the file that `data` was unpacked from, in bytes; None: it was not packed.
    """

    shown: str
    location: Path | Location | None = None
    data: bytes | None = field(default=None, repr=False)
    max_bytes: int = DEFAULT_MAX_BYTES
    n_stored: int | None = None

    def budget(self) -> ReadingBudget:
        """Return a new budget for reading a table of the file; its clock runs."""
        return ReadingBudget(self.shown, self._n_stored, self.max_bytes)

    @property
    def _n_stored(self) -> int:
        if self.n_stored is not None:
            return self.n_stored
        if self.data is not None:
            return len(self.data)
        if isinstance(self.location, Location):
            entry = self.location.look()
            return 0 if entry is None else entry.n_bytes
        try:
            return 0 if self.location is None else os.stat(self.location).st_size
        except (OSError, ValueError):  # whoever opens it says why
            return 0

    @cached_property
    def fingerprint(self) -> str | None:
        """`Content.fingerprint` of what it held when this was first asked; None if unreadable.

        Of a database with a log beside it, that of both.
        """
        if self.data is not None:
            return bytes_fingerprint(self.data)
        if self.location is None:
            return None
        fingerprint, log = fingerprint_file(self.location), log_beside(self.location)
        if fingerprint is None or log is None:
            return fingerprint
        return bytes_fingerprint(f"{fingerprint} {fingerprint_file(log)}".encode())

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file for reading, with `seek`; of one elsewhere only what is read is fetched."""
        if self.data is not None:
            yield io.BytesIO(self.data)
        elif isinstance(self.location, Location):
            with self._elsewhere() as stream:
                yield stream
        else:
            with self._of_this_machine() as stream:
                yield stream

    @contextmanager
    def local_path(self) -> Iterator[Path]:
        """Return a path of this machine for a library that needs one.

        That of the file itself, which must not be written to, or of a copy in a folder that is
        removed afterwards.
        """
        if isinstance(self.location, Path) and self.data is None:
            with self.open():
                yield self.location
            return
        with tempfile.TemporaryDirectory(prefix="pexeso-") as folder:
            copy = Path(folder) / "file"
            with self.open() as stream, open(copy, "wb") as target:
                shutil.copyfileobj(stream, target, _COPIED_BYTES)
            yield copy

    @contextmanager
    def _of_this_machine(self) -> Iterator[BinaryIO]:
        path = self.location
        if not isinstance(path, Path):
            raise TableReadError(f"{self.shown} has no place that it could be read from.")
        try:
            status = require_regular_file(path, self.shown)
            check_size(self.shown, status.st_size, self.max_bytes)
            stream = open(path, "rb")  # noqa: SIM115 - errors of the block are not those of opening
        except OSError as error:
            reason = error.strerror or error
            raise TableReadError(f"{self.shown} cannot be read: {reason}.") from error
        with stream:
            yield stream

    @contextmanager
    def _elsewhere(self) -> Iterator[BinaryIO]:
        location = self.location
        if not isinstance(location, Location):
            raise TableReadError(f"{self.shown} has no place that it could be read from.")
        try:
            entry = location.look()
            if entry is None or entry.kind != "file":
                raise TableReadError(f"{self.shown} is not a regular file; a table is one file.")
            check_size(self.shown, entry.n_bytes, self.max_bytes)
            with location.open() as stream:
                yield io.BufferedReader(_Raw(stream), 1 << 20)
        except PlaceError as error:
            if is_refusal(error):
                raise TableReadError(str(error)) from error
            raise


class _Raw(io.RawIOBase):
    """A stream of a storage as raw input, so that small reads of a library become large ones."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self._stream.read(len(view))
        view[: len(data)] = data
        return len(data)
