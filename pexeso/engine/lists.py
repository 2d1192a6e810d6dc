"""Lists of numbers, one after the other, as arrays, and checks of arrays that were changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from pexeso.errors import IndexCorruptError
from pexeso.runtime.ranges import runs_of_lists


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """List the members of every range ``starts[i], ..., starts[i] + sizes[i] - 1``: int64.

    Examples
    --------
    >>> ranges(np.array([5, 2]), np.array([2, 3])).tolist()
    [5, 6, 2, 3, 4]
    """
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts - before, sizes)


# Members of lists that are taken at a time: with all that comes of them 20 MiB at most.
MEMBERS_AT_ONCE = 1 << 18


def take_lists(
    offsets: np.ndarray, members: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and members of some lists.

    Examples
    --------
    >>> [array.tolist() for array in take_lists(np.array([0, 1, 3]), np.arange(3), np.array([1]))]
    [[0, 2], [1, 2]]
    """
    ends = np.zeros(len(rows) + 1, np.int64)
    ends[1:] = offsets[1:][rows]
    ends[1:] -= offsets[:-1][rows]
    np.cumsum(ends, out=ends)
    some = np.empty(ends[-1], members.dtype)
    is_small = max(len(rows), ends[-1]) <= MEMBERS_AT_ONCE
    for run in [slice(0, len(rows))] if is_small else runs_of_lists(ends, MEMBERS_AT_ONCE):
        own = ends[run.start : run.stop + 1]
        some[own[0] : own[-1]] = members[ranges(offsets[rows[run]], np.diff(own))]
    return ends, some


