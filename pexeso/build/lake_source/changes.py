"""Detection of the tables of a lake that are new, changed or gone since an index was written.

Listings are compared in Spark's tasks, short ones in this process; what a row means is decided by
the same function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.dataset import dataset

from pexeso.build import in_driver
from pexeso.build.lake_source.source import (
    LISTING,
    LISTING_SCHEMA,
    SKIPPED,
    SKIPPED_SCHEMA,
    FolderSource,
    n_reading_tasks,
    spark_schema,
)
from pexeso.build.report import Task
from pexeso.build.stages import Facts
from pexeso.build.tasks import compare_contents
from pexeso.io.location import Location, read_parquet, spark_path
from pexeso.io.parquet_folder import write_parquet_folder
from pexeso.lake.catalog import (
    COLUMNS,
    COLUMNS_SCHEMA,
    REMOVED,
    TABLES,
    TABLES_SCHEMA,
    Catalog,
)
from pexeso.lake.containers.formats import READERS
from pexeso.parts.base import Batches
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pexeso.build.job import BuildJob

NEW, CHANGED, GONE, UNCHANGED = "new", "changed", "gone", "unchanged"
REREAD = "reread"
"""Of a format that is read in another way than when the index was written."""

_DOUBTFUL, _KNOWN_SKIPPED = "doubtful", "skipped before"

_TO_READ = (NEW, CHANGED, REREAD)
_KNOWN = ("n_bytes", "modified", "version", "fingerprint")
_THERE = pa.schema([*LISTING_SCHEMA, SKIPPED_SCHEMA.field("reason")])
_JUDGED = _THERE.append(pa.field("change", pa.string()))
_LEFT = {"changes": _JUDGED, LISTING: LISTING_SCHEMA, SKIPPED: SKIPPED_SCHEMA}

SCHEMAS = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA}


def find_changes(job: BuildJob, source: FolderSource, folder: Path, *, compare: str) -> Facts:
    """Compare the listing of this update with the catalog of an index.

    Leaves ``listing`` (the tables to read), ``changes`` (table, change) and ``skipped`` (files that
    are no tables, and not in the catalog yet) in the folder. Reads the files whose time of change
    alone differs; with ``compare="content"`` all whose size is the same.

    Returns
    -------
    dict
        How many are ``new``, ``changed``, ``reread``, ``gone``, ``unchanged``; ``bytes``, those of
        the files to read; ``rows``, how many rows the catalog will get.
    """
    judge = partial(
        judged, root=source.root, compare=compare, stale_formats=stale_formats(job.index)
    )
    if source.is_small() and in_driver.catalog_fits(job.index, TABLES):
        _judge_here(job, judge, folder)
    else:
        _judge_in_tasks(job, judge, folder)
    counted: Counter[str] = Counter()
    n_bytes = 0
    for batch in dataset(folder / "changes").to_batches(columns=["change", "n_bytes"]):
        changes = batch["change"]
        counted.update({row["values"]: row["counts"] for row in changes.value_counts().to_pylist()})
        to_read = pc.is_in(changes, value_set=pa.array(_TO_READ))
        n_bytes += pc.sum(batch["n_bytes"].filter(to_read)).as_py() or 0
    facts = {kind: counted[kind] for kind in (NEW, CHANGED, REREAD, GONE, UNCHANGED)}
    n_rows = sum(counted[kind] for kind in (*_TO_READ, SKIPPED))
    return {**facts, "bytes": n_bytes, "rows": n_rows}


def _judge_here(job: BuildJob, judge: Task, folder: Path) -> None:
    """Compare a short listing in this process, which takes less time than one job of Spark's."""
    known = Catalog(job.index.catalog_files).tables(["table", *_KNOWN])
    known = known.rename_columns(["table", *(f"old_{name}" for name in _KNOWN)])
    there = pa.concat_tables(
        [_THERE.empty_table(), *(pq.read_table(_left(job, name)) for name in (LISTING, SKIPPED))],
        promote_options="default",
    )
    pairs = there.append_column("there", pa.repeat(True, len(there))).join(
        known.append_column("known", pa.repeat(True, len(known))), "table", join_type="full outer"
    )
    rows = pa.Table.from_batches(judge(iter(pairs.to_batches())), schema=_JUDGED)
    change = rows["change"]
    for name, chosen in (
        ("changes", rows),
        (LISTING, rows.filter(pc.is_in(change, value_set=pa.array(_TO_READ)))),
        (SKIPPED, rows.filter(pc.equal(change, SKIPPED))),
    ):
        write_parquet_folder(chosen.select(_LEFT[name].names), folder / name)


