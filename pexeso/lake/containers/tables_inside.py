"""The tables inside a file that may hold several, and the names they have.

The name of such a table is the file's own, followed by what leads into it: ``/`` and a path in an
archive, ``#`` and the name of a sheet or of a database's table: ``file.zip/inner.csv``,
``book.xlsx#Sheet1``, ``file.zip/book.xlsx#Sheet1``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from pexeso.errors import TableReadError
from pexeso.lake.containers.archives import Archive, normalised_path
from pexeso.lake.containers.formats import format_of, reason_not_read
from pexeso.lake.readers.content import unpacked
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.typed.table import InnerTable, TypedTable
from pexeso.store.io.location import Location

_CODED = re.compile(r"[%/\\:\x00-\x1f\x7f]")

_NAMES_SHOWN = 8
"""Tables of a file that a message names."""


@dataclass(frozen=True)
class TableInside:
    """A table inside a file, or what is none.

    Attributes
    ----------
    n_bytes : int
        Of what it is read from, shared out among the tables of a book or database.
    """

    member: str
    format: str
    n_bytes: int
    reason: str | None = None


def tables_inside(source: FileSource, n_bytes: int) -> list[TableInside]:
    """List the tables inside a file, in its order, and what is none with its reason.

    Parameters
    ----------
    n_bytes : int
        Its size.
    """
    file_format = format_of(source.shown)
    if file_format is None or not file_format.holds_several:
        raise TableReadError(f"{source.shown} is no file that holds several tables.")
    if file_format.name == "archive":
        return list(_in_archive(source))
    return _in_book(source, file_format.name, n_bytes)


def read_inner(source: FileSource, name: str) -> TypedTable:
    """Read a sheet of a book, or a table of a database."""
    file_format = format_of(source.shown)
    return _module(source, file_format.name if file_format else "").read(source, name)


def inner_name(name: str) -> str:
    """Return the name of a sheet or a database's table as it stands after ``#``.

    Signs that mean something in a path, and the colon before a column, are written as in an URL.

    Examples
    --------
    >>> inner_name("Q1/Q2: %")
    'Q1%2FQ2%3A %25'
    """
    return _CODED.sub(lambda sign: f"%{ord(sign[0]):02X}", name)


class Container:
    """A file that holds several tables, opened and hashed once for all of them.

    To be closed, as a context manager. The book that a table was last taken of is held in memory.
    """

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self._archive = Archive(source)
        self._book: FileSource | None = None

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._book = None
        self._archive.close()

    def enter(self, member: str) -> tuple[FileSource, str | None]:
        """Return the file that holds the rows of a table, and the name of the table there.

        Returns
        -------
        name : str or None
            Of the sheet or table; None for a file of one table.
        """
        if member.startswith("#"):
            return self.source, unquote(member[1:])
        path = normalised_path(member[1:])
        # A '#' may be a part of a name in the archive: the longest name that is there is meant.
        ends = [len(path), *(position for position, sign in enumerate(path) if sign == "#")]
        name = self._archive.find(*(path[:end] for end in sorted(ends, reverse=True)))
        shown = f"{self.source.shown}/{name}"
        if self._book is None or self._book.shown != shown:
            self._book = None  # both would be in memory
            max_bytes, n_stored = self.source.max_bytes, self._archive.packed_bytes(name)
            data = unpacked(shown, self._archive.read(name), max_bytes, n_stored)
            inside = FileSource(shown, data=data, max_bytes=max_bytes, n_stored=n_stored)
            if name == path:
                return inside, None
            self._book = inside
        return self._book, unquote(path[len(name) + 1 :])


def split_member(path: Path | Location) -> tuple[Path | Location, str | None]:
    """Split the name of a table into the file and what leads into it.

    Returns
    -------
    member : str or None
        See `TableInside`; None where the whole name is meant.

    Examples
    --------
    >>> split_member(Path("no/such/file.csv"))[1] is None
    True
    """
    if isinstance(path, Location):
        for end in _ends_of_files(path.url):
            file = _cut(path, end)
            entry = file.look()
            if entry is not None and entry.kind == "file":
                return file, path.url[end:]
        return path, None
    text = str(path)
    # Not the methods of paths, which raise for names that no file can have.
    for end in () if os.path.exists(text) else _ends_of_files(text):
        if os.path.isfile(text[:end]):
            return Path(text[:end]), text[end:]
    return path, None


def _cut(location: Location, end: int) -> Location:
    """Return the location whose URL is the first characters of another's."""
    n_less = len(location.url) - end
    return replace(location, url=location.url[:end], path=location.path[:-n_less])


