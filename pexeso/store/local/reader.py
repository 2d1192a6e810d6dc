"""Opening of an index: its manifest is read, file sizes are checked, arrays mapped on demand.

What a reader has opened, a snapshot, stays until the reader closes it, whatever is written. A
reader keeps the manifest that it has read open, under a shared lock. A commit keeps the manifest
that it replaces under another name, ``retired/manifest.N.json``: the same file, with the same
locks. A writer removes what only retired manifests list once nobody holds them; what is held now
goes with a later commit.

Where the file system cannot lock, nobody knows who reads: there, what a commit made needless
stays for a day.
"""

import contextlib
import os
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pexeso.errors import IndexCorruptError, IndexNotFoundError, StoredIndexError
from pexeso.runtime.formatting import listed_names
from pexeso.runtime.system import EXCLUSIVE, HAS_LOCKS, SHARED, link_file, lock, open_unlinked
from pexeso.store.arrays import Texts, map_array, map_texts
from pexeso.store.files import (
    Descriptor,
    RootFolder,
    checksum_file,
    checksum_open,
    open_plain,
    read_open_document,
    remove_files,
    sync_folder,
)
from pexeso.store.io.temporary import temporary_folder
from pexeso.store.local.build_lock import is_under_way, read_builder
from pexeso.store.manifest import (
    BUILDING,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    RETIRED,
    FolderEntry,
    Manifest,
    manifest_from,
    plain_file_size,
    read_manifest,
    require_readable_size,
)

# How long superseded files are kept where no lock shows whether they are in use.
RETENTION_SECONDS = 24 * 3600

_COPY = ".copy.json"
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.02


class Hold(Descriptor):
    """An open, locked manifest that protects the files it lists while this object lives.

    Where nothing can be locked the file is open only while it is read, as an open one could not be
    replaced there.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._status = os.fstat(descriptor)

    def is_in_place(self, root: Path) -> bool:
        """Return whether the manifest of the index at `root` is still the one that is held."""
        return self.release.alive and _is_in_place(self._status, root / MANIFEST)

    def close_file(self) -> None:
        """Close the manifest, and leave a descriptor of nothing in its place."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, self._descriptor)
        os.close(nothing)


def hold_manifest(root: Path) -> tuple[Manifest, Hold]:
    path = root / MANIFEST
    for _ in range(_ATTEMPTS):
        if plain_file_size(root, MANIFEST) is None:
            raise FileNotFoundError(path)
        try:
            descriptor = open_unlinked(path, os.O_RDONLY)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise IndexCorruptError(
                f"'{path}' cannot be read: {error.strerror or error}."
            ) from error
        hold = Hold(descriptor)
        if lock(descriptor, SHARED) is not False and hold.is_in_place(root):
            size = os.fstat(descriptor).st_size
            require_readable_size(path, size)
            with open(descriptor, "rb", closefd=False) as file:
                # Bounded: Python allocates all that is to be read.
                data = file.read(size + 1)
            if not HAS_LOCKS:
                hold.close_file()
            return manifest_from(root, data), hold
        # Replaced between two looks, and about to be removed: its successor is wanted.
        hold.release()
        time.sleep(_PAUSE_SECONDS)
    raise IndexCorruptError(
        f"'{path}' is replaced again and again, and could not be read: try again."
    )


def retire_manifest(root: Path, generation: int) -> None:
    """Keep the current manifest, of that generation, before another replaces it.

    Also where its successor lists all of its files: a later one may not, while it is held still.
    """
    folder = root / RETIRED
    folder.mkdir(exist_ok=True)
    linked = folder / f"manifest.{generation}.json"
    copied = folder / f"manifest.{generation}{_COPY}"
    for path in (linked, copied):
        path.unlink(missing_ok=True)  # of a commit that died
    try:
        link_file(root / MANIFEST, linked)
    except OSError:  # no hard links: readers hold the original, which a copy does not show
        shutil.copyfile(root / MANIFEST, copied)
    sync_folder(folder)
    sync_folder(root)


def sweep_retired(root: Path, current: Manifest) -> None:
    """Remove the files that only retired manifests list and that no reader holds.

    The caller must be the only writer. What cannot be removed stays for a later sweep.
    """
    folder = root / RETIRED
    held, free = [], []
    for name, manifest in _retired(root):
        if manifest is None or manifest.generation == current.generation:
            (folder / name).unlink(missing_ok=True)
        else:
            (held if _in_use(folder / name) else free).append((name, manifest))
    needed = current.paths().union(*(manifest.paths() for _, manifest in held))
    for name, manifest in free:
        try:
            remove_files(root, manifest.paths() - needed)
        except PermissionError:
            if HAS_LOCKS:
                raise
            continue  # some file is open, and cannot be removed as long as it is
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # others are still in it
        folder.rmdir()


