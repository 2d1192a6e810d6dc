"""Lakes read once into pieces of hashed columns: a folder, an index, or tables of Spark."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from pexeso.build.source import SparkSource, source_of, spark_schema
from pexeso.build.spark_tables import SparkTable, find_spark_tables
from pexeso.build.visible import open_visible
from pexeso.errors import InputError, LakeError, PexesoError, PlaceError, TableReadError
from pexeso.lake.catalog import Catalog
from pexeso.lake.containers.folders import (
    FOLDER_KINDS,
    NOTE,
    CannotRead,
    LoggedTable,
    live_files,
    log_in,
    logged_tables,
)
from pexeso.lake.containers.reader import open_table, reading_options
from pexeso.lake.files import INDEX_EXTENSION, TableFile, find_tables, table_of_row, table_row
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES, fingerprint_file
from pexeso.lake.typed.parquet import TypedRows, parquet_rows
from pexeso.redundancy.pieces import StoredPiece, pieces_of, stored_pieces, write_pieces
from pexeso.redundancy.schema_tokens import Token
from pexeso.runtime.progress import advance, begin_steps
from pexeso.store.io.location import Location, is_url, locate
from pexeso.store.local.reader import Store
from pexeso.store.manifest import MANIFEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_PER_CORE = 4

Work = Callable[[Any], "list[dict[str, Any]]"]  # from a unit, plain JSON, to rows


def work_in_tasks(
    spark: SparkSession | None, units: Iterable[Any], work: Work, schema: pa.Schema
) -> list[dict[str, Any]]:
    """Do all units in tasks of Spark, or in threads without it, and return their rows."""
    texts = [*map(json.dumps, units)]
    if spark is None:
        begin_steps(len(texts))
        listed_rows = []
        # Those that wait are given up where one fails, or where the work is to end.
        with (
            ThreadPoolExecutor() as threads,
            closing(threads.map(partial(_done, work), texts)) as done,
        ):
            for rows in done:
                advance(1)
                listed_rows += [{name: row.get(name) for name in schema.names} for row in rows]
        return listed_rows
    listed = pa.table({"unit": pa.array(texts, pa.string())})
    if not len(listed):
        return []
    n_tasks = min(len(listed), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    frame = spark.createDataFrame(listed).repartition(n_tasks)
    task = partial(_task, work=work, schema=schema)
    return frame.mapInArrow(task, spark_schema(schema)).toArrow().to_pylist()


def _done(work: Work, unit: str) -> list[dict[str, Any]]:
    return work(json.loads(unit))


def _task(
    batches: Iterator[pa.RecordBatch], *, work: Work, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for unit in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pylist(_done(work, unit), schema=schema)


class FileOfTable(NamedTuple):
    """A file, the table that it is of, and what the names of its folders say of its rows."""

    file: str
    table: str
    constants: Mapping[Token, str]


def table_of_file(file: str) -> FileOfTable:
    """Return which table a file is of: engines write a table as a folder of files.

    >>> found = table_of_file("orders/year=2020/part-0.parquet")
    >>> found.table, found.constants
    ('orders', {('year',): '2020'})
    >>> table_of_file("orders/2020.csv").table
    'orders/2020.csv'
    """
    *folders, name = file.split("/")
    constants: dict[Token, str] = {}
    while folders and "=" in folders[-1] and not folders[-1].startswith("="):
        column, _, value = folders.pop().partition("=")
        constants[(unquote(column),)] = unquote(value)
    is_part = bool(constants) or name.startswith("part-")  # as Spark, Hive and Trino call them
    table = "/".join(folders) or "." if is_part else file
    return FileOfTable(file, table, dict(reversed(constants.items())))


def files_of_tables(files: Iterable[str]) -> dict[str, list[FileOfTable]]:
    by_table: dict[str, list[FileOfTable]] = {}
    for file in map(table_of_file, sorted(files)):
        by_table.setdefault(file.table, []).append(file)
    return dict(sorted(by_table.items()))


# What a task yields of a file: `ReadFile`, and the paths of its pieces.
FILE_ROW = pa.schema(
    [
        ("file", pa.string()),
        ("n_bytes", pa.int64()),
        ("fingerprint", pa.string()),
        ("reason", pa.string()),
        ("notes", pa.list_(pa.string())),
        ("paths", pa.list_(pa.string())),
    ]
)

DEFAULT_MAX_TABLE_BYTES = DEFAULT_MAX_BYTES
_INSIDE = "the tables inside it are compared where an index is searched, and not in a folder"


@dataclass(frozen=True)
class ReadFile:
    """A file of a lake, or a table of Spark's catalog."""

    file: str
    n_bytes: int
    fingerprint: str | None = None
    reason: str | None = None
    # What keeps the table where it is: rows are not as they stand in the file, or it has a log
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LakeRows:
    """A lake that was read; `lake` is None where its tables are no files."""

    lake: Path | Location | None
    name: str
    files: Sequence[ReadFile]
    pieces: Mapping[str, Sequence[StoredPiece]]
    logged: Mapping[str, Sequence[str]] = field(default_factory=dict)


