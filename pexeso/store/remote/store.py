"""An index on other storage, opened like a local one; files are fetched when first needed.

They are kept in a local cache: fetched once, verified, bounded. A folder of an index is kept under
a name made of the names, sizes and checksums of its files, so that equal contents are equal folders
whatever index they come from, and nothing kept is ever out of date. Next to ``folders/`` there is a
file a folder in ``locks/``: its lock says that the folder is in use, its time when it was used
last. What was not used for longest goes first; what is in use stays. Processes of one machine may
share a cache.

What is mapped into memory stays readable when its file is removed, and takes its space on the disk
until it is no longer mapped; that space does not count.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pexeso.errors import (
    IndexCorruptError,
    IndexNotFoundError,
    InputError,
    OutputError,
    PlaceError,
    failing_as,
)
from pexeso.runtime.formatting import format_bytes
from pexeso.runtime.system import EXCLUSIVE, SHARED, lock, open_file
from pexeso.store.files import Descriptor, new_checksum, writing
from pexeso.store.io.location import READ_BYTES, Location
from pexeso.store.local.reader import Store
from pexeso.store.manifest import (
    MANIFEST,
    PARTITIONS,
    FileEntry,
    FolderEntry,
    Manifest,
    manifest_from,
    plain_file_size,
    require_readable_size,
)

_PIECES_AHEAD = 4
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.5


def fetch_into(part: Path, location: Location, entry: FileEntry) -> None:
    """Fill a local file with the bytes of a file elsewhere; memory: four pieces of 16 MiB."""
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
    """Read a file elsewhere in order, call `take` with each piece, and return its checksum."""
    running = new_checksum()
    for piece in _pieces(location, entry.n_bytes):
        running.update(piece)
        if take is not None:
            take(piece)
    return running.hexdigest()


def _pieces(location: Location, n_bytes: int) -> Iterator[bytes]:
    """Yield the pieces of a file in order, a few being requested at a time."""
    spans = ((start, min(start + READ_BYTES, n_bytes)) for start in range(0, n_bytes, READ_BYTES))
    with ThreadPoolExecutor(_PIECES_AHEAD) as pool:
        queue = deque(pool.submit(_piece, location, *span) for span in islice(spans, _PIECES_AHEAD))
        try:
            while queue:
                yield queue.popleft().result()
                queue.extend(pool.submit(_piece, location, *span) for span in islice(spans, 1))
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
            "open it again; else restore the file from a copy, or build the index again."
        )
    if entry.n_bytes < n_bytes:
        raise IndexCorruptError(
            f"'{location}' has {entry.n_bytes} bytes, but at least {n_bytes} were written: it "
            "was cut short or changed."
        )


# Most bytes that a cache holds unless set otherwise: 20 GiB.
DEFAULT_BYTES = 20 << 30

# Environment variables: the folder of the cache; its size in GiB, a number such as 50 or 0.5.
FOLDER_VARIABLE, SIZE_VARIABLE = "PEXESO_CACHE", "PEXESO_CACHE_GIB"

# How long a folder counts as in use after its last use, where the file system cannot lock.
UNLOCKED_SECONDS = 3600

_PART = ".part"


@dataclass(frozen=True)
class Cache:
    """A folder of this machine for files of indexes elsewhere.

    max_bytes: most bytes of files that it holds, 1 or more.
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
        listed = json.dumps([[file.path, file.n_bytes, file.checksum] for file in entry.files])
        digest = hashlib.blake2b(listed.encode("ascii"), digest_size=16).hexdigest()
        return self.root / "folders" / digest

    def fetch(
        self, index: Location, entry: FolderEntry, paths: Sequence[str]
    ) -> tuple[Path, Descriptor]:
        folder = self.folder(entry)
        what = f"The cache '{self.root}' of indexes on other storage cannot be written"
        with failing_as(OutputError, what, f" Name another folder by {FOLDER_VARIABLE}."):
            for needed in (folder.parent, self.root / "locks"):
                needed.mkdir(parents=True, exist_ok=True, mode=0o700)
            lease = Descriptor(self._lock_shared(folder.name))
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
        """Create files in their sizes, to be filled; what is not moved away is removed."""
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
        """Remove the least recently used folders until `n_bytes` more fit; the cache is locked."""
        folders = self.root / "folders"
        sizes = {name: _size_without_dead_parts(folders / name) for name in os.listdir(folders)}
        used = sum(sizes.values())
        for name in sorted(sorted(sizes), key=self._last_used):
            if used + n_bytes <= self.max_bytes:
                break
            if self._remove_unless_used(name):
                used -= sizes[name]
        if used + n_bytes > self.max_bytes:
            raise OutputError(
                f"The cache '{self.root}' holds at most {format_bytes(self.max_bytes)}, of which "
                f"{format_bytes(used)} are in use, and {format_bytes(n_bytes)} more are needed: "
                f"make it larger ({SIZE_VARIABLE}, in GiB)."
            )

    def _last_used(self, name: str) -> float:
        try:
            return (self.root / "locks" / name).stat().st_mtime
        except OSError:
            return 0.0

    def _remove_unless_used(self, name: str) -> bool:
        path = self.root / "locks" / name
        descriptor = open_file(path, os.O_RDWR | os.O_CREAT, 0o600)
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
            descriptor = open_file(path, os.O_RDWR | os.O_CREAT, 0o600)
            lock(descriptor, SHARED, wait=True)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    os.utime(path)
                    return descriptor
            os.close(descriptor)  # it was removed with its folder while this one waited

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        descriptor = open_file(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
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


def _new_part(path: Path, n_bytes: int) -> tuple[Path, int]:
    """Make a file of that size next to `path`, locked for as long as the descriptor is open."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}{_PART}")
    descriptor = open_file(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    lock(descriptor, EXCLUSIVE, wait=True)
    os.truncate(descriptor, n_bytes)
    return part, descriptor


def _size_without_dead_parts(folder: Path) -> int:
    """Remove what a process was filling when it died, and return the bytes of all other files."""
    n_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with contextlib.suppress(FileNotFoundError):  # just moved or removed by another
                if name.endswith(_PART) and _is_dead(path):
                    path.unlink()
                else:
                    n_bytes += path.lstat().st_size
    return n_bytes


def _is_dead(part: Path) -> bool:
    descriptor = open_file(part, os.O_RDWR)
    try:
        locked = lock(descriptor, EXCLUSIVE)
        return locked is True or (
            locked is None and time.time() - part.stat().st_mtime > UNLOCKED_SECONDS
        )
    finally:
        os.close(descriptor)


_LOOKS = 5


@dataclass(frozen=True)
class RemoteStore(Store):
    """An open index elsewhere.

    What it was made of when it was opened stays there for as long as superseded files are kept (see
    `pexeso.store.remote.publish`); what has been fetched stays in the cache while this
    object lives, as far as it is in use.
    """

    path: Location  # type: ignore[assignment]
    cache: Cache = field(default_factory=default_cache)
    leases: dict[str, Descriptor] = field(default_factory=dict, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Leases are of this process: another one takes its own.
        view = self._catalog_folder, self.rights
        return RemoteStore, (self.path, self.manifest, None, None, None, *view, self.cache)

    @property
    def embedder_folder(self) -> Path:
        """A local folder with the files of the embedder; fetched whole."""
        return self.folder(self.manifest.embedder)

    def partition(self, number: int) -> dict[str, np.ndarray]:
        """Map all arrays of a partition into memory, having fetched them together."""
        entry = self.partition_entry(number)
        paths = [file.path for file in entry.files if file.path.endswith(".npy")]
        with self._held(entry, paths):
            return super().partition(number)

    def folder(self, entry: FolderEntry) -> Path:
        folder, self.leases[entry.folder] = self.cache.fetch(
            self.path, entry, [file.path for file in entry.files]
        )
        return folder

    @contextmanager
    def _held(self, folder: FolderEntry, paths: Sequence[str]) -> Iterator[None]:
        """Keep files in the cache inside the block: what was mapped there stays readable."""
        _, lease = self.cache.fetch(self.path, folder, paths)
        try:
            yield
        finally:
            lease.release()

    @contextmanager
    def _open(self, folder: FolderEntry, path: str) -> Iterator[BinaryIO]:
        with self._held(folder, [path]), super()._open(folder, path) as file:
            yield file

    def _file(self, folder: FolderEntry, path: str) -> Path:
        if folder.file(path) is None:
            raise IndexCorruptError(
                f"The index lists no file '{self.path}/{folder.folder}/{path}'."
            )
        local, lease = self.cache.fetch(self.path, folder, [path])
        if not folder.folder.startswith(f"{PARTITIONS}/"):
            self.leases[folder.folder] = lease  # catalog and embedder are in use for good
        return local / path

    def _is_replaced(self) -> bool:
        return read_remote_manifest(self.path)[0].generation != self.manifest.generation


def open_remote_store(location: Location, cache: Cache | None = None) -> RemoteStore:
    """Open the index at a place, read-only: its manifest is read, and all sizes are requested."""
    manifest, _ = read_remote_manifest(location)
    require_sizes(location, manifest)
    return RemoteStore(location, manifest, cache=cache or default_cache())


def read_remote_manifest(location: Location) -> tuple[Manifest, str | None]:
    manifest, version = current_remote_manifest(location)
    if manifest is None:
        raise no_index_at(location)
    return manifest, version


def no_index_at(location: Location) -> IndexNotFoundError:
    return IndexNotFoundError(
        f"There is no index at '{location}': it has no {MANIFEST}. Give the place that 'pexeso "
        "index' wrote."
    )


def current_remote_manifest(location: Location) -> tuple[Manifest | None, str | None]:
    """Return the manifest at a place and its version; None for both where there is no manifest."""
    file = location.joined(MANIFEST)
    for _ in range(_LOOKS):
        before = file.look()
        if before is None:
            return None, None
        require_readable_size(file, before.n_bytes)
        data = file.read()
        if file.look() == before:  # else it was replaced, and the bytes may be of either
            return manifest_from(str(location), data), before.version
    raise IndexCorruptError(
        f"'{file}' is replaced again and again, and could not be read: try again."
    )


def require_sizes(location: Location, manifest: Manifest) -> None:
    """Require that every file that a manifest lists exists in its size, by one listing."""
    entries = location.find()
    for name, file in manifest.files():
        entry = entries.get(name)
        if entry is None:
            raise IndexCorruptError(
                f"'{location}/{name}' is missing. Restore it from a copy, or build the index again."
            )
        if entry.n_bytes != file.n_bytes:
            raise IndexCorruptError(
                f"'{location}/{name}' has {entry.n_bytes} bytes, but {file.n_bytes} were "
                "written: it was cut short or changed."
            )
