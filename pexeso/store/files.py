"""Bytes on disk: checksums, durable writes, and what to say when a write fails."""

import contextlib
import errno
import hashlib
import json
import os
import stat
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pexeso.errors import IndexCorruptError, OutputError
from pexeso.store.manifest import FileEntry

CHUNK_BYTES = 1 << 20
_MAX_DOCUMENT_BYTES = 1 << 24
_NO_SURPRISE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_PERMISSION = (errno.EACCES, errno.EPERM)


def new_checksum() -> "hashlib._Hash":
    """Return the running checksum of every file of an index: BLAKE2b with a digest of 128 bits."""
    return hashlib.blake2b(digest_size=16)


def checksum_file(path: Path, on_chunk: Callable[[int], None] | None = None) -> tuple[int, str]:
    """Read a file once, 1 MiB at a time, and return its size and checksum.

    Parameters
    ----------
    on_chunk
        Called with the number of bytes of each piece read.

    Returns
    -------
    tuple[int, str]
        Size in bytes; 32 hexadecimal digits.
    """
    with open(path, "rb") as file:
        return checksum_open(file, on_chunk)


def checksum_open(file: BinaryIO, on_chunk: Callable[[int], None] | None = None) -> tuple[int, str]:
    """Do as `checksum_file` with an open file, from where it stands to its end."""
    running, n_bytes = new_checksum(), 0
    while chunk := file.read(CHUNK_BYTES):
        running.update(chunk)
        n_bytes += len(chunk)
        if on_chunk is not None:
            on_chunk(len(chunk))
    return n_bytes, running.hexdigest()


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading without following a link or waiting for a pipe.

    Only a link at the end of the path is covered.

    All that is asked of the file afterwards, its size included, is asked of its descriptor: what
    takes its name meanwhile does no harm.
    """
    return _plain(
        open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_SURPRISE)), path
    )


class RootFolder:
    """A folder that stays the one that was opened, whatever takes its name later.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    OSError
        There is none.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._descriptor)

    def open_plain(self, relative: str) -> BinaryIO:
        """Open a file below the folder, as `pexeso.store.files.open_plain` does.

        No folder on the way may be a link either.
        """
        *folders, name = relative.split("/")
        descriptor = self._descriptor
        try:
            for folder in folders:
                inner = os.open(folder, _FOLDER, dir_fd=descriptor)
                if descriptor != self._descriptor:
                    os.close(descriptor)
                descriptor = inner
            opened = os.open(name, os.O_RDONLY | _NO_SURPRISE, dir_fd=descriptor)
        finally:
            if descriptor != self._descriptor:
                os.close(descriptor)
        return _plain(open(opened, "rb"), relative)

    def release(self) -> None:
        """Close the folder; once is enough, and the end of the object does it too."""
        self._close()


def _plain(file: BinaryIO, path: Path | str) -> BinaryIO:
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.ELOOP, "not a plain file", os.fspath(path))
    return file


class ChecksumWriter:
    """A binary file for writing that computes a checksum of what is written.

    A large file is never read again for its checksum.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._running = new_checksum()
        self.n_bytes = 0
        self.closed = False  # Arrow asks every file object it is given

    def write(self, data: Any) -> int:
        """Write bytes or any contiguous buffer; return their number."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self._running.update(view)
        self.n_bytes += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Hand what is buffered to the operating system."""
        self._file.flush()

    def entry(self, name: str) -> FileEntry:
        """Return what the manifest records of the file as written so far."""
        return FileEntry(name, self.n_bytes, self._running.hexdigest())


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[ChecksumWriter]:
    """Open a file that must not exist yet, and sync it to disk when the block ends.

    The content is then on the disk itself, not only in a cache.
    """
    with writing(path), open(path, "xb") as file:
        writer = ChecksumWriter(file)
        yield writer
        file.flush()
        os.fsync(file.fileno())


def write_document(path: Path, document: Any) -> FileEntry:
    """Write plain JSON data (sorted keys, indented, ASCII) to a new file."""
    data = (json.dumps(document, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")
    with new_file(path) as file:
        file.write(data)
    return file.entry(path.name)


def replace_document(path: Path, document: Any) -> None:
    """Write plain JSON data to a file, replacing it atomically.

    The previous content is lost.
    """
    draft = path.with_name(f"{path.name}.draft")
    with writing(path):
        draft.unlink(missing_ok=True)
        write_document(draft, document)
        os.replace(draft, path)
        sync_folder(path.parent)


def read_document(path: Path) -> Any:
    """Read a JSON file that `write_document` wrote."""
    try:
        with open_plain(path) as file:
            return read_open_document(file, path)
    except OSError as error:
        raise IndexCorruptError(f"'{path}' cannot be read: {error.strerror or error}.") from error


def read_open_document(file: BinaryIO, path: Path) -> Any:
    """Do as `read_document` with an open file, which messages call by its path."""
    try:
        data = file.read(min(os.fstat(file.fileno()).st_size, _MAX_DOCUMENT_BYTES) + 1)
        if len(data) > _MAX_DOCUMENT_BYTES:
            raise IndexCorruptError(
                f"'{path}' has more than {_MAX_DOCUMENT_BYTES:,} bytes, the most that is read."
            )
        return json.loads(data)
    except OSError as error:
        raise IndexCorruptError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise IndexCorruptError(f"'{path}' is not readable as JSON: {error}.") from error


def sync_file(path: Path) -> None:
    """Wait until the file's bytes are on the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the folder's list of names is on the disk.

    This holds only if the file system can guarantee it.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failed write into one sentence."""
    try:
        yield
    except OSError as error:
        raise output_error(error, path) from error


def output_error(error: OSError, path: Path) -> OutputError:
    """Return what a failed write means and what can be done about it."""
    position = error.filename if isinstance(error.filename, str) else os.fspath(path)
    if error.errno in _NO_SPACE:
        return OutputError(
            f"No space is left where '{position}' is being written: free some, or choose another "
            "place for the index."
        )
    if error.errno in _NO_PERMISSION:
        return OutputError(
            f"There is no permission to write '{position}': change it, or choose another place "
            "for the index."
        )
    if error.errno == errno.EROFS:
        return OutputError(
            f"'{position}' is on a read-only file system: choose another place for the index."
        )
    return OutputError(f"'{position}' cannot be written: {error.strerror or error}.")
