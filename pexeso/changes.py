"""Which tables of a lake are new, changed or gone since an index was written: listings compared in Spark's tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pexeso.lake.catalog import COLUMNS, COLUMNS_SCHEMA, REMOVED, TABLES, TABLES_SCHEMA
from pexeso.source import LISTING, LISTING_SCHEMA, SKIPPED, FolderSource, spark_schema
from pexeso.stages import Facts
from pexeso.store.reader import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pexeso.steps import Steps

NEW, CHANGED, GONE, UNCHANGED = "new", "changed", "gone", "unchanged"
_DOUBTFUL = "doubtful"

SCHEMAS = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA}


def find_changes(steps: Steps, store: Store, source: FolderSource, folder: Path, *, compare: str) -> Facts:
    """Compare the listing of this update with the catalog of an index.

    Leaves ``listing`` (the tables to read), ``changes`` (table, change) and ``skipped`` (files that are no tables, and
    not in the catalog yet) in the folder. Reads the files whose time of change alone differs; with ``compare="content"``
    all whose size is the same.

    Returns
    -------
    dict
        How many are ``new``, ``changed``, ``gone``, ``unchanged``; ``rows``, how many rows the catalog will get.
    """
    from pyspark.sql import functions as sql

    spark = steps.spark
    listing, skipped = steps.frame("list", LISTING), steps.frame("list", SKIPPED)
    known = live_rows(spark, store, TABLES).select(
        "table",
        *(sql.col(name).alias(f"old_{name}") for name in ("n_bytes", "modified", "version", "fingerprint")),
    )
    judged = listing.join(known.withColumn("known", sql.lit(True)), "table", "left").withColumn(
        "change", _judgement(compare)
    )
    judged.write.parquet((folder / "judged").as_uri())
    judged = spark.read.parquet((folder / "judged").as_uri())
    doubtful = judged.where(sql.col("change") == _DOUBTFUL)
    columns = [*LISTING_SCHEMA.names, "old_fingerprint"]
    resolved = source.changed(doubtful.select(*columns))
    decided = judged.where(sql.col("change") != _DOUBTFUL).select("table", "change").unionByName(resolved)
    there = listing.select("table").unionByName(skipped.select("table"))
    gone = known.join(there, "table", "left_anti").select("table", sql.lit(GONE).alias("change"))
    decided.unionByName(gone).write.parquet((folder / "changes").as_uri())
    changes = spark.read.parquet((folder / "changes").as_uri())
    to_read = listing.join(changes.where(f"change in ('{NEW}', '{CHANGED}')").select("table"), "table", "left_semi")
    to_read.write.parquet((folder / LISTING).as_uri())
    skipped.join(known, "table", "left_anti").write.parquet((folder / SKIPPED).as_uri())
    counts = {row.change: row.n for row in changes.groupBy("change").agg(sql.count("*").alias("n")).collect()}
    facts = {kind: counts.get(kind, 0) for kind in (NEW, CHANGED, GONE, UNCHANGED)}
    n_skipped = spark.read.parquet((folder / SKIPPED).as_uri()).count()
    return {**facts, "rows": facts[NEW] + facts[CHANGED] + n_skipped}


def _judgement(compare: str) -> Column:
    """Say what the listing alone tells of a table."""
    from pyspark.sql import functions as sql

    same_size = sql.col("n_bytes") == sql.col("old_n_bytes")
    same_time = (sql.col("modified") == sql.col("old_modified")) & sql.col("version").eqNullSafe(sql.col("old_version"))
    comparable = same_size & sql.col("old_fingerprint").isNotNull()
    trusted = same_size & sql.coalesce(same_time, sql.lit(False))
    if compare == "content":
        trusted = trusted & sql.col("old_fingerprint").isNull()
    return (
        sql.when(sql.col("known").isNull(), NEW).when(trusted, UNCHANGED).when(comparable, _DOUBTFUL).otherwise(CHANGED)
    )


def live_rows(spark: SparkSession, store: Store, kind: str) -> DataFrame:
    """Read the rows of a kind (`TABLES` or `COLUMNS`) that hold from all folders of a catalog."""
    from pyspark.sql import functions as sql

    schema = spark_schema(SCHEMAS[kind])
    rows = spark.createDataFrame([], schema)
    for found, removed in zip(store.catalog_files(kind), store.catalog_files(REMOVED), strict=True):
        if removed:
            gone = spark.read.parquet(*(path.absolute().as_uri() for path in removed))
            rows = rows.join(sql.broadcast(gone), "table", "left_anti")
        for path in found:
            there = spark.read.parquet(path.absolute().as_uri())
            cast = [sql.col(field.name).cast(field.dataType) for field in schema.fields if field.name in there.columns]
            rows = rows.unionByName(there.select(*cast), allowMissingColumns=True)
    return rows
