"""Folders that are one table, read from their files as they are now, or as they were.

A table of Delta Lake or Iceberg has a log that says which files and rows count, and what its
columns are called: files of older versions lie next to the live ones. Log and rows are read by the
library of the format, where that is installed; the rows in the sandbox. A Hive table has its files
in folders such as ``country=NO``, which are a column. Both are one table, named by their folder.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.containers.formats import format_of
from pexeso.lake.readers.table import (
    DEFAULT_MAX_CELL_BYTES,
    FileSource,
    Table,
    bytes_fingerprint,
    check_width,
    fingerprint_file,
)
from pexeso.lake.typed.parquet import TypedRows
from pexeso.lake.typed.sandbox import Answer, TypedTable, ask, budget_of, gathered
from pexeso.lake.typed.value_texts import without_view
from pexeso.runtime.extras import installation
from pexeso.runtime.formatting import first_line
from pexeso.store.io.location import Location, PlaceEntry
from pexeso.store.io.table_history import NoSuchState, delta_version, digest_of, iceberg_snapshot

if TYPE_CHECKING:
    from pexeso.lake.containers.reader import OpenTable

DELTA, ICEBERG, HIVE = FOLDER_KINDS = ("delta", "iceberg", "hive")

# What is noted of a table with a log: it is not moved away from its catalog and log.
NOTE = "its log says which of its files count"

# Most files of one table.
MAX_FILES = 100_000
_SHOWN_NAMES = 5

_OTHER_NAMES = "its log gives its columns other names than its files have"
_ROWS_DELETED = "its log deletes rows that its files have"

_NULL = "__HIVE_DEFAULT_PARTITION__"
_DELTA_LOG, _ICEBERG_LOG, _ICEBERG_END = "_delta_log", "metadata", ".metadata.json"
_LOG = re.compile(
    r"(?P<folder>.*?)/?(?:(?P<delta>_delta_log/)|(?P<iceberg>metadata/[^/]+\.metadata\.json$))"
)
_MAX_DELTA_READER = 3
# Features that change nothing, or are looked at below.
_DELTA_FEATURES = frozenset(
    ("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck")
)


class CannotRead(Exception):
    """The live files of a table cannot be known: a clause."""


class LoggedTable(NamedTuple):
    folder: str
    kind: str


def logged_tables(names: Iterable[str]) -> list[LoggedTable]:
    """Return the tables with a log among the files of a lake."""
    kinds = {}
    for name in names:
        match = _LOG.match(name)
        if match is not None:
            kind = "delta" if match["delta"] else "iceberg"
            kinds.setdefault(match["folder"] or ".", kind)
    return [LoggedTable(folder, kind) for folder, kind in sorted(kinds.items())]


def log_in(folder: Path) -> LoggedTable | None:
    if (folder / "_delta_log").is_dir():
        return LoggedTable(".", "delta")
    if any((folder / "metadata").glob("*.metadata.json")):
        return LoggedTable(".", "iceberg")
    return None


@dataclass(frozen=True)
class Snapshot:
    """A table with a log in one state.

    state: differs where rows or columns do; request: what the sandbox is asked for its rows.
    """

    files: tuple[str, ...]
    state: str
    request: dict[str, Any]
    # Why the rows are not those that the files have, a clause; None where they are.
    otherwise: str | None = None


def live_files(folder: Path, kind: str) -> list[str]:
    """Return the files that hold the rows of a table as they are now: relative paths, sorted."""
    snapshot = _snapshot(folder, kind)
    if snapshot.otherwise is not None:
        raise CannotRead(snapshot.otherwise)
    return list(snapshot.files)


def _snapshot(folder: Path, kind: str, as_of: str | None = None) -> Snapshot:
    try:
        return (_delta_snapshot if kind == DELTA else _iceberg_snapshot)(folder, as_of)
    except ModuleNotFoundError:
        name, package = (
            ("a Delta table", "deltalake") if kind == DELTA else ("an Iceberg table", "pyiceberg")
        )
        raise CannotRead(
            f"it is {name}: install what reads its log with {installation(package)}"
        ) from None
    except CannotRead:
        raise
    except NoSuchState as error:
        raise CannotRead(str(error)) from None
    except Exception as error:  # of two libraries, whose errors have no common base
        raise CannotRead(f"its log cannot be read: {first_line(error)}") from error


def _delta_snapshot(folder: Path, as_of: str | None) -> Snapshot:
    from deltalake import DeltaTable

    version = None if as_of is None else delta_version(folder, as_of)
    table = DeltaTable(str(folder), version=version)
    protocol, metadata = table.protocol(), table.metadata()
    unknown = set(protocol.reader_features or ()) - _DELTA_FEATURES
    if protocol.min_reader_version > _MAX_DELTA_READER or unknown:
        what = ", ".join(sorted(unknown)) or f"version {protocol.min_reader_version}"
        raise CannotRead(f"its log asks of readers what pexeso does not know: {what}")
    otherwise = None
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        otherwise = _OTHER_NAMES
    deleted = pa.table(table.deletion_vectors().read_all()).sort_by("filepath")
    if len(deleted):  # whether or not its protocol names such
        otherwise = _ROWS_DELETED
    files = _inside(folder, table.file_uris())
    schema = json.dumps(json.loads(table.schema().to_json()), sort_keys=True)
    state = digest_of(metadata.id, schema, files, _digest_of_rows(deleted))
    return Snapshot(files, state, {"kind": DELTA, "version": table.version()}, otherwise)


def _iceberg_snapshot(folder: Path, as_of: str | None) -> Snapshot:
    from pyiceberg.table import StaticTable

    paths = sorted((folder / _ICEBERG_LOG).glob(f"*{_ICEBERG_END}"), key=_version)
    table = StaticTable.from_metadata(str(paths[-1]))
    names = [
        {field.field_id: field.name for field in schema.fields} for schema in table.metadata.schemas
    ]
    number = None if as_of is None else iceberg_snapshot(table, as_of).snapshot_id
    scan = table.scan(snapshot_id=number)
    schema = scan.projection()
    now = {field.field_id: field.name for field in schema.fields}
    tasks = list(scan.plan_files())
    deletes = sorted(file.file_path for task in tasks for file in task.delete_files)
    otherwise = None
    if any(now.get(number, name) != name for some in names for number, name in some.items()):
        otherwise = _OTHER_NAMES
    if deletes:
        otherwise = _ROWS_DELETED
    files = _inside(folder, [task.file.file_path for task in tasks])
    _inside(folder, deletes)
    state = digest_of(table.metadata.table_uuid, schema.model_dump_json(), deletes, files)
    request = {"kind": ICEBERG, "metadata": paths[-1].name, "snapshot": number}
    return Snapshot(files, state, request, otherwise)


def _digest_of_rows(rows: pa.Table) -> str:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes_fingerprint(stream.getvalue())


def read_snapshot(source: FileSource, table: FolderTable) -> TypedTable:
    """Read the rows of a table with a log, with the types that its log gives its columns."""
    request = {**table.request, "path": os.path.realpath(str(source.location))}
    _, rows = ask(__name__, request, source.budget(), table.n_bytes)
    if rows is None:
        raise TableReadError(f"{source.shown} holds no table.")
    return TypedTable(rows, [])


def answer(request: dict[str, Any]) -> Answer:
    """Read the rows of a table with a log, in the order of its files; called in the sandbox."""
    path, budget = Path(request["path"]), budget_of(request)
    try:
        batches = (_delta_batches if request["kind"] == DELTA else _iceberg_batches)(path, request)
        schema = pa.schema([(field.name, without_view(field.type)) for field in batches.schema])
        return {}, gathered((batch.cast(schema) for batch in batches), schema, budget)
    except TableReadError:
        raise
    except Exception as error:  # of two libraries, whose errors have no common base
        reason = first_line(error)
        raise TableReadError(f"{{shown}} cannot be read as a table: {reason}.") from error


def _delta_batches(path: Path, request: dict[str, Any]) -> pa.RecordBatchReader:
    from deltalake import DeltaTable, QueryBuilder

    table = DeltaTable(str(path), version=request["version"])
    query = QueryBuilder({"datafusion.execution.target_partitions": "1"}).register("t", table)
    return pa.RecordBatchReader.from_stream(query.execute("SELECT * FROM t"))


def _iceberg_batches(path: Path, request: dict[str, Any]) -> pa.RecordBatchReader:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(str(path / _ICEBERG_LOG / request["metadata"]))
    return table.scan(snapshot_id=request["snapshot"]).to_arrow_batch_reader()


def _version(path: Path) -> tuple[int, str]:
    number = re.match(r"v?(\d+)", path.name)
    return (int(number[1]) if number else -1, path.name)


def _inside(folder: Path, locations: Iterable[str]) -> tuple[str, ...]:
    """Return relative paths, sorted; raises `CannotRead` for a file that lies elsewhere."""
    root, names = folder.resolve(), []
    for location in locations:
        path = Path(unquote(urlsplit(location).path) if "://" in location else location)
        path = (folder / path).resolve()  # the path alone, if it is absolute
        if not path.is_relative_to(root):
            raise CannotRead(f"its log names the file {location}, which lies elsewhere")
        names.append(path.relative_to(root).as_posix())
    return tuple(sorted(names))


class TablePart(NamedTuple):
    """A file of a table in a folder.

    `name` is a POSIX path relative to the folder; `modified` is in nanoseconds since 1970, None
    where its storage does not say; `version` is what its storage calls this content.
    """

    name: str
    path: Path | Location
    n_bytes: int
    modified: int | None
    version: str | None = None

    @property
    def values(self) -> dict[str, str | None]:
        pairs = (folder.partition("=") for folder in self.name.split("/")[:-1])
        return {
            unquote(name): None if value == _NULL else unquote(value)
            for name, equals, value in pairs
            if name and equals
        }


@dataclass(frozen=True)
class FolderTable:
    """The files of a table as they are now, or were, by name."""

    kind: str
    parts: tuple[TablePart, ...]
    # Of a table with a log: see `Snapshot`.
    state: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_bytes(self) -> int:
        return sum(part.n_bytes for part in self.parts)

    @property
    def modified(self) -> int | None:
        """When a file was last changed, in nanoseconds since 1970; None where nobody knows."""
        return max((part.modified for part in self.parts if part.modified), default=None)

    @property
    def version(self) -> str:
        lines = (
            f"{part.name}\0{part.n_bytes}\0{part.modified}{part.version or ''}\n"
            for part in self.parts
        )
        text = "".join([*lines, self.state or ""])
        return bytes_fingerprint(text.encode("utf-8", "surrogateescape"))

    @property
    def fingerprint(self) -> str | None:
        """Digest of the names and contents of the files; None where one went away meanwhile.

        Files under a log are not written again, but for those that were damaged: the version says
        what they hold.
        """
        if self.state is not None:
            return self.version
        digests = [(part.name, fingerprint_file(part.path)) for part in self.parts]
        if any(digest is None for _, digest in digests):
            return None
        return bytes_fingerprint(repr(digests).encode())


def folder_kind(folder: Path | Location, entries: Iterable[PlaceEntry] | None = None) -> str | None:
    names = _names_in(folder) if entries is None else _by_name(entries)
    folders = {name for name, is_folder in names.items() if is_folder and name}
    if _DELTA_LOG in folders:
        return DELTA
    if _ICEBERG_LOG in folders and any(
        name.endswith(_ICEBERG_END) for name in _names_in(folder / _ICEBERG_LOG)
    ):
        return ICEBERG
    files = [name for name, is_folder in names.items() if not is_folder and _is_shown(name)]
    shown = [name for name in folders if _is_shown(name)]
    is_hive = bool(shown) and not files and all(name.find("=") > 0 for name in shown)
    return HIVE if is_hive else None


def folder_table(folder: Path | Location, kind: str, as_of: str | None = None) -> FolderTable:
    if isinstance(folder, Location):
        if kind != HIVE:
            raise CannotRead("its log is read on this machine alone")
        return _of_parts(sorted(_parts_below(folder), key=lambda part: part.name))
    if kind == HIVE:
        return _of_parts([_part(folder, name) for name in sorted(_files_below(folder))])
    snapshot = _snapshot(folder, kind, as_of)
    _check_number(snapshot.files)
    parts = [_part(folder, name) for name in snapshot.files]
    return FolderTable(kind, tuple(parts), snapshot.state, snapshot.request)


def _of_parts(parts: Sequence[TablePart]) -> FolderTable:
    if not parts:
        raise CannotRead("it has no file with rows")
    _check_number(parts)
    columns = {tuple(part.values) for part in parts}
    if len(columns) > 1:
        raise CannotRead("its files lie in folders of different partition columns")
    return FolderTable(HIVE, tuple(parts))


def _check_number(files: Sequence[object]) -> None:
    if len(files) > MAX_FILES:
        raise CannotRead(f"of its files at most {MAX_FILES:,} are read, and it has more")


def _part(folder: Path, name: str) -> TablePart:
    try:
        status = (folder / name).lstat()
    except OSError:
        raise CannotRead(f"its file {name} is not there") from None
    if not stat.S_ISREG(status.st_mode):
        raise CannotRead(f"its file {name} is not a regular file")
    return TablePart(name, folder / name, status.st_size, status.st_mtime_ns)


def _names_in(folder: Path | Location) -> dict[str, bool]:
    """Return the names in a folder, and whether each is a folder; none where it cannot be listed.

    One that lies elsewhere and cannot be listed is an error.
    """
    if isinstance(folder, Location):
        return _by_name(folder.entries())
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except (OSError, ValueError):  # no folder, or no name that a system has
        return {}


def _by_name(entries: Iterable[PlaceEntry]) -> dict[str, bool]:
    return {entry.name: entry.kind == "folder" for entry in entries}


def _is_shown(name: str) -> bool:
    return name[:1] not in (".", "_")


def _files_below(folder: Path) -> list[str]:
    names = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(filter(_is_shown, folders))
        relative = Path(at).relative_to(folder)
        names += [(relative / name).as_posix() for name in files if _is_shown(name)]
        if len(names) > MAX_FILES:
            break
    return names


def _parts_below(folder: Location) -> list[TablePart]:
    return [
        TablePart(name, folder / name, entry.n_bytes, entry.modified, entry.version)
        for name, entry in folder.find().items()
        if all(part and _is_shown(part) for part in name.split("/"))
    ]


def kind_of_folder(location: Path | Location) -> str | None:
    if isinstance(location, Location):
        # Where a name stands for a format, no request is spent on asking whether it is a folder.
        entry = location.look() if format_of(location.name) is None else None
        if entry is None or entry.kind != "folder":
            return None
    return folder_kind(location)


@dataclass(frozen=True)
class OpenFolder:
    """A table in a folder, with the interface of `pexeso.lake.containers.reader.OpenTable`.

    Columns are known by their names: those of the files, in order of first appearance, then those
    of the paths. A file without a column has no cells in it.
    """

    shown: str
    table: FolderTable
    open_part: Callable[[Path | Location], OpenTable]
    max_bytes: int

    @property
    def format(self) -> str:
        return self.table.kind

    @cached_property
    def fingerprint(self) -> str | None:
        return self.table.fingerprint

    def text(
        self, *, max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES, is_meant: bool = False
    ) -> Table:
        parts: list[_Part] = []
        notes: dict[str, None] = {}
        n_bytes, known = 0, set(self.table.parts[0].values)
        for part in self.table.parts:
            read = self.open_part(part.path).text(max_cell_bytes=max_cell_bytes)
            cells = dict(zip(read.names, read.columns, strict=True))
            if len(cells) < len(read.names):
                raise TableReadError(f"{self.shown} has two columns of one name: {part.name}.")
            if parts and cells.keys().isdisjoint(known):
                raise TableReadError(
                    f"{self.shown} has files without a column in common: {parts[0][0].name} and "
                    f"{part.name}; they lack headers, or belong to several tables."
                )
            n_bytes += sum(column.nbytes for column in read.columns)
            if n_bytes > self.max_bytes:
                raise TableReadError(
                    f"{self.shown} has more than {self.max_bytes:,} bytes as text "
                    "(max_table_bytes)."
                )
            notes |= dict.fromkeys(read.notes)
            parts.append((part, cells, read.n_rows))
            known |= cells.keys()
        names = _names(parts)
        check_width(self.shown, len(names))
        of_paths = parts[0][0].values
        lacked = [n for n in names if n not in of_paths and any(n not in part[1] for part in parts)]
        if lacked:
            shown = ", ".join(map(repr, lacked[:_SHOWN_NAMES]))
            notes[f"columns that some of its files lack were filled with empty cells: {shown}"] = (
                None
            )
        columns = [pa.concat_arrays([_cells(name, part) for part in parts]) for name in names]
        return Table(names, columns, notes=list(notes))

    def rows(self, table: Table | None = None) -> Iterator[TypedRows]:
        """Yield the rows as texts; files of one table may have different types."""
        table = table or self.text()
        yield TypedRows(table.names, list(table.columns))

    def typed_columns(self, texts: Sequence[pa.Array]) -> list[pa.ChunkedArray] | None:
        """Read the columns with the types of the files; see `OpenTable.typed_columns`.

        A column of the paths has numbers or dates where each is written as that would be. A column
        whose files have types that do not go together stays text.
        """
        parts: list[_Part] = []
        for part in self.table.parts:
            typed = self.open_part(part.path).typed()
            if typed is None:
                return None
            columns = dict(zip(*typed, strict=True))
            parts.append((part, columns, len(typed[1][0]) if typed[1] else 0))
        names = _names(parts)
        n_rows = sum(n for *_, n in parts)
        if [n_rows] * len(names) != list(map(len, texts)):
            return None
        return [
            pa.chunked_array([text]) if (column := _typed_column(name, parts)) is None else column
            for name, text in zip(names, texts, strict=True)
        ]


# A file, its columns by name, and its number of rows.
_Part = tuple[TablePart, dict[str, Any], int]


def _names(parts: Sequence[_Part]) -> list[str]:
    names = dict.fromkeys(name for _, columns, _ in parts for name in columns)
    return list(names | dict.fromkeys(parts[0][0].values))


def _cells(name: str, part: _Part) -> pa.StringArray:
    table_part, columns, n_rows = part
    if name in columns:
        return columns[name]
    return pa.repeat(pa.scalar(table_part.values.get(name), pa.string()), n_rows)


def _typed_column(name: str, parts: Sequence[_Part]) -> pa.ChunkedArray | None:
    """Return a column with the one type that goes for all files; None where there is none."""
    values = _path_values([part.values.get(name) for part, _, _ in parts])
    pieces = [
        columns[name] if name in columns else pa.chunked_array([pa.repeat(value, n_rows)])
        for (_, columns, n_rows), value in zip(parts, values, strict=True)
    ]
    kinds = {piece.type for piece in pieces if piece.null_count < len(piece)}
    are_numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    if len(kinds) > 1 and not are_numbers:
        return None
    schemas = [pa.schema([("", kind)]) for kind in kinds or {pieces[0].type}]
    try:
        kind = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        chunks = [
            pa.nulls(len(chunk), kind) if chunk.null_count == len(chunk) else chunk.cast(kind)
            for piece in pieces
            for chunk in piece.chunks
        ]
    except pa.ArrowException:  # whole numbers that no float holds
        return None
    return pa.chunked_array(chunks, kind)


def _path_values(texts: Sequence[str | None]) -> pa.Array:
    """Return values of paths as whole numbers or dates where each is written as that would be."""
    values = pa.array(texts, pa.string())
    for kind in (pa.int64(), pa.date32()):
        with suppress(pa.ArrowException):
            typed = values.cast(kind)
            if typed.cast(pa.string()).equals(values):
                return typed
    return values
