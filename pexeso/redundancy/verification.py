"""Statements that rebuild tables, run in Spark and compared with the tables row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pexeso.errors import PexesoError, TableReadError
from pexeso.lake.containers.folders import CannotRead, live_files, log_in
from pexeso.lake.containers.formats import table_format
from pexeso.lake.files import find_tables
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES
from pexeso.lake.rows import table_file
from pexeso.lake.typed.parquet import TypedRows
from pexeso.redundancy.lake_reading import rows_of_file, table_of_file
from pexeso.redundancy.plan import checked_statement
from pexeso.redundancy.transformations import quoted
from pexeso.runtime.formatting import first_line

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
    batches: Iterator[pa.RecordBatch],
    *,
    read: partial[Iterator[TypedRows]],
    width: int,
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