def retired_files(root: Path) -> set[str]:
    """Return the paths of all files that retired manifests list, and of these manifests."""
    listed = set()
    for name, manifest in _retired(root):
        listed.add(f"{RETIRED}/{name}")
        listed |= set() if manifest is None else manifest.paths()
    return listed


def _retired(root: Path) -> list[tuple[str, Manifest | None]]:
    """Return the retired manifests by file name; None for one whose writer died during the copy."""
    folder = root / RETIRED
    if folder.is_symlink() or not folder.is_dir():
        return []
    return [(name, _retired_manifest(root, name)) for name in sorted(os.listdir(folder))]


def _retired_manifest(root: Path, name: str) -> Manifest | None:
    try:
        size = plain_file_size(root, f"{RETIRED}/{name}")
        if size is None or size > MAX_MANIFEST_BYTES:
            return None
        return Manifest.from_bytes((root / RETIRED / name).read_bytes())
    except (StoredIndexError, OSError):
        return None


def _in_use(path: Path) -> bool:
    descriptor = open_unlinked(path, os.O_RDONLY)
    try:
        locked = lock(descriptor, EXCLUSIVE)
        if locked is None or path.name.endswith(_COPY):
            # ctime: when it got its second name or was copied, which was when it was retired.
            return time.time() - os.fstat(descriptor).st_ctime < RETENTION_SECONDS
        return not locked
    finally:
        os.close(descriptor)


