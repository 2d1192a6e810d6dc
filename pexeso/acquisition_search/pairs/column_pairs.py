"""Pairs of columns of different tables that may join by equal values.

Two columns of n and m distinct tokens (`pexeso.lake.tokens`), of which s are shared, are a pair if

(a) their names are equal but for case and separators, and s >= `NAMESAKE_PERCENT` percent of the
    smaller of n and m, s at least 1; or
(b) one contains the other, s >= `CONTAINED_PERCENT` percent of n or of m, at least `MIN_TELLING` of
    the shared tokens are telling, and one of the two is nearly a key: its distinct tokens are at
    least `KEY_PERCENT` percent of the rows of its table.

A token is telling if at most `max_columns_of` columns have it and it is no number of at most four
digits before its point. Small numbers stand in columns of all sorts: each table with numbered rows
would join each other one by them. Such keys join by rule (a).

Of a column that has more partners than `limit`, those are kept that share most tokens: by rule (a),
and by rule (b) of those that contain it. A pair is kept if one of the two keeps it. What a limit
leaves out is counted.

All pairs of a lake are found without comparing all columns: a column that has k of the n tokens of
another has one of any n - k + 1 of them, so the rarest are looked up (prefix filter), at most
`max_columns_of` columns each; candidates are counted exactly. Pairs by rule (a) are counted within
columns of one name.

Memory: `LakeColumns`, `LakeTokens`; about 100 bytes for each of `TOKENS_AT_ONCE` tokens; 24 bytes
for each pair that is kept, in each shard and of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.acquisition_search.pairs.containers import (
    ContainmentRule,
    ScoredPairs,
    chunks,
    containers,
    joined,
    keep_best,
)
from pexeso.acquisition_search.pairs.lake_columns import (
    DAMAGED_LISTS,
    LakeColumns,
    are_short_numbers,
    find_tokens,
)
from pexeso.acquisition_search.pairs.lake_tokens import LakeTokens
from pexeso.acquisition_search.pairs.pair_loops import (
    DAMAGED,
    count_by_lists,
    find_namesakes,
)
from pexeso.errors import IndexCorruptError
from pexeso.runtime.ranges import ranges

NAMESAKE_PERCENT = 10
CONTAINED_PERCENT = 80
KEY_PERCENT = 90
MIN_TELLING = 3

DEFAULT_LIMIT = 64
"""Partners that a column keeps by each rule."""


def max_columns_of(n_columns: int) -> int:
    """Return the most columns that have a telling token, of a lake with so many columns.

    It grows as the square root, so that what is looked up for a column stays little.

    Examples
    --------
    >>> max_columns_of(100), max_columns_of(100_000)
    (50, 1585)
    """
    return 5 * (math.isqrt(n_columns - 1) + 1) if n_columns else 0


@dataclass(frozen=True, eq=False)
class ColumnPairs:
    """Pairs of columns.

    Attributes
    ----------
    left, right : int64 (p,)
        Numbers of columns; each pair is there once.
    shared : int64 (p,)
        Distinct tokens that both have.
    n_left_out : int
        Partners that a limit left out, as counted from either column.
    """

    left: np.ndarray
    right: np.ndarray
    shared: np.ndarray
    n_left_out: int = 0

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class OwnColumn:
    """A column that is compared with those of a lake.

    Attributes
    ----------
    table, label : str
        Names; columns of the lake in a table of this name are none of its partners.
    tokens : pyarrow.Array
        Its distinct tokens.
    n_rows : int
        Rows of its table.
    """

    table: str
    label: str
    tokens: pa.Array
    n_rows: int


def all_pairs(columns: LakeColumns, *, limit: int | None = DEFAULT_LIMIT) -> ColumnPairs:
    """Return the pairs of all columns of an index.

    Parameters
    ----------
    columns : LakeColumns
    limit : int or None
        See the module; None for no limit, with memory for all pairs.

    Returns
    -------
    ColumnPairs
        ``left < right``, ordered.
    """
    tokens = LakeTokens.of(columns)
    max_partners = np.iinfo(np.int64).max if limit is None else limit
    triples, dropped = [], 0
    for part in (_containers, _namesakes):
        for left, right, shared, n in part(columns, tokens, max_partners):
            triples.append((np.minimum(left, right), np.maximum(left, right), shared))
            dropped += n
    left, right, shared = joined(triples)
    _, first = np.unique(left * len(columns) + right, return_index=True)
    return ColumnPairs(left[first], right[first], shared[first], dropped)


def own_columns(columns: LakeColumns, tables: Sequence[str]) -> list[OwnColumn]:
    """Return the columns of tables of the lake, to be compared with those of other tables."""
    return [
        OwnColumn(*columns.name(column), columns.tokens(column), int(columns.n_rows[column]))
        for column in columns.rows_of(tables).tolist()
    ]


def pairs_from(
    columns: LakeColumns, own: Sequence[OwnColumn], *, limit: int | None = DEFAULT_LIMIT
) -> ColumnPairs:
    """Return the pairs of given columns with those of an index.

    Parameters
    ----------
    columns : LakeColumns
        Columns of the index; of its files only the posting lists of the given tokens are read.
    own : sequence of OwnColumn
        Columns of the lake or of tables elsewhere.
    limit : int or None
        Partners of each given column, by rule (a) and by rule (b), those that share most tokens.

    Returns
    -------
    ColumnPairs
        ``left`` counts the given columns, ``right`` those of the index; ordered.

    Notes
    -----
    A step for each entry of the posting lists; memory is 16 bytes for each column of the index.
    """
    scratch = [_Scratch.of(len(of_set)) for of_set in columns.of_set]
    max_columns = max_columns_of(len(columns))
    names = columns.name_numbers_of([column.label for column in own]).tolist()
    partners = [
        _partners(columns, column, name, scratch, max_columns, limit)
        for column, name in zip(own, names, strict=True)
    ]
    left = np.repeat(np.arange(len(own)), [len(group.right) for group in partners])
    none = [np.empty(0, np.int64)]
    right = np.concatenate(none + [group.right for group in partners])
    shared = np.concatenate(none + [group.shared for group in partners])
    return ColumnPairs(left, right, shared, sum(group.n_left_out for group in partners))


@dataclass(frozen=True, eq=False)
class _Partners:
    right: np.ndarray
    shared: np.ndarray
    n_left_out: int


@dataclass(frozen=True, eq=False)
class _Scratch:
    counts: np.ndarray
    telling: np.ndarray
    met: np.ndarray

    @classmethod
    def of(cls, n_sets: int) -> _Scratch:
        return cls(np.zeros(n_sets, np.int32), np.zeros(n_sets, np.int32), np.empty(n_sets, int))


def _partners(
    columns: LakeColumns,
    own_column: OwnColumn,
    name: int,
    scratch: list[_Scratch],
    max_columns: int,
    limit: int | None,
) -> _Partners:
    tokens = own_column.tokens.cast(pa.large_string())
    numbers = [find_tokens(index, tokens) for index in columns.indexes]
    frequencies = np.zeros(len(tokens), np.int64)
    for at in range(len(columns.shards)):
        frequencies += _live_lengths(columns, at, numbers[at])
    telling = (frequencies <= max_columns) & ~are_short_numbers(tokens)
    triples = [
        _counted(columns, at, numbers[at], telling, scratch[at])
        for at in range(len(columns.shards))
    ]
    right, shared, n_telling = joined(triples)
    elsewhere = columns.table_numbers[right] != columns.table_number(own_column.table)
    elsewhere &= (columns.name_numbers[right] == name) | (n_telling >= MIN_TELLING)
    right, shared, n_telling = (array[elsewhere] for array in (right, shared, n_telling))
    sizes, n_tokens = columns.sizes[right], len(tokens)
    same = columns.name_numbers[right] == name
    namesakes = same & (100 * shared >= NAMESAKE_PERCENT * np.minimum(sizes, n_tokens))
    keys = _is_key(sizes, columns.n_rows[right]) | _is_key(n_tokens, own_column.n_rows)
    usable = keys & (n_telling >= MIN_TELLING)
    within = usable & (100 * shared >= CONTAINED_PERCENT * n_tokens)
    around = usable & ~within & (100 * shared >= CONTAINED_PERCENT * sizes)
    selected, dropped = np.zeros(len(right), bool), 0
    for chosen in (namesakes, within, around):
        at = np.flatnonzero(chosen)
        best = at[np.lexsort([right[at], sizes[at], -shared[at]])][:limit]
        selected[best] = True
        dropped += len(at) - len(best)
    order = np.flatnonzero(selected)
    order = order[np.argsort(right[order])]
    return _Partners(right[order], shared[order], dropped)


def _live_lengths(columns: LakeColumns, at: int, numbers: np.ndarray) -> np.ndarray:
    index, positions = columns.indexes[at], np.flatnonzero(numbers >= 0)
    offsets = np.asarray(index.token_offsets)
    begins = offsets[numbers[positions]].astype(np.int64)
    sizes = offsets[numbers[positions] + 1] - begins
    lengths = np.zeros(len(numbers), np.int64)
    lengths[positions] = sizes
    if len(columns.shards[at].deleted):
        deleted = np.isin(_gathered(index.list_sets, begins, sizes), columns.shards[at].deleted)
        n_deleted = np.concatenate([[0], np.cumsum(deleted)])
        ends = np.cumsum(sizes)
        lengths[positions] -= n_deleted[ends] - n_deleted[ends - sizes]
    return lengths


def _gathered(array: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return np.asarray(array)[ranges(begins, sizes)]


def _counted(
    columns: LakeColumns, at: int, numbers: np.ndarray, telling: np.ndarray, scratch: _Scratch
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of a shard that share tokens, how many, and how many telling ones."""
    index, mask = columns.indexes[at], numbers >= 0
    offsets = np.asarray(index.token_offsets)
    begins, ends = (offsets[numbers[mask] + step].astype(np.int64) for step in (0, 1))
    lists = np.asarray(index.list_sets)
    n = count_by_lists(
        begins, ends, telling[mask], lists, scratch.counts, scratch.telling, scratch.met
    )
    if n == DAMAGED:
        raise IndexCorruptError(DAMAGED_LISTS)
    sets = scratch.met[:n].copy()
    shared, n_telling = scratch.counts[sets].astype(int), scratch.telling[sets].astype(int)
    scratch.counts[sets] = scratch.telling[sets] = 0
    partners = columns.of_set[at][sets]
    live = partners >= 0
    return partners[live], shared[live], n_telling[live]


