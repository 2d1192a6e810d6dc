"""Detection of the tables of a lake that are new, changed or gone since an index was written.

Listings are compared in Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pexeso.build.lake_source.source import (
    LISTING,
    LISTING_SCHEMA,
    SKIPPED,
    FolderSource,
    spark_schema,
)
from pexeso.build.stages import Facts
from pexeso.io.location import read_parquet, spark_path
from pexeso.lake.catalog import COLUMNS, COLUMNS_SCHEMA, REMOVED, TABLES, TABLES_SCHEMA
from pexeso.lake.containers.formats import READERS
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pexeso.build.job import BuildJob

NEW, CHANGED, GONE, UNCHANGED = "new", "changed", "gone", "unchanged"
REREAD = "reread"
"""Of a format that is read in another way than when the index was written."""

_DOUBTFUL = "doubtful"

SCHEMAS = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA}


def find_changes(job: BuildJob, source: FolderSource, folder: Path, *, compare: str) -> Facts:
    """Compare the listing of this update with the catalog of an index.

    Leaves ``listing`` (the tables to read), ``changes`` (table, change) and ``skipped`` (files that
    are no tables, and not in the catalog yet) in the folder. Reads the files whose time of change
    alone differs; with ``compare="content"`` all whose size is the same.

    Returns
    -------
    dict
        How many are ``new``, ``changed``, ``reread``, ``gone``, ``unchanged``; ``rows``, how many
        rows the catalog will get.
    """
    from pyspark.sql import functions as sql

    spark = job.spark
    listing, skipped = job.frame("list", LISTING), job.frame("list", SKIPPED)
    known = live_rows(spark, job.index, TABLES).select(
        "table",
        *(
            sql.col(name).alias(f"old_{name}")
            for name in ("n_bytes", "modified", "version", "fingerprint")
        ),
    )
    judged = listing.join(known.withColumn("known", sql.lit(True)), "table", "left").withColumn(
        "change", _judgement(compare, stale_formats(job.index))
    )
    judged.write.parquet(spark_path(folder / "judged"))
    judged = read_parquet(spark, folder / "judged")
    doubtful = judged.where(sql.col("change") == _DOUBTFUL)
    columns = [*LISTING_SCHEMA.names, "old_fingerprint"]
    resolved = source.changed(doubtful.select(*columns))
    decided = (
        judged.where(sql.col("change") != _DOUBTFUL).select("table", "change").unionByName(resolved)
    )
    there = listing.select("table").unionByName(skipped.select("table"))
    gone = known.join(there, "table", "left_anti").select("table", sql.lit(GONE).alias("change"))
    decided.unionByName(gone).write.parquet(spark_path(folder / "changes"))
    changes = read_parquet(spark, folder / "changes")
    to_read = listing.join(
        changes.where(f"change in ('{NEW}', '{CHANGED}', '{REREAD}')").select("table"),
        "table",
        "left_semi",
    )
    to_read.write.parquet(spark_path(folder / LISTING))
    skipped.join(known, "table", "left_anti").write.parquet(spark_path(folder / SKIPPED))
    counts = {
        row.change: row.n
        for row in changes.groupBy("change").agg(sql.count("*").alias("n")).collect()
    }
    facts = {kind: counts.get(kind, 0) for kind in (NEW, CHANGED, REREAD, GONE, UNCHANGED)}
    n_skipped = read_parquet(spark, folder / SKIPPED).count()
    return {**facts, "rows": facts[NEW] + facts[CHANGED] + facts[REREAD] + n_skipped}


def stale_formats(store: Store) -> list[str]:
    """Return the formats whose reader is another one than when an index was written.

    All, where the index does not say which it was.
    """
    known = store.manifest.facts.get("readers", {})
    return [name for name, version in READERS.items() if known.get(name) != version]


def _judgement(compare: str, stale: Sequence[str]) -> Column:
    """Return what the listing alone tells of a table."""
    from pyspark.sql import functions as sql

    same_size = sql.col("n_bytes") == sql.col("old_n_bytes")
    same_time = (sql.col("modified") == sql.col("old_modified")) & sql.col("version").eqNullSafe(
        sql.col("old_version")
    )
    comparable = same_size & sql.col("old_fingerprint").isNotNull()
    trusted = same_size & sql.coalesce(same_time, sql.lit(False))
    if compare == "content":
        trusted = trusted & sql.col("old_fingerprint").isNull()
    return (
        sql.when(sql.col("known").isNull(), NEW)
        .when(sql.col("format").isin(*stale), REREAD)
        .when(trusted, UNCHANGED)
        .when(comparable, _DOUBTFUL)
        .otherwise(CHANGED)
    )


def live_rows(spark: SparkSession, store: Store, kind: str) -> DataFrame:
    """Read the rows of a kind (`TABLES` or `COLUMNS`) that hold from all folders of a catalog."""
    from pyspark.sql import functions as sql

    schema = spark_schema(SCHEMAS[kind])
    rows = spark.createDataFrame([], schema)
    for found, removed in zip(store.catalog_files(kind), store.catalog_files(REMOVED), strict=True):
        if removed:
            gone = read_parquet(spark, *removed)
            rows = rows.join(sql.broadcast(gone), "table", "left_anti")
        for path in found:
            there = read_parquet(spark, path)
            cast = [
                sql.col(field.name).cast(field.dataType)
                for field in schema.fields
                if field.name in there.columns
            ]
            rows = rows.unionByName(there.select(*cast), allowMissingColumns=True)
    return rows
