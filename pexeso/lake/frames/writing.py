"""Write an Arrow table to a file, in the format that its name asks for."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from pexeso.errors import OutputError
from pexeso.runtime.extras import require
from pexeso.runtime.formatting import WRITTEN_END, RowEnds
from pexeso.store.io.temporary import written_whole

if TYPE_CHECKING:
    import pyarrow as pa

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
# What Arrow raises for a type, or a cell, that Parquet has nothing for; OSError for disks, too.
NOT_FOR_PARQUET = (NotImplementedError, ValueError, OSError)
_ROWS_A_BATCH = 1 << 14
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?")


def write_file(
    table: pa.Table,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    escape_formulas: bool = False,
) -> None:
    """Write a table to a file, whole or not at all.

    Lists become JSON texts in CSV and workbooks, and dates texts. Other formats keep the types that
    the table has.
    """
    name = os.fspath(path).lower()
    write = next(writer for ending, writer in WRITERS.items() if name.endswith(ending))
    with written_whole(path, overwrite=overwrite) as temporary:
        write(table, temporary, escape_formulas)


def without_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    Plain numbers stay as they are.
    """
    is_formula = (
        isinstance(cell, str) and cell.startswith(FORMULA_STARTS) and not _NUMBER.fullmatch(cell)
    )
    return f"'{cell}" if is_formula else cell


def csv_text(table: pa.Table, *, escape_formulas: bool = False) -> str:
    text = io.StringIO()
    write_csv(table, text, escape_formulas=escape_formulas)
    return text.getvalue()


def write_csv(table: pa.Table, stream: TextIO, *, escape_formulas: bool = False) -> None:
    from pexeso.lake.frames.tables import csv_cells

    change = without_formula if escape_formulas else None
    writer = csv.writer(RowEnds(stream.write), lineterminator=WRITTEN_END)
    writer.writerow([change(name) for name in table.column_names] if change else table.column_names)
    for start in range(0, len(table), _ROWS_A_BATCH):
        columns = []
        for column in table.slice(start, _ROWS_A_BATCH).columns:
            cells, is_number = csv_cells(column)
            columns.append(cells if is_number or change is None else map(change, cells))
        writer.writerows(zip(*columns, strict=True))


def _write_csv(table: pa.Table, path: Path | BinaryIO, escape_formulas: bool) -> None:
    binary = path.open("wb") if isinstance(path, Path) else nullcontext(path)
    with binary as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        write_csv(table, text, escape_formulas=escape_formulas)
        text.detach()  # flushed, and the stream of others stays open


def _write_parquet(table: pa.Table, path: Path | BinaryIO, escape_formulas: bool) -> None:
    import pyarrow.parquet as pq

    try:
        pq.write_table(table, path)
    except NOT_FOR_PARQUET as error:
        for at, field in enumerate(table.schema):
            if not fits_parquet(table.select([at])):
                raise OutputError(
                    f"A Parquet file cannot hold the column {field.name!r}, of the type "
                    f"{field.type}. Write the table to a .csv, .arrow or .feather file."
                ) from error
        raise


def fits_parquet(table: pa.Table) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.write_table(table, pa.MockOutputStream())
    except NOT_FOR_PARQUET:
        return False
    return True


def _write_feather(table: pa.Table, path: Path | BinaryIO, escape_formulas: bool) -> None:
    import pyarrow.feather as feather

    feather.write_feather(table, path)


MAX_SHEET_ROWS, MAX_SHEET_COLUMNS, MAX_SHEET_TEXT = 1 << 20, 1 << 14, (1 << 15) - 1
MAX_SHEET_INTEGER = 10**15  # A sheet holds float64, and shows 15 digits.


def _write_excel(table: pa.Table, path: Path | BinaryIO, escape_formulas: bool) -> None:
    """Write one sheet; texts stay texts, never formulas or links."""
    xlsxwriter = require("xlsxwriter", "Writing a workbook")
    if len(table) >= MAX_SHEET_ROWS or table.num_columns > MAX_SHEET_COLUMNS:
        raise OutputError(
            f"A sheet of a workbook holds {MAX_SHEET_ROWS - 1:,} rows below its header and "
            f"{MAX_SHEET_COLUMNS:,} columns, and the table has {len(table):,} and "
            f"{table.num_columns:,}. Write it to a .csv or .parquet file."
        )
    texts = {"strings_to_numbers": False, "strings_to_formulas": False, "strings_to_urls": False}
    try:
        with xlsxwriter.Workbook(path, {**texts, "constant_memory": True}) as workbook:
            sheet = workbook.add_worksheet()
            bold = workbook.add_format({"bold": True})
            for place, name in enumerate(table.column_names):
                sheet.write_string(0, place, name[:MAX_SHEET_TEXT], bold)
            for start in range(0, len(table), _ROWS_A_BATCH):
                columns = [
                    _sheet_cells(name, column)
                    for name, column in zip(
                        table.column_names, table.slice(start, _ROWS_A_BATCH).columns, strict=True
                    )
                ]
                for row, cells in enumerate(zip(*columns, strict=True), start + 1):
                    sheet.write_row(row, 0, cells)
    except xlsxwriter.exceptions.FileCreateError as error:
        raise error.args[0] from error  # what the system said


def _sheet_cells(name: str, column: pa.ChunkedArray) -> list[Any]:
    from pexeso.lake.frames.tables import csv_cells

    cells, is_number = csv_cells(column)
    if is_number:
        return [
            cell if cell is None else number if abs(number) < MAX_SHEET_INTEGER else str(cell)
            for number, cell in zip(column.to_pylist(), cells, strict=True)
        ]
    for cell in cells:
        if cell is not None and len(str(cell)) > MAX_SHEET_TEXT:
            raise OutputError(
                f"A cell of a workbook holds {MAX_SHEET_TEXT:,} characters, and the column "
                f"{name!r} has one of {len(str(cell)):,}. Write the table to a .csv or .parquet "
                "file."
            )
    return cells


# What writes a table to a file or an open stream of bytes, by the ending of the file's name.
WRITERS: dict[str, Callable[[pa.Table, Path | BinaryIO, bool], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_feather,
    ".feather": _write_feather,
    ".xlsx": _write_excel,
}
