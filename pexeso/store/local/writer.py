"""Atomic writing of an index: new files next to the old ones, then a rename of the manifest.

A build is written to folders of its own before it is in place, and resumes an earlier one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from pexeso.errors import InputError, OutputError, StoredIndexError
from pexeso.runtime.formatting import listed_names
from pexeso.store.files import (
    checksum_file,
    filling,
    new_file,
    plain_files,
    read_document,
    remove_tree,
    sync_folder,
    sync_tree,
    writing,
)
from pexeso.store.local import build_lock
from pexeso.store.local.reader import require_index, retire_manifest, sweep_retired
from pexeso.store.manifest import (
    BUILDING,
    CATALOG,
    CHOICE,
    EMBEDDER,
    JUDGEMENTS,
    MANIFEST,
    META,
    METRIC,
    PARTITIONS,
    FileEntry,
    FolderEntry,
    Manifest,
)

_NEW = "new"
_SCRATCH = "scratch"

# Writes a partition's files to an empty folder; returns its facts and its files.
Fill = Callable[[Path], tuple[dict[str, Any], list[FileEntry]]]


class PartitionTarget(Protocol):
    """Where one partition goes. It can be pickled: what fills it is a task on any machine."""

    def written(self) -> FolderEntry | None:
        """Return the complete partition that an earlier attempt has left there, or None."""

    def write(self, fill: Fill) -> FolderEntry:
        """Put a partition there; of two attempts either's result is a whole partition."""


