"""DuckDB files: each table and view, by the package duckdb, in a process of its own.

A damaged file can end the process that reads it, and a view may compute without end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.columns import no_such_table
from pexeso.lake.readers.budget import ReadingBudget
from pexeso.lake.readers.file_source import FileSource
from pexeso.lake.readers.table import check_width
from pexeso.lake.typed.apart import batches, bounds, budget_of, gathered, read_apart
from pexeso.lake.typed.table import InnerTable, TypedTable
from pexeso.runtime.formatting import first_line

MAGIC = b"DUCK"
"""What stands at byte 8 of a database file."""

_ROWS_A_BATCH = 1 << 14
_ALONE = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "temp_directory": "",
    "threads": "1",
    "memory_limit": "1GiB",
    "lock_configuration": "true",
}
"""Views may read no other file and nothing of the network, and nothing is written."""

_KIND = re.compile(r"^(?:\w+ )+Error: ")
_PATH = re.compile(r"""(?:file )?(?:"/[^"]*"|'/[^']*')""")


def tables_in(source: FileSource) -> list[InnerTable]:
    """List tables and views of a database, those outside schema main as ``schema.table``.

    Parameters
    ----------
    source : FileSource
        The file.

    Returns
    -------
    list of InnerTable
        Those that cannot be read have a reason.

    Raises
    ------
    TableReadError
        It is damaged, being written, of another version or no DuckDB database, or duckdb is not
        installed.
    PlaceError
        Its storage breaks off.
    """
    listing, _ = _answer(source, {})
    return [InnerTable(name, reason) for name, reason in listing["tables"]]


def read(source: FileSource, name: str) -> TypedTable:
    """Read one table or view with its types.

    Memory: the table, at most `max_bytes` of the source, here and in the process that reads, and
    there 1 GiB for DuckDB.
    """
    _, table = _answer(source, {"table": name})
    if table is None:
        raise TableReadError(f"{source.shown} has no such table: {name!r}.")
    return TypedTable(table.column_names, table.schema.types, batches(table))


def _answer(
    source: FileSource, request: dict[str, object]
) -> tuple[dict[str, Any], pa.Table | None]:
    with source.local_path() as path:
        if find_spec("duckdb") is None:
            raise TableReadError(
                f"{source.shown} needs the package duckdb, which is not installed: "
                "pip install 'pexeso[duckdb]'."
            )
        budget = source.budget()
        request = {"path": os.fspath(path), "bounds": bounds(budget), **request}
        return read_apart(budget, __name__, request, n_bytes=budget.n_bytes)


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], pa.Table | None]:
    """List the tables of a file, or read one; called in a process of its own."""
    with _opened(request["path"]) as connection:
        tables = {
            name if schema == "main" else f"{schema}.{name}": (schema, name)
            for schema, name in connection.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
                "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        }
        if "table" not in request:
            return {"tables": [[name, _reason(connection, tables[name])] for name in tables]}, None
        if request["table"] not in tables:
            raise no_such_table("{shown}", "table", request["table"], list(tables))
        return {}, _table(connection, tables[request["table"]], budget_of(request))


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    import duckdb

    try:
        with duckdb.connect(path, read_only=True, config=_ALONE) as connection:
            yield connection
    except duckdb.Error as error:
        text = str(error)
        if "set lock on file" in text:
            raise TableReadError(
                "{shown} is being written by another program; index it again when that is done."
            ) from error
        raise TableReadError(
            f"{{shown}} cannot be read as a database: {_reason_of(error)}."
        ) from error


def _reason_of(error: Exception) -> str:
    """Return what DuckDB says, without its kind of error and the path that it was given."""
    said = _PATH.sub("the file", _KIND.sub("", first_line(error)))
    return f"{said[:1].lower()}{said[1:]}".rstrip(".:")


def _reason(connection: Any, name: tuple[str, str]) -> str | None:
    import duckdb

    try:
        connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 1").fetchone()
    except duckdb.Error as error:
        return f"cannot be read: {_reason_of(error)}"
    return None


def _table(connection: Any, name: tuple[str, str], budget: ReadingBudget) -> pa.Table:
    relation = connection.sql(f"SELECT * FROM {_quoted(name)}")
    check_width("{shown}", len(relation.columns))
    read_batches = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    reader = read_batches(_ROWS_A_BATCH)
    return gathered(reader, reader.schema, budget)


def _quoted(name: tuple[str, str]) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)
