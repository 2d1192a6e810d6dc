"""A local cache for the files of an index on other storage.

Files are fetched once and verified, and the size of the cache is bounded.

A folder of an index is kept under a name made of the names, sizes and checksums of its files, so
that equal contents are equal folders whatever index they come from, and nothing kept is ever out of
date. Beside ``folders/`` there is a file a folder in ``locks/``: its lock says that the folder is
in use, its time when it was used last. What was not used for longest goes first; what is in use
stays. Processes of one machine may share a cache.

What is mapped into memory stays readable when its file is removed, and takes its space on the disk
until it is no longer mapped; that space does not count.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pexeso.errors import InputError, OutputError
from pexeso.runtime.formatting import format_bytes
from pexeso.store.files import writing
from pexeso.store.io.location import Location
from pexeso.store.io.locks import EXCLUSIVE, SHARED, lock
from pexeso.store.manifest import FileEntry, FolderEntry
from pexeso.store.paths import plain_file_size
from pexeso.store.remote.fetch import fetch_into

DEFAULT_BYTES = 20 << 30
"""Most bytes that a cache holds unless told otherwise: 20 GiB."""

FOLDER_VARIABLE, SIZE_VARIABLE = "PEXESO_CACHE", "PEXESO_CACHE_GIB"
"""Environment variables: the folder of the cache; its size in GiB, a number such as 50 or 0.5."""

UNLOCKED_SECONDS = 3600
"""How long a folder counts as in use after its last use, where the file system cannot lock."""

_PART = ".part"


class Lease:
    """Keeps a folder of a cache from being removed for as long as this object lives."""

    def __init__(self, descriptor: int) -> None:
        self._close = weakref.finalize(self, os.close, descriptor)

    def release(self) -> None:
        """Let go; once is enough, and the end of the object does it too."""
        self._close()


@dataclass(frozen=True)
class Cache:
    """A folder of this machine for files of indexes elsewhere.

    Attributes
    ----------
    max_bytes
        Most bytes of files that it holds, 1 or more.
    """

    root: Path
    max_bytes: int = DEFAULT_BYTES

    def __post_init__(self) -> None:
        if type(self.max_bytes) is not int or self.max_bytes < 1:
            raise InputError(
                "The size of a cache must be a whole number of bytes, 1 or more. Got "
                f"{self.max_bytes!r}."
            )
        object.__setattr__(self, "root", Path(self.root).absolute())

    def folder(self, entry: FolderEntry) -> Path:
        """Return where the files of a folder of an index are kept, if they are."""
        return self.root / "folders" / _digest(entry)

    def fetch(
        self, index: Location, entry: FolderEntry, paths: Sequence[str]
    ) -> tuple[Path, Lease]:
        """Fetch and verify the files of an index folder that are missing from the cache.

        Parameters
        ----------
        index
            The place of the index.
        entry
            The folder, as the manifest has it.
        paths
            Files that it lists.

        Returns
        -------
        folder, lease
            Where the files are now, under their own paths; they stay while the lease lives.

        Raises
        ------
        IndexCorruptError
            A file is missing there, or is not the one that was written.
        OutputError
            The cache cannot be written, or has no room.
        PlaceError
            The storage cannot be reached.
        """
        folder = self.folder(entry)
        with writing(self.root):
            for needed in (folder.parent, self.root / "locks"):
                needed.mkdir(parents=True, exist_ok=True, mode=0o700)
            lease = Lease(self._lock_shared(folder.name))
        files = [file for file in entry.files if file.path in set(paths)]
        missing = [file for file in files if plain_file_size(folder, file.path) != file.n_bytes]
        if missing:
            with self._reserved(folder, missing) as parts:
                for file, part in zip(missing, parts, strict=True):
                    fetch_into(part, index.joined(f"{entry.folder}/{file.path}"), file)
                    with writing(folder):
                        os.replace(part, folder / file.path)
        return folder, lease

    @contextlib.contextmanager
    def _reserved(self, folder: Path, files: list[FileEntry]) -> Iterator[list[Path]]:
        """Make room for files and create them in the right sizes, to be filled.

        Files that have not been moved away at the end are removed.
        """
        parts: list[tuple[Path, int]] = []
        try:
            with writing(folder), self._exclusive():
                self._make_room(sum(file.n_bytes for file in files))
                for file in files:
                    parts.append(_new_part(folder / file.path, file.n_bytes))
            yield [path for path, _ in parts]
        finally:
            for path, descriptor in parts:
                path.unlink(missing_ok=True)
                os.close(descriptor)

    def _make_room(self, n_bytes: int) -> None:
        """Remove the least recently used folders until `n_bytes` more bytes fit.

        The caller holds the lock of the cache.
        """
        sizes = {
            name: _size_without_dead_parts(self.root / "folders" / name) for name in self._names()
        }
        used = sum(sizes.values())
        for name in sorted(sizes, key=self._last_used):
            if used + n_bytes <= self.max_bytes:
                break
            if self._remove_unless_used(name):
                used -= sizes[name]
        if used + n_bytes > self.max_bytes:
            raise OutputError(
                f"The cache '{self.root}' holds at most {format_bytes(self.max_bytes)}, of which "
                f"{format_bytes(used)} are in "
                f"use, and {format_bytes(n_bytes)} more are needed: make it larger "
                f"({SIZE_VARIABLE}, in GiB)."
            )

    def _names(self) -> list[str]:
        return sorted(os.listdir(self.root / "folders"))

    def _last_used(self, name: str) -> float:
        try:
            return (self.root / "locks" / name).stat().st_mtime
        except OSError:
            return 0.0

    def _remove_unless_used(self, name: str) -> bool:
        path = self.root / "locks" / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            locked = lock(descriptor, EXCLUSIVE)
            if locked is False or (
                locked is None and time.time() - self._last_used(name) < UNLOCKED_SECONDS
            ):
                return False
            shutil.rmtree(self.root / "folders" / name)
            path.unlink(missing_ok=True)
            return True
        finally:
            os.close(descriptor)

    def _lock_shared(self, name: str) -> int:
        """Open the lock of a folder as one that uses it, and note the time."""
        path = self.root / "locks" / name
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            lock(descriptor, SHARED, wait=True)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    os.utime(path)
                    return descriptor
            os.close(descriptor)  # it was removed with its folder while this one waited

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Be the only one that makes room."""
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock(descriptor, EXCLUSIVE, wait=True)
            yield
        finally:
            os.close(descriptor)


