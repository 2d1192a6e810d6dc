"""Where the tables of a lake come from: what an index is built of, as Spark's tasks see it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pexeso.build import tasks
from pexeso.build.in_driver import ATTEMPTS, gather_records, write_records
from pexeso.build.lake_source.listing import list_lake, skipped_row
from pexeso.build.lake_source.spark_tables import SparkTable, find_spark_tables, frame_records
from pexeso.build.stages import Facts
from pexeso.build.workers import reads_here
from pexeso.errors import LakeError
from pexeso.lake import record_schema
from pexeso.lake.files import find_tables, look_at_lake, table_row
from pexeso.registry import requested_parts
from pexeso.store.io.location import Location, is_url, read_parquet, require_utf8, spark_path
from pexeso.store.io.parquet_folder import write_parquet_folder
from pexeso.store.local.removal import remove_tree

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pexeso.build.report import Task, TaskMeter
    from pexeso.build.workers import Workers
    from pexeso.lake.records import Records
    from pexeso.options import BuildOptions

LISTING, SKIPPED = "listing", "skipped"

LISTING_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("table", "path", "format")),
        *((name, pa.int64()) for name in ("n_bytes", "modified")),
        ("version", pa.string()),
        ("member", pa.string()),
        ("reading", pa.string()),
    ]
)
"""One row a table; see `pexeso.lake.files.TableFile`."""

SKIPPED_SCHEMA = pa.schema(
    [("table", pa.string()), ("reason", pa.string()), ("is_closed", pa.bool_())]
)
"""One row a file that is none; see `pexeso.lake.files.SkippedFile`."""

SMALL_LAKE_BYTES, SMALL_LAKE_FILES = 256 << 20, 10_000
READ_BYTES_PER_TASK = 32 << 20
SMALL_READ_BYTES = 2 << 20
"""A task more for each so many bytes, of a small lake."""

SPARK_PREFIX = "spark:"
"""What the name of a lake begins with where it is not one of files."""

_SPARK_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+){0,2}", re.ASCII)


class Source(Protocol):
    """Tables, and how tasks read them."""

    name: str
    is_files: bool

    def is_small(self) -> bool:
        """Return whether the lake is small enough for settings that suit a build of a minute."""

    def list_into(self, spark: SparkSession | None, folder: Path) -> Facts:
        """Write a listing of the tables and the skipped files as Parquet, and return its facts.

        A small lake needs no session. The facts are the number of tables and of skipped files,
        the bytes, and a digest of the listing.
        """

    def read_into(
        self,
        workers: Workers,
        folder: Path,
        listing: DataFrame | pa.Table | Path,
        n_bytes: int,
        options: BuildOptions,
        wanted: Sequence[Records],
        meter: TaskMeter,
    ) -> None:
        """Write the records of the listed tables as Parquet, including those that are `wanted`.

        Records have the schema `pexeso.lake.record_schema.SCHEMA`, and lie in a folder for each
        kind, ``record=KIND``; tasks go through `meter`. The listing is a frame, or the folder of
        its Parquet files; of a small lake it may be a table.
        """


def source_of(lake: Any) -> Source:
    """Return what is meant by a lake."""
    if hasattr(lake, "sparkSession"):
        return SparkSource(lake)
    if (
        isinstance(lake, str)
        and not is_url(lake)
        and not os.path.exists(lake)
        and _SPARK_NAME.fullmatch(lake)
        and "." in lake
    ):
        return SparkSource(lake)
    return FolderSource(lake)


class FolderSource:
    """A folder of table files, or one file."""

    is_files = True

    def __init__(self, lake: str | os.PathLike[str] | Location) -> None:
        root, self._single = look_at_lake(lake)
        self.root = root if isinstance(root, Location) else root.absolute()
        if isinstance(self.root, Path):
            require_utf8(self.root)
        self.name = str(self.root)
        self._is_small: bool | None = None

    def is_small(self) -> bool:
        """Return whether the lake is small, from the sizes of its first files.

        The sizes are read once. A lake on other storage is not examined and counts as large.
        """
        if self._is_small is None:
            self._is_small = not isinstance(self.root, Location) and self._look_at_sizes()
        return self._is_small

    def _look_at_sizes(self) -> bool:
        n_bytes = n_files = 0
        for folder, _, names in os.walk(self.root):
            for name in names:
                try:
                    n_bytes += os.lstat(os.path.join(folder, name)).st_size
                except OSError:
                    continue
                n_files += 1
                if n_bytes > SMALL_LAKE_BYTES or n_files > SMALL_LAKE_FILES:
                    return False
        return True

    def list_into(self, spark: SparkSession | None, folder: Path) -> Facts:
        """See `Source.list_into`."""
        if self._single is not None or self.is_small():  # sooner done than Spark's first job
            tables, skipped = find_tables(self.root)
            return _write_listing(
                folder, list(map(table_row, tables)), list(map(skipped_row, skipped))
            )
        list_lake(spark, self.root, folder / LISTING, folder / SKIPPED, folder / "rounds")
        remove_tree(folder / "rounds")
        return _listing_facts(spark, folder)

    def read_into(
        self,
        workers: Workers,
        folder: Path,
        listing: DataFrame | pa.Table | Path,
        n_bytes: int,
        options: BuildOptions,
        wanted: Sequence[Records],
        meter: TaskMeter,
    ) -> None:
        """See `Source.read_into`."""
        read = partial(
            tasks.read_tables,
            root=self.root,
            rules=options.rules,
            normaliser=options.normaliser,
            max_table_bytes=options.max_table_bytes,
            wanted=wanted,
        )
        if self.is_small():
            files = pq.read_table(listing) if isinstance(listing, Path) else listing
            files = files if isinstance(files, pa.Table) else files.toArrow()
            works_here = workers.may_work_here and reads_here(n_bytes, len(wanted))
            hands = dealt_hands(files, 1 if works_here else _n_small_tasks(workers.spark, n_bytes))
            attempts = folder.with_name("attempts")
            measured = meter.measured_here if works_here else meter.measured
            task = measured(partial(_read_hands, hands, read))
            write = partial(write_records, task=task, folder=attempts)
            outputs = workers.run(write, ATTEMPTS, len(hands), here=works_here)
            gather_records(attempts, outputs["folder"].to_pylist(), folder)
            return
        spark = workers.spark
        n_tasks = n_reading_tasks(spark, n_bytes)
        files = read_parquet(spark, listing) if isinstance(listing, Path) else listing
        schema = spark_schema(record_schema.SCHEMA)
        _write_by_kind(deal_out(files, n_tasks).mapInArrow(meter.measured(read), schema), folder)


class SparkSource:
    """Tables that Spark can read."""

    is_files = False

    def __init__(self, lake: DataFrame | str) -> None:
        self._given = lake
        self.name = SPARK_PREFIX + (
            lake if isinstance(lake, str) else f"dataframe-{secrets.token_hex(6)}"
        )

    def is_small(self) -> bool:
        """Nobody has looked."""
        return False

    def list_into(self, spark: SparkSession | None, folder: Path) -> Facts:
        """See `Source.list_into`."""
        tables = self._tables(spark)
        if not tables:
            raise LakeError(
                f"{self._given!r} is neither a file or folder, nor a table or database in "
                "Spark's catalog; give the folder that holds the tables."
            )
        return _write_listing(
            folder, [{"table": table.name, "path": "", "format": "spark"} for table in tables], []
        )

    def read_into(
        self,
        workers: Workers,
        folder: Path,
        listing: DataFrame | pa.Table | Path,
        n_bytes: int,
        options: BuildOptions,
        wanted: Sequence[Records],
        meter: TaskMeter,
    ) -> None:
        """See `Source.read_into`."""
        frame = frame_records(
            self._tables(workers.spark),
            options.rules,
            options.normaliser,
            max_table_bytes=options.max_table_bytes,
            wanted=wanted,
            every_kind=bool(options.parts),
            whole_rows=any(part.reads_rows for part in requested_parts(options.parts)),
        )
        _write_by_kind(frame, folder)

    def _tables(self, spark: SparkSession) -> list[SparkTable]:
        if isinstance(self._given, str):
            return find_spark_tables(spark, self._given)
        return [SparkTable("dataframe", self._given)]


def _write_by_kind(records: DataFrame, folder: Path) -> None:
    records.write.mode("append").partitionBy("record").parquet(spark_path(folder))


def _write_listing(
    folder: Path, rows: list[dict[str, Any]], skipped: list[dict[str, Any]]
) -> Facts:
    """Write a short listing; give its facts as `_listing_facts` does."""
    for name, schema, content in (
        (LISTING, LISTING_SCHEMA, rows),
        (SKIPPED, SKIPPED_SCHEMA, skipped),
    ):
        write_parquet_folder(pa.Table.from_pylist(content, schema=schema), folder / name)
    digest = hashlib.blake2b(json.dumps(rows, sort_keys=True).encode(), digest_size=16).hexdigest()
    n_bytes = sum(row.get("n_bytes") or 0 for row in rows)
    return {"tables": len(rows), "bytes": n_bytes, "skipped": len(skipped), "digest": digest}


def _listing_facts(spark: SparkSession, folder: Path) -> Facts:
    """Count a listing, and give a digest of it that does not depend on its order."""
    from pyspark.sql import functions as sql

    listing = read_parquet(spark, folder / LISTING)
    skipped = read_parquet(spark, folder / SKIPPED)
    code = sql.xxhash64("table", "path", "n_bytes", "modified", "version").cast("decimal(38,0)")
    counted = listing.agg(
        sql.count("*").alias("n"), sql.sum("n_bytes").alias("bytes"), sql.sum(code).alias("digest")
    )
    row = counted.first()
    return {
        "tables": row.n,
        "bytes": row.bytes or 0,
        "skipped": skipped.count(),
        "digest": str(row.digest),
    }


def dealt_hands(listing: pa.Table, n_hands: int) -> list[pa.Table]:
    """Deal out a short listing as `deal_out` does a long one, without a shuffle of Spark's."""
    listing = listing.sort_by([("n_bytes", "descending"), ("table", "ascending")])
    hands = [
        listing.take(pa.array(range(hand, len(listing), n_hands), pa.int64()))
        for hand in range(n_hands)
    ]
    return [hand for hand in hands if len(hand)] or [listing]


