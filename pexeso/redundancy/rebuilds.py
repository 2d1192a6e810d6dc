"""How contained tables are rebuilt, and statements run in Spark and compared row by row.

Each parent is read once more, for all tables that it holds.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pexeso.errors import InputError, PexesoError, TableReadError
from pexeso.lake.containers.folders import CannotRead, live_files, log_in
from pexeso.lake.containers.formats import table_format
from pexeso.lake.files import find_tables
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES
from pexeso.lake.rows import table_file
from pexeso.lake.typed.parquet import TypedRows, open_parquet
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
from pexeso.redundancy.transformations import find_transformation, quoted, sql_type, to_sql
from pexeso.runtime.formatting import first_line
from pexeso.store.io.location import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PARALLEL_PARENTS = 4

_TIMES = "__times__"
# Spark refuses times before 1900 that may be of another calendar.
_TIMES_AS_WRITTEN = {"int96RebaseMode": "CORRECTED", "datetimeRebaseMode": "CORRECTED"}

_SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A statement that reads a file, the table's own even, would not rest on the parent.
    "spark.sql.runSQLOnFiles": "false",
    # A text is what it says: "${env:HOME}" is five letters and some signs.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Else a SELECT could double a text as often as it has columns.
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
}


class Statement(NamedTuple):
    table: str
    parent: str
    sql: str


def verify_statements(
    spark: SparkSession,
    lake: Path,
    statements: Sequence[Statement],
    *,
    max_table_bytes: int = DEFAULT_MAX_BYTES,
) -> dict[str, str]:
    """Run statements on the lake as it is, and compare what they give with the tables.

    Returns the tables that their statement does not rebuild, each with the reason, a clause. Spark
    holds and spills what it sorts by itself; a task holds a file of text.
    """
    by_parent: dict[str, list[Statement]] = {}
    for statement in statements:
        by_parent.setdefault(statement.parent, []).append(statement)
    verify = partial(_verify_children, spark, lake, max_table_bytes)
    with ThreadPoolExecutor(PARALLEL_PARENTS) as threads:
        all_reasons = threads.map(verify, by_parent.items())
    return {table: reason for reasons in all_reasons for table, reason in reasons.items()}


def _verify_children(
    spark: SparkSession, lake: Path, max_bytes: int, entry: tuple[str, list[Statement]]
) -> dict[str, str]:
    parent, statements = entry
    session = spark.newSession()  # views and settings are of this session alone
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    try:
        frame = frame_of_table(session, lake, parent, max_bytes=max_bytes)
        frame.createOrReplaceTempView(quoted(parent))
    except Exception as error:  # whatever Spark or a file raises is a reason not to delete
        reason = f"its parent {parent!r} cannot be read: {_sentence(error)}"
        return {statement.table: reason for statement in statements}
    reasons = {}
    for statement in statements:
        try:
            expected = frame_of_table(session, lake, statement.table, max_bytes=max_bytes)
            query = checked_statement(statement.sql, parent)
            reason = _difference(session.sql(f"SELECT * FROM (\n{query}\n)"), expected)
        except Exception as error:  # as above
            reason = f"the statement cannot be compared with it: {_sentence(error)}"
        if reason is not None:
            reasons[statement.table] = reason
    session.catalog.dropTempView(quoted(parent))
    return reasons


def _sentence(error: Exception) -> str:
    first = first_line(error)
    return first if isinstance(error, PexesoError) else f"{type(error).__name__}: {first}"


def frame_of_table(
    spark: SparkSession, lake: Path, table: str, *, max_bytes: int = DEFAULT_MAX_BYTES
) -> DataFrame:
    """Return a table of a lake as Spark reads it: Parquet by itself, text as pexeso reads it.

    Cells of CSV are texts, and missing where empty; of JSON lines each value is its JSON text.
    """
    path = lake if lake.is_file() else lake / table
    files = [path] if path.is_file() else _files_in(path)
    has_log = path.is_dir() and log_in(path) is not None
    if has_log or {table_format(file) or "delimited" for file in files} == {"parquet"}:
        read = spark.read.options(**_TIMES_AS_WRITTEN)
        read = read.option("mergeSchema", has_log or len(files) > 1)
        if has_log:
            return read.option("basePath", str(path)).parquet(*map(_literal, files))
        return read.parquet(_literal(path))
    if len(files) != 1:
        raise TableReadError(f"{table} is a folder of text: it is not compared as one table.")
    name = lake.name if lake.is_file() else files[0].relative_to(lake).as_posix()
    read = partial(_text_batches, lake, name, max_bytes)
    one = spark.range(0, 1, 1, 1)
    names = json.loads(one.mapInArrow(partial(_names, read=read), "names string").first().names)
    schema = ", ".join(f"{quoted(f'c{position}')} string" for position in range(len(names)))
    return one.mapInArrow(partial(_rows, read=read, width=len(names)), schema).toDF(*names)


def _files_in(folder: Path) -> list[Path]:
    log = log_in(folder)
    if log is None:
        files, _ = find_tables(folder, single_files=True)
        of_table = (file for file in files if table_of_file(file.table).table == ".")
        return [file.path for file in of_table if file.member is None]
    try:
        return [folder / file for file in live_files(folder, log.kind)]
    except CannotRead as error:
        raise TableReadError(f"{folder.name} cannot be read: {error}.") from error


def _literal(path: Path) -> str:
    """Return a path as Hadoop reads it: its own signs for patterns are escaped."""
    return "".join(f"\\{sign}" if sign in "{}[]*?\\" else sign for sign in str(path))


def _text_batches(lake: Path, name: str, max_bytes: int) -> Iterator[TypedRows]:
    yield from rows_of_file(table_file(lake, name), max_bytes)[2]


def _names(
    batches: Iterator[pa.RecordBatch], *, read: partial[Iterator[TypedRows]]
) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        names = max((batch.names for batch in read()), key=len, default=[])
        yield pa.RecordBatch.from_pydict({"names": [json.dumps(names)]})


def _rows(
    batches: Iterator[pa.RecordBatch], *, read: partial[Iterator[TypedRows]], width: int
) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        for batch in read():
            cells = [column.cast(pa.string()) for column in batch.columns]
            cells += [pa.nulls(batch.n_rows, pa.string())] * (width - len(cells))
            yield pa.RecordBatch.from_arrays(cells, [f"c{position}" for position in range(width)])


def _difference(actual: DataFrame, expected: DataFrame) -> str | None:
    from pyspark.sql import functions as sql

    columns, expected_columns = (
        [f"{field.name} {field.dataType.simpleString()}" for field in frame.schema]
        for frame in (actual, expected)
    )
    if columns != expected_columns:
        return (
            f"the statement gives the columns {', '.join(columns)}, "
            f"and it has {', '.join(expected_columns)}"
        )
    names = [f"c{position}" for position in range(len(columns))]
    both = (
        actual.toDF(*names)
        .withColumn(_TIMES, sql.lit(1))
        .unionAll(expected.toDF(*names).withColumn(_TIMES, sql.lit(-1)))
    )
    apart = both.groupBy(*names).agg(sql.sum(_TIMES).alias(_TIMES)).where(f"{_TIMES} <> 0").take(1)
    if not apart:
        return None
    return f"the statement gives a row {'more' if apart[0][_TIMES] > 0 else 'less'} often than it"


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
    """Return the flat columns, of one type in all files, that conditions can be put on."""
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
    """Return the whole columns of its parent that a child has, by both names; None of parts."""
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
