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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.errors import IndexCorruptError
from pexeso.runtime.jit import loop
from pexeso.runtime.ranges import ranges
from pexeso.sets.lake_columns import (
    DAMAGED_LISTS,
    LakeColumns,
    are_short_numbers,
    find_tokens,
)

_DAMAGED = -1

NAMESAKE_PERCENT = 10
CONTAINED_PERCENT = 80
KEY_PERCENT = 90
MIN_TELLING = 3

_NONE = (np.empty(0, np.int64),) * 3

MAX_PARTNERS = 64
"""Partners that a column keeps by each rule: those that share most tokens."""


def max_columns_of(n_columns: int) -> int:
    """Return the most columns that have a telling token, of a lake with so many columns.

    It grows as the square root, so that what is looked up for a column stays little.
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
    """

    left: np.ndarray
    right: np.ndarray
    shared: np.ndarray

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class OwnColumn:
    """A column that is compared with those of a lake."""

    table: str
    label: str
    tokens: pa.Array
    n_rows: int


def own_columns(columns: LakeColumns, tables: Sequence[str]) -> list[OwnColumn]:
    """Return the columns of tables of the lake, to be compared with those of other tables."""
    return [
        OwnColumn(*columns.name(column), columns.tokens(column), int(columns.n_rows[column]))
        for column in columns.rows_of(tables).tolist()
    ]


def pairs_from(columns: LakeColumns, own: Sequence[OwnColumn]) -> ColumnPairs:
    """Return the pairs of given columns with those of an index."""
    scratch = [_Scratch.of(len(of_set)) for of_set in columns.of_set]
    max_columns = max_columns_of(len(columns))
    names = columns.name_numbers_of([column.label for column in own]).tolist()
    partners = [
        _partners(columns, column, name, scratch, max_columns)
        for column, name in zip(own, names, strict=True)
    ]
    left = np.repeat(np.arange(len(own)), [len(right) for right, _ in partners])
    none = [np.empty(0, np.int64)]
    right = np.concatenate(none + [right for right, _ in partners])
    shared = np.concatenate(none + [shared for _, shared in partners])
    return ColumnPairs(left, right, shared)


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
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that a given one pairs with, ascending, and the tokens that both have."""
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
    right, shared, n_telling = map(np.concatenate, zip(_NONE, *triples, strict=True))
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
    selected = np.zeros(len(right), bool)
    for chosen in (namesakes, within, around):
        at = np.flatnonzero(chosen)
        selected[at[np.lexsort([right[at], sizes[at], -shared[at]])][:MAX_PARTNERS]] = True
    order = np.flatnonzero(selected)
    order = order[np.argsort(right[order])]
    return right[order], shared[order]


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
    if n == _DAMAGED:
        raise IndexCorruptError(DAMAGED_LISTS)
    sets = scratch.met[:n].copy()
    shared, n_telling = scratch.counts[sets].astype(int), scratch.telling[sets].astype(int)
    scratch.counts[sets] = scratch.telling[sets] = 0
    partners = columns.of_set[at][sets]
    live = partners >= 0
    return partners[live], shared[live], n_telling[live]


def _is_key(sizes: np.ndarray, n_rows: np.ndarray) -> np.ndarray:
    return (np.asarray(n_rows) > 0) & (100 * np.asarray(sizes) >= KEY_PERCENT * np.asarray(n_rows))


@loop
def count_by_lists(begins, ends, telling, list_sets, counts, telling_counts, met):
    """Count for each set the query tokens that it holds.

    Parameters
    ----------
    begins, ends : int64 (q,)
        The posting list of each query token, within `list_sets`.
    telling : bool (q,)
        Tokens that are counted by themselves too.
    list_sets : int32 (e,)
    counts, telling_counts : int32 (n_sets,)
        All 0; written to.
    met : int64 (n_sets,)
        Written to: the sets that were met, first.

    Returns
    -------
    int
        How many sets were met, `_DAMAGED` where a list names none.
    """
    n = 0
    for j in range(len(begins)):
        for at in range(begins[j], ends[j]):
            row = list_sets[at]
            if row < 0 or row >= len(counts):
                return _DAMAGED
            if counts[row] == 0:
                met[n] = row
                n += 1
            counts[row] += 1
            telling_counts[row] += telling[j]
    return n
