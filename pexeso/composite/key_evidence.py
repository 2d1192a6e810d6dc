"""Evidence for and against a join by a key of several columns, found in both tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from pexeso.composite.row_keys import RowKeys, build_row_keys
from pexeso.composite.search import KeyQuery, key_query, search_keys
from pexeso.engine.lists import distinct_numbers, offsets_of, places_among
from pexeso.lake.columns import label_columns, spec_of
from pexeso.lake.frames.columns import texts_of_cells
from pexeso.lake.readings import LOSSY, read_columns
from pexeso.results.column_matches import WouldMatch, relation_of
from pexeso.sets.shard_searches import ROUNDING

if TYPE_CHECKING:
    from pexeso.composite.key_table import TablePair
    from pexeso.composite.part.open import RowShard
    from pexeso.joins.composite_join import KeyedTable

# Cells and values of keys that a search for other mappings compares at most: where dozens of
# columns hold the same few values it is cut short.
MAX_CELLS_TRIED = 1 << 26

_NONE = -1


@dataclass(frozen=True)
class KeyMapping:
    """Columns of a table, one for each column of the key, and the keys that they join."""

    columns: tuple[int, ...]
    matched: int


@dataclass(frozen=True, eq=False)
class OneTable:
    """The keys of a query and the rows of one table, as numbers of values. `one_table` makes it."""

    rows: RowKeys
    query: KeyQuery

    @cached_property
    def keys(self) -> np.ndarray:
        """Return the keys of the query, -1 for a value that the table lacks: int32 (n, m)."""
        return self.query.numbers_in(self.rows)

    @cached_property
    def cells(self) -> np.ndarray:
        """Return the cells of the table, -1 for a missing one: int32 (r, w)."""
        return self.rows.cells.reshape(self.rows.n_rows, int(self.rows.widths[0]))

    @cached_property
    def overlaps(self) -> np.ndarray:
        """Count for each column of the key and of the table the values that both have: (m, w)."""
        counts = np.zeros((self.query.n_columns, self.cells.shape[1]), np.int64)
        in_column = np.zeros(len(self.rows.values), bool)
        values = [distinct_numbers(part[part >= 0]) for part in self.keys.T]
        for column in range(self.cells.shape[1]):
            in_column[:] = False
            cells = self.cells[:, column]
            in_column[cells[cells >= 0]] = True
            counts[:, column] = [np.count_nonzero(in_column[of_part]) for of_part in values]
        return counts

    def best(self) -> KeyMapping | None:
        """Return the mapping that joins most keys, the first if several do; None if none does."""
        matches = search_keys(self.rows, self.query, k=1).matches
        return KeyMapping(matches[0].columns, matches[0].keys) if matches else None

    def likeliest(self) -> KeyMapping:
        """Return the mapping by which columns overlap most, one after the other."""
        left = self.overlaps.copy()
        columns = [0] * len(left)
        for _ in columns:
            part, column = np.unravel_index(np.argmax(left), left.shape)
            columns[part] = int(column)
            left[part], left[:, column] = _NONE, _NONE
        return KeyMapping(tuple(columns), self.matched(columns))

    def matched(self, columns: Sequence[int]) -> int:
        held = self.key_of_row(columns)
        return len(distinct_numbers(held[held >= 0]))

    def key_of_row(self, columns: Sequence[int]) -> np.ndarray:
        of_key, rows, codes = self._whole()
        for part, column in enumerate(columns):
            of_key, rows, codes, _ = self._narrowed(part, column, of_key, rows, codes)
        key_of_code = np.zeros(len(self.keys), np.int64)
        key_of_code[of_key[of_key >= 0]] = np.flatnonzero(of_key >= 0)
        held = np.full(len(self.cells), _NONE, np.int64)
        held[rows] = key_of_code[codes]
        return held

    def mappings(self, at_least: int) -> tuple[list[KeyMapping], bool]:
        """List the mappings that join some number of keys at least, those with most first."""
        walk = _Walk(self, at_least)
        mappings = list(walk.follow((), *self._whole()))
        return sorted(
            mappings, key=lambda mapping: (-mapping.matched, mapping.columns)
        ), walk.left >= 0

    def parts_there(self, columns: Sequence[int]) -> np.ndarray:
        masks = [
            np.isin(self.keys[:, part], self.cells[:, column], kind="sort")
            for part, column in enumerate(columns)
        ]
        return np.stack(masks, axis=1) & (self.keys >= 0)

    def nearest_row(self, key: int, columns: Sequence[int]) -> tuple[int, np.ndarray]:
        """Return the first row that holds most values of a key in their columns."""
        if not len(self.cells):
            return _NONE, np.zeros(len(columns), bool)
        held = (self.cells[:, list(columns)] == self.keys[key]) & (self.keys[key] >= 0)
        row = int(np.argmax(held.sum(axis=1)))
        return row, held[row]

    def _whole(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        of_key, codes = (np.zeros(len(part), np.int64) for part in (self.keys, self.cells))
        return of_key, np.arange(len(self.cells)), codes

    def _narrowed(
        self, part: int, column: int, of_key: np.ndarray, rows: np.ndarray, codes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Choose a column for one more value of the keys."""
        base = len(self.rows.values)
        values, cells = self.keys[:, part], self.cells[rows, column]
        key_codes = np.where((of_key >= 0) & (values >= 0), of_key * base + values, _NONE)
        present = np.where(cells >= 0, codes * base + cells, _NONE)
        both = np.intersect1d(key_codes[key_codes >= 0], present[present >= 0])
        code, new = places_among(key_codes, both), places_among(present, both)
        mask = new >= 0
        return code, rows[mask], new[mask], int(np.count_nonzero(code >= 0))


