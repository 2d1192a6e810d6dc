"""Spark tables and DataFrames as a lake.

Their columns give the same records that `pexeso.lake.records` makes of files.

Spark counts the distinct values of every column; then each column goes, as a whole, to one task,
which looks at them as it would at the column of a file. The driver holds the names of tables and
columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import LakeError
from pexeso.lake.catalog import SCHEMA
from pexeso.lake.choose import KINDS
from pexeso.lake.columns import label_columns
from pexeso.lake.records import ReadTable, Records, TableRows, counted_column_records
from pexeso.lake.typed.value_texts import in_utc, value_texts
from pexeso.options import BuildOptions
from pexeso.registry import requested_parts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType


def cell_text(value: Column, kind: DataType) -> Column:
    """Convert values to text as a file of the same type gives them."""
    from pyspark.sql import functions as sql
    from pyspark.sql import types

    as_in_files = (
        types.FloatType,
        types.DoubleType,
        types.DecimalType,
        types.TimestampType,
        types.TimestampNTZType,
    )
    if isinstance(kind, as_in_files):
        return sql.arrow_udf(_texts, "string")(value)
    return sql.make_valid_utf8(value.cast("string"))


def _texts(values: pa.Array) -> pa.Array:
    return value_texts(in_utc(values), pa.string())


# The format of such tables in the catalog.
FORMAT = "spark"

# The position under which the rows of a table are counted.
_TABLE = -1

# Bytes of a value in a task next to its text: offset, count and place.
_VALUE_BYTES = 16

_COUNTED = (
    "table string, position int, name string, label string, reason string, value string, count long"
)


@dataclass(frozen=True)
class SparkTable:
    """A table that Spark can read."""

    name: str
    frame: DataFrame


def find_spark_tables(spark: SparkSession, name: str) -> list[SparkTable]:
    from pyspark.errors import PySparkException

    try:
        if _is_table(spark, name):
            return [SparkTable(name, spark.table(name))]
        if not spark.catalog.databaseExists(name):
            return []
        quoted = ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))
        names = sorted(row.name for row in spark.catalog.listTables(name) if not row.isTemporary)
        return [
            SparkTable(f"{name}.{table}", spark.table(f"{quoted}.`{table.replace('`', '``')}`"))
            for table in names
        ]
    except PySparkException as error:
        message = str(error).strip().splitlines()[0]
        raise LakeError(f"'{name}' cannot be looked up in Spark's catalog: {message}") from error


def _is_table(spark: SparkSession, name: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return spark.catalog.tableExists(name)
    except AnalysisException:
        return False  # `catalog.database` is refused as the name of a table


def frame_records(
    tables: list[SparkTable], options: BuildOptions, wanted: Sequence[Records]
) -> DataFrame:
    """Turn Spark tables into records, as `pexeso.lake.records.lake_records` does with files.

    Every column that Spark can write as text is looked at; arrays, maps, structs and bytes are left
    out with the reason, and so are columns of numbers, without being read, where the rules leave
    out numbers.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    names = [table.name for table in tables]
    if not names or len(set(names)) < len(names):
        raise LakeError(
            "The tables of a lake need different names, and there must be one at least. Got "
            f"{', '.join(names) or 'none'}."
        )
    read_kinds = KINDS if options.parts else options.rules.kinds
    notes = {}
    if whole_rows := any(part.reads_rows for part in requested_parts(options.parts)):
        size_notes = {table.name: _note_of_size(table, options.max_table_bytes) for table in tables}
        notes = {name: note for name, note in size_notes.items() if note is not None}
    counted = reduce(
        lambda union, frame: union.unionByName(frame),
        (_counted(table, read_kinds, notes.get(table.name)) for table in tables),
    )

    def work(group: pa.Table) -> pa.Table:
        return _records_of_column(group, options, wanted)

    groups = _bounded(counted, options.max_table_bytes).groupBy("table", "position")
    records = groups.applyInArrow(work, from_arrow_schema(SCHEMA))
    for table in tables if whole_rows else ():
        if table.name not in notes:
            records = records.unionByName(_row_records(table, options, wanted))
    return records


def _counted(table: SparkTable, kinds: tuple[str, ...], note: str | None) -> DataFrame:
    """Count the distinct values of every column of a table.

    One row of each column, the one with a label, describes the column; the one of the table has its
    note as the reason.
    """
    from pyspark.sql import functions as sql

    fields = table.frame.schema.fields
    labels = label_columns([field.name for field in fields])
    reasons = [_reason_not_read(field.dataType, kinds) for field in fields]
    descriptions = [(table.name, _TABLE, None, "", note, None, len(fields))]
    for position, field in enumerate(fields):
        descriptions.append(
            (table.name, position, field.name, labels[position], reasons[position], None, None)
        )
    # By position: names may repeat, or hold dots.
    frame = table.frame.toDF(*(f"c{position}" for position in range(len(fields))))
    read = [position for position, reason in enumerate(reasons) if reason is None]
    cells = [
        _cell(_TABLE, sql.lit(None)),
        *(
            _cell(position, cell_text(sql.col(f"c{position}"), fields[position].dataType))
            for position in read
        ),
    ]
    values = frame.select(sql.explode(sql.array(*cells)).alias("cell"))
    counts = values.groupBy("cell.position", "cell.value").agg(sql.count("*").alias("count"))
    nothing = (sql.lit(None).cast("string").alias(name) for name in ("name", "label", "reason"))
    rows = counts.select(sql.lit(table.name).alias("table"), "position", *nothing, "value", "count")
    return rows.unionByName(table.frame.sparkSession.createDataFrame(descriptions, _COUNTED))


