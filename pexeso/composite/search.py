"""Exact search for the tables that join most keys of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.composite.row_keys import RowFilter, RowKeys, numbered, texts_of
from pexeso.errors import IndexCorruptError, InputError, QueryError
from pexeso.results.column_matches import relation_of
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.composite.loops")


@dataclass(frozen=True, eq=False)
class KeyQuery:
    """The distinct keys of a query. `key_query` makes them."""

    values: pa.Array  # Arrow texts (u,): distinct values of the key columns, in order
    keys: np.ndarray  # int32 (n, m): of each key the number of its value in each column
    row_counts: np.ndarray  # int64 (n,): how many rows of the query have each key
    first_rows: np.ndarray  # int64 (n,): the first row of the query that has each key
    n_rows: int
    day_first: bool | None = None  # in dates that do not say it, where they are not as they stand

    @property
    def n_keys(self) -> int:
        return len(self.keys)

    @property
    def n_columns(self) -> int:
        return self.keys.shape[1]

    def numbers_in(self, rows: RowKeys) -> np.ndarray:
        """Return the keys as numbers of the lake's values, -1 where it lacks one: int32 (n, m)."""
        return rows.find(self.values)[self.keys]

    def super_keys(self, hashing: RowFilter) -> np.ndarray:
        """Return the bits that each key needs: uint64 (n, words)."""
        return np.bitwise_or.reduce(hashing.hashes(self.values)[self.keys], axis=1)


def key_query(columns: Sequence[pa.Array | pa.ChunkedArray]) -> KeyQuery:
    lengths = [len(column) for column in columns]
    if len(set(lengths)) != 1:
        raise QueryError(
            "A composite key is one column or more, all of the same length. Got "
            f"{', '.join(f'{n:,} rows' for n in lengths) or 'no column'}."
        )
    chunks: list[pa.Array] = []
    for number, column in enumerate(columns):
        chunks += texts_of(column, f"Column {number} of the query's key", QueryError)
    values, flat = numbered(pa.chunked_array(chunks, pa.large_string()))
    every_row = flat.reshape(len(columns), lengths[0]).T
    whole = np.flatnonzero((every_row >= 0).all(axis=1))
    keys, first, row_counts = np.unique(
        every_row[whole], axis=0, return_index=True, return_counts=True
    )
    keys = np.ascontiguousarray(keys, np.int32)
    return KeyQuery(values, keys, row_counts, whole[first], lengths[0])


# Nanoseconds, measured on two lakes: to fetch the row of an entry of a list, to compare a cell, to
# try a super key, to hash a key, and for a step of looking a row up in a list. What they decide is
# speed, never the answer.
_ENTRY_COST, _CELL_COST, _PROBE_COST, _KEY_COST, _STEP_COST = 55, 2, 2, 400, 7.5

_NO_BITS = np.empty((0, 0), np.uint64)


@dataclass(frozen=True)
class Work:
    """What a search read and compared."""

    entries: int
    tables: int  # Tables with a row in these lists, as wide as the key at least
    evaluated: int
    abandoned: int
    probes: int
    passed: int
    held: int

    @property
    def precision(self) -> float | None:
        """Return the share of pairs that pass which hold the key; None if none passed."""
        return self.held / self.passed if self.passed else None


@dataclass(frozen=True)
class KeyMatch:
    table: int
    keys: int
    columns: tuple[int, ...]
    rows: int
    query_rows: int
    joined_rows: int
    most_rows: int
    most_query_rows: int

    @property
    def relation(self) -> str:
        return relation_of(self.most_query_rows, self.most_rows)


@dataclass(frozen=True)
class KeyMatches:
    """The answer to a query: tables by the number of keys that they join, equal ones by number."""

    matches: tuple[KeyMatch, ...]
    n_keys: int
    row_filter: str
    first: int
    work: Work


