"""Explanation of why a key of several columns is joined with a table of the lake or not.

Columns can overlap where rows do not: every part of a key may stand in its column, in a row of
another key each. So what columns share is told beside what rows share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.composite.one_table import KeyMapping, OneTable
from pexeso.composite.search import relation_of
from pexeso.join.composite_join import (
    KeyedTable,
    beside,
    keyed_rows,
    keyed_table,
    require_width,
)
from pexeso.join.tables import column_of, names_of
from pexeso.lake.columns import label_columns
from pexeso.search.query import query_from_values

if TYPE_CHECKING:
    import pandas as pd

NEARLY = 0.9
"""Share of the keys that are joined which another choice of columns must join to be told."""

MOST_GROUPS, MOST_EXAMPLES, MOST_OTHERS = 10, 3, 5
"""Groups of keys without a match, examples of each thing, and other choices of columns told."""

MOST_ROWS, MOST_COLUMNS = 5, 8
"""Joined rows that are shown, and columns of each table in them."""

Cells = tuple[str | None, ...]


@dataclass(frozen=True)
class PartOverlap:
    """A column of the key and the lake's column beside it, each for itself.

    Attributes
    ----------
    column, lake_column : str
    matched, total : int
        Distinct values of the column, of rows with a whole key, and those that the lake's column
        has in whatever row.
    """

    column: str
    lake_column: str
    matched: int
    total: int


@dataclass(frozen=True)
class NearRow:
    """A key without a match, and the row of the lake's table that has most parts of it.

    Attributes
    ----------
    key : tuple of str
        The cells as they stand in the first row of yours with the key.
    nearest : tuple of str or None
        Those of the first such row of the lake, in its columns.
    parts : int
        Parts of the key that the row has.
    """

    key: Cells
    nearest: Cells
    parts: int


@dataclass(frozen=True)
class UnmatchedKeys:
    """Keys without a match of which the same parts are in the lake's columns.

    Attributes
    ----------
    there, missing : tuple of str
        Columns of the key whose values stand somewhere in the lake's column, and the others. All
        of them may be there: in different rows.
    keys : int
    examples : tuple of NearRow
        In the order of your rows.
    """

    there: tuple[str, ...]
    missing: tuple[str, ...]
    keys: int
    examples: tuple[NearRow, ...]


@dataclass(frozen=True)
class RepeatedKey:
    """A key that several rows have, of yours or of the lake's table."""

    key: Cells
    rows: int
    lake_rows: int


@dataclass(frozen=True)
class FanOut:
    """How many rows of both tables meet.

    Attributes
    ----------
    relation : {"1:1", "1:n", "n:1", "n:m"} or None
        Yours first; None where no key is joined.
    rows, lake_rows : int
        Rows of yours, and of the lake's table, that are joined.
    joined_rows : int
        Rows of the inner join.
    most_rows, most_lake_rows : int
        Largest number of rows, of yours and of the lake's table, with the same key.
    examples : tuple of RepeatedKey
        Those keys of several rows that make most rows of the join.
    """

    relation: str | None
    rows: int
    lake_rows: int
    joined_rows: int
    most_rows: int
    most_lake_rows: int
    examples: tuple[RepeatedKey, ...]


@dataclass(frozen=True)
class OtherColumns:
    """Another choice of the lake's columns, and the keys that it joins."""

    columns: tuple[str, ...]
    matched_keys: int


@dataclass(frozen=True)
class JoinedRows:
    """The first of your rows that are joined, each with the first row of the lake that it meets.

    Attributes
    ----------
    columns, lake_columns : tuple of str
        Those of the key first.
    rows : tuple of (cells, cells)
    """

    columns: tuple[str, ...]
    lake_columns: tuple[str, ...]
    rows: tuple[tuple[Cells, Cells], ...]


