"""Read one table of a file, whatever its format: as texts, or with the types of the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.columns import label_columns
from pexeso.lake.containers.folders import (
    CannotRead,
    OpenFolder,
    folder_table,
    kind_of_folder,
    read_snapshot,
)
from pexeso.lake.containers.formats import (
    Container,
    format_of,
    only_member,
    read_inner,
    split_member,
    without_packing,
)
from pexeso.lake.readers.delimited import parse_delimited
from pexeso.lake.readers.json_text import parse_json, starts_as_json
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.readers.table import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_CELL_BYTES,
    FileSource,
    Table,
    bytes_fingerprint,
    clean_name,
    fingerprint_file,
    read_content,
)
from pexeso.lake.typed.parquet import (
    ROWS_A_BATCH,
    TypedRows,
    is_as_it_is,
    json_rows,
    parquet_rows,
    parse_parquet,
)
from pexeso.lake.typed.sandbox import TypedTable, gathered
from pexeso.lake.typed.text import decoded_once, sound, table_decoded_once, text_table, total_bytes
from pexeso.store.io.location import Location, locate, locate_state

# Formats whose cells have no types of their own.
FORMATS_OF_TEXTS = ("delimited", "jsonlines", "json")
_PARQUET_MAGIC = b"PAR1"

_kept: ContextVar[dict[Any, Table] | None] = ContextVar("kept", default=None)


@contextmanager
def tables_kept() -> Iterator[None]:
    """Keep the texts of the tables that are read in the block, and read none of them again."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


@dataclass(frozen=True)
class OpenTable:
    """A table of a file.

    fingerprint: str or None, equal where the bytes of the file, or of the member of an archive,
    have not changed; None for a file that went away meanwhile.
    """

    shown: str
    source: FileSource
    inner: str | None
    fingerprint: str | None
    options: ReadingOptions = AS_FOUND

    @property
    def format(self) -> str:
        """Format of the rows: that of the name, else that of the content.

        JSON is known by its content under a name of delimited text, too.
        """
        file_format = format_of(self.source.shown)
        if file_format is not None and (
            file_format.name != "delimited"
            or self.options
            or not starts_as_json(self._data, is_sure=True)
        ):
            return file_format.name
        if self._data.startswith(_PARQUET_MAGIC):
            return "parquet"
        return "json" if starts_as_json(self._data) else "delimited"

    @property
    def _data(self) -> bytes:
        return self.source.data or b""

    def text(
        self, *, max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES, is_meant: bool = False
    ) -> Table:
        extension = os.path.splitext(without_packing(self.source.shown.lower()))[1]
        plain = is_meant and extension == ".txt"
        read, kept = partial(self._text, max_cell_bytes, "" if plain else extension), _kept.get()
        if kept is None or self.source.data is None:
            return read()
        limits = max_cell_bytes, self.source.max_bytes
        key = self.fingerprint, self.inner, extension, plain, self.options, *limits
        if key not in kept:
            kept[key] = read()
        return kept[key]

    def _text(self, max_cell_bytes: int, extension: str) -> Table:
        with _errors_in_words(self.shown):
            kind, budget = self.format, self.source.budget()
            if kind == "parquet":
                table = parse_parquet(self._data, budget, max_cell_bytes=max_cell_bytes)
                return table if is_as_it_is(self._data) else table_decoded_once(table)
            if kind in ("jsonlines", "json"):
                return parse_json(self._data, budget, max_cell_bytes=max_cell_bytes)
            if kind == "delimited":
                return parse_delimited(
                    self._data,
                    budget,
                    extension,
                    max_cell_bytes=max_cell_bytes,
                    options=self.options,
                )
            rows, notes = self._typed_table()
            table = text_table(
                budget, rows.column_names, _batches(rows), notes, max_cell_bytes=max_cell_bytes
            )
            return table_decoded_once(table)

    def rows(self, table: Table | None = None) -> Iterator[TypedRows]:
        """Yield the rows with the types of the file; at least one batch comes."""
        kind = self.format
        if kind == "delimited":
            table = table or self.text()
            yield TypedRows(table.names, list(table.columns))
            return
        budget = self.source.budget()
        if kind == "parquet":
            yield from parquet_rows(self.shown, pa.BufferReader(self._data), budget)
        elif kind in ("jsonlines", "json"):
            yield from json_rows(self._data, budget)
        else:
            typed = self._typed_table().rows
            # Arrow makes no array of unions from a list of values.
            yield TypedRows(typed.column_names, [pa.nulls(0, kind) for kind in typed.schema.types])
            for columns in _batches(typed):
                budget.check_unpacked_columns(sum(map(total_bytes, columns)))
                yield TypedRows(typed.column_names, columns)

    def typed_columns(
        self, texts: Sequence[pa.Array | pa.ChunkedArray]
    ) -> list[pa.ChunkedArray] | None:
        """Read the columns with the types of the file.

        Dictionaries are written out, and texts that are not UTF-8 are mended as in `text`.

        Returns list of pa.ChunkedArray or None: none for formats whose cells are texts, and where
        the file was replaced meanwhile.
        """
        typed = self.typed()
        if typed is None or list(map(len, typed[1])) != list(map(len, texts)):
            return None
        return typed[1]

    def typed(self) -> tuple[list[str], list[pa.ChunkedArray]] | None:
        """Read the names and columns of `typed_columns`; None for formats whose cells are texts."""
        if self.format in FORMATS_OF_TEXTS:
            return None
        with _errors_in_words(self.shown):
            empty, *batches = self.rows()
            kinds = [column.type for column in empty.columns]
            kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
            columns = [
                pa.chunked_array([_of_type(batch.columns[p], kind) for batch in batches], kind)
                for p, kind in enumerate(kinds)
            ]
            names = pa.array(empty.names, pa.string())
            if self.format != "parquet" or not is_as_it_is(self._data):
                names, *columns = decoded_once([names, *columns]) or [names, *columns]
            return [clean_name(name) for name in names.to_pylist()], columns

    def _typed_table(self) -> TypedTable:
        if self.inner is not None:
            return read_inner(self.source, self.inner)
        from pexeso.lake.typed.table_files import TABLE_FILES

        return TABLE_FILES.read(self.source, self.format)


