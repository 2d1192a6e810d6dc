"""What contained tables are looked for in: an index, a folder, or tables of Spark's catalog."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.lake_source.source import SparkSource, source_of, spark_schema
from pexeso.build.lake_source.spark_tables import SparkTable, find_spark_tables
from pexeso.errors import InputError, LakeError, PexesoError
from pexeso.lake.catalog import Catalog
from pexeso.lake.folders.folder_tables import FOLDER_KINDS
from pexeso.lake.folders.table_logs import LoggedTable, log_in
from pexeso.lake.left_out.indexes import INDEX_EXTENSION
from pexeso.lake.readers.typed import TypedRows
from pexeso.redundancy.pieces import pieces_of, write_pieces
from pexeso.redundancy.plans.reading import (
    DEFAULT_MAX_TABLE_BYTES,
    FILE_ROW,
    LakeRows,
    ReadFile,
    lake_rows,
    read_lake,
)
from pexeso.store.io.location import Location, is_url, locate
from pexeso.store.local.reader import Store
from pexeso.store.opening import open_store_anywhere
from pexeso.store.paths import MANIFEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FROM_SPARK = "spark:"


def is_index(source: Any) -> bool:
    """Return whether an index is meant: an open one, a folder with a manifest, or such a URL."""
    if isinstance(source, Store):
        return True
    if not isinstance(source, str | os.PathLike | Location):
        return False
    if isinstance(source, Location) or is_url(source):
        return str(source).rstrip("/").endswith(INDEX_EXTENSION)
    return os.path.isfile(os.path.join(source, MANIFEST))


_OF_FOLDER = "{}: look for redundant tables in the folder of the lake instead of the index"


def rows_of_index(index: str | os.PathLike[str] | Location | Store) -> LakeRows:
    """Return the rows that an index holds of its lake; no file of the lake is read."""
    from pexeso.redundancy.part.open import pieces_by_table

    store = index if isinstance(index, Store) else open_store_anywhere(index)
    pieces = pieces_by_table(store)
    listed = Catalog(store.catalog_files).tables(
        ["table", "format", "n_bytes", "fingerprint", "reason", "notes"]
    )
    lake = _lake_of(store)
    folders: dict[Path, LoggedTable | None] = {}
    files = []
    for row in listed.to_pylist():
        reason = row["reason"] or _log_above(lake, row["table"], folders)
        if reason is None and row["format"] in FOLDER_KINDS:
            reason = _OF_FOLDER.format("it is a folder of several files")
        if reason is not None:
            pieces.pop(row["table"], None)
        elif row["table"] not in pieces:
            reason = "the index has no rows of it"
        notes = tuple(row["notes"] or ())
        files.append(ReadFile(row["table"], row["n_bytes"] or 0, row["fingerprint"], reason, notes))
    return LakeRows(lake, store.manifest.facts["lake"], files, pieces)


def _log_above(
    lake: Path | Location | None, table: str, known: dict[Path, LoggedTable | None]
) -> str | None:
    """Return why a file counts for nothing by itself: it belongs to a table with a log.

    ``known`` has the folders that were looked into, and is added to.
    """
    if not isinstance(lake, Path):
        return None
    for folder in (lake / table, *(lake / table).parents):
        if folder not in known:
            known[folder] = log_in(folder)
        logged = known[folder]
        if logged is not None:
            kind = logged.kind.capitalize()
            return _OF_FOLDER.format(
                f"it belongs to a table of {kind}, whose log says which files count"
            )
        if folder == lake:
            break
    return None


def _lake_of(store: Store) -> Path | Location | None:
    name = store.manifest.facts["lake"]
    if name.startswith(_FROM_SPARK):
        return None
    try:
        return locate(name)
    except PexesoError:
        return None  # its storage is not known here


def rows_of_lake(
    spark: SparkSession,
    lake: Any,
    folder: Path,
    *,
    max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
) -> LakeRows:
    """Read a folder, a file, or tables of Spark's."""
    if isinstance(lake, Mapping):
        tables = [SparkTable(name, frame) for name, frame in lake.items()]
        return _rows_of_frames(spark, tables, "tables of Spark", folder)
    source = source_of(lake)
    if not isinstance(source, SparkSource):
        return read_lake(spark, lake, folder, max_table_bytes=max_table_bytes)
    if not isinstance(lake, str):
        raise InputError("One DataFrame is no lake: give a dict of several by name.")
    tables = find_spark_tables(spark, lake)
    if not tables:
        raise LakeError(
            f"'{lake}' is neither a folder, nor a table or database in Spark's catalog."
        )
    return _rows_of_frames(spark, tables, source.name, folder)


def _rows_of_frames(
    spark: SparkSession, tables: list[SparkTable], name: str, folder: Path
) -> LakeRows:
    """Write the pieces of frames, a file for each of their partitions."""
    outcomes: list[tuple[SparkTable, list[str], str | None]] = []
    for table in tables:
        reason = _unreadable(table.frame)
        if reason is not None:
            outcomes.append((table, [], reason))
            continue
        read = partial(_read_partition, table.name, table.frame.columns, folder)
        rows = table.frame.mapInArrow(read, spark_schema(FILE_ROW)).toArrow().to_pylist()
        paths = [row["path"] for row in rows] or [_without_rows(table, folder)]
        outcomes.append((table, paths, None))
    listed: list[dict[str, object]] = []
    for table, paths, reason in outcomes:
        listed.append(
            {
                "file": table.name,
                "n_bytes": _size_of(table.frame),
                "fingerprint": None,
                "reason": reason,
                "notes": [],
                "paths": paths,
            }
        )
    return lake_rows(None, name, listed)


def _unreadable(frame: DataFrame) -> str | None:
    """Return why no rows of a frame can be read; None where they can."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_type

    for column in frame.schema.fields:
        try:
            to_arrow_type(column.dataType)
        except PySparkTypeError:
            kind = column.dataType.simpleString()
            return f"its column {column.name!r} is of the type {kind}, which cannot be compared"
    return None


def _read_partition(
    table: str, names: list[str], folder: Path, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    path = folder / f"{secrets.token_hex(12)}.arrow"  # of this attempt at the task
    rows = (TypedRows(names, batch.columns) for batch in batches)
    write_pieces(path, pieces_of(table, rows))
    row = {"file": table, "path": str(path), "notes": []}
    yield pa.RecordBatch.from_pylist([row], schema=FILE_ROW)


def _without_rows(table: SparkTable, folder: Path) -> str:
    """Write the piece of a frame without partitions, which has columns all the same."""
    path = folder / f"{secrets.token_hex(12)}.arrow"
    empty = table.frame.limit(0).toArrow()
    columns = [pa.array([], kind) for kind in empty.schema.types]
    write_pieces(path, pieces_of(table.name, [TypedRows(table.frame.columns, columns)]))
    return str(path)


def _size_of(frame: DataFrame) -> int:
    """Return how large Spark takes a frame for: of files their size."""
    statistics = frame._jdf.queryExecution().optimizedPlan().stats()
    return int(str(statistics.sizeInBytes()))
