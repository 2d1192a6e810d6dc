"""Where the tables of a lake come from: what an index is built of, as tasks see it.

A lake is listed in tasks: each walks a part of the folders and hands on what is too much for one.
The listing passes from task to task through files; the driver holds numbers only, and a task one
folder's names and the folders that it has still to look into.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pexeso.build.spark_tables import SparkTable, find_spark_tables, frame_records
from pexeso.build.workers import Attempt, Facts, Needs, SparkWorkers, Workers, empty_sums, run_tasks
from pexeso.errors import InputError, LakeError
from pexeso.lake.catalog import SCHEMA, TABLES, Catalog
from pexeso.lake.files import (
    KnownContainers,
    SkippedFile,
    TableFile,
    find_tables,
    list_folder,
    look_at_lake,
    table_of_row,
    table_row,
)
from pexeso.lake.hashed_values import hashed_records, value_key
from pexeso.lake.readers.options import LakeSettings
from pexeso.lake.records import Records, lake_records
from pexeso.options import HASHED
from pexeso.runtime.exchange import BucketWriter, batches_of_bucket, bucket_files
from pexeso.store.io.location import Location, is_url, require_utf8
from pexeso.store.io.parquet import n_bytes_of, parquet_files, spark_path, write_parquet_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pexeso.build.parts.base import Batches
    from pexeso.options import BuildOptions
    from pexeso.store.local.reader import Store

LISTING, SKIPPED, FOLDERS, HANDS = "listing", "skipped", "folders", "hands"
_TABLE, FOLDER = "table", "folder"

# Folders that the first task lists, and a task of each later round, before they pass on the rest.
FIRST_FOLDERS, MORE_FOLDERS = 256, 1024

BATCH_ROWS = 1 << 14
# Folders of another storage that a task requests at a time: listing is waiting for answers.
_REQUESTS = 16

READ_BYTES_PER_TASK = 32 << 20
# A task more for each so many bytes, up to four for each core.
SMALL_READ_BYTES = 2 << 20

# Memory of a task that reads, as a multiple of its largest file, and what its records take.
READ_MEMORY_FACTOR, HELD_RECORDS_BYTES = 5, 256 << 20

# Rows or bytes of records that a task holds of one kind before it writes them.
_ROWS_PER_GROUP, _BYTES_PER_GROUP = 1 << 17, 16 << 20

# What the name of a lake begins with where it is not one of files.
SPARK_PREFIX = "spark:"

_SPARK_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+){0,2}", re.ASCII)


# One row a table; see `pexeso.lake.files.TableFile`.
LISTING_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("table", "path", "format")),
        *((name, pa.int64()) for name in ("n_bytes", "modified")),
        *((name, pa.string()) for name in ("version", "member", "reading", "container")),
    ]
)

# One row a file that is none; see `pexeso.lake.files.SkippedFile`.
SKIPPED_SCHEMA = pa.schema(
    [("table", pa.string()), ("reason", pa.string()), ("is_closed", pa.bool_())]
)

# One row a folder that is still to be walked.
_FOLDERS_SCHEMA = pa.schema([("table", pa.string())])


@dataclass(frozen=True)
class FolderNames:
    """Folders that are still to be walked: some rows of a file that a task has left."""

    path: Path
    first: int
    end: int

    def read(self) -> list[str]:
        rows = pq.read_table(self.path, columns=["table"], partitioning=None)
        return rows.slice(self.first, self.end - self.first)["table"].to_pylist()


def list_lake(
    workers: Workers,
    root: Path | Location,
    folder: Path,
    *,
    single: bool = False,
    known: Store | None = None,
    as_of: str | None = None,
    first_folders: int = FIRST_FOLDERS,
    more_folders: int = MORE_FOLDERS,
) -> Facts:
    """List all files of a lake, as `pexeso.lake.files.find_tables` does, in tasks.

    A first task walks up to `first_folders` folders. What is left then is dealt out to tasks that
    walk up to `more_folders` each, and so on until nothing is left: a subtree that is larger than
    the others does not stay with one task. There are at most as many rounds as levels of folders.

    Files that hold several tables are not opened where they are as the index `known` has them.

    Returns the numbers of ``tables`` and ``skipped`` files, the ``bytes``, the ``rounds``, and a
    ``digest`` of the listing, whatever the order of its rows.
    """
    totals = {"tables": 0, "bytes": 0, "skipped": 0, "digest": 0}
    pending: list[FolderNames | None] = [None]
    n_rounds = 0
    while pending:
        limit = more_folders if n_rounds else first_folders
        walk = partial(
            _walk, root=root, single=single, known=known, as_of=as_of, limit=limit, number=n_rounds
        )
        counts, _ = run_tasks(workers, walk, pending, folder, Needs(alone=n_rounds > 0))
        for name in totals:
            totals[name] += sum(count[name] for count in counts)
        pending = (
            _dealt_folders(folder / FOLDERS, n_rounds, workers)
            if any(count["folders"] for count in counts)
            else []
        )
        n_rounds += 1
    return {**totals, "digest": f"{totals['digest'] % 2**128:032x}", "rounds": n_rounds}


def _dealt_folders(folder: Path, number: int, workers: Workers) -> list[FolderNames | None]:
    paths = sorted(folder.glob(f"*{_round_name(number)}"))
    sizes = [pq.read_metadata(path).num_rows for path in paths]
    n_tasks = max(4 * workers.cores, sum(sizes) // FIRST_FOLDERS)
    step = max(1, -(-sum(sizes) // n_tasks))
    return [
        FolderNames(path, first, min(first + step, size))
        for path, size in zip(paths, sizes, strict=True)
        for first in range(0, size, step)
    ]


def _round_name(number: int) -> str:
    return f"round-{number:05d}.parquet"


def _walk(
    item: FolderNames | None,
    attempt: Attempt,
    *,
    root: Path | Location,
    single: bool,
    known: Store | None,
    as_of: str | None,
    limit: int,
    number: int,
) -> Facts:
    """List a part of the folders of a lake, from its root where no part is named."""
    if single:
        tables, skipped = find_tables(root)
        rows = [{"kind": _TABLE, **table_row(file)} for file in tables]
        rows += [{"kind": SKIPPED, **skipped_row(file)} for file in skipped]
    else:
        containers = None if known is None else _known_containers(known)
        rows = walk_from(root, [""] if item is None else item.read(), limit, containers, as_of)
    return write_listing(rows, attempt, _round_name(number))


def _known_containers(store: Store) -> KnownContainers:
    pieces = Catalog(store.catalog_files).pieces(TABLES, KnownContainers.COLUMNS)
    rows = [read() for read in pieces]
    return KnownContainers(pa.concat_tables(rows))


def write_listing(rows: Iterable[dict[str, Any]], attempt: Attempt, name: str) -> Facts:
    """Write what a walk found as Parquet of each kind, and count it."""
    counts = {"tables": 0, "bytes": 0, "skipped": 0, "folders": 0, "digest": 0}
    schemas = {LISTING: LISTING_SCHEMA, SKIPPED: SKIPPED_SCHEMA, FOLDERS: _FOLDERS_SCHEMA}
    kinds = {_TABLE: LISTING, SKIPPED: SKIPPED, FOLDER: FOLDERS}
    writers = {
        kind: pq.ParquetWriter(attempt.path(kind, name), schema) for kind, schema in schemas.items()
    }
    left = iter(rows)
    while some := list(islice(left, BATCH_ROWS)):
        for row in some:
            if row["kind"] == _TABLE:
                counts["bytes"] += row["n_bytes"] or 0
                counts["digest"] += _digest(row)
        for kind, place in kinds.items():
            of_kind = [row for row in some if row["kind"] == kind]
            counts["tables" if kind == _TABLE else place] += len(of_kind)
            if of_kind:
                batch = pa.RecordBatch.from_pylist(of_kind, schema=schemas[place])
                writers[place].write_batch(batch)
    for writer in writers.values():
        writer.close()
    return counts


def _digest(row: dict[str, Any]) -> int:
    text = json.dumps([row.get(name) for name in LISTING_SCHEMA.names])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest())


def walk_from(
    root: Path | Location,
    folders: Iterable[str],
    limit: int,
    known: KnownContainers | None = None,
    as_of: str | None = None,
) -> Iterator[dict[str, object]]:
    """List folders and those below them, level by level, up to a number of them."""
    waiting = deque(folders)
    settings = LakeSettings.load(root, as_of)
    limit = max(limit, len(waiting))
    with ThreadPoolExecutor(_REQUESTS) as pool:
        apply = pool.map if isinstance(root, Location) else map
        while waiting and limit > 0:
            now = [waiting.popleft() for _ in range(min(len(waiting), limit, _REQUESTS))]
            limit -= len(now)
            look = partial(list_folder, root, settings=settings, known=known)
            for listing in apply(look, now):
                yield from ({"kind": _TABLE, **table_row(file)} for file in listing.tables)
                yield from ({"kind": SKIPPED, **skipped_row(file)} for file in listing.skipped)
                waiting.extend(listing.folders)
    yield from ({"kind": FOLDER, "table": folder} for folder in waiting)


def skipped_row(file: SkippedFile) -> dict[str, object]:
    return {"table": file.path, "reason": file.reason, "is_closed": file.is_closed}


def source_of(lake: Any, options: BuildOptions | None = None) -> Source:
    """Return where the tables of a lake come from, in the state that options name."""
    is_of_spark = hasattr(lake, "sparkSession") or (
        isinstance(lake, str)
        and not is_url(lake)
        and not os.path.exists(lake)
        and _SPARK_NAME.fullmatch(lake)
        and "." in lake
    )
    if not is_of_spark:
        return FolderSource(lake, None if options is None else options.as_of)
    if options is not None and (options.as_of is not None or options.values == HASHED):
        raise InputError(
            f"Tables of Spark have no as_of, nor hashed values. Got '{lake}': give the folder of "
            "its files."
        )
    return SparkSource(lake)


def read_tables(
    batches: Batches, *, root: Path | Location, options: BuildOptions, wanted: Sequence[Records]
) -> Batches:
    """Convert a listing of files to records; a bad file becomes a record with its reason."""
    for batch in batches:
        files = (table_of_row(root, row) for row in rows_by_file(batch))
        yield from records_of(files, options, wanted)


def records_of(
    files: Iterable[TableFile], options: BuildOptions, wanted: Sequence[Records]
) -> Batches:
    max_bytes = options.max_table_bytes
    records = lake_records(
        files, options.rules, options.normaliser, max_bytes=max_bytes, wanted=wanted
    )
    return hashed_records(records, value_key()) if options.values == HASHED else records


def rows_by_file(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a listing with the tables of one file in a row: it is opened once."""
    return batch.sort_by([("path", "ascending"), ("table", "ascending")]).to_pylist()