@dataclass(frozen=True, kw_only=True)
class OpenSnapshot(OpenTable):
    """A table with a log, or of a catalogue, as it was when it was opened."""

    kind: str
    read: Callable[[FileSource], TypedTable]

    @property
    def format(self) -> str:
        return self.kind

    @cached_property
    def _snapshot(self) -> TypedTable:
        return self.read(self.source)

    def _typed_table(self) -> TypedTable:
        return self._snapshot  # read again its rows might have another order


@dataclass(frozen=True)
class ChosenColumns:
    """A table of which some columns are read, with the interface of `OpenTable`."""

    opened: OpenTable | OpenFolder
    labels: Collection[str]

    @property
    def format(self) -> str:
        return self.opened.format

    @property
    def fingerprint(self) -> str | None:
        return self.opened.fingerprint

    def _chosen(self, names: Sequence[str], values: Sequence[Any]) -> list[Any]:
        pairs = zip(label_columns(names), values, strict=True)
        return [value for label, value in pairs if label in self.labels]

    def text(
        self, *, max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES, is_meant: bool = False
    ) -> Table:
        whole = self.opened.text(max_cell_bytes=max_cell_bytes, is_meant=is_meant)
        names, columns = (self._chosen(whole.names, one) for one in (whole.names, whole.columns))
        # Notes name columns.
        return replace(whole, names=names, columns=columns, notes=[])

    def rows(self, table: Table | None = None) -> Iterator[TypedRows]:
        for rows in self.opened.rows():
            names, columns = (self._chosen(rows.names, one) for one in (rows.names, rows.columns))
            yield TypedRows(names, columns)

    def typed_columns(
        self, texts: Sequence[pa.Array | pa.ChunkedArray]
    ) -> list[pa.ChunkedArray] | None:
        whole = self.opened.text(is_meant=True)
        typed = self.opened.typed_columns(whole.columns)
        return None if typed is None else self._chosen(whole.names, typed)


