"""The target to which a task writes its partition: a folder of the build.

The partition appears there complete or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pexeso.store.files import checksum_file, read_document
from pexeso.store.local.folders import filling, plain_files
from pexeso.store.manifest import FileEntry, FolderEntry

META, CHOICE, METRIC = "meta.json", "choice", "metric"
"""The document of a partition: its facts, and how its map was chosen.

Where it is, the partition is whole.
"""

Fill = Callable[[Path], tuple[dict[str, Any], list[FileEntry]]]
"""Writes a partition's files to an empty folder; gives its facts and its files."""


class PartitionTarget(Protocol):
    """Where one partition goes. It can be pickled: what fills it is a task on any machine."""

    def written(self) -> FolderEntry | None:
        """Return the complete partition that an earlier attempt has left there, or None."""

    def write(self, fill: Fill) -> FolderEntry:
        """Put a partition there.

        Where two attempts do, either's result is a whole partition of its own.
        """


@dataclass(frozen=True)
class PartitionFolder:
    """A folder of a build."""

    folder: Path
    name: str

    def written(self) -> FolderEntry | None:
        """See `PartitionTarget`."""
        if not (self.folder / META).is_file():
            return None
        files = [
            FileEntry(name, *checksum_file(self.folder / name))
            for name, _ in sorted(plain_files(self.folder))
        ]
        facts = {
            name: value
            for name, value in read_document(self.folder / META).items()
            if name not in (CHOICE, METRIC)
        }
        return FolderEntry(self.name, tuple(files), facts)

    def write(self, fill: Fill) -> FolderEntry:
        """See `PartitionTarget`; the first attempt that ends well stays."""
        with filling(self.folder, replace=False) as position:
            facts, files = fill(position)
            ours = position.stat()
        if not os.path.samestat(ours, self.folder.stat()):
            entry = self.written()
            if entry is not None:
                return entry
        return FolderEntry(self.name, tuple(files), facts)


def entry_to_json(entry: FolderEntry) -> str:
    """Write a folder's entry as text, for a task to give it to the driver."""
    files = [[file.path, file.n_bytes, file.checksum] for file in entry.files]
    return json.dumps({"folder": entry.folder, "files": files, "facts": entry.facts})


def entry_from_json(text: str) -> FolderEntry:
    """Read what `entry_to_json` wrote."""
    document = json.loads(text)
    return FolderEntry(
        document["folder"], tuple(FileEntry(*file) for file in document["files"]), document["facts"]
    )
