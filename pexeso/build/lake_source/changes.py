"""Detection of the tables of a lake that are new, changed or gone since an index was written.

Listings are compared in Spark's tasks, short ones in this process; what a row means is decided by
the same function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

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
from pexeso.build.parts.base import Batches
from pexeso.build.report import Task
from pexeso.build.stages import Facts
from pexeso.build.tasks import closed_files, compare_contents
from pexeso.lake.catalog import (
    COLUMNS,
    COLUMNS_SCHEMA,
    REMOVED,
    TABLES,
    TABLES_SCHEMA,
    Catalog,
)
from pexeso.lake.containers.formats import READERS
from pexeso.store.io.location import Location, read_parquet, spark_path
from pexeso.store.io.parquet_folder import write_parquet_folder
from pexeso.store.local.reader import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pexeso.build.job import BuildJob

_Names = TypeVar("_Names", pa.Array, pa.ChunkedArray)

NEW, CHANGED, GONE, UNCHANGED = "new", "changed", "gone", "unchanged"
REREAD = "reread"
"""Of a format that is read in another way than when the index was written."""
CLOSED = "closed"
"""A table of a file or folder that is there and cannot be opened: it may be as it was."""
NO_TABLE = "no table"
"""A table of the index whose file can no longer be read as one."""
OTHER_REASON, FORGOTTEN = "other reason", "forgotten"
"""What is no table and was none: left out for another reason than before, and no longer there."""

_DOUBTFUL, _KNOWN_SKIPPED = "doubtful", "skipped before"

_TO_READ = (NEW, CHANGED, REREAD)
_LEFT_OUT = (SKIPPED, NO_TABLE, OTHER_REASON)
REPLACED = (CHANGED, REREAD, NO_TABLE, OTHER_REASON, FORGOTTEN)
"""What the catalog knows and no longer holds."""

READ_ONCE_BACK = "read_once_back"
"""The fact of an index that lists the tables that are read again once they are there.

They could not be read when a part was added, or when the reader of a format had changed."""

_KNOWN = ("n_bytes", "modified", "version", "fingerprint", "reason")
_THERE = pa.schema([*LISTING_SCHEMA, SKIPPED_SCHEMA.field("reason")])
_JUDGED = _THERE.append(pa.field("change", pa.string()))
_LEFT = {
    "changes": _JUDGED,
    LISTING: LISTING_SCHEMA,
    SKIPPED: pa.schema([SKIPPED_SCHEMA.field(name) for name in ("table", "reason")]),
}

SCHEMAS = {TABLES: TABLES_SCHEMA, COLUMNS: COLUMNS_SCHEMA}


def find_changes(job: BuildJob, source: FolderSource, folder: Path, *, compare: str) -> Facts:
    """Compare the listing of this update with the catalog of an index.

    Leaves ``listing`` (the tables to read), ``changes`` (table, change) and ``skipped`` (files that
    are no tables, where the catalog says otherwise) in the folder. Reads the files whose time of
    change alone differs; with ``compare="content"`` all whose size is the same.

    Returns
    -------
    dict
        How many tables are ``new``, ``changed``, ``reread``, ``gone``, ``unchanged``, ``closed``;
        ``bytes``, those of the files to read; ``rows``, how many rows the catalog will get.
    """
    judge = partial(
        judged,
        root=source.root,
        compare=compare,
        stale_formats=stale_formats(job.index),
        max_bytes=job.options.max_table_bytes,
        to_read=job.index.manifest.facts.get(READ_ONCE_BACK, ()),
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
    facts = {kind: counted[kind] for kind in (NEW, CHANGED, REREAD, GONE, UNCHANGED, CLOSED)}
    facts[CHANGED] += counted[NO_TABLE]
    n_rows = sum(counted[kind] for kind in (*_TO_READ, *_LEFT_OUT))
    return {**facts, "bytes": n_bytes, "rows": n_rows}


def _judge_here(job: BuildJob, judge: Task, folder: Path) -> None:
    """Compare a short listing in this process, which takes less time than one job of Spark's."""
    known = Catalog(job.index.catalog_files).tables(["table", *_KNOWN])
    known = known.rename_columns(["table", *(f"old_{name}" for name in _KNOWN)])
    listing = pa.concat_tables(
        [_THERE.empty_table(), *(pq.read_table(_left(job, name)) for name in (LISTING, SKIPPED))],
        promote_options="default",
    )
    closed = listing["table"].filter(listing["is_closed"])
    known = known.append_column("known", pa.repeat(True, len(known)))
    known = known.append_column("in_closed", _is_in_any(known["table"], closed))
    pairs = listing.append_column("there", pa.repeat(True, len(listing))).join(
        known, "table", join_type="full outer"
    )
    rows = pa.Table.from_batches(judge(iter(pairs.to_batches())), schema=_JUDGED)
    change = rows["change"]
    for name, chosen in (
        ("changes", rows),
        (LISTING, rows.filter(pc.is_in(change, value_set=pa.array(_TO_READ)))),
        (SKIPPED, rows.filter(pc.is_in(change, value_set=pa.array(_LEFT_OUT)))),
    ):
        write_parquet_folder(chosen.select(_LEFT[name].names), folder / name)