@dataclass(frozen=True)
class PartitionFolder:
    """A folder of a build, in which a partition appears complete or not at all."""

    folder: Path
    name: str

    def written(self) -> FolderEntry | None:
        if not (self.folder / META).is_file():
            return None
        names = sorted(name for name, _ in plain_files(self.folder))
        files = tuple(FileEntry(name, *checksum_file(self.folder / name)) for name in names)
        facts = read_document(self.folder / META)
        for name in (CHOICE, METRIC):
            facts.pop(name, None)
        return FolderEntry(self.name, files, facts)

    def write(self, fill: Fill) -> FolderEntry:
        """See `PartitionTarget`; the first attempt that ends well stays."""
        with filling(self.folder, replace=False) as attempt:
            facts, files = fill(attempt)
            ours = attempt.stat()
        if not os.path.samestat(ours, self.folder.stat()):
            entry = self.written()
            if entry is not None:
                return entry
        return FolderEntry(self.name, tuple(files), facts)


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
        # Absolute: other processes, with other working folders, write below it too.
        self.path = Path(path).absolute()
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
                self._plan = self._make_plan()
                (self.path / BUILDING).mkdir()
                undo.callback(self._settle)
                build_lock.announce(self.path, self._plan)
                self._make_working_folders()
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

    def restart(self) -> None:
        """Throw away what was written, that of an earlier build included, and begin again."""
        with writing(self.path):
            for folder in (self.scratch, self._new("")):
                remove_tree(folder)
            self._make_working_folders()
        self.resumed = self.keep = False

    def _make_working_folders(self) -> None:
        new = (self.catalog_folder, self.embedder_folder, self._new(PARTITIONS))
        for folder in (self.scratch, *new):
            folder.mkdir(parents=True)

    @property
    def scratch(self) -> Path:
        """A folder for files of the build that are no part of the index; removed at the end."""
        return self.path / BUILDING / _SCRATCH

    @property
    def catalog_folder(self) -> Path:
        return self._new(self._plan.names[CATALOG])

    @property
    def embedder_folder(self) -> Path:
        return self._new(self._plan.names[EMBEDDER])

    def partition_folder(self, number: int) -> Path:
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

    def commit(self, **fields: Any) -> Manifest:
        """Install the sealed folders as the index, by one atomic rename of the manifest.

        All bytes are on the disk before the rename. The fields are those of
        `pexeso.store.manifest.Manifest`, which is returned as it is now in place. An entry is
        either one that `seal_folder` returned or, to keep a folder as it is, one of `previous`.
        One writer makes one commit.
        """
        created = datetime.now(UTC).isoformat(timespec="seconds")
        documents: dict[str, Any] = {"options": {}, "fingerprints": {}, "facts": {}}
        manifest = Manifest(created=created, generation=self._generation, **{**documents, **fields})
        new = self._new_entries(manifest)
        self._committing = True
        manifest = self._install(manifest, new)
        self.keep = False
        return manifest

    @property
    def _generation(self) -> int:
        return 1 if self.previous is None else self.previous.generation + 1

    def _previous_files(self) -> dict[str, tuple[FileEntry, ...]]:
        folders = () if self.previous is None else self.previous.folders
        return {entry.folder: entry.files for entry in folders}

    def _make_folders(self) -> None:
        """Make the index folder and those above it that are missing, and remember which."""
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise OutputError(
                f"'{self.path}' is a file, and an index is a folder: choose another place for "
                "the index."
            )
        missing = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)

    def _new(self, name: str) -> Path:
        return self.path / BUILDING / _NEW / name

    def _final_name(self, folder: Path) -> str:
        return folder.relative_to(self._new("")).as_posix()

    def _new_entries(self, manifest: Manifest) -> list[FolderEntry]:
        """Return the entries that this build wrote; all others are kept."""
        previous = self._previous_files()
        new = [entry for entry in manifest.folders if entry.folder not in previous]
        for entry in new:
            self._require_sealed(entry)
        return new

    def _require_sealed(self, entry: FolderEntry) -> None:
        folder = self._new(entry.folder)
        if not folder.is_dir():
            raise InputError(
                f"The folder {entry.folder!r} was neither written by this build nor is it in the "
                "index."
            )
        with writing(folder):
            if dict(plain_files(folder)) != {file.path: file.n_bytes for file in entry.files}:
                raise InputError(
                    f"The folder {entry.folder!r} is not as it was when it was sealed."
                )

    def _release(self) -> None:
        """Unlock the folder, and remove those that this build made and left empty."""
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
        """List the files that a task wrote to a `partition_target`; they are not read again."""

    def has_partitions(self, entries: Sequence[FolderEntry]) -> bool:
        """Return whether the partitions written by tasks of an earlier attempt still exist."""
        return all(self._new(entry.folder).is_dir() for entry in entries)

    @abstractmethod
    def _claim(self) -> bool:
        """Lock the folder, having made it; return whether its file system can lock."""

    @abstractmethod
    def _replaceable(self) -> Manifest | None:
        """Return the manifest of the index to be replaced, None where there is none, or refuse."""

    def _sweep(self) -> None:  # noqa: B027  a store elsewhere sweeps with a commit
        """Remove what an earlier commit had to leave."""

    @abstractmethod
    def _make_plan(self) -> build_lock.Plan:
        """Choose names for the new folders that no others have."""

    @abstractmethod
    def _adapted(self, plan: build_lock.Plan) -> build_lock.Plan | None:
        """Return the plan of an interrupted build of the same purpose, None to begin again."""

    @abstractmethod
    def _discard(self, plan: build_lock.Plan | None) -> None:
        """Clear away what a build that ended has left."""

    @abstractmethod
    def _install(self, manifest: Manifest, new: list[FolderEntry]) -> Manifest:
        """Put the new folders in place, then the manifest, which is returned: all or nothing."""

    @abstractmethod
    def _settle(self) -> None:
        """Clear away what this build wrote and did not put in place."""


_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


