"""Query columns from a table file, from values in memory, or from lines of a batch file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import PexesoError, QueryError
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.readers.jsonlines import read_json
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.readers.reader import read_table
from pexeso.lake.readers.table import strings
from pexeso.lake.sniff import profile_column

TEXT_KINDS = ("text", "date")
"""Kinds of columns that a semantic search is for."""

_NOT_UTF8 = (
    "A query column holds bytes that are no UTF-8 text. Decode them first, such as by "
    "bytes.decode with the right encoding."
)


@dataclass(frozen=True)
class QueryColumn:
    """A column to search with.

    Attributes
    ----------
    values : pyarrow.StringArray
        One entry a row, null where the cell is empty.
    file : str or None
        Where it came from.
    column : str or None
        Its name, or ``#position``.
    reading : ReadingOptions
        How its file is read.
    """

    values: pa.StringArray
    file: str | None = None
    column: str | None = None
    reading: ReadingOptions = AS_FOUND

    def describe(self) -> dict[str, Any]:
        """Return file, column and number of rows as plain JSON."""
        return {"file": self.file, "column": self.column, "rows": len(self.values)}


def query_from_values(values: Any, name: str | None = None) -> QueryColumn:
    """Make a query column from a list, a NumPy array, a pandas Series or an Arrow array.

    Numbers and dates are taken as their text; None, NaN and NaT are empty cells.
    """
    if isinstance(values, QueryColumn):
        return values
    if isinstance(values, (str, bytes)):
        raise QueryError(
            "A query column must be a list of values, not one text. Put it into a list, or read "
            "a file with read_query."
        )
    _require_one_column(values)
    own_name = getattr(values, "name", None)
    column = name if name is not None else (str(own_name) if own_name is not None else None)
    return QueryColumn(_as_texts(values), column=column)


def _require_one_column(values: Any) -> None:
    """Raise QueryError if the values are a table or have no rows at all.

    The elements of tables are column names or whole rows.
    """
    shape = getattr(values, "shape", None)
    has_columns = (
        isinstance(values, Mapping) or hasattr(values, "columns") or hasattr(values, "column_names")
    )
    if has_columns or (isinstance(shape, tuple) and len(shape) != 1):
        size = f" of shape {shape}" if isinstance(shape, tuple) else ""
        raise QueryError(
            f"A query column must be one column of values. Got {type(values).__name__}{size} "
            "instead. Take one column of a "
            'table, such as table["city"].'
        )


def split_spec(spec: str) -> tuple[str, str | None]:
    """Split ``FILE:COLUMN`` at the last colon.

    The column is None where the whole of it is a file.
    """
    file, colon, column = spec.rpartition(":")
    if not colon or (not os.path.exists(file) and os.path.exists(spec)):
        return spec, None
    return file, column


def read_query(
    spec: str | os.PathLike[str],
    column: str | None = None,
    *,
    reading: ReadingOptions = AS_FOUND,
) -> QueryColumn:
    """Read a query column from a table file.

    Parameters
    ----------
    spec : str or path
        ``FILE:COLUMN``, ``FILE:#3`` (by position from 0), or ``FILE`` alone.
    column : str, optional
        The column, when `spec` is the file alone. Without one the text column with most distinct
        values is taken.
    reading : ReadingOptions, optional
        How to read delimited text; what is not set is found.

    Raises
    ------
    TableReadError
        The file cannot be read.
    ColumnNotFoundError
        There is no such column; the message lists those there are.
    QueryError
        No column was named and none holds text.
    """
    file = os.fspath(spec)
    if column is None:
        file, column = split_spec(file)
    table = read_table(file, options=reading)
    position = (
        find_column(table.names, column) if column is not None else _widest_column(file, table)
    )
    return _column(file, table, position, reading)


def read_every_query(
    file: str | os.PathLike[str],
    *,
    kinds: Sequence[str] = TEXT_KINDS,
    reading: ReadingOptions = AS_FOUND,
) -> list[QueryColumn]:
    """Read the columns of some kinds of a table file as query columns.

    By default these are columns of text and of dates. See also `read_query`.
    """
    name = os.fspath(file)
    table = read_table(name, options=reading)
    return [_column(name, table, position, reading) for position in _columns_of(table, kinds)]


def _column(file: str, table: Any, position: int, reading: ReadingOptions) -> QueryColumn:
    label = label_columns(table.names)[position]
    return QueryColumn(table.columns[position], file, label, reading)


def _columns_of(table: Any, kinds: Sequence[str]) -> list[int]:
    found = [profile_column(column).kind for column in table.columns]
    return [position for position, kind in enumerate(found) if kind in kinds]


def _widest_column(file: str, table: Any) -> int:
    positions = _columns_of(table, TEXT_KINDS)
    if not positions:
        raise QueryError(
            f"'{file}' has no column of text or dates to search with. Name a column: "
            f"{file}:COLUMN, one of {', '.join(label_columns(table.names))}."
        )
    return max(
        positions,
        key=lambda position: (pc.count_distinct(table.columns[position]).as_py(), -position),
    )


def _as_texts(values: Any) -> pa.StringArray:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    array = None
    try:
        array = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
        return _sound(pc.cast(array, pa.string()))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
        if array is not None and _holds_bytes(array.type):
            raise QueryError(_NOT_UTF8) from None
    except (OverflowError, UnicodeEncodeError):
        # Whole numbers of more than 64 bits; halves of letters, which JSON can write and UTF-8
        # cannot.
        pass
    if not isinstance(values, Iterable):
        raise QueryError(
            f"A query column must be a list of values. Got {type(values).__name__} instead."
        )
    # Mixed types, which Arrow has no type for.
    import pandas as pd

    series = pd.Series(list(values), dtype=object)
    return strings(
        [
            None if missing else _text(value)
            for value, missing in zip(series, series.isna(), strict=True)
        ]
    )


def _sound(texts: pa.StringArray) -> pa.StringArray:
    """Refuse texts that are not UTF-8, which Arrow does not look at when it takes them over."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise QueryError(_NOT_UTF8) from None
    return texts


