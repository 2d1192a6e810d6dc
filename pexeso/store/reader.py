"""Open an index: read its manifest, look at the size of every file, map arrays when they are asked for."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pexeso.errors import IndexCorruptError, IndexNotFoundError, InputError
from pexeso.store.arrays import open_array
from pexeso.store.claim import read_builder, some_names
from pexeso.store.files import read_document
from pexeso.store.manifest import FolderEntry, Manifest, read_manifest
from pexeso.store.paths import BUILDING, MANIFEST, plain_file_size
from pexeso.store.texts import Texts, open_texts

_ATTEMPTS = 5
_NPY = ".npy"
_ARROW = ".arrow"


@dataclass(frozen=True)
class Store:
    """An open index. It holds the manifest and no open file; what its methods return is mapped read-only.

    Attributes
    ----------
    path
        The index folder.
    manifest
        What the index is made of.
    """

    path: Path
    manifest: Manifest

    @property
    def n_partitions(self) -> int:
        """Number of partitions; they are numbered from 0."""
        return len(self.manifest.partitions)

    @property
    def embedder_folder(self) -> Path:
        """The folder with the files of the embedder."""
        return self.path / self.manifest.embedder.folder

    def catalog_path(self, name: str) -> Path:
        """Return the path of a file of the catalog, such as ``columns.parquet``.

        Raises
        ------
        IndexCorruptError
            The index has no such file, or not in its size.
        """
        return self._file(self.manifest.catalog, name)

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
        return open_texts(self._file(self.partition_entry(number), f"{name}{_ARROW}"))

    def document(self, number: int, name: str = "meta") -> Any:
        """Read one JSON file of a partition: ``document(0)`` is its ``meta.json``.

        Raises
        ------
        IndexCorruptError
            The index has no such file, or it is cut short or no JSON.
        """
        return read_document(self._file(self.partition_entry(number), f"{name}.json"))

    def partition_entry(self, number: int) -> FolderEntry:
        """Return what the manifest has on a partition: its folder, files and facts.

        Raises
        ------
        InputError
            There is no partition of that number.
        """
        if not 0 <= number < self.n_partitions:
            raise InputError(f"The index '{self.path}' has partitions 0 to {self.n_partitions - 1}. Got {number}.")
        return self.manifest.partitions[number]

    def _array(self, folder: FolderEntry, path: str) -> np.ndarray:
        full, entry = self._file(folder, path), folder.file(path)
        return open_array(full, None if entry is None else entry.n_bytes)

    def _file(self, folder: FolderEntry, path: str) -> Path:
        entry = folder.file(path)
        full = self.path / folder.folder / path
        if entry is None:
            has = some_names([file.path for file in folder.files])
            raise IndexCorruptError(f"The index lists no file '{full}'; in that folder it has {has}.")
        try:
            _require_size(self.path, f"{folder.folder}/{path}", entry.n_bytes)
        except IndexCorruptError as error:
            if self._is_replaced():
                raise IndexCorruptError(
                    f"The index '{self.path}' has been written anew since it was opened: open it again."
                ) from error
            raise
        return full

    def _is_replaced(self) -> bool:
        size = plain_file_size(self.path, MANIFEST)
        return size is not None and (self.path / MANIFEST).read_bytes() != self.manifest.to_bytes()


def open_store(path: str | os.PathLike[str]) -> Store:
    """Open the index at a path, read-only; no array is read, only the manifest and the size of every file.

    Raises
    ------
    IndexNotFoundError
        No index is there: no such folder, another folder, or a build that has not been finished.
    IndexVersionError
        The index is of another format version.
    IndexCorruptError
        A file is missing, is not of its size or is no plain file.
    """
    root = Path(path)
    manifest = _manifest(root)
    for _ in range(_ATTEMPTS):
        try:
            for file in manifest.files():
                _require_size(root, file.path, file.n_bytes)
        except IndexCorruptError:
            # A build may have replaced the index between the two looks; then the new one is what was asked for.
            latest = _manifest(root)
            if latest == manifest:
                raise
            manifest = latest
        else:
            break
    return Store(root, manifest)


def require_index(root: Path) -> int:
    """Return the size in bytes of the manifest of the index at `root`.

    Raises
    ------
    IndexNotFoundError
        There is none; the message says what is there.
    """
    if not os.path.lexists(root):
        raise IndexNotFoundError(f"There is no index at '{root}': no such folder. Build one with 'pexeso index'.")
    if not root.is_dir():
        raise IndexNotFoundError(f"There is no index at '{root}': it is no folder, and an index is one.")
    size = plain_file_size(root, MANIFEST)
    if size is not None:
        return size
    if os.path.lexists(root / BUILDING):
        builder = read_builder(root)
        who = f", begun {builder['started']} by process {builder['process']} on {builder['host']}" if builder else ""
        raise IndexNotFoundError(
            f"There is no finished index at '{root}', but a build of one{who}: wait for its end, or build again."
        )
    raise IndexNotFoundError(
        f"There is no index at '{root}': the folder has no {MANIFEST}. Give the folder that 'pexeso index' wrote."
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
            f"'{root / relative}' has {size} bytes, but {n_bytes} were written: it was cut short or changed. "
            "'pexeso check' lists all such files."
        )