class FolderSource:
    """A folder of table files, or one file; `as_of`: the state of tables that have several."""

    is_files = True

    def __init__(self, lake: str | os.PathLike[str] | Location, as_of: str | None = None) -> None:
        root, single = look_at_lake(lake, as_of)
        self._as_of = as_of
        self._is_single = single is not None
        self.root = root if isinstance(root, Location) else root.absolute()
        if isinstance(self.root, Path):
            require_utf8(self.root)
        self.name = str(self.root)

    def list_into(self, workers: Workers, folder: Path, known: Store | None) -> Facts:
        """Write a listing of the tables and the skipped files as Parquet, and return its facts."""
        return list_lake(
            workers, self.root, folder, single=self._is_single, known=known, as_of=self._as_of
        )

    def read_into(
        self,
        workers: Workers,
        folder: Path,
        listing: Path,
        n_bytes: int,
        options: BuildOptions,
        wanted: Sequence[Records],
    ) -> Facts:
        """Write the records of the listed tables as Parquet, including those that are `wanted`.

        Records have the schema `pexeso.lake.catalog.SCHEMA`, and lie in a folder for each kind,
        ``record=KIND``. The listing is a folder of Parquet files. Returns what the tasks measured.
        """
        paths = parquet_files(listing)
        n_hands = n_reading_tasks(workers, n_bytes * len(wanted))
        deal = partial(_deal, n_hands=n_hands)
        groups = list(enumerate(grouped(paths, 4 * workers.cores)))
        dealt, _ = run_tasks(workers, deal, groups, folder, Needs(n_bytes_of(paths)))
        counts = np.sum([np.zeros(n_hands), *(count for count, _ in dealt)], axis=0)
        hands = np.flatnonzero(counts).tolist()
        largest = max((n_bytes for _, n_bytes in dealt), default=0)
        read = partial(read_tables, root=self.root, options=options, wanted=wanted)
        task = partial(_read_hand, read=read, dealt=folder / HANDS, n_hands=n_hands)
        memory = READ_MEMORY_FACTOR * min(largest, options.max_table_bytes) + HELD_RECORDS_BYTES
        needs = Needs(n_bytes * len(wanted), memory=memory)
        _, sums = run_tasks(workers, task, hands, folder, needs)
        return sums


