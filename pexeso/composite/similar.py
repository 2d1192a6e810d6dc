"""Exact search by keys some of whose columns match similar values.

A row holds a key in some columns where each value of the key matches its cell: by similarity in the
columns of the key marked so, which a list of matching cells tells, and as equal texts in the
others. The number of keys that a mapping joins, the best mapping and the order of tables are those
of `pexeso.composite.search`: a search without similar columns gives the same answer there and here.

Rows are first narrowed down by the posting lists of the columns that match equal texts. What is
left is turned into lists: which values of the query match in a row, and in which columns. The keys
of each value that are cheapest to try are then looked up in the lists of the other columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pexeso.composite.row_keys import RowKeys
from pexeso.composite.search import KeyMatch, KeyQuery, rows_with
from pexeso.engine.lists import offsets_of, places_among, ranges
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import runs_within

loops = compiled("pexeso.composite.loops")

# Cells of rows, and pairs of a row and a key, that are worked on at a time: about 100 bytes each.
# Pairs that hold a key are kept for all rows of a table besides, with 16 bytes for each and column
# of the key.
MOST_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class SimilarCells:
    """Which cells match the values of one column of the key, as a list of n."""

    # int64 (n,): by their numbers among those of all tables: see `RowKeys.table_columns`
    columns: np.ndarray
    cells: np.ndarray  # int32 (n,): numbers of the lake's values
    values: np.ndarray  # int64 (n,): numbers of the query's values that each matches in that column
    distances: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Matching cells sorted by column and cell, each column numbered among those that occur."""

    columns: np.ndarray
    codes: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class _Lists:
    """For rows and values of the query the columns that match."""

    # int64 (g,): ascending: place of a row, times the number of values, plus that of the value
    codes: np.ndarray
    ends: np.ndarray  # int64 (g + 1,)
    # int32: from 0 in each table; those of list j are ``columns[ends[j]:ends[j + 1]]``, ascending
    columns: np.ndarray


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a row and a key each of whose values matches some cell of the row."""

    # int64 (p,), int32 (p,): keys by their numbers among those that may be joined
    rows: np.ndarray
    keys: np.ndarray
    # int64 (p, m), int64 (p, m): where the columns that match each value of the key begin and end
    begins: np.ndarray
    ends: np.ndarray
    columns: np.ndarray  # int32

    def has(self, i: int, column: int) -> np.ndarray:
        """Return the pairs whose value i matches a column: bool (p,)."""
        begins, sizes = self.begins[:, i], (self.ends - self.begins)[:, i]
        hits = self.columns[ranges(begins, sizes)] == column
        matched = np.zeros(len(self.rows), bool)
        matched[np.repeat(np.arange(len(matched)), sizes)[hits]] = True
        return matched


class SimilarSearch:
    def __init__(
        self,
        rows: RowKeys,
        query: KeyQuery,
        similar: Collection[int],
        most_cells: int = MOST_CELLS,
    ) -> None:
        self._rows, self._query, self._most_cells = rows, query, most_cells
        numbers = rows.find(query.values)
        exact = [i for i in range(query.n_columns) if i not in similar]
        self._known = np.flatnonzero((numbers[query.keys[:, exact]] >= 0).all(axis=1))
        self._keys = query.keys[self._known]
        self._left = np.ones(rows.n_rows, bool)
        for i in exact:
            self._left &= rows_with(rows, np.unique(numbers[self._keys[:, i]]))
        self._values = np.flatnonzero(numbers >= 0)
        self._numbers = numbers[self._values]  # ascending, as both texts are in order
        counts = [np.bincount(of_column, minlength=len(query.values)) for of_column in self._keys.T]
        self._key_ends = [offsets_of(column_counts) for column_counts in counts]
        self._key_order = [np.argsort(of_column, kind="stable") for of_column in self._keys.T]

    @cached_property
    def tables(self) -> np.ndarray:
        """Return the tables with rows that columns matching equal texts leave: int64, ascending."""
        wide = self._rows.widths >= self._query.n_columns
        return np.flatnonzero((self._sizes > 0) & wide & (len(self._keys) > 0))

    def search(
        self,
        similar: Mapping[int, SimilarCells],
        k: int | None = 10,
        *,
        at_least: int = 1,
        excluded: Sequence[int] = (),
    ) -> tuple[KeyMatch, ...]:
        rows = self._rows
        tables = np.setdiff1d(self.tables, np.asarray(excluded, np.int64))
        for cells in similar.values():
            having = np.searchsorted(rows.table_columns, cells.columns, side="right") - 1
            tables = np.intersect1d(tables, having)
        matching = {i: _sorted(rows, cells) for i, cells in similar.items()}
        matches: list[KeyMatch] = []
        for some in runs_within(self._sizes[tables] * rows.widths[tables], self._most_cells):
            matches += self._matches(tables[some], matching, at_least)
            matches.sort(key=lambda match: (-match.keys, match.table))
            if k is not None and len(matches) >= k:
                del matches[k:]
                # Tables to come have higher numbers, and must join more keys.
                at_least = matches[-1].keys + 1
        return tuple(matches)

    def joined_pairs(
        self, similar: Mapping[int, SimilarCells], match: KeyMatch
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and keys that a match joins: (int64 (p,), int64 (p,))."""
        matching = {i: _sorted(self._rows, cells) for i, cells in similar.items()}
        pairs = self._pairs(np.array([match.table]), matching)
        fits = np.ones(len(pairs.rows), bool)
        for i, column in enumerate(match.columns):
            fits &= pairs.has(i, column)
        rows = pairs.rows[fits] - self._rows.table_rows[match.table]
        keys = self._known[pairs.keys[fits]]
        order = np.lexsort((rows, keys))
        return rows[order], keys[order]

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.diff(offsets_of(self._left)[self._rows.table_rows])

    def _matches(
        self, tables: np.ndarray, matching: Mapping[int, _Sorted], at_least: int
    ) -> list[KeyMatch]:
        pairs = self._pairs(tables, matching)
        positions = np.searchsorted(self._rows.table_rows[tables], pairs.rows, side="right") - 1
        order = np.lexsort((pairs.rows, pairs.keys, positions))
        pair_rows, pair_keys = pairs.rows[order], pairs.keys[order]
        ends = offsets_of(np.bincount(positions, minlength=len(tables)))
        n_keys, mappings, joined = loops.best_mappings(
            ends, self._rows.widths[tables], pair_keys, pairs.begins[order], pairs.ends[order],
            pairs.columns, at_least,
        )  # fmt: skip
        row_counts = self._query.row_counts[self._known]
        matches = []
        for at in np.flatnonzero(n_keys >= at_least).tolist():
            run = slice(ends[at], ends[at + 1])
            fits = joined[run]
            table, mapping = int(tables[at]), mappings[at]
            matches.append(
                _match(table, mapping, pair_rows[run][fits], pair_keys[run][fits], row_counts)
            )
        return matches

    def _pairs(self, tables: np.ndarray, matching: Mapping[int, _Sorted]) -> _Pairs:
        rows = self._rows
        starts = rows.table_rows[tables]
        every = ranges(starts, rows.table_rows[tables + 1] - starts)
        every = every[self._left[every]]
        table = tables[np.searchsorted(starts, every, side="right") - 1]
        parts = [
            part
            for some in runs_within(rows.widths[table], self._most_cells)
            for part in self._pairs_of(every[some], table[some], matching)
        ]
        return _joined(parts, self._query.n_columns)

    def _pairs_of(
        self, rows: np.ndarray, tables: np.ndarray, matching: Mapping[int, _Sorted]
    ) -> Iterator[_Pairs]:
        m, n_values = self._query.n_columns, len(self._query.values)
        equal = None
        if len(matching) < m:
            equal = _lists(n_values, *self._equal_cells(rows, tables))
        lists = [
            _lists(n_values, *self._similar_cells(matching[i], rows, tables))
            if i in matching
            else equal
            for i in range(m)
        ]
        costs = [
            np.diff(self._key_ends[i])[lists[i].codes % n_values]
            if len(lists[i].codes)
            else np.zeros(0, np.int64)
            for i in range(m)
        ]
        first = int(np.argmin([part_costs.sum() for part_costs in costs]))
        tried, cost = lists[first].codes, costs[first]
        bases = offsets_of(np.array([len(part.columns) for part in lists]))
        columns = np.concatenate([part.columns for part in lists])
        for some in runs_within(cost, self._most_cells):
            row_position = np.repeat(tried[some] // n_values, cost[some])
            starts = self._key_ends[first][tried[some] % n_values]
            keys = self._key_order[first][ranges(starts, cost[some])]
            positions = np.empty((len(keys), 0), np.int64)
            for i in range(m):
                codes = row_position * n_values + self._keys[keys, i]
                at = places_among(codes, lists[i].codes)
                hits = np.flatnonzero(at >= 0)
                row_position, keys = row_position[hits], keys[hits]
                positions = np.column_stack([positions[hits], at[hits]])
            begins, ends = (
                np.column_stack(
                    [bases[i] + lists[i].ends[positions[:, i] + behind] for i in range(m)]
                )
                for behind in (0, 1)
            )
            sizes = ends - begins
            pair_columns = columns[ranges(begins.ravel(), sizes.ravel())]
            ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
            yield _Pairs(
                rows[row_position], keys.astype(np.int32), ends - sizes, ends, pair_columns
            )

    def _equal_cells(
        self, rows: np.ndarray, tables: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return places in `rows`, columns and values of cells that are values of the query."""
        widths = self._rows.widths[tables]
        row_position = np.repeat(np.arange(len(rows)), widths)
        column = ranges(np.zeros(len(rows), np.int64), widths)
        cells = self._cells(rows, tables, row_position, column)
        at = places_among(cells, self._numbers)
        hits = np.flatnonzero(at >= 0)
        return row_position[hits], column[hits], self._values[at[hits]]

    def _similar_cells(
        self, similar: _Sorted, rows: np.ndarray, tables: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return places in `rows`, columns and values of cells that match similar values."""
        first_columns = self._rows.table_columns
        begins = np.searchsorted(similar.columns, first_columns[tables])
        sizes = np.searchsorted(similar.columns, first_columns[tables + 1]) - begins
        row_position = np.repeat(np.arange(len(rows)), sizes)
        which = ranges(begins, sizes)
        column = similar.columns[which] - first_columns[tables[row_position]]
        cells = self._cells(rows, tables, row_position, column)
        codes = _codes(self._rows, which, cells)
        low = np.searchsorted(similar.codes, codes)
        sizes = np.searchsorted(similar.codes, codes, side="right") - low
        sizes[cells < 0] = 0
        return (
            np.repeat(row_position, sizes),
            np.repeat(column, sizes),
            similar.values[ranges(low, sizes)],
        )

    def _cells(
        self, rows: np.ndarray, tables: np.ndarray, row_position: np.ndarray, column: np.ndarray
    ) -> np.ndarray:
        keys = self._rows
        begins = keys.table_cells[tables] + (rows - keys.table_rows[tables]) * keys.widths[tables]
        return keys.cells[begins[row_position] + column]


def _sorted(rows: RowKeys, similar: SimilarCells) -> _Sorted:
    columns, which = np.unique(similar.columns, return_inverse=True)
    codes = _codes(rows, which, similar.cells)
    order = np.argsort(codes, kind="stable")
    return _Sorted(columns, codes[order], similar.values[order])


def _codes(rows: RowKeys, which: np.ndarray, cells: np.ndarray) -> np.ndarray:
    return which.astype(np.int64) * len(rows.values) + cells


def _lists(
    n_values: int, row_position: np.ndarray, column: np.ndarray, value: np.ndarray
) -> _Lists:
    codes = row_position * n_values + value
    order = np.argsort(codes, kind="stable")
    codes, begins = np.unique(codes[order], return_index=True)
    return _Lists(codes, np.append(begins, len(order)), column[order].astype(np.int32))


def _joined(parts: Sequence[_Pairs], m: int) -> _Pairs:
    empty = np.empty((0, m), np.int64)
    none = _Pairs(empty[:, 0], empty[:, 0].astype(np.int32), empty, empty, np.empty(0, np.int32))
    parts = [none, *parts]
    bases = offsets_of(np.array([len(part.columns) for part in parts]))
    return _Pairs(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.begins + base for part, base in zip(parts, bases, strict=False)]),
        np.concatenate([part.ends + base for part, base in zip(parts, bases, strict=False)]),
        np.concatenate([part.columns for part in parts]),
    )


def _match(
    table: int, mapping: np.ndarray, rows: np.ndarray, keys: np.ndarray, row_counts: np.ndarray
) -> KeyMatch:
    joined, rows_of_key = np.unique(keys, return_counts=True)
    distinct, inverse = np.unique(rows, return_inverse=True)
    counts = row_counts[keys]
    return KeyMatch(
        table=table,
        keys=len(joined),
        columns=tuple(mapping.tolist()),
        rows=len(distinct),
        query_rows=int(row_counts[joined].sum()),
        joined_rows=int(counts.sum()),
        most_rows=int(rows_of_key.max()),
        most_query_rows=int(np.bincount(inverse, weights=counts).max()),
    )