def _batches(table: pa.Table) -> Iterator[list[pa.Array]]:
    for batch in table.to_batches(max_chunksize=ROWS_A_BATCH):
        yield batch.columns


def _of_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    values = sound(values)
    return values if values.type == kind else values.cast(kind)


@contextmanager
def _errors_in_words(shown: str) -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise TableReadError(
            f"{shown} does not fit into memory; lower max_bytes to leave such files out."
        ) from error
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise TableReadError(f"{shown} cannot be read as a table: {error}.") from error


def open_table(
    path: str | os.PathLike[str] | Location,
    member: str | None = None,
    *,
    shown: str | None = None,
    options: ReadingOptions = AS_FOUND,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> OpenTable | OpenFolder:
    """Open one table of a file, or of a folder that is one table.

    At most `max_bytes` of a file are read, also after it is unpacked.
    """
    with TablesInTurn() as tables:
        return tables.open(path, member, shown=shown, options=options, max_bytes=max_bytes)


class TablesInTurn(AbstractContextManager["TablesInTurn"]):
    """Opens tables one after the other, and each file once whose tables follow one another.

    To be closed, as a context manager. Holds the file that a table was last taken of, where that
    may hold several.
    """

    def __init__(self) -> None:
        self._file: Container | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def open(
        self,
        path: str | os.PathLike[str] | Location,
        member: str | None = None,
        *,
        shown: str | None = None,
        options: ReadingOptions = AS_FOUND,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> OpenTable | OpenFolder:
        location = locate_state(path, options.as_of)
        if isinstance(location, Location) and location.is_of_catalogue:
            return _open_in_catalogue(location, shown or str(path), max_bytes)
        if (kind := kind_of_folder(location)) is not None:
            return _open_folder(location, kind, shown or str(path), max_bytes, options)
        options = options.of_text()
        file_shown = str(path) if shown is None else shown.removesuffix(member or "")
        file_format = format_of(location.name)
        if file_format is None or not file_format.holds_several:
            if member is not None:
                raise TableReadError(f"{file_shown} holds one table: {member!r} names none in it.")
            source = read_content(location, max_bytes=max_bytes, shown=file_shown)
            return OpenTable(file_shown, source, None, source.fingerprint, options)
        file = self._held(FileSource(file_shown, location, max_bytes=max_bytes))
        if member is None:
            member = only_member(file.source)
        source, inner = file.enter(member)
        return OpenTable(f"{file_shown}{member}", source, inner, source.fingerprint, options)

    def fingerprint(
        self, path: Path | Location, member: str | None = None, reading: str | None = None
    ) -> str | None:
        """Compute the fingerprint of a table and the way it is read; None where it cannot be read.

        A file of one table is read in pieces; a member of an archive is read whole.
        """
        try:
            if isinstance(path, Location) and path.is_of_catalogue:
                return _open_in_catalogue(path, str(path), DEFAULT_MAX_BYTES).fingerprint
            if (kind := kind_of_folder(path)) is not None:
                options = reading_options(reading)
                opened = _open_folder(path, kind, str(path), DEFAULT_MAX_BYTES, options)
                return with_reading(opened.fingerprint, reading)
            if member is None:
                return with_reading(fingerprint_file(path), reading)
            file = self._held(FileSource(str(path), path))
            return with_reading(file.enter(member)[0].fingerprint, reading)
        except TableReadError:
            return None

    def _held(self, source: FileSource) -> Container:
        if self._file is None or self._file.source != source:
            self.close()
            self._file = Container(source)
        return self._file


def _open_folder(
    location: Path | Location, kind: str, shown: str, max_bytes: int, options: ReadingOptions
) -> OpenSnapshot | OpenFolder:
    def open_part(path: Path | Location) -> OpenTable:
        opened = open_table(path, max_bytes=max_bytes)
        if isinstance(opened, OpenFolder):
            raise TableReadError(f"{shown} has a folder in the place of a file: {path.name}.")
        return opened

    try:
        table = folder_table(location, kind, options.as_of)
    except CannotRead as error:
        raise TableReadError(f"{shown} cannot be read as a table: {error}.") from error
    if table.n_bytes > max_bytes:
        raise TableReadError(
            f"{shown} has {table.n_bytes:,} bytes in its files, more than the limit of "
            f"{max_bytes:,} (max_table_bytes)."
        )
    if table.state is not None:
        source = FileSource(shown, location, max_bytes=max_bytes, n_stored=table.n_bytes)
        read = partial(read_snapshot, table=table)
        return OpenSnapshot(shown, source, None, table.version, kind=kind, read=read)
    return OpenFolder(shown, table, open_part, max_bytes)


def _open_in_catalogue(location: Location, shown: str, max_bytes: int) -> OpenSnapshot:
    entry = location.look()
    if entry is None or entry.kind != "table":
        raise TableReadError(f"{shown} is gone: {location.protocol} has no such table now")
    if entry.n_bytes > max_bytes:
        raise TableReadError(
            f"{shown} has {entry.n_bytes:,} bytes, more than the limit of {max_bytes:,} "
            "(max_table_bytes)."
        )
    source = FileSource(shown, location, max_bytes=max_bytes, n_stored=entry.n_bytes)
    kind, read = location.protocol, _read_in_catalogue
    return OpenSnapshot(shown, source, None, entry.version, kind=kind, read=read)


def _read_in_catalogue(source: FileSource) -> TypedTable:
    location = source.location
    if not isinstance(location, Location):
        raise TableReadError(f"{source.shown} is no table of a catalogue.")
    with location.rows() as batches:
        return TypedTable(gathered(batches, batches.schema, source.budget()), [])


def reading_options(reading: str | None) -> ReadingOptions:
    return ReadingOptions(**json.loads(reading)) if reading else AS_FOUND


def with_reading(fingerprint: str | None, reading: str | None) -> str | None:
    if fingerprint is None or reading is None:
        return fingerprint
    return bytes_fingerprint(f"{fingerprint} {reading}".encode())


def read_table(
    path: str | os.PathLike[str] | Location,
    *,
    options: ReadingOptions = AS_FOUND,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
) -> Table:
    r"""Read a table of a file: text, JSON, Parquet and its kin, a sheet, a database's table.

    The extension says the format; a file with another extension is Parquet where it starts
    like Parquet, JSON where it begins with an object, else delimited text. Text may have any
    encoding and dialect, and may be packed by gzip, bzip2, xz or zstd. Memory: about three times
    the size of the file's text, hence bounded by `max_bytes`.

    Parameters
    ----------
    path
        The file: a path, an URL or a `Location`. A table inside a file is named by what leads into
        it: ``book.xlsx#Sheet1``, ``data.sqlite#orders``, ``file.zip/inner.csv``.
    options
        How delimited text is read; what they leave open is found.
    max_bytes
        Limit on the file's size in bytes, also after it is unpacked; at least 1.
    max_cell_bytes
        Limit on one cell in bytes of UTF-8; larger cells are read as empty, with a note.
    """
    table = open_named(path, options=options, max_bytes=max_bytes)
    return table.text(max_cell_bytes=max_cell_bytes, is_meant=True)


def read_typed_table(
    path: str | os.PathLike[str] | Location, *, options: ReadingOptions = AS_FOUND
) -> tuple[Table, list[pa.ChunkedArray] | None]:
    """Read a table as `read_table` does, and with the types of its file.

    See `OpenTable.typed_columns`; the file is opened once.
    """
    opened = open_named(path, options=options)
    table = opened.text(is_meant=True)
    return table, opened.typed_columns(table.columns)


def open_named(
    path: str | os.PathLike[str] | Location,
    *,
    options: ReadingOptions = AS_FOUND,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> OpenTable | OpenFolder | ChosenColumns:
    if path == "":
        raise TableReadError(
            "A table is named by its path, such as 'cities.csv' or 'book.xlsx#Sheet1'. Got an "
            "empty text."
        )
    file, member = split_member(locate(path))
    opened = open_table(file, member, shown=str(path), options=options, max_bytes=max_bytes)
    return opened if options.columns is None else ChosenColumns(opened, options.columns)
