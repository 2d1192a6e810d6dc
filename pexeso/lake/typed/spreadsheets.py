"""Spreadsheets: each sheet of .xlsx, .xlsm, .xlsb, .xls and .ods files that holds a table.

calamine reads them in the sandbox: a damaged one can end its process, or keep it busy for ever. A
column whose cells are all of one kind has its type: whole numbers, floats, booleans, dates, points
of time or texts. Others are texts as a person sees them. A formula has the value that the file
keeps of it; an error such as ``#N/A`` is an empty cell; a percentage is the number. Cells merged
downwards are filled, and rows above the header and below the table are left out, each with a note.
Hidden sheets are tables like others: they often hold the lists that other sheets look up.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.columns import no_such_table
from pexeso.lake.readers.beginning import join_header, table_beginning
from pexeso.lake.readers.conventions import (
    document_of,
    other_table,
    repeats_header,
    rows_below,
    without_total,
)
from pexeso.lake.readers.table import MAX_COLUMNS, FileSource, ReadingBudget, check_width
from pexeso.lake.typed.sandbox import Answer, SandboxedFormat, budget_of, check_table
from pexeso.lake.typed.sheet_xml import sheet_xml
from pexeso.lake.typed.value_texts import cell_text, column_array
from pexeso.runtime.formatting import first_line

# Where a table lies in a grid of cells: its header, its rows, and what is written around it.

_ROWS_LOOKED_AT, _ROWS_OF_BEGIN, _FEW_VALUES = 200, 50, 2

Row = Sequence[object]
# First row, first column, last row, last column of cells that were merged into one.
Merged = tuple[int, int, int, int]


@dataclass(frozen=True)
class TablePlace:
    names: list[str]
    columns: list[int]
    first: int
    end: int
    notes: list[str] = field(default_factory=list)
    header: list[list[str]] = field(default_factory=list)


def is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def find_table(rows: Sequence[Row], merged: Sequence[Merged] = ()) -> TablePlace | None:
    """Find the header row of a grid and the rows that belong to it.

    The header is that of a text with these cells; a name of merged cells is that of each column.
    Footnotes below the last row are left out. None where all cells are empty.
    """
    grid = _Grid(rows)
    if not grid.filled:
        return None
    texts = grid.texts(grid.filled[:_ROWS_OF_BEGIN], _FEW_VALUES)
    gaps = (after - 1 for before, after in pairwise(grid.filled) if after - before > 1)
    numbered, min_width = list(zip(grid.filled, texts, strict=False)), min(2, max(map(len, texts)))
    beginning = table_beginning(numbered, gap=next(gaps, 0), min_width=min_width)
    heads = [n for n in grid.filled if n >= beginning.n_lines][: beginning.n_header_rows]
    first = heads[-1] + 1 if heads else beginning.n_lines
    end = grid.filled[-1] + 1
    last_rows = grid.texts(range(max(first, end - _ROWS_LOOKED_AT), end))
    end = max(first, end - rows_below(last_rows, max(map(len, last_rows), default=0)))
    columns = grid.columns(beginning.n_lines, end)
    notes = grid.notes(beginning.n_lines, end)
    names, named = [""] * len(columns), []
    if heads:
        header = {number: list(map(_name, rows[number])) for number in heads}
        for top, left, _, right in merged:
            if top in heads[:-1]:
                cells = header[top]
                cells[left : right + 1] = [cells[left]] * (min(right + 1, len(cells)) - left)
        named = [[cells[column] for column in columns] for cells in header.values()]
        names = join_header(named, len(columns)) if heads[1:] else named[0]
    else:
        notes.insert(0, "no row looks like a header: the columns have no names")
    if heads[1:]:
        notes.insert(0, f"the header has {len(heads)} rows: their names were joined")
    if names and (other := other_table(rows[first:end], names)) is not None:
        place = find_table(rows[: first + other[0]], merged)
        if place is not None:
            place.notes.append(other[1])
        return place
    return TablePlace(names, columns, first, end, notes, named)


class _Grid:
    """Cells, and which of the rows hold how many."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.counts = [sum(not is_blank(value) for value in row) for row in rows]
        self.filled = [number for number, count in enumerate(self.counts) if count]

    def texts(self, numbers: Iterable[int], n_few: int = 0) -> list[list[str]]:
        """Return rows as those of a text: some end with the last of their values.

        They have few values, or one below a blank row.
        """
        columns = self.columns(0, len(self.rows))
        texts = []
        for number in numbers:
            cells = [_name(self.rows[number][column]) for column in columns]
            limit = max(n_few, number > 0 and not self.counts[number - 1])
            while cells and not cells[-1] and self.counts[number] <= limit:
                cells.pop()
            texts.append(cells)
        return texts

    def columns(self, top: int, end: int) -> list[int]:
        seen: set[int] = set()
        width = len(self.rows[top])
        for row in self.rows[top:end]:
            if len(seen) == width:
                break
            seen.update(c for c, value in enumerate(row) if c not in seen and not is_blank(value))
        return sorted(seen)

    def notes(self, top: int, end: int) -> list[str]:
        above = sum(number < top for number in self.filled)
        below = sum(number >= end for number in self.filled)
        notes = [f"rows above the header were left out: {above:,}"] if above else []
        return notes + ([f"rows below the table were left out: {below:,}"] if below else [])


