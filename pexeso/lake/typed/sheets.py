"""Sheets of a spreadsheet file to Arrow, by calamine; called in a process of its own (`apart`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.columns import no_such_table
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.layout.conventions import repeats_header, without_total
from pexeso.lake.readers.table import MAX_COLUMNS, check_width
from pexeso.lake.typed.apart import budget_of, check_table
from pexeso.lake.typed.cells import column_array
from pexeso.lake.typed.header_rows import find_table, is_blank
from pexeso.runtime.formatting import first_line

EMPTY = "the sheet holds no cell"
NO_CELLS = "it is no sheet of cells but a chart, a dialog or a macro"


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], pa.Table | None]:
    """List the sheets of a book, or read one.

    Parameters
    ----------
    request : dict
        `path` and `bounds`; and where one is read `sheet`, its name.

    Returns
    -------
    answer, table
        ``{"sheets": [[name, reason or None], ...]}`` and None, or ``{"notes": [...]}`` and the
        columns.

    Raises
    ------
    TableReadError
        The book cannot be read, or has no such sheet.
    """
    book = _call(lambda library: library.CalamineWorkbook.from_path(request["path"]))
    if "sheet" in request:
        return _read(book, request["sheet"], budget_of(request))
    return {"sheets": [[sheet.name, _reason(book, sheet)] for sheet in book.sheets_metadata]}, None


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
    """Return why a sheet is no table; None where it is one."""
    if not _has_cells(sheet):
        return NO_CELLS
    try:
        loaded_sheet = _call(lambda _: book.get_sheet_by_name(sheet.name))
    except TableReadError as error:
        return str(error).removeprefix("{shown} ").rstrip(".")
    if loaded_sheet.start is None:
        return EMPTY
    rows = _call(lambda _: loaded_sheet.iter_rows())
    return None if any(not is_blank(value) for row in rows for value in row) else EMPTY


def _has_cells(sheet: Any) -> bool:
    return str(sheet.typ).rpartition(".")[2] == "WorkSheet"


def _read(book: Any, name: str, budget: ReadingBudget) -> tuple[dict[str, Any], pa.Table]:
    metadata = next((sheet for sheet in book.sheets_metadata if sheet.name == name), None)
    if metadata is None:
        names = [sheet.name for sheet in book.sheets_metadata]
        raise no_such_table("{shown}", "sheet", name, names)
    if not _has_cells(metadata):
        raise TableReadError(f"{{shown}} has no table in a sheet: {name!r} {NO_CELLS}.")
    sheet = _call(lambda _: book.get_sheet_by_name(name))
    if sheet.start is None:
        raise TableReadError(f"{{shown}} has no table in a sheet: {name!r} {EMPTY}.")
    check_width("{shown}", sheet.width)
    top, left = sheet.start
    # Rows before the first cell come as blank ones, columns do not come.
    rows = _call(lambda _: sheet.to_python(skip_empty_area=True))
    rows = [[None if value == "" else value for value in row] for row in rows]
    merged = [
        (first - top, start - left, last - top, end - left)
        for (first, start), (last, end) in _call(lambda _: sheet.merged_cell_ranges) or []
        if first >= top and start >= left
    ]
    table_place = find_table(rows, merged)
    if table_place is None:
        raise TableReadError(f"{{shown}} has no table in a sheet: {name!r} {EMPTY}.")
    notes = list(table_place.notes)
    if sheet.width == MAX_COLUMNS:  # where the library stops, and says nothing
        notes.append(f"the sheet is as wide as one can be: {MAX_COLUMNS:,} columns; more are cut")
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