def _judge_in_tasks(job: BuildJob, judge: Task, folder: Path) -> None:
    from pyspark.sql import functions as sql

    listed = job.stages.finished("list") or {}
    n_tasks = n_reading_tasks(job.spark, listed.get("bytes") or 0)
    known = live_rows(job.spark, job.index, TABLES).select(
        "table", *(sql.col(name).alias(f"old_{name}") for name in _KNOWN)
    )
    listing = job.frame("list", LISTING).unionByName(
        job.frame("list", SKIPPED), allowMissingColumns=True
    )
    pairs = listing.withColumn("there", sql.lit(True)).join(
        _with_closed(job, known).withColumn("known", sql.lit(True)), "table", "full"
    )
    # By file: one that holds several tables is opened once.
    rows = pairs.repartition(n_tasks, "path").mapInArrow(judge, spark_schema(_JUDGED))
    rows.write.parquet(spark_path(folder / "changes"))
    rows = read_parquet(job.spark, folder / "changes")
    for name, kinds in ((LISTING, _TO_READ), (SKIPPED, _LEFT_OUT)):
        chosen = rows.where(sql.col("change").isin(*kinds)).select(_LEFT[name].names)
        chosen.write.parquet(spark_path(folder / name))


def _with_closed(job: BuildJob, known: DataFrame) -> DataFrame:
    """Add to the tables of the catalog whether they lie in what cannot be looked into."""
    from pyspark.sql import functions as sql

    def above(batches: Batches) -> Batches:
        for batch in batches:
            for names in _above(batch["table"]):
                yield pa.RecordBatch.from_arrays([batch["table"], names], ["table", "above"])

    closed = job.frame("list", SKIPPED).where("is_closed").select(sql.col("table").alias("above"))
    if closed.isEmpty():
        return known.withColumn("in_closed", sql.lit(False))
    closed_tables = known.select("table").mapInArrow(above, "table string, above string")
    closed_tables = closed_tables.join(closed, "above", "left_semi").select("table").distinct()
    return known.join(closed_tables.withColumn("in_closed", sql.lit(True)), "table", "left")


