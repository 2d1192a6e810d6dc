"""What a search found, in a connection of DuckDB."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.joins.sql.lake_tables import LakeTable, require_duckdb
from pexeso.results.matches import PAIR_FIELDS, Match
from pexeso.runtime.formatting import shown

COLUMNS, PAIRS = "pexeso_found", "pexeso_pairs"

_NAMES = {"table": pa.string(), "column": pa.string()}
_OF_PAIRS = {name: pa.float64() if name == "distance" else pa.string() for name in PAIR_FIELDS}
_PAIRS = pa.schema({**_NAMES, **_OF_PAIRS})
_COLUMN_SCHEMA = pa.schema(
    {**_NAMES, "joinability": pa.float64(), "matched": pa.int64(), "total": pa.int64()}
)


def register_found(connection: Any, result: Match | Iterable[Match]) -> tuple[str, ...]:
    """Register what a search found in a connection of DuckDB, for statements of `Match.sql`.

    Nothing is written to its database: all are temporary, and replace what is there and
    temporary by the same names.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    result : SearchResult, Match or iterable of Match

    Returns
    -------
    tuple of str
        The names registered: the tables of the lake, named by their paths, as views of their
        files where DuckDB's own readers give the rows that joins take, else from memory, and
        with a number behind a path that differs from another's in case alone; then
        ``pexeso_found``, a row a column found, and ``pexeso_pairs``, a row a pair of values.

    Raises
    ------
    MissingPackageError
        Duckdb is not installed.
    InputError
        `connection` is none, something else than columns found by similar values is given, the
        index was built from Spark's tables, or the names of two tables in memory differ in case
        alone.
    TableReadError, PlaceError
        A table cannot be read.

    Examples
    --------
    >>> connection = duckdb.connect()  # doctest: +SKIP
    >>> index.duckdb(connection, found)  # doctest: +SKIP
    ('cities.csv', 'pexeso_found', 'pexeso_pairs')
    """
    require_duckdb()
    if not all(hasattr(connection, name) for name in ("execute", "register")):
        raise InputError(
            "connection must be one of DuckDB, such as duckdb.connect() gives. Got "
            f"{shown(connection)} instead."
        )
    several = list(result) if isinstance(result, Iterable) else [result]
    matches = [result] if isinstance(result, Match) else several
    if not all(isinstance(match, Match) for match in matches):
        raise InputError(
            "What is registered are columns found by similar values: a SearchResult, a Match, or "
            f"a list of them. Got {type(result).__name__} instead."
        )
    tables: dict[str, LakeTable] = {}
    for match in matches:
        if match.table not in tables:
            tables[match.table] = match._details.lake_table(match)
    names = _names_of(tables)
    for table, name in zip(tables.values(), names, strict=True):
        if table.reader is None:
            connection.register(name, table.in_memory)
        else:
            view = '"' + name.replace('"', '""') + '"'
            connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {table.reader}"
            )
    rows = [{name: getattr(match, name) for name in _COLUMN_SCHEMA.names} for match in matches]
    connection.register(COLUMNS, pa.Table.from_pylist(rows, _COLUMN_SCHEMA))
    pairs = [_pairs_of(match) for match in matches]
    connection.register(PAIRS, pa.concat_tables([_PAIRS.empty_table(), *pairs]))
    return (*names, COLUMNS, PAIRS)


def _names_of(tables: dict[str, LakeTable]) -> list[str]:
    """Return what each table is registered as: another name for one that DuckDB would replace."""
    used_names: dict[bytes, str] = {}
    for name in (name for name, table in tables.items() if table.reader is None):
        if (other := used_names.setdefault(_key(name), name)) != name:
            raise InputError(
                f"'{other}' and '{name}' are one name to DuckDB, which does not tell A from a: "
                "register what was found in them in two connections."
            )
    names = []
    for name, table in tables.items():
        free = name
        if table.reader is not None:  # statements read its file, whatever the view is called
            endings = ("", *(f" ({number})" for number in range(2, len(tables) + 2)))
            free = next(name + end for end in endings if _key(name + end) not in used_names)
            used_names[_key(free)] = name
        names.append(free)
    return names


def _key(name: str) -> bytes:
    """Return the name as DuckDB compares it: it folds the letters of ASCII alone."""
    return name.encode().lower()


def _pairs_of(match: Match) -> pa.Table:
    pairs = match.to_arrow()
    names = [pa.array([name] * len(pairs), pa.string()) for name in (match.table, match.column)]
    return pa.Table.from_arrays([*names, *pairs.columns], schema=_PAIRS)