def lake_rows(
    lake: Path | Location | None,
    name: str,
    rows: Sequence[Mapping[str, Any]],
    logged: Mapping[str, Sequence[str]] | None = None,
) -> LakeRows:
    """Put together what tasks have read: rows of `FILE_ROW`."""
    files, pieces = [], {}
    for row in sorted(rows, key=lambda row: row["file"]):
        fields = {**row, "notes": tuple(row["notes"] or ())}
        paths = fields.pop("paths")
        files.append(ReadFile(**fields))
        if paths:
            pieces[row["file"]] = [piece for path in paths for piece in stored_pieces(path)]
    return LakeRows(lake, name, files, pieces, logged or {})


@dataclass(frozen=True)
class LakeListing:
    """The files of a lake that hold rows of now."""

    root: Path | Location
    files: list[TableFile]
    logged: dict[str, list[str]]
    # list of (str, str): What may hold rows that are not compared, and why: files with tables
    # inside them, what cannot be looked into, and tables with a log that cannot be read. The
    # folders above stay.
    left_out: list[tuple[str, str]]

    def unread(self) -> Iterator[ReadFile]:
        """Yield what is left out as files that could not be read."""
        for name, reason in self.left_out:
            yield ReadFile(name, 0, reason=reason)

    def notes_of(self, file: str, notes: Iterable[str] | None) -> tuple[str, ...]:
        """Return what keeps a file where it is: what was repaired in it, and a log."""
        return (*(notes or ()), *([NOTE] if file in self._with_log else []))

    @cached_property
    def _with_log(self) -> set[str]:
        return {file for files in self.logged.values() for file in files}


def list_lake(lake: str | os.PathLike[str] | Location) -> LakeListing:
    """List the files of a lake, which has at least one table."""
    location = locate(lake)
    root = location.absolute() if isinstance(location, Path) else location  # tasks run elsewhere
    listed, skipped = find_tables(root, single_files=True)
    # A table inside another file cannot be set aside, so it is not looked at.
    files = [file for file in listed if file.member is None]
    holding = {file.table.removesuffix(file.member) for file in listed if file.member is not None}
    left_out = [(name, _INSIDE) for name in sorted(holding)]
    left_out += [(file.path, file.reason) for file in skipped if file.is_closed]
    logged: dict[str, list[str]] = {}
    for table in logged_tables([*(file.table for file in files), *(file.path for file in skipped)]):
        prefix = "" if table.folder == "." else f"{table.folder}/"
        try:
            if not isinstance(root, Path):
                raise CannotRead("it has a log, which is read on this machine or its cluster only")
            live = {f"{prefix}{file}" for file in live_files(root / table.folder, table.kind)}
            own_files = [file.table for file in files if file.table in live]
            if len(own_files) < len(live):
                missing = min(live.difference(own_files))
                raise CannotRead(f"its log names the file {missing}, which is not there")
            logged[table.folder] = own_files
        except CannotRead as error:
            left_out.append((table.folder, str(error)))
            live = set()
        files = [file for file in files if file.table in live or not file.table.startswith(prefix)]
    if not files and not left_out:
        raise LakeError(f"'{lake}' has no table: give a folder with CSV, Parquet or JSON lines.")
    return LakeListing(root, files, logged | {name: [name] for name, _ in left_out}, left_out)


def read_lake(
    spark: SparkSession,
    lake: str | os.PathLike[str] | Location,
    folder: Path,
    *,
    max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
) -> LakeRows:
    """Read all files of a lake in tasks.

    A task holds a file of text, or some batches of a Parquet file; the driver the names of the
    files.
    """
    listing = list_lake(lake)
    read = read_files(spark, listing, listing.files, folder, max_table_bytes)
    return replace(read, files=[*read.files, *listing.unread()])


def read_files(
    spark: SparkSession | None,
    listing: LakeListing,
    files: Iterable[TableFile],
    folder: Path,
    max_bytes: int,
) -> LakeRows:
    """Read some files of a lake, large ones first; their pieces go to a folder."""
    ordered = sorted(files, key=lambda file: (-file.n_bytes, file.table))
    read = partial(_read, root=listing.root, folder=folder, max_bytes=max_bytes)
    rows = work_in_tasks(spark, map(table_row, ordered), read, FILE_ROW)
    for row in rows:
        row["notes"] = listing.notes_of(row["file"], row["notes"])
    return lake_rows(listing.root, str(listing.root), rows, listing.logged)