def _is_in_any(tables: pa.ChunkedArray, folders: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whether each table lies in some of the files and folders."""
    mask = pc.is_in(tables, value_set=folders[:0])
    for names in _above(tables) if len(folders) else ():
        mask = pc.or_(mask, pc.is_in(names, value_set=folders))
    return mask


def _above(tables: _Names) -> Iterator[_Names]:
    """Yield the names of the files and folders that hold tables, from the nearest one up.

    Examples
    --------
    >>> [names.to_pylist() for names in _above(pa.array(["a/b.xlsx#c", "d.csv"]))]
    [['a/b.xlsx', ''], ['a', ''], ['', '']]
    """
    names = tables
    while pc.any(pc.not_equal(names, "")).as_py():
        names = pc.replace_substring_regex(names, r"(^|[/#])[^/#]*$", "")
        yield names


def _left(job: BuildJob, name: str) -> Path:
    return job.stages.folder("list") / name


def judged(
    batches: Batches,
    *,
    root: Path | Location,
    compare: str,
    stale_formats: Sequence[str],
    max_bytes: int,
    to_read: Sequence[str] = (),
) -> Batches:
    """Decide what became of each file of a listing or of a catalog."""
    for batch in batches:
        change = _judgement(batch, compare, stale_formats, max_bytes, to_read)
        doubtful = batch.filter(pc.equal(change, _DOUBTFUL))
        if len(doubtful):
            compared = pa.Table.from_batches(compare_contents(iter([doubtful]), root=root))
            positions = pc.index_in(batch["table"], value_set=compared["table"].combine_chunks())
            change = pc.coalesce(compared["change"].combine_chunks().take(positions), change)
        was_table = pc.and_not(batch["known"].fill_null(False), batch["old_reason"].is_valid())
        opened = pc.and_(was_table, pc.is_in(change, value_set=pa.array([CHANGED, REREAD])))
        closed = closed_files(batch.filter(opened), root=root)
        change = pc.if_else(pc.is_in(batch["table"], value_set=closed), CLOSED, change)
        rows = batch.select(_THERE.names).append_column("change", change)
        yield rows.filter(pc.not_equal(change, _KNOWN_SKIPPED)).cast(_JUDGED)


def stale_formats(store: Store) -> list[str]:
    """Return the formats whose reader is another one than when an index was written.

    All, where the index does not say which it was.
    """
    known = store.manifest.facts.get("readers", {})
    return [name for name, version in READERS.items() if known.get(name) != version]


def _judgement(
    batch: pa.RecordBatch,
    compare: str,
    stale: Sequence[str],
    max_bytes: int,
    to_read: Sequence[str],
) -> pa.Array:
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
    is_gone, was_skipped = pc.invert(has("there")), has("old_reason")
    # Permission to open a file may have come without a trace in its size and time.
    not_opened = pc.and_(was_skipped, pc.invert(has("old_fingerprint")))
    not_opened = pc.and_(not_opened, batch["member"].is_null())
    not_opened = pc.and_(not_opened, pc.less_equal(batch["n_bytes"], max_bytes).fill_null(False))
    is_closed = pc.if_else(is_gone, batch["in_closed"], batch["is_closed"]).fill_null(False)
    cases = {
        SKIPPED: pc.and_not(has("reason"), is_known),
        CLOSED: pc.and_not(is_closed, was_skipped),
        _KNOWN_SKIPPED: pc.if_else(is_gone, is_closed, same("reason")),
        FORGOTTEN: pc.and_(is_gone, was_skipped),
        GONE: is_gone,
        OTHER_REASON: pc.and_(has("reason"), was_skipped),
        NO_TABLE: has("reason"),
        NEW: pc.invert(is_known),
        REREAD: is_stale,
        CHANGED: pc.is_in(batch["table"], value_set=pa.array(to_read, pa.string())),
        UNCHANGED: pc.and_not(trusted, not_opened),
        _DOUBTFUL: pc.or_(trusted, comparable),
    }
    return pc.case_when(
        pa.StructArray.from_arrays(cases.values(), names=list(cases)), *cases, CHANGED
    )


def names_of(job: BuildJob, kinds: Sequence[str]) -> pa.Array:
    """Read the names of the tables of some kinds of change, sorted; as many as have changed."""
    changes = dataset(job.stages.folder("changes") / "changes")
    rows = changes.to_table(columns=["table"], filter=pc.field("change").isin(kinds))
    return rows["table"].combine_chunks().sort()


def live_rows(spark: SparkSession, store: Store, kind: str) -> DataFrame:
    """Read the rows of a kind (`TABLES` or `COLUMNS`) that hold from all folders of a catalog."""
    from pyspark.sql import functions as sql

    schema = spark_schema(SCHEMAS[kind])
    rows = spark.createDataFrame([], schema)
    for paths, removed in zip(store.catalog_files(kind), store.catalog_files(REMOVED), strict=True):
        if removed:
            removed_tables = read_parquet(spark, *removed)
            rows = rows.join(sql.broadcast(removed_tables), "table", "left_anti")
        for path in paths:
            frame = read_parquet(spark, path)
            cast = [
                sql.col(field.name).cast(field.dataType)
                for field in schema.fields
                if field.name in frame.columns
            ]
            rows = rows.unionByName(frame.select(*cast), allowMissingColumns=True)
    return rows
