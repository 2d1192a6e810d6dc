"""The tables that people search with: what they gave, in a folder that is emptied at the end."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError, OutputError, PexesoError, TableReadError
from pexeso.lake.choose import ColumnProfile, profile_columns
from pexeso.lake.containers.formats import split_member
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.rights import LakeView
from pexeso.lake.rows import table_to_read
from pexeso.runtime.threads import release_unused
from pexeso.store.io.location import locate
from pexeso.store.io.temporary import temporary_folder

# Files that are kept; of more, the one not used for longest is removed.
UPLOADS_KEPT = 20

# Tables of one file that can be chosen; a file of more is refused.
TABLES_OF_FILE = 200

# Columns of a table that can be chosen by a click; others are named in the URL.
SHOWN_COLUMNS = 200

# Values of a column that are shown to choose by.
SHOWN_VALUES = 6

_UNSAFE = re.compile(r"[^\w .()+=,@'&!-]")
# Letters of a name, each of at most four bytes: file systems take 255 bytes.
_MAX_NAME = 60


class UnknownTableError(PexesoError):
    """There is no table of this id."""


@dataclass(frozen=True)
class QueryTable:
    """A table to search with: its id in paths, its name for people, and what requests call it.

    `siblings` are the id and the name of each table of the same file. A search should not find a
    table of the lake again. `delimiter` is that of delimited text; `reading` is what the lake's
    settings say.
    """

    id: str
    name: str
    spec: str
    siblings: tuple[tuple[str, str], ...] = ()
    is_of_lake: bool = False
    delimiter: str | None = None
    reading: ReadingOptions = AS_FOUND


@dataclass(frozen=True)
class TableSummary:
    """What a table, in its first `SHOWN_COLUMNS` columns, is known by without being read again."""

    names: tuple[str, ...]
    delimiter: str | None
    n_rows: int
    notes: tuple[str, ...]
    profiles: tuple[ColumnProfile, ...]
    values: tuple[list[str], ...]


def first_values(column: pa.ChunkedArray, number: int) -> list[str]:
    """Return some distinct values of the first rows of a column."""
    return pc.drop_null(column.slice(0, 1000)).unique().slice(0, number).to_pylist()


def summarised(spec: str, reading: ReadingOptions) -> TableSummary:
    read = read_table(spec, options=reading)
    columns = read.columns[:SHOWN_COLUMNS]
    summary = TableSummary(
        tuple(read.names),
        read.delimiter,
        read.n_rows,
        tuple(read.notes),
        tuple(profile_columns(columns)),
        tuple(first_values(column, SHOWN_VALUES) for column in columns),
    )
    n_bytes = sum(column.nbytes for column in read.columns)
    del read, columns
    release_unused(n_bytes)
    return summary


_summarised_once = lru_cache(maxsize=UPLOADS_KEPT)(summarised)


def summary_of(table: QueryTable) -> TableSummary:
    """Return the summary of a table; an uploaded file does not change, and is read once for it."""
    return (summarised if table.is_of_lake else _summarised_once)(table.spec, table.reading)


def names_of(table: QueryTable) -> tuple[str, ...]:
    if table.is_of_lake:  # each move of a slider needs its names alone
        return tuple(read_table(table.spec, options=table.reading).names)
    return summary_of(table).names


class QueryTables:
    """Tables by id."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._ended = ExitStack()
        self._folder = self._ended.enter_context(temporary_folder("pexeso-serve-"))
        self._files: OrderedDict[str, tuple[QueryTable, ...]] = OrderedDict()
        self._lock = Lock()

    def __enter__(self) -> QueryTables:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.close()

    def __getitem__(self, table_id: str) -> QueryTable:
        file, _, position = table_id.partition("-")
        with self._lock:
            tables = self._files.get(file, ())
            if position.isdecimal() and len(position) < 6 and int(position) < len(tables):
                self._files.move_to_end(file)
                return tables[int(position)]
        raise UnknownTableError(
            "This table is no longer here: tables are kept until the server ends, the "
            f"{UPLOADS_KEPT} used last. Give it again."
        )

    def add(self, name: str, pieces: Iterable[bytes]) -> QueryTable:
        """Keep a file of the name that the browser gives it, and return its first table."""
        file_id = secrets.token_urlsafe(9).replace("-", "_")
        folder = self._folder / file_id
        folder.mkdir()
        try:
            path = folder / safe_name(name)
            self._write(path, pieces)
            tables = self._tables_of(file_id, path)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise OutputError(
                    f"'{safe_name(name)}' cannot be kept in {self._folder.parent}: "
                    f"{error.strerror or error}. Make room there, or search with 'pexeso search'."
                ) from error
            raise
        self._keep(file_id, tables)
        return tables[0]

    def add_lake_table(self, lake: str, table: str, view: LakeView | None = None) -> QueryTable:
        """Return a table of the lake as one to search with; its file is read where it lies."""
        spec, reading = table_to_read(lake, table, view)
        with self._lock:
            known = [other for tables in self._files.values() for other in tables]
        for other in known:
            if other.is_of_lake and (other.name, other.reading) == (table, reading):
                with suppress(UnknownTableError):  # which others have pushed out just now
                    return self[other.id]
        file_id = secrets.token_urlsafe(9).replace("-", "_")
        new_table = QueryTable(
            f"{file_id}-0",
            table,
            spec,
            is_of_lake=True,
            delimiter=_delimiter(spec, reading),
            reading=reading,
        )
        self._keep(file_id, (new_table,))
        return new_table

    def _keep(self, file_id: str, tables: tuple[QueryTable, ...]) -> None:
        with self._lock:
            self._files[file_id] = tables
            removed_ids = [
                self._files.popitem(last=False)[0] for _ in range(len(self._files) - UPLOADS_KEPT)
            ]
        for old_id in removed_ids:
            shutil.rmtree(self._folder / old_id, ignore_errors=True)

    def _write(self, path: Path, pieces: Iterable[bytes]) -> None:
        n_bytes = 0
        with path.open("xb") as stream:
            for piece in pieces:
                n_bytes += len(piece)
                if n_bytes > self.max_bytes:
                    raise InputError(
                        f"A table of at most {self.max_bytes:,} bytes is taken here, and "
                        f"'{path.name}' is larger. Search with 'pexeso search'."
                    )
                stream.write(piece)

    def _tables_of(self, file_id: str, path: Path) -> tuple[QueryTable, ...]:
        if path.stat().st_size == 0:
            raise InputError(f"'{path.name}' is empty: a table has a header and rows.")
        tables, skipped = find_tables(path)
        if not tables:
            reason = skipped[0].reason if skipped else "it holds no table"
            raise InputError(f"'{path.name}' is no table that can be searched with: {reason}")
        if len(tables) > TABLES_OF_FILE:
            raise InputError(
                f"'{path.name}' holds {len(tables):,} tables, and at most {TABLES_OF_FILE} can be "
                "chosen from: give the file of one of them."
            )
        siblings = tuple((f"{file_id}-{n}", file.table) for n, file in enumerate(tables))
        try:
            # Of several, each is read once it is chosen.
            is_one = tables[0].table == path.name
            delimiter = _summarised_once(str(path), AS_FOUND).delimiter if is_one else None
        except TableReadError as error:
            message = str(error).replace(f"{path.parent}{os.sep}", "")
            raise InputError(f"This is no table that can be searched with: {message}") from error
        return tuple(
            QueryTable(
                table_id, name, os.path.join(path.parent, name), siblings, delimiter=delimiter
            )
            for table_id, name in siblings
        )


def _delimiter(spec: str, reading: ReadingOptions) -> str | None:
    _, member = split_member(locate(spec))
    return read_table(spec, options=reading).delimiter if member is None else None


def safe_name(name: str) -> str:
    """Return a file's name without folders and signs that are special in paths."""
    last = _UNSAFE.sub("_", re.split(r"[/\\]", name)[-1]).strip(" .")
    # The end shows what kind of file it is.
    return last[-_MAX_NAME:].strip(" .") or "table"
