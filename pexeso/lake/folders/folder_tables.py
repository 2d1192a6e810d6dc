"""The files that a folder of one table is made of now, and the columns that are in their paths.

A table of Delta Lake or Iceberg has a log that says which files count. A Hive table has its files
in folders such as ``country=NO``, which are a column. Both are one table, named by their folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pexeso.lake.folders.table_logs import CannotRead, live_files
from pexeso.lake.readers.content import bytes_fingerprint, fingerprint_file
from pexeso.store.io.location import Location, PlaceEntry

DELTA, ICEBERG, HIVE = FOLDER_KINDS = ("delta", "iceberg", "hive")

MAX_FILES = 100_000
"""Most files of one table."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
DELTA_LOG, _ICEBERG_LOG, _ICEBERG_END = "_delta_log", "metadata", ".metadata.json"


@dataclass(frozen=True)
class TablePart:
    """A file of a table in a folder.

    Attributes
    ----------
    name : str
        POSIX path relative to the folder.
    path : Path or Location
    n_bytes : int
    modified : int or None
        Nanoseconds since 1970; None where its storage does not tell.
    version : str or None
        What its storage calls this content.
    """

    name: str
    path: Path | Location
    n_bytes: int
    modified: int | None
    version: str | None = None

    @property
    def values(self) -> dict[str, str | None]:
        """The columns that stand in its path, with their value.

        Examples
        --------
        >>> TablePart("country=NO/day=1%2F2/part-0.parquet", Path(), 0, 0).values
        {'country': 'NO', 'day': '1/2'}
        """
        pairs = (folder.partition("=") for folder in self.name.split("/")[:-1])
        return {
            unquote(name): None if value == _NULL else unquote(value)
            for name, equals, value in pairs
            if name and equals
        }


@dataclass(frozen=True)
class FolderTable:
    """The files of a table as they are now, by name."""

    kind: str
    parts: tuple[TablePart, ...]

    @property
    def n_bytes(self) -> int:
        """Bytes of all files."""
        return sum(part.n_bytes for part in self.parts)

    @property
    def modified(self) -> int | None:
        """When a file was last changed, in nanoseconds since 1970; None where nobody tells."""
        return max((part.modified for part in self.parts if part.modified), default=None)

    @property
    def version(self) -> str:
        """Digest of which files there are: another one where the log names others."""
        lines = (
            f"{part.name}\0{part.n_bytes}\0{part.modified}{part.version or ''}\n"
            for part in self.parts
        )
        return bytes_fingerprint("".join(lines).encode("utf-8", "surrogateescape"))

    @property
    def fingerprint(self) -> str | None:
        """Digest of the names and contents of the files; None where one went away meanwhile."""
        digests = [(part.name, fingerprint_file(part.path)) for part in self.parts]
        if any(digest is None for _, digest in digests):
            return None
        return bytes_fingerprint(repr(digests).encode())


def folder_kind(folder: Path | Location, entries: Iterable[PlaceEntry] | None = None) -> str | None:
    """Return which kind of table a folder is; None where it is none. Links are not followed."""
    names = _names_in(folder) if entries is None else _by_name(entries)
    folders = {name for name, is_folder in names.items() if is_folder and name}
    if DELTA_LOG in folders:
        return DELTA
    if _ICEBERG_LOG in folders and any(
        name.endswith(_ICEBERG_END) for name in _names_in(folder / _ICEBERG_LOG)
    ):
        return ICEBERG
    files = [name for name, is_folder in names.items() if not is_folder and _is_shown(name)]
    shown = [name for name in folders if _is_shown(name)]
    is_hive = bool(shown) and not files and all(_is_partition(name) for name in shown)
    return HIVE if is_hive else None


def folder_table(folder: Path | Location, kind: str) -> FolderTable:
    """Return the files of a table."""
    if isinstance(folder, Location):
        if kind != HIVE:
            raise CannotRead("its log is read on this machine alone")
        parts = sorted(_parts_below(folder), key=lambda part: part.name)
    else:
        names = _files_below(folder) if kind == HIVE else live_files(folder, kind)
        parts = [_part(folder, name) for name in sorted(names[: MAX_FILES + 1])]
    if not parts:
        raise CannotRead("it has no file with rows")
    if len(parts) > MAX_FILES:
        raise CannotRead(f"of its files at most {MAX_FILES:,} are read, and it has more")
    columns = {tuple(part.values) for part in parts}
    if len(columns) > 1:
        raise CannotRead("its files lie in folders of different partition columns")
    return FolderTable(kind, tuple(parts))


def _part(folder: Path, name: str) -> TablePart:
    try:
        status = (folder / name).lstat()
    except OSError:
        raise CannotRead(f"its file {name} is not there") from None
    if not stat.S_ISREG(status.st_mode):
        raise CannotRead(f"its file {name} is not a regular file")
    return TablePart(name, folder / name, status.st_size, status.st_mtime_ns)


def _names_in(folder: Path | Location) -> dict[str, bool]:
    """Return the names in a folder, and whether each is a folder; none where it cannot be listed.

    One that lies elsewhere and cannot be listed is an error.
    """
    if isinstance(folder, Location):
        return _by_name(folder.entries())
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except (OSError, ValueError):  # no folder, or no name that a system has
        return {}


def _by_name(entries: Iterable[PlaceEntry]) -> dict[str, bool]:
    return {entry.name: entry.kind == "folder" for entry in entries}


def _is_shown(name: str) -> bool:
    return name[:1] not in (".", "_")


def _is_partition(name: str) -> bool:
    column, equals, _ = name.partition("=")
    return bool(column and equals)


def _files_below(folder: Path) -> list[str]:
    """Return the files below a folder that are neither hidden nor marks of an engine."""
    names = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(filter(_is_shown, folders))
        relative = Path(at).relative_to(folder)
        names += [(relative / name).as_posix() for name in files if _is_shown(name)]
        if len(names) > MAX_FILES:
            break
    return names


def _parts_below(folder: Location) -> list[TablePart]:
    """Return the same of a folder that lies elsewhere."""
    return [
        TablePart(name, folder / name, entry.n_bytes, entry.modified, entry.version)
        for name, entry in folder.find().items()
        if all(part and _is_shown(part) for part in name.split("/"))
    ]
