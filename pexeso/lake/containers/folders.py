"""A table in a folder, read from its files as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pexeso.errors import TableReadError
from pexeso.lake.containers.formats import format_of
from pexeso.lake.folders.folder_tables import FolderTable, TablePart, folder_kind, folder_table
from pexeso.lake.folders.table_logs import CannotRead
from pexeso.lake.readers.table import DEFAULT_MAX_CELL_BYTES, Table, check_width
from pexeso.lake.readers.typed import TypedRows
from pexeso.store.io.location import Location

if TYPE_CHECKING:
    from pexeso.lake.containers.reader import OpenTable


def kind_of_folder(location: Path | Location) -> str | None:
    """Return which kind of table lies at a location; None for a file, and where it is none."""
    if isinstance(location, Location):
        # Where a name stands for a format, no request is spent on asking whether it is a folder.
        entry = location.look() if format_of(location.name) is None else None
        if entry is None or entry.kind != "folder":
            return None
    return folder_kind(location)


@dataclass(frozen=True)
class OpenFolder:
    """A table in a folder, with the interface of `pexeso.lake.containers.reader.OpenTable`.

    Columns are told by their names: those of the files, in the order in which they first stand
    there, then those of the paths. A file without a column has no cells in it.

    Attributes
    ----------
    max_bytes : int
        Limit on the bytes of all files.
    """

    shown: str
    table: FolderTable
    open_part: Callable[[Path | Location], OpenTable]
    max_bytes: int

    @classmethod
    def of(
        cls,
        shown: str,
        folder: Path | Location,
        kind: str,
        open_part: Callable[[Path | Location], OpenTable],
        max_bytes: int,
    ) -> OpenFolder:
        """Look up which files the table has now."""
        try:
            table = folder_table(folder, kind)
        except CannotRead as error:
            raise TableReadError(f"{shown} cannot be read as a table: {error}.") from error
        if table.n_bytes > max_bytes:
            raise TableReadError(
                f"{shown} has {table.n_bytes:,} bytes in its files, more than the limit of "
                f"{max_bytes:,} (max_table_bytes)."
            )
        return cls(shown, table, open_part, max_bytes)

    @property
    def format(self) -> str:
        """The kind of table."""
        return self.table.kind

    @cached_property
    def fingerprint(self) -> str | None:
        """See `FolderTable.fingerprint`."""
        return self.table.fingerprint

    def text(
        self, *, max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES, is_meant: bool = False
    ) -> Table:
        """Read the table with all cells as texts; see `OpenTable.text`."""
        names: dict[str, None] = {}
        parts: list[tuple[TablePart, dict[str, pa.StringArray], int]] = []
        notes: dict[str, None] = {}
        n_bytes = 0
        for part in self.table.parts:
            read = self.open_part(part.path).text(max_cell_bytes=max_cell_bytes)
            cells = dict(zip(read.names, read.columns, strict=True))
            if len(cells) < len(read.names):
                raise TableReadError(f"{self.shown} has two columns of one name: {part.name}.")
            n_bytes += sum(column.nbytes for column in read.columns)
            if n_bytes > self.max_bytes:
                raise TableReadError(
                    f"{self.shown} has more than {self.max_bytes:,} bytes as text "
                    "(max_table_bytes)."
                )
            names |= dict.fromkeys(read.names)
            notes |= dict.fromkeys(read.notes)
            parts.append((part, cells, read.n_rows))
        names |= dict.fromkeys(self.table.parts[0].values)
        check_width(self.shown, len(names))
        columns = [
            pa.concat_arrays([_cells(name, part, cells, n) for part, cells, n in parts])
            for name in names
        ]
        return Table(list(names), columns, notes=list(notes))

    def rows(self, table: Table | None = None) -> Iterator[TypedRows]:
        """Yield the rows as texts; files of one table may have different types."""
        table = table or self.text()
        yield TypedRows(table.names, list(table.columns))

    def typed_columns(self, texts: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Return None: cells are texts."""


def _cells(
    name: str, part: TablePart, cells: dict[str, pa.StringArray], n_rows: int
) -> pa.StringArray:
    if name in cells:
        return cells[name]
    value = part.values.get(name)
    return pa.nulls(n_rows, pa.string()) if value is None else pa.repeat(pa.scalar(value), n_rows)
