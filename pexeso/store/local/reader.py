"""Opening of an index: its manifest is read, file sizes are checked, arrays mapped on demand."""

import contextlib
import os
import re
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pexeso.errors import IndexCorruptError, IndexNotFoundError, InputError
from pexeso.store.arrays import map_array
from pexeso.store.files import (
    RootFolder,
    checksum_file,
    checksum_open,
    open_plain,
    read_open_document,
)
from pexeso.store.io.temporary import temporary_folder
from pexeso.store.local.build_lock import is_under_way, read_builder, some_names
from pexeso.store.local.snapshot import Hold, hold_manifest
from pexeso.store.manifest import FolderEntry, Manifest, read_manifest
from pexeso.store.paths import BUILDING, MANIFEST, plain_file_size
from pexeso.store.texts import Texts, map_texts

# Links to the files of a snapshot, which can be read when the index is gone.
#
# A name is given to each file in a folder that is this process's own: no byte is copied. An index
# that is deleted then loses its names, and what was opened of it stays whole.

_PREFIX = "pexeso-open-"


class Links:
    """A folder of links, removed with the object.

    Parameters
    ----------
    root : Path
        The index.
    relative_paths : iterable of str
        Its files.
    prefix : str
        What the name of the folder begins with.
    parent : Path
        Where it is made.

    Attributes
    ----------
    path : Path

    Raises
    ------
    OSError
        There is no folder, or no hard link, to be had there.
    """

    def __init__(self, root: Path, relative_paths: Iterable[str], prefix: str, parent: Path):
        with ExitStack() as stack:
            self.path = stack.enter_context(temporary_folder(prefix, root=parent))
            for name in relative_paths:
                linked = self.path / name
                linked.parent.mkdir(parents=True, exist_ok=True)
                os.link(root / name, linked, follow_symlinks=False)
            self._remove = weakref.finalize(self, stack.pop_all().close)

    def release(self) -> None:
        """Remove the folder; once is enough, and the end of the object does it too."""
        self._remove()


def link_files(root: Path, relative_paths: Iterable[str]) -> Links | None:
    """Link files of an index, in the folder for temporary files or beside the index.

    Returns
    -------
    Links or None
        None where the file system has no hard links, or none may be made.
    """
    names = list(relative_paths)
    for parent, prefix in _places(root):
        with suppress(OSError):  # another file system, or one without hard links
            return Links(root, names, prefix, parent)
    return None


def _places(root: Path) -> Iterator[tuple[Path, str]]:
    yield Path(tempfile.gettempdir()), _PREFIX
    beside = root.resolve()
    yield beside.parent, f".{beside.name}.{_PREFIX}"


SMALL_FILE_BYTES = 1 << 16
"""Files of at most this size are compared with their checksums whenever they are opened; all others
by `pexeso check`."""

_NOT_AS_WRITTEN = (
    "'{path}' is not as it was written, by its checksum: restore it from a copy, "
    "or build the index again."
)
_NPY = ".npy"
_ARROW = ".arrow"


