"""Writing of an index on other storage: tasks upload partitions, the commit all else.

What is no partition (the catalog, the model, what passes between the stages) is written to a folder
of this machine first, in ``builds/`` of the user's cache, under a name made of the place. There a
build that was broken off is found by the next one for the same place. It does not count for the
size of the cache, and is removed once the index is in place.

Each attempt at a partition uploads to a folder of its own, so that nothing is ever overwritten.
Which attempt counts is what the build commits; the files of the others are listed in notes
(`pexeso.store.remote.publish`), and removed with a later commit.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pexeso.errors import IndexCorruptError, OutputError, PlaceError
from pexeso.store.files import read_document, replace_document
from pexeso.store.io.location import Location
from pexeso.store.local import build_lock
from pexeso.store.local.writer import BuildWriter, Fill
from pexeso.store.manifest import BUILDING, CATALOG, EMBEDDER, PARTITIONS, FolderEntry, Manifest
from pexeso.store.remote.publish import (
    Base,
    begin,
    note_upload,
    publish,
    remove_all,
    unique_folder_name,
    upload_folder,
)
from pexeso.store.remote.store import Cache, default_cache, no_index_at


@dataclass(frozen=True)
class PartitionUpload:
    location: Location
    record: Path

    def written(self) -> FolderEntry | None:
        entry = read_record(self.record)
        if entry is None:
            return None
        files = self.location.joined(entry.folder).find()
        sizes = {name: file.n_bytes for name, file in files.items()}
        return entry if all(sizes.get(file.path) == file.n_bytes for file in entry.files) else None

    def write(self, fill: Fill) -> FolderEntry:
        """See `PartitionTarget`; until it is uploaded, the partition is on the local disk."""
        if (broken := read_record(self.record)) is not None:
            with contextlib.suppress(PlaceError):
                discard_uploads(self.location, [broken])
        with tempfile.TemporaryDirectory(prefix="pexeso-partition-") as folder:
            facts, files = fill(Path(folder))
            entry = FolderEntry(unique_folder_name(f"{PARTITIONS}/00000"), tuple(files), facts)
            try:
                self._upload(Path(folder), entry)
            except PlaceError as error:
                raise OutputError(f"The index cannot be written there: {error}") from error
        replace_document(self.record, {"entry": entry.to_json()})
        return entry

    def _upload(self, folder: Path, entry: FolderEntry) -> None:
        note_upload(self.location, entry.paths(), token=_token(entry))
        try:
            upload_folder(folder, self.location, entry)
        except BaseException:
            with contextlib.suppress(PlaceError):
                discard_uploads(self.location, [entry])
            raise


def read_record(record: Path) -> FolderEntry | None:
    """Read what an attempt noted of its upload; None where there is nothing that can be read."""
    try:
        return FolderEntry.from_json(read_document(record)["entry"])
    except (IndexCorruptError, ValueError, KeyError, TypeError):
        return None


def discard_uploads(location: Location, entries: list[FolderEntry]) -> None:
    """Remove folders that were uploaded and that no manifest lists, then what notes them."""
    remove_all(location, [path for entry in entries for path in entry.paths()])
    forget_notes(location, entries)


def forget_notes(location: Location, entries: list[FolderEntry]) -> None:
    remove_all(location, (f"{BUILDING}/upload-{_token(entry)}.json" for entry in entries))


def _token(entry: FolderEntry) -> str:
    return entry.folder.rpartition("/")[2]


_UPLOADED = "uploaded"


class RemoteWriter(BuildWriter):
    """Build an index on another storage; used like `pexeso.store.local.writer.IndexWriter`.

    One process at a time builds for a place on one machine. Between machines the commit decides: it
    succeeds only where the index is still the one that the build began with. A build that loses is
    kept for the next one of the same purpose, as far as it does not depend on what it was built
    over.
    """

    def __init__(
        self,
        location: Location,
        overwrite: bool = False,
        *,
        update: bool = False,
        purpose: str | None = None,
        cache: Cache | None = None,
    ) -> None:
        super().__init__(local_folder(location, cache), overwrite, update=update, purpose=purpose)
        self.location, self.name = location, str(location)
        self._base: Base

    def partition_target(self, number: int) -> PartitionUpload:
        records = self.scratch / _UPLOADED
        records.mkdir(exist_ok=True)
        return PartitionUpload(self.location, records / f"{number:05d}.json")

    def seal_partition(self, entry: FolderEntry) -> FolderEntry:
        """See `BuildWriter`; that all files are there is looked at once, by the commit."""
        return entry

    def has_partitions(self, entries: Sequence[FolderEntry]) -> bool:
        """See `BuildWriter`; one listing for each thousand files."""
        files = self.location.joined(PARTITIONS).find() if entries else {}
        sizes = {f"{PARTITIONS}/{name}": file.n_bytes for name, file in files.items()}
        return all(
            sizes.get(f"{entry.folder}/{file.path}") == file.n_bytes
            for entry in entries
            for file in entry.files
        )

    def restart(self) -> None:
        self._discard_uploads(self._plan)
        super().restart()

    def _claim(self) -> bool:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make_folders()
        try:
            self._lock, locked = build_lock.lock_folder(self.path)
        except OutputError as error:
            raise OutputError(
                f"Another build for '{self.location}' is under way on this machine: wait for its "
                "end."
            ) from error
        return locked

    def _replaceable(self) -> Manifest | None:
        self._base = begin(self.location, self.overwrite or self.update)
        if self.update and self._base.previous is None:
            raise no_index_at(self.location)
        return self._base.previous

    def _make_plan(self) -> build_lock.Plan:
        names = {kind: unique_folder_name(kind) for kind in (CATALOG, EMBEDDER)}
        return build_lock.Plan(self.purpose, self._generation, names, 0)

    def _adapted(self, plan: build_lock.Plan) -> build_lock.Plan | None:
        if plan.generation == self._generation:
            return plan
        # What an update writes depends on the index that it found; what a build writes on the lake
        # alone.
        return None if self.update else replace(plan, generation=self._generation)

    def _discard(self, plan: build_lock.Plan | None) -> None:
        if plan is not None:
            self._discard_uploads(plan)
        build_lock.settle(self.path)

    def _discard_uploads(self, plan: build_lock.Plan) -> None:
        """Remove what was uploaded for a plan, unless a commit since may be of that plan."""
        if plan.generation == self._generation and not self._committing:
            with contextlib.suppress(PlaceError):
                discard_uploads(self.location, self._uploaded())

    def _uploaded(self) -> list[FolderEntry]:
        records = sorted((self.scratch / _UPLOADED).glob("*.json"))
        return [entry for entry in map(read_record, records) if entry is not None]

    def _require_sealed(self, entry: FolderEntry) -> None:
        if self._new(entry.folder).is_dir():
            super()._require_sealed(entry)

    def _install(self, manifest: Manifest, new: list[FolderEntry]) -> Manifest:
        remote_folders = {entry.folder for entry in new if not self._new(entry.folder).is_dir()}
        published = publish(self._new(""), manifest, self._base, there=remote_folders)
        with contextlib.suppress(PlaceError):  # a note of what is in use does no harm
            forget_notes(self.location, self._uploaded())
        return published

    def _settle(self) -> None:
        self._discard_uploads(self._plan)
        build_lock.settle(self.path)
        with contextlib.suppress(OSError):
            self.path.rmdir()


def local_folder(location: Location, cache: Cache | None = None) -> Path:
    name = hashlib.blake2b(
        location.url.encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()
    return (cache or default_cache()).root / "builds" / f"{name}.pexeso"
