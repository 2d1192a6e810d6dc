"""The target for partitions of an index on other storage: it uploads them and keeps a record.

A task writes the partition that it builds to the target. The record notes what was uploaded.

Each attempt uploads to a folder of its own, so that nothing is ever overwritten. Which attempt
counts is what the build commits; the files of the others are listed in notes
(`pexeso.store.remote.garbage_collection`), and go with a later commit.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pexeso.errors import IndexCorruptError, OutputError, PlaceError
from pexeso.store.files import read_document, replace_document
from pexeso.store.io.location import Location
from pexeso.store.local.target import Fill, entry_from_json, entry_to_json
from pexeso.store.manifest import FolderEntry
from pexeso.store.paths import BUILDING, PARTITIONS
from pexeso.store.remote.garbage_collection import note_upload, remove_all
from pexeso.store.remote.publish import paths_of, unique_folder_name, upload_folder


@dataclass(frozen=True)
class PartitionUpload:
    """A partition of an index elsewhere."""

    location: Location
    record: Path

    def written(self) -> FolderEntry | None:
        """See `pexeso.store.local.target.PartitionTarget`."""
        entry = read_record(self.record)
        if entry is None:
            return None
        files = self.location.joined(entry.folder).find()
        sizes = {name: file.n_bytes for name, file in files.items()}
        return entry if all(sizes.get(file.path) == file.n_bytes for file in entry.files) else None

    def write(self, fill: Fill) -> FolderEntry:
        """Write the partition to a temporary local folder and upload it.

        See `pexeso.store.local.target.PartitionTarget`. The partition takes its size on the local
        disk until it is uploaded.
        """
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
        replace_document(self.record, {"entry": entry_to_json(entry)})
        return entry

    def _upload(self, folder: Path, entry: FolderEntry) -> None:
        note_upload(self.location, paths_of([entry]), token=_token(entry))
        try:
            upload_folder(folder, self.location, entry)
        except BaseException:
            with contextlib.suppress(PlaceError):
                discard_uploads(self.location, [entry])
            raise


def read_record(record: Path) -> FolderEntry | None:
    """Read what an attempt noted of its upload; None where there is nothing that can be read."""
    try:
        return entry_from_json(read_document(record)["entry"])
    except (IndexCorruptError, ValueError, KeyError, TypeError):
        return None


def discard_uploads(location: Location, entries: list[FolderEntry]) -> None:
    """Remove folders that were uploaded and that no manifest lists, then what notes them."""
    remove_all(location, paths_of(entries))
    forget_notes(location, entries)


def forget_notes(location: Location, entries: list[FolderEntry]) -> None:
    """Remove the notes of uploaded folders."""
    remove_all(location, (f"{BUILDING}/upload-{_token(entry)}.json" for entry in entries))


def _token(entry: FolderEntry) -> str:
    return entry.folder.rpartition("/")[2]
