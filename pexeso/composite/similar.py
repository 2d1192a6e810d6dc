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

from pexeso.composite.query import KeyQuery
from pexeso.composite.row_keys import RowKeys
from pexeso.composite.search import KeyMatch, require_limits, rows_with
from pexeso.runtime.jit import loop
from pexeso.runtime.ranges import offsets_of, ranges

# Compiled loop of the search by similar values: the best mapping of each table.
#
# A pair is a row and a key each of whose values matches some cell of the row. It trusts its
# arrays, which `pexeso.composite.similar` makes.


@loop
def best_mappings(pair_ends, widths, pair_keys, begins, ends, columns, at_least):
    """Find the mapping of each table that joins most keys, the first of several.

    Parameters
    ----------
    pair_ends : int64 (t + 1,)
        The pairs of each table.
    widths : int64 (t,)
        Columns of each table.
    pair_keys : int32 (p,)
        Ascending in each table.
    begins, ends : int64 (p, m), int64 (p, m)
        Where the columns that match each value of the key begin and end.
    columns : int32
        Of a table, from 0.

    Returns
    -------
    (int64 (t,), int64 (t, m), bool (p,))
        Number of keys, less than `at_least` where no mapping joins so many; the mapping; and which
        pairs it joins.
    """
    m = begins.shape[1]
    n_keys = np.zeros(len(widths), np.int64)
    mappings = np.full((len(widths), m), -1, np.int64)
    joined = np.zeros(len(pair_keys), np.bool_)
    for table in range(len(widths)):
        run = slice(pair_ends[table], pair_ends[table + 1])
        lists = begins[run], ends[run], columns
        n_keys[table] = _best_mapping(
            lists, pair_keys[run], widths[table], at_least, mappings[table]
        )
        if n_keys[table] < at_least:
            continue
        for pair in range(pair_ends[table], pair_ends[table + 1]):
            fits = True
            for i in range(m):
                fits &= _has(columns, begins[pair, i], ends[pair, i], mappings[table, i])
            joined[pair] = fits
    return n_keys, mappings, joined


@loop
def _best_mapping(lists, pair_keys, width, needed, mapping):
    """Return the most keys that a mapping joins, and store the first such mapping.

    As in `pexeso.composite.loops`: a column that leaves no more keys than are known to be joined is
    not tried. Returns less than `needed` if no mapping joins so many.
    """
    m, n_pairs = lists[0].shape[1], len(pair_keys)
    pairs = np.empty((m, n_pairs), np.int64)  # by column: the pairs that fit those before
    pairs[0] = np.arange(n_pairs)
    n_kept = np.full(m, n_pairs)
    counts = np.empty((m, width), np.int64)
    column = np.full(m, -1, np.int64)
    _count_keys(lists, 0, pair_keys, pairs[0], counts[0])
    best, i = needed - 1, 0
    while i >= 0:
        column[i] += 1
        c = column[i]
        if c == width:
            column[i] = -1
            i -= 1
            continue
        used = False
        for before in range(i):
            used |= column[before] == c
        if used or counts[i, c] <= best:
            continue
        if i == m - 1:
            best = counts[i, c]
            mapping[:] = column
            continue
        n = 0
        for pair in pairs[i, : n_kept[i]]:
            pairs[i + 1, n] = pair
            n += _has(lists[2], lists[0][pair, i], lists[1][pair, i], c)
        i += 1
        n_kept[i] = n
        _count_keys(lists, i, pair_keys, pairs[i, :n], counts[i])
    return best


@loop
def _count_keys(lists, i, pair_keys, pairs, counts):
    """Count for each column the keys of pairs whose value i it matches."""
    begins, ends, columns = lists
    last_key = np.full(len(counts), -1, np.int64)
    counts[:] = 0
    for pair in pairs:
        key = pair_keys[pair]
        for at in range(begins[pair, i], ends[pair, i]):
            c = columns[at]
            counts[c] += last_key[c] != key
            last_key[c] = key


@loop
def _has(columns, begin, end, column):
    present = False
    for at in range(begin, end):
        present |= columns[at] == column
    return present


MOST_CELLS = 1 << 20
"""Cells of rows, and pairs of a row and a key, that are worked on at a time: about 100 bytes each.
Pairs that hold a key are kept for all rows of a table besides, with 16 bytes for each and column of
the key."""


@dataclass(frozen=True, eq=False)
class SimilarCells:
    """Which cells match the values of one column of the key, as a list of n.

    Attributes
    ----------
    columns : int64 (n,)
        By their numbers among those of all tables: see `RowKeys.table_columns`.
    cells : int32 (n,)
        Numbers of the lake's values.
    values : int64 (n,)
        Numbers of the query's values that each matches in that column.
    """

    columns: np.ndarray
    cells: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Matching cells sorted by column and cell, each column numbered among those that occur."""

    columns: np.ndarray
    codes: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class _Lists:
    """For rows and values of the query the columns that match.

    Attributes
    ----------
    codes : int64 (g,)
        Ascending: place of a row, times the number of values, plus that of the value.
    ends : int64 (g + 1,)
    columns : int32
        From 0 in each table; those of list j are ``columns[ends[j]:ends[j + 1]]``, ascending.
    """

    codes: np.ndarray
    ends: np.ndarray
    columns: np.ndarray


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a row and a key each of whose values matches some cell of the row.

    Attributes
    ----------
    rows, keys : int64 (p,), int32 (p,)
        Keys by their numbers among those that may be joined.
    begins, ends : int64 (p, m), int64 (p, m)
        Where the columns that match each value of the key begin and end.
    columns : int32
    """

    rows: np.ndarray
    keys: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    columns: np.ndarray

    def has(self, i: int, column: int) -> np.ndarray:
        """Return the pairs whose value i matches a column: bool (p,)."""
        begins, sizes = self.begins[:, i], (self.ends - self.begins)[:, i]
        hits = self.columns[ranges(begins, sizes)] == column
        matched = np.zeros(len(self.rows), bool)
        matched[np.repeat(np.arange(len(matched)), sizes)[hits]] = True
        return matched


