"""Whole rows of a lake's table, by the table's name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pyarrow as pa

from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.containers.formats import holds_several, split_member, table_format
from pexeso.lake.containers.reader import OpenTable, open_table, reading_options
from pexeso.lake.files import TableFile
from pexeso.lake.readers.options import LakeSettings, ReadingOptions
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES, DEFAULT_MAX_CELL_BYTES
from pexeso.lake.rights import LakeView, rights
from pexeso.runtime.formatting import shown
from pexeso.store.io.location import Location, locate


def name_within(lake: Path | Location, file: str | os.PathLike[str]) -> str | None:
    """Return the name that a file has as a table of a lake, or None where it lies elsewhere.

    A link to a file of the lake is a table of its own, under its own name. What leads to a table
    inside a file follows the file's name, as in ``book.xlsx#Sheet1``, also where the lake is
    that one file.
    """
    if isinstance(lake, Location):
        return _name_at(lake, str(file))
    root = Path(os.path.realpath(lake))
    for path in (_in_its_folder(Path(file)), Path(os.path.realpath(file))):
        if not path.is_relative_to(root):
            # A table inside the one file that the lake is.
            member = str(path).removeprefix(f"{root}#")
            if member != str(path) and is_file(root):
                return f"{Path(lake).name}#{member}"
            continue
        name = path.relative_to(root).as_posix()
        if path == root:
            return Path(lake).name
        return f"{Path(lake).name}/{name}" if is_file(root) else name
    return None


def is_file(root: Path | Location) -> bool:
    if isinstance(root, Path):
        return os.path.isfile(root)
    entry = root.look()
    return entry is not None and entry.kind == "file"


def _name_at(lake: Location, file: str) -> str | None:
    begin = str(lake)
    if file == begin:
        return lake.name
    if file.startswith((f"{begin}/", f"{begin}#")) and holds_several(lake.name) and is_file(lake):
        return f"{lake.name}{file.removeprefix(begin)}"
    return file.removeprefix(f"{begin}/") if file.startswith(f"{begin}/") else None


def _in_its_folder(path: Path) -> Path:
    """Return a path with the links of its folder followed, and no others.

    The folder is the innermost one that is there: what follows it leads into a file.
    """
    folder = path.parent
    while not os.path.isdir(folder) and folder != folder.parent:
        folder = folder.parent
    inner = path.relative_to(folder)
    if ".." in inner.parts:
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(folder), inner)


def require_reading(options: object) -> None:
    if not isinstance(options, ReadingOptions):
        raise InputError(
            "How a file is read is told by pexeso.ReadingOptions, such as "
            f"ReadingOptions(delimiter=';'). Got {shown(options)}."
        )


def table_path(
    lake: str | os.PathLike[str] | Location, table: str
) -> tuple[Path | Location, str | None]:
    """Return the file of a table, and what leads to the table inside it.

    See `pexeso.lake.files.TableFile`; `member` is None where the file is one table.
    """
    root = locate(lake)
    parts = PurePosixPath(table).parts
    if not parts or table.startswith("/") or ".." in parts or "\0" in table:
        raise InputError(
            f"A table is named by its path relative to the lake, without '..'. Got {table!r}."
        )
    if is_file(root):
        member = table.removeprefix(root.name)
        if not table.startswith(root.name) or (member and not holds_several(root.name)):
            raise InputError(
                f"The lake is the one file {root}; its table is {root.name!r}. Got {table!r}."
            )
        return root, member or None
    if isinstance(root, Location):
        return split_member(root.joined(table))
    path, member = split_member(root / table)
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"The table {table!r} lies outside the lake {root}: a symbolic link leads out of it."
        )
    return path, member


def table_file(lake: str | os.PathLike[str] | Location, table: str) -> TableFile:
    """Return a table of a lake by its name alone: its size, time and version are left open.

    Its file is read whole: so it is refused where columns are hidden.

    Parameters and errors are those of `table_path`, and of `LakeSettings.load`.
    """
    view = view_or_usual(None)
    if not view.sees_whole(table):
        raise InputError(
            f"The file of '{table}' is not read, since not all of its columns may be seen "
            "(PEXESO_VISIBLE)."
        )
    return _table_file(lake, table, view)


def _table_file(lake: str | os.PathLike[str] | Location, table: str, view: LakeView) -> TableFile:
    path, member = table_path(lake, table)
    root = locate(lake)
    reading = None if path == root else LakeSettings.load(root, view.as_of).digest_of(table)
    kind = table_format(path.name) or "delimited"
    return TableFile(table, path, kind, 0, member=member, reading=reading)


def view_or_usual(view: LakeView | None) -> LakeView:
    """Return a view; by default that of tables as they are, as far as this process may see them."""
    return LakeView(rights=rights()) if view is None else view


def table_to_read(
    lake: str | os.PathLike[str] | Location, table: str, view: LakeView | None = None
) -> tuple[str, ReadingOptions]:
    """Return what names a table of a lake outside the lake, and how its file is read.

    Parameters and errors are those of `table_path`, and of `LakeSettings.load`.
    """
    view = view_or_usual(view)
    file = _table_file(lake, table, view)
    reading = reading_options(file.reading)
    if not view.sees_whole(table):
        labels = view.rights.tables.get(table) if view.rights else None
        reading = replace(reading, columns=tuple(sorted(labels or ())))
    return f"{file.path}{file.member or ''}", reading


def read_rows(
    lake: str | os.PathLike[str] | Location,
    table: str,
    columns: Sequence[str] | None = None,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    max_cell_bytes: int = DEFAULT_MAX_CELL_BYTES,
    view: LakeView | None = None,
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
    view
        The state that an index holds, and what may be seen of it.

    Returns
    -------
    pa.Table
        String columns under their unique labels (see `label_columns`), null where a cell is empty.
    """
    view = view_or_usual(view)
    opened = _opened(lake, table, max_bytes, view)
    text_table = opened.text(max_cell_bytes=max_cell_bytes)
    labels = label_columns(text_table.names)
    seen = view.positions(table, labels)
    positions = (
        seen if columns is None else [find_column(text_table.names, spec) for spec in columns]
    )
    if not set(positions) <= set(seen):
        raise ColumnNotFoundError(f"'{table}' has no such column: {', '.join(columns or ())}.")
    if len(set(positions)) < len(positions):
        raise InputError(f"Each column can be asked for once. Got {list(columns or [])!r}.")
    return pa.Table.from_arrays(
        [text_table.columns[p] for p in positions], names=[labels[p] for p in positions]
    )


def read_typed_rows(
    lake: str | os.PathLike[str] | Location,
    table: str,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    view: LakeView | None = None,
) -> tuple[pa.Table, list[pa.ChunkedArray] | None]:
    """Read the rows of one table of a lake as texts, and with the types of its file.

    None for the types where the file has none, such as one of delimited text or JSON.
    """
    view = view_or_usual(view)
    opened = _opened(lake, table, max_bytes, view)
    text_table = opened.text()
    rows = pa.Table.from_arrays(text_table.columns, names=label_columns(text_table.names))
    typed = opened.typed_columns(text_table.columns)
    seen = view.positions(table, rows.column_names)
    return rows.select(seen), None if typed is None else [typed[position] for position in seen]


def _opened(
    lake: str | os.PathLike[str] | Location, table: str, max_bytes: int, view: LakeView
) -> OpenTable:
    file = _table_file(lake, table, view)
    options = reading_options(file.reading)
    return open_table(file.path, file.member, options=options, max_bytes=max_bytes)