@dataclass(frozen=True, eq=False)
class _Lists:
    """The posting lists of the values of a query, and its keys whose values are all in the lake."""

    # int64 (u,): where the list of each value of the query begins and ends; an empty one is of a
    # value that the lake lacks
    begins: np.ndarray
    ends: np.ndarray
    # int64 (n,): keys of the query, those with the same value in the column looked up first
    # together
    known: np.ndarray
    keys: np.ndarray  # int32 (n, m): their values as numbers of the lake
    local: np.ndarray  # int32 (n, m): as numbers of the query


def search_keys(
    rows: RowKeys,
    query: KeyQuery,
    k: int | None = 10,
    *,
    at_least: int = 1,
    row_filter: str = "auto",
    first: int | None = None,
    excluded: Sequence[int] = (),
) -> KeyMatches:
    """Find the tables that join most keys of a query, in the best choice of their columns.

    `row_filter` says how rows that lack a part of a key are sorted out. ``"none"``: their cells are
    compared. ``"xash"``, ``"bloom"``: by super keys of this name, then by their cells.
    ``"intersection"``: by posting lists of all columns of the key. ``"auto"``: by what is expected
    to be fastest, from the lengths of posting lists. `first` is the column of the key whose posting
    lists are read, the one with the shortest lists unless given. Neither changes the answer.

    Memory: some 40 bytes for each entry of the lists read, and for each pair of a row and a key
    that it holds in one table 4 for each column of the key and 12 more.
    """
    allowed = ["auto", "none", "intersection", *rows.super_keys]
    if row_filter not in allowed:
        raise InputError(
            f"The filter of rows must be one of {', '.join(allowed)}, as the index keeps these "
            f"super keys. Got {row_filter!r}."
        )
    lists, column = _lists(rows, query, first)
    keys = lists.keys
    if row_filter == "auto":
        row_filter = _cheapest_filter(rows, lists, column)
    work = np.zeros(7, np.int64)
    hits, group_ends = _hits(rows, lists, column, row_filter, work)
    hit_rows, hit_groups = (hits >> 32).astype(np.int32), hits.astype(np.int32)
    tables = _tables_of(rows, hit_rows, keys.shape[1], excluded)
    work[loops.TABLES] = len(tables)
    if row_filter in rows.super_keys:
        super_keys = rows.super_keys[row_filter]
        bits = query.super_keys(super_keys.hashing)[lists.known], super_keys.words
    else:
        bits = np.empty((len(keys), 0), np.uint64), _NO_BITS
    repeats = (keys[:, :, None] == keys[:, None, :]).sum(axis=2, dtype=np.int32)
    positions, n_keys, mappings = loops.best_tables(
        tables, hit_rows, hit_groups, group_ends, keys, repeats, column, *bits,
        rows.cells, rows.table_rows, rows.table_cells, rows.widths,
        0 if k is None else k, at_least, work,
    )  # fmt: skip
    matches, row_counts = [], query.row_counts[lists.known]
    for at in np.lexsort((tables[positions, 0], -n_keys)):
        table, begin, end, _ = tables[positions[at]].tolist()
        counts = loops.rows_joined(
            hit_rows[begin:end], hit_groups[begin:end], group_ends, keys, rows.cells,
            rows.table_rows[table], rows.table_cells[table], rows.widths[table], mappings[at],
        )  # fmt: skip
        matches.append(_match(table, mappings[at], counts, row_counts))
    counts = Work(*work.tolist())
    return KeyMatches(tuple(matches), query.n_keys, row_filter, column, counts)


def _cheapest_filter(rows: RowKeys, lists: _Lists, column: int) -> str:
    if not len(lists.keys):
        return "none"
    entries, probes, steps = loops.expected_work(lists.begins, lists.ends, lists.local, column)
    width = len(rows.cells) / rows.n_rows
    fetched = entries * _ENTRY_COST
    costs = {"none": fetched + probes * width * _CELL_COST, "intersection": steps * _STEP_COST}
    for name in rows.super_keys:
        costs[name] = fetched + probes * _PROBE_COST + len(lists.keys) * _KEY_COST
    return min(costs, key=lambda name: costs[name])


