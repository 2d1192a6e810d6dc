"""Whole rows of a lake's table, by the table's name."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pyarrow as pa

from pexeso.errors import InputError
from pexeso.io.location import Location, locate
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.readers.content import DEFAULT_MAX_BYTES
from pexeso.lake.readers.reader import read_table
from pexeso.lake.readers.table import DEFAULT_MAX_CELL_BYTES


def table_path(lake: str | os.PathLike[str] | Location, table: str) -> Path | Location:
    """Return where the file of a table is.

    Parameters
    ----------
    lake
        The folder, or the one file, that `find_tables` was given.
    table
        The table's name: the POSIX path relative to the lake.

    Raises
    ------
    InputError
        The name is absolute or leads out of the lake.
    PlaceError
        The lake is elsewhere, and its storage cannot be reached.
    """
    root = locate(lake)
    parts = PurePosixPath(table).parts
    if not parts or table.startswith("/") or ".." in parts or "\0" in table:
        raise InputError(
            f"A table is named by its path relative to the lake, without '..'. Got {table!r}."
        )
    if _is_file(root):
        if table != root.name:
            raise InputError(
                f"The lake is the one file {root}; its table is {root.name!r}. Got {table!r}."
            )
        return root
    if isinstance(root, Location):
        return root.joined(table)
    path = root / table
    if not path.resolve().is_relative_to(root.resolve()):
        raise InputError(
            f"The table {table!r} lies outside the lake {root}: a symbolic link leads out of it."
        )
    return path


def _is_file(root: Path | Location) -> bool:
    if isinstance(root, Path):
        return root.is_file()
    found = root.look()
    return found is not None and found.kind == "file"


def read_rows(
    lake: str | os.PathLike[str] | Location,
    table: str,
    columns: Sequence[str] | None = None,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
) -> pa.Table:
    """Read the rows of one table of a lake as they are, without normalising.

    Parameters
    ----------
    lake
        The folder, or the one file, that `find_tables` was given.
    table
        The table's name in it.
    columns
        Names, or ``#`` and a position; all columns where it is None.
    max_bytes, max_cell_bytes
        Limits of `read_table`.

    Returns
    -------
    pa.Table
        String columns under their unique labels (see `label_columns`), null where a cell is empty.

    Raises
    ------
    InputError
        The table's name leads out of the lake, or a column is asked for twice.
    ColumnNotFoundError
        The table has no such column.
    TableReadError
        The file cannot be read as a table.
    PlaceError
        The lake is elsewhere, and its storage cannot be reached.
    """
    found = read_table(table_path(lake, table), max_bytes=max_bytes, max_cell_bytes=max_cell_bytes)
    labels = label_columns(found.names)
    positions = (
        range(len(labels))
        if columns is None
        else [find_column(found.names, spec) for spec in columns]
    )
    if len(set(positions)) < len(positions):
        raise InputError(f"Each column can be asked for once. Got {list(columns or [])!r}.")
    return pa.Table.from_arrays(
        [found.columns[p] for p in positions], names=[labels[p] for p in positions]
    )