def _read(
    listed: dict[str, Any], *, root: Path | Location, folder: Path, max_bytes: int
) -> list[dict[str, Any]]:
    file, path = table_of_row(root, listed), _new_path(folder)
    row = {"file": file.table, "n_bytes": file.n_bytes}
    try:
        fingerprint, notes, batches = rows_of_file(file, max_bytes)
        write_pieces(path, pieces_of(file.table, batches))
        return [{**row, "fingerprint": fingerprint, "paths": [str(path)], "notes": notes}]
    except TableReadError as error:
        reason = str(error)
    except PlaceError:
        raise  # the lake would seem smaller than it is
    except OSError as error:
        if path.exists() and str(error.filename) != str(file.path):
            raise  # where pieces are written is at fault
        reason = f"{file.table} cannot be read: {error.strerror or error}"
    except (pa.ArrowException, ValueError, MemoryError, RecursionError) as error:
        reason = f"{file.table} cannot be read as a table: {type(error).__name__}: {error}"
    path.unlink(missing_ok=True)
    return [{**row, "reason": reason.splitlines()[0]}]


def _new_path(folder: Path) -> Path:
    return folder / f"{secrets.token_hex(12)}.arrow"  # of this attempt at a task


def rows_of_file(file: TableFile, max_bytes: int) -> tuple[str, list[str], Iterator[TypedRows]]:
    """Return the fingerprint of a file, what was repaired in it, and its rows."""
    if file.format == "parquet" and isinstance(file.path, Path):
        return fingerprint_file(file.path), [], parquet_rows(file.table, str(file.path))
    options = reading_options(file.reading)
    opened = open_table(file.path, shown=file.table, options=options, max_bytes=max_bytes)
    if opened.format == "parquet":
        return str(opened.fingerprint), [], opened.rows()
    table = opened.text()
    return str(opened.fingerprint), table.notes, opened.rows(table)


def is_index(source: Any) -> bool:
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

    store = index if isinstance(index, Store) else open_visible(index)
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
    """Return why a file counts for nothing by itself: a log is above; `known` folders are kept."""
    if not isinstance(lake, Path):
        return None
    for folder in (lake / table, *(lake / table).parents):
        if folder not in known:
            known[folder] = log_in(folder)
        if (logged := known[folder]) is not None:
            owner = f"it belongs to a table of {logged.kind.capitalize()}"
            return _OF_FOLDER.format(f"{owner}, whose log says which files count")
        if folder == lake:
            break
    return None


def _lake_of(store: Store) -> Path | Location | None:
    name = store.manifest.facts["lake"]
    if name.startswith("spark:"):
        return None
    try:
        return locate(name)
    except PexesoError:
        return None  # its storage is not known here


def rows_of_lake(
    spark: SparkSession, lake: Any, folder: Path, *, max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES
) -> LakeRows:
    if isinstance(lake, Mapping):
        tables = [SparkTable(name, frame) for name, frame in lake.items()]
        return _rows_of_frames(tables, "tables of Spark", folder)
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
    return _rows_of_frames(tables, source.name, folder)


def _rows_of_frames(tables: list[SparkTable], name: str, folder: Path) -> LakeRows:
    """Write the pieces of frames, a file for each of their partitions."""
    listed = []
    for table in tables:
        reason, paths = _unreadable(table.frame), []
        if reason is None:
            read = partial(_read_partition, table.name, table.frame.columns, folder)
            rows = table.frame.mapInArrow(read, spark_schema(FILE_ROW)).toArrow().to_pylist()
            paths = [path for row in rows for path in row["paths"]]
            paths = paths or [_without_rows(table, folder)]
        # How large Spark takes the frame for: of files their size.
        statistics = table.frame._jdf.queryExecution().optimizedPlan().stats()
        n_bytes = int(str(statistics.sizeInBytes()))
        row = {"file": table.name, "n_bytes": n_bytes, "fingerprint": None}
        listed.append({**row, "reason": reason, "notes": (), "paths": paths})
    return lake_rows(None, name, listed)


def _unreadable(frame: DataFrame) -> str | None:
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
    path = _new_path(folder)
    rows = (TypedRows(names, batch.columns) for batch in batches)
    write_pieces(path, pieces_of(table, rows))
    yield pa.RecordBatch.from_pylist([{"file": table, "paths": [str(path)]}], schema=FILE_ROW)


def _without_rows(table: SparkTable, folder: Path) -> str:
    """Write the piece of a frame without partitions, which has columns all the same."""
    path = _new_path(folder)
    columns = [pa.array([], kind) for kind in table.frame.limit(0).toArrow().schema.types]
    write_pieces(path, pieces_of(table.name, [TypedRows(table.frame.columns, columns)]))
    return str(path)