@dataclass(frozen=True)
class Store:
    """An open index: a snapshot, which later commits leave as it is.

    What its methods return is mapped read-only.

    Attributes
    ----------
    path
        The index folder.
    manifest
        What the index is made of.
    hold
        What keeps the files of this manifest from being removed; None for a store that was made
        without.
    root
        The folder that was opened: arrays, texts and documents are read from it, whatever takes its
        name later. None for a store that was made without, which goes by `path`.
    links
        What keeps the files readable when the index is deleted; None where that was not asked for,
        or the file system has no links.
    """

    path: Path
    manifest: Manifest
    hold: Hold | None = field(default=None, compare=False, repr=False)
    root: RootFolder | None = field(default=None, compare=False, repr=False)
    links: Links | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # A lock is of this process: it must keep its own store while another one reads what it was
        # sent.
        return Store, (self.path.absolute(), self.manifest)

    @property
    def n_partitions(self) -> int:
        """Number of partitions; they are numbered from 0."""
        return len(self.manifest.partitions)

    @property
    def embedder_folder(self) -> Path:
        """The folder with the files of the embedder."""
        return self._place / self.manifest.embedder.folder

    def catalog_files(self, kind: str) -> list[list[Path]]:
        """Return the files of one kind in each folder of the catalog, in order.

        Parameters
        ----------
        kind
            Such as ``tables``: the files ``tables.parquet`` and ``tables-00000.parquet`` and so on.

        Raises
        ------
        IndexCorruptError
            One of them is not there in its size.
        """
        name = re.compile(rf"{re.escape(kind)}(-[0-9]{{5,9}})?\.parquet", re.ASCII)
        return [
            [self._file(folder, file.path) for file in folder.files if name.fullmatch(file.path)]
            for folder in self.manifest.catalogs
        ]

    def catalog_document(self, folder: FolderEntry, name: str) -> Any:
        """Read one JSON file of a folder of the catalog.

        Raises
        ------
        IndexCorruptError
            It has no such file, or it is cut short or no JSON.
        """
        with self._open(folder, name) as file:
            return read_open_document(file, self._path(folder, name))

    def deleted_mask(self, number: int) -> np.ndarray | None:
        """Return a mask of the columns of a partition that must not be found.

        The mask is bool (C,). The result is None if there is no such column.

        Reads the column ids only where the index has a deleted column at all.
        """
        if not self.manifest.deleted_columns:
            return None
        ids = self.array(number, "column_ids")
        bounds = np.searchsorted(
            ids, np.array(self.manifest.deleted_columns, dtype=np.int64)
        )  # (ranges, 2)
        if not (bounds[:, 0] < bounds[:, 1]).any():
            return None
        steps = np.zeros(len(ids) + 1, dtype=np.int64)
        np.add.at(steps, bounds[:, 0], 1)
        np.add.at(steps, bounds[:, 1], -1)
        return np.cumsum(steps[:-1]) > 0

    def partition(self, number: int) -> dict[str, np.ndarray]:
        """Map all arrays of a partition into memory; nothing but their headers is read.

        Parameters
        ----------
        number
            0 to `n_partitions` - 1.

        Returns
        -------
        dict[str, np.ndarray]
            Name (the file's, without ``.npy``) to read-only array.

        Raises
        ------
        IndexCorruptError
            A file is missing, is cut short or is not an array that the store wrote.
        """
        entry = self.partition_entry(number)
        paths = [file.path for file in entry.files if file.path.endswith(_NPY)]
        return {path.removesuffix(_NPY): self._array(entry, path) for path in paths}

    def array(self, number: int, name: str) -> np.ndarray:
        """Map one array of a partition; arguments and errors as for `partition`."""
        return self._array(self.partition_entry(number), f"{name}{_NPY}")

    def texts(self, number: int, name: str) -> Texts:
        """Map one list of texts of a partition: ``texts(0, "values")`` is its ``values.arrow``.

        Raises
        ------
        IndexCorruptError
            The index has no such file, or it is cut short or no list of texts that the store wrote.
        """
        entry, path = self.partition_entry(number), f"{name}{_ARROW}"
        with self._open(entry, path) as file:
            return map_texts(file, self._path(entry, path))[0]

    def document(self, number: int, name: str = "meta") -> Any:
        """Read one JSON file of a partition: ``document(0)`` is its ``meta.json``.

        Raises
        ------
        IndexCorruptError
            The index has no such file, or it is cut short or no JSON.
        """
        entry, path = self.partition_entry(number), f"{name}.json"
        with self._open(entry, path) as file:
            return read_open_document(file, self._path(entry, path))

    def partition_entry(self, number: int) -> FolderEntry:
        """Return what the manifest has on a partition: its folder, files and facts."""
        if not 0 <= number < self.n_partitions:
            raise InputError(
                f"The index '{self.path}' has partitions 0 to {self.n_partitions - 1}. Got "
                f"{number}."
            )
        return self.manifest.partitions[number]

    def folder(self, entry: FolderEntry) -> Path:
        """Return the path of a folder of the index that has all its files.

        The folder is for other code to open. Small files have been compared with their checksums.

        Raises
        ------
        IndexCorruptError
            One of them is not there in its size, or is not as it was written.
        """
        for file in entry.files:
            self._file(entry, file.path)
        return self._place / entry.folder

    @property
    def _place(self) -> Path:
        """Where files are read that other code opens by name."""
        return self.path if self.links is None else self.links.path

    def _array(self, folder: FolderEntry, path: str) -> np.ndarray:
        with self._open(folder, path) as file:
            return map_array(file, self._path(folder, path))

    def _path(self, folder: FolderEntry, path: str) -> Path:
        return self.path / folder.folder / path

    @contextlib.contextmanager
    def _open(self, folder: FolderEntry, path: str) -> Iterator[BinaryIO]:
        """Open a file below the opened folder and check its size through its descriptor.

        The checksum of a small file is checked in the same way.
        """
        entry, relative = folder.file(path), f"{folder.folder}/{path}"
        try:
            by_name = entry is None or self.root is None
            file = (
                open_plain(self._file(folder, path)) if by_name else self.root.open_plain(relative)
            )
        except OSError as error:
            self._file(folder, path)  # says what is there in its place
            raise IndexCorruptError(
                f"'{self.path / relative}' cannot be opened: {error.strerror or error}."
            ) from error
        with file:
            if os.fstat(file.fileno()).st_size != entry.n_bytes:
                self._file(folder, path)
                raise IndexCorruptError(
                    f"'{self.path / relative}' was replaced while it was being opened: try again."
                )
            if entry.n_bytes <= SMALL_FILE_BYTES:
                if checksum_open(file)[1] != entry.checksum:
                    raise IndexCorruptError(_NOT_AS_WRITTEN.format(path=self.path / relative))
                file.seek(0)
            yield file

    def _file(self, folder: FolderEntry, path: str) -> Path:
        entry = folder.file(path)
        full = self._place / folder.folder / path
        if entry is None:
            has = some_names([file.path for file in folder.files])
            raise IndexCorruptError(
                f"The index lists no file '{self._path(folder, path)}'; in that folder it has "
                f"{has}."
            )
        try:
            _require_size(self._place, f"{folder.folder}/{path}", entry.n_bytes)
        except IndexCorruptError as error:
            if self._is_replaced():
                raise IndexCorruptError(
                    f"The index '{self.path}' has been written anew since it was opened: open it "
                    "again."
                ) from error
            raise
        if entry.n_bytes <= SMALL_FILE_BYTES and checksum_file(full)[1] != entry.checksum:
            raise IndexCorruptError(_NOT_AS_WRITTEN.format(path=full))
        return full

    def is_newest(self) -> bool:
        """Return whether no commit was made since this store was opened, as far as a look tells.

        It reads nothing; where it returns False the manifest in place has to be read.
        """
        return self.hold is not None and self.hold.is_in_place(self.path)

    def _is_replaced(self) -> bool:
        return _manifest(self.path).generation != self.manifest.generation