def _judge_in_tasks(job: BuildJob, judge: Task, folder: Path) -> None:
    from pyspark.sql import functions as sql

    listed = job.stages.finished("list") or {}
    n_tasks = n_reading_tasks(job.spark, listed.get("bytes") or 0)
    known = live_rows(job.spark, job.index, TABLES).select(
        "table", *(sql.col(name).alias(f"old_{name}") for name in _KNOWN)
    )
    there = job.frame("list", LISTING).unionByName(
        job.frame("list", SKIPPED), allowMissingColumns=True
    )
    pairs = there.withColumn("there", sql.lit(True)).join(
        known.withColumn("known", sql.lit(True)), "table", "full"
    )
    # By file: one that holds several tables is opened once.
    rows = pairs.repartition(n_tasks, "path").mapInArrow(judge, spark_schema(_JUDGED))
    rows.write.parquet(spark_path(folder / "changes"))
    rows = read_parquet(job.spark, folder / "changes")
    for name, kinds in ((LISTING, _TO_READ), (SKIPPED, [SKIPPED])):
        chosen = rows.where(sql.col("change").isin(*kinds)).select(_LEFT[name].names)
        chosen.write.parquet(spark_path(folder / name))


def _left(job: BuildJob, name: str) -> Path:
    return job.stages.folder("list") / name


def judged(
    batches: Batches, *, root: Path | Location, compare: str, stale_formats: Sequence[str]
) -> Batches:
    """Decide what became of each file of a listing or of a catalog.

    Parameters
    ----------
    batches
        One row a file: what a listing has, ``there`` and ``reason`` among it, and what the catalog
        has, ``known`` among it; null where it is not in the one or in the other.
    root : Path or Location
        The lake.
    compare : {"modified", "content"}
        See `pexeso.build.append.append`.
    stale_formats : sequence of str
        Formats of which all files are read again.

    Yields
    ------
    RecordBatch
        What the listing has, and ``change``. Files that are no tables are left out where the
        catalog knows them.
    """
    for batch in batches:
        change = _judgement(batch, compare, stale_formats)
        doubtful = batch.filter(pc.equal(change, _DOUBTFUL))
        if len(doubtful):
            compared = pa.Table.from_batches(compare_contents(iter([doubtful]), root=root))
            places = pc.index_in(batch["table"], value_set=compared["table"].combine_chunks())
            change = pc.coalesce(compared["change"].combine_chunks().take(places), change)
        rows = batch.select(_THERE.names).append_column("change", change)
        yield rows.filter(pc.not_equal(change, _KNOWN_SKIPPED)).cast(_JUDGED)


def stale_formats(store: Store) -> list[str]:
    """Return the formats whose reader is another one than when an index was written.

    All, where the index does not say which it was.
    """
    known = store.manifest.facts.get("readers", {})
    return [name for name, version in READERS.items() if known.get(name) != version]


def _judgement(batch: pa.RecordBatch, compare: str, stale: Sequence[str]) -> pa.Array:
    """Return what the listing alone tells of each file."""

    def has(name: str) -> pa.Array:
        return batch[name].is_valid()

    def same(name: str) -> pa.Array:
        return pc.equal(batch[name], batch[f"old_{name}"]).fill_null(False)

    is_known = has("known")
    is_unversioned = pc.and_not(pc.invert(has("version")), has("old_version"))
    same_version = pc.or_(same("version"), is_unversioned)
    comparable = pc.and_(same("n_bytes"), has("old_fingerprint"))
    trusted = pc.and_(same("n_bytes"), pc.and_(same("modified"), same_version))
    if compare == "content":
        trusted = pc.and_not(trusted, has("old_fingerprint"))
    is_stale = pc.is_in(batch["format"], value_set=pa.array(stale, pa.string()))
    cases = {
        GONE: pc.invert(has("there")),
        _KNOWN_SKIPPED: pc.and_(has("reason"), is_known),
        SKIPPED: has("reason"),
        NEW: pc.invert(is_known),
        REREAD: is_stale,
        UNCHANGED: trusted,
        _DOUBTFUL: comparable,
    }
    return pc.case_when(
        pa.StructArray.from_arrays(cases.values(), names=list(cases)), *cases, CHANGED
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
