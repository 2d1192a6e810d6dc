"""How contained tables are rebuilt: each parent is read once more, for all tables that it holds."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError, PexesoError
from pexeso.lake.containers.formats import table_format
from pexeso.lake.rows import table_file
from pexeso.lake.typed.parquet import open_parquet
from pexeso.redundancy.lake_reading import ReadFile, rows_of_file, table_of_file, work_in_tasks
from pexeso.redundancy.pieces import (
    TableOfPieces,
    cell_places,
    constant,
    hashes_of_rows,
    name_of,
    ordered_tokens,
    stored_pieces,
)
from pexeso.redundancy.plan import checked_statement
from pexeso.redundancy.schema_tokens import is_list
from pexeso.redundancy.transformations import find_transformation, sql_type, to_sql
from pexeso.store.io.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROW = pa.schema([("parent", pa.int64()), ("child", pa.int64()), ("sql", pa.string())])

Pairs = Collection[tuple[int, int]]  # numbers of parent and child


def read_statements(path: str | os.PathLike[str]) -> dict[tuple[str, str], str]:
    """Read statements that people know to rebuild tables (R2D2: the transformations known).

    The file is TOML with tables ``[[rebuild]]`` of three texts each: ``table``, ``parent`` and
    ``sql``, a query of Spark SQL that names the parent.
    """
    keys = {"table", "parent", "sql"}
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
        entries = document.pop("rebuild", [])
        if document or not isinstance(entries, list):
            raise ValueError(f"it has {', '.join(document) or 'one rebuild, in single brackets'}")
        statements = {}
        for entry in entries:
            if set(entry) != keys or not all(isinstance(text, str) for text in entry.values()):
                raise ValueError(f"a rebuild has {', '.join(sorted(entry)) or 'nothing'}")
            statements[entry["parent"], entry["table"]] = entry["sql"]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"'{os.fspath(path)}' must be TOML of tables [[rebuild]], each with the texts table, "
            f"parent and sql. {type(error).__name__}: {error}."
        ) from error
    for (parent, table), sql in statements.items():
        try:
            statements[parent, table] = checked_statement(sql, parent)
        except InputError as error:
            raise InputError(
                f"'{os.fspath(path)}' has a statement for {table!r} that cannot be run. {error}"
            ) from error
    return statements


class Rebuilds:
    """How contained tables are rebuilt: statements, looked for when a pair is first asked for.

    There can be many more pairs than deletions, as all copies of a table contain each other. A task
    holds one parent, its rows' hashes on the columns of one child, and that child's. Tables that
    are no files (`lake` is None) are rebuilt without conditions.
    """

    def __init__(
        self,
        spark: SparkSession | None,
        lake: Path | Location | None,
        tables: Sequence[TableOfPieces],
        files: Mapping[str, Sequence[ReadFile]],
        *,
        max_table_bytes: int,
        statements: Mapping[tuple[str, str], str] | None = None,
        check: Callable[[Pairs], Pairs] | None = None,
    ) -> None:
        self._spark, self._tables, self._files, self._check = spark, tables, files, check
        self._work = partial(_work, lake=lake, max_bytes=max_table_bytes)
        self._statements = statements or {}
        self._known: dict[tuple[int, int], str | None] = {}

    def look_for(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Look for what rebuilds children from parents, numbers of tables, all at once."""
        new = set(pairs) - self._known.keys()
        self._known |= dict.fromkeys(new)
        by_parent: dict[int, list[int]] = {}
        for parent, child in sorted(new if self._check is None else self._check(new)):
            by_parent.setdefault(parent, []).append(child)
            names = self._tables[parent].name, self._tables[child].name
            self._known[parent, child] = self._statements.get(names)
        units = [self._unit(parent, children) for parent, children in by_parent.items()]
        for row in work_in_tasks(self._spark, units, self._work, _ROW) if units else ():
            self._known[row["parent"], row["child"]] = row["sql"]

    def of(self, parent: int, child: int) -> str | None:
        """Return what rebuilds a child from a parent, which have been looked for."""
        return self._known[parent, child]

    def _unit(self, parent: int, children: Sequence[int]) -> dict[str, Any]:
        table = self._tables[parent]
        names = {column.token: column.name for column in table.columns}
        entries = []
        for child in children:
            columns = self._tables[child].columns
            tokens = ordered_tokens(self._tables[child])
            entries.append(
                {
                    "number": child,
                    "files": self._files_of(child),
                    "tokens": list(map(name_of, tokens)),
                    "names": [column.name for column in columns],
                    "parent_names": [names[column.token] for column in columns],
                    "rows": cell_places(self._tables[child], tokens),
                    "parent_rows": cell_places(table, tokens),
                }
            )
        leaves = [column.name for column in table.columns]
        unit = {"parent": parent, "name": table.name, "files": self._files_of(parent)}
        return {**unit, "leaves": leaves, "children": entries}

    def _files_of(self, table: int) -> list[str]:
        return [file.file for file in self._files[self._tables[table].name]]


