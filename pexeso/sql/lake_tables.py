"""A table of the lake in DuckDB: read by its own readers, or handed over in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from pexeso.errors import MissingPackageError
from pexeso.io.location import Location
from pexeso.join.matched_rows import FoundRows
from pexeso.lake.columns import find_column
from pexeso.lake.rows import table_path
from pexeso.sql.texts import LAKES, reader_of


def require_duckdb() -> None:
    """Raise MissingPackageError unless duckdb is installed."""
    if find_spec("duckdb") is None:
        raise MissingPackageError(
            "A join as SQL needs the package duckdb, which is not installed. Install it with "
            "'pip install \"pexeso[duckdb]\"', or join by Match.join."
        )


@dataclass(frozen=True)
class LakeTable:
    """A table of the lake as DuckDB has it.

    Attributes
    ----------
    name : str
        Of the table in the lake.
    reader : str or None
        What reads its file in DuckDB; None where the rows would be others.
    key : str
        The name there of the column that is joined.
    texts : list of str or None
        The cells of that column as DuckDB writes them as text, in the order of `rows`.
    """

    name: str
    reader: str | None
    key: str
    texts: list[str | None]
    _found: FoundRows

    @classmethod
    def of(cls, lake: Path | Location, found: FoundRows) -> LakeTable:
        """Return the table that a match found.

        Where duckdb is not installed, `reader` follows from the file's name alone.
        """
        file, member = table_path(lake, found.table)
        reader = reader_of(str(file)) if isinstance(file, Path) and member is None else None
        position = find_column(found.rows.column_names, found.column)
        own = found.rows.column(position).to_pylist()
        if find_spec("duckdb") is None:
            return cls(found.table, reader, found.rows.column_names[position], own, found)
        read = None if reader is None else _read(reader, position, found)
        if read is not None:
            return cls(found.table, reader, *read, found)
        table = _in_memory(found)
        key = table.column_names[position]
        return cls(found.table, None, key, _texts_in_memory(table, position), found)

    @cached_property
    def in_memory(self) -> pa.Table:
        """The table as `pexeso.Match.join` takes it: with the types of its file."""
        return _in_memory(self._found)


def _in_memory(found: FoundRows) -> pa.Table:
    columns = found.rows.columns if found.typed is None else found.typed
    return pa.Table.from_arrays(list(columns), names=found.rows.column_names)


def _texts_in_memory(table: pa.Table, position: int) -> list[str | None]:
    import duckdb

    with duckdb.connect() as connection:
        connection.register(LAKES, table.select([position]).rename_columns(["key"]))
        rows = connection.execute(f"SELECT CAST(key AS VARCHAR) FROM {LAKES}").fetchall()
    return [text for (text,) in rows]


def _read(reader: str, position: int, found: FoundRows) -> tuple[str, list[str | None]] | None:
    """Return the key's name and texts by a reader of DuckDB; None where its rows are others."""
    import duckdb

    rows = found.rows
    try:
        with duckdb.connect() as connection:
            names = [each[0] for each in connection.execute(f"FROM {reader} LIMIT 0").description]
            if len(names) != rows.num_columns:
                return None
            cast = connection.sql(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {reader}")
            texts: Any = cast.to_arrow_table()
    except duckdb.Error:
        return None
    if texts.num_rows != rows.num_rows:
        return None
    checked = range(rows.num_columns) if found.typed is None else ()
    if any(texts.column(at).to_pylist() != rows.column(at).to_pylist() for at in checked):
        return None
    return names[position], texts.column(position).to_pylist()
