"""A lake read once into pieces of hashed columns, by tasks of Spark."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.lake_source.source import spark_schema
from pexeso.errors import LakeError, PlaceError, TableReadError
from pexeso.lake.containers.reader import open_table, reading_options
from pexeso.lake.files import TableFile, find_tables, table_of_row, table_row
from pexeso.lake.folders.table_logs import NOTE, CannotRead, live_files, logged_tables
from pexeso.lake.readers.budget import DEFAULT_MAX_BYTES
from pexeso.lake.readers.content import fingerprint_file
from pexeso.lake.readers.typed import TypedRows, parquet_rows
from pexeso.redundancy.pieces import StoredPiece, pieces_of, stored_pieces, write_pieces
from pexeso.redundancy.plans.in_tasks import TASKS_PER_CORE
from pexeso.store.io.location import Location, locate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_ROW = pa.schema(
    [
        ("file", pa.string()),
        ("n_bytes", pa.int64()),
        ("fingerprint", pa.string()),
        ("path", pa.string()),
        ("reason", pa.string()),
        ("notes", pa.list_(pa.string())),
    ]
)
"""What a task yields of a file: `ReadFile`, and the path of its pieces."""

DEFAULT_MAX_TABLE_BYTES = DEFAULT_MAX_BYTES
_INSIDE = "the tables inside it are compared where an index is searched, and not in a folder"


@dataclass(frozen=True)
class ReadFile:
    """A file of a lake, or a table of Spark's catalog.

    Attributes
    ----------
    fingerprint : str or None
        Of its content; None where nobody has computed one.
    reason : str or None
        Why it could not be read.
    notes : tuple of str
        What keeps the table where it is: rows are not as they stand in the file, or it has a log.
    """

    file: str
    n_bytes: int
    fingerprint: str | None
    reason: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LakeRows:
    """A lake that was read.

    Attributes
    ----------
    lake : Path, Location or None
        Where its files are; None where its tables are no files.
    """

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
    """Put together what tasks have read: fields of `ReadFile`, and ``paths`` of its pieces."""
    files, pieces = [], {}
    for row in sorted(rows, key=lambda row: row["file"]):
        fields = {**row, "notes": tuple(row["notes"])}
        paths = fields.pop("paths")
        files.append(ReadFile(**fields))
        if paths:
            pieces[row["file"]] = [piece for path in paths for piece in stored_pieces(path)]
    return LakeRows(lake, name, files, pieces, logged or {})


def read_lake(
    spark: SparkSession,
    lake: str | os.PathLike[str] | Location,
    folder: Path,
    *,
    max_table_bytes: int = DEFAULT_MAX_TABLE_BYTES,
) -> LakeRows:
    """Read all files of a lake in tasks.

    Notes
    -----
    A task holds a file of text, or some batches of a Parquet file; the driver the names of the
    files.
    """
    location = locate(lake)
    root = location.absolute() if isinstance(location, Path) else location  # tasks run elsewhere
    files, logged, left_out = files_and_logs(root)
    if not files and not left_out:
        raise LakeError(f"'{lake}' has no table: give a folder with CSV, Parquet or JSON lines.")
    n_tasks = min(len(files), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    ordered = sorted(files, key=lambda file: (-file.n_bytes, file.table))
    hands = [ordered[hand::n_tasks] for hand in range(n_tasks)]
    rows = [[table_row(file) for file in hand] for hand in hands]
    work = partial(_read_hands, rows, root, folder, max_table_bytes)
    file_rows: list[dict[str, Any]] = []
    if files:
        numbers = spark.range(0, n_tasks, 1, n_tasks)
        file_rows = numbers.mapInArrow(work, spark_schema(FILE_ROW)).toArrow().to_pylist()
    with_log = {file for some in logged.values() for file in some}
    for row in file_rows:
        row["paths"] = [path for path in [row.pop("path")] if path is not None]
        row["notes"] = [*row["notes"], *([NOTE] if row["file"] in with_log else [])]
    return lake_rows(
        root, str(root), file_rows + [_row_left_out(*omission) for omission in left_out], logged
    )


def files_and_logs(
    root: Path | Location,
) -> tuple[list[TableFile], dict[str, list[str]], list[tuple[str, str]]]:
    """List the files of a lake that hold rows of now.

    Returns
    -------
    files : list of TableFile
    logged : dict of str to list of str
        Tables with a log, and their live files; what is left out, as itself.
    left_out : list of (str, str)
        What may hold rows that are not compared, and why: files with tables inside them, what
        cannot be looked into, and tables with a log that cannot be read. The folders above stay.
    """
    listed, skipped = find_tables(root, single_files=True)
    # A table inside another file cannot be set aside, so it is not looked at.
    files = [file for file in listed if file.member is None]
    holding = {file.table.removesuffix(file.member) for file in listed if file.member is not None}
    left_out = [(name, _INSIDE) for name in sorted(holding)]
    left_out += [
        (skipped_file.path, skipped_file.reason)
        for skipped_file in skipped
        if skipped_file.is_closed
    ]
    tables = logged_tables(
        [*(file.table for file in files), *(skipped_file.path for skipped_file in skipped)]
    )
    logged: dict[str, list[str]] = {}
    for table in tables:
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
    return files, logged | {name: [name] for name, _ in left_out}, left_out


def _row_left_out(name: str, reason: str) -> dict[str, Any]:
    row = {"file": name, "n_bytes": 0, "fingerprint": None, "reason": reason, "notes": []}
    return {**row, "paths": []}


def _read_hands(
    hands: list[list[dict[str, object]]],
    root: Path | Location,
    folder: Path,
    max_bytes: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for listed_row in hands[number]:
                row = _read(table_of_row(root, listed_row), folder, max_bytes)
                yield pa.RecordBatch.from_pylist([row], schema=FILE_ROW)


def _read(file: TableFile, folder: Path, max_bytes: int) -> dict[str, object]:
    row = {"file": file.table, "n_bytes": file.n_bytes, "notes": []}
    path = folder / f"{secrets.token_hex(12)}.arrow"  # of this attempt at the task
    try:
        fingerprint, notes, batches = rows_of_file(file, max_bytes)
        write_pieces(path, pieces_of(file.table, batches))
        return {**row, "fingerprint": fingerprint, "path": str(path), "notes": notes}
    except TableReadError as error:
        reason = str(error)
    except PlaceError:
        raise  # the lake would seem smaller than it is
    except OSError as error:
        if path.exists() and not file_is_at_fault(error, file):
            raise
        reason = f"{file.table} cannot be read: {error.strerror or error}"
    except (pa.ArrowException, ValueError, MemoryError, RecursionError) as error:
        reason = f"{file.table} cannot be read as a table: {type(error).__name__}: {error}"
    path.unlink(missing_ok=True)
    return {**row, "reason": reason.splitlines()[0]}


def file_is_at_fault(error: OSError, file: TableFile) -> bool:
    """Return whether an error is about a file of the lake, not about where pieces are written."""
    return error.filename is not None and str(error.filename) == str(file.path)


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
