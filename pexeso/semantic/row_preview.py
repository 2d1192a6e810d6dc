"""The user's table and a found one, side by side: the first rows that match, whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import PexesoError
from pexeso.lake.columns import find_column, label_columns
from pexeso.lake.containers.reader import read_table
from pexeso.lake.readers.table import DEFAULT_MAX_BYTES
from pexeso.lake.rights import LakeView
from pexeso.lake.rows import read_rows

if TYPE_CHECKING:
    import os

    from pexeso.lake.catalog import Catalog
    from pexeso.lake.normalise.normaliser import Normaliser
    from pexeso.results.match_kinds import Pair
    from pexeso.results.query import QueryColumn
    from pexeso.semantic.pairs import PairTable
    from pexeso.store.io.location import Location


SPARK = "spark"
"""The format, in the catalog, of a table that has no file."""

NO_FILE = "is a table of Spark: it has no file whose other columns could be shown here."


@dataclass(frozen=True)
class Half:
    columns: tuple[str, ...]
    n_columns: int
    note: str | None = None


@dataclass(frozen=True)
class JoinedRow:
    """A row of the query and one of the lake that it matches: cells as text, None where empty."""

    ours: tuple[str | None, ...]
    theirs: tuple[str | None, ...]
    pair: Pair


@dataclass(frozen=True)
class SideBySide:
    """Two tables side by side, joined on the nearest value of each of `n_rows` matching rows."""

    ours: Half
    theirs: Half
    rows: tuple[JoinedRow, ...]
    n_rows: int


class TwoTables:
    """Reader of the tables behind a query column, read once, and the columns found for it.

    A table is read whole, one of the lake at a time: about three times the text of its file is in
    memory meanwhile.
    """

    def __init__(
        self,
        query: QueryColumn,
        lake: str | os.PathLike[str] | Location,
        normaliser: Normaliser,
        catalog: Catalog,
        max_table_bytes: int = DEFAULT_MAX_BYTES,
        view: LakeView | None = None,
    ) -> None:
        self._query, self._normaliser, self._catalog = query, normaliser, catalog
        self._read_lake = partial(read_rows, lake, max_bytes=max_table_bytes, view=view)

    def show(
        self, table: str, column: str, pairs: PairTable, *, n_rows: int, n_columns: int
    ) -> SideBySide:
        """Put the first matching rows side by side; an unreadable table has the key alone."""
        nearest = pairs.take(pairs.starts)
        locations = pc.index_in(
            self._query.values, value_set=nearest.texts.take(pa.array(nearest.text))
        )
        rows = pc.indices_nonzero(locations.is_valid())
        shown = rows.slice(0, n_rows)
        keys = nearest.take(locations.take(shown).to_numpy(zero_copy_only=False)).to_pairs()
        ours, our_cells = self._ours(shown, n_columns)
        lake_half, their_cells = self._theirs(table, column, keys, n_columns)
        joined = zip(our_cells, their_cells, keys, strict=True)
        return SideBySide(ours, lake_half, tuple(JoinedRow(*row) for row in joined), len(rows))

    @cached_property
    def _own_table(self) -> tuple[list[str], Sequence[pa.Array]] | str | None:
        """Labels and columns of the user's table, or why it cannot be shown; None for no file."""
        if self._query.file is None:
            return None
        try:
            table = read_table(self._query.file, options=self._query.reading)
        except PexesoError as error:
            return str(error)
        if any(len(values) != len(self._query.values) for values in table.columns):
            return f"'{self._query.file}' has changed since the query was read."
        return label_columns(table.names), table.columns

    def _ours(self, rows: pa.Array, max_columns: int) -> tuple[Half, list[tuple[str | None, ...]]]:
        own_table, label = self._own_table, self._query.column or "values"
        if own_table is None or isinstance(own_table, str) or label not in own_table[0]:
            return Half((label,), 1, own_table if isinstance(own_table, str) else None), _cells(
                [self._query.values], rows
            )
        labels, columns = own_table
        order = _key_first(labels.index(label), len(labels), max_columns)
        half = Half(tuple(labels[location] for location in order), len(labels))
        return half, _cells([columns[location] for location in order], rows)

    def _theirs(
        self, table: str, column: str, pairs: Sequence[Pair], max_columns: int
    ) -> tuple[Half, list[tuple[str | None, ...]]]:
        note = f"'{table}' {NO_FILE}"
        try:
            formats = self._catalog.tables(["format"], among=pa.array([table]))["format"]
            if SPARK not in formats.to_pylist():
                rows = self._read_lake(table)
                return self._lake_rows(rows, column, pairs, max_columns)
        except PexesoError as error:
            note = str(error)
        return Half((column,), 1, note), [(pair.value,) for pair in pairs]

    def _lake_rows(
        self, lake_table: pa.Table, column: str, pairs: Sequence[Pair], max_columns: int
    ) -> tuple[Half, list[tuple[str | None, ...]]]:
        labels = lake_table.column_names
        key = find_column(labels, column)
        values = self._normaliser.normalise(lake_table.column(key).combine_chunks())
        locations = {
            pair.key: pc.index(values, pa.scalar(pair.key, values.type)).as_py() for pair in pairs
        }
        order = _key_first(key, len(labels), max_columns)
        has_changed = any(location < 0 for location in locations.values())
        note = (
            "The table has changed since it was indexed: not all of these values are in it."
            if has_changed
            else None
        )
        columns = [lake_table.column(location).combine_chunks() for location in order]
        rows = pa.array(
            [None if locations[pair.key] < 0 else locations[pair.key] for pair in pairs], pa.int64()
        )
        cells = _cells(columns, rows)
        # A value that is gone is shown as the index has it.
        cells = [
            cell if row is not None else (pair.value, *cell[1:])
            for cell, row, pair in zip(cells, rows.to_pylist(), pairs, strict=True)
        ]
        return Half(tuple(labels[location] for location in order), len(labels), note), cells


def _key_first(key: int, n_columns: int, max_columns: int) -> list[int]:
    others = (location for location in range(n_columns) if location != key)
    return [key, *others][:max_columns]


def _cells(columns: Sequence[pa.Array], rows: pa.Array) -> list[tuple[str | None, ...]]:
    cells = [column.take(rows).to_pylist() for column in columns]
    return list(zip(*cells, strict=True))
