"""Files and folders on disk: checksums, durable writes, removal, and what a failed write means."""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pexeso.errors import IndexCorruptError, InputError, OutputError, failing_as
from pexeso.runtime.system import (
    HAS_FOLDER_STEPS,
    is_link,
    open_folder,
    open_unlinked,
    sync,
    sync_file,
    sync_folder,
)
from pexeso.store.manifest import (
    PARTITIONS,
    FileEntry,
    plain_file_size,
    require_folder,
    require_relative,
)

CHUNK_BYTES = 1 << 20
_MAX_DOCUMENT_BYTES = 1 << 24


def new_checksum() -> "hashlib._Hash":
    """Return the running checksum of every file of an index: BLAKE2b with a digest of 128 bits."""
    return hashlib.blake2b(digest_size=16)


def checksum_file(path: Path, on_chunk: Callable[[int], None] | None = None) -> tuple[int, str]:
    """Read a file once, 1 MiB at a time, and return its size and checksum.

    `on_chunk` is called with the number of bytes of each piece read.
    """
    with open(path, "rb") as file:
        return checksum_open(file, on_chunk)


def checksum_open(file: BinaryIO, on_chunk: Callable[[int], None] | None = None) -> tuple[int, str]:
    running, n_bytes = new_checksum(), 0
    while chunk := file.read(CHUNK_BYTES):
        running.update(chunk)
        n_bytes += len(chunk)
        if on_chunk is not None:
            on_chunk(len(chunk))
    return n_bytes, running.hexdigest()


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading without following a link at its end or waiting for a pipe.

    All that is asked of the file afterwards, its size included, is asked of its descriptor: what
    takes its name meanwhile does no harm.
    """
    return _plain(open_unlinked(path, os.O_RDONLY), path)


class Descriptor:
    """An open file or folder, closed by `release` or with the object, and its lock with it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.release = weakref.finalize(self, os.close, descriptor)


