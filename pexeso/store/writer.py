"""Write an index so that it is whole or not there: everything beside the old one, then one rename of the manifest."""

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pexeso.errors import InputError, OutputError, StoredIndexError
from pexeso.store import claim
from pexeso.store.files import checksum_file, sync_folder, writing
from pexeso.store.folders import plain_files, sync_tree
from pexeso.store.manifest import FileEntry, FolderEntry, Manifest
from pexeso.store.paths import BUILDING, CATALOG, EMBEDDER, MANIFEST, PARTITIONS
from pexeso.store.reader import require_index
from pexeso.store.removal import remove_tree
from pexeso.store.snapshot import retire_manifest, sweep_retired

_NEW = "new"
_SCRATCH = "scratch"
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


class IndexWriter:
    """Build an index at a path; use it as a context manager.

    Inside the block, files are written below `catalog_folder`, `embedder_folder` and `partition_folder`, by any
    process, and `commit` makes them the index. When the block ends without a commit, by an error or an interruption,
    what stood at the path before stands there still and what this build wrote is gone; unless `keep` was set, and then
    a later build of the same purpose takes it up.

    Parameters
    ----------
    path
        The index folder. It may be absent, empty, or, with `overwrite`, an index.
    overwrite
        Replace an index that is there already. It stays valid and in use until the commit; afterwards the files that
        only it listed are removed, once no reader has it open. Other files in the folder are never touched.
    update
        Write the next generation of the index that is there; there must be one.
    purpose
        What is built, of which options, as one text. What a build of the same purpose and over the same index has
        left when it died is there again: `resumed` is True then.

    Attributes
    ----------
    previous
        The manifest of the index that is being replaced, or None.
    resumed
        Whether the work of an earlier build is taken up.
    keep
        Leave what was written for a later build, when the block ends without a commit. Set it once there is something
        worth keeping; it needs a purpose.

    Raises
    ------
    OutputError
        The folder holds something else, holds an index and `overwrite` is False, is being written by another build, or
        cannot be written.
    IndexNotFoundError
        With `update`: there is no index.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pexeso.store.arrays import write_arrays
    >>> path = Path(tempfile.mkdtemp()) / "lake.pexeso"
    >>> with IndexWriter(path) as writer:
    ...     for folder in (writer.catalog_folder, writer.embedder_folder, writer.partition_folder(0)):
    ...         files = write_arrays(folder, {"starts": np.array([0, 3])})
    ...     manifest = writer.commit(
    ...         written_by="example",
    ...         catalogs=[writer.seal_folder(writer.catalog_folder)],
    ...         embedder=writer.seal_folder(writer.embedder_folder),
    ...         partitions=[writer.seal_folder(writer.partition_folder(0), known=files)],
    ...     )
    >>> manifest.generation, [file.path for file in manifest.files()]
    (1, ['catalog/starts.npy', 'embedder/starts.npy', 'partitions/00000/starts.npy'])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        *,
        update: bool = False,
        purpose: str | None = None,
    ) -> None:
        self.path = Path(path).absolute()  # other processes, with other working folders, write below it too
        self.overwrite, self.update, self.purpose = overwrite, update, purpose
        self.previous: Manifest | None = None
        self.resumed = self.keep = False
        self._lock: int | None = None
        self._made: list[Path] = []
        self._plan: claim.Plan
        self._committing = False

    def __enter__(self) -> Self:
        if self.update:
            require_index(self.path)
        with writing(self.path), contextlib.ExitStack() as undo:
            undo.callback(self._release)
            self._make_folders()
            self._lock, locked = claim.lock_folder(self.path)
            self.previous = self._replaceable()
            if claim.require_abandoned(self.path, locked):
                self._take_up(claim.abandoned_plan(self.path))
            if self.previous is not None:  # what an earlier commit had to leave
                sweep_retired(self.path, self.previous)
            if not self.resumed:
                self._begin(undo)
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Also after a commit. What cannot be removed does no harm to the index, so it must not hide an error on its
        # way or turn a finished build into a failed one.
        if not self.keep or self.purpose is None:
            with contextlib.suppress(OSError, StoredIndexError):
                self._settle()
        self._release()

    def _take_up(self, plan: claim.Plan | None) -> None:
        """Go on with what a build of the same purpose left, or clear away what another left."""
        same = plan is not None and plan.purpose == self.purpose and plan.generation == self._generation
        if not same or not self._new("").is_dir() or not self.scratch.is_dir():
            claim.settle(self.path)
            return
        claim.take_back(self.path, self._new(""))
        self._plan = plan
        claim.announce(self.path, plan)
        self.resumed = self.keep = True

    def _begin(self, undo: contextlib.ExitStack) -> None:
        if self.previous is None:
            _require_empty(self.path)
        self._plan = claim.Plan(self.purpose, self._generation, self._choose_names(), self._choose_first_partition())
        (self.path / BUILDING).mkdir()
        undo.callback(self._settle)
        claim.announce(self.path, self._plan)
        self._make_working_folders()

    def restart(self) -> None:
        """Throw away what was written, that of an earlier build included, and begin anew."""
        with writing(self.path):
            for folder in (self.scratch, self._new("")):
                remove_tree(folder)
            self._make_working_folders()
        self.resumed = self.keep = False

    def _make_working_folders(self) -> None:
        for folder in (self.scratch, self.catalog_folder, self.embedder_folder, self._new(PARTITIONS)):
            folder.mkdir(parents=True)

    @property
    def scratch(self) -> Path:
        """A folder for anything of the build that is no part of the index; it is removed at the end."""
        return self.path / BUILDING / _SCRATCH

    @property
    def catalog_folder(self) -> Path:
        """The folder to write the catalog's files to."""
        return self._new(self._plan.names[CATALOG])

    @property
    def embedder_folder(self) -> Path:
        """The folder to write the embedder's files to."""
        return self._new(self._plan.names[EMBEDDER])

    def partition_folder(self, number: int) -> Path:
        """Return the folder to write partition `number` (0 and up) of this build to, and make it."""
        if type(number) is not int or number < 0:
            raise InputError(f"A partition's number must be a whole number, 0 or more. Got {number!r}.")
        folder = self._new(f"{PARTITIONS}/{self._plan.first_partition + number:05d}")
        with writing(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def seal_folder(
        self, folder: Path, facts: dict[str, Any] | None = None, known: Iterable[FileEntry] | None = None
    ) -> FolderEntry:
        """List a folder of this build with the size and checksum of every file in it, for `commit`.

        Parameters
        ----------
        folder
            One of the folders that this writer gave out, complete.
        facts
            Plain JSON data to keep in the manifest with it.
        known
            Entries that were taken while writing; files among them are not read again, the others are.

        Raises
        ------
        InputError
            It is another folder, or `known` names a file that is not there in that size.
        OutputError
            Something in it is no plain file or folder, or cannot be read.
        """
        name = self._final_name(folder)
        taken = {entry.path: entry for entry in known or ()}
        with writing(folder):
            sizes = dict(plain_files(folder))
            for path, entry in taken.items():
                if sizes.get(path) != entry.n_bytes:
                    raise InputError(
                        f"'{folder / path}' is not there with the {entry.n_bytes} bytes that were written."
                    )
            files = [taken.get(path) or FileEntry(path, *checksum_file(folder / path)) for path in sorted(sizes)]
        return FolderEntry(name, tuple(files), facts or {})

    def commit(
        self,
        *,
        written_by: str,
        catalogs: Sequence[FolderEntry],
        embedder: FolderEntry,
        partitions: Sequence[FolderEntry],
        options: dict[str, Any] | None = None,
        fingerprints: dict[str, Any] | None = None,
        facts: dict[str, Any] | None = None,
        deleted_columns: Sequence[tuple[int, int]] = (),
    ) -> Manifest:
        """Make the sealed folders the index, by one atomic rename of the manifest, all bytes being on the disk before.

        An entry is either one that `seal_folder` returned or, to keep a folder as it is, one of `previous`.

        Parameters
        ----------
        written_by
            Program and version.
        catalogs, embedder, partitions
            The folders of the index; catalogs as they came to be, partitions in search order.
        options, fingerprints, facts
            Plain JSON objects to keep in the manifest.
        deleted_columns
            Ids of columns not to return, as ranges (first, end), ascending and apart.

        Returns
        -------
        Manifest
            The manifest that is now in place.

        Raises
        ------
        InputError
            A value cannot stand in a manifest, a folder is neither new nor kept, or this writer has begun a commit
            before; one writer makes one commit.
        OutputError
            A write failed; the old index stands as it was.
        """
        if self._committing:
            raise InputError(
                "A writer makes one commit. Open another IndexWriter with overwrite=True for the next one."
            )
        manifest = Manifest(
            written_by=written_by,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            generation=self._generation,
            options=options or {},
            fingerprints=fingerprints or {},
            facts=facts or {},
            catalogs=tuple(catalogs),
            embedder=embedder,
            partitions=tuple(partitions),
            deleted_columns=tuple(deleted_columns),
        )
        new = self._new_entries(manifest)
        data = manifest.to_bytes()
        self._committing = True
        with writing(self.path):
            for entry in new:
                sync_tree(self._new(entry.folder))
            self._write_journal(new)
            self._place(new)
            if self.previous is not None:
                retire_manifest(self.path, self.previous.generation)
            self._replace_manifest(data)
        self.keep = False
        return manifest

    @property
    def _generation(self) -> int:
        return 1 if self.previous is None else self.previous.generation + 1

    def _make_folders(self) -> None:
        """Make the index folder and those above it that are missing, and remember which."""
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise OutputError(f"'{self.path}' is a file, and an index is a folder: choose another place for the index.")
        for folder in [folder for folder in (self.path, *self.path.parents) if not folder.exists()][::-1]:
            folder.mkdir(exist_ok=True)
            self._made.append(folder)

    def _new(self, name: str) -> Path:
        return self.path / BUILDING / _NEW / name

    def _replaceable(self) -> Manifest | None:
        """Return the manifest of the index to be replaced, None where there is none, or refuse."""
        if not os.path.lexists(self.path / MANIFEST):
            return None
        if not self.overwrite and not self.update:
            raise OutputError(
                f"'{self.path}' holds an index already: choose another place, or replace it with overwrite=True "
                "(--overwrite)."
            )
        try:
            return claim.current_manifest(self.path)
        except StoredIndexError as error:
            raise OutputError(
                f"'{self.path}' cannot be overwritten, as its manifest does not tell which files are pexeso's own: "
                f"choose another place, or remove the folder yourself. {error}"
            ) from error

    def _choose_names(self) -> dict[str, str]:
        """Give the new folders names that nothing on the disk has, so that old and new stand side by side."""
        taken = set() if self.previous is None else {entry.folder for entry in self.previous.folders}
        names = {}
        for place in (CATALOG, EMBEDDER):
            number = self._generation
            name = place if number == 1 else f"{place}.{number}"
            while name in taken or os.path.lexists(self.path / name):
                number += 1
                name = f"{place}.{number}"
            names[place] = name
        return names

    def _choose_first_partition(self) -> int:
        taken = set() if self.previous is None else {entry.folder for entry in self.previous.folders}
        folder = self.path / PARTITIONS
        there = set(os.listdir(folder)) if folder.is_dir() else set()
        numbers = there | {name.removeprefix(f"{PARTITIONS}/") for name in taken}
        return max((int(name) for name in numbers if _NUMBER.fullmatch(name)), default=-1) + 1

    def _final_name(self, folder: Path) -> str:
        root = self.path / BUILDING / _NEW
        name = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else ""
        if name not in self._plan.names.values() and not name.startswith(f"{PARTITIONS}/"):
            raise InputError(f"'{folder}' is not a folder that this build gave out.")
        return name

    def _new_entries(self, manifest: Manifest) -> list[FolderEntry]:
        """Return the entries that this build wrote, having checked that all others are kept as they were."""
        kept = {} if self.previous is None else {entry.folder: entry for entry in self.previous.folders}
        new = [entry for entry in manifest.folders if entry.folder not in kept]
        for entry in manifest.folders:
            if entry.folder in kept and entry.files != kept[entry.folder].files:
                raise InputError(
                    f"The folder {entry.folder!r} of the index is kept, so its files must stay as they are."
                )
        for entry in new:
            if not self._new(entry.folder).is_dir():
                raise InputError(
                    f"The folder {entry.folder!r} was neither written by this build nor is it in the index."
                )
            with writing(self._new(entry.folder)):
                if dict(plain_files(self._new(entry.folder))) != {file.path: file.n_bytes for file in entry.files}:
                    raise InputError(f"The folder {entry.folder!r} is not as it was when it was sealed.")
        return new

    def _write_journal(self, new: list[FolderEntry]) -> None:
        claim.write_journal(self.path, (f"{entry.folder}/{file.path}" for entry in new for file in entry.files))

    def _place(self, new: list[FolderEntry]) -> None:
        (self.path / PARTITIONS).mkdir(exist_ok=True)
        for entry in new:
            if os.path.lexists(self.path / entry.folder):
                raise OutputError(
                    f"'{self.path / entry.folder}' appeared during the build: move it away and try again."
                )
            os.rename(self._new(entry.folder), self.path / entry.folder)
        sync_folder(self.path / PARTITIONS)
        sync_folder(self.path)

    def _replace_manifest(self, data: bytes) -> None:
        draft = self.path / BUILDING / MANIFEST
        draft.unlink(missing_ok=True)  # of a commit that died
        with open(draft, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path / MANIFEST)
        sync_folder(self.path)

    def _settle(self) -> None:
        if (self.path / BUILDING).is_dir():
            claim.settle(self.path)
        current = claim.current_manifest(self.path)
        if current is not None:
            sweep_retired(self.path, current)
        with contextlib.suppress(OSError):  # there and not empty, or never made
            (self.path / PARTITIONS).rmdir()

    def _release(self) -> None:
        """Give the folder free, and remove those that this build made and left empty."""
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def tidy(path: str | os.PathLike[str]) -> None:
    """Remove what earlier generations of an index have left and nobody reads any more; nothing, while it is being written.

    A commit does so too, but it cannot remove what its own process has open.
    """
    root = Path(path)
    try:
        lock, _ = claim.lock_folder(root)
    except (OSError, OutputError):
        return
    try:
        with contextlib.suppress(OSError, StoredIndexError):
            current = claim.current_manifest(root)
            if current is not None:
                sweep_retired(root, current)
    finally:
        os.close(lock)


def _require_empty(path: Path) -> None:
    names = sorted(os.listdir(path))
    if names:
        raise OutputError(
            f"'{path}' holds {claim.some_names(names)} and is no index of pexeso's: choose another place for the "
            "index, or an empty folder."
        )
