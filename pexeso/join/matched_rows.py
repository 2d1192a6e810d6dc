"""Joined rows of the found table by query value, unchanged or aggregated.

Aggregation leaves one row per query value.

The same code runs where a table is joined in memory and in a task of Spark, so both give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.frames.beside import take_column_cells
from pexeso.join.aggregation import Groups, aggregated, type_of
from pexeso.join.mapping import JoinMapping
from pexeso.join.options import PROVENANCE, JoinOptions
from pexeso.lake.columns import find_column
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.runtime.ranges import ranges

PROVENANCE_TYPES = {
    "table": pa.string(),
    "column": pa.string(),
    "value": pa.string(),
    "distance": pa.float64(),
}


@dataclass(frozen=True)
class FoundRows:
    """The found table, and which of its rows are joined with which query value.

    Memory: the table, and 32 bytes for each row of it that is joined with a query value.

    Attributes
    ----------
    table, column : str
        The found column's.
    rows : pyarrow.Table
        The found table, all cells text.
    typed : list of pyarrow.ChunkedArray or None
        Its columns with the types of its file, where that has types.
    key : int64 (r,)
        For each row of the table its place in `mapping.lake_keys`, -1 where it has none of them.
    query : int64 (p,)
        The query value of each joined row, in order; of one query value the rows of nearer lake
        values first, then in the order of the file.
    row : int64 (p,)
        The place of each in `rows`.
    distance : float64 (p,)
    """

    table: str
    column: str
    rows: pa.Table
    mapping: JoinMapping
    options: JoinOptions
    key: np.ndarray
    query: np.ndarray
    row: np.ndarray
    distance: np.ndarray
    typed: Sequence[pa.ChunkedArray] | None = field(default=None, kw_only=True)

    @property
    def key_labels(self) -> tuple[str, ...]:
        """The columns of the found table that rows are joined by."""
        return (self.column,)

    @property
    def matched_cells(self) -> pa.StringArray:
        """What `match_value` has of each row of the table: the cell of the found column."""
        return self._cells(find_column(self.rows.column_names, self.column))

    @cached_property
    def ways(self) -> list[str] | None:
        """How each column is aggregated; None where rows stay as they are."""
        return self.options.ways(self.rows.column_names)

    @cached_property
    def groups(self) -> Groups:
        """The joined rows of each query value."""
        return Groups.of(self.query)

    @property
    def query_of_row(self) -> np.ndarray:
        """Int64 (o,): the query value of each row of `take`, in order."""
        return self.query if self.ways is None else self.query[self.groups.starts]

    def take(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Return the columns that are added to the user's rows.

        Provenance columns that were requested come first, then the columns of the found table.

        Parameters
        ----------
        start, stop : int
            Only these of the rows of `query_of_row`; where rows are aggregated all of them must be
            taken.

        Returns
        -------
        pyarrow.Table
            Names are ``c0``, ``c1`` and so on; of the types of `found_schema`.
        """
        first = slice(start, stop) if self.ways is None else self.groups.starts
        one_row, distance = pa.array(self.row[first]), self.distance[first]
        provenance = {
            "table": lambda: pa.array(np.repeat(self.table, len(one_row)), pa.string()),
            "column": lambda: pa.array(np.repeat(self.column, len(one_row)), pa.string()),
            "value": lambda: self.matched_cells.take(one_row),
            "distance": lambda: pa.array(distance),
        }
        columns = [provenance[name]() for name in PROVENANCE if name in self.options.provenance]
        for position in range(self.rows.num_columns):
            if self.ways is None or self.ways[position] == "first":
                columns.append(self._kept(position, one_row))
            else:
                columns.append(
                    aggregated(
                        self._cells(position).take(pa.array(self.row)),
                        self.groups,
                        self.ways[position],
                    )
                )
        return pa.Table.from_arrays(columns, [f"c{number}" for number in range(len(columns))])

    def cells_of(self, position: int) -> pa.StringArray:
        """Return the cells of a column in the joined rows, p of them."""
        return self._cells(position).take(pa.array(self.row))

    def _kept(self, position: int, one_row: pa.Int64Array) -> pa.Array:
        """Return cells of a column as they stand in the file, with its type where it has one."""
        column = (self.rows.columns if self.typed is None else self.typed)[position]
        cells = take_column_cells(column, one_row)
        return cells.combine_chunks() if cells.num_chunks != 1 else cells.chunk(0)

    def _cells(self, position: int) -> pa.StringArray:
        column = self.rows.column(position)
        return (
            column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks or [pa.array([], pa.string())])
        )


def find_rows(
    table: str,
    column: str,
    rows: pa.Table,
    mapping: JoinMapping,
    normaliser: Normaliser,
    options: JoinOptions,
    typed: Sequence[pa.ChunkedArray] | None = None,
) -> FoundRows:
    """Find the rows of the found table that are joined with each query value.

    Parameters
    ----------
    rows : pyarrow.Table
        The whole of the found table: the order of day and month in its dates is decided by all
        values of the column, as it was for the index.
    typed : sequence of pyarrow.ChunkedArray, optional
        Its columns with the types of its file.
    """
    position = find_column(rows.column_names, column)
    keys = normaliser.normalise(rows.column(position))
    key = pc.fill_null(pc.index_in(keys, mapping.lake_keys, skip_nulls=True), -1)
    key = key.to_numpy(zero_copy_only=False).astype(np.int64)
    joined = joined_rows(key, mapping)
    return FoundRows(table, column, rows, mapping, options, key, *joined, typed=typed)


def joined_rows(key: np.ndarray, mapping: JoinMapping) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the rows of a table that are joined, from the lake value of each of its rows.

    Parameters
    ----------
    key : int64 (r,)
        See `FoundRows`.

    Returns
    -------
    query, row, distance
        See `FoundRows`.
    """
    by_key = np.argsort(key, kind="stable")
    starts = np.searchsorted(key[by_key], np.arange(len(mapping.lake_keys) + 1))
    links = np.flatnonzero(mapping.chosen)
    lake = mapping.lake[links]
    link, row = expand(starts[lake], starts[lake + 1] - starts[lake])
    link = links[link]
    return mapping.query[link], by_key[row], mapping.distance[link]


def expand(starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Write out ranges: for each number in them the range that it belongs to, and the number."""
    owner = np.repeat(np.arange(len(starts)), sizes)
    return owner, ranges(starts, sizes)


def found_types(
    labels: list[str], types: Sequence[pa.DataType], options: JoinOptions
) -> list[pa.DataType]:
    """Return the types of what `FoundRows.take` gives of a table with these columns."""
    ways = options.ways(labels) or ["first"] * len(labels)
    provenance = [PROVENANCE_TYPES[name] for name in PROVENANCE if name in options.provenance]
    return provenance + [
        kind if way == "first" else type_of(way) for way, kind in zip(ways, types, strict=True)
    ]
