"""The key columns of a table: what a search by a composite key asks with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.errors import QueryError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.frames.tables import ACCEPTED, frame_of
from pexeso.lake.key_columns import KeyColumn, find_key_columns, names_one_column
from pexeso.lake.key_texts import key_texts
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.rows import require_reading
from pexeso.results.query import split_spec

if TYPE_CHECKING:
    from pexeso.composite.query import KeyQuery
    from pexeso.lake.normalise.normaliser import Normaliser


@dataclass(frozen=True)
class KeyTable:
    """A table and the columns of its key.

    Attributes
    ----------
    names : tuple of str
        Of all columns.
    cells : tuple of Arrow arrays
        Of all columns, one entry a row, as they stand in the table.
    key : tuple of KeyColumn
    file : str or None
        Where it came from.
    reading : ReadingOptions
        How its file is read.
    """

    names: tuple[str, ...]
    cells: tuple[pa.Array | pa.ChunkedArray, ...]
    key: tuple[KeyColumn, ...]
    file: str | None = None
    reading: ReadingOptions = AS_FOUND

    @property
    def is_similar(self) -> bool:
        """Whether the values of some column match similar ones."""
        return any(column.similar for column in self.key)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.cells[0])

    def key_texts(self, normaliser: Normaliser | None = None) -> list[pa.LargeStringArray]:
        """Return the cells of each key column in the form in which they are compared.

        Parameters
        ----------
        normaliser : Normaliser, optional
            Of the index: what is an alias stands for something else.
        """
        columns = [self.cells[column.position] for column in self.key]
        if normaliser is not None and normaliser.aliases is not None:
            columns = [normaliser.resolved(column_texts(column)) for column in columns]
        return [key_texts(column) for column in columns]

    def query(self, normaliser: Normaliser | None = None) -> KeyQuery:
        """Return the distinct keys."""
        from pexeso.composite.query import key_query  # brings numba

        return key_query(self.key_texts(normaliser))

    def describe(self) -> dict[str, Any]:
        """Return file, key columns and number of rows as plain JSON.

        Columns whose values match similar ones are ``similar`` ones too, where there are any.
        """
        similar = [column.label for column in self.key if column.similar]
        return {
            "file": self.file,
            "columns": [column.label for column in self.key],
            **({"similar": similar} if similar else {}),
            "rows": self.n_rows,
        }


def key_table(
    table: Any,
    columns: str | Iterable[str] | None = None,
    *,
    reading: ReadingOptions = AS_FOUND,
) -> KeyTable:
    """Take the columns of a composite key from a table.

    Examples
    --------
    >>> found = key_table({"country": ["NO", "SE"], "year": [2001, 2002]}, ["country", "year"])
    >>> [texts.to_pylist() for texts in found.key_texts()]
    [['no', 'se'], ['2001', '2002']]
    """
    if isinstance(table, KeyTable):
        return table
    require_reading(reading)
    file: str | None = None
    if isinstance(table, str | os.PathLike):
        file = os.fspath(table)
        if columns is None:
            file, columns = split_spec(file)
        read = read_table(file, options=reading)
        names, cells = tuple(read.names), tuple(read.columns)
    else:
        reading.require_none("a table in memory")
        names, cells = columns_of(table)
    if columns is None:
        raise QueryError(
            "Name the columns of the composite key, such as country,year. The columns are "
            f"{', '.join(map(repr, names[:20]))}."
        )
    return KeyTable(names, cells, tuple(find_key_columns(names, columns)), file, reading)


def composite_spec(spec: Any, reading: ReadingOptions = AS_FOUND) -> KeyTable | None:
    """Read ``FILE:COLUMN,COLUMN``; None where a text names one column or a file alone.

    The file is read, as `reading` says, only where there is a comma behind the last colon.
    """
    if not isinstance(spec, str):
        return None
    file, columns = split_spec(spec)
    if columns is None or "," not in columns:
        return None
    read = read_table(file, options=reading)
    if names_one_column(read.names, columns):
        return None
    key = tuple(find_key_columns(read.names, columns))
    return KeyTable(tuple(read.names), tuple(read.columns), key, file, reading)


def columns_of(table: Any) -> tuple[tuple[str, ...], tuple[pa.Array | pa.ChunkedArray, ...]]:
    """Return the names and the cells of a table in memory."""
    frame = frame_of(table)
    if frame is None:
        raise QueryError(
            f"A table is a file, or one in memory: {ACCEPTED}. Got {type(table).__name__}."
        )
    if not frame.names:
        raise QueryError("The table has no column.")
    return frame.names, tuple(frame.arrow_columns())