def _holds_bytes(kind: pa.DataType) -> bool:
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _text(value: Any) -> str:
    try:
        return str(value)
    except ValueError as error:  # Python writes out no whole number of more than 4,300 digits
        raise QueryError(
            f"A query column holds a value that has no text: {error}. Give it as a text."
        ) from None


@dataclass(frozen=True)
class BatchLine:
    """One line of a batch file: a query, or the reason why it is none.

    Attributes
    ----------
    number : int
        Counted from 1.
    id : Any
        The line's own ``id``; its number where it has none.
    query : QueryColumn or None
    error : str or None
    """

    number: int
    id: Any
    query: QueryColumn | None
    error: str | None = None


def batch_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a batch file that are not blank, with their numbers from 1.

    No table is read.
    """
    try:
        with open(path, encoding="utf-8-sig") as lines:
            for number, text in enumerate(lines, 1):
                if text.strip():
                    yield number, text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise QueryError(
            f"The batch file '{path}' cannot be read: {reason}. It must hold one JSON object a "
            "line."
        ) from error


def batch_id(number: int, text: str) -> Any:
    """Return the ``id`` of a line of a batch file, or its number if there is none.

    The number is also returned if the line is no JSON object.
    """
    try:
        document = read_json(text)
    except (ValueError, RecursionError):
        return number
    return document.get("id", number) if isinstance(document, dict) else number


def read_batch_line(number: int, text: str) -> BatchLine:
    """Read the query of one line of a batch file, or the reason why it is none."""
    try:
        document = read_json(text)
        if not isinstance(document, dict):
            raise QueryError("it is no JSON object.")
        return BatchLine(number, document.get("id", number), _batch_query(document))
    except PexesoError as error:
        return BatchLine(number, batch_id(number, text), None, f"line {number}: {error}")
    except (ValueError, RecursionError) as error:  # also a number of more digits than Python reads
        return BatchLine(number, number, None, f"line {number}: it is no JSON: {error}.")


def _batch_query(document: dict[str, Any]) -> QueryColumn:
    if "values" in document:
        if not isinstance(document["values"], list):
            raise QueryError("'values' must be a list.")
        return query_from_values(document["values"])
    if "file" not in document:
        raise QueryError("it has neither 'values' nor 'file'.")
    column = document.get("column")
    if not isinstance(document["file"], str) or not (column is None or isinstance(column, str)):
        raise QueryError("'file' and 'column' must be texts.")
    return (
        read_query(document["file"], column) if column is not None else read_query(document["file"])
    )
