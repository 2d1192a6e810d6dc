"""Writing of a build before it is in place.

This covers the folders that it fills, what it lists in them, and what it resumes of an earlier
build.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pexeso.errors import InputError, OutputError, StoredIndexError
from pexeso.store.files import checksum_file, writing
from pexeso.store.local import build_lock
from pexeso.store.local.folders import plain_files
from pexeso.store.local.removal import remove_tree
from pexeso.store.local.target import PartitionTarget
from pexeso.store.manifest import FileEntry, FolderEntry, Manifest
from pexeso.store.paths import BUILDING, CATALOG, EMBEDDER, PARTITIONS

_NEW = "new"
_SCRATCH = "scratch"


class BuildWriter(ABC):
    """Base of the writers, independent of where the index is written.

    See `pexeso.store.local.writer.IndexWriter`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        *,
        update: bool = False,
        purpose: str | None = None,
    ) -> None:
        self.path = Path(
            path
        ).absolute()  # other processes, with other working folders, write below it too
        self.name = os.fspath(path)
        self.overwrite, self.update, self.purpose = overwrite, update, purpose
        self.previous: Manifest | None = None
        self.resumed = self.keep = False
        self._lock: int | None = None
        self._made: list[Path] = []
        self._plan: build_lock.Plan
        self._committing = False

    def __enter__(self) -> Self:
        with writing(self.path), contextlib.ExitStack() as undo:
            undo.callback(self._release)
            locked = self._claim()
            self.previous = self._replaceable()
            if build_lock.require_abandoned(self.path, locked):
                self._take_up(build_lock.abandoned_plan(self.path))
            self._sweep()
            if not self.resumed:
                self._begin(undo)
            undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Also after a commit. What cannot be removed does no harm to the index, so it must not hide
        # an error on its way or turn a finished build into a failed one.
        if not self.keep or self.purpose is None:
            with contextlib.suppress(OSError, StoredIndexError):
                self._settle()
        self._release()

    def _take_up(self, plan: build_lock.Plan | None) -> None:
        """Go on with what a build of the same purpose left, or clear away what another left."""
        same = plan is not None and plan.purpose is not None and plan.purpose == self.purpose
        adapted = self._adapted(plan) if same else None
        if adapted is None or not self._new("").is_dir() or not self.scratch.is_dir():
            self._discard(plan)
            return
        build_lock.take_back(self.path, self._new(""))
        self._plan = adapted
        build_lock.announce(self.path, adapted)
        self.resumed = self.keep = True

    def _begin(self, undo: contextlib.ExitStack) -> None:
        self._plan = self._make_plan()
        (self.path / BUILDING).mkdir()
        undo.callback(self._settle)
        build_lock.announce(self.path, self._plan)
        self._make_working_folders()

    def restart(self) -> None:
        """Throw away what was written, that of an earlier build included, and begin anew."""
        with writing(self.path):
            for folder in (self.scratch, self._new("")):
                remove_tree(folder)
            self._make_working_folders()
        self.resumed = self.keep = False

    def _make_working_folders(self) -> None:
        for folder in (
            self.scratch,
            self.catalog_folder,
            self.embedder_folder,
            self._new(PARTITIONS),
        ):
            folder.mkdir(parents=True)

    @property
    def scratch(self) -> Path:
        """Return a folder for files of the build that are no part of the index.

        It is removed at the end.
        """
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
        """Create the folder of partition `number` (0 and up) of this build, and return it."""
        if type(number) is not int or number < 0:
            raise InputError(
                f"A partition's number must be a whole number, 0 or more. Got {number!r}."
            )
        folder = self._new(f"{PARTITIONS}/{self._plan.first_partition + number:05d}")
        with writing(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def seal_folder(
        self,
        folder: Path,
        facts: dict[str, Any] | None = None,
        known: Iterable[FileEntry] | None = None,
    ) -> FolderEntry:
        """List a folder of this build with sizes and checksums of its files, for `commit`."""
        name = self._final_name(folder)
        entries = {entry.path: entry for entry in known or ()}
        with writing(folder):
            sizes = dict(plain_files(folder))
            for path, entry in entries.items():
                if sizes.get(path) != entry.n_bytes:
                    raise InputError(
                        f"'{folder / path}' is not there with the {entry.n_bytes} bytes that "
                        "were written."
                    )
            files = [
                entries.get(path) or FileEntry(path, *checksum_file(folder / path))
                for path in sorted(sizes)
            ]
        return FolderEntry(name, tuple(files), facts or {})

    def commit(
        self,
        *,
        written_by: str,
        catalogs: Sequence[FolderEntry],
        embedder: FolderEntry,
        parts: Mapping[str, Sequence[FolderEntry]],
        options: dict[str, Any] | None = None,
        fingerprints: dict[str, Any] | None = None,
        facts: dict[str, Any] | None = None,
        deleted_columns: Sequence[tuple[int, int]] = (),
    ) -> Manifest:
        """Install the sealed folders as the index, by one atomic rename of the manifest.

        All bytes are on the disk before the rename.

        An entry is either one that `seal_folder` returned or, to keep a folder as it is, one of
        `previous`.

        Parameters
        ----------
        written_by
            Program and version.
        catalogs, embedder, parts
            The folders of the index; catalogs as they came to be, those of each part in search
            order.
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
            A value cannot stand in a manifest, a folder is neither new nor kept, or this writer has
            begun a commit before; one writer makes one commit.
        OutputError
            A write failed; the old index stands as it was.
        """
        if self._committing:
            raise InputError(
                "A writer makes one commit. Open another IndexWriter with overwrite=True for the "
                "next one."
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
            parts={name: tuple(entries) for name, entries in parts.items()},
            deleted_columns=tuple(deleted_columns),
        )
        new = self._new_entries(manifest)
        self._committing = True
        manifest = self._install(manifest, new)
        self.keep = False
        return manifest

    @property
    def _generation(self) -> int:
        return 1 if self.previous is None else self.previous.generation + 1

    def _make_folders(self) -> None:
        """Make the index folder and those above it that are missing, and remember which."""
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise OutputError(
                f"'{self.path}' is a file, and an index is a folder: choose another place for "
                "the index."
            )
        for folder in [folder for folder in (self.path, *self.path.parents) if not folder.exists()][
            ::-1
        ]:
            folder.mkdir(exist_ok=True)
            self._made.append(folder)

    def _new(self, name: str) -> Path:
        return self.path / BUILDING / _NEW / name

    def _final_name(self, folder: Path) -> str:
        root = self.path / BUILDING / _NEW
        name = folder.relative_to(root).as_posix() if folder.is_relative_to(root) else ""
        if name not in self._plan.names.values() and not name.startswith(f"{PARTITIONS}/"):
            raise InputError(f"'{folder}' is not a folder that this build gave out.")
        return name

    def _new_entries(self, manifest: Manifest) -> list[FolderEntry]:
        """Return the entries that this build wrote, after a check that all others are unchanged."""
        previous_entries = (
            {}
            if self.previous is None
            else {entry.folder: entry for entry in self.previous.folders}
        )
        new = [entry for entry in manifest.folders if entry.folder not in previous_entries]
        for entry in manifest.folders:
            if (
                entry.folder in previous_entries
                and entry.files != previous_entries[entry.folder].files
            ):
                raise InputError(
                    f"The folder {entry.folder!r} of the index is kept, so its files must stay "
                    "as they are."
                )
        for entry in new:
            self._require_sealed(entry)
        return new

    def _require_sealed(self, entry: FolderEntry) -> None:
        if not self._new(entry.folder).is_dir():
            raise InputError(
                f"The folder {entry.folder!r} was neither written by this build nor is it in the "
                "index."
            )
        with writing(self._new(entry.folder)):
            if dict(plain_files(self._new(entry.folder))) != {
                file.path: file.n_bytes for file in entry.files
            }:
                raise InputError(
                    f"The folder {entry.folder!r} is not as it was when it was sealed."
                )

    def _release(self) -> None:
        """Return the folder free, and remove those that this build made and left empty."""
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @abstractmethod
    def partition_target(self, number: int) -> PartitionTarget:
        """Return the target of the task that builds partition `number` (0 and up) of a build."""

    @abstractmethod
    def seal_partition(self, entry: FolderEntry) -> FolderEntry:
        """List the files that a task wrote to a `partition_target`, for `commit`.

        Files are not read again.
        """

    def has_partitions(self, entries: Sequence[FolderEntry]) -> bool:
        """Return whether the partitions written by tasks of an earlier attempt still exist."""
        return all(self._new(entry.folder).is_dir() for entry in entries)

    @abstractmethod
    def _claim(self) -> bool:
        """Lock the folder, having made it; say whether its file system can lock."""

    @abstractmethod
    def _replaceable(self) -> Manifest | None:
        """Return the manifest of the index to be replaced, None where there is none, or refuse."""

    @abstractmethod
    def _sweep(self) -> None:
        """Remove what an earlier commit had to leave."""

    @abstractmethod
    def _make_plan(self) -> build_lock.Plan:
        """Choose names for the new folders that no others have."""

    @abstractmethod
    def _adapted(self, plan: build_lock.Plan) -> build_lock.Plan | None:
        """Return the plan of an interrupted build of the same purpose, adapted for resumption.

        The result is None if the build cannot be resumed.
        """

    @abstractmethod
    def _discard(self, plan: build_lock.Plan | None) -> None:
        """Clear away what a build that ended has left."""

    @abstractmethod
    def _install(self, manifest: Manifest, new: list[FolderEntry]) -> Manifest:
        """Put the new folders in place, then the manifest; return the manifest now in place.

        Either everything is put in place or nothing is.
        """

    @abstractmethod
    def _settle(self) -> None:
        """Clear away what this build wrote and did not put in place."""