def _ends_of_files(text: str) -> Iterator[int]:
    """Yield where the name of a file that holds several tables may end, the first one first."""
    for end, sign in enumerate(text):
        if sign in "/#" and end:
            file_format = format_of(text[:end])
            if file_format is not None and file_format.holds_several:
                yield end


def _in_archive(source: FileSource) -> Iterator[TableInside]:
    with Archive(source) as archive:
        yield from _in_members(source, archive)


def _in_members(source: FileSource, archive: Archive) -> Iterator[TableInside]:
    for member in archive.members():
        path = f"/{member.name}"
        file_format = format_of(member.name)
        if member.reason is not None or file_format is None:
            reason = member.reason or reason_not_read(member.name)
            yield TableInside(path, "archive", member.n_bytes, reason)
        elif file_format.name == "archive":
            reason = "an archive inside an archive; unpack it"
            yield TableInside(path, file_format.name, member.n_bytes, reason)
        elif file_format.holds_several:
            yield from _in_member(archive, path, file_format.name, member.n_bytes)
        else:
            yield TableInside(path, file_format.name, member.n_bytes)


def _in_member(archive: Archive, path: str, kind: str, n_bytes: int) -> Iterator[TableInside]:
    try:
        source, data = archive.source, archive.read(path[1:])
        inside = FileSource(
            f"{source.shown}{path}",
            data=data,
            max_bytes=source.max_bytes,
            n_stored=archive.packed_bytes(path[1:]),
        )
        for table in _in_book(inside, kind, n_bytes):
            yield replace(table, member=f"{path}{table.member}")
    except TableReadError as error:
        yield TableInside(path, kind, n_bytes, str(error))


def _in_book(source: FileSource, kind: str, n_bytes: int) -> list[TableInside]:
    parts: list[InnerTable] = _module(source, kind).tables_in(source)
    share = n_bytes // max(1, len(parts))
    return [TableInside(f"#{inner_name(part.name)}", kind, share, part.reason) for part in parts]


def _module(source: FileSource, kind: str):
    if kind == "spreadsheet":
        from pexeso.lake.typed import spreadsheets

        return spreadsheets
    from pexeso.lake.typed import duckdb_files, sqlite

    with source.open() as stream:
        begin = stream.read(len(sqlite.MAGIC))
    if begin == sqlite.MAGIC:
        return sqlite
    if begin[8:12] == duckdb_files.MAGIC:
        return duckdb_files
    if not begin:
        raise TableReadError(f"{source.shown} is empty: it has no bytes.")
    raise TableReadError(
        f"{source.shown} is no database of SQLite or DuckDB: it does not begin like one; it may be "
        "encrypted, or the database of another program, which are not read."
    )


def only_member(source: FileSource) -> str:
    """Return the member of a file that holds one table alone."""
    tables = tables_inside(source, 0)
    readable = [table.member for table in tables if table.reason is None]
    if len(readable) == 1:
        return readable[0]
    if not readable:
        why = tables[0].reason if len(tables) == 1 else "none of them"
        raise TableReadError(f"{source.shown} holds no table that can be read: {why}.")
    names = ", ".join(repr(f"{source.shown}{member}") for member in readable[:_NAMES_SHOWN])
    more = len(readable) - _NAMES_SHOWN
    raise TableReadError(
        f"{source.shown} holds {len(readable):,} tables; name one of them: {names}"
        f"{f' and {more:,} more' if more > 0 else ''}."
    )
