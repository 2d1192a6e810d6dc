"""Write an Arrow table to a file, in the format that its name asks for."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from pexeso.errors import OutputError
from pexeso.runtime.formatting import cell_text
from pexeso.store.io.csv_rows import WRITTEN_END, RowEnds
from pexeso.store.io.plain_json import json_line, plain_json
from pexeso.store.io.whole_files import written_whole

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NOT_FOR_PARQUET = (NotImplementedError, ValueError, OSError)
"""What Arrow raises for a type, or a cell, that Parquet has nothing for; OSError for disks, too."""
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*([eE][+-]?[0-9]+)?")


def write_file(
    table: pa.Table,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    escape_formulas: bool = False,
) -> None:
    """Write a table to a file, whole or not at all.

    Lists become JSON texts in CSV. Other formats keep the types that the table has.
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
    """Return a table as CSV, with a header: see `write_file`."""
    text = io.StringIO()
    write_csv(table, text, escape_formulas=escape_formulas)
    return text.getvalue()


def write_csv(table: pa.Table, stream: TextIO, *, escape_formulas: bool = False) -> None:
    """Write a table to an open stream of text as CSV, with a header: see `write_file`."""
    frame = _csv_frame(table, escape_formulas=escape_formulas)
    frame.to_csv(RowEnds(stream.write), index=False, lineterminator=WRITTEN_END)


def _csv_frame(table: pa.Table, *, escape_formulas: bool) -> pd.DataFrame:
    """Return a table as it is written as CSV: lists as JSON texts, dates and the like as texts."""
    import pandas as pd
    import pyarrow as pa

    texts = {at: _cell_texts(column) for at, column in enumerate(table.columns)}
    apart = {at: cells for at, cells in texts.items() if cells is not None}
    for at in apart:  # what holds their places is cheap to convert
        table = table.set_column(at, table.column_names[at], pa.nulls(len(table)))
    frame = table.to_pandas(types_mapper=_nullable)
    for at, cells in apart.items():
        frame.isetitem(at, pd.Series(cells, dtype=object))
    return _without_formulas(frame) if escape_formulas else frame


def _cell_texts(column: pa.ChunkedArray) -> list[str | None] | None:
    """Return the cells of a column that pandas would refuse, or write otherwise, as texts."""
    import pyarrow as pa

    if (texts := texts_of_values(column)) is not None:
        return texts
    types = pa.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_nested(kind) or types.is_interval(kind):
        return [
            None if cell is None else json_line(plain_json(cell)) for cell in column.to_pylist()
        ]
    if _holds_bytes(kind):
        return [None if cell is None else cell_text(cell) for cell in column.to_pylist()]
    return None


def texts_of_values(column: pa.ChunkedArray) -> list[str | None] | None:
    """Return dates, times and decimals as the texts that they are read as; None of other types."""
    import pyarrow as pa

    from pexeso.lake.typed.text import as_text

    types = pa.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    is_time = types.is_temporal(kind) and not types.is_interval(kind)  # these have no text
    if not (is_time or types.is_decimal(kind)):
        return None
    return [text for chunk in column.chunks for text in as_text(chunk).to_pylist()]


def _nullable(kind: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
    """Return the pandas type of whole numbers and truth values, of which some may be missing."""
    import pandas as pd
    import pyarrow as pa

    from pexeso.lake.frames.in_pandas import whole_number_type

    return pd.BooleanDtype() if pa.types.is_boolean(kind) else whole_number_type(kind)


def _holds_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    is_bytes = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(predicate(kind) for predicate in is_bytes)


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before texts that a spreadsheet would run, names of columns among them."""
    import pandas as pd

    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if not pd.api.types.is_numeric_dtype(column):
            frame.isetitem(position, column.map(without_formula))
    return frame.set_axis([without_formula(name) for name in frame.columns], axis=1)


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
    except _NOT_FOR_PARQUET as error:
        for at, field in enumerate(table.schema):
            if not _fits_parquet(table.select([at])):
                raise OutputError(
                    f"A Parquet file cannot hold the column {field.name!r}, of the type "
                    f"{field.type}. Write the table to a .csv, .arrow or .feather file."
                ) from error
        raise


def _fits_parquet(table: pa.Table) -> bool:
    """Return whether Parquet has something for all types and cells; nothing is written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.write_table(table, pa.MockOutputStream())
    except _NOT_FOR_PARQUET:
        return False
    return True


def _write_feather(table: pa.Table, path: Path | BinaryIO, escape_formulas: bool) -> None:
    import pyarrow.feather as feather

    feather.write_feather(table, path)


WRITERS: dict[str, Callable[[pa.Table, Path | BinaryIO, bool], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_feather,
    ".feather": _write_feather,
}
"""What writes a table to a file or an open stream of bytes, by the ending of the file's name."""
