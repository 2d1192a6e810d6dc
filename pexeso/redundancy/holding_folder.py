"""The holding folder of a lake: checked, locked, and its journal."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from pexeso.errors import InputError, LakeError, OutputError
from pexeso.redundancy.plan import require_table
from pexeso.redundancy.table_files import TableRefused, allow_changes, opened_folder, remove_tree
from pexeso.runtime.system import (
    EXCLUSIVE,
    HAS_FOLDER_STEPS,
    is_own,
    is_read_only,
    lock,
    open_folder,
    open_unlinked,
    sync_folder,
)
from pexeso.store.io.location import is_url

JOURNAL = "journal"
_DRAFT = "journal.draft"
_MAX_BYTES = 1 << 30
_FORMAT, _VERSION = "pexeso-holding", 1


@dataclass(frozen=True)
class HeldTable:
    table: str
    origin: str
    moved: str
    expires: str
    bytes: int
    fingerprint: str
    parent: str
    parent_fingerprint: str
    sql: str


class Journal:
    """The journal of one holding folder, for the process that has locked it."""

    def __init__(self, folder: Path, lake: str, tables: Iterable[HeldTable] = ()) -> None:
        self._path = folder / JOURNAL
        self.lake = lake
        self.tables = {entry.table: entry for entry in tables}

    def add(self, entry: HeldTable) -> None:
        """Append a line and wait until it is on the disk."""
        descriptor = open_unlinked(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            end = os.fstat(descriptor).st_size
            try:
                _write(descriptor, _line(asdict(entry)))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)
        self.tables[entry.table] = entry

    def replace(self, tables: Iterable[HeldTable]) -> None:
        """Write the journal again with these tables, atomically."""
        tables = list(tables)
        header = {"format": _FORMAT, "version": _VERSION, "lake": self.lake}
        draft = self._path.with_name(_DRAFT)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)  # a killed process was writing it
        descriptor = open_unlinked(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            _write(descriptor, _line(header) + b"".join(_line(asdict(entry)) for entry in tables))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, self._path)
        sync_folder(self._path.parent)
        self.tables = {entry.table: entry for entry in tables}


def read_journal(folder: Path) -> Journal | None:
    """Read the journal of a holding folder; None for a folder that has none."""
    path = folder / JOURNAL
    try:
        data = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    lines = data.split(b"\n")[:-1]  # what follows the last line feed was never finished
    try:
        header, *entries = (json.loads(line) for line in lines)
        if header.get("format") != _FORMAT or header.get("version") != _VERSION:
            raise ValueError(f"its first line says {header}")
        if not os.path.isabs(header["lake"]):
            raise ValueError(f"its lake {header['lake']!r} is not an absolute path")
        return Journal(folder, header["lake"], [_entry(entry) for entry in entries])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"'{path}' is not a journal of tables set aside that this program reads: {error}. The "
            f"tables lie in '{folder}' under their names, so that you can move them back yourself."
        ) from error


def _read(path: Path) -> bytes:
    """Return the bytes of a plain file that is no link; a pipe keeps nobody waiting."""
    with open(open_unlinked(path, os.O_RDONLY), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        if status.st_size > _MAX_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {_MAX_BYTES:,} bytes", str(path))
        return file.read(_MAX_BYTES)


def _entry(document: Any) -> HeldTable:
    kinds = {field.name: int if field.name == "bytes" else str for field in fields(HeldTable)}
    if not isinstance(document, dict) or document.keys() != kinds.keys():
        raise ValueError(f"a line is {str(document)[:60]!r}")
    for name, kind in kinds.items():
        if type(document[name]) is not kind:
            raise ValueError(f"{name!r} of a line is {document[name]!r}")
    require_table(document["table"])
    require_table(document["parent"])
    if datetime.fromisoformat(document["expires"]).tzinfo is None:
        raise ValueError(f"the time {document['expires']!r} has no time zone")
    return HeldTable(**document)


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, allow_nan=False).encode("ascii") + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


TABLES, COPIES = "tables", "copies"
# End of the name of what notes, among the copies, under which name one is made in the lake.
ARRIVING = ".arriving"

_ARRIVING = re.compile(r"\.pexeso-arriving-[0-9a-f]{32}")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_PERMISSION = (errno.EACCES, errno.EPERM)


def default_holding(lake: str | os.PathLike[str]) -> Path:
    """Return the holding folder of a lake: next to it, with ``.holding`` behind its name."""
    return Path(f"{Path(lake)}.holding")


def local_lake(lake: str) -> Path:
    require_local(lake)
    if not os.path.isabs(lake) or "\0" in lake:
        raise InputError(f"The lake of a plan must be an absolute path, but is {lake!r}.")
    path = Path(lake)
    if not os.path.isdir(path):
        raise LakeError(
            f"The lake '{lake}' is not a folder that is there; bring it back to this place."
        )
    # A folder next to "lake/sub/.." would lie in the lake.
    return path.resolve() if ".." in path.parts else path


def require_local(path: str | os.PathLike[str]) -> None:
    if is_url(path):
        raise InputError(
            f"Tables are moved in folders of this machine only, and '{path}' is an URL: move "
            "them with the tools of that storage."
        )


def local_holding(holding: str | os.PathLike[str], lake: Path) -> Path:
    """Return the absolute path of a holding folder that lies apart from the lake."""
    require_local(holding)
    path = Path(os.path.abspath(holding))
    try:
        inner, outer = path.resolve(), lake.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"'{path}' cannot be a holding folder: {error}.") from error
    if _is_within(inner, outer):
        raise InputError(
            f"The holding folder '{path}' lies in the lake '{lake}', where its tables would be "
            f"found again; choose one outside, such as '{default_holding(lake)}'."
        )
    if _is_within(outer, inner):
        raise InputError(
            f"The lake '{lake}' lies in the holding folder '{path}'; choose another, such as "
            f"'{default_holding(lake)}'."
        )
    return path


def require_journal(folder: Path) -> Journal:
    journal = read_journal(folder)
    if journal is None:
        raise InputError(
            f"'{folder}' is not a holding folder: give the one that the plan was applied with."
        )
    return journal


@contextlib.contextmanager
def opened(folder: Path, lake: Path) -> Iterator[Journal]:
    """Lock a lake and its holding folder, which is made where it is not there."""
    if not HAS_FOLDER_STEPS:
        raise InputError(
            f"No table was moved: this system cannot open a folder without following links, so "
            f"moving tables of '{lake}' could change files outside it; apply or undo the plan on "
            "Linux or macOS."
        )
    with contextlib.ExitStack() as stack:
        try:
            _lock(stack, lake, required=False)
            if is_read_only(lake):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(lake))
            if not os.path.lexists(folder):
                os.mkdir(folder)
                sync_folder(folder.parent)
            _lock(stack, folder, required=True)
            journal = _journal(folder, lake)
            for name in (TABLES, COPIES):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder / name)
                _require_own_folder(folder / name)
            # A killed process was making or removing it.
            for name in _own_copies(folder.resolve(), journal):
                remove_copy(folder.resolve() / COPIES / name)
            sync_folder(folder)
        except OSError as error:
            raise OutputError(
                f"No table was moved: {reason_of(error, folder)}; {way_out(error)} and try again."
            ) from error
        yield journal


def copy_name(table: str) -> str:
    """Return a name for the copies of a table: no file system limits it."""
    return hashlib.blake2b(table.encode(), digest_size=8).hexdigest()


def note_arrival(path: Path, name: str) -> None:
    """Note under which name a copy will be made in the lake, and wait until that is on the disk."""
    with opened_folder(path.parent) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = open_unlinked(path.name, flags, 0o600, dir_fd=folder)
        try:
            os.write(descriptor, name.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.fsync(folder)


def noted_arrival(path: Path) -> str | None:
    """Return the name that was noted; None where there is none, or not a whole one."""
    try:
        descriptor = open_unlinked(path, os.O_RDONLY)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
        name = file.read(100).decode("ascii", "replace") if is_plain else ""
    return name if _ARRIVING.fullmatch(name) else None


def _is_plain(path: Path) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def _require_own_folder(path: Path) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise InputError(
            f"'{path}' is a link or a file, and must be a folder of the holding folder's own: "
            "nothing outside is moved or removed. Remove it, or choose another holding folder."
        )


def _own_copies(folder: Path, journal: Journal) -> list[str]:
    """Return what lies among the copies, all of which are of tables in the journal."""
    names = os.listdir(folder / COPIES)
    copies = set(map(copy_name, journal.tables))
    notes = {f"{name}{ARRIVING}" for name in copies}
    plain_notes = {name for name in notes.intersection(names) if _is_plain(folder / COPIES / name)}
    for name in set(names) - copies - plain_notes:
        raise InputError(
            f"'{folder / COPIES / name}' is none of the copies that the journal names, and is "
            "left as it is: move it elsewhere, then try again."
        )
    return [name for name in names if name in copies]


def prune(journal: Journal, folder: Path) -> None:
    """Drop the lines of tables that are in the lake and not in the holding folder."""
    lake = Path(journal.lake)
    live = [
        entry
        for name, entry in journal.tables.items()
        if os.path.lexists(folder / TABLES / name)
        or os.path.lexists(folder / COPIES / copy_name(name))
        or not os.path.lexists(lake / name)
    ]
    if len(live) < len(journal.tables):
        journal.replace(live)


def require_removable(path: Path) -> None:
    """Raise TableRefused where a folder could not be removed once its copy is whole."""
    for folder, _, _ in os.walk(path):
        may_change = is_own(os.stat(folder)) and folder != os.fspath(path)
        if not (os.access(folder, os.W_OK | os.X_OK) or may_change):
            raise TableRefused(f"there is no permission to change '{folder}'")


def remove_copy(path: Path) -> None:
    """Remove a copy, also where its folders cannot be written: modes are copied, too."""
    allow_changes(path)
    try:
        remove_tree(path)
    except OSError as error:
        if isinstance(error.filename, str) and not os.path.isabs(error.filename):
            error.filename = os.fspath(path)  # a tree is removed by names within its folders
        raise


def require_inside(root: Path, table: str) -> None:
    """Raise TableRefused where a step on the way to a table is a link or no folder."""
    *folders, _ = table.split("/")
    path = root
    for part in folders:
        path = path / part
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return
        except NotADirectoryError:
            mode = 0
        if stat.S_ISLNK(mode):
            raise TableRefused(f"'{path}' is a symbolic link, which may lead out of the folder")
        if not stat.S_ISDIR(mode):
            raise TableRefused(f"'{path}' is not a folder")


def links(lake: Path, tables: Iterable[str]) -> dict[Path, str]:
    """Return the tables that are symbolic links, which are never moved, by what they lead to."""
    linked_tables = {}
    for name in tables:
        path = lake / name
        if path.is_symlink():
            with contextlib.suppress(OSError, RuntimeError):
                linked_tables[path.resolve(strict=True)] = name
    return linked_tables


def reason_of(error: OSError, path: Path) -> str:
    where = error.filename if isinstance(error.filename, str) else os.fspath(path)
    shown = f"'{where}' and '{error.filename2}'" if error.filename2 else f"'{where}'"
    if error.errno in _NO_SPACE:
        return f"no space is left for {shown}"
    if error.errno in _NO_PERMISSION:
        return f"there is no permission to change {shown}"
    if error.errno == errno.EROFS:
        return f"the file system of {shown} is read-only"
    return f"{shown} cannot be moved or read: {error.strerror or error}"


def way_out(error: OSError) -> str:
    if error.errno in _NO_SPACE:
        return "free some space"
    if error.errno in (*_NO_PERMISSION, errno.EROFS):
        return "make it writable"
    return "choose another holding folder"


def _journal(folder: Path, lake: Path) -> Journal:
    journal = read_journal(folder)
    if journal is None:
        if not set(os.listdir(folder)) <= {_DRAFT}:
            raise InputError(
                f"'{folder}' holds something else than tables set aside; choose another holding "
                "folder."
            )
        journal = Journal(folder, str(lake))
        journal.replace([])
    elif journal.lake != str(lake):
        raise InputError(
            f"'{folder}' holds tables of the lake '{journal.lake}', not of '{lake}'; choose "
            "another holding folder."
        )
    elif not _read(folder / JOURNAL).endswith(b"\n"):  # a line was never finished
        journal.replace(journal.tables.values())
    return journal


def _lock(stack: contextlib.ExitStack, folder: Path, *, required: bool) -> None:
    descriptor = open_folder(folder)
    stack.callback(os.close, descriptor)
    locked = lock(descriptor, EXCLUSIVE)
    if locked is False:
        raise OutputError(
            f"Another process is moving tables of '{folder}': wait for its end, and try again."
        )
    if locked is None and required:
        raise OutputError(
            f"The file system of '{folder}' has no locks, so two processes could move the same "
            "tables: choose a holding folder on another one."
        )


def _is_within(inner: Path, outer: Path) -> bool:
    """Return whether a folder is another or lies in it, compared by what they are, not by names."""
    try:
        outer_stat = os.stat(outer)
    except OSError:
        return inner.is_relative_to(outer)
    for folder in (inner, *inner.parents):
        with contextlib.suppress(OSError):  # not there yet
            if os.path.samestat(os.stat(folder), outer_stat):
                return True
    return False
