"""How contained tables are rebuilt: each parent is read once more, for all tables that it holds."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError, PexesoError
from pexeso.lake.containers.formats import table_format
from pexeso.lake.readers.typed import open_parquet
from pexeso.lake.rows import table_file
from pexeso.redundancy.cell_hashes import HALVES
from pexeso.redundancy.filters import find_transformation
from pexeso.redundancy.pieces import StoredPiece, stored_pieces
from pexeso.redundancy.plans.in_tasks import done_in_tasks
from pexeso.redundancy.plans.lake_tables import table_of_file
from pexeso.redundancy.plans.reading import ReadFile, rows_of_file
from pexeso.redundancy.plans.statements.grammar import checked_statement
from pexeso.redundancy.schema_tokens import Token
from pexeso.redundancy.sql import sql_type, to_sql
from pexeso.redundancy.tables import (
    TableOfPieces,
    constant,
    hashes_of_rows,
    name_of,
    place_of_cells,
)
from pexeso.redundancy.type_families import is_list
from pexeso.store.io.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROW = pa.schema([("parent", pa.int64()), ("child", pa.int64()), ("rebuild", pa.string())])


@dataclass(frozen=True)
class Rebuild:
    """How a table is rebuilt from one that holds its rows.

    Attributes
    ----------
    n_conditions : int
        On rows.
    """

    sql: str
    distinct: bool
    n_conditions: int


def read_statements(path: str | os.PathLike[str]) -> dict[tuple[str, str], str]:
    """Read statements that people know to rebuild tables (R2D2: the transformations known).

    Parameters
    ----------
    path : path
        TOML with tables ``[[rebuild]]`` of three texts each: ``table``, ``parent`` and ``sql``, a
        query of Spark SQL that names the parent.

    Returns
    -------
    dict of (parent, table) to statement
        Written anew from what was read.

    Raises
    ------
    InputError
        The file cannot be read as such, or a statement is none that may be run
        (`pexeso.redundancy.plans.statements.grammar`).
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
    return {pair: _checked(path, *pair, sql) for pair, sql in statements.items()}


def _checked(path: str | os.PathLike[str], parent: str, table: str, sql: str) -> str:
    try:
        return checked_statement(sql, parent)
    except InputError as error:
        raise InputError(
            f"'{os.fspath(path)}' has a statement for {table!r} that cannot be run. {error}"
        ) from error


class Rebuilds:
    """How contained tables are rebuilt: each pair is looked at when it is first asked for.

    There can be many more pairs than deletions, as all copies of a table contain each other.

    Parameters
    ----------
    lake : Path, Location or None
        Where the files are read again; None where tables are no files, and are rebuilt without
        conditions then.

    Notes
    -----
    A task holds one parent, its rows' hashes on the columns of one child, and that child's.
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
    ) -> None:
        self._spark, self._tables, self._files = spark, tables, files
        self._work = partial(_work, lake=lake, max_bytes=max_table_bytes)
        self._statements = statements or {}
        self._known: dict[tuple[int, int], Rebuild | None] = {}

    def look_for(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Look for what rebuilds children from parents, numbers of tables, all at once."""
        by_parent: dict[int, list[int]] = {}
        for parent, child in sorted(set(pairs) - self._known.keys()):
            by_parent.setdefault(parent, []).append(child)
            self._known[parent, child] = self._given_rebuild(parent, child)
        units = [
            _unit(self._tables, self._files, parent, children)
            for parent, children in by_parent.items()
        ]
        if units:
            for row in done_in_tasks(self._spark, units, self._work, _ROW):
                rebuild = Rebuild(**json.loads(row["rebuild"]))
                self._known[row["parent"], row["child"]] = rebuild

    def of(self, parent: int, child: int) -> Rebuild | None:
        """Return what rebuilds a child from a parent, which have been looked for."""
        return self._known[parent, child]

    def _given_rebuild(self, parent: int, child: int) -> Rebuild | None:
        statement = self._statements.get((self._tables[parent].name, self._tables[child].name))
        return None if statement is None else Rebuild(statement, distinct=False, n_conditions=0)


def _unit(
    tables: Sequence[TableOfPieces],
    files: Mapping[str, Sequence[ReadFile]],
    parent: int,
    children: Sequence[int],
) -> str:
    entries = []
    for child in children:
        tokens = [column.token for column in tables[child].columns]
        entries.append(
            {
                "number": child,
                "files": [file.file for file in files[tables[child].name]],
                "tokens": tokens,
                "names": [column.name for column in tables[child].columns],
                "parent_names": [_names(tables[parent])[token] for token in tokens],
                "rows": place_of_cells(tables[child], tokens),
                "parent_rows": place_of_cells(tables[parent], tokens),
            }
        )
    return json.dumps(
        {
            "parent": parent,
            "name": tables[parent].name,
            "files": [file.file for file in files[tables[parent].name]],
            "leaves": [column.name for column in tables[parent].columns],
            "children": entries,
        }
    )


