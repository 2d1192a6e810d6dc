"""Join of a Spark DataFrame with a found table.

Mapping and rows are the same as in memory. Spark's tasks compute them.

The mapping comes from the distinct values of the query column, and goes to the tasks. A found table
that is a file is read whole by one task, as it was for the index: so the order of day and month in
its dates is the one that the index has. Of a table of Spark's own the distinct values of the found
column go to one task for the same reason; its rows are put together in buckets of query values. The
user's rows are looked up by their text, for which the search has decided what it means, so no part
of them needs to be seen as a whole. The driver holds the mapping, never rows.

A DataFrame has its types before its rows: those of a file that has types are found by a task that
reads it once more, beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.spark_tables import cell_text
from pexeso.errors import InputError, TableReadError
from pexeso.joins.mapping import JoinMapping, places_in
from pexeso.joins.matched_rows import (
    FoundRows,
    JoinedRows,
    find_rows,
    first_rows,
    found_types,
    joined_rows,
)
from pexeso.joins.options import JoinOptions
from pexeso.joins.report import (
    CONFLICTS,
    JoinReport,
    conflict_rows,
    mapping_conflicts,
    may_grow,
    report_on_spark,
    require_moderate_growth_on_spark,
    row_conflicts,
)
from pexeso.joins.tables import Joined, choose_names, position_of
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.containers.formats import format_of
from pexeso.lake.containers.reader import FORMATS_OF_TEXTS
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.rights import LakeView
from pexeso.lake.rows import read_typed_rows
from pexeso.store.io.location import Location

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


# The types that the columns of a found table have in a Spark DataFrame.
#
# They are those of its file, as in a join in memory, or the nearest that Spark has; a column is
# text where Spark has none, or where a cell does not fit.

_NEAREST = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
_SAME = frozenset(
    {
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.float32(), pa.float64(), pa.date32()),
    }
)
_MOST_DIGITS = 38


def spark_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type by which Spark gets values of a type; None where it has none."""
    types = pa.types
    if kind in _SAME:
        return kind
    if kind in _NEAREST:
        return _NEAREST[kind]
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_decimal(kind):
        fits = 0 <= kind.scale <= kind.precision <= _MOST_DIGITS
        return pa.decimal128(kind.precision, kind.scale) if fits else None
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = spark_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if types.is_struct(kind):
        inner = [(field.name, spark_type(field.type)) for field in kind]
        return None if any(inner_type is None for _, inner_type in inner) else pa.struct(inner)
    return None


def spark_columns(rows: pa.Table, typed: Sequence[pa.ChunkedArray] | None) -> list[pa.ChunkedArray]:
    if typed is None:
        return rows.columns
    return [_cast(*pair) for pair in zip(typed, rows.columns, strict=True)]


