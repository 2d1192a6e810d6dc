"""A table that is to be joined, and the columns of it that may hold the key."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.build.visible import open_visible
from pexeso.composite.key_table import columns_of
from pexeso.errors import InputError, PexesoError, QueryError, TableReadError
from pexeso.lake.columns import find_column, label_columns, names_one_column, names_shown, specs_in
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import INDEX_EXTENSION
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.rows import require_reading
from pexeso.results.query import split_spec
from pexeso.store.local.reader import Store
from pexeso.transform.texts import NUMBER, TextColumn, TextTable, cleaned

# Share of the filled cells of a column that are numbers, from which on it is one of numbers.
_MOSTLY = 0.95


@dataclass(frozen=True)
class Side:
    """A table and the columns that may hold its key."""

    # Of all columns: names, all different, and cells, as in the table
    names: tuple[str, ...]
    cells: tuple[pa.Array | pa.ChunkedArray, ...] = field(repr=False)
    columns: tuple[int, ...]  # That may hold the key
    named: bool  # Whether these were named, and not chosen
    file: str | None = None

    @cached_property
    def texts(self) -> TextTable:
        return TextTable(
            tuple(TextColumn(self.names[at], cleaned(self.cells[at])) for at in self.columns)
        )

    @property
    def shown(self) -> str:
        return "the table" if self.file is None else f"'{self.file}'"

    @property
    def n_rows(self) -> int:
        return len(self.cells[0])


def side_of(
    table: Any, columns: str | Iterable[str] | None = None, *, reading: ReadingOptions = AS_FOUND
) -> Side:
    require_reading(reading)
    file: str | None = None
    if isinstance(table, str | os.PathLike):
        file = os.fspath(table)
        names, cells, columns = _read(file, columns, reading)
    else:
        reading.require_none("a table in memory")
        column_names, cells = columns_of(table)
        names = tuple(label_columns(column_names))
    return _side_of(names, cells, columns, file)


def _side_of(
    names: tuple[str, ...],
    cells: tuple[Any, ...],
    columns: str | Iterable[str] | None,
    file: str | None,
) -> Side:
    if not cells or not len(cells[0]):
        raise _empty(file, "has no rows")
    if columns is None:
        positions = _of_text(cells)
        if not positions:
            raise _empty(file, "has no text")
        return Side(names, cells, positions, False, file)
    is_one = isinstance(columns, str) and names_one_column(names, columns)
    specs = [columns] if is_one else specs_in(columns)
    positions = tuple(dict.fromkeys(find_column(names, spec) for spec in specs))
    if not positions:
        raise QueryError(f"No column is named, and one may hold the key. {names_shown(names)}")
    for at in positions:
        if _as_text(cells[at]) is None:
            raise QueryError(
                f"The column {names[at]!r} holds {cells[at].type}, which is not text: convert it."
            )
    return Side(names, cells, positions, True, file)


def _empty(file: str | None, what: str) -> PexesoError:
    message = f"{'The table' if file is None else repr(file)} {what}, so there is nothing to join."
    return QueryError(message) if file is None else TableReadError(message)


def chunked(cells: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])


def _as_text(cells: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """Return cells as programs read them; None where they are lists, or bytes that are no text."""
    try:
        return cleaned(cells)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def lake_side(
    store: Store, index: str, table: str, columns: str | Iterable[str] | None = None
) -> Side:
    return _side_of(*_lake_table(store, table), columns, f"{index}:{table}")


def _lake_table(store: Store, table: str) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    from pexeso.joins.tables import SPARK_LAKE
    from pexeso.semantic.open_index import OpenIndex

    opened = OpenIndex(store)
    if str(opened.lake).startswith(SPARK_LAKE):
        raise InputError(
            "The index was built from Spark's tables, which are not read here: export "
            f"'{table}' to a file to join it by a program."
        )
    rows = opened.rows(opened.catalog.known(table, opened.lake))
    return tuple(rows.schema.names), tuple(rows.columns)


def _read(
    spec: str, columns: str | Iterable[str] | None, reading: ReadingOptions
) -> tuple[tuple[str, ...], tuple[Any, ...], str | Iterable[str] | None]:
    index, colon, rest = spec.partition(".pexeso:")
    if colon and os.path.isfile(os.path.join(index + ".pexeso", "manifest.json")):
        reading.require_none(f"'{spec}' of a lake, which lake.toml says how to read")
        table, _, column = rest.partition(":")
        store = open_visible(index + ".pexeso")
        return *_lake_table(store, table), columns or column or None
    if columns is None:
        spec, columns = split_spec(spec)
    read = read_table(spec, options=reading)
    return tuple(label_columns(read.names)), tuple(read.columns), columns


def with_all_columns(side: Side) -> Side:
    """Return a table with all columns that may be read as text, unless some were named."""
    if side.named:
        return side
    texts = map(_as_text, side.cells)
    columns = tuple(at for at, column in enumerate(texts) if column is not None)
    return side if columns == side.columns else replace(side, columns=columns)


def without_names(side: Side) -> Side:
    """Return a table with the columns that would have been chosen, had none been named."""
    columns = _of_text(side.cells)
    return side if columns == side.columns else replace(side, columns=columns, named=False)


def _of_text(cells: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the columns that are not of numbers, which equal each other by chance; else all."""
    usable, others = [], []
    for position, column in enumerate(cells):
        texts = _as_text(column)
        n_filled = 0 if texts is None else len(texts) - texts.null_count
        if texts is None or not n_filled:
            continue
        numbers = pc.sum(pc.match_substring_regex(texts, NUMBER)).as_py() or 0
        (others if numbers >= _MOSTLY * n_filled else usable).append(position)
    return tuple(usable or others)


def file_name(spec: str | None) -> str | None:
    """Return the name of a file, without its folder and the columns that were named with it.

    >>> file_name("data/people.csv:first,last"), file_name("lake.pexeso:a/b.csv:c"), file_name(None)
    ('people.csv', 'b.csv', None)
    >>> file_name("lake.pexeso:b.csv"), file_name("lake.pexeso:b.csv:c")
    ('lake.pexeso:b.csv', 'lake.pexeso:b.csv')
    """
    if spec is None:
        return None
    file, column = split_spec(spec)  # before its folder is: names of columns may hold slashes
    is_whole = not file or column is None or column.startswith("//")
    return os.path.basename(spec if is_whole or file.endswith(INDEX_EXTENSION) else file)
