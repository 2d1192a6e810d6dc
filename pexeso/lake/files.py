"""Which files of a lake are tables: walks a folder, says what was skipped and why, reads no table."""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pexeso.errors import LakeError

TableFormat = Literal["delimited", "parquet", "jsonlines"]

FORMAT_OF_EXTENSION: dict[str, TableFormat] = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".psv": "delimited",
    ".parquet": "parquet",
    ".jsonl": "jsonlines",
    ".ndjson": "jsonlines",
}
"""Table format by lower-case file extension. All but Parquet may carry a further ``.gz``.

``.txt`` is not among them: in real lakes it is mostly prose. A single ``.txt`` file named by the user is still read.
"""

INDEX_EXTENSION = ".pexeso"
"""Folders whose names end so are indexes."""

_MANIFEST_NAME = "manifest.json"
_MANIFEST_KEYS = {"format_version", "fingerprints", "partitions", "checksum"}
_MAX_MANIFEST_BYTES = 64 << 20


@dataclass(frozen=True)
class TableFile:
    """One file that its name says is a table.

    Attributes
    ----------
    table
        POSIX path relative to the lake, the table's name everywhere; never absolute, never with ``.`` or ``..`` parts.
    path
        Where the file can be opened.
    format
        ``delimited``, ``parquet`` or ``jsonlines``.
    n_bytes
        Size on disk in bytes, before any decompression.
    """

    table: str
    path: Path
    format: TableFormat
    n_bytes: int


@dataclass(frozen=True)
class SkippedFile:
    """A file or folder of the lake that is not read; `path` is relative to the lake, `reason` one clause."""

    path: str
    reason: str


def table_format(path: str | os.PathLike[str]) -> TableFormat | None:
    """Return the table format that a file's name stands for, None where it stands for none.

    Examples
    --------
    >>> table_format("Cities.CSV.gz")
    'delimited'
    >>> table_format("notes.txt") is None
    True
    """
    name = os.path.basename(os.fspath(path)).lower()
    packed = name.endswith(".gz")
    extension = os.path.splitext(name.removesuffix(".gz"))[1]
    found = FORMAT_OF_EXTENSION.get(extension)
    return None if packed and found == "parquet" else found


def find_tables(lake: str | os.PathLike[str]) -> tuple[list[TableFile], list[SkippedFile]]:
    """List the table files under a folder, and everything else there with the reason why it is none.

    A path that is one file is a lake of one table, whatever its extension. Hidden files and folders, and folders that
    are pexeso indexes, are skipped. Symbolic links are followed to files that lie in the lake, never to folders (those
    inside the lake are read in their own place) and never out of the lake.

    Parameters
    ----------
    lake
        A folder, or one file.

    Returns
    -------
    tables, skipped
        Both sorted by code point of the relative POSIX path. Memory grows with the number of files, not their size.

    Raises
    ------
    LakeError
        The path does not exist, cannot be listed, or is itself an index.
    """
    root = Path(lake)
    if root.is_file():
        return [TableFile(root.name, root, table_format(root) or "delimited", root.stat().st_size)], []
    if not root.is_dir():
        raise LakeError(f"{root} is neither a folder nor a file; give the folder that holds the tables.")
    if _is_index(root):
        raise LakeError(f"{root} is a pexeso index, not a folder of tables; give the folder that it was built from.")
    try:
        with os.scandir(root):
            pass
    except OSError as error:
        raise LakeError(f"{root} cannot be listed: {error.strerror}.") from error
    walk = _Walk(root)
    walk.run()
    return sorted(walk.tables, key=lambda file: file.table), sorted(walk.skipped, key=lambda file: file.path)


class _Walk:
    """One walk over a lake; an explicit stack, so that depth is bounded by the disk and not by Python."""

    def __init__(self, root: Path):
        self.root = root
        self.resolved_root = root.resolve()
        self.tables: list[TableFile] = []
        self.skipped: list[SkippedFile] = []

    def run(self) -> None:
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(self.root / folder) as entries:
                    for entry in entries:
                        relative = f"{folder}/{entry.name}" if folder else entry.name
                        if self._is_folder_to_enter(entry, relative):
                            pending.append(relative)
            except OSError as error:
                self._skip(folder, f"the folder cannot be listed: {error.strerror}")

    def _is_folder_to_enter(self, entry: os.DirEntry[str], relative: str) -> bool:
        reason = self._reason_not_looked_at(entry, relative)
        if reason is None and entry.is_dir(follow_symlinks=False):
            return True
        if reason is None:
            reason = self._take_file(entry, relative)
        if reason is not None:
            self._skip(relative, reason)
        return False

    def _reason_not_looked_at(self, entry: os.DirEntry[str], relative: str) -> str | None:
        if not _is_valid_text(entry.name):
            return "its name is not valid UTF-8; rename it"
        if entry.name.startswith("."):
            return "hidden: its name starts with a dot"
        if entry.is_symlink():
            return self._reason_link_not_followed(entry)
        if entry.is_dir() and _is_index(Path(entry.path)):
            return "a pexeso index"
        return None

    def _reason_link_not_followed(self, entry: os.DirEntry[str]) -> str | None:
        try:
            target = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError):
            return "a symbolic link whose target does not exist"
        if not target.is_relative_to(self.resolved_root):
            return "a symbolic link that leaves the lake"
        if target.is_dir():
            return "a symbolic link to a folder of the lake, which is read in its own place"
        return None

    def _take_file(self, entry: os.DirEntry[str], relative: str) -> str | None:
        found = table_format(entry.name)
        if found is None:
            return f"not a table by its extension; tables end in {', '.join(FORMAT_OF_EXTENSION)} (text also in .gz)"
        try:
            status = entry.stat()
        except OSError as error:
            return f"it cannot be looked at: {error.strerror}"
        if not stat.S_ISREG(status.st_mode):
            return "not a regular file"
        self.tables.append(TableFile(relative, self.root / relative, found, status.st_size))
        return None

    def _skip(self, relative: str, reason: str) -> None:
        # A name that is not UTF-8 is shown with replacement characters: Arrow and JSON hold valid text only.
        shown = relative.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        self.skipped.append(SkippedFile(shown, reason))


def _is_valid_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_index(folder: Path) -> bool:
    if folder.name.lower().endswith(INDEX_EXTENSION):
        return True
    manifest = folder / _MANIFEST_NAME
    try:
        if not manifest.is_file() or manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return False
        content = json.loads(manifest.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.keys() >= _MANIFEST_KEYS