def _cell(position: int, value: Column) -> Column:
    from pyspark.sql import functions as sql

    return sql.struct(sql.lit(position).alias("position"), value.cast("string").alias("value"))


def _reason_not_read(kind: DataType, kinds: tuple[str, ...]) -> str | None:
    from pyspark.sql import types

    if isinstance(kind, types.NumericType) and "number" not in kinds:
        return (
            f"numbers: its type is {kind.simpleString()}, and only {' and '.join(kinds)} "
            "columns are kept (kinds)"
        )
    as_text = (
        types.StringType,
        types.CharType,
        types.VarcharType,
        types.NumericType,
        types.BooleanType,
        types.NullType,
    )
    if isinstance(kind, (*as_text, types.DateType, types.TimestampType, types.TimestampNTZType)):
        return None
    return f"no text: its type is {kind.simpleString()[:60]}"


def _cells_as_texts(table: SparkTable) -> tuple[DataFrame, list[str]]:
    """Return a table with all cells as texts, null where there is none, and its labels."""
    from pyspark.sql import functions as sql

    fields = table.frame.schema.fields
    frame = table.frame.toDF(*(f"c{position}" for position in range(len(fields))))
    cells = [
        (
            cell_text(sql.col(f"c{position}"), field.dataType)
            if _reason_not_read(field.dataType, KINDS) is None
            else sql.lit(None).cast("string")
        ).alias(f"c{position}")
        for position, field in enumerate(fields)
    ]
    return frame.select(*cells), label_columns([field.name for field in fields])


def _note_of_size(table: SparkTable, max_table_bytes: int) -> str | None:
    """Return why the rows of a table are not read, if they are not."""
    from pyspark.sql import functions as sql

    frame, _ = _cells_as_texts(table)
    sizes = [
        sql.coalesce(sql.octet_length(name), sql.lit(0)) + _VALUE_BYTES for name in frame.columns
    ]
    row = reduce(lambda total, size: total + size, sizes, sql.lit(0))
    n_bytes = frame.agg(sql.sum(row.cast("long"))).first()[0] or 0
    if n_bytes <= max_table_bytes:
        return None
    return (
        f"its rows are not found by composite keys: they take {n_bytes:,} bytes, at most "
        f"{max_table_bytes:,} allowed (max_table_bytes)"
    )


def _row_records(
    table: SparkTable, options: BuildOptions, part_records: Sequence[Records]
) -> DataFrame:
    """Return what is wanted of the rows of a table, in the order in which Spark reads them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    frame, labels = _cells_as_texts(table)
    name, rules, normaliser = table.name, options.rules, options.normaliser

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        first = TaskContext.get().partitionId() << 33
        for batch in batches:
            columns = [column.cast(pa.string()) for column in batch.columns]
            rows = TableRows(labels, columns, normaliser, first)
            for records in part_records:
                yield from records([ReadTable(name, (), rules, normaliser.readings, rows)])
            first += batch.num_rows

    return frame.mapInArrow(work, from_arrow_schema(SCHEMA))


def _bounded(counted: DataFrame, max_table_bytes: int) -> DataFrame:
    """Take the values out of columns that are too large for a task, and say so in their place."""
    from pyspark.sql import functions as sql

    size = sql.sum(sql.octet_length("value") + sql.lit(_VALUE_BYTES))
    sizes = (
        counted.where(sql.col("value").isNotNull())
        .groupBy("table", "position")
        .agg(size.alias("bytes"))
    )
    too_large = sizes.where(sql.col("bytes") > max_table_bytes)
    joined = counted.join(sql.broadcast(too_large), ["table", "position"], "left")
    message = sql.format_string(
        f"its distinct values take %,d bytes, at most {max_table_bytes:,} allowed "
        "(max_table_bytes)",
        "bytes",
    )
    describes = sql.col("label").isNotNull()
    rows = joined.where(sql.col("bytes").isNull() | describes)
    reason = (
        sql.when(sql.col("bytes").isNotNull(), message).otherwise(sql.col("reason")).alias("reason")
    )
    return rows.select("table", "position", "name", "label", reason, "value", "count")


def _records_of_column(
    group: pa.Table, options: BuildOptions, part_records: Sequence[Records]
) -> pa.Table:
    """Turn the counted values of a column, or the number of rows of a table, into records."""
    header = group.filter(pc.is_valid(group["label"])).to_pylist()[0]
    counted = group.filter(pc.is_null(group["label"]))
    n_rows = pc.sum(counted["count"]).as_py() or 0
    if header["position"] == _TABLE:
        notes = [] if header["reason"] is None else [header["reason"]]
        record = {"record": "table", "table": header["table"], "format": FORMAT, "notes": notes}
        return pa.Table.from_pylist(
            [record | {"n_columns": header["count"], "n_rows": n_rows}], schema=SCHEMA
        )
    about = {name: header[name] for name in ("table", "position", "name", "label")}
    if header["reason"] is not None:
        return pa.Table.from_pylist(
            [{"record": "column", **about, "reason": header["reason"]}], schema=SCHEMA
        )
    # Sorted, so that the text shown for a value does not depend on which task counted it.
    present = counted.filter(pc.is_valid(counted["value"])).sort_by("value")
    columns = [present[name].combine_chunks() for name in ("value", "count")]
    raw = pa.StructArray.from_arrays(columns, names=["values", "counts"])
    records = counted_column_records(
        about, raw, n_rows, options.rules, options.normaliser, wanted=part_records
    )
    return pa.Table.from_batches(records, schema=SCHEMA)