class SimilarSearch:
    """Searches tables by the keys of one query.

    Notes
    -----
    Time: a step for each cell of rows that have a value for each column of the key that matches
    equal texts, and one for each pair of a row and a key that has one of its values there.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.composite.query import key_query
    >>> from pexeso.composite.row_keys import build_row_keys
    >>> rows = build_row_keys([pa.table({"name": ["U.K."], "year": ["1999"]})])
    >>> query = key_query([pa.array(["uk"]), pa.array(["1999"])])
    >>> uk = SimilarCells(np.array([0]), rows.find(pa.array(["U.K."])), np.array([1]))
    >>> found = SimilarSearch(rows, query, [0]).search({0: uk})
    >>> [(match.table, match.keys, match.columns) for match in found]
    [(0, 1, (0, 1))]
    """

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
        """Find the tables that join most keys, in the best choice of their columns.

        Parameters
        ----------
        similar : dict of int to SimilarCells
            For each column of the key that matches similar values, what matches.
        k : int or None
            Tables wanted; None for all that join `at_least` keys.
        at_least : int
            Least number of distinct keys that a table joins, from 1 on.
        excluded : sequence of int
            Numbers of tables that are not wanted, as that of the query.

        Returns
        -------
        tuple of KeyMatch
            By the number of keys that they join, equal ones by number.

        Raises
        ------
        InputError
            k or `at_least` is not one of those allowed.
        """
        require_limits(k, at_least)
        rows = self._rows
        tables = np.setdiff1d(self.tables, np.asarray(excluded, np.int64))
        for cells in similar.values():
            having = np.searchsorted(rows.table_columns, cells.columns, side="right") - 1
            tables = np.intersect1d(tables, having)
        matching = {i: _sorted(rows, cells) for i, cells in similar.items()}
        matches: list[KeyMatch] = []
        for begin, end in pieces(self._sizes[tables] * rows.widths[tables], self._most_cells):
            matches += self._matches(tables[begin:end], matching, at_least)
            matches.sort(key=lambda match: (-match.keys, match.table))
            if k is not None and len(matches) >= k:
                del matches[k:]
                # Tables to come have higher numbers, and must join more keys.
                at_least = matches[-1].keys + 1
        return tuple(matches)

    def joined_pairs(
        self, similar: Mapping[int, SimilarCells], match: KeyMatch
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and keys that a match joins.

        Returns
        -------
        (int64 (p,), int64 (p,))
            Rows of the table, from 0, and keys of the query, in the order of keys, then rows.
        """
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
        """How many rows of each table are left: int64 (t,)."""
        return np.diff(offsets_of(self._left)[self._rows.table_rows])

    def _matches(
        self, tables: np.ndarray, matching: Mapping[int, _Sorted], at_least: int
    ) -> list[KeyMatch]:
        """Return the matches of some tables, given in order."""
        pairs = self._pairs(tables, matching)
        positions = np.searchsorted(self._rows.table_rows[tables], pairs.rows, side="right") - 1
        order = np.lexsort((pairs.rows, pairs.keys, positions))
        pair_rows, pair_keys = pairs.rows[order], pairs.keys[order]
        ends = offsets_of(np.bincount(positions, minlength=len(tables)))
        n_keys, mappings, joined = best_mappings(
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
        """Return the pairs of some tables, given in order."""
        rows = self._rows
        starts = rows.table_rows[tables]
        every = ranges(starts, rows.table_rows[tables + 1] - starts)
        every = every[self._left[every]]
        table = tables[np.searchsorted(starts, every, side="right") - 1]
        parts = [
            part
            for begin, end in pieces(rows.widths[table], self._most_cells)
            for part in self._pairs_of(every[begin:end], table[begin:end], matching)
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
        for begin, end in pieces(cost, self._most_cells):
            row_position = np.repeat(tried[begin:end] // n_values, cost[begin:end])
            starts = self._key_ends[first][tried[begin:end] % n_values]
            keys = self._key_order[first][ranges(starts, cost[begin:end])]
            positions = np.empty((len(keys), 0), np.int64)
            for i in range(m):
                codes = row_position * n_values + self._keys[keys, i]
                at = np.searchsorted(lists[i].codes, codes)
                hits = np.flatnonzero(_is_at(lists[i].codes, at, codes))
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
        at = np.searchsorted(self._numbers, cells)
        hits = np.flatnonzero(_is_at(self._numbers, at, cells))
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


def _is_at(sorted_numbers: np.ndarray, positions: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return whether each number stands at its position, bool (n,)."""
    inside = positions < len(sorted_numbers)
    hits = np.zeros(len(positions), bool)
    hits[inside] = sorted_numbers[positions[inside]] == numbers[inside]
    return hits


def pieces(costs: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Cut n things into pieces that cost no more than `limit` together, or are one thing."""
    ends, begin = np.cumsum(costs), 0
    while begin < len(ends):
        spent = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, spent + limit, side="right")))
        yield begin, end
        begin = end


def _match(
    table: int, mapping: np.ndarray, rows: np.ndarray, keys: np.ndarray, row_counts: np.ndarray
) -> KeyMatch:
    """Make the match of a table from the pairs that it joins, and from the rows of each key."""
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
