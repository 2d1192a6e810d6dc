"""Columns of the same values, and of nearly the same, folded into one line of an answer.

The columns found are taken in their order. One that holds nearly the same distinct values as an
earlier line becomes a copy of that line; any other is a line of its own. "Nearly" is a Jaccard
similarity: of the values that either column holds, at least 9 of 10 are held by both
(`MIN_JACCARD`). So every copy is like the column that stands for it, and whether it is depends on
the two sets alone: not on the order of rows, on how values are numbered, or on the machine.

Sets that can be so alike share one of their rarest values (the prefix filter of Bayardo, Ma and
Srikant, WWW 2007): only columns that do are compared, value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.engine.damage import damage_made_plain
from pexeso.errors import IndexCorruptError
from pexeso.results.ranking import Hit
from pexeso.runtime.mixing import mixed
from pexeso.runtime.ranges import offsets_of, ranges
from pexeso.store.texts import take_texts

if TYPE_CHECKING:
    from pexeso.semantic.partition_loader import PartitionLoader

MIN_JACCARD = (9, 10)
"""The smallest Jaccard similarity of a column and its copy, inclusive, as a fraction."""

MAX_VALUES = 1 << 22
"""Values of columns found that are compared, columns with the best first: about 0.3 GiB. Columns
behind these are lines of their own."""

VALUES_AT_ONCE = 1 << 20
"""Values of columns that are compared with one line at a time."""

MOST_LINES = 200
"""Lines that take in what is nearly equal, where fewer are wanted: as many as are re-ranked."""

MAX_REQUEST = (1 << 63) - 1
"""The largest number of columns that can be asked for."""

_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))


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

    @property
    def sizes(self) -> np.ndarray:
        """Distinct values of each column, int64 (n,)."""
        return np.diff(self.offsets)

    def take(self, columns: np.ndarray) -> ColumnSets:
        """Return some of the columns."""
        sizes = self.sizes[columns]
        rows = ranges(self.offsets[columns], sizes)
        return ColumnSets(offsets_of(sizes), self.members[rows])


def lines_compared(wanted: int | None) -> int | None:
    """Return how many first lines take in what is nearly equal, where so many are wanted.

    At least `MOST_LINES`, so that how many more there are does not depend on how many are wanted.
    """
    return None if wanted is None else max(wanted, MOST_LINES)


def fold(sets: ColumnSets, limit: int | None = None) -> np.ndarray:
    """Find the column that stands for each of n columns, taken in their order.

    Returns
    -------
    int64 (n,)
        A column's own number where it is a line, else the first line before it that is alike.
        A column without values is like no other.
    """
    n = len(sets)
    first_of = np.arange(n)
    comparable = np.flatnonzero(foldable_sizes(sets.sizes))
    if len(comparable) < 2:
        return first_of
    some = sets.take(comparable)
    _, first, same = np.unique(_signatures(some), axis=0, return_index=True, return_inverse=True)
    unequal = np.sort(first)  # the first column of each set, in order
    near = _fold_unequal(some.take(unequal), len(sets) if limit is None else limit)
    first_of[comparable] = comparable[unequal[near[np.searchsorted(unequal, first[same.ravel()])]]]
    return first_of


def lines_of(first_of: np.ndarray) -> list[list[int]]:
    """Return the columns of each line, in order: the one that stands for it, then its copies."""
    order = np.argsort(first_of, kind="stable")
    starts = np.flatnonzero(np.diff(first_of[order], prepend=-1))
    return [line.tolist() for line in np.split(order, starts[1:])] if len(order) else []


def foldable_sizes(sizes: np.ndarray) -> np.ndarray:
    """Return how many values of each of n columns are compared, int64 (n,).

    None of a column that can have no copy, nor of one that alone has more than `MAX_VALUES`; of the
    others, in their order, as many as are `MAX_VALUES` together.
    """
    compared = np.where(_may_have_copies(sizes) & (sizes <= MAX_VALUES), sizes, 0)
    return np.where(np.cumsum(compared) > MAX_VALUES, 0, compared)


def _may_have_copies(sizes: np.ndarray) -> np.ndarray:
    """Return whether another column has nearly as many values, bool (n,)."""
    order = np.argsort(sizes, kind="stable")
    above, below = MIN_JACCARD
    in_order = sizes[order]
    near = below * in_order[:-1] >= above * in_order[1:]
    mask = np.zeros(len(sizes), bool)
    mask[order] = np.append(near, False) | np.append(False, near) if len(sizes) else False
    return mask


@damage_made_plain("the index")
def sets_of_hits(scan: PartitionLoader, hits: Sequence[Hit]) -> ColumnSets:
    """Read the distinct normalised values of columns found.

    Columns that `foldable_sizes` leaves out are empty. Of several partitions the texts of the
    values are compared, of one their rows.
    """
    partitions = np.array([hit.partition for hit in hits], np.int64)
    positions = np.array([hit.position for hit in hits], np.int64)
    starts, sizes = np.zeros(len(hits), np.int64), np.zeros(len(hits), np.int64)
    numbers = np.unique(partitions).tolist()
    for number in numbers:
        subset = partitions == number
        offsets = scan.mapped(number).column_lists.offsets
        starts[subset] = offsets[positions[subset]]
        sizes[subset] = offsets[positions[subset] + 1] - starts[subset]
    if (sizes < 0).any() or (starts < 0).any():
        raise IndexCorruptError(
            "The columns of a partition of the index end before they begin: it was changed. "
            "Restore it from a copy, or build it again; 'pexeso check' tells which file."
        )
    sizes = foldable_sizes(sizes)
    offsets = offsets_of(sizes)
    rows = np.zeros(offsets[-1], np.int64)
    for number in numbers:
        subset = np.flatnonzero(partitions == number)
        values = scan.mapped(number).column_lists.members
        rows[ranges(offsets[subset], sizes[subset])] = values[ranges(starts[subset], sizes[subset])]
    if len(numbers) < 2:
        return ColumnSets(offsets, rows)
    owner = np.repeat(partitions, sizes)
    texts = [scan.store.texts(number, "values") for number in numbers]
    return ColumnSets(
        offsets,
        numbered_by_text(
            rows,
            [owner == number for number in numbers],
            [partial(take_texts, partition_texts) for partition_texts in texts],
        ),
    )


def numbered_by_text(
    rows: np.ndarray,
    parts: Sequence[np.ndarray],
    texts_of: Sequence[Callable[[np.ndarray], pa.Array]],
) -> np.ndarray:
    """Return numbers of values of several parts that are equal where their texts are.

    Parameters
    ----------
    rows : int64 (m,)
        Numbers of values, each in its part.
    texts_of : sequence of callables
        From ascending numbers of values of a part, each once, to their texts.

    Returns
    -------
    int64 (m,)
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