@dataclass(frozen=True)
class KeyExplanation:
    """Why a key of several columns is joined with a table or not.

    Attributes
    ----------
    query : dict
        File, columns of the key, rows, and ``rows_without_key``: those with an empty cell in it.
    table : str
    columns : tuple of str
        Of the table, one for each column of the key.
    are_given : bool
        Whether these were named; else they are those that join most keys, or overlap most where
        none is joined.
    matched_keys, total_keys : int
        Distinct keys of yours that a row of the table has, and all.
    parts : tuple of PartOverlap
    unmatched : tuple of UnmatchedKeys
        The largest groups.
    fan_out : FanOut
    others : tuple of OtherColumns
        Choices that join at least 0.9 times as many keys, best first.
    all_tried : bool
        Whether every choice of columns was followed that could be among `others`.
    sample : JoinedRows
    """

    query: dict[str, Any]
    table: str
    columns: tuple[str, ...]
    are_given: bool
    matched_keys: int
    total_keys: int
    parts: tuple[PartOverlap, ...]
    unmatched: tuple[UnmatchedKeys, ...]
    fan_out: FanOut
    others: tuple[OtherColumns, ...]
    all_tried: bool
    sample: JoinedRows

    @property
    def joinability(self) -> float:
        """Share of your distinct keys that are joined, in [0, 1]; 0 where there is none."""
        return self.matched_keys / self.total_keys if self.total_keys else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form that the command line prints."""
        told = {**asdict(self), "joinability": self.joinability}
        first = ("query", "table", "columns", "matched_keys", "total_keys", "joinability")
        return {name: told.pop(name) for name in first} | told


def explain_keys(
    table: pd.DataFrame | pa.Table,
    on: str | Iterable[str],
    rows: pa.Table,
    name: str,
    columns: str | Iterable[str] | None = None,
    *,
    file: str | None = None,
) -> KeyExplanation:
    """Explain how a key of several columns and a table of the lake compare.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.Table
        Yours.
    on : str or iterable of str
        The columns of the key in it; see `pexeso.lake.key_columns`.
    rows : pa.Table
        The lake's table, as `pexeso.lake.rows.read_rows` gives it.
    name : str
        Its name.
    columns : str, iterable of str or None
        One column of it for each of the key; None: those that join most keys, or overlap most.
    file : str, optional
        Where your table came from.

    Raises
    ------
    ColumnNotFoundError, QueryError
        The columns are not there, make no key, or are not as many on both sides.
    InputError
        The lake's table has fewer columns than the key.

    Notes
    -----
    Memory: both tables, 8 bytes for a cell of the lake's, and its distinct texts.
    """
    mine = keyed_table(names_of(table, None), lambda position: column_of(table, position), on)
    require_width(rows, name, mine)
    pair = beside(rows, mine)
    if columns is None:
        best = pair.best() or pair.likeliest()
        theirs = keyed_rows(rows, name, [f"#{position}" for position in best.columns], mine)
    else:
        theirs = keyed_rows(rows, name, columns, mine)
    held = pair.key_of_row(theirs.positions)
    lake_rows = np.bincount(held[held >= 0], minlength=pair.query.n_keys)
    others, all_tried = _others(pair, theirs.positions, np.count_nonzero(lake_rows), rows)
    query = {
        "file": file,
        "columns": list(mine.labels),
        "rows": pair.query.n_rows,
        "rows_without_key": pair.query.n_rows - int(pair.query.row_counts.sum()),
    }
    return KeyExplanation(
        query,
        name,
        theirs.labels,
        columns is not None,
        int(np.count_nonzero(lake_rows)),
        pair.query.n_keys,
        _parts(pair, mine, theirs),
        _unmatched(pair, mine, theirs, np.flatnonzero(lake_rows == 0)),
        _fan_out(pair, mine, lake_rows),
        others,
        all_tried,
        _sample(table, mine, rows, theirs),
    )


def _parts(pair: OneTable, mine: KeyedTable, theirs: KeyedTable) -> tuple[PartOverlap, ...]:
    return tuple(
        PartOverlap(
            label,
            lake_label,
            int(pair.overlaps[part, theirs.positions[part]]),
            len(np.unique(pair.query.keys[:, part])),
        )
        for part, (label, lake_label) in enumerate(zip(mine.labels, theirs.labels, strict=True))
    )


def _unmatched(
    pair: OneTable, mine: KeyedTable, theirs: KeyedTable, keys: np.ndarray
) -> tuple[UnmatchedKeys, ...]:
    keys = keys[np.argsort(pair.query.first_rows[keys], kind="stable")]
    there = pair.parts_there(theirs.positions)[keys]
    patterns, group, sizes = np.unique(there, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    found = []
    # Most keys first; of equal groups the one of which more is there.
    for each in np.lexsort((-patterns.sum(axis=1), -sizes))[:MOST_GROUPS].tolist():
        is_there = patterns[each].tolist()
        examples = keys[group == each][:MOST_EXAMPLES].tolist()
        found.append(
            UnmatchedKeys(
                tuple(label for label, here in zip(mine.labels, is_there, strict=True) if here),
                tuple(label for label, here in zip(mine.labels, is_there, strict=True) if not here),
                int(sizes[each]),
                tuple(_near_row(pair, mine, theirs, key) for key in examples),
            )
        )
    return tuple(found)


def _near_row(pair: OneTable, mine: KeyedTable, theirs: KeyedTable, key: int) -> NearRow:
    row, held = pair.nearest_row(key, theirs.positions)
    parts = int(held.sum())
    nearest = _cells(theirs, row) if parts else (None,) * len(held)
    return NearRow(_cells(mine, int(pair.query.first_rows[key])), nearest, parts)


def _cells(table: KeyedTable, row: int) -> Cells:
    return tuple(column[row].as_py() for column in table.cells)


def _fan_out(pair: OneTable, mine: KeyedTable, lake_rows: np.ndarray) -> FanOut:
    query, joined = pair.query, lake_rows > 0
    rows, theirs = query.row_counts[joined], lake_rows[joined]
    most, most_lake = (int(counts.max(initial=0)) for counts in (rows, theirs))
    worst = np.lexsort((query.first_rows, -(query.row_counts * lake_rows)))
    several = (np.maximum(query.row_counts, lake_rows) > 1) & joined
    examples = tuple(
        RepeatedKey(
            _cells(mine, int(query.first_rows[key])),
            int(query.row_counts[key]),
            int(lake_rows[key]),
        )
        for key in worst[several[worst]][:MOST_EXAMPLES].tolist()
    )
    return FanOut(
        relation_of(most, most_lake) if most else None,
        int(rows.sum()),
        int(theirs.sum()),
        int((rows * theirs).sum()),
        most,
        most_lake,
        examples,
    )


def _others(
    pair: OneTable, positions: Sequence[int], matched: int, rows: pa.Table
) -> tuple[tuple[OtherColumns, ...], bool]:
    """Return the mappings that join as many keys or nearly, other than the one that is told."""
    found, all_tried = pair.mappings(max(1, math.ceil(NEARLY * matched)))
    told = KeyMapping(tuple(positions), matched)
    others = [each for each in found if each != told][:MOST_OTHERS]
    labels = rows.column_names
    return tuple(
        OtherColumns(tuple(labels[position] for position in each.columns), each.matched)
        for each in others
    ), all_tried


def _sample(
    table: pd.DataFrame | pa.Table, mine: KeyedTable, rows: pa.Table, theirs: KeyedTable
) -> JoinedRows:
    lake_row = pc.index_in(mine.keys, theirs.keys, skip_nulls=True)
    ours = pc.indices_nonzero(lake_row.is_valid())[:MOST_ROWS]
    names = label_columns(names_of(table, None))
    order, lake_order = _key_first(mine, len(names)), _key_first(theirs, rows.num_columns)
    is_arrow = isinstance(table, pa.Table)
    taken = table.take(ours) if is_arrow else table.iloc[ours.to_numpy(zero_copy_only=False)]
    our_cells = [query_from_values(column_of(taken, at)).values.to_pylist() for at in order]
    lake_taken = rows.take(lake_row.take(ours))
    their_cells = [lake_taken.column(at).to_pylist() for at in lake_order]
    return JoinedRows(
        tuple(names[at] for at in order),
        tuple(rows.column_names[at] for at in lake_order),
        tuple(
            zip(
                zip(*our_cells, strict=True),
                zip(*their_cells, strict=True),
                strict=True,
            )
        ),
    )


def _key_first(keyed: KeyedTable, n_columns: int) -> list[int]:
    others = (at for at in range(n_columns) if at not in keyed.positions)
    return [*keyed.positions, *others][: max(MOST_COLUMNS, len(keyed.positions))]