class IndexWriter(BuildWriter):
    """Build an index at a path; use it as a context manager.

    Inside the block, files are written below `catalog_folder`, `embedder_folder` and
    `partition_folder`, by any process, and `commit` makes them the index. When the block ends
    without a commit, by an error or an interruption, the path is as it was and what this build
    wrote is gone; unless `keep` was set, and then a later build of the same purpose takes it up.
    """

    def _claim(self) -> bool:
        if self.update:
            require_index(self.path)
        self._make_folders()
        self._lock, locked = build_lock.lock_folder(self.path)
        return locked

    def _replaceable(self) -> Manifest | None:
        if not os.path.lexists(self.path / MANIFEST):
            return None
        if not self.overwrite and not self.update:
            raise OutputError(
                f"'{self.path}' holds an index already: choose another place, or replace it with "
                "overwrite=True (--overwrite)."
            )
        try:
            return build_lock.current_manifest(self.path)
        except StoredIndexError as error:
            raise OutputError(
                f"'{self.path}' cannot be overwritten, as its manifest does not tell which files "
                f"are pexeso's own: choose another place, or remove the folder yourself. {error}"
            ) from error

    def _sweep(self) -> None:
        if self.previous is not None:
            sweep_retired(self.path, self.previous)

    def _make_plan(self) -> build_lock.Plan:
        names = sorted(set(os.listdir(self.path)) - {JUDGEMENTS})
        if self.previous is None and names:
            raise OutputError(
                f"'{self.path}' holds {listed_names(names, 3)} and is no index of pexeso's: "
                "choose another place for the index, or an empty folder."
            )
        free = {kind: self._free_name(kind) for kind in (CATALOG, EMBEDDER)}
        return build_lock.Plan(self.purpose, self._generation, free, self._free_number())

    def _adapted(self, plan: build_lock.Plan) -> build_lock.Plan | None:
        return plan if plan.generation == self._generation else None

    def _discard(self, plan: build_lock.Plan | None) -> None:
        build_lock.settle(self.path)

    def partition_target(self, number: int) -> PartitionTarget:
        folder = self.partition_folder(number)
        return PartitionFolder(folder, self._final_name(folder))

    def seal_partition(self, entry: FolderEntry) -> FolderEntry:
        return self.seal_folder(self._new(entry.folder), entry.facts, known=entry.files)

    def _free_name(self, kind: str) -> str:
        """Return a name for a new folder that nothing on disk has, so that old and new coexist."""
        used = self._previous_files()
        for number in itertools.count(self._generation):
            name = kind if number == 1 else f"{kind}.{number}"
            if name not in used and not os.path.lexists(self.path / name):
                return name
        raise AssertionError

    def _free_number(self) -> int:
        folder = self.path / PARTITIONS
        names = set(os.listdir(folder)) if folder.is_dir() else set()
        names |= {name.removeprefix(f"{PARTITIONS}/") for name in self._previous_files()}
        return max((int(name) for name in names if _NUMBER.fullmatch(name)), default=-1) + 1

    def _install(self, manifest: Manifest, new: list[FolderEntry]) -> Manifest:
        with writing(self.path):
            for entry in new:
                sync_tree(self._new(entry.folder))
            build_lock.write_journal(self.path, (path for entry in new for path in entry.paths()))
            self._place(new)
            if self.previous is not None:
                retire_manifest(self.path, self.previous.generation)
            draft = self.path / BUILDING / MANIFEST
            draft.unlink(missing_ok=True)  # of a commit that died
            with new_file(draft) as file:
                file.write(manifest.to_bytes())
            os.replace(draft, self.path / MANIFEST)
            sync_folder(self.path)
        return manifest

    def _place(self, new: list[FolderEntry]) -> None:
        (self.path / PARTITIONS).mkdir(exist_ok=True)
        for entry in new:
            if os.path.lexists(self.path / entry.folder):
                raise OutputError(
                    f"'{self.path / entry.folder}' appeared during the build: move it away and "
                    "try again."
                )
            os.rename(self._new(entry.folder), self.path / entry.folder)
        sync_folder(self.path / PARTITIONS)
        sync_folder(self.path)

    def _settle(self) -> None:
        if (self.path / BUILDING).is_dir():
            build_lock.settle(self.path)
        current = build_lock.current_manifest(self.path)
        if current is not None:
            sweep_retired(self.path, current)
        with contextlib.suppress(OSError):  # there and not empty, or never made
            (self.path / PARTITIONS).rmdir()


def tidy(path: str | os.PathLike[str]) -> None:
    """Remove files of earlier generations of an index that no reader uses any more.

    A commit does so too, but it cannot remove what its own process has open. What a build left that
    died after its commit, or that nobody can take up, goes as well; the work of one that can be
    taken up stays. Nothing is removed while the index is being written.
    """
    root = Path(path)
    try:
        descriptor, locked = build_lock.lock_folder(root)
    except (OSError, OutputError):
        return
    try:
        with contextlib.suppress(OSError, StoredIndexError, OutputError):
            current = build_lock.current_manifest(root)
            if current is None:
                return
            if build_lock.require_abandoned(root, locked):
                plan = build_lock.abandoned_plan(root)
                if plan is None or plan.generation <= current.generation:
                    build_lock.settle(root)
            sweep_retired(root, current)
    finally:
        os.close(descriptor)
