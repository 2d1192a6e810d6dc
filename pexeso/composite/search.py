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
    expected_work,
    intersection_hits,
    list_hits,
    rows_joined,
    tables_of_hits,
)
from pexeso.composite.query import KeyQuery, first_column
from pexeso.composite.row_keys import RowKeys
from pexeso.errors import IndexCorruptError, InputError

_ENTRY_COST, _CELL_COST, _PROBE_COST, _KEY_COST, _STEP_COST = 55, 2, 2, 400, 7.5
"""Nanoseconds, measured on two lakes: to fetch the row of an entry of a list, to compare a cell, to
try a super key, to hash a key, and for a step of looking a row up in a list. What they decide is
speed, never the answer."""

_NO_BITS = np.empty((0, 0), np.uint64)
_NO_BITS.flags.writeable = False  # as super keys are, so that loops are compiled once


@dataclass(frozen=True)
class Work:
    """What a search read and compared.

    Attributes
    ----------
    tables : int
        Tables with a row in these lists, as wide as the key at least.
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
    """A table that joins the query."""

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
    n_keys : int
        Distinct keys of the query.
    row_filter : str
        How rows were sorted out: see `search_keys`.
    """

    matches: tuple[KeyMatch, ...]
    n_keys: int
    row_filter: str
    first: int
    work: Work


@dataclass(frozen=True, eq=False)
class _Lists:
    """The posting lists of the values of a query, and its keys whose values are all in the lake.

    Attributes
    ----------
    begins, ends : int64 (u,)
        Where the list of each value of the query begins and ends; an empty one is of a value that
        the lake lacks.
    known : int64 (n,)
        Keys of the query, those with the same value in the column looked up first together.
    keys : int32 (n, m)
        Their values as numbers of the lake.
    local : int32 (n, m)
        As numbers of the query.
    """

    begins: np.ndarray
    ends: np.ndarray
    known: np.ndarray
    keys: np.ndarray
    local: np.ndarray


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
    lists, column = _lists(rows, query, first)
    keys = lists.keys
    if row_filter == "auto":
        row_filter = _cheapest_filter(rows, lists, column)
    work = np.zeros(6, np.int64)
    hits, group_ends = _hits(rows, lists, column, row_filter, work)
    hit_rows, hit_groups = (hits >> 32).astype(np.int32), hits.astype(np.int32)
    tables = _tables_of(rows, hit_rows, keys.shape[1], excluded)
    if row_filter in rows.super_keys:
        super_keys = rows.super_keys[row_filter]
        bits = query.super_keys(super_keys.hashing)[lists.known], super_keys.words
    else:
        bits = np.empty((len(keys), 0), np.uint64), _NO_BITS
    repeats = (keys[:, :, None] == keys[:, None, :]).sum(axis=2, dtype=np.int32)
    positions, n_keys, mappings = best_tables(
        tables, hit_rows, hit_groups, group_ends, keys, repeats, column, *bits,
        rows.cells, rows.table_rows, rows.table_cells, rows.widths,
        0 if k is None else k, at_least, work,
    )  # fmt: skip
    matches, row_counts = [], query.row_counts[lists.known]
    for at in np.lexsort((tables[positions, 0], -n_keys)):
        table, begin, end, _ = tables[positions[at]].tolist()
        counts = rows_joined(
            hit_rows[begin:end], hit_groups[begin:end], group_ends, keys, rows.cells,
            rows.table_rows[table], rows.table_cells[table], rows.widths[table], mappings[at],
        )  # fmt: skip
        matches.append(_match(table, mappings[at], counts, row_counts))
    return KeyMatches(tuple(matches), query.n_keys, row_filter, column, _work(work, len(tables)))


def _cheapest_filter(rows: RowKeys, lists: _Lists, column: int) -> str:
    """Return the filter that is expected to take the least time.

    What is read is known from the lengths of lists. What passes a filter is not, so nothing tells
    two super keys apart, and the one that the index names first is taken.
    """
    if not len(lists.keys):
        return "none"
    entries, probes, steps = expected_work(lists.begins, lists.ends, lists.local, column)
    width = len(rows.cells) / rows.n_rows
    fetched = entries * _ENTRY_COST
    costs = {"none": fetched + probes * width * _CELL_COST, "intersection": steps * _STEP_COST}
    for name in rows.super_keys:
        costs[name] = fetched + probes * _PROBE_COST + len(lists.keys) * _KEY_COST
    return min(costs, key=lambda name: costs[name])


def _lists(rows: RowKeys, query: KeyQuery, first: str | int) -> tuple[_Lists, int]:
    """Return the lists of a query, and the column of the key that is looked up first."""
    values = rows.find(query.values)
    begins, ends = _list_bounds(rows, values)
    keys = values[query.keys]
    known = np.flatnonzero((keys >= 0).all(axis=1))
    column = first_column(query, first, ends - begins, known) if query.n_keys else 0
    known = known[np.argsort(query.keys[known, column], kind="stable")]
    local = query.keys[known]
    return _Lists(begins, ends, known, keys[known], local), column


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
    hit_rows = list_hits(*_list_bounds(rows, values), rows.posting_rows) >> 32
    if len(hit_rows) and (hit_rows.min() < 0 or hit_rows.max() >= rows.n_rows):
        raise _damaged("An entry of a posting list")
    mask = np.zeros(rows.n_rows, bool)
    mask[hit_rows] = True
    return mask


def _hits(
    rows: RowKeys, lists: _Lists, column: int, row_filter: str, work: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with the groups of keys that they may hold, sorted, and the ends of groups.

    Rows are in the upper 32 bits, groups in the lower. Rows of a table lie together then, and their
    cells are met in the order of memory.
    """
    n_keys = len(lists.keys)
    if row_filter == "intersection":
        group_ends = np.arange(n_keys + 1)
        hits = intersection_hits(lists.begins, lists.ends, rows.posting_rows, lists.local, work)
    else:
        values = lists.local[:, column]
        group_begins = np.flatnonzero(np.diff(values, prepend=-1))
        group_ends = np.append(group_begins, n_keys)
        values = values[group_begins]
        hits = list_hits(lists.begins[values], lists.ends[values], rows.posting_rows)
        work[ENTRIES] = len(hits)
    hits.sort()
    if len(hits) and (hits[0] < 0 or hits[-1] >> 32 >= rows.n_rows):
        raise _damaged("An entry of a posting list")
    return hits, group_ends


def _tables_of(rows: RowKeys, hit_rows: np.ndarray, m: int, excluded: Sequence[int]) -> np.ndarray:
    """Return the tables with hits as `tables_of_hits` does, those with most rows first."""
    tables = tables_of_hits(hit_rows, rows.table_rows)
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
    for name, value, also in (("k", k, " or None"), ("at_least", at_least, "")):
        if value is None and also:
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be an integer from 1 on{also}. Got {value!r}.")


def _require_filter(rows: RowKeys, row_filter: str) -> None:
    allowed = ["auto", "none", "intersection", *rows.super_keys]
    if row_filter not in allowed:
        raise InputError(
            f"The filter of rows must be one of {', '.join(allowed)}, as the index keeps these "
            f"super keys. Got {row_filter!r}."
        )
