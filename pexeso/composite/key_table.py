"""A table with a composite key, and a table of the lake that it is joined with."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError, QueryError
from pexeso.joins.composite_join import KeyedTable, find_key_rows
from pexeso.joins.options import join_options
from pexeso.joins.sql import YOURS, JoinSql, Rows, names_in_duckdb, sql_of_key
from pexeso.joins.tables import SPARK_LAKE, Joined, join_texts
from pexeso.lake.columns import (
    KeyColumn,
    find_key_columns,
    label_columns,
    names_one_column,
    spec_of,
)
from pexeso.lake.containers.reader import open_named, read_table
from pexeso.lake.frames.columns import column_texts
from pexeso.lake.frames.tables import ACCEPTED, KINDS, frame_of
from pexeso.lake.readers.options import AS_FOUND, ReadingOptions
from pexeso.lake.readings import forms_of
from pexeso.lake.rights import EVERYTHING, LakeView
from pexeso.lake.rows import require_reading
from pexeso.lake.tokens import DEFAULT_READINGS, key_texts
from pexeso.results.column_matches import WouldMatch, pair_would_match
from pexeso.results.query import order_note, split_spec, zone_note

if TYPE_CHECKING:
    from pathlib import Path

    from pexeso.composite.key_evidence import OneTable
    from pexeso.composite.search import KeyQuery
    from pexeso.lake.normalise.normaliser import Normaliser
    from pexeso.semantic.open_index import OpenIndex
    from pexeso.store.io.location import Location


def readings_of(normaliser: Normaliser | None) -> Collection[str]:
    return DEFAULT_READINGS if normaliser is None else normaliser.readings


@dataclass(frozen=True)
class KeyTable:
    names: tuple[str, ...]
    cells: tuple[pa.Array | pa.ChunkedArray, ...]
    key: tuple[KeyColumn, ...]
    file: str | None = None
    reading: ReadingOptions = AS_FOUND

    @property
    def is_similar(self) -> bool:
        return any(column.similar for column in self.key)

    @cached_property
    def n_rows(self) -> int:
        return len(self.cells[0])

    def key_texts(
        self, normaliser: Normaliser | None = None, **options: bool
    ) -> list[pa.LargeStringArray]:
        """Return the cells of each key column in the form in which they are compared.

        The options are those of `pexeso.lake.tokens.key_texts`.
        """
        columns = [self.cells[column.position] for column in self.key]
        if normaliser is not None and normaliser.aliases is not None:
            columns = [normaliser.resolved(column_texts(column)) for column in columns]
        return [key_texts(column, readings_of(normaliser), **options) for column in columns]

    def ways(
        self, normaliser: Normaliser | None = None
    ) -> list[tuple[bool | None, Sequence[pa.Array]]]:
        """Return the cells in the readings of which a table of the lake may fit one best.

        A cell that is in both tables may be read in one alone. With the cells is whether the day
        comes first in dates that do not say it; see `pexeso.lake.readings.forms_of`.
        """
        return forms_of(partial(self.key_texts, normaliser))

    def queries(self, normaliser: Normaliser | None = None) -> list[KeyQuery]:
        from pexeso.composite.search import key_query

        return [
            replace(key_query(texts), day_first=order) for order, texts in self.ways(normaliser)
        ]

    def describe(self) -> dict[str, Any]:
        similar = [column.label for column in self.key if column.similar]
        return {
            "file": self.file,
            "columns": [column.label for column in self.key],
            **({"similar": similar} if similar else {}),
            "rows": self.n_rows,
        }


def read_own_table(
    table: Any, columns: str | Iterable[str] | None, reading: ReadingOptions
) -> tuple[
    str | None,
    str | Iterable[str] | None,
    tuple[str, ...],
    tuple[pa.Array | pa.ChunkedArray, ...],
]:
    """Read a user's table: its file, if it is one, the columns named, all names, and their cells.

    The columns are those given, or those that FILE:COLUMN names.
    """
    if isinstance(table, str | os.PathLike):
        file = os.fspath(table)
        if columns is None:
            file, columns = split_spec(file)
        read = read_table(file, options=reading)
        return file, columns, tuple(read.names), tuple(read.columns)
    reading.require_none("a table in memory")
    return None, columns, *columns_of(table)


def key_table(
    table: Any,
    columns: str | Iterable[str] | None = None,
    *,
    reading: ReadingOptions = AS_FOUND,
    min_columns: int = 2,
) -> KeyTable:
    if isinstance(table, KeyTable):
        return table
    require_reading(reading)
    file, columns, names, cells = read_own_table(table, columns, reading)
    if columns is None:
        raise QueryError(
            "Name the columns of the composite key, such as country,year. The columns are "
            f"{', '.join(map(repr, names[:20]))}."
        )
    key = find_key_columns(names, columns, min_columns=min_columns)
    return KeyTable(names, cells, tuple(key), file, reading)


def composite_spec(spec: Any, reading: ReadingOptions = AS_FOUND) -> KeyTable | None:
    """Read ``FILE:COLUMN,COLUMN``; None where a text names one column or a file alone."""
    if not isinstance(spec, str):
        return None
    file, columns = split_spec(spec)
    if columns is None or "," not in columns:
        return None
    read = read_table(file, options=reading)
    if names_one_column(read.names, columns):
        return None
    key = tuple(find_key_columns(read.names, columns))
    return KeyTable(tuple(read.names), tuple(read.columns), key, file, reading)


def columns_of(table: Any) -> tuple[tuple[str, ...], tuple[pa.Array | pa.ChunkedArray, ...]]:
    frame = frame_of(table)
    if frame is None:
        raise QueryError(
            f"A table is a file, or one in memory: {ACCEPTED}. Got {type(table).__name__}."
        )
    if not frame.names:
        raise QueryError("The table has no column.")
    return frame.names, tuple(frame.arrow_columns())


@dataclass(frozen=True)
class JoinedKeys:
    """A table of the lake, and the keys of yours that its rows have."""

    table: str
    columns: tuple[str, ...]  # One for each column of the key
    matched: int  # Distinct keys that are joined, and all
    total: int

    # What `matched` and `total` count.
    joinability_of = "keys"

    @property
    def joinability(self) -> float:
        """Share of the keys, in [0, 1]; 0 where there is none."""
        return self.matched / self.total if self.total else 0.0

    @property
    def column(self) -> str:
        """The columns as a command names them."""
        return spec_of(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return {
            "table": self.table,
            "columns": list(self.columns),
            "matched_keys": self.matched,
            "total_keys": self.total,
            "joinability": self.joinability,
        }


@dataclass(frozen=True, eq=False)
class TablePair:
    """The two tables, read whole."""

    query_table: KeyTable
    table: str
    rows: pa.Table
    lake: Path | Location
    normaliser: Normaliser | None = None
    typed: Sequence[pa.ChunkedArray] | None = None
    view: LakeView = EVERYTHING

    @cached_property
    def mine(self) -> KeyedTable:
        return self._keyed(self.query_table, self._way[1])

    @cached_property
    def _way(self) -> tuple[bool | None, Sequence[pa.Array]]:
        ways = self.query_table.ways(self.normaliser)
        if len(ways) == 1:
            return ways[0]
        cells = pc.unique(pa.chunked_array(self._texts, pa.large_string())).drop_null()

        def n_known(way: tuple[bool | None, Sequence[pa.Array]]) -> int:
            return sum(pc.sum(pc.is_in(part, value_set=cells)).as_py() or 0 for part in way[1])

        return max(ways, key=n_known)

    @cached_property
    def _texts(self) -> list[pa.LargeStringArray]:
        """The cells of all columns of the lake's table in the form in which they are compared."""
        names = tuple(self.rows.column_names)
        every = tuple(KeyColumn(position, name) for position, name in enumerate(names))
        return KeyTable(names, tuple(self.rows.columns), every).key_texts(self.normaliser)

    @cached_property
    def keyed_rows(self) -> OneTable:
        from pexeso.composite.key_evidence import one_table

        names, n_parts = self.rows.column_names, len(self.query_table.key)
        if len(names) < n_parts:
            raise InputError(
                f"A key of {n_parts} columns needs a table with as many. '{self.table}' has "
                f"{len(names)}: take another table, or fewer columns."
            )
        return one_table(self.mine.parts, pa.Table.from_arrays(self._texts, names=names))

    def theirs(self, columns: str | Iterable[str] | None) -> KeyedTable:
        """Return the columns of the lake's table that the key is joined with."""
        if columns is None:
            best = self.keyed_rows.best()
            if best is None:
                raise InputError(
                    f"No row of '{self.table}' has a whole key of your table "
                    f"({', '.join(self.mine.labels)}), in whatever columns: pexeso explain shows "
                    "which parts it has."
                )
            columns = [f"#{position}" for position in best.columns]
        lake_table = key_table(self.rows, columns, min_columns=1)
        if len(lake_table.key) != len(self.mine.labels):
            labels = ", ".join(column.label for column in lake_table.key)
            raise QueryError(
                "A key has as many columns in the lake's table as in yours. Got "
                f"{len(self.mine.labels)} of your columns ({', '.join(self.mine.labels)}) and "
                f"{len(lake_table.key)} of '{self.table}' ({labels}): name one for each."
            )
        texts = [self._texts[column.position] for column in lake_table.key]
        return self._keyed(lake_table, texts)

    def keys_joined(self, theirs: KeyedTable) -> JoinedKeys:
        """Count the keys that the lake's table has in some columns, which `theirs` returned."""
        keys = pc.drop_null(self.mine.keys.unique())
        matched = pc.sum(pc.is_in(keys, value_set=theirs.keys), min_count=0).as_py()
        return JoinedKeys(self.table, theirs.labels, matched, len(keys))

    def join(
        self,
        theirs: KeyedTable,
        options: Mapping[str, Any],
        *,
        table: Any = None,
        to: str | None = None,
    ) -> Joined:
        if "values" in options:
            raise InputError(
                "values chooses among values alike. Keys of several columns are joined where they "
                "are equal: leave it out."
            )
        frame = frame_of(table)
        source = table if frame is not None and frame.kind in KINDS else self._in_memory
        chosen = join_options(options)
        hints = partial(self.would_match, theirs)
        tables = self.mine, self.rows, self.table, theirs
        found_rows = find_key_rows(*tables, chosen, self.typed, hints)
        # Each row has its key with it: there is none that was not searched.
        texts = self.mine.texts
        joined = join_texts(source, texts, found_rows, texts, to=to, noun="key")
        order, sides = self._way[0], zip(self.mine.cells, theirs.cells, theirs.labels, strict=True)
        notes = [None if order is None else order_note("Dates", day_first=order)]
        notes += [zone_note(*cells, f"{self.table}:{label}") for *cells, label in sides]
        note = " ".join(filter(None, notes))
        return joined.noted(note) if note else joined

    def would_match(self, theirs: KeyedTable) -> tuple[WouldMatch, ...]:
        """Return the readings that are off by which more keys would be joined, the best first."""
        column = spec_of(theirs.labels)
        sides = self.mine.parts, theirs.parts
        return pair_would_match(self.table, column, *sides, readings_of(self.normaliser))

    def sql(
        self,
        theirs: KeyedTable,
        *,
        how: str = "left",
        names: tuple[str, str | None] = (YOURS, None),
    ) -> JoinSql:
        positions = [column.position for column in self.query_table.key]
        sql_names = names_in_duckdb(self.query_table.names)
        cells = pa.Table.from_arrays(
            [self.query_table.cells[at] for at in positions],
            names=[sql_names[at] for at in positions],
        )
        rows = Rows(self.rows, self.typed)
        yours, lakes = (self.mine, cells), (theirs, self.table, rows)
        return sql_of_key(yours, lakes, self.lake, self.view, how=how, names=names)

    @property
    def _in_memory(self) -> pa.Table:
        query_table, typed = self.query_table, None
        if query_table.file is not None:
            typed = open_named(query_table.file, options=query_table.reading).typed_columns(
                query_table.cells
            )
        return pa.Table.from_arrays(
            typed or list(query_table.cells), names=label_columns(query_table.names)
        )

    def _keyed(self, table: KeyTable, texts: list[pa.LargeStringArray]) -> KeyedTable:
        similar = [column.label for column in table.key if column.similar]
        if similar:
            raise QueryError(
                f"Tables are joined where the parts of a key are equal. Got {similar[0]}~: leave "
                "the ~ out, or join by this column alone, which matches similar values."
            )
        positions = tuple(column.position for column in table.key)
        return KeyedTable(
            tuple(column.label for column in table.key),
            positions,
            [column_texts(table.cells[position]) for position in positions],
            texts,
        )


def open_pair(opened: OpenIndex, query_table: KeyTable, table: str) -> TablePair:
    if not isinstance(table, str):
        raise InputError(f"A table is named by a text, as results name it. Got {table!r}.")
    lake = opened.lake
    if str(lake).startswith(SPARK_LAKE):
        raise InputError(
            "The index was built from Spark's tables, which are not read here: export "
            f"'{table}' to a file to join it by a key of several columns."
        )
    table = opened.catalog.known(table, lake)
    rows, typed = opened.typed_rows(table)
    normaliser, view = opened.join_normaliser, opened.view
    return TablePair(query_table, table, rows, lake, normaliser, typed, view)