def _read_hands(
    hands: Sequence[pa.Table], read: Task, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read the files of the hands whose numbers come in."""
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    yield from read(batch for number in numbers for batch in hands[number].to_batches())


def _n_small_tasks(spark: SparkSession, n_bytes: int) -> int:
    """Return how many tasks read the files of a small lake."""
    cores = spark.sparkContext.defaultParallelism
    return min(4 * cores, cores + n_bytes // SMALL_READ_BYTES)


def n_reading_tasks(spark: SparkSession, n_bytes: int) -> int:
    """Return how many tasks read the files of a large lake."""
    return max(4 * spark.sparkContext.defaultParallelism, n_bytes // READ_BYTES_PER_TASK)


def deal_out(listing: DataFrame, n_tasks: int) -> DataFrame:
    """Spread files over tasks so that each has about the same bytes: the largest first, in turn."""
    from pyspark.sql import functions as sql

    n_tasks = max(1, n_tasks)
    within = sql.monotonically_increasing_id().bitwiseAND(sql.lit((1 << 33) - 1))
    deal = sql.pmod(within + sql.spark_partition_id(), sql.lit(n_tasks))
    return (
        listing.sort(sql.desc("n_bytes"))
        .withColumn("deal", deal)
        .repartitionByRange(n_tasks, "deal")
        .drop("deal")
    )


def spark_schema(schema: pa.Schema) -> Any:
    """Return the Spark form of an Arrow schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
