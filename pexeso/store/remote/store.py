"""An index on other storage, opened like a local one.

Files are fetched when they are first needed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pexeso.errors import IndexCorruptError, IndexNotFoundError
from pexeso.runtime.formatting import format_bytes
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store
from pexeso.store.manifest import MAX_MANIFEST_BYTES, FolderEntry, Manifest, manifest_from
from pexeso.store.paths import MANIFEST, PARTITIONS
from pexeso.store.remote.cache import Cache, Lease, default_cache
from pexeso.store.texts import Texts

Result = TypeVar("Result")

_ATTEMPTS = 5


@dataclass(frozen=True)
class RemoteStore(Store):
    """An open index elsewhere.

    What it was made of when it was opened stays there for as long as superseded files are kept (see
    `pexeso.store.remote.garbage_collection`); what has been fetched stays in the cache while this
    object lives, as far as it is in use.

    Attributes
    ----------
    path
        The place of the index.
    cache
        Where its files are kept on this machine.
    """

    path: Location  # type: ignore[assignment]
    cache: Cache = field(default_factory=default_cache)
    leases: dict[str, Lease] = field(default_factory=dict, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Leases are of this process: another one takes its own.
        return RemoteStore, (self.path, self.manifest, None, None, None, self.cache)

    @property
    def embedder_folder(self) -> Path:
        """A local folder with the files of the embedder; fetched whole."""
        return self.folder(self.manifest.embedder)

    def partition(self, number: int) -> dict[str, np.ndarray]:
        """Map all arrays of a partition into memory, having fetched them; see `Store.partition`."""
        entry = self.partition_entry(number)
        _, lease = self.cache.fetch(
            self.path, entry, [file.path for file in entry.files if file.path.endswith(".npy")]
        )
        try:
            return self._mapped(super().partition, number)
        finally:
            lease.release()

    def array(self, number: int, name: str) -> np.ndarray:
        """Map one array of a partition, having fetched it; see `Store.array`."""
        return self._mapped(super().array, number, name)

    def texts(self, number: int, name: str) -> Texts:
        """Map one list of texts of a partition, having fetched it; see `Store.texts`."""
        return self._mapped(super().texts, number, name)

    def document(self, number: int, name: str = "meta") -> Any:
        """Read one JSON file of a partition, having fetched it; see `Store.document`."""
        return self._mapped(super().document, number, name)

    def folder(self, entry: FolderEntry) -> Path:
        """Fetch a folder of the index and return the local folder with all its files.

        See `Store.folder`.
        """
        folder, self.leases[entry.folder] = self.cache.fetch(
            self.path, entry, [file.path for file in entry.files]
        )
        return folder

    def _mapped(self, open_files: Callable[..., Result], *arguments: Any) -> Result:
        """Open files of a partition, then allow the cache to remove them.

        Mapped files stay readable.
        """
        try:
            return open_files(*arguments)
        finally:
            lease = self.leases.pop(_this_thread(), None)
            if lease is not None:
                lease.release()

    def _file(self, folder: FolderEntry, path: str) -> Path:
        if folder.file(path) is None:
            raise IndexCorruptError(
                f"The index lists no file '{self.path}/{folder.folder}/{path}'."
            )
        local, lease = self.cache.fetch(self.path, folder, [path])
        # A file of a partition is in use until this thread has mapped it; those of the catalog and
        # the embedder for good.
        self.leases[
            _this_thread() if folder.folder.startswith(f"{PARTITIONS}/") else folder.folder
        ] = lease
        return local / path

    def _is_replaced(self) -> bool:
        return read_remote_manifest(self.path)[0].generation != self.manifest.generation


def _this_thread() -> str:
    return f"thread {threading.get_ident()}"


def open_remote_store(location: Location, cache: Cache | None = None) -> RemoteStore:
    """Open the index at a place, read-only.

    The manifest is read, and the sizes of all files are requested.

    Parameters
    ----------
    location
        The folder of the index.
    cache
        Where files are kept on this machine; the user's cache by default.

    Raises
    ------
    IndexNotFoundError
        No index is there.
    IndexVersionError
        The index is of another format version.
    IndexCorruptError
        A file is missing or is not of its size.
    PlaceError
        The storage cannot be reached.
    """
    manifest, _ = read_remote_manifest(location)
    require_sizes(location, manifest)
    return RemoteStore(location, manifest, cache=cache or default_cache())


def read_remote_manifest(location: Location) -> tuple[Manifest, str | None]:
    """Read the manifest of the index at a place, and the version of the object that it is."""
    manifest, version = current_remote_manifest(location)
    if manifest is None:
        raise no_index_at(location)
    return manifest, version


def no_index_at(location: Location) -> IndexNotFoundError:
    """Return the error for a place without a manifest."""
    return IndexNotFoundError(
        f"There is no index at '{location}': it has no {MANIFEST}. Give the place that 'pexeso "
        "index' wrote."
    )


def current_remote_manifest(location: Location) -> tuple[Manifest | None, str | None]:
    """Return the manifest at a place and its version; None for both where there is no manifest."""
    file = location.joined(MANIFEST)
    for _ in range(_ATTEMPTS):
        before = file.look()
        if before is None:
            return None, None
        if before.n_bytes > MAX_MANIFEST_BYTES:
            raise IndexCorruptError(
                f"'{file}' has {format_bytes(before.n_bytes)}; a manifest has at most "
                f"{format_bytes(MAX_MANIFEST_BYTES)}."
            )
        data = file.read()
        if (
            file.look() == before
        ):  # else it was replaced between the looks, and the bytes may be of either
            return manifest_from(str(location), data), before.version
    raise IndexCorruptError(
        f"'{file}' is replaced again and again, and could not be read: try again."
    )


def require_sizes(location: Location, manifest: Manifest) -> None:
    """Require that every file that a manifest lists exists in its size.

    One listing request is needed per thousand files.
    """
    entries = location.find()
    for file in manifest.files():
        entry = entries.get(file.path)
        if entry is None:
            raise IndexCorruptError(
                f"'{location}/{file.path}' is missing. Restore it from a copy, or build the "
                "index again."
            )
        if entry.n_bytes != file.n_bytes:
            raise IndexCorruptError(
                f"'{location}/{file.path}' has {entry.n_bytes} bytes, but {file.n_bytes} were "
                "written: it was cut short or changed."
            )