def _cast(column: pa.ChunkedArray, texts: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = spark_type(column.type)
    if kind is None:
        return texts
    # Spark's timestamps have microseconds: what is finer is cut off, as where Spark reads the file.
    is_finer = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    try:
        return column.cast(kind, safe=not is_finer)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return texts


ROWS_PER_BATCH = 1 << 14
# Texts whose rows of a table of Spark's one task puts together at a time.
TEXTS_PER_BUCKET = 64

# What a task makes of the joined rows.
Work = Callable[[FoundRows], Iterator[pa.RecordBatch]]

_QUERY, _TEXT, _LAKE, _BUCKET = "__query", "__text", "__lake", "__bucket"
# As a task gives them to Spark, some rows at a time.
_CONFLICTS = pa.schema(
    [
        (field.name, pa.string() if pa.types.is_large_string(field.type) else field.type)
        for field in CONFLICTS
    ]
)

_ROW = "__row"
_FIRST_ROWS = pa.schema([(_LAKE, pa.int64()), (_ROW, pa.int64())])
_COUNTS = pa.schema([(_QUERY, pa.int64()), ("n_rows", pa.int64())])


@dataclass(frozen=True)
class FoundTable:
    where: Path | Location
    table: str
    column: str
    labels: list[str]
    normaliser: Normaliser
    max_table_bytes: int
    mapping: JoinMapping
    options: JoinOptions
    types: tuple[pa.DataType, ...] | None = None
    view: LakeView | None = None

    def read(self) -> tuple[pa.Table, list[pa.ChunkedArray]]:
        rows, typed = read_typed_rows(
            self.where, self.table, max_bytes=self.max_table_bytes, view=self.view
        )
        if rows.column_names != self.labels:
            raise TableReadError(
                f"'{self.table}' has other columns than when it was indexed: bring the "
                "index up to date with append."
            )
        return rows, spark_columns(rows, typed)

    def joined_rows(self) -> FoundRows:
        rows, columns = self.read()
        if self.types is not None and tuple(column.type for column in columns) != self.types:
            raise TableReadError(f"'{self.table}' was replaced while it was read: join again.")
        return find_rows(
            self.table, self.column, rows, self.mapping, self.normaliser, self.options, columns
        )

    @property
    def schema(self) -> pa.Schema:
        """What tasks give: the text by its position, then what `FoundRows.take` gives."""
        types = self.types or (pa.string(),) * len(self.labels)
        types = found_types(self.labels, types, self.options)
        return pa.schema(
            [(_QUERY, pa.int64()), *((f"c{location}", kind) for location, kind in enumerate(types))]
        )


def join_frame(
    frame: DataFrame,
    on: str | int | None,
    lake_table: FoundTable,
    searched: pa.StringArray,
    *,
    from_spark: bool,
) -> Joined:
    """Join a Spark DataFrame with a found table: a DataFrame that is worked out when it is used.

    The report runs Spark jobs when it is asked for, and holds at most one row for each link, and
    for each row and cell of the found table that is in a conflict.
    """
    from pyspark.sql import functions as sql

    spark = frame.sparkSession
    own_names = frame.columns
    position = position_of(own_names, on)
    _require_text(frame, position)
    fold_case = spark.conf.get("spark.sql.caseSensitive") != "true"
    names = choose_names(
        own_names, lake_table.labels, lake_table.table, lake_table.options, fold_case=fold_case
    )
    if not from_spark and lake_table.mapping.may_tie:
        lake_table = replace(lake_table, mapping=_in_row_order(spark, lake_table))
    source = _SparkTable(spark, lake_table) if from_spark else _File(spark, lake_table)
    added = _by_text(spark, lake_table.mapping).join(source.rows(), _QUERY).drop(_QUERY)
    ours = frame.toDF(*(f"u{location}" for location in range(len(own_names))))
    text = ours[f"u{position}"].cast("string")
    texts = ours.select(text.alias(_TEXT))
    if may_grow(lake_table.options):
        counted = _by_text(spark, lake_table.mapping).join(source.counts(), _QUERY)
        counted = counted.select(sql.col(_TEXT).alias("text"), "n_rows")
        require_moderate_growth_on_spark(texts, counted, lake_table.table, lake_table.options)
    joined = ours.join(added, text == added[_TEXT], lake_table.options.how)
    columns = [*ours.columns, *(name for name in lake_table.schema.names if name != _QUERY)]
    joined = joined.select(*columns).toDF(
        *own_names, *names.provenance.values(), *names.found_columns
    )
    return Joined(joined, partial(_report, texts, added, lake_table, searched, source, names.note))


def _require_text(frame: DataFrame, position: int) -> None:
    from pyspark.sql import types

    field = frame.schema.fields[position]
    allowed = (
        types.StringType,
        types.CharType,
        types.VarcharType,
        types.IntegralType,
        types.BooleanType,
        types.DateType,
    )
    if not isinstance(field.dataType, allowed):
        raise InputError(
            f"The query column {field.name!r} is of type {field.dataType.simpleString()}, which "
            "has more than one text. "
            "Cast it to string, for the search and for the join alike."
        )


def _by_text(spark: SparkSession, mapping: JoinMapping) -> DataFrame:
    """Return the texts of the joined query values, each with its position among all texts."""
    is_joined = np.isin(mapping.query_of_text, mapping.query[mapping.chosen])
    columns = [mapping.texts.filter(pa.array(is_joined)), pa.array(np.flatnonzero(is_joined))]
    return spark.createDataFrame(pa.Table.from_arrays(columns, [_TEXT, _QUERY]))


def _in_row_order(spark: SparkSession, table: FoundTable) -> JoinMapping:
    """Return the mapping whose ties go by the rows of a file, which one task reads for that."""
    task = partial(_read_file, table=table, work=_first_rows)
    rows = spark.range(0, 1, 1, 1).mapInArrow(task, _in_spark(_FIRST_ROWS)).toArrow()
    first = np.zeros(len(table.mapping.lake_keys), np.int64)
    first[rows[_LAKE].to_numpy()] = rows[_ROW].to_numpy()
    return table.mapping.in_order(first, table.options.values)


def _first_rows(found_rows: FoundRows) -> Iterator[pa.RecordBatch]:
    rows = first_rows(found_rows.key, found_rows.mapping)
    columns = [pa.array(np.arange(len(rows))), pa.array(rows)]
    yield from pa.Table.from_arrays(columns, schema=_FIRST_ROWS).to_batches(ROWS_PER_BATCH)


def _slim(mapping: JoinMapping) -> JoinMapping:
    """Drop the links that are not joined, which tasks do not need."""
    links = {
        name: getattr(mapping, name)[mapping.chosen]
        for name in ("query", "lake", "distance", "cost", "same", "chosen")
    }
    return replace(mapping, **links)


class _File:
    def __init__(self, spark: SparkSession, table: FoundTable) -> None:
        self._spark, self._lake_table = spark, replace(table, mapping=_slim(table.mapping))
        file_format = format_of(table.table)
        if "#" in table.table or file_format is None or file_format.name not in FORMATS_OF_TEXTS:
            self._lake_table = replace(self._lake_table, types=self._types())

    def rows(self) -> DataFrame:
        return self._run(_joined_rows, self._lake_table.schema)

    def counts(self) -> DataFrame:
        return self._run(_row_counts, _COUNTS)

    def conflicts(self) -> pa.Table:
        return self._run(_row_conflicts, _CONFLICTS).toArrow().cast(CONFLICTS)

    def _types(self) -> tuple[pa.DataType, ...]:
        task = partial(_read_types, table=self._lake_table)
        (row,) = self._spark.range(0, 1, 1, 1).mapInArrow(task, "types binary").collect()
        return tuple(pa.ipc.read_schema(pa.py_buffer(bytes(row.types))).types)

    def _run(self, work: Work, schema: pa.Schema) -> DataFrame:
        task = partial(_read_file, table=self._lake_table, work=work)
        return self._spark.range(0, 1, 1, 1).mapInArrow(task, _in_spark(schema))


def _read_file(
    batches: Iterator[pa.RecordBatch], *, table: FoundTable, work: Work
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for _ in range(batch.num_rows):
            yield from work(table.joined_rows())


def _read_types(
    batches: Iterator[pa.RecordBatch], *, table: FoundTable
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for _ in range(batch.num_rows):
            _, columns = table.read()
            schema = pa.schema([(f"c{at}", column.type) for at, column in enumerate(columns)])
            yield pa.RecordBatch.from_pydict({"types": [schema.serialize().to_pybytes()]})


def _in_spark(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _joined_rows(found_rows: FoundRows) -> Iterator[pa.RecordBatch]:
    step = ROWS_PER_BATCH if found_rows.ways is None else max(1, len(found_rows.text_of_row))
    for start in range(0, len(found_rows.text_of_row), step):
        chunk = found_rows.take(start, start + step)
        query = pa.array(found_rows.text_of_row[start : start + step])
        yield from chunk.add_column(0, _QUERY, query).to_batches(ROWS_PER_BATCH)


def _row_counts(found_rows: FoundRows) -> Iterator[pa.RecordBatch]:
    counts = found_rows.counts()
    text = np.flatnonzero(counts)
    columns = [pa.array(text), pa.array(counts[text])]
    yield from pa.Table.from_arrays(columns, schema=_COUNTS).to_batches(ROWS_PER_BATCH)


def _row_conflicts(found_rows: FoundRows) -> Iterator[pa.RecordBatch]:
    for batch in row_conflicts(found_rows).to_batches(ROWS_PER_BATCH):
        yield batch.cast(_CONFLICTS)


class _SparkTable:
    """A found table that Spark can read.

    Its rows have no order; of one lake value they are put in the order of their cells.
    """

    def __init__(self, spark: SparkSession, lake_table: FoundTable) -> None:
        from pyspark.sql import functions as sql

        quoted = ".".join(f"`{part.replace('`', '``')}`" for part in lake_table.table.split("."))
        if not spark.catalog.tableExists(quoted):
            raise InputError(
                f"Spark's catalog has no table or view '{lake_table.table}', which the index was "
                "built from. Where that was a DataFrame, "
                f"give it this name first: frame.createOrReplaceTempView('{lake_table.table}')."
            )
        frame = spark.table(quoted)
        if label_columns(frame.columns) != lake_table.labels:
            raise TableReadError(
                f"'{lake_table.table}' has other columns than when it was indexed: build the index "
                "again."
            )
        names = [f"c{location}" for location in range(len(lake_table.labels))]
        frame = frame.toDF(*names)
        types = _arrow_types(frame)
        self._lake_table = replace(lake_table, mapping=_slim(lake_table.mapping), types=types)
        self._cells = frame.select(
            *(
                cell_text(sql.col(name), field.dataType).alias(name)
                for name, field in zip(names, frame.schema.fields, strict=True)
            ),
            *(
                sql.col(name).alias(f"t{name}")
                for name, kind in zip(names, types, strict=True)
                if kind != pa.string()
            ),
        )
        self._key = f"c{find_column(lake_table.labels, lake_table.column)}"

    def rows(self) -> DataFrame:
        return self._buckets(_joined_rows, self._lake_table.schema)

    def counts(self) -> DataFrame:
        return self._linked().groupBy(_QUERY).count().withColumnRenamed("count", "n_rows")

    def conflicts(self) -> pa.Table:
        conflicts = self._buckets(_row_conflicts, _CONFLICTS).toArrow().cast(CONFLICTS)
        # What one bucket lacks may be in another.
        conflicts = conflicts.filter(pc.not_equal(conflicts["kind"], "gone"))
        mapping = self._lake_table.mapping
        present = self._keys().select(_LAKE).distinct().toArrow()[_LAKE].to_numpy()
        joined = mapping.lake[mapping.chosen]
        missing = mapping.lake_names.take(pa.array(np.setdiff1d(joined, present)))
        return pa.concat_tables([conflicts, conflict_rows("gone", lake_value=missing)])

    def _keys(self) -> DataFrame:
        """Return the cells of the found column that are joined with a text, each with both ends."""
        from pyspark.sql import functions as sql

        mapping, normaliser = self._lake_table.mapping, self._lake_table.normaliser
        tells_forms = self._lake_table.options.values != "all"

        def work(group: pa.Table) -> pa.Table:
            # Sorted, so that nothing hangs on the order in which values come.
            cells = group.sort_by(_TEXT)[_TEXT].combine_chunks()
            key = places_in(normaliser.normalise(cells), mapping.lake_keys)
            forms = normaliser.resolved(mapping.texts), normaliser.resolved(cells)
            joined = joined_rows(key, mapping, forms if tells_forms else None)
            text, row, _ = joined.written_out
            columns = [cells.take(pa.array(row)), pa.array(key[row]), pa.array(text)]
            return pa.Table.from_arrays(columns, [_TEXT, _LAKE, _QUERY])

        texts = (
            self._cells.where(sql.col(self._key).isNotNull())
            .select(sql.col(self._key).alias(_TEXT))
            .distinct()
        )
        return (
            texts.withColumn(_BUCKET, sql.lit(0))
            .groupBy(_BUCKET)
            .applyInArrow(work, f"{_TEXT} string, {_LAKE} long, {_QUERY} long")
        )

    def _linked(self) -> DataFrame:
        """Return the rows that are joined, once for each text, with both ends of the link."""
        from pyspark.sql import functions as sql

        rows = self._cells.join(self._keys(), sql.col(self._key) == sql.col(_TEXT))
        return rows.select(_QUERY, _LAKE, *self._cells.columns)

    def _buckets(self, work: Work, schema: pa.Schema) -> DataFrame:
        from pyspark.sql import functions as sql

        lake_table = self._lake_table
        n_buckets = max(1, math.ceil(len(lake_table.mapping.texts) / TEXTS_PER_BUCKET))
        bucket = sql.pmod(sql.hash(_QUERY), sql.lit(n_buckets))
        rows = self._linked().withColumn(_BUCKET, bucket)

        def task(group: pa.Table) -> pa.Table:
            return _of_bucket(group, lake_table, work, schema)

        return rows.groupBy(_BUCKET).applyInArrow(task, _in_spark(schema))


def _arrow_types(frame: DataFrame) -> tuple[pa.DataType, ...]:
    """Return the types of columns of Spark in Arrow: of text where it is nested, or has none."""
    from pyspark.sql import types
    from pyspark.sql.pandas.types import to_arrow_type

    classes = (
        *(types.NumericType, types.BooleanType, types.DateType),
        *(types.TimestampNTZType, types.BinaryType),
    )
    return tuple(
        pa.timestamp("us", "UTC")
        if isinstance(field.dataType, types.TimestampType)
        else (isinstance(field.dataType, classes) and spark_type(to_arrow_type(field.dataType)))
        or pa.string()
        for field in frame.schema.fields
    )


def _of_bucket(group: pa.Table, lake_table: FoundTable, work: Work, schema: pa.Schema) -> pa.Table:
    mapping = lake_table.mapping
    names = [f"c{location}" for location in range(len(lake_table.labels))]
    group = group.sort_by([(name, "ascending") for name in names])
    text, lake = (group[name].to_numpy() for name in (_QUERY, _LAKE))
    # Links are in order of query value, nearest first: the place among them is the rank.
    n_lake = len(mapping.lake_keys)
    ids = mapping.query * n_lake + mapping.lake
    by_id = np.argsort(ids)
    link = by_id[np.searchsorted(ids[by_id], mapping.query_of_text[text] * n_lake + lake)]
    order = np.lexsort((link, text))
    rows = group.select(names).rename_columns(lake_table.labels)
    columns = [f"t{name}" if f"t{name}" in group.column_names else name for name in names]
    typed = [
        group[name].cast(kind) for name, kind in zip(columns, lake_table.types or (), strict=True)
    ]
    found_rows = FoundRows(
        lake_table.table,
        lake_table.column,
        rows,
        mapping,
        lake_table.options,
        lake,
        JoinedRows.of_rows(text[order], order, mapping.distance[link[order]]),
        typed=typed,
    )
    batches = list(work(found_rows))
    return pa.Table.from_batches(batches, schema).cast(schema) if batches else schema.empty_table()


def _report(
    texts: DataFrame,
    added: DataFrame,
    lake_table: FoundTable,
    searched: pa.StringArray,
    source: _File | _SparkTable,
    note: str | None,
) -> JoinReport:
    mapping, options = lake_table.mapping, lake_table.options
    conflicts = [mapping_conflicts(mapping, options.values), source.conflicts()]
    return report_on_spark(texts, added.select(_TEXT), conflicts, searched, options.how, note)