def _is_key(sizes: np.ndarray, n_rows: np.ndarray) -> np.ndarray:
    return (np.asarray(n_rows) > 0) & (100 * np.asarray(sizes) >= KEY_PERCENT * np.asarray(n_rows))


def _needed(sizes: np.ndarray) -> np.ndarray:
    """Return the least number of tokens that contain sets of these sizes."""
    return -(-CONTAINED_PERCENT * sizes // 100)


def _containers(columns: LakeColumns, tokens: LakeTokens, limit: int) -> Iterator[ScoredPairs]:
    """Yield what `containers` does, by rule (b)."""
    key = _is_key(columns.sizes, columns.n_rows)
    max_columns = max_columns_of(len(columns))
    needed = _needed(columns.sizes)
    rule = ContainmentRule(needed, MIN_TELLING, max_columns, key, columns.sizes)
    return containers(columns, tokens, rule, limit)


def _namesakes(columns: LakeColumns, tokens: LakeTokens, limit: int) -> Iterator[ScoredPairs]:
    """Yield columns, those of the same name that share tokens, as `_containers` does."""
    names = columns.name_numbers
    counts = np.bincount(names[names >= 0], minlength=1)
    several = np.flatnonzero((names >= 0) & (counts[np.maximum(names, 0)] > 1))
    ordered = several[np.argsort(names[several], kind="stable")]
    for lefts, blocks in _blocks(names[ordered], columns.sizes[ordered]):
        left, dropped = ordered[lefts], 0
        of_left, triples = tokens.of_columns(left), []
        for block in blocks:
            *some, n = _namesakes_in(columns, tokens, left, of_left, ordered[block], limit)
            triples.append(some)
            dropped += n
        left, right, shared, n = keep_best(triples, limit, columns.sizes)
        yield left, right, shared, dropped + n


def _namesakes_in(
    columns: LakeColumns,
    tokens: LakeTokens,
    left: np.ndarray,
    of_left: tuple[np.ndarray, np.ndarray],
    right: np.ndarray,
    limit: int,
) -> ScoredPairs:
    """Return namesakes of some columns among others, of one name or of the same names."""
    names, n_tokens = columns.name_numbers, max(len(tokens.frequencies), 1)
    offsets, right_tokens = tokens.of_columns(right)
    # A run of equal (name, token) is a posting list within a name.
    keys = np.repeat(names[right], np.diff(offsets)) * n_tokens + right_tokens
    order = np.argsort(keys, kind="stable")
    members = np.repeat(right, np.diff(offsets))[order]
    distinct, begins = np.unique(keys[order], return_index=True)
    left_keys = np.repeat(names[left], np.diff(of_left[0])) * n_tokens + of_left[1]
    runs = np.minimum(np.searchsorted(distinct, left_keys), len(distinct) - 1)
    position = np.full(len(columns), -1, np.int64)
    position[right] = np.arange(len(right))
    return find_namesakes(
        left,
        of_left[0],
        np.where(distinct[runs] == left_keys, runs, -1),
        np.append(begins, len(members)),
        members,
        (columns.table_numbers, columns.sizes, position, right),
        limit,
        NAMESAKE_PERCENT,
    )


def _blocks(names: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[slice, list[slice]]]:
    """Yield runs of columns, and those that together hold all of the same names.

    Parameters
    ----------
    names, sizes : int64 (m,)
        Name and tokens of each column, ascending by name.
    """
    if not len(names):
        return
    starts = np.flatnonzero(np.diff(names, prepend=-1))
    ends = np.append(starts[1:], len(names))
    for part in chunks(np.add.reduceat(sizes, starts)):
        first, end = int(starts[part.start]), int(ends[part.stop - 1])
        pieces = [slice(first, end)]
        if part.stop - part.start == 1:
            pieces = [
                slice(first + chunk.start, first + chunk.stop) for chunk in chunks(sizes[first:end])
            ]
        yield from ((piece, pieces) for piece in pieces)