def _work(
    unit: dict[str, Any], *, lake: Path | Location | None, max_bytes: int
) -> list[dict[str, Any]]:
    try:
        columns = {} if lake is None else _flat_columns(unit["files"], lake, max_bytes)
    except (OSError, PexesoError, pa.ArrowException):
        columns = {}  # it was there when the lake was read; what needs no conditions is found
    types = _types(unit["files"], lake) if columns and lake is not None else {}
    opened = lru_cache(maxsize=None)(stored_pieces)
    tokens, parent_rows = None, None
    rows = []
    # Children of the same columns one after the other: the parent is hashed once for them.
    for child in sorted(unit["children"], key=lambda child: child["tokens"]):
        own_types = _types(child["files"], lake) if types and lake is not None else {}
        tops = _top_columns(unit["leaves"], child["parent_names"], child["names"])
        casts = None if tops is None else _casts(types, own_types, *tops)
        if tops is None or casts is None:
            continue
        if child["tokens"] != tokens:
            tokens = child["tokens"]
            parent_rows = hashes_of_rows(child["parent_rows"], tokens, opened)
        child_rows = hashes_of_rows(child["rows"], tokens, opened)
        sql = _statement(unit["name"], columns, parent_rows, child_rows, tops, casts)
        if sql is not None:
            rows.append({"parent": unit["parent"], "child": child["number"], "sql": sql})
    return rows


def _statement(
    parent: str,
    columns: Mapping[str, pa.Array],
    parent_rows: np.ndarray,
    child_rows: np.ndarray,
    tops: tuple[list[str], list[str]],
    casts: Mapping[str, str],
) -> str | None:
    usable = {name: cells for name, cells in columns.items() if len(cells) == len(parent_rows)}
    transformation = find_transformation(usable, parent_rows, child_rows, *tops)
    if transformation is None:
        return None
    try:
        sql = to_sql(transformation, parent, casts)
        checked_statement(sql, parent)
    except InputError:
        return None  # its columns cannot be named, or there are too many of them
    return sql


def _flat_columns(
    files: Sequence[str], lake: Path | Location, max_bytes: int
) -> dict[str, pa.Array]:
    """Return the columns of a table that conditions can be put on: flat, of one type in all files.

    Rows are in the order of the files.
    """
    columns: dict[str, list[pa.Array]] = {}
    n_rows = 0
    for name in files:
        file_columns, n_own = _columns_of_file(name, lake, max_bytes)
        for column in columns.keys() | file_columns.keys():
            before = columns.setdefault(column, [pa.nulls(n_rows)])
            before.append(file_columns.get(column, pa.nulls(n_own)))
        n_rows += n_own
    joined = {name: _joined(parts) for name, parts in columns.items()}
    return {name: cells for name, cells in joined.items() if cells is not None}


def _columns_of_file(
    file: str, lake: Path | Location, max_bytes: int
) -> tuple[dict[str, pa.Array], int]:
    """Return all columns of a file and of the names of its folders, and the number of rows."""
    batches = list(rows_of_file(table_file(lake, file), max_bytes)[2])
    names = max((batch.names for batch in batches), key=len, default=[])
    n_rows = sum(batch.n_rows for batch in batches)
    columns = {}
    for position, name in enumerate(names):
        parts = [
            batch.columns[position] if position < len(batch.columns) else pa.nulls(batch.n_rows)
            for batch in batches
        ]
        columns[name] = _joined(parts, nested=True)
    for (name, *_), text in table_of_file(file).constants.items():
        if name is not None and name not in columns:
            columns[name] = pa.repeat(constant(text)[0], n_rows)
    return {name: cells for name, cells in columns.items() if cells is not None}, n_rows


def _joined(parts: Sequence[pa.Array], *, nested: bool = False) -> pa.Array | None:
    """Put arrays of one type together; None where they are of several, or nested ones."""
    typed = [part for part in parts if not pa.types.is_null(part.type)]
    kinds = {part.type for part in typed if len(part)} or {part.type for part in typed[:1]}
    if len(kinds) > 1:
        return None
    kind = kinds.pop() if kinds else pa.null()
    if not nested and (pa.types.is_nested(kind) or is_list(kind)):
        return None
    some = [part if part.type == kind else pa.nulls(len(part), kind) for part in parts]
    joined = pa.chunked_array(some, kind)
    if pa.types.is_dictionary(kind):
        joined = joined.unify_dictionaries()
    return joined.combine_chunks()


def _types(files: Sequence[str], lake: Path | Location) -> dict[str, pa.DataType]:
    if table_format(files[0]) != "parquet" or not isinstance(lake, Path):
        return {}
    try:
        schema = open_parquet(lake if lake.is_file() else lake / files[0]).schema_arrow
    except (OSError, pa.ArrowException):
        return {}
    return dict(zip(schema.names, schema.types, strict=True))


def _casts(
    types: Mapping[str, pa.DataType],
    own_types: Mapping[str, pa.DataType],
    tops: Sequence[str],
    names: Sequence[str],
) -> dict[str, str] | None:
    """Return which columns of the parent have another type in the child; None: no cast makes it."""
    casts = {}
    for top, name in zip(tops, names, strict=True):
        parent_type, child_type = types.get(top), own_types.get(name)
        if parent_type is None or child_type is None or parent_type == child_type:
            continue
        before, after = sql_type(parent_type), sql_type(child_type)
        if before is None or after is None:
            return None
        if before != after:
            casts[top] = after
    return casts


def _top_columns(
    leaves: Sequence[Sequence[str | None]],
    parent_names: Sequence[Sequence[str | None]],
    names: Sequence[Sequence[str | None]],
) -> tuple[list[str], list[str]] | None:
    """Return the whole columns that a child has of its parent, by both names.

    None where the child has only some of the fields of a nested column, or calls them otherwise.
    """
    child_tops: dict[str, str] = {}
    fields: dict[str, set[tuple[str | None, ...]]] = {}
    for (top, *inner), (own_top, *own_inner) in zip(parent_names, names, strict=True):
        if child_tops.setdefault(str(top), str(own_top)) != own_top or inner != own_inner:
            return None
        fields.setdefault(str(top), set()).add((top, *inner))
    for top, some in fields.items():
        if {tuple(leaf) for leaf in leaves if leaf[0] == top} != some:
            return None
    return list(child_tops), list(child_tops.values())
