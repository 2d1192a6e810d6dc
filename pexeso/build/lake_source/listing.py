"""Listing of a lake in Spark's tasks.

Each task walks a part of the lake's folders and hands on what is too much for one task.

The listing goes from the tasks to Parquet; the driver learns numbers only. A task holds one
folder's names and the folders that it has still to look into.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pexeso.lake.files import Listing, SkippedFile, list_folder, table_row
from pexeso.lake.settings import LakeSettings
from pexeso.store.io.location import Location, read_parquet, spark_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST_FOLDERS, MORE_FOLDERS = 256, 1024
"""Folders that the first task lists, and a task of each later round, before they hand on the
rest."""

BATCH_ROWS = 1 << 14
REQUESTS_AT_ONCE = 16
"""Folders of another storage that a task asks for at a time: listing is waiting for answers."""

TABLE, SKIPPED, FOLDER = "table", "skipped", "folder"

_TABLE_FIELDS = (
    "table string, path string, format string, n_bytes long, modified long, version string, "
    "member string, reading string"
)
_LISTING_FIELDS = f"kind string, {_TABLE_FIELDS}, reason string, is_closed boolean"
_LISTING_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "table", "path", "format")),
        *((name, pa.int64()) for name in ("n_bytes", "modified")),
        *((name, pa.string()) for name in ("version", "member", "reading", "reason")),
        ("is_closed", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class LakeCounts:
    """What a lake holds, by number.

    Attributes
    ----------
    n_tables, n_bytes : int
        Files that are tables by their name, and their bytes.
    n_skipped : int
        Files and folders that are not read.
    n_rounds : int
        How often work was dealt out to tasks.
    """

    n_tables: int
    n_bytes: int
    n_skipped: int
    n_rounds: int


def list_lake(
    spark: SparkSession,
    root: Path | Location,
    tables: Path,
    skipped: Path,
    scratch: Path,
    *,
    first_folders: int = FIRST_FOLDERS,
    more_folders: int = MORE_FOLDERS,
) -> LakeCounts:
    """List all files of a lake, as `pexeso.lake.files.find_tables` does, in tasks.

    A first task walks up to `first_folders` folders. What is left then is dealt out to tasks that
    walk up to `more_folders` each, and so on until nothing is left: a subtree that is larger than
    the others does not stay with one task. There are at most as many rounds as levels of folders.

    Parameters
    ----------
    tables, skipped : Path
        Folders to write, which are not there yet: Parquet of
        ``table, path, format, n_bytes, modified, version, member, reading``
        (`pexeso.lake.files.TableFile`; `path` as text), and of ``table, reason, is_closed``
        (`pexeso.lake.files.SkippedFile`). In no order.
    """
    n_rounds, pending = 0, _first(spark)
    n_folders = 1
    while n_folders:
        location = scratch / f"round-{n_rounds:05d}"
        limit = more_folders if n_rounds else first_folders
        _walk_all(pending, root, limit).write.parquet(spark_path(location))
        folders = (
            read_parquet(spark, location, schema=_LISTING_FIELDS)
            .where(f"kind = '{FOLDER}'")
            .select("table")
        )
        n_folders, n_rounds = folders.count(), n_rounds + 1
        pending = folders.repartition(_n_tasks(spark, n_folders)) if n_folders else folders
    return _collect(spark, scratch, tables, skipped, n_rounds)


def _first(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("",)], "table string").coalesce(1)


def _n_tasks(spark: SparkSession, n_folders: int) -> int:
    cores = spark.sparkContext.defaultParallelism
    return max(1, min(n_folders, max(4 * cores, n_folders // FIRST_FOLDERS)))


def _walk_all(pending: DataFrame, root: Path | Location, limit: int) -> DataFrame:
    def walk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        folders = [folder for batch in batches for folder in batch.column(0).to_pylist()]
        return in_batches(walk_from(root, folders, limit))

    return pending.mapInArrow(walk, _LISTING_FIELDS)


def walk_from(
    root: Path | Location, folders: Iterable[str], limit: int
) -> Iterator[dict[str, object]]:
    """List folders and those below them, level by level, up to a number of them."""
    waiting = deque(folders)
    settings = LakeSettings.load(root)
    limit = max(limit, len(waiting))
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        while waiting and limit > 0:
            now = [waiting.popleft() for _ in range(min(len(waiting), limit, REQUESTS_AT_ONCE))]
            limit -= len(now)
            look = pool.map if isinstance(root, Location) else map
            for listing in look(lambda folder: list_folder(root, folder, settings), now):
                yield from _rows_of(listing)
                waiting.extend(listing.folders)
    yield from ({"kind": FOLDER, "table": folder} for folder in waiting)


def _rows_of(listing: Listing) -> Iterator[dict[str, object]]:
    yield from ({"kind": TABLE, **table_row(file)} for file in listing.tables)
    yield from ({"kind": SKIPPED, **skipped_row(file)} for file in listing.skipped)


def skipped_row(file: SkippedFile) -> dict[str, object]:
    """Return the row for a file that is no table."""
    return {"table": file.path, "reason": file.reason, "is_closed": file.is_closed}


def in_batches(rows: Iterable[dict[str, object]]) -> Iterator[pa.RecordBatch]:
    """Put rows into Arrow batches of at most `BATCH_ROWS`."""
    waiting: list[dict[str, object]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(waiting, schema=_LISTING_SCHEMA)
            waiting = []
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema=_LISTING_SCHEMA)


def _collect(
    spark: SparkSession, scratch: Path, tables: Path, skipped: Path, n_rounds: int
) -> LakeCounts:
    from pyspark.sql import functions as sql

    rounds = [scratch / f"round-{number:05d}" for number in range(n_rounds)]
    entries = read_parquet(spark, *rounds, schema=_LISTING_FIELDS)
    found_tables = entries.where(f"kind = '{TABLE}'").drop("kind", "reason", "is_closed")
    found_tables.write.parquet(spark_path(tables))
    found_skipped = entries.where(f"kind = '{SKIPPED}'").select("table", "reason", "is_closed")
    found_skipped.write.parquet(spark_path(skipped))
    counted = (
        entries.groupBy("kind")
        .agg(sql.count("*").alias("n"), sql.sum("n_bytes").alias("bytes"))
        .collect()
    )
    numbers = {row.kind: (row.n, row.bytes or 0) for row in counted}
    n_tables, n_bytes = numbers.get(TABLE, (0, 0))
    return LakeCounts(n_tables, n_bytes, numbers.get(SKIPPED, (0, 0))[0], n_rounds)