def _signatures(sets: ColumnSets) -> np.ndarray:
    """Return size and two sums of mixed numbers, uint64 (n, 3): equal for equal sets.

    That two other sets have the same has a probability of 2^-128.
    """
    members = sets.members.astype(np.uint64)
    sums = [np.add.reduceat(mixed(members + seed), sets.offsets[:-1]) for seed in _SEEDS]
    return np.stack([sets.sizes.astype(np.uint64), *sums], 1)


def _fold_unequal(sets: ColumnSets, limit: int) -> np.ndarray:
    """Do as `fold` for columns that are not empty, no two of them equal."""
    first_of, sizes = np.arange(len(sets)), sets.sizes
    owner, values = _by_rarity(sets)
    above, below = MIN_JACCARD
    # Two columns with enough in common have a value in common among these rarest of each. Unequal
    # ones have at least nine values in common, so smaller columns need not be looked at.
    n_rare = np.where(sizes < above, 0, sizes - -(-above * sizes // below) + 1)
    rare = ranges(sets.offsets[:-1], n_rare)
    rare_owner, rare_value = owner[rare], values[rare]
    by_value = np.argsort(rare_value, kind="stable")  # columns ascend within a value
    held_owner = rare_owner[by_value]
    ends = np.searchsorted(rare_value[by_value], rare_value, side="right")
    # Only later columns are candidates of a column.
    begins = np.empty(len(rare), np.int64)
    begins[by_value] = np.arange(len(rare)) + 1
    offsets = offsets_of(n_rare)
    is_of_line, n_lines = np.zeros(int(values.max()) + 1, bool), 0
    for line in range(len(sets)):
        if first_of[line] != line:
            continue
        n_lines += 1
        if n_lines > limit:
            break
        span = slice(offsets[line], offsets[line + 1])
        others = np.unique(held_owner[ranges(begins[span], ends[span] - begins[span])])
        small, large = (pick(sizes[line], sizes[others]) for pick in (np.minimum, np.maximum))
        others = others[(first_of[others] == others) & (below * small >= above * large)]
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
        np.arange(len(columns)), np.flatnonzero(np.diff(np.cumsum(sizes) // VALUES_AT_ONCE)) + 1
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


def _by_rarity(sets: ColumnSets) -> tuple[np.ndarray, np.ndarray]:
    """Return the owners of all members, and the members renamed by rank and rarest first.

    Which of two equally rare values comes first depends on their numbers, and no answer on that.
    """
    owner = np.repeat(np.arange(len(sets)), sets.sizes)
    _, value, counts = np.unique(sets.members, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    values = rank[value.ravel()]
    return owner, values[np.lexsort((values, owner))]


def first_request(k: int, *, folds: bool) -> int:
    """Return how many columns to ask for where k lines are wanted: more, since some may be copies.

    One more than k also tells whether there are more.
    """
    return min(2 * k + 8 if folds else k + 1, MAX_REQUEST)


def next_request(n: int) -> int:
    """Return how many columns to ask for where n were too few."""
    return min(4 * n, MAX_REQUEST)
