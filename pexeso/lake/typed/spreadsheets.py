"""Spreadsheets: each sheet of .xlsx, .xlsm, .xlsb, .xls and .ods files that holds a table.

They are read in a process of their own: a damaged one can end it, or keep it busy for ever.
"""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.typed.apart import batches, bounds, read_apart
from pexeso.lake.typed.table import InnerTable, TypedTable
from pexeso.runtime.formatting import first_line

_READER = "pexeso.lake.typed.sheets"
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_MAX_MEMBERS = 100_000
_DIRECTORY_BYTES = 1 << 20
_NAMED = {
    b"<htm": "HTML",
    b"<!do": "HTML",
    b"<?xm": "XML",
    b"%pdf": "PDF",
    b"{\\rt": "rich text",
}
_TEXT = re.compile(rb"[\t\r\n\x20-\x7e]+|\xef\xbb\xbf.+|\xff\xfe.+", re.DOTALL)
"""How texts begin, with a byte order mark or without."""
_PARTS = {
    "xl/workbook.bin": ".xlsb",
    "xl/workbook.xml": ".xlsx",
    "content.xml": ".ods",
    "[content_types].xml": ".xlsx",  # the workbook may have another name
}


def tables_in(source: FileSource) -> list[InnerTable]:
    """List the sheets of a spreadsheet, in the order of the book.

    Hidden sheets are tables like others: they often hold the lists that other sheets look up.

    Parameters
    ----------
    source : FileSource
        The file.

    Returns
    -------
    list of InnerTable
        Sheets without a cell, charts and macros have a reason why they are no table.

    Raises
    ------
    TableReadError
        It is damaged, encrypted, too large or no spreadsheet.
    PlaceError
        Its storage breaks off.
    """
    listing, _ = _answer(source, {})
    return [InnerTable(name, reason) for name, reason in listing["sheets"]]


def read(source: FileSource, name: str) -> TypedTable:
    """Read one sheet.

    A column whose cells are all of one kind has its type: whole numbers, floats, booleans, dates,
    points of time or texts. Others are texts as a person sees them. A formula has the value that
    the file keeps of it; an error such as ``#N/A`` is an empty cell; a percentage is the number.
    Cells merged downwards are filled, and rows above the header and below the table are left out,
    each with a note.

    Memory: the table, and in a process of its own up to 2 GiB and 64 bytes for each byte of the
    file unpacked.
    """
    answer, table = _answer(source, {"sheet": name})
    if table is None:
        raise TableReadError(f"{source.shown} has no table in a sheet: {name!r}.")
    return TypedTable(table.column_names, table.schema.types, batches(table), answer["notes"])


def _answer(
    source: FileSource, request: dict[str, object]
) -> tuple[dict[str, Any], pa.Table | None]:
    with source.local_path() as path, tempfile.TemporaryDirectory(prefix="pexeso-") as folder:
        extension, n_bytes = _check(source, path)
        # calamine goes by the extension, and says what is wrong only where that is right.
        link = os.path.join(folder, "book" + extension)
        os.symlink(path.resolve(), link)
        budget = source.budget()
        request = {"path": link, "bounds": bounds(budget), **request}
        return read_apart(budget, _READER, request, n_bytes=n_bytes)


def _check(source: FileSource, path: Path) -> tuple[str, int]:
    """Return the right extension of a book, and its bytes unpacked as it says itself."""
    with open(path, "rb") as stream:
        start = stream.read(8)
        if start[:4] == b"PK\x03\x04":
            return _packed(source, stream)
        if start == _COMPOUND:
            if _ENCRYPTED in stream.read(_DIRECTORY_BYTES):
                raise TableReadError(
                    f"{source.shown} is protected by a password; save it without one to have it "
                    "read."
                )
            return ".xls", path.stat().st_size
    if not start:
        raise TableReadError(f"{source.shown} is empty: it has no bytes.")
    what = next((name for mark, name in _NAMED.items() if start.lower().startswith(mark)), None)
    reason = "it starts like none"
    if what is not None:
        reason = f"it holds {what}; save it as .xlsx"
    elif _TEXT.fullmatch(start):
        reason = "it holds text; call it .csv to have it read"
    raise TableReadError(f"{source.shown} is no readable spreadsheet: {reason}.")


def _packed(source: FileSource, stream: BinaryIO) -> tuple[str, int]:
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError) as error:
        raise TableReadError(
            f"{source.shown} is no readable spreadsheet: {first_line(error)}."
        ) from error
    if len(members) > _MAX_MEMBERS:
        raise TableReadError(
            f"{source.shown} is packed of {len(members):,} files; a spreadsheet has at most "
            f"{_MAX_MEMBERS:,}."
        )
    n_bytes = sum(member.file_size for member in members)
    source.budget().check_unpacked(n_bytes)
    names = {member.filename.lower() for member in members}
    extension = next((end for name, end in _PARTS.items() if name in names), None)
    if extension is None:
        raise TableReadError(
            f"{source.shown} is no readable spreadsheet: it is an archive without a workbook."
        )
    return extension, n_bytes