class _Walk:
    """Walk through the mappings of a table; `left` sinks below 0 where it was cut short."""

    def __init__(self, table: OneTable, at_least: int) -> None:
        self.table, self.at_least = table, at_least
        self.left = MAX_CELLS_TRIED

    def follow(
        self, columns: tuple[int, ...], of_key: np.ndarray, rows: np.ndarray, codes: np.ndarray
    ) -> Iterator[KeyMapping]:
        part, table = len(columns), self.table
        # Those first that have most of the values: a walk that is cut short has seen the best ones.
        for column in np.argsort(-table.overlaps[part], kind="stable").tolist():
            self.left -= len(rows) + len(of_key)
            if column in columns or not table.overlaps[part, column] or self.left < 0:
                continue
            narrowed = table._narrowed(part, column, of_key, rows, codes)
            if narrowed[-1] < self.at_least:
                continue
            chosen = (*columns, column)
            if len(chosen) == table.query.n_columns:
                yield KeyMapping(chosen, narrowed[-1])
            else:
                yield from self.follow(chosen, *narrowed[:-1])


def one_table(key: Sequence[pa.Array | pa.ChunkedArray], table: pa.Table) -> OneTable:
    return OneTable(build_row_keys([table]), key_query(key))


# Cells of a lake up to which they are read for hints, and tables of a shard that are compared then.
MAX_CELLS_READ, MAX_TABLES_READ = 10_000_000, 3


def would_match_keys(
    shards: Sequence[RowShard],
    key: Sequence[pa.Array],
    readings: Collection[str],
    share: float,
    exclude_table: str | None,
) -> tuple[WouldMatch, ...]:
    """Return of each reading that is off the table that has most keys by it, the best first.

    Only where it has a larger share of them than `share`. `key` has the cells of each part in the
    form in which they are compared.
    """
    if sum(len(shard.rows.cells) for shard in shards) > MAX_CELLS_READ:
        return ()
    lines = []
    for name in LOSSY:
        if name in readings:
            continue
        parts = [read_columns(part, [name]) for part in key]
        n_keys = key_query(parts).n_keys
        best, n_best = None, math.floor(share * n_keys + ROUNDING)
        for shard in shards:
            for table in _likely_tables(shard, name, parts, exclude_table):
                held = [read_columns(column, [name]) for column in shard.table_columns(table)]
                columns = [f"{number}" for number in range(len(held))]
                mapping = one_table(parts, pa.Table.from_arrays(held, names=columns)).best()
                if mapping is not None and mapping.matched > n_best:
                    labels, n_best = shard.labels(table), mapping.matched
                    column = spec_of(labels[position] for position in mapping.columns)
                    best = shard.table_names([table])[0], column
        if best is not None:
            lines.append(WouldMatch.of(name, *best, n_best, n_keys))
    return tuple(sorted(lines, key=lambda line: -line.matched))


