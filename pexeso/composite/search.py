"""Exact search for the tables that join most keys of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pexeso.composite.loops import (
    ABANDONED,
    ENTRIES,
    EVALUATED,
    HELD,
    PASSED,
    PROBES,
    best_tables,
    intersection_hits,
    list_hits,
    rows_joined,
)
from pexeso.composite.query import KeyQuery, first_column
from pexeso.composite.row_keys import RowKeys
from pexeso.errors import InputError
from pexeso.runtime.ranges import offsets_of

ENTRY_COST, CELL_COST, PROBE_COST, PASSED_COST, STEP_COST = 110, 4, 4, 25, 8
"""Nanoseconds, measured on two lakes: to fetch the row of an entry of a list, to compare a cell, to
try a super key, to take a pair that passes, and for a step of looking a row up in a list. What they
decide is speed, never the answer."""

_NO_BITS = np.empty((0, 0), np.uint64)
_NO_BITS.flags.writeable = False  # as super keys are, so that loops are compiled once


@dataclass(frozen=True)
class Work:
    """What a search read and compared.

    Attributes
    ----------
    entries : int
        Entries of posting lists.
    tables : int
        Tables with a row in these lists, as wide as the key at least.
    evaluated, abandoned : int
        Of these, tables whose rows were tried; and tables that were left before the last one. The
        others could not be among the tables wanted, as they have too few rows in the lists.
    probes : int
        Pairs of a row and a key that were tried. Keys with a value that is nowhere in the lake are
        never tried.
    passed : int
        Pairs that the filter let pass.
    held : int
        Pairs of these where the row holds the whole key, in whatever columns.
    """

    entries: int
    tables: int
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
    """A table that joins the query.

    Attributes
    ----------
    table : int
    keys : int
        Distinct keys of the query that are rows of the table in `columns`: the most that any
        choice of columns joins.
    columns : tuple of int
        The column of the table for each column of the key, all different; the first such choice
        if several join as many keys.
    rows, query_rows : int
        Rows of the table, and of the query, that are joined to some row.
    joined_rows : int
        Rows of the inner join.
    most_rows, most_query_rows : int
        Largest number of rows of the table, and of the query, with the same key.
    """

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
        """Return how many rows of the query and of the table meet: "1:1", "1:n", "n:1" or "n:m"."""
        return relation_of(self.most_query_rows, self.most_rows)


def relation_of(most_query_rows: int, most_rows: int) -> str:
    """Return how many rows of two tables meet: "1:1", "1:n", "n:1" or "n:m".

    Parameters
    ----------
    most_query_rows, most_rows : int
        Largest number of rows of each table with the same key, 1 or more.

    Examples
    --------
    >>> relation_of(1, 1), relation_of(1, 4), relation_of(2, 1), relation_of(2, 4)
    ('1:1', '1:n', 'n:1', 'n:m')
    """
    if most_rows > 1 and most_query_rows > 1:
        return "n:m"
    return f"{'n' if most_query_rows > 1 else 1}:{'n' if most_rows > 1 else 1}"


@dataclass(frozen=True)
class KeyMatches:
    """The answer to a query: tables by the number of keys that they join, equal ones by number.

    Attributes
    ----------
    matches : tuple of KeyMatch
        Tables that join no key are never among them.
    n_keys : int
        Distinct keys of the query.
    row_filter : str
        How rows were sorted out: see `search_keys`.
    first : int
        The column of the key that was looked up first.
    work : Work
    """

    matches: tuple[KeyMatch, ...]
    n_keys: int
    row_filter: str
    first: int
    work: Work


@dataclass(frozen=True, eq=False)
class _Hits:
    """Rows of posting lists with the keys that they may hold, sorted by row.

    Attributes
    ----------
    rows, groups : int32 (h,)
    group_ends, group_keys : int64 (g + 1,), int64
        The keys of each group.
    """

    rows: np.ndarray
    groups: np.ndarray
    group_ends: np.ndarray
    group_keys: np.ndarray


def search_keys(
    rows: RowKeys,
    query: KeyQuery,
    k: int | None = 10,
    *,
    at_least: int = 1,
    row_filter: str = "auto",
    first: str | int = "postings",
    excluded: Sequence[int] = (),
) -> KeyMatches:
    """Find the tables that join most keys of a query, in the best choice of their columns.

    Parameters
    ----------
    rows : RowKeys
    query : KeyQuery
        Normalised as the tables are.
    k : int or None
        Tables wanted; None for all that join `at_least` keys.
    at_least : int
        Least number of distinct keys that a table joins, from 1 on.
    row_filter : str
        How rows that lack a part of a key are sorted out. ``"none"``: their cells are compared.
        ``"xash"``, ``"bloom"``: by super keys of this name, then by their cells.
        ``"intersection"``: by posting lists of all columns of the key. ``"auto"``: by what is
        expected to be fastest, from the lengths of posting lists. The answer is the same.
    first : str or int
        The column of the key whose posting lists are read: see `first_column`. The answer is the
        same.
    excluded : sequence of int
        Numbers of tables that are not wanted, as that of the query.

    Returns
    -------
    KeyMatches

    Raises
    ------
    InputError
        k, `at_least` or the filter is not one of those allowed.

    Notes
    -----
    Memory: some 40 bytes for each entry of the lists read, and for each pair of a row and a key
    that it holds in one table 4 for each column of the key and 12 more. Time: a step for each probe
    and for each cell compared, and, for the mapping of a table, for each pair and each choice of
    columns so far that can still be the best. There are few such choices, unless a table has
    dozens of columns that hold the same few values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.composite.query import key_query
    >>> from pexeso.composite.row_keys import build_row_keys
    >>> table = pa.table({"last": ["hopper", "turing"], "first": ["grace", "alan"]})
    >>> query = key_query([pa.array(["grace", "alan"]), pa.array(["hopper", "kay"])])
    >>> [(match.table, match.keys, match.columns) for match in
    ...  search_keys(build_row_keys([table]), query).matches]
    [(0, 1, (1, 0))]
    """
    require_limits(k, at_least)
    _require_filter(rows, row_filter)
    numbers = query.numbers_in(rows)
    offsets = rows.value_offsets
    lengths = np.where(numbers >= 0, offsets[numbers + 1] - offsets[numbers], 0)
    column = first_column(query, first, lengths) if query.n_keys else 0
    known = np.flatnonzero((numbers >= 0).all(axis=1))
    keys = numbers[known]
    if row_filter == "auto":
        row_filter = cheapest_filter(rows, keys, lengths[known], column)
    work = np.zeros(6, np.int64)
    hits = _hits(rows, keys, column, row_filter, work)
    tables, begins, ends = _tables_of(rows, hits.rows, keys.shape[1], excluded)
    if row_filter in rows.super_keys:
        super_keys = rows.super_keys[row_filter]
        bits = query.super_keys(super_keys.hashing)[known], super_keys.words
    else:
        bits = np.empty((len(keys), 0), np.uint64), _NO_BITS
    repeats = (keys[:, :, None] == keys[:, None, :]).sum(axis=2, dtype=np.int32)
    found, n_keys, mappings = best_tables(
        tables, begins, ends, hits.rows, hits.groups, hits.group_ends, hits.group_keys,
        keys, repeats, column, *bits, rows.cells, rows.table_rows, rows.table_cells, rows.widths,
        0 if k is None else k, at_least, work,
    )  # fmt: skip
    matches, row_counts = [], query.row_counts[known]
    for at in np.lexsort((tables[found], -n_keys)):
        table, of_table = int(tables[found[at]]), slice(begins[found[at]], ends[found[at]])
        counts = rows_joined(
            hits.rows[of_table], hits.groups[of_table], hits.group_ends, hits.group_keys,
            keys, rows.cells, rows.table_rows[table], rows.table_cells[table], rows.widths[table],
            mappings[at],
        )  # fmt: skip
        matches.append(_match(table, mappings[at], counts, row_counts))
    return KeyMatches(tuple(matches), query.n_keys, row_filter, column, _work(work, len(tables)))


def cheapest_filter(rows: RowKeys, keys: np.ndarray, lengths: np.ndarray, column: int) -> str:
    """Return the filter that is expected to take the least time.

    Parameters
    ----------
    rows : RowKeys
    keys : int32 (n, m)
        As numbers of values.
    lengths : int64 (n, m)
        Of the posting list of each value.
    column : int
        The column of the key that is looked up first.

    Notes
    -----
    What is read is known from the lengths; of pairs that pass a filter it is known that they are
    at most as many as the shortest lists of the keys have entries, false ones apart. So nothing
    tells two super keys apart, and the one that the index names first is taken.
    """
    if not len(keys):
        return "none"
    _, at = np.unique(keys[:, column], return_index=True)
    entries, probes = int(lengths[at, column].sum()), int(lengths[:, column].sum())
    shortest = np.sort(lengths, axis=1)
    fitting = int(shortest[:, 0].sum())
    width = len(rows.cells) / max(rows.n_rows, 1)
    # Most rows are not in the second list either, so the lists behind it are seldom read.
    steps = float((shortest[:, :1] * np.log2(1 + shortest[:, 1:2])).sum())
    fetched = entries * ENTRY_COST
    costs = {"none": fetched + probes * width * CELL_COST, "intersection": steps * STEP_COST}
    for name in rows.super_keys:
        costs[name] = fetched + probes * PROBE_COST + fitting * PASSED_COST
    return min(costs, key=lambda name: costs[name])


def _hits(rows: RowKeys, keys: np.ndarray, column: int, row_filter: str, work: np.ndarray) -> _Hits:
    lists = rows.value_offsets, rows.posting_rows
    if row_filter == "intersection":
        found, groups = intersection_hits(*lists, keys, work)
        group_keys = np.arange(len(keys))
        group_ends = np.arange(len(keys) + 1)
    else:
        values, group_of_key = np.unique(keys[:, column], return_inverse=True)
        found, groups = list_hits(*lists, values)
        work[ENTRIES] = len(found)
        group_keys = np.argsort(group_of_key, kind="stable")
        group_ends = offsets_of(np.bincount(group_of_key, minlength=len(values)))
    # Rows of a table lie together then, and their cells are met in the order of memory.
    order = np.argsort(found, kind="stable")
    return _Hits(found[order], groups[order], group_ends, group_keys)


def _tables_of(
    rows: RowKeys, hit_rows: np.ndarray, m: int, excluded: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tables with hits, those with most first, and where the hits of each lie."""
    table_of_hit = np.searchsorted(rows.table_rows, hit_rows, side="right") - 1
    tables, begins, counts = np.unique(table_of_hit, return_index=True, return_counts=True)
    wanted = (rows.widths[tables] >= m) & ~np.isin(tables, np.asarray(excluded, np.int64))
    tables, begins, counts = tables[wanted], begins[wanted], counts[wanted]
    order = np.lexsort((tables, -counts))
    return tables[order], begins[order], (begins + counts)[order]