class SparkSource:
    """Tables that Spark can read."""

    is_files = False

    def __init__(self, lake: DataFrame | str) -> None:
        self._given = lake
        name = lake if isinstance(lake, str) else f"dataframe-{secrets.token_hex(6)}"
        self.name = SPARK_PREFIX + name

    def list_into(self, workers: SparkWorkers, folder: Path, known: Store | None) -> Facts:
        tables = self._tables(workers.spark)
        if not tables:
            raise LakeError(
                f"{self._given!r} is neither a file or folder, nor a table or database in "
                "Spark's catalog; give the folder that holds the tables."
            )
        rows = [{"table": table.name, "path": "", "format": "spark"} for table in tables]
        listing = pa.Table.from_pylist(rows, schema=LISTING_SCHEMA)
        write_parquet_folder(listing, folder / LISTING)
        write_parquet_folder(SKIPPED_SCHEMA.empty_table(), folder / SKIPPED)
        digest = sum(map(_digest, rows)) % 2**128
        return {"tables": len(rows), "bytes": 0, "skipped": 0, "digest": f"{digest:032x}"}

    def read_into(
        self,
        workers: SparkWorkers,
        folder: Path,
        listing: Path,
        n_bytes: int,
        options: BuildOptions,
        wanted: Sequence[Records],
    ) -> Facts:
        frame = frame_records(self._tables(workers.spark), options, wanted)
        frame.write.mode("append").partitionBy("record").parquet(spark_path(folder))
        return empty_sums()

    def _tables(self, spark: SparkSession) -> list[SparkTable]:
        if isinstance(self._given, str):
            return find_spark_tables(spark, self._given)
        return [SparkTable("dataframe", self._given)]


