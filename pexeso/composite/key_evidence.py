"""Evidence for and against a join by a key of several columns, found in both tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.composite.key_explanation import (
    Cells,
    FanOut,
    JoinedRows,
    KeyExplanation,
    NearRow,
    OtherColumns,
    PartOverlap,
    RepeatedKey,
    UnmatchedKeys,
)
from pexeso.composite.one_table import KeyMapping
from pexeso.composite.search import relation_of
from pexeso.lake.columns import label_columns
from pexeso.lake.frames.columns import texts_of_cells

if TYPE_CHECKING:
    from pexeso.composite.lake.table_pair import TablePair
    from pexeso.composite.one_table import OneTable
    from pexeso.joins.composite_join import KeyedTable

NEARLY = 0.9
"""Share of the keys that are joined which another choice of columns must join to be told."""

MOST_GROUPS, MOST_EXAMPLES, MOST_OTHERS = 10, 3, 5
"""Groups of keys without a match, examples of each thing, and other choices of columns told."""

MOST_ROWS, MOST_COLUMNS = 5, 8
"""Joined rows that are shown, and columns of each table in them."""


def explain_keys(pair: TablePair, columns: str | Iterable[str] | None = None) -> KeyExplanation:
    """Explain how a key of several columns and a table of the lake compare.

    Notes
    -----
    Memory: both tables, 8 bytes for a cell of the lake's, and its distinct texts.
    """
    left, beside, labels = pair.mine, pair.beside, pair.rows.column_names
    if columns is None:
        best = beside.best() or beside.likeliest()
        right = pair.theirs([f"#{position}" for position in best.columns])
    else:
        right = pair.theirs(columns)
    held = beside.key_of_row(right.positions)
    lake_rows = np.bincount(held[held >= 0], minlength=beside.query.n_keys)
    matched = int(np.count_nonzero(lake_rows))
    others, all_tried = _others(beside, KeyMapping(right.positions, matched), labels)
    without_key = beside.query.n_rows - int(beside.query.row_counts.sum())
    return KeyExplanation(
        {**pair.query_table.describe(), "rows_without_key": without_key},
        pair.table,
        right.labels,
        columns is not None,
        matched,
        beside.query.n_keys,
        _parts(beside, left, right),
        _unmatched(beside, left, right, np.flatnonzero(lake_rows == 0)),
        _fan_out(beside, left, lake_rows),
        others,
        all_tried,
        _sample(pair, right),
    )


def _parts(beside: OneTable, left: KeyedTable, right: KeyedTable) -> tuple[PartOverlap, ...]:
    return tuple(
        PartOverlap(
            label,
            lake_label,
            int(beside.overlaps[part, right.positions[part]]),
            len(np.unique(beside.query.keys[:, part])),
        )
        for part, (label, lake_label) in enumerate(zip(left.labels, right.labels, strict=True))
    )


def _unmatched(
    beside: OneTable, left: KeyedTable, right: KeyedTable, keys: np.ndarray
) -> tuple[UnmatchedKeys, ...]:
    keys = keys[np.argsort(beside.query.first_rows[keys], kind="stable")]
    presence = beside.parts_there(right.positions)[keys]
    patterns, group, sizes = np.unique(presence, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    groups = []
    # Most keys first; of equal groups the one of which more is there.
    for number in np.lexsort((-patterns.sum(axis=1), -sizes))[:MOST_GROUPS].tolist():
        is_there = patterns[number].tolist()
        examples = keys[group == number][:MOST_EXAMPLES].tolist()
        groups.append(
            UnmatchedKeys(
                tuple(label for label, hit in zip(left.labels, is_there, strict=True) if hit),
                tuple(label for label, hit in zip(left.labels, is_there, strict=True) if not hit),
                int(sizes[number]),
                tuple(_near_row(beside, left, right, key) for key in examples),
            )
        )
    return tuple(groups)


def _near_row(beside: OneTable, left: KeyedTable, right: KeyedTable, key: int) -> NearRow:
    row, held = beside.nearest_row(key, right.positions)
    parts = int(held.sum())
    nearest = _cells(right, row) if parts else None
    return NearRow(_cells(left, int(beside.query.first_rows[key])), nearest, parts)


def _cells(table: KeyedTable, row: int) -> Cells:
    return tuple(column[row].as_py() for column in table.cells)


def _fan_out(beside: OneTable, left: KeyedTable, lake_rows: np.ndarray) -> FanOut:
    query, joined = beside.query, lake_rows > 0
    rows, lake_counts = query.row_counts[joined], lake_rows[joined]
    most_rows, most_lake = (int(counts.max(initial=0)) for counts in (rows, lake_counts))
    worst = np.lexsort((query.first_rows, -(query.row_counts * lake_rows)))
    several = (np.maximum(query.row_counts, lake_rows) > 1) & joined
    examples = tuple(
        RepeatedKey(
            _cells(left, int(query.first_rows[key])),
            int(query.row_counts[key]),
            int(lake_rows[key]),
        )
        for key in worst[several[worst]][:MOST_EXAMPLES].tolist()
    )
    return FanOut(
        relation_of(most_rows, most_lake) if most_rows else None,
        int(rows.sum()),
        int(lake_counts.sum()),
        int((rows * lake_counts).sum()),
        most_rows,
        most_lake,
        examples,
    )


def _others(
    beside: OneTable, chosen: KeyMapping, labels: Sequence[str]
) -> tuple[tuple[OtherColumns, ...], bool]:
    """Return the mappings that join as many keys or nearly, other than the chosen one."""
    mappings, all_tried = beside.mappings(max(1, math.ceil(NEARLY * chosen.matched)))
    others = [mapping for mapping in mappings if mapping != chosen][:MOST_OTHERS]
    return tuple(
        OtherColumns(tuple(labels[position] for position in other.columns), other.matched)
        for other in others
    ), all_tried


def _sample(pair: TablePair, right: KeyedTable) -> JoinedRows:
    lake_row = pc.coalesce(  # as the join prefers the row with the very cells
        *(
            pc.index_in(mine, lakes, skip_nulls=True)
            for mine, lakes in ((pair.mine.texts, right.texts), (pair.mine.keys, right.keys))
        )
    )
    ours = pc.indices_nonzero(lake_row.is_valid())[:MOST_ROWS]
    labels, lake_labels = label_columns(pair.query_table.names), pair.rows.column_names
    order = _key_first(pair.mine, len(labels))
    lake_order = _key_first(right, len(lake_labels))
    lake_rows = lake_row.take(ours)
    our_cells = [texts_of_cells(pair.query_table.cells[at].take(ours)) for at in order]
    their_cells = [pair.rows.column(at).take(lake_rows) for at in lake_order]
    return JoinedRows(
        tuple(labels[at] for at in order),
        tuple(lake_labels[at] for at in lake_order),
        tuple(zip(_as_rows(our_cells), _as_rows(their_cells), strict=True)),
    )


def _as_rows(columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[Cells]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _key_first(keyed: KeyedTable, n_columns: int) -> list[int]:
    others = (at for at in range(n_columns) if at not in keyed.positions)
    return [*keyed.positions, *others][: max(MOST_COLUMNS, len(keyed.positions))]