def _is_in_place(status: os.stat_result, path: Path) -> bool:
    try:
        return os.path.samestat(status, os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


_PREFIX = "pexeso-open-"
_NPY = ".npy"
_ARROW = ".arrow"


class Links:
    """A folder of links to the files of a snapshot, removed with the object.

    No byte is copied. An index that is deleted loses its names, and what was opened of it stays
    whole. Raises OSError where there is no folder, or no hard link, to be had in `parent`.
    """

    def __init__(self, root: Path, relative_paths: Iterable[str], prefix: str, parent: Path):
        with ExitStack() as stack:
            self.path = stack.enter_context(temporary_folder(prefix, root=parent))
            for name in relative_paths:
                linked = self.path / name
                linked.parent.mkdir(parents=True, exist_ok=True)
                link_file(root / name, linked)
            self.release = weakref.finalize(self, stack.pop_all().close)


def link_files(root: Path, relative_paths: Iterable[str]) -> Links | None:
    """Link files of an index, in the folder for temporary files or next to the index.

    None where the file system has no hard links, or none may be made, and where a file that is open
    cannot be removed: the index itself stays there then.
    """
    if not HAS_LOCKS:
        return None
    names, index = list(relative_paths), root.resolve()
    for parent, prefix in (
        (Path(tempfile.gettempdir()), _PREFIX),
        (index.parent, f".{index.name}.{_PREFIX}"),
    ):
        with suppress(OSError):  # another file system, or one without hard links
            return Links(root, names, prefix, parent)
    return None


# Files of at most this size are compared with their checksums whenever they are opened; all others
# by `pexeso check`.
SMALL_FILE_BYTES = 1 << 16

_NOT_AS_WRITTEN = (
    "'{path}' is not as it was written, by its checksum: restore it from a copy, "
    "or build the index again."
)


@dataclass(frozen=True)
class Store:
    """An open index: a snapshot, which later commits leave as it is.

    What its methods return is mapped read-only.
    """

    path: Path
    manifest: Manifest
    # What keeps the files of this manifest from being removed
    hold: Hold | None = field(default=None, compare=False, repr=False)
    # The folder that was opened: arrays, texts and documents are read from it, whatever takes its
    # name later. Without it the store goes by `path`
    root: RootFolder | None = field(default=None, compare=False, repr=False)
    # What keeps the files readable when the index is deleted, where that was asked for and the file
    # system has links
    links: Links | None = field(default=None, compare=False, repr=False)
    # A folder that the catalog is read from in place of those of the manifest
    catalog: Any = field(default=None, compare=False, repr=False)
    # What may be seen of it; None for everything. The store reads nothing in it
    rights: Any = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # A lock is of this process: it must keep its own store while another one reads what it was
        # sent.
        path, view = self.path.absolute(), (self._catalog_folder, self.rights)
        return Store, (path, self.manifest, None, None, None, *view)

    @property
    def n_partitions(self) -> int:
        return len(self.manifest.partitions)

    @property
    def embedder_folder(self) -> Path:
        return self._place / self.manifest.embedder.folder

    def catalog_files(self, kind: str) -> list[list[Path]]:
        """Return the files of one kind in each folder of the catalog, in order.

        ``tables`` are the files ``tables.parquet`` and ``tables-00000.parquet`` and so on.
        """
        name = re.compile(rf"{re.escape(kind)}(-[0-9]{{5,9}})?\.parquet", re.ASCII)
        if self.catalog is not None and kind in ("tables", "columns", "removed"):
            paths = sorted(Path(self._catalog_folder).iterdir())
            return [[path for path in paths if name.fullmatch(path.name)]]
        return [
            [self._file(folder, file.path) for file in folder.files if name.fullmatch(file.path)]
            for folder in self.manifest.catalogs
        ]

    @property
    def _catalog_folder(self) -> str | None:
        return getattr(self.catalog, "name", self.catalog)

    def catalog_document(self, folder: FolderEntry, name: str) -> Any:
        with self._open(folder, name) as file:
            return read_open_document(file, self._path(folder, name))

    def deleted_mask(self, number: int) -> np.ndarray | None:
        """Return a mask of the columns of a partition that must not be found, bool (C,).

        None if there is no such column.
        """
        if not self.manifest.deleted_columns:
            return None
        ids = self.array(number, "column_ids")
        spans = np.array(self.manifest.deleted_columns, dtype=np.int64)
        bounds = np.searchsorted(ids, spans)  # (ranges, 2)
        if not (bounds[:, 0] < bounds[:, 1]).any():
            return None
        steps = np.zeros(len(ids) + 1, dtype=np.int64)
        np.add.at(steps, bounds[:, 0], 1)
        np.add.at(steps, bounds[:, 1], -1)
        return np.cumsum(steps[:-1]) > 0

    def partition(self, number: int) -> dict[str, np.ndarray]:
        """Map all arrays of a partition into memory by name; their headers alone are read."""
        entry = self.partition_entry(number)
        paths = [file.path for file in entry.files if file.path.endswith(_NPY)]
        return {path.removesuffix(_NPY): self._array(entry, path) for path in paths}

    def array(self, number: int, name: str) -> np.ndarray:
        """Map one array of a partition; arguments and errors as for `partition`."""
        return self._array(self.partition_entry(number), f"{name}{_NPY}")

    def texts(self, number: int, name: str) -> Texts:
        """Map one list of texts of a partition: ``texts(0, "values")`` is its ``values.arrow``."""
        entry, path = self.partition_entry(number), f"{name}{_ARROW}"
        with self._open(entry, path) as file:
            return map_texts(file, self._path(entry, path))[0]

    def document(self, number: int) -> Any:
        """Read ``meta.json`` of a partition."""
        return self.catalog_document(self.partition_entry(number), "meta.json")

    def partition_entry(self, number: int) -> FolderEntry:
        return self.manifest.partitions[number]

    def folder(self, entry: FolderEntry) -> Path:
        """Return the path of a folder of the index that has all its files, for other code to open.

        Small files have been compared with their checksums.
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
        """Open a file below the opened folder; size and checksum are those of its descriptor."""
        entry, relative = folder.file(path), f"{folder.folder}/{path}"
        try:
            if entry is None or self.root is None:
                file = open_plain(self._file(folder, path))
            else:
                file = self.root.open_plain(relative)
        except OSError as error:
            self._file(folder, path)  # raises what is wrong with it
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
            has = listed_names([file.path for file in folder.files], 3)
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
        """Return whether no commit was made since this store was opened, as far as a look shows.

        It reads nothing; where it returns False the manifest in place has to be read.
        """
        return self.hold is not None and self.hold.is_in_place(self.path)

    def _is_replaced(self) -> bool:
        return _manifest(self.path).generation != self.manifest.generation


def open_store(path: str | os.PathLike[str], *, keep_files: bool = False) -> Store:
    """Open the index at a path, read-only: its manifest and the size of every file are read.

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
    for name, file in manifest.files():
        _require_size(root, name, file.n_bytes)
    links = link_files(root, manifest.paths()) if keep_files else None
    if links is not None:
        folder = RootFolder(links.path)
    return Store(root, manifest, hold, folder, links)


def require_index(root: Path) -> int:
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