def _lists(rows: RowKeys, query: KeyQuery, column: int | None) -> tuple[_Lists, int]:
    values = rows.find(query.values)
    begins, ends = _list_bounds(rows, values)
    keys = values[query.keys]
    known = np.flatnonzero((keys >= 0).all(axis=1))
    if column is None:
        column = _shortest_lists(query.keys[known], ends - begins)
    known = known[np.argsort(query.keys[known, column], kind="stable")]
    return _Lists(begins, ends, known, keys[known], query.keys[known]), column


def _shortest_lists(keys: np.ndarray, lengths: np.ndarray) -> int:
    """Return the column of keys whose distinct values have the shortest lists together."""
    totals = []
    for values in keys.T:
        is_value = np.zeros(len(lengths), bool)
        is_value[values] = True
        totals.append(lengths[is_value].sum())
    return int(np.argmin(totals))


def _list_bounds(rows: RowKeys, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the list of each value begins and ends; that of value -1 is empty."""
    known = np.flatnonzero(values >= 0)
    begins, ends = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    begins[known] = rows.value_offsets[values[known]]
    ends[known] = rows.value_offsets[values[known] + 1]
    if ((begins < 0) | (begins > ends) | (ends > len(rows.posting_rows))).any():
        raise _damaged("A posting list")
    return begins, ends


def rows_with(rows: RowKeys, values: np.ndarray) -> np.ndarray:
    """Return whether each row holds one of some values: bool (rows,)."""
    hit_rows = loops.list_hits(*_list_bounds(rows, values), rows.posting_rows) >> 32
    if len(hit_rows) and (hit_rows.min() < 0 or hit_rows.max() >= rows.n_rows):
        raise _damaged("An entry of a posting list")
    mask = np.zeros(rows.n_rows, bool)
    mask[hit_rows] = True
    return mask


def _hits(
    rows: RowKeys, lists: _Lists, column: int, row_filter: str, work: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with the groups of keys that they may hold, sorted, and the ends of groups."""
    n_keys = len(lists.keys)
    if row_filter == "intersection":
        group_ends = np.arange(n_keys + 1)
        hits = loops.intersection_hits(
            lists.begins, lists.ends, rows.posting_rows, lists.local, work
        )
    else:
        values = lists.local[:, column]
        group_begins = np.flatnonzero(np.diff(values, prepend=-1))
        group_ends = np.append(group_begins, n_keys)
        values = values[group_begins]
        hits = loops.list_hits(lists.begins[values], lists.ends[values], rows.posting_rows)
        work[loops.ENTRIES] = len(hits)
    hits.sort()
    if len(hits) and (hits[0] < 0 or hits[-1] >> 32 >= rows.n_rows):
        raise _damaged("An entry of a posting list")
    return hits, group_ends


def _tables_of(rows: RowKeys, hit_rows: np.ndarray, m: int, excluded: Sequence[int]) -> np.ndarray:
    """Return the tables with hits as `tables_of_hits` does, those with most rows first."""
    tables = loops.tables_of_hits(hit_rows, rows.table_rows)
    mask = rows.widths[tables[:, 0]] >= m
    # numpy's isin takes a tenth of a short search.
    begin, end = (
        np.searchsorted(tables[:, 0], np.asarray(excluded, np.int64), side)
        for side in ("left", "right")
    )
    mask[begin[begin < end]] = False
    tables = tables[mask]
    return tables[np.argsort(-tables[:, 3], kind="stable")]


def _damaged(what: str) -> IndexCorruptError:
    return IndexCorruptError(
        f"{what} of an index for composite keys leads out of its arrays. Restore the index from a "
        "copy, or build it again."
    )


def _match(table: int, mapping: np.ndarray, counts: np.ndarray, row_counts: np.ndarray) -> KeyMatch:
    keys = np.flatnonzero(counts)
    n_rows, query_rows = counts[keys], row_counts[keys]
    return KeyMatch(
        table=table,
        keys=len(keys),
        columns=tuple(mapping.tolist()),
        rows=int(n_rows.sum()),
        query_rows=int(query_rows.sum()),
        joined_rows=int((query_rows * n_rows).sum()),
        most_rows=int(n_rows.max()),
        most_query_rows=int(query_rows.max()),
    )