def _likely_tables(
    shard: RowShard, name: str, parts: Sequence[pa.Array], exclude_table: str | None
) -> list[int]:
    """Return the tables with most rows of which enough cells are, by a reading, of the keys."""
    rows = shard.rows
    values = rows.values.cast(pa.large_string())
    # What a column decides is left open here: every text is one of its own.
    read = LOSSY[name](values, np.arange(len(values)))
    wanted = pc.unique(pa.chunked_array(parts))
    is_wanted = pc.is_in(read, value_set=wanted).to_numpy(zero_copy_only=False)
    n_rows = np.diff(rows.table_rows)
    if not len(rows.cells) or not is_wanted.any():
        return []
    counts = is_wanted[rows.cells] & (rows.cells >= 0)
    widths = np.repeat(rows.widths, n_rows)
    per_row = np.add.reduceat(counts, offsets_of(widths)[:-1], dtype=np.int64)
    table_of_row = np.repeat(np.arange(rows.n_tables), n_rows)
    scores = np.bincount(table_of_row[per_row >= len(parts)], minlength=rows.n_tables)
    scores[shard.hidden(exclude_table)] = 0
    best = np.argsort(-scores, kind="stable")[:MAX_TABLES_READ]
    return best[scores[best] > 0].tolist()


# Share of the keys that are joined which another choice of columns must join to be listed.
NEARLY = 0.9

# Groups of keys without a match, examples of each thing, and other choices of columns listed.
MOST_GROUPS, MOST_EXAMPLES, MOST_OTHERS = 10, 3, 5

MOST_ROWS, MOST_COLUMNS = 5, 8  # Joined rows that are shown, and columns of each table in them.


def explain_keys(pair: TablePair, columns: str | Iterable[str] | None = None) -> KeyExplanation:
    left, keyed_rows, labels = pair.mine, pair.keyed_rows, pair.rows.column_names
    if columns is None:
        best = keyed_rows.best() or keyed_rows.likeliest()
        right = pair.theirs([f"#{position}" for position in best.columns])
    else:
        right = pair.theirs(columns)
    held = keyed_rows.key_of_row(right.positions)
    lake_rows = np.bincount(held[held >= 0], minlength=keyed_rows.query.n_keys)
    matched = int(np.count_nonzero(lake_rows))
    others, all_tried = _others(keyed_rows, KeyMapping(right.positions, matched), labels)
    without_key = keyed_rows.query.n_rows - int(keyed_rows.query.row_counts.sum())
    return KeyExplanation(
        {**pair.query_table.describe(), "rows_without_key": without_key},
        pair.table,
        right.labels,
        columns is not None,
        matched,
        keyed_rows.query.n_keys,
        _parts(keyed_rows, left, right),
        _unmatched(keyed_rows, left, right, np.flatnonzero(lake_rows == 0)),
        _fan_out(keyed_rows, left, lake_rows),
        others,
        all_tried,
        _sample(pair, right),
        pair.would_match(right),
    )


def _parts(keyed_rows: OneTable, left: KeyedTable, right: KeyedTable) -> tuple[PartOverlap, ...]:
    return tuple(
        PartOverlap(
            label,
            lake_label,
            int(keyed_rows.overlaps[part, right.positions[part]]),
            len(np.unique(keyed_rows.query.keys[:, part])),
        )
        for part, (label, lake_label) in enumerate(zip(left.labels, right.labels, strict=True))
    )


def _unmatched(
    keyed_rows: OneTable, left: KeyedTable, right: KeyedTable, keys: np.ndarray
) -> tuple[UnmatchedKeys, ...]:
    keys = keys[np.argsort(keyed_rows.query.first_rows[keys], kind="stable")]
    presence = keyed_rows.parts_there(right.positions)[keys]
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
                tuple(_near_row(keyed_rows, left, right, key) for key in examples),
            )
        )
    return tuple(groups)


def _near_row(keyed_rows: OneTable, left: KeyedTable, right: KeyedTable, key: int) -> NearRow:
    row, held = keyed_rows.nearest_row(key, right.positions)
    parts = int(held.sum())
    nearest = _cells(right, row) if parts else None
    return NearRow(_cells(left, int(keyed_rows.query.first_rows[key])), nearest, parts)


def _cells(table: KeyedTable, row: int) -> Cells:
    return tuple(column[row].as_py() for column in table.cells)


def _fan_out(keyed_rows: OneTable, left: KeyedTable, lake_rows: np.ndarray) -> FanOut:
    query, joined = keyed_rows.query, lake_rows > 0
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
    keyed_rows: OneTable, chosen: KeyMapping, labels: Sequence[str]
) -> tuple[tuple[OtherColumns, ...], bool]:
    """Return the mappings that join as many keys or nearly, other than the chosen one."""
    mappings, all_tried = keyed_rows.mappings(max(1, math.ceil(NEARLY * chosen.matched)))
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