def default_cache() -> Cache:
    """Return the cache of the current user.

    Its folder is ``~/.cache/pexeso`` unless ``XDG_CACHE_HOME`` or ``PEXESO_CACHE`` say otherwise.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    text = os.environ.get(SIZE_VARIABLE)
    try:
        max_bytes = DEFAULT_BYTES if not text else int(float(text) * 2**30)
    except (ValueError, OverflowError):
        max_bytes = 0
    if max_bytes < 1:
        raise InputError(
            f"{SIZE_VARIABLE} must be a number of GiB above 0, such as 50. Got {text!r}."
        )
    return Cache(Path(folder) if folder else Path(home) / "pexeso", max_bytes)


def _digest(entry: FolderEntry) -> str:
    listed = json.dumps([[file.path, file.n_bytes, file.checksum] for file in entry.files])
    return hashlib.blake2b(listed.encode("ascii"), digest_size=16).hexdigest()


def _new_part(path: Path, n_bytes: int) -> tuple[Path, int]:
    """Make a file of that size beside `path`, locked for as long as the descriptor is open."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{_PART}")
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    lock(descriptor, EXCLUSIVE, wait=True)
    os.truncate(descriptor, n_bytes)
    return part, descriptor


def _size_without_dead_parts(folder: Path) -> int:
    """Return the bytes of all files below a folder after removal of unfinished files.

    Unfinished files are those that a process was filling when it died.
    """
    n_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with contextlib.suppress(
                FileNotFoundError
            ):  # another process has just moved or removed it
                if name.endswith(_PART) and _is_dead(path):
                    path.unlink()
                else:
                    n_bytes += path.lstat().st_size
    return n_bytes


def _is_dead(part: Path) -> bool:
    descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    try:
        locked = lock(descriptor, EXCLUSIVE)
        return locked is True or (
            locked is None and time.time() - part.stat().st_mtime > UNLOCKED_SECONDS
        )
    finally:
        os.close(descriptor)