Source = FolderSource | SparkSource


def n_reading_tasks(workers: Workers, n_bytes: int) -> int:
    few = min(4 * workers.cores, 1 + n_bytes // SMALL_READ_BYTES)
    return max(few, n_bytes // READ_BYTES_PER_TASK)


def grouped(paths: Sequence[Path], n_groups: int) -> list[list[Path]]:
    """Deal out files to at most so many groups, none of them empty."""
    return [list(paths[first::n_groups]) for first in range(min(n_groups, len(paths)))]


def _deal(
    item: tuple[int, list[Path]], attempt: Attempt, *, n_hands: int
) -> tuple[np.ndarray, int]:
    """Deal out a part of the listing so that each hand has about the same bytes.

    The largest files come first, in turn. Returns how many each hand has, and the bytes of the
    largest file.
    """
    number, paths = item
    rows = pa.concat_tables(pq.read_table(path, partitioning=None) for path in paths)
    rows = rows.sort_by([("n_bytes", "descending"), ("table", "ascending")])
    path = attempt.path(HANDS, "part.arrow")
    with BucketWriter(path, n_hands, LISTING_SCHEMA) as writer:
        writer.add(rows, (np.arange(len(rows)) + number) % n_hands)
    return writer.counts, pc.max(rows["n_bytes"]).as_py() or 0


def _read_hand(hand: int, attempt: Attempt, *, read: Any, dealt: Path, n_hands: int) -> None:
    files = attempt.counted(batches_of_bucket(bucket_files(dealt), hand, n_hands), "in")
    write_records(attempt.counted(read(files), "out"), attempt)


def write_records(records: Batches, attempt: Attempt) -> None:
    fields = pa.schema([field for field in SCHEMA if field.name != "record"])
    writers: dict[str, pq.ParquetWriter] = {}
    held: dict[str, list[pa.RecordBatch]] = {}

    def write(kind: str) -> None:
        if kind not in writers:
            path = attempt.path(f"record={kind}", "part.parquet")
            writers[kind] = pq.ParquetWriter(path, fields)
        writers[kind].write_table(pa.Table.from_batches(held.pop(kind), fields))

    try:
        for batch in records:
            for kind in batch.column("record").unique().to_pylist():
                rows = batch.filter(pc.equal(batch.column("record"), kind)).select(fields.names)
                some = held.setdefault(kind, [])
                some.append(rows)
                n_rows, n_bytes = sum(map(len, some)), sum(batch.nbytes for batch in some)
                if n_rows >= _ROWS_PER_GROUP or n_bytes >= _BYTES_PER_GROUP:
                    write(kind)
        for kind in list(held):
            write(kind)
    finally:
        for writer in writers.values():
            writer.close()


def spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
