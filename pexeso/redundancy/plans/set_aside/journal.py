"""The journal of a holding folder: one line for each table in it, added before the table moves.

The first line names the lake. A line that a killed process left unfinished is dropped. Where a
table is, its files say: one that is in the lake and not in the holding folder has not moved, or is
back, and its line no longer counts.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from pexeso.errors import InputError
from pexeso.redundancy.plans.plan import require_table
from pexeso.store.files import sync_folder

JOURNAL = "journal"
_DRAFT = "journal.draft"
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_BYTES = 1 << 30
_FORMAT, _VERSION = "pexeso-holding", 1


@dataclass(frozen=True)
class HeldTable:
    """A table in a holding folder.

    Attributes
    ----------
    bytes
        Size, as the plan says.
    """

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
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | _PLAIN)
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
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666)
        try:
            _write(descriptor, _line(header) + b"".join(_line(asdict(entry)) for entry in tables))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, self._path)
        sync_folder(self._path.parent)
        self.tables = {entry.table: entry for entry in tables}


def read_journal(folder: Path) -> Journal | None:
    """Read the journal of a holding folder; None for a folder that has none.

    Nothing is written: it may be read while another process moves tables.
    """
    path = folder / JOURNAL
    try:
        data = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    lines = data.split(b"\n")[:-1]  # what stands after the last line feed was never finished
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


def is_unfinished(folder: Path) -> bool:
    """Return whether the last line of the journal was left unfinished by a killed process."""
    return not _read(folder / JOURNAL).endswith(b"\n")


def may_become_holding(names: Iterable[str]) -> bool:
    """Return whether a folder with these names is new, or was left so by a killed process."""
    return set(names) <= {_DRAFT}


def _read(path: Path) -> bytes:
    """Return the bytes of a plain file that is no link; a pipe keeps nobody waiting."""
    with open(os.open(path, os.O_RDONLY | _PLAIN), "rb") as file:
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
