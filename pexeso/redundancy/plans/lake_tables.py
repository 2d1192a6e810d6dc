"""Which files of a lake are one table.

Engines write a table as a folder of files: ``orders/part-00000.parquet``, or with the values of a
column in the names of folders, ``orders/year=2020/part-00000.parquet``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from pexeso.redundancy.schema_tokens import Token

_PART = "part-"
"""What the files of a table begin with that Spark, Hive or Trino has written."""


@dataclass(frozen=True)
class FileOfTable:
    """A file, the table that it is of, and what the names of its folders say of its rows."""

    file: str
    table: str
    constants: Mapping[Token, str]


def table_of_file(file: str) -> FileOfTable:
    """Return which table a file is of.

    Examples
    --------
    >>> found = table_of_file("orders/year=2020/part-0.parquet")
    >>> found.table, found.constants
    ('orders', {('year',): '2020'})
    >>> table_of_file("orders/2020.csv").table
    'orders/2020.csv'
    """
    *folders, name = file.split("/")
    constants: dict[Token, str] = {}
    while folders and "=" in folders[-1] and not folders[-1].startswith("="):
        column, _, value = folders.pop().partition("=")
        constants[(unquote(column),)] = unquote(value)
    is_part = bool(constants) or name.startswith(_PART)
    table = "/".join(folders) or "." if is_part else file
    return FileOfTable(file, table, dict(reversed(constants.items())))


def files_of_tables(files: Iterable[str]) -> dict[str, list[FileOfTable]]:
    """Return the files of each table, tables and files by name."""
    by_table: dict[str, list[FileOfTable]] = {}
    for file in sorted(files):
        table_file = table_of_file(file)
        by_table.setdefault(table_file.table, []).append(table_file)
    return dict(sorted(by_table.items()))