def distinct_numbers(numbers: np.ndarray) -> np.ndarray:
    """Return the distinct numbers of an array in ascending order.

    `numpy.unique` hashes them, which takes twenty times as long for millions that mostly differ.

    Examples
    --------
    >>> distinct_numbers(np.array([5, 2, 5])).tolist()
    [2, 5]
    """
    in_order = np.sort(numbers)
    is_first = np.ones(len(in_order), bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    return in_order[is_first]


# Numbers are marked among all that there may be if those are at most so many for each of them: to
# sort them takes as long then.
MARKS_A_NUMBER = 64


def ranked_numbers(numbers: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct ones of whole numbers below n, ascending, and the place of each there.

    Examples
    --------
    >>> [array.tolist() for array in ranked_numbers(np.array([5, 2, 5]), 6)]
    [[2, 5], [1, 0, 1]]
    """
    if len(numbers) * MARKS_A_NUMBER < n:
        return np.unique(numbers, return_inverse=True)
    is_used = np.zeros(n, bool)
    is_used[numbers] = True
    used = np.flatnonzero(is_used)
    rank = np.empty(n, np.int64)
    rank[used] = np.arange(len(used))
    return used, rank[numbers]


def places_among(numbers: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Return the place of each number among ascending ones, -1 for one that is not there: int64.

    Examples
    --------
    >>> places_among(np.array([5, 3, 9]), np.array([2, 5])).tolist()
    [1, -1, -1]
    """
    if not len(ordered):
        return np.full(len(numbers), -1, np.int64)
    at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    return np.where(ordered[at] == numbers, at, -1)


def offsets_of(sizes: np.ndarray) -> np.ndarray:
    """Return where each of n ranges begins that stand one after the other: int64 (n + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


@dataclass(frozen=True)
class Lists:
    """Rows of numbers: row i is ``members[offsets[i]:offsets[i + 1]]``.

    Attributes
    ----------
    offsets : numpy.ndarray of shape (n + 1,), int64
    members : numpy.ndarray, int32
    """

    offsets: np.ndarray
    members: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.members[self.of(np.array([row]))[1]].astype(np.int64)

    def sizes(self, rows: np.ndarray) -> np.ndarray:
        return self.offsets[rows + 1] - self.offsets[rows]

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions in `members` of some rows, and the row of each as a position.

        Returns
        -------
        owner, position : numpy.ndarray, int64

        Raises
        ------
        IndexCorruptError
            A row leads out of the members.
        """
        first, last = self.offsets[rows], self.offsets[rows + 1]
        if ((first < 0) | (last < first) | (last > len(self.members))).any():
            raise IndexCorruptError(
                "The offsets of an inverted index in a partition lead out of it: 'pexeso check' "
                "lists the damage; restore the index, or build it again."
            )
        owner = np.repeat(np.arange(len(rows)), last - first)
        return owner, ranges(first, last - first)


def damage_of(where: str) -> IndexCorruptError:
    """Return our error for that of a tensor operation that was led out of an array: IndexError.

    Compiled loops look at what they read themselves.
    """
    return IndexCorruptError(
        f"A file of {where} names a value, column or text that is not there: it was changed. "
        "'pexeso check' tells more."
    )


@contextmanager
def damage_made_plain(where: str) -> Iterator[None]:
    try:
        yield
    except IndexError as error:
        raise damage_of(where) from error


# Numbers that are checked together: with all that comes of them 200 MiB at most.
ITEMS_AT_ONCE = 1 << 21

Arrays = Mapping[str, np.ndarray]


def refuse(what: str) -> NoReturn:
    raise IndexCorruptError(f"{what}: it was changed. 'pexeso check' tells more.")


def require_there(arrays: Arrays, names: Iterable[str]) -> None:
    for name in names:
        if name not in arrays:
            refuse(f"The array {name} of a partition is missing")


def require_kinds(arrays: Arrays, kinds: Mapping[str, tuple[str, int]]) -> None:
    """Refuse arrays of another type, or number of axes, than the one given for their name."""
    for name, (dtype, n_axes) in kinds.items():
        array = arrays.get(name)
        if array is None:
            continue
        if str(array.dtype) not in dtype.split(" or ") or array.ndim != n_axes:
            refuse(
                f"The array {name} of a partition holds {array.dtype} with {array.ndim} axes, "
                f"where {dtype} with {n_axes} must be"
            )


def wrong_list(
    arrays: Arrays, name: str, n_members: int, *, repeats: bool = False
) -> Iterator[str]:
    """Check one inverted index: consecutive runs, members in range and ascending in each run.

    With `repeats` a run may have a member twice.
    """
    offsets, members = arrays[f"{name}_offsets"], arrays[f"{name}_members"]
    if offsets[0] != 0 or offsets[-1] != len(members):
        yield (
            f"{name}_offsets: it goes from {offsets[0]} to {offsets[-1]} "
            f"instead of from 0 to {len(members)}."
        )
        return
    for begin in range(0, len(offsets) - 1, ITEMS_AT_ONCE):
        part = offsets[begin : begin + ITEMS_AT_ONCE + 1]
        falls = np.flatnonzero(part[1:] < part[:-1])
        if len(falls):
            yield f"{name}_offsets: it falls after row {begin + int(falls[0]):,}."
            return
    for begin in range(0, len(members), ITEMS_AT_ONCE):
        part = members[begin : begin + ITEMS_AT_ONCE]
        if (position := _outside(part, n_members)) is not None:
            yield (
                f"{name}_members: entry {begin + position:,} is {part[position]}, "
                f"which is not from 0 to {n_members - 1}."
            )
            return
        before = members[max(0, begin - 1) : begin + len(part)]
        rises = np.ones(len(part), dtype=bool)
        low, high = before[:-1], before[1:]
        rises[len(part) - len(high) :] = high >= low if repeats else high > low
        first, last = np.searchsorted(offsets, [begin, begin + len(part)])
        rises[np.asarray(offsets[first:last]) - begin] = True  # where a row begins
        if not rises.all():
            yield (
                f"{name}_members: entry {begin + int(np.flatnonzero(~rises)[0]):,} "
                f"is {'less' if repeats else 'no more'} than the one before it in its row."
            )
            return


def _outside(numbers: np.ndarray, n: int) -> int | None:
    outside = np.flatnonzero((numbers < 0) | (numbers >= n))
    return int(outside[0]) if len(outside) else None


def wrong_numbers(arrays: Arrays, n_texts: int | None) -> Iterator[str]:
    """Check the numbers of columns, and those of texts where it is known how many there are."""
    ids = arrays.get("column_ids")
    if ids is not None and len(ids) and not (ids[0] >= 0 and bool((ids[1:] > ids[:-1]).all())):
        yield "column_ids: the numbers are not ascending, or one is below 0."
    texts = arrays.get("posting_texts")
    if texts is None or n_texts is None:
        return
    for begin in range(0, len(texts), ITEMS_AT_ONCE):
        part = texts[begin : begin + ITEMS_AT_ONCE]
        if (position := _outside(part, n_texts)) is not None:
            yield (
                f"posting_texts: entry {begin + position:,} is {part[position]}, "
                f"and there are {n_texts:,} texts."
            )
            return
