"""Spreadsheets: each sheet of .xlsx, .xlsm, .xlsb, .xls and .ods files that holds a table.

calamine reads them in the sandbox: a damaged one can end its process, or keep it busy for ever. A
column whose cells are all of one kind has its type: whole numbers, floats, booleans, dates, points
of time or texts. Others are texts as a person sees them. A formula has the value that the file
keeps of it; an error such as ``#N/A`` is an empty cell; a percentage is the number. Cells merged
downwards are filled, and rows above the header and below the table are left out, each with a note.
Hidden sheets are tables like others: they often hold the lists that other sheets look up.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.cells import is_missing_word
from pexeso.lake.columns import no_such_table
from pexeso.lake.readers.conventions import (
    MIN_FULLER,
    begin_of,
    document_of,
    is_marked,
    is_sure,
    other_table,
    repeats_header,
    without_total,
)
from pexeso.lake.readers.table import MAX_COLUMNS, FileSource, ReadingBudget, check_width
from pexeso.lake.typed.sandbox import Answer, SandboxedFormat, budget_of, check_table
from pexeso.lake.typed.sheet_xml import sheet_xml
from pexeso.lake.typed.value_texts import cell_text, column_array
from pexeso.runtime.formatting import first_line

# Where a table lies in a grid of cells: its header, its rows, and what is written around it.

_ROWS_LOOKED_AT = 200
_HEADER_WITHIN = 50
_YEARS = range(1000, 3000)
_LIKELY_YEARS = range(1700, 2101)

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


def is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def find_table(rows: Sequence[Row], merged: Sequence[Merged] = ()) -> TablePlace | None:
    """Find the header row of a grid and the rows that belong to it.

    The header is the first row about as wide as the rows of the table usually are, if its cells are
    names rather than values. Titles above it, and footnotes below the last row, are left out. A row
    of units or of parts below it, or of groups above it, gives the other half of the names.

    None where all cells are empty.
    """
    grid = _Grid(rows, merged)
    if not grid.filled:
        return None
    head = grid.header()
    if not grid.is_header(head) and grid.is_header_with_gaps(head - 1, head):
        head -= 1
    notes = []
    if not grid.is_header(head):
        end = grid.end(head - 1)
        columns = grid.columns(head, end)
        notes.append("no row looks like a header: the columns have no names")
        return TablePlace([""] * len(columns), columns, head, end, notes + grid.notes(head, end))
    top, bottom = head, head
    if grid.is_second_header(head + 1, head):
        bottom = head + 1
    elif grid.is_group_row(head - 1, head):
        top = head - 1
    end = grid.end(bottom)
    columns = grid.columns(top, end)
    if top != bottom:
        notes.append("two rows are the header; names of both were joined")
    names = grid.names(top, bottom, columns)
    if (other := other_table(rows[bottom + 1 : end], names)) is not None:
        place = find_table(rows[: bottom + 1 + other[0]], merged)
        if place is not None:
            place.notes.append(other[1])
        return place
    return TablePlace(names, columns, bottom + 1, end, notes + grid.notes(top, end))


class _Grid:
    """Cells, and which of the rows hold how many."""

    def __init__(self, rows: Sequence[Row], merged: Sequence[Merged]) -> None:
        self.rows, self.merged = rows, merged
        self._begins: dict[int, set[str]] = {}
        counts = [sum(not is_blank(value) for value in row) for row in rows]
        self.counts = counts
        self.filled = [number for number, count in enumerate(counts) if count]
        sample = sorted((counts[n] for n in self.filled[:_ROWS_LOOKED_AT]), reverse=True)
        # The largest block of cells that as many rows fill.
        areas = [(count * (number + 1), count) for number, count in enumerate(sample)]
        self.usual = max(areas, default=(0, 0))[1]
        self.enough = self.usual if self.usual < 3 else self.usual - max(1, self.usual // 5)

    def header(self) -> int:
        candidates = [n for n in self.filled[:_HEADER_WITHIN] if self.counts[n] >= self.enough]
        if not candidates:
            return self.filled[0]
        first = candidates[0]
        if (whole := self._first_whole_header()) is not None and whole > first:
            return whole
        if self._stands_alone(first):
            for later in candidates[1:]:
                if self._is_all_names(later) and (
                    self.counts[later] > self.counts[first] or self._n_unlike_below(later)
                ):
                    return later
                if not self._stands_alone(later):
                    break
        return first

    def _first_whole_header(self) -> int | None:
        """Return the first row of names for all columns, below facts such as a date and an author.

        None where there is none, or a row above it names columns as well.
        """
        for number in self.filled[:_HEADER_WITHIN]:
            is_all_names = self._is_all_names(number)
            n_unlike = self._n_unlike_below(number) if is_all_names else 0
            if self.counts[number] >= self.usual > 2:
                return number if n_unlike else None
            if 2 * n_unlike >= self.counts[number] or (n_unlike and self.counts[number] > 2):
                return None
        return None

    def is_header_with_gaps(self, number: int, head: int) -> bool:
        """Return whether the row above the first of the table names some of its columns."""
        if number < 0 or self.counts[number] < 2 or not self._is_all_names(number):
            return False
        return self._n_unlike_below(number) > 0 and all(
            is_blank(above) or not is_blank(below)
            for above, below in zip(self.rows[number], self.rows[head], strict=True)
        )

    def _stands_alone(self, number: int) -> bool:
        """Return whether what follows a row is blank, or narrower where the row is narrow too."""
        if number + 1 >= len(self.rows):
            return False
        below = self.counts[number + 1]
        return below == 0 or (self.counts[number] < self.usual and below < self.enough)

    def is_header(self, number: int) -> bool:
        if self._is_all_texts(number):
            return True
        names, values = 0, 0
        for column, value in enumerate(self.rows[number]):
            below = self._below(number, column)
            if is_blank(value) or not below:
                continue
            below_is_text = sum(isinstance(cell, str) for cell in below) > 0.2 * len(below)
            names += isinstance(value, str) and not below_is_text
            values += not isinstance(value, str) and not below_is_text
        return names > values

    def _is_all_names(self, number: int) -> bool:
        return all(is_blank(value) or isinstance(value, str) for value in self.rows[number])

    def _is_sequence(self, number: int) -> bool:
        """Return whether all that is no text are years, dates or numbers that go up or down."""
        others = [v for v in self.rows[number] if not is_blank(v) and not isinstance(v, str)]
        kinds = {type(value) for value in others}
        if len(others) < 2:
            return False
        if kinds <= {datetime.date, datetime.datetime}:
            moments = [cell_text(value) for value in others]
            return moments in (sorted(set(moments)), sorted(set(moments), reverse=True))
        if not kinds <= {int, float} or not all(float(value).is_integer() for value in others):
            return False
        numbers = [int(value) for value in others]
        if all(value in _YEARS for value in numbers):
            return numbers in (sorted(set(numbers)), sorted(set(numbers), reverse=True))
        return len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    def _below(self, number: int, column: int) -> list[object]:
        rows = self.rows[number + 1 : number + 1 + _HEADER_WITHIN]
        return [row[column] for row in rows if not is_blank(row[column])]

    def _is_unlike_below(self, number: int, column: int) -> bool:
        value = self.rows[number][column]
        if is_blank(value) or not isinstance(value, str):
            return False
        word = value.strip().lower()
        if is_missing_word(word) or not any(map(str.isalpha, word)):
            return False
        below = self._below(number, column)
        return bool(below) and sum(isinstance(cell, str) for cell in below) <= 0.2 * len(below)

    def _n_unlike_below(self, number: int) -> int:
        return sum(self._is_unlike_below(number, c) for c in range(len(self.rows[number])))

    def _names_years(self, number: int) -> bool:
        """Return whether all that is no text are years, and what is below them mostly is not."""
        row = self.rows[number]
        columns = [c for c, v in enumerate(row) if not is_blank(v) and not isinstance(v, str)]
        if not columns or not all(_is_year(row[c]) for c in columns):
            return False
        below = [cell for c in columns for cell in self._below(number, c)]
        return 4 * sum(map(_is_year, below)) < len(below)

    def is_second_header(self, number: int, head: int) -> bool:
        """Return whether the row below the header is a header too: of units, or of parts."""
        if number >= len(self.rows) or not self.counts[number]:
            return False
        if not self._is_all_names(number):
            return self._is_all_texts(head) and self._are_years_of_groups(number, head)
        unlike = self._n_unlike_below(number)
        return 2 * unlike >= self.counts[number] and unlike > 0 and self._is_all_texts(head)

    def _are_years_of_groups(self, number: int, head: int) -> bool:
        """Return whether a row has years, also where the name of a group above it goes on."""
        pairs = zip(self.rows[head], self.rows[number], strict=True)
        goes_on = any(is_blank(above) and not is_blank(below) for above, below in pairs)
        return goes_on and self._names_years(number)

    def _is_all_texts(self, number: int) -> bool:
        return self._is_all_names(number) or self._is_sequence(number) or self._names_years(number)

    def is_group_row(self, number: int, head: int) -> bool:
        """Return whether the row above the header names groups of its columns."""
        if number < 0 or not self.counts[number] or not self._is_all_texts(number):
            return False
        filled = [c for c, value in enumerate(self.rows[head]) if not is_blank(value)]
        spans = self._spans(number)
        if any(last - first + 1 < len(filled) for first, last in spans.values()):
            return True
        texts = [cell_text(self.rows[head][column]).strip() for column in filled]
        return self.counts[number] > 1 and len(set(texts)) < len(texts)

    def _spans(self, number: int) -> dict[int, tuple[int, int]]:
        return {
            left: (left, right)
            for top, left, _, right in self.merged
            if top == number and right > left and left < len(self.rows[number])
        }

    def names(self, top: int, bottom: int, columns: list[int]) -> list[str]:
        lower = [_name(self.rows[bottom][column]) for column in columns]
        if top == bottom:
            return lower
        upper = [_name(self.rows[top][column]) for column in columns]
        spans = self._spans(top)
        reach = {
            column: _name(self.rows[top][left])
            for left, right in spans.values()
            for column in range(left, min(right + 1, len(self.rows[top])))
        }
        current, names = "", []
        for column, above, below in zip(columns, upper, lower, strict=True):
            current = above or ("" if spans else current)
            group = reach.get(column) or (current if below else above)
            names.append(" ".join(filter(None, (group, below))))
        return names

    def end(self, head: int) -> int:
        """Return the row after the last one of the table: footnotes do not belong to it."""
        last = self.filled[-1]
        end = last + 1
        if self.usual < 2:
            return end
        number = last
        table = [row for row in self.filled if row > head]
        n_above, n_fuller = len(table), sum(self.counts[row] > 1 for row in table)
        while number > head + 1 and self.counts[number] <= 1:
            column = next((c for c, v in enumerate(self.rows[number]) if not is_blank(v)), None)
            n_above -= column is not None
            are_fuller = n_fuller >= MIN_FULLER * n_above
            if column is None:
                end = number if are_fuller else end
            elif self._is_note(number, column, head) and (
                are_fuller or is_sure(str(self.rows[number][column]))
            ):
                end = number
            elif not isinstance(self.rows[number][column], str):
                break
            number -= 1
        return max(end, head + 1)

    def _is_note(self, number: int, column: int, head: int) -> bool:
        """Return whether the one cell of a row begins like a note; names may begin so too.

        Where a blank row comes before it, all that follows that row is left out anyway.
        """
        text = self.rows[number][column]
        if not isinstance(text, str):
            return False
        if column not in self._begins:
            wide = (n for n in reversed(self.filled) if self.counts[n] > 1 and n > head)
            cells = (self.rows[n][column] for n in islice(wide, _ROWS_LOOKED_AT))
            self._begins[column] = {begin_of(cell) for cell in cells if isinstance(cell, str)}
        return is_marked(text, self._begins[column], is_like_a_row=True)

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


def _is_year(value: object) -> bool:
    return type(value) in (int, float) and float(value).is_integer() and int(value) in _LIKELY_YEARS


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
    repeats = [repeats_header(row, table_place.names) for row in cells]
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
