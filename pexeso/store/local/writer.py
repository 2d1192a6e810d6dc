"""Atomic writing of an index: new files beside the old ones, then a rename of the manifest.

The new index is complete or not there at all. There is only one rename.
"""

import contextlib
import os
import re
from pathlib import Path

from pexeso.errors import OutputError, StoredIndexError
from pexeso.store.files import sync_folder, writing
from pexeso.store.local import build_lock
from pexeso.store.local.build_writer import BuildWriter
from pexeso.store.local.folders import sync_tree
from pexeso.store.local.reader import require_index
from pexeso.store.local.snapshot import retire_manifest, sweep_retired
from pexeso.store.local.target import PartitionFolder, PartitionTarget
from pexeso.store.manifest import FolderEntry, Manifest
from pexeso.store.paths import BUILDING, CATALOG, EMBEDDER, MANIFEST, PARTITIONS

_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


class IndexWriter(BuildWriter):
    """Build an index at a path; use it as a context manager.

    Inside the block, files are written below `catalog_folder`, `embedder_folder` and
    `partition_folder`, by any process, and `commit` makes them the index. When the block ends
    without a commit, by an error or an interruption, what stood at the path before stands there
    still and what this build wrote is gone; unless `keep` was set, and then a later build of the
    same purpose takes it up.
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
                "overwrite=True "
                "(--overwrite)."
            )
        try:
            return build_lock.current_manifest(self.path)
        except StoredIndexError as error:
            raise OutputError(
                f"'{self.path}' cannot be overwritten, as its manifest does not tell which files "
                "are pexeso's own: "
                f"choose another place, or remove the folder yourself. {error}"
            ) from error

    def _sweep(self) -> None:
        if self.previous is not None:
            sweep_retired(self.path, self.previous)

    def _make_plan(self) -> build_lock.Plan:
        if self.previous is None:
            _require_empty(self.path)
        return build_lock.Plan(
            self.purpose, self._generation, self._choose_names(), self._choose_first_partition()
        )

    def _adapted(self, plan: build_lock.Plan) -> build_lock.Plan | None:
        return plan if plan.generation == self._generation else None

    def _discard(self, plan: build_lock.Plan | None) -> None:
        build_lock.settle(self.path)

    def partition_target(self, number: int) -> PartitionTarget:
        """See `BuildWriter`."""
        folder = self.partition_folder(number)
        return PartitionFolder(folder, self._final_name(folder))

    def seal_partition(self, entry: FolderEntry) -> FolderEntry:
        """See `BuildWriter`."""
        return self.seal_folder(self._new(entry.folder), entry.facts, known=entry.files)

    def _choose_names(self) -> dict[str, str]:
        """Return names for the new folders that nothing on disk has.

        Old and new folders can therefore stand side by side.
        """
        used_folders = (
            set() if self.previous is None else {entry.folder for entry in self.previous.folders}
        )
        names = {}
        for position in (CATALOG, EMBEDDER):
            number = self._generation
            name = position if number == 1 else f"{position}.{number}"
            while name in used_folders or os.path.lexists(self.path / name):
                number += 1
                name = f"{position}.{number}"
            names[position] = name
        return names

    def _choose_first_partition(self) -> int:
        used_folders = (
            set() if self.previous is None else {entry.folder for entry in self.previous.folders}
        )
        folder = self.path / PARTITIONS
        folder_names = set(os.listdir(folder)) if folder.is_dir() else set()
        numbers = folder_names | {name.removeprefix(f"{PARTITIONS}/") for name in used_folders}
        return max((int(name) for name in numbers if _NUMBER.fullmatch(name)), default=-1) + 1

    def _install(self, manifest: Manifest, new: list[FolderEntry]) -> Manifest:
        data = manifest.to_bytes()
        with writing(self.path):
            for entry in new:
                sync_tree(self._new(entry.folder))
            self._write_journal(new)
            self._place(new)
            if self.previous is not None:
                retire_manifest(self.path, self.previous.generation)
            self._replace_manifest(data)
        return manifest

    def _write_journal(self, new: list[FolderEntry]) -> None:
        build_lock.write_journal(
            self.path, (f"{entry.folder}/{file.path}" for entry in new for file in entry.files)
        )

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
            build_lock.settle(self.path)
        current = build_lock.current_manifest(self.path)
        if current is not None:
            sweep_retired(self.path, current)
        with contextlib.suppress(OSError):  # there and not empty, or never made
            (self.path / PARTITIONS).rmdir()


def tidy(path: str | os.PathLike[str]) -> None:
    """Remove files of earlier generations of an index that no reader uses any more.

    Nothing is removed while the index is being written.

    A commit does so too, but it cannot remove what its own process has open. What a build left that
    died after its commit, or that nobody can take up, goes as well; the work of one that can be
    taken up stays.
    """
    root = Path(path)
    try:
        descriptor, locked = build_lock.lock_folder(root)
    except (OSError, OutputError):
        return
    try:
        with contextlib.suppress(OSError, StoredIndexError, OutputError):
            current = build_lock.current_manifest(root)
            if current is not None:
                _settle_finished(root, locked, current)
                sweep_retired(root, current)
    finally:
        os.close(descriptor)


def _settle_finished(root: Path, locked: bool, current: Manifest) -> None:
    if build_lock.require_abandoned(root, locked):
        plan = build_lock.abandoned_plan(root)
        if plan is None or plan.generation <= current.generation:
            build_lock.settle(root)


def _require_empty(path: Path) -> None:
    names = sorted(os.listdir(path))
    if names:
        raise OutputError(
            f"'{path}' holds {build_lock.some_names(names)} and is no index of pexeso's: choose "
            "another place for the "
            "index, or an empty folder."
        )