def open_store(path: str | os.PathLike[str], *, keep_files: bool = False) -> Store:
    """Open the index at a path, read-only.

    Only the manifest and the size of every file are read, no array.

    What is opened is a snapshot: commits that come later neither change nor remove anything of it
    while it is open, where the file system can lock; where it cannot, for a day.
    """
    root = Path(path)
    require_index(root)
    try:
        folder = RootFolder(root)
        manifest, hold = hold_manifest(root)
    except FileNotFoundError:
        require_index(root)
        raise
    for file in manifest.files():
        _require_size(root, file.path, file.n_bytes)
    links = link_files(root, [file.path for file in manifest.files()]) if keep_files else None
    if links is not None:
        folder = RootFolder(links.path)
    return Store(root, manifest, hold, folder, links)


def require_index(root: Path) -> int:
    """Return the size in bytes of the manifest of the index at `root`."""
    if not os.path.lexists(root):
        raise IndexNotFoundError(
            f"There is no index at '{root}': no such folder. Build one with 'pexeso index'."
        )
    if not root.is_dir():
        raise IndexNotFoundError(
            f"There is no index at '{root}': it is no folder, and an index is one."
        )
    size = plain_file_size(root, MANIFEST)
    if size is not None:
        return size
    if os.path.lexists(root / BUILDING):
        builder = read_builder(root)
        who = (
            f", begun {builder['started']} by process {builder['process']} on {builder['host']}"
            if builder
            else ""
        )
        if not is_under_way(root):
            raise IndexNotFoundError(
                f"There is no index at '{root}', but a build of one that was broken off{who}: "
                "run 'pexeso index' again, "
                "which takes it up where it stopped."
            )
        raise IndexNotFoundError(
            f"There is no finished index at '{root}', but a build of one{who}: wait for its end, "
            "or build again."
        )
    raise IndexNotFoundError(
        f"There is no index at '{root}': the folder has no {MANIFEST}. Give the folder that "
        "'pexeso index' wrote."
    )


def _manifest(root: Path) -> Manifest:
    return read_manifest(root, require_index(root))


def _require_size(root: Path, relative: str, n_bytes: int) -> None:
    size = plain_file_size(root, relative)
    if size is None:
        raise IndexCorruptError(
            f"'{root / relative}' is missing. Restore it from a copy, or build the index again; "
            "'pexeso check' lists all such files."
        )
    if size != n_bytes:
        raise IndexCorruptError(
            f"'{root / relative}' has {size} bytes, but {n_bytes} were written: it was cut short "
            "or changed. "
            "'pexeso check' lists all such files."
        )