def _names(table: TableOfPieces) -> dict[Token, Token]:
    return {column.token: column.name for column in table.columns}


def _work(unit: str, *, lake: Path | Location | None, max_bytes: int) -> list[dict[str, Any]]:
    task = json.loads(unit)
    try:
        columns = {} if lake is None else _flat_columns(task["files"], lake, max_bytes)
    except (OSError, PexesoError, pa.ArrowException):
        columns = {}  # it was there when the lake was read; what needs no conditions is found
    types = _types(task["files"], lake) if columns and lake is not None else {}
    opened = lru_cache(maxsize=None)(stored_pieces)
    hashed = _Rows(lambda path, number: opened(path)[number])
    rows = []
    for child in sorted(task["children"], key=lambda child: _Rows.key_of(child["tokens"])):
        own_types = _types(child["files"], lake) if types and lake is not None else {}
        child_rebuild = _rebuild(task, child, columns, types, own_types, hashed)
        if child_rebuild is not None:
            rebuild = json.dumps(asdict(child_rebuild))
            rows.append({"parent": task["parent"], "child": child["number"], "rebuild": rebuild})
    return rows


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
    return {
        name: joined for name, parts in columns.items() if (joined := _joined(parts)) is not None
    }


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


def _rebuild(
    parent: Mapping[str, Any],
    child: Mapping[str, Any],
    columns: Mapping[str, pa.Array],
    types: Mapping[str, pa.DataType],
    own_types: Mapping[str, pa.DataType],
    hashed: _Rows,
) -> Rebuild | None:
    tops = _top_columns(parent["leaves"], child["parent_names"], child["names"])
    casts = None if tops is None else _casts(types, own_types, *tops)
    if tops is None or casts is None:
        return None
    parent_rows = hashed.of_parent(child["parent_rows"], child["tokens"])
    child_rows = hashed.of_child(child["rows"], child["tokens"])
    usable = {name: cells for name, cells in columns.items() if len(cells) == len(parent_rows)}
    transformation = find_transformation(usable, parent_rows, child_rows, *tops)
    if transformation is None:
        return None
    try:
        sql = to_sql(transformation, parent["name"], casts)
        checked_statement(sql, parent["name"])
    except InputError:
        return None  # its columns cannot be named, or there are too many of them
    return Rebuild(sql, transformation.distinct, len(transformation.conditions))


class _Rows:
    """Hashes of rows on the columns of children; those of the parent are kept from one to the next.

    Children of the same columns come one after the other.
    """

    def __init__(self, open_piece: Callable[[Path, int], StoredPiece]) -> None:
        self._open = open_piece
        self._key: list[str] | None = None
        self._kept = np.empty((0, HALVES), np.uint64)

    @staticmethod
    def key_of(tokens: Sequence[Sequence[str | None]]) -> list[str]:
        """Return what columns have in common in any order, which no sum of cells depends on."""
        return sorted(name_of(tuple(token)) for token in tokens)

    def of_parent(
        self, places: Sequence[Mapping[str, object]], tokens: Sequence[Sequence[str | None]]
    ) -> np.ndarray:
        if self._key != (key := self.key_of(tokens)):
            self._kept, self._key = self.of_child(places, tokens), key
        return self._kept

    def of_child(
        self, places: Sequence[Mapping[str, object]], tokens: Sequence[Sequence[str | None]]
    ) -> np.ndarray:
        return hashes_of_rows(places, [name_of(tuple(token)) for token in tokens], self._open)


def _types(files: Sequence[str], lake: Path | Location) -> dict[str, pa.DataType]:
    """Return the types of the columns of the first file of a table; none of a file of text."""
    name = files[0]
    if table_format(name) != "parquet" or not isinstance(lake, Path):
        return {}
    try:
        schema = open_parquet(lake if lake.is_file() else lake / name).schema_arrow
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
    for parent_name, name in zip(parent_names, names, strict=True):
        top = str(parent_name[0])
        if child_tops.setdefault(top, str(name[0])) != name[0] or list(parent_name[1:]) != list(
            name[1:]
        ):
            return None
        fields.setdefault(top, set()).add(tuple(parent_name))
    for top, some in fields.items():
        if {tuple(leaf) for leaf in leaves if leaf[0] == top} != some:
            return None
    return list(child_tops), list(child_tops.values())
