"""Search for the table files of a lake.

The lake's folders are walked, and skipped entries are listed with the reason. No table is read, but
files that may hold several are opened to see which they are.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pexeso.errors import LakeError, PlaceError, TableReadError
from pexeso.lake.containers.folders import (
    DELTA,
    HIVE,
    ICEBERG,
    CannotRead,
    folder_kind,
    folder_table,
)
from pexeso.lake.containers.formats import SETTINGS_NAME, format_of, reason_not_read, tables_inside
from pexeso.lake.readers.options import LakeSettings
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES, FileSource, log_beside
from pexeso.store.io.location import Location, PlaceEntry, is_refusal, locate_state

# Folders whose names end so are indexes.
INDEX_EXTENSION = ".pexeso"

MANIFEST_NAME = "manifest.json"
# Those of a manifest in every version of the format.
_MANIFEST_KEYS = {"format_version", "fingerprints", "checksum"}

_MAX_MANIFEST_BYTES = 64 << 20
_INDEX = "a pexeso index"

# Largest file that is opened to see which tables it holds.
MAX_CONTAINER_BYTES = DEFAULT_MAX_BYTES
_MAX_REQUESTS = 16
_BATCH_SIZE = 1024


def is_index(folder: Path) -> bool:
    """Return whether a folder of this machine is an index, by its name or its manifest."""
    if folder.name.lower().endswith(INDEX_EXTENSION):
        return True
    manifest = folder / MANIFEST_NAME
    try:
        if not manifest.is_file() or manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return False
        return _is_manifest(manifest.read_bytes())
    except OSError:
        return False


def has_index_manifest(folder: Location) -> bool:
    manifest = folder.joined(MANIFEST_NAME)
    entry = manifest.look()
    return (
        entry is not None
        and 0 < entry.n_bytes <= _MAX_MANIFEST_BYTES
        and _is_manifest(manifest.read())
    )


def _is_manifest(data: bytes) -> bool:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.keys() >= _MANIFEST_KEYS


def _reason_by_name(name: str) -> str | None:
    if any("\ud800" <= letter <= "\udfff" for letter in name):  # bytes that no letter has
        return "its name is not valid UTF-8; rename it"
    return "hidden: its name starts with a dot" if name.startswith(".") else None


def _reason_link_not_followed(entry: os.DirEntry[str], resolved_root: Path) -> str | None:
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):
        return "a symbolic link whose target does not exist"
    if not target.is_relative_to(resolved_root):
        return "a symbolic link that leaves the lake"
    if target.is_dir():
        return "a symbolic link to a folder of the lake, which is read in its own place"
    return None


@dataclass(frozen=True)
class TableFile:
    """One file that its name says is a table, or a table inside a file."""

    # POSIX path relative to the lake, the table's name everywhere; never absolute, never with ``.``
    # or ``..`` parts. That of a table inside a file goes on with `member`.
    table: str
    # Where the file can be opened: a path of this machine, or a place of another storage.
    path: Path | Location
    format: str  # The name of one of `pexeso.lake.containers.formats.FORMATS`.
    # Size on disk in bytes, before any decompression; of a member of an archive unpacked, of a
    # sheet or a database's table its share of the file.
    n_bytes: int
    # When the file was last changed, in nanoseconds since 1970; None where nobody knows.
    modified: int | None = None
    # What its storage calls this state of the file (an ETag); None where it has no name for it.
    version: str | None = None
    # What follows the file's own name in the name of a table inside it, such as ``#Sheet1`` or
    # ``/inner.csv``; None where the file is one table.
    member: str | None = None
    # What `lake.toml` says of the table, as `LakeSettings.digest_of` gives it. A version goes on
    # with it, so that a file counts as changed where it is to be read in another way.
    reading: str | None = None
    # Of a table inside a file its bytes, how many tables it holds, and its name; None where
    # something inside is no table.
    container: str | None = None


@dataclass(frozen=True)
class SkippedFile:
    """A file or folder of the lake that is not read.

    `is_closed` says that it cannot be looked into: then nobody knows which tables it holds.
    """

    path: str
    reason: str
    is_closed: bool = False


class KnownContainers:
    """The tables inside files that an index knows: a file that is as it was need not be opened.

    rows: tables of a catalog, with `COLUMNS`. Memory: their texts, and a position for each file.
    """

    COLUMNS = ("table", "format", "n_bytes", "modified", "version", "container")

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows.filter(rows["container"].is_valid()).sort_by("container")
        runs = self._rows["container"].value_counts()
        ends = np.cumsum(runs.field("counts").to_numpy())
        states = runs.field("values").to_pylist()
        self._end = {
            state.split(" ", 2)[2]: end for state, end in zip(states, ends.tolist(), strict=True)
        }
        self._size = dict(zip(states, runs.field("counts").to_pylist(), strict=True))

    def tables_in(self, file: TableFile) -> list[TableFile] | None:
        """Return the tables inside a file of the same name, size, time and version, or None."""
        end = self._end.get(file.table)
        if end is None or file.modified is None:
            return None
        state = self._rows["container"][end - 1].as_py()
        n_tables = self._size[state]
        rows = self._rows.slice(end - n_tables, n_tables).to_pylist()
        is_same = state == _container_state(file, n_tables) and all(
            row["modified"] == file.modified
            and (row["version"] or "").startswith(file.version or "")
            for row in rows
        )
        if not is_same:
            return None
        return [
            replace(
                file,
                table=row["table"],
                format=row["format"],
                n_bytes=row["n_bytes"],
                member=row["table"].removeprefix(file.table),
                container=state,
            )
            for row in rows
        ]


def _container_state(file: TableFile, n_tables: int) -> str:
    return f"{file.n_bytes} {n_tables} {file.table}"


class Listing(NamedTuple):
    """Content of one folder: tables, skipped entries, and folders to search.

    Names are relative to the lake.
    """

    tables: list[TableFile]
    skipped: list[SkippedFile]
    folders: list[str]


def find_tables(
    lake: str | os.PathLike[str] | Location, *, single_files: bool = False, as_of: str | None = None
) -> tuple[list[TableFile], list[SkippedFile]]:
    """List the table files under a folder, and the reason for every other entry.

    A path that is one file is a lake of its tables, mostly one, whatever its extension. Files that
    may hold several tables are opened, and each table inside is listed by itself. Hidden files and
    folders, and folders that are pexeso indexes, are skipped. Symbolic links are followed to files
    that lie in the lake, never to folders (those inside the lake are read in their own place) and
    never out of the lake.

    Parameters
    ----------
    lake
        A folder, or one file: a path, an URL or a `Location`.
    single_files
        List the files of folders that are one table, for who puts them together.
    as_of
        The state of tables that keep their history; see `ReadingOptions`.

    Returns
    -------
    tables, skipped
        Both sorted by code point of the relative POSIX path. Memory grows with the number of files,
        not their size.
    """
    root, single = look_at_lake(lake, as_of)
    tables: list[TableFile] = []
    skipped: list[SkippedFile] = []
    walk = partial(walk_lake, root, single_files=single_files, as_of=as_of)
    for listing in [single] if single else walk():
        tables += listing.tables
        skipped += listing.skipped
    return sorted(tables, key=lambda file: file.table), sorted(skipped, key=lambda file: file.path)


def look_at_lake(
    lake: str | os.PathLike[str] | Location, as_of: str | None = None
) -> tuple[Path | Location, Listing | None]:
    """Return the location of a lake, and what it holds if it is a file.

    The lake must exist and its entries must be listable.
    """
    root = locate_state(lake, as_of)
    file = _only_file(root)
    if file is None:
        _require_listable(root)
        return root, None
    listing = Listing([], [], [])
    _add_file(listing, file)
    return root, listing


def _only_file(root: Path | Location) -> TableFile | None:
    if isinstance(root, Path):
        if not os.path.isfile(root):
            return None
        status = root.stat()
        return TableFile(root.name, root, "", status.st_size, status.st_mtime_ns)
    try:
        entry = root.look()
    except PlaceError as error:
        raise LakeError(str(error)) from error
    if entry is None:
        raise _no_lake(root)
    return _file_at(root, root.name, entry) if entry.kind == "file" else None


def list_folder(
    root: Path | Location,
    folder: str = "",
    settings: LakeSettings | None = None,
    *,
    single_files: bool = False,
    known: KnownContainers | None = None,
) -> Listing:
    """List one folder of a lake, without going into those below it.

    A folder that cannot be listed, or is an index, gives itself as skipped. Memory grows with the
    number of names in this one folder. A lake elsewhere whose storage cannot be reached is an
    error: it says nothing about the folder.
    """
    if isinstance(root, Path):
        one = None if single_files else _folder_listing(root, folder, settings)
        listing = one or _list_here(root, folder, settings, known)
    else:
        listing = _list_elsewhere(root, folder, settings, known, single_files=single_files)
    if not folder:  # who wrote the settings of the lake does not look for them among its tables
        listing.skipped[:] = [entry for entry in listing.skipped if entry.path != SETTINGS_NAME]
    if settings is not None and settings != LakeSettings():
        listing.tables[:] = [_with_settings(file, settings) for file in listing.tables]
    return listing


def _with_settings(file: TableFile, settings: LakeSettings) -> TableFile:
    digest = settings.digest_of(file.table, has_log=file.format in (DELTA, ICEBERG))
    if digest is None:
        return file
    return replace(file, reading=digest, version=f"{file.version or ''}{digest}")


def walk_lake(
    root: Path | Location, *, single_files: bool = False, as_of: str | None = None
) -> Iterator[Listing]:
    """Yield the listings of all folders of a lake, level by level; see `list_folder`.

    Files are read as the settings of the lake say.

    Memory grows with the folders that are still to be listed.
    """
    settings = LakeSettings.load(root, as_of)
    look = partial(list_folder, root, settings=settings, single_files=single_files)
    pending = [""]
    # Listing a folder elsewhere is waiting for an answer, so many wait at once.
    with ThreadPoolExecutor(_MAX_REQUESTS) as pool:
        while pending:
            now, pending = pending[:_BATCH_SIZE], pending[_BATCH_SIZE:]
            for listing in pool.map(look, now) if isinstance(root, Location) else map(look, now):
                pending += listing.folders
                yield listing


def path_from_text(root: Path | Location, text: str) -> Path | Location:
    """Return the `path` of a `TableFile` of a lake from its text, as `str` gave it.

    What reaches the storage of a lake elsewhere is not in the text: it is taken from the lake.
    """
    if isinstance(root, Path):
        return Path(text)
    return root if text == root.url else root.joined(text.removeprefix(f"{root.url}/"))


def table_row(file: TableFile) -> dict[str, object]:
    path = file.path if isinstance(file.path, Location) else file.path.absolute()
    return {**vars(file), "path": str(path)}


def table_of_row(root: Path | Location, row: Mapping[str, Any]) -> TableFile:
    return TableFile(**{**row, "path": path_from_text(root, row["path"])})


def _add_file(listing: Listing, file: TableFile, known: KnownContainers | None = None) -> None:
    if file.format:
        listing.tables.append(file)
        return
    own_format = format_of(file.table)
    if own_format is None or not own_format.holds_several:
        listing.tables.append(replace(file, format=own_format.name if own_format else "delimited"))
        return
    try:
        file = _with_log(file)
        if known is not None and (tables := known.tables_in(file)) is not None:
            listing.tables.extend(tables)
            return
        inside = tables_inside(
            FileSource(file.table, file.path, max_bytes=MAX_CONTAINER_BYTES), file.n_bytes
        )
    except (TableReadError, OSError) as error:  # the other files of its folder are none the worse
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"{file.table} cannot be read: {error.strerror or error}"
        listing.skipped.append(_skipped(file.table, reason, is_closed=True))
        return
    if not inside:
        listing.skipped.append(_skipped(file.table, "it holds no table"))
    are_tables = all(part.reason is None for part in inside)
    state = _container_state(file, len(inside)) if are_tables else None
    for part in inside:
        table = f"{file.table}{part.member}"
        if part.reason is not None:
            inner = format_of(table)
            is_closed = inner is not None and inner.holds_several
            listing.skipped.append(_skipped(table, part.reason, is_closed=is_closed))
        else:
            listing.tables.append(
                replace(
                    file,
                    table=table,
                    format=part.format,
                    n_bytes=part.n_bytes,
                    member=part.member,
                    container=state,
                )
            )


def _with_log(file: TableFile) -> TableFile:
    log = log_beside(file.path)
    if log is None or file.modified is None:
        return file
    try:
        status = log.stat()
    except OSError:  # a program has put it into the database meanwhile
        return file
    return replace(
        file, n_bytes=file.n_bytes + status.st_size, modified=max(file.modified, status.st_mtime_ns)
    )


def _require_listable(root: Path | Location) -> None:
    try:
        if isinstance(root, Location):
            names = {entry.name for entry in root.entries()}
            is_one = root.name.lower().endswith(INDEX_EXTENSION) or (
                MANIFEST_NAME in names and has_index_manifest(root)
            )
        else:
            is_one = is_index(root)
            with os.scandir(root):
                pass
    except PlaceError as error:
        raise LakeError(str(error)) from error
    except (FileNotFoundError, NotADirectoryError, ValueError):  # of a name that none can have
        raise _no_lake(root) from None
    except OSError as error:
        raise LakeError(f"{root} cannot be listed: {error.strerror}.") from error
    if is_one:
        raise LakeError(
            f"{root} is a pexeso index, not a folder of tables; give the folder that it was "
            "built from."
        )


def _no_lake(root: Path | Location) -> LakeError:
    return LakeError(
        f"{root} is neither a folder nor a file; give the folder that holds the tables."
    )


def _add(
    listing: Listing,
    name: str,
    entry: TableFile | SkippedFile | None,
    known: KnownContainers | None,
) -> None:
    """Add what an entry of a folder is to a listing; None for a folder to search."""
    if entry is None:
        listing.folders.append(name)
    elif isinstance(entry, SkippedFile):
        listing.skipped.append(entry)
    else:
        _add_file(listing, entry, known)


def _list_elsewhere(
    root: Location,
    folder: str,
    settings: LakeSettings | None,
    known: KnownContainers | None,
    *,
    single_files: bool,
) -> Listing:
    listing = Listing([], [], [])
    location = root.joined(folder) if folder else root
    try:
        entries = location.entries()
        if any(entry.name == MANIFEST_NAME for entry in entries) and has_index_manifest(location):
            return Listing([], [SkippedFile(folder, _INDEX)], [])
    except PlaceError as error:
        if not is_refusal(error):
            raise  # or all below it would seem to be gone
        reason = f"the folder cannot be listed: {error}"
        return Listing([], [SkippedFile(folder, reason, is_closed=True)], [])
    if not single_files and (table := _folder_listing(root, folder, entries=entries)) is not None:
        return table
    for entry in entries:
        name = f"{folder}/{entry.name}" if folder else entry.name
        reason = _reason_not_taken(entry, name, settings)
        if reason is not None:
            _add(listing, name, _skipped(name, reason), known)
        elif entry.kind == "folder":
            _add(listing, name, None, known)
        else:
            _add(listing, name, _file_at(location.joined(entry.name), name, entry), known)
    return listing


def _reason_not_taken(entry: PlaceEntry, name: str, settings: LakeSettings | None) -> str | None:
    if not entry.name:
        return "its name is empty: two slashes follow each other"
    if (reason := _reason_by_name(entry.name)) is not None:
        return reason
    if entry.kind == "table":
        return None
    if entry.kind == "folder":
        return _INDEX if entry.name.lower().endswith(INDEX_EXTENSION) else None
    if not _may_be_table(name, settings):
        return reason_not_read(entry.name)
    return None if entry.kind == "file" else "not a regular file"


def _file_at(location: Location, table: str, entry: PlaceEntry) -> TableFile:
    kind = location.protocol if entry.kind == "table" else ""
    return TableFile(table, location, kind, entry.n_bytes, entry.modified, entry.version)


def _folder_listing(
    root: Path | Location,
    folder: str,
    settings: LakeSettings | None = None,
    entries: Iterable[PlaceEntry] | None = None,
) -> Listing | None:
    path = root / folder if folder else root
    kind = folder_kind(path, entries)
    if kind is None or (kind == HIVE and not folder):
        return None
    if not folder:
        reason = f"the lake itself is one {kind} table; give the folder that it lies in"
        return Listing([], [_skipped(root.name, reason)], [])
    try:
        as_of = None if settings is None else settings.options_of(folder).as_of
        table = folder_table(path, kind, as_of)
    except CannotRead as error:
        reason = f"a folder that is one {kind} table, which cannot be read: {error}"
        return Listing([], [_skipped(folder, reason)], [])
    file = TableFile(folder, path, kind, table.n_bytes, table.modified, version=table.version)
    return Listing([file], [], [])


def _list_here(
    root: Path, folder: str, settings: LakeSettings | None, known: KnownContainers | None
) -> Listing:
    listing = Listing([], [], [])
    resolved_root = root.resolve()
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                _add(listing, name, _table_of(entry, root, name, resolved_root, settings), known)
    except (FileNotFoundError, NotADirectoryError):
        listing.skipped.append(_skipped(folder, "the folder is no longer there"))
    except OSError as error:
        reason = f"the folder cannot be listed: {error.strerror}"
        listing.skipped.append(_skipped(folder, reason, is_closed=True))
    return listing


def _may_be_table(name: str, settings: LakeSettings | None) -> bool:
    return format_of(name) is not None or (settings is not None and settings.makes_text(name))


def _table_of(
    entry: os.DirEntry[str],
    root: Path,
    relative: str,
    resolved_root: Path,
    settings: LakeSettings | None,
) -> TableFile | SkippedFile | None:
    if (reason := _reason_by_name(entry.name)) is not None:
        return _skipped(relative, reason)
    if entry.is_symlink():
        if (reason := _reason_link_not_followed(entry, resolved_root)) is not None:
            return _skipped(relative, reason)
    elif entry.is_dir():
        return _skipped(relative, _INDEX) if is_index(Path(entry.path)) else None
    if not _may_be_table(relative, settings):
        return _skipped(relative, reason_not_read(entry.name))
    try:
        status = entry.stat()
    except OSError as error:
        return _skipped(relative, f"it cannot be looked at: {error.strerror}", is_closed=True)
    if not stat.S_ISREG(status.st_mode):
        return _skipped(relative, "not a regular file")
    return TableFile(relative, root / relative, "", status.st_size, status.st_mtime_ns)


def _skipped(relative: str, reason: str, *, is_closed: bool = False) -> SkippedFile:
    # A name that is not UTF-8 is shown with replacement characters: Arrow and JSON hold valid text
    # only.
    shown = relative.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return SkippedFile(shown, reason, is_closed)