def _match(table: int, mapping: np.ndarray, counts: np.ndarray, row_counts: np.ndarray) -> KeyMatch:
    """Make the match of a table from the rows of it, and of the query, that have each key."""
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


def _work(work: np.ndarray, n_tables: int) -> Work:
    return Work(
        entries=int(work[ENTRIES]),
        tables=n_tables,
        evaluated=int(work[EVALUATED]),
        abandoned=int(work[ABANDONED]),
        probes=int(work[PROBES]),
        passed=int(work[PASSED]),
        held=int(work[HELD]),
    )


def require_limits(k: int | None, at_least: int) -> None:
    """Raise InputError unless `k` is a number of tables or None, and `at_least` one of keys."""
    for name, got, also in (("k", k, " or None"), ("at_least", at_least, "")):
        if got is None and also:
            continue
        if isinstance(got, bool) or not isinstance(got, int | np.integer) or got < 1:
            raise InputError(f"{name} must be an integer from 1 on{also}. Got {got!r}.")


def _require_filter(rows: RowKeys, row_filter: str) -> None:
    allowed = ["auto", "none", "intersection", *rows.super_keys]
    if row_filter not in allowed:
        raise InputError(
            f"The filter of rows must be one of {', '.join(allowed)}, as the index keeps these "
            f"super keys. Got {row_filter!r}."
        )
