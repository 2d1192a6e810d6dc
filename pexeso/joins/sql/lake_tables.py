"""A table of the lake in DuckDB: read by its own readers, or handed over in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from pexeso.errors import MissingPackageError
from pexeso.joins.matched_rows import FoundRows
from pexeso.joins.sql.texts import LAKES, reader_of
from pexeso.lake.columns import find_column
from pexeso.lake.containers.tables_inside import split_member
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.rows import table_path
from pexeso.store.io.location import Location, locate


def has_duckdb() -> bool:
    """Return whether duckdb is installed."""
    return find_spec("duckdb") is not None


def require_duckdb() -> None:
    """Raise MissingPackageError unless duckdb is installed."""
    if not has_duckdb():
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
    keys : tuple of str
        The names there of the columns that are joined.
    texts : list of tuple
        For each row the cells of these columns as DuckDB writes them as text, in order.
    """

    name: str
    reader: str | None
    keys: tuple[str, ...]
    texts: list[tuple[str | None, ...]]
    _rows: Rows

    @classmethod
    def of(cls, lake: Path | Location, match_rows: FoundRows) -> LakeTable:
        """Return the table that a match found; see `of_rows`."""
        position = find_column(match_rows.rows.column_names, match_rows.column)
        return cls.of_rows(
            lake, match_rows.table, Rows(match_rows.rows, match_rows.typed), [position]
        )

    @classmethod
    def of_rows(
        cls, lake: Path | Location, table: str, rows: Rows, positions: Sequence[int]
    ) -> LakeTable:
        """Return a table whose rows were read, to be joined by some of its columns.

        Where duckdb is not installed, `reader` follows from the file's name alone.
        """
        file, member = table_path(lake, table)
        reader = reader_of(str(file)) if isinstance(file, Path) and member is None else None
        if not has_duckdb():
            names = tuple(rows.texts.column_names[at] for at in positions)
            keys = [rows.texts.column(at).to_pylist() for at in positions]
            return cls(table, reader, names, list(zip(*keys, strict=True)), rows)
        read = None if reader is None else _read(reader, positions, rows)
        if read is not None:
            return cls(table, reader, *read, rows)
        held = rows.in_memory
        duckdb_names = names_in_duckdb(held.column_names)
        names = tuple(duckdb_names[at] for at in positions)
        return cls(table, None, names, duckdb_texts(held.select(list(positions))), rows)

    @cached_property
    def in_memory(self) -> pa.Table:
        """The table as `pexeso.Match.join` takes it: with the types of its file."""
        return self._rows.in_memory


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table: all cells text, and with the types of their file where it has any."""

    texts: pa.Table
    typed: Sequence[pa.ChunkedArray] | None

    @property
    def in_memory(self) -> pa.Table:
        """With the types."""
        columns = self.texts.columns if self.typed is None else self.typed
        return pa.Table.from_arrays(list(columns), names=self.texts.column_names)


def reader_of_yours(
    file: str,
    texts: pa.Table,
    positions: Sequence[int],
    names: Sequence[str],
    *,
    reading: ReadingOptions = AS_FOUND,
) -> str | None:
    """Return what reads a file of the user's in DuckDB; None where its rows would be others.

    Where duckdb is not installed it follows from the names of the file and its columns alone.
    """
    path, member = split_member(locate(file))
    reader = reader_of(file) if isinstance(path, Path) and member is None else None
    if reader is None or reading != AS_FOUND:
        return None
    if not has_duckdb():
        return reader if [texts.column_names[at] for at in positions] == list(names) else None
    is_typed = file.lower().endswith(".parquet")
    read = _read(reader, positions, Rows(texts, texts.columns if is_typed else None))
    cells = [texts.column(at).to_pylist() for at in positions]
    return reader if read == (tuple(names), list(zip(*cells, strict=True))) else None


def duckdb_texts(table: pa.Table) -> list[tuple[str | None, ...]]:
    """Return the cells of each row as DuckDB writes them as text."""
    import duckdb

    named = table.rename_columns([f"key{at}" for at in range(table.num_columns)])
    with duckdb.connect() as connection:
        connection.register(LAKES, named)
        return connection.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {LAKES}").fetchall()


def names_in_duckdb(names: Sequence[str]) -> list[str]:
    """Return the names of the columns of a table in DuckDB, to which `Town` and `town` are one.

    Without duckdb they are as they stand.
    """
    if not has_duckdb():
        return list(names)
    import duckdb

    with duckdb.connect() as connection:
        connection.register(LAKES, pa.table([pa.nulls(0)] * len(names), names=list(names)))
        return connection.table(LAKES).columns


def _read(
    reader: str, positions: Sequence[int], rows: Rows
) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]] | None:
    """Return the keys' names and texts by a reader of DuckDB; None where its rows are others."""
    import duckdb

    expected = rows.texts
    if any("duration[" in str(column.type) for column in rows.typed or ()):
        return None  # Parquet keeps spans of time as numbers, and what they are where Arrow looks
    try:
        with duckdb.connect() as connection:
            names = [field[0] for field in connection.execute(f"FROM {reader} LIMIT 0").description]
            if len(names) != expected.num_columns:
                return None
            cast = connection.sql(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {reader}")
            texts: Any = cast.to_arrow_table()
    except duckdb.Error:
        return None
    if texts.num_rows != expected.num_rows:
        return None
    checked = range(expected.num_columns) if rows.typed is None else ()
    if any(texts.column(at).to_pylist() != expected.column(at).to_pylist() for at in checked):
        return None
    keys = [texts.column(at).to_pylist() for at in positions]
    return tuple(names[at] for at in positions), list(zip(*keys, strict=True))
