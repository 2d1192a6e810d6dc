"""Columns of the same values, and of nearly the same, folded into one line of an answer.

The columns found are taken in their order. One that holds nearly the same distinct values as an
earlier line becomes a copy of that line; any other is a line of its own. "Nearly" is a Jaccard
similarity: of the values that either column holds, at least 9 of 10 are held by both
(`MIN_JACCARD`). So every copy is like the column that represents it, and whether it is depends on
the two sets alone: not on the order of rows, on how values are numbered, or on the machine.

Sets that can be so alike share one of their rarest values (the prefix filter of Bayardo, Ma and
Srikant, WWW 2007): only columns that do are compared, value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from pexeso.engine.lists import distinct_numbers, offsets_of, ranges
from pexeso.runtime.ranges import mixed

MIN_JACCARD = (9, 10)
"""The smallest Jaccard similarity of a column and its copy, inclusive, as a fraction."""

MAX_VALUES = 1 << 22
"""Values of columns found that are compared, columns with the best first: about 0.3 GiB. Columns
behind these are lines of their own."""

CHUNK_SIZE = 1 << 20
"""Values of columns that are compared with one line at a time."""

MOST_LINES = 200
"""Lines that take in what is nearly equal, where fewer are wanted: as many as are re-ranked."""

MAX_REQUEST = (1 << 63) - 1
"""The largest number of columns that can be asked for."""

_SEEDS = np.array([[0x9E3779B97F4A7C15], [0xD1B54A32D192ED03]], np.uint64)


@dataclass(frozen=True)
class ColumnSets:
    """The distinct values of n columns.

    Attributes
    ----------
    offsets : int64 (n + 1,)
        Column c holds ``members[offsets[c]:offsets[c + 1]]``.
    members : int64 (m,)
        Numbers of values, each once in a column; equal values have equal numbers.
    """

    offsets: np.ndarray
    members: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    def take(self, columns: np.ndarray) -> ColumnSets:
        sizes = self.sizes[columns]
        return ColumnSets(offsets_of(sizes), self.members[ranges(self.offsets[columns], sizes)])


def fold(sets: ColumnSets, wanted: int | None = None) -> np.ndarray:
    """Find the column that represents each of n columns, in their order.

    Where some lines are wanted, at least the first `MOST_LINES` take in what is nearly equal, so
    that how many more there are does not depend on how many are wanted.

    Returns
    -------
    int64 (n,)
        A column's own number where it is a line, else the first line before it that is alike.
        A column without values is like no other.
    """
    first_of = np.arange(len(sets.sizes))
    comparable = np.flatnonzero(foldable_sizes(sets.sizes))
    if len(comparable) < 2:
        return first_of
    some = sets.take(comparable)
    # Size and two sums of mixed numbers are the same for equal sets, and for two others with a
    # probability of 2^-128.
    members, starts = some.members.astype(np.uint64), some.offsets[:-1]
    sums = np.add.reduceat(mixed(members + _SEEDS), starts, axis=1)
    signatures = np.stack([some.sizes.astype(np.uint64), *sums], 1)
    _, first, same = np.unique(signatures, axis=0, return_index=True, return_inverse=True)
    unequal = np.sort(first)  # the first column of each set, in order
    limit = len(first_of) if wanted is None else max(wanted, MOST_LINES)
    near = _fold_unequal(some.take(unequal), limit)
    first_of[comparable] = comparable[unequal[near[np.searchsorted(unequal, first[same.ravel()])]]]
    return first_of


def lines_of(first_of: np.ndarray, columns: Sequence[Any]) -> list[list[Any]]:
    """Return the columns of each line, in order: the one that represents it, then its copies."""
    lines: dict[int, list[Any]] = {}
    for first, column in zip(first_of.tolist(), columns, strict=True):
        lines.setdefault(first, []).append(column)
    return [lines[first] for first in sorted(lines)]


def foldable_sizes(sizes: np.ndarray) -> np.ndarray:
    """Return how many values of each of n columns are compared, int64 (n,).

    None of a column that can have no copy, nor of one that alone has more than `MAX_VALUES`; of the
    others, in their order, as many as are `MAX_VALUES` together.
    """
    above, below = MIN_JACCARD
    order = np.argsort(sizes, kind="stable")
    near = below * sizes[order][:-1] >= above * sizes[order][1:]  # the next has nearly as many
    may_have_copies = np.zeros(len(sizes), bool)
    may_have_copies[order[:-1]] = near
    may_have_copies[order[1:]] |= near
    compared = np.where(may_have_copies & (sizes <= MAX_VALUES), sizes, 0)
    return np.where(np.cumsum(compared) > MAX_VALUES, 0, compared)


def numbered_by_text(
    rows: np.ndarray,
    parts: Sequence[np.ndarray],
    texts_of: Sequence[Callable[[np.ndarray], pa.Array]],
) -> np.ndarray:
    """Return numbers of values of several parts that are equal where their texts are.

    `rows`, int64 (m,), are numbers of values, each in its part. `texts_of` leads from ascending
    numbers of values of a part, each once, to their texts.
    """
    known = [np.unique(rows[part], return_inverse=True) for part in parts]
    texts = [
        read(distinct).cast(pa.large_string())
        for read, (distinct, _) in zip(texts_of, known, strict=True)
    ]
    encoded = pa.chunked_array(texts, pa.large_string()).combine_chunks().dictionary_encode()
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    renamed, begin = np.zeros(len(rows), np.int64), 0
    for part, (distinct, inverse) in zip(parts, known, strict=True):
        renamed[part] = numbers[begin : begin + len(distinct)][inverse]
        begin += len(distinct)
    return renamed


def _fold_unequal(sets: ColumnSets, limit: int) -> np.ndarray:
    """Do as `fold` for columns that are not empty, no two of them equal."""
    sizes = sets.sizes
    first_of = np.arange(len(sizes))
    owner = np.repeat(first_of, sizes)
    # Members renamed by rank, rarest first. Which of two equally rare values comes first depends on
    # their numbers, and no answer on that.
    _, value, counts = np.unique(sets.members, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    values = rank[value.ravel()]
    values = values[np.lexsort((values, owner))]
    above, below = MIN_JACCARD
    # Two columns with enough in common have a value in common among these rarest of each. Unequal
    # ones have at least nine values in common, so smaller columns need not be looked at.
    n_rare = np.where(sizes < above, 0, sizes - -(-above * sizes // below) + 1)
    rare = ranges(sets.offsets[:-1], n_rare)
    rare_value = values[rare]
    by_value = np.argsort(rare_value, kind="stable")  # columns ascend within a value
    held_owner = owner[rare][by_value]
    # Only later columns are candidates of a column.
    begins = np.empty(len(rare), np.int64)
    begins[by_value] = np.arange(len(rare)) + 1
    n_later = np.searchsorted(rare_value[by_value], rare_value, side="right") - begins
    offsets = np.append(0, np.cumsum(n_rare))
    has_candidates = np.diff(np.append(0, np.cumsum(n_later))[offsets]) > 0
    is_of_line, n_lines = np.zeros(int(values.max()) + 1, bool), 0
    for line in range(len(sizes)):
        if first_of[line] != line:
            continue
        n_lines += 1
        if n_lines > limit:
            break
        if not has_candidates[line]:
            continue
        span = slice(offsets[line], offsets[line + 1])
        others = distinct_numbers(held_owner[ranges(begins[span], n_later[span])])
        fewer, more = np.minimum(sizes[line], sizes[others]), np.maximum(sizes[line], sizes[others])
        others = others[(first_of[others] == others) & (below * fewer >= above * more)]
        if not len(others):
            continue
        line_values = values[sets.offsets[line] : sets.offsets[line + 1]]
        is_of_line[line_values] = True
        shared = _sums_over(sets, others, values, is_of_line)
        is_of_line[line_values] = False
        alike = below * shared >= above * (sizes[line] + sizes[others] - shared)
        first_of[others[alike]] = line
    return first_of


def _sums_over(
    sets: ColumnSets, columns: np.ndarray, values: np.ndarray, is_wanted: np.ndarray
) -> np.ndarray:
    """Count the wanted values of each of some columns, int64; not all are read at a time."""
    sizes = sets.sizes[columns]
    pieces = np.split(
        np.arange(len(columns)), np.flatnonzero(np.diff(np.cumsum(sizes) // CHUNK_SIZE)) + 1
    )
    counts = [
        np.add.reduceat(
            is_wanted[values[ranges(sets.offsets[columns[piece]], sizes[piece])]],
            offsets_of(sizes[piece])[:-1],
            dtype=np.int64,
        )
        for piece in pieces
    ]
    return np.concatenate(counts)


def first_request(k: int, *, folds: bool) -> int:
    """Return how many columns to ask for where k lines are wanted: more, since some may be copies.

    One more than k also shows whether there are more.
    """
    return min(2 * k + 8 if folds else k + 1, MAX_REQUEST)


def next_request(n: int) -> int:
    return min(4 * n, MAX_REQUEST)
