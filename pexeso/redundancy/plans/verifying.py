"""Statements that rebuild tables, run in Spark on the lake of now and compared with the tables.

Whole rows are compared, as often as each stands in both, and the columns with their types: nothing
rests on hashes here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pexeso.errors import PexesoError, TableReadError
from pexeso.lake.containers.formats import table_format
from pexeso.lake.files import find_tables
from pexeso.lake.folders.table_logs import CannotRead, live_files, log_in
from pexeso.lake.readers.budget import DEFAULT_MAX_BYTES
from pexeso.lake.readers.typed import TypedRows
from pexeso.lake.rows import table_file
from pexeso.redundancy.plans.lake_tables import table_of_file
from pexeso.redundancy.plans.reading import rows_of_file
from pexeso.redundancy.plans.statements.grammar import checked_statement
from pexeso.redundancy.sql import quoted
from pexeso.runtime.formatting import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 4
"""Parents whose tables are compared at the same time."""

_TIMES = "__times__"
_TIMES_AS_WRITTEN = {"int96RebaseMode": "CORRECTED", "datetimeRebaseMode": "CORRECTED"}
"""Options of Spark's reader: it refuses times before 1900 that may be of another calendar."""


class Statement(NamedTuple):
    """A table, its parent, and what rebuilds the table from it."""

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

    Parameters
    ----------
    lake : Path
        A folder of this machine or of the cluster's.
    max_table_bytes : int
        Larger files of text cannot be read; see `pexeso.redundancy.plans.reading.read_lake`.

    Returns
    -------
    dict of str to str
        Of the tables that their statement does not rebuild the reason, a clause.

    Notes
    -----
    Spark holds and spills what it sorts by itself; a task holds a file of text.
    """
    by_parent: dict[str, list[Statement]] = {}
    for statement in statements:
        by_parent.setdefault(statement.parent, []).append(statement)
    verify = partial(_of_parent, spark, lake, max_bytes=max_table_bytes)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        all_reasons = threads.map(verify, by_parent.values())
    return {table: reason for reasons in all_reasons for table, reason in reasons.items()}


def _of_parent(
    spark: SparkSession, lake: Path, statements: Sequence[Statement], *, max_bytes: int
) -> dict[str, str]:
    session = spark.newSession()  # views and settings are of this session alone
    for name, value in (
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.execution.arrow.pyspark.enabled", "true"),
        # A statement that reads a file, the table's own even, would not rest on the parent.
        ("spark.sql.runSQLOnFiles", "false"),
        # A text is what it says: "${env:HOME}" is five letters and some signs.
        ("spark.sql.variable.substitute", "false"),
        ("spark.sql.parser.escapedStringLiterals", "false"),
        # Else a SELECT could double a text as often as it has columns.
        ("spark.sql.lateralColumnAlias.enableImplicitResolution", "false"),
    ):
        session.conf.set(name, value)
    parent, *_ = {statement.parent for statement in statements}
    try:
        frame_of_table(session, lake, parent, max_bytes=max_bytes).createOrReplaceTempView(
            quoted(parent)
        )
    except Exception as error:  # whatever Spark or a file raises is a reason not to delete
        reason = f"its parent {parent!r} cannot be read: {_sentence(error)}"
        return {statement.table: reason for statement in statements}
    reasons = {}
    for statement in statements:
        try:
            expected = frame_of_table(session, lake, statement.table, max_bytes=max_bytes)
            reason = _difference(_rows_of(session, statement), expected)
        except Exception as error:  # as above
            reason = f"the statement cannot be compared with it: {_sentence(error)}"
        if reason is not None:
            reasons[statement.table] = reason
    session.catalog.dropTempView(quoted(parent))
    return reasons


def _rows_of(session: SparkSession, statement: Statement) -> DataFrame:
    """Return the rows of a statement, which a grammar has checked."""
    query = checked_statement(statement.sql, statement.parent)
    return session.sql(f"SELECT * FROM (\n{query}\n)")


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
    kinds = {table_format(file) or "delimited" for file in files}
    if log_in(path) is not None and path.is_dir():
        paths = [_literal(file) for file in files]
        read = spark.read.options(**_TIMES_AS_WRITTEN).option("mergeSchema", True)
        return read.option("basePath", str(path)).parquet(*paths)
    if kinds == {"parquet"}:
        read = spark.read.options(**_TIMES_AS_WRITTEN).option("mergeSchema", len(files) > 1)
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
    if log is not None:
        try:
            return [folder / file for file in live_files(folder, log.kind)]
        except CannotRead as error:
            raise TableReadError(f"{folder.name} cannot be read: {error}.") from error
    files, _ = find_tables(folder, single_files=True)
    return [
        file.path
        for file in files
        if file.member is None and table_of_file(file.table).table == "."
    ]


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