def _name(value: object) -> str:
    return "" if is_blank(value) else " ".join(cell_text(value).split())


_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_MAX_MEMBERS = 100_000
_DIRECTORY_BYTES, _START_BYTES = 1 << 20, 64
# How texts begin, with a byte order mark or without.
_TEXT = re.compile(rb"[\t\r\n\x20-\x7e]+|\xef\xbb\xbf.+|\xff\xfe.+", re.DOTALL)
_PARTS = {
    "xl/workbook.bin": ".xlsb",
    "xl/workbook.xml": ".xlsx",
    "content.xml": ".ods",
    "[content_types].xml": ".xlsx",  # the workbook may have another name
}
_EMPTY = "the sheet holds no cell"
_NO_CELLS = "it is no sheet of cells but a chart, a dialog or a macro"


@contextmanager
def _book(source: FileSource, path: Path) -> Iterator[tuple[str, int]]:
    with tempfile.TemporaryDirectory(prefix="pexeso-") as folder:
        extension, n_bytes = _check(source, path)
        # calamine goes by the extension, and says what is wrong only where that is right.
        link = os.path.join(folder, "book" + extension)
        try:
            os.symlink(path.resolve(), link)
        except OSError:  # Windows lets few users make one
            shutil.copyfile(path, link)
        yield link, n_bytes


SHEETS = SandboxedFormat(__name__, _book)


def _check(source: FileSource, path: Path) -> tuple[str, int]:
    with open(path, "rb") as stream:
        start = stream.read(_START_BYTES)
        if start[:4] == b"PK\x03\x04":
            return _packed(source, stream)
        if start.startswith(_COMPOUND):
            if _ENCRYPTED in stream.read(_DIRECTORY_BYTES):
                raise TableReadError(
                    f"{source.shown} is protected by a password; save it without one to have it "
                    "read."
                )
            return ".xls", path.stat().st_size
    if not start:
        raise TableReadError(f"{source.shown} is empty: it has no bytes.")
    encoding = "utf-16" if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8"
    what = document_of(start.decode(encoding, "ignore"))
    reason = "it starts like none"
    if what is not None:
        reason = f"it holds {what}; save it as .xlsx"
    elif _TEXT.fullmatch(start[: len(_COMPOUND)]):
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


def answer(request: dict[str, Any]) -> Answer:
    book = _call(lambda library: library.CalamineWorkbook.from_path(request["path"]))
    if "table" in request:
        return _read(book, request["path"], request["table"], budget_of(request))
    return {"tables": [[sheet.name, _reason(book, sheet)] for sheet in book.sheets_metadata]}, None


def _call(function: Any) -> Any:
    """Call calamine, and have one kind of error of it."""
    import python_calamine

    try:
        return function(python_calamine)
    except python_calamine.PasswordError as error:
        raise TableReadError(
            "{shown} is protected by a password; save it without one to have it read."
        ) from error
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise TableReadError(
            f"{{shown}} is no readable spreadsheet: {first_line(error)}."
        ) from error


def _reason(book: Any, sheet: Any) -> str | None:
    if not _has_cells(sheet):
        return _NO_CELLS
    try:
        loaded_sheet = _call(lambda _: book.get_sheet_by_name(sheet.name))
    except TableReadError as error:
        return str(error).removeprefix("{shown} ").rstrip(".")
    if loaded_sheet.start is None:
        return _EMPTY
    rows = _call(lambda _: loaded_sheet.iter_rows())
    return None if any(not is_blank(value) for row in rows for value in row) else _EMPTY