class RootFolder(Descriptor):
    """A folder that stays the one that was opened, whatever takes its name later.

    Where a system cannot open folders, each file is refused once the name is another folder's.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(open_folder(path))
        self._path, self._status = path.absolute(), os.stat(path)

    def open_plain(self, relative: str) -> BinaryIO:
        """Open a file below the folder; no folder on the way may be a link."""
        *folders, name = relative.split("/")
        if not HAS_FOLDER_STEPS:
            return self._open_checked(folders, name)
        with contextlib.ExitStack() as opened:
            descriptor = self._descriptor
            for folder in folders:
                descriptor = open_folder(folder, dir_fd=descriptor)
                opened.callback(os.close, descriptor)
            return _plain(open_unlinked(name, os.O_RDONLY, dir_fd=descriptor), relative)

    def _open_checked(self, folders: list[str], name: str) -> BinaryIO:
        """Open a file by its path, and look afterwards whether a step was or is a link."""
        folder = self._path
        steps = [folder := folder / step for step in folders]
        file = open_plain(folder / name)
        try:
            if not os.path.samestat(os.stat(self._path), self._status):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), os.fspath(self._path))
            for step in steps:
                status = os.lstat(step)
                if is_link(status) or not stat.S_ISDIR(status.st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(step))
        except OSError:
            file.close()
            raise
        return file


def _plain(descriptor: int, path: Path | str) -> BinaryIO:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, "not a plain file", os.fspath(path))
    return open(descriptor, "rb")


class ChecksumWriter:
    """A binary file for writing that computes a checksum of what is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._running = new_checksum()
        self.n_bytes = 0
        self.closed = False  # Arrow asks every file object for it
        self.flush = file.flush

    def write(self, data: Any) -> int:
        """Write bytes or any contiguous buffer; return their number."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        self._running.update(view)
        self.n_bytes += view.nbytes
        return view.nbytes

    def entry(self, name: str) -> FileEntry:
        return FileEntry(name, self.n_bytes, self._running.hexdigest())


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[ChecksumWriter]:
    """Open a file that must not exist yet, and sync it to the disk when the block ends."""
    with writing(path), open(path, "xb") as file:
        yield ChecksumWriter(file)
        file.flush()
        sync(file.fileno())


def write_document(path: Path, document: Any) -> FileEntry:
    """Write plain JSON data (sorted keys, indented, ASCII) to a new file."""
    data = (json.dumps(document, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")
    with new_file(path) as file:
        file.write(data)
    return file.entry(path.name)


def replace_document(path: Path, document: Any) -> None:
    draft = path.with_name(f"{path.name}.draft")
    with writing(path):
        draft.unlink(missing_ok=True)
        write_document(draft, document)
        os.replace(draft, path)
        sync_folder(path.parent)


def read_document(path: Path) -> Any:
    with failing_as(IndexCorruptError, f"'{path}' cannot be read"), open_plain(path) as file:
        return read_open_document(file, path)


def read_open_document(file: BinaryIO, path: Path) -> Any:
    with failing_as(IndexCorruptError, f"'{path}' cannot be read"):
        data = file.read(min(os.fstat(file.fileno()).st_size, _MAX_DOCUMENT_BYTES) + 1)
    if len(data) > _MAX_DOCUMENT_BYTES:
        raise IndexCorruptError(
            f"'{path}' has more than {_MAX_DOCUMENT_BYTES:,} bytes, the most that is read."
        )
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise IndexCorruptError(f"'{path}' is not readable as JSON: {error}.") from error


def sync_tree(folder: Path) -> None:
    """Wait until a folder, all files below it and all their names are on the disk."""
    for parent, _, names in os.walk(folder, topdown=False, onerror=_reraise):
        for name in names:
            sync_file(Path(parent, name))
        sync_folder(Path(parent))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise output_error(error, path) from error


def output_error(error: OSError, path: Path) -> OutputError:
    name = error.filename if isinstance(error.filename, str) else os.fspath(path)
    sentence = f"'{name}' cannot be written: {error.strerror or error}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        sentence = (
            f"No space is left where '{name}' is being written: free some, or choose another "
            "place for the index."
        )
    elif error.errno in (errno.EACCES, errno.EPERM):
        sentence = (
            f"There is no permission to write '{name}': change it, or choose another place for "
            "the index."
        )
    elif error.errno == errno.EROFS:
        sentence = f"'{name}' is on a read-only file system: choose another place for the index."
    return OutputError(sentence)


@contextlib.contextmanager
def filling(folder: Path, *, replace: bool = True) -> Iterator[Path]:
    """Fill a folder that appears complete or not at all, also where a task runs again.

    The block writes to a folder next to it, which takes the name when the block ends well; what an
    earlier attempt left under that name is replaced. Without `replace` the first attempt that ends
    well stays, whichever is the last.
    """
    attempt = folder.with_name(f"{folder.name}.{secrets.token_hex(8)}")
    try:
        with writing(folder):
            attempt.mkdir()
        yield attempt
        with writing(folder):
            if replace and folder.is_dir():
                shutil.rmtree(folder)
            try:
                os.rename(attempt, folder)
            except OSError as error:
                if replace or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                shutil.rmtree(attempt)
            sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(attempt, ignore_errors=True)
        raise


def plain_files(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield relative path and size in bytes of all files below a folder."""
    for parent, folders, files in os.walk(folder, onerror=_reraise):
        for name in (*folders, *files):
            path = Path(parent, name)
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise OutputError(
                    f"'{path}' is no plain file; an index holds plain files and folders only."
                )
        for name in files:
            relative = Path(parent, name).relative_to(folder).as_posix()
            yield relative, plain_file_size(folder, relative) or 0


def _reraise(error: OSError) -> None:
    raise error


def remove_files(root: Path, relative_paths: Iterable[str]) -> None:
    """Remove plain files of index folders and the folders that this leaves empty.

    Nothing else is removed: the paths must be of folders that pexeso itself names.
    """
    folders = set()
    for relative in relative_paths:
        if plain_file_size(root, relative) is not None:
            (root / relative).unlink()
        folders.add(own_folder(relative))
    emptied = [parent for folder in folders for parent, _, _ in os.walk(root / folder, False)]
    for parent in (*emptied, root / PARTITIONS):
        with contextlib.suppress(OSError):  # not there, or something else is in it
            os.rmdir(parent)


def remove_tree(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it; nothing where there is nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def empty_folder(folder: Path) -> None:
    """Remove what an earlier attempt left in a folder."""
    remove_tree(folder)
    folder.mkdir(parents=True)


def own_file(name: str) -> str:
    if require_relative(name) == own_folder(name):
        raise InputError(f"{name!r} is not a file in a folder of an index.")
    return name


def own_folder(name: str) -> str:
    parts = name.split("/")
    return require_folder("/".join(parts[: 2 if parts[0] == PARTITIONS else 1]))