def _has_cells(sheet: Any) -> bool:
    return str(sheet.typ).rpartition(".")[2] == "WorkSheet"


def _read(
    book: Any, path: str, name: str, budget: ReadingBudget
) -> tuple[dict[str, Any], pa.Table]:
    metadata = next((sheet for sheet in book.sheets_metadata if sheet.name == name), None)
    if metadata is None:
        names = [sheet.name for sheet in book.sheets_metadata]
        raise no_such_table("{shown}", "sheet", name, names)
    if not _has_cells(metadata):
        raise TableReadError(f"{{shown}} has no table in a sheet: {name!r} {_NO_CELLS}.")
    sheet = _call(lambda _: book.get_sheet_by_name(name))
    if sheet.start is None:
        raise TableReadError(f"{{shown}} has no table in a sheet: {name!r} {_EMPTY}.")
    check_width("{shown}", sheet.width)
    top, left = sheet.start
    # Rows before the first cell come as blank ones, columns do not come.
    rows = _call(lambda _: sheet.to_python(skip_empty_area=True))
    rows = [[None if value == "" else value for value in row] for row in rows]
    formats, n_without_value = sheet_xml(path, name)
    for (row, column), code_format in formats.items():
        if 0 <= row - top < len(rows) and 0 <= column - left < len(rows[row - top]):
            value = rows[row - top][column - left]
            rows[row - top][column - left] = code_format.text(value) or value
    merged = [
        (first - top, start - left, last - top, end - left)
        for (first, start), (last, end) in _call(lambda _: sheet.merged_cell_ranges) or []
        if first >= top and start >= left
    ]
    table_place = find_table(rows, merged)
    if table_place is None:
        raise TableReadError(f"{{shown}} has no table in a sheet: {name!r} {_EMPTY}.")
    notes = list(table_place.notes)
    if sheet.width == MAX_COLUMNS:  # where the library stops, and says nothing
        notes.append(f"the sheet is as wide as one can be: {MAX_COLUMNS:,} columns; more are cut")
    if n_without_value:
        notes.append(
            "formulas of which the file keeps no value were read as empty cells: "
            f"{n_without_value:,}; open and save it in a program that calculates"
        )
    if str(metadata.visible).rpartition(".")[2] != "Visible":
        notes.append("the sheet is hidden")
    if n_filled := _fill_down(rows, merged, table_place.first, table_place.end):
        notes.append(f"cells merged with the one above were given its value: {n_filled:,}")
    body = [row for row in rows[table_place.first : table_place.end] if not all(map(is_blank, row))]
    del rows
    cells = ([row[column] for column in table_place.columns] for row in body)
    repeats = [any(repeats_header(row, names) for names in table_place.header) for row in cells]
    if any(repeats):
        body = [row for row, is_header in zip(body, repeats, strict=True) if not is_header]
        notes.append(f"rows that repeat the header were left out: {sum(repeats):,}")
    table = _table(body, table_place.names, table_place.columns, budget)
    columns = [column.combine_chunks() for column in table.columns]
    table = pa.Table.from_arrays(without_total(columns, notes), names=table.column_names)
    return {"notes": notes}, table


def _fill_down(rows: list[list[object]], merged: list[Any], first: int, end: int) -> int:
    """Copy the value of a merged cell to the rows below that it spans; return how many got it.

    A person reads it as belonging to each of these rows, and a join needs it there. Columns to the
    right of it stay empty: they have meanings of their own.
    """
    n_filled = 0
    for top, column, bottom, _ in merged:
        if not first <= top < end or column >= len(rows[top]):
            continue
        value = rows[top][column]
        for number in range(top + 1, min(bottom + 1, end) if value is not None else 0):
            if rows[number][column] is None:
                rows[number][column] = value
                n_filled += 1
    return n_filled


def _table(
    body: list[list[object]], names: list[str], columns: list[int], budget: ReadingBudget
) -> pa.Table:
    arrays, n_bytes = [], 0
    for column in columns:
        arrays.append(column_array([row[column] for row in body]))
        n_bytes += arrays[-1].nbytes
        check_table(budget, n_bytes, len(body), len(columns))
    names = [name.encode("utf-8", "replace").decode() for name in names]
    return pa.Table.from_arrays(arrays, names=names)
