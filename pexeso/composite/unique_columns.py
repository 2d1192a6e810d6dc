"""The smallest combinations of columns that tell the rows of a table apart, on arrays.

Columns are codes of values. Combinations are looked at level by level, those of earlier columns
first, and none that holds a smaller one already found. Two rows that agree on a combination rule
out every combination of columns that they agree on, so one comparison that fails saves many: the
idea of T. Papenbrock and F. Naumann, "A Hybrid Approach for Efficient Unique Column Combination
Discovery", BTW 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

MISSING = -1  # The code of a cell without a value.

MAX_WIDTH = 1000  # Most columns whose combinations are looked at.

MAX_COMBINATIONS = 200_000_000  # Most combinations of one number of columns.

MAX_ROWS_COMPARED = 200_000_000  # Most rows that are read for all combinations together.

_MAX_PAIRS_OF_ROWS = 2048
_PAIRS_OF_A_FAILURE = 16
_FIRST_ROWS = 8192
_BLOCK = 4096
_LARGEST = 2**62


@dataclass(frozen=True)
class Counts:
    """How far a combination of columns tells rows apart."""

    distinct: int  # Different tuples of the rows that are complete in these columns
    repeated: int  # Complete rows less these
    missing: int  # Rows that miss a value in one of the columns
    # int, int: the first row of the most frequent tuple, and the number of rows that have it; 0, 0
    # where no row is complete
    row: int
    same: int


def count_tuples(codes: np.ndarray, columns: tuple[int, ...]) -> Counts:
    rows = np.flatnonzero((codes[list(columns)] != MISSING).all(axis=0))
    if not len(rows):
        return Counts(0, 0, codes.shape[1], 0, 0)
    numbers = _numbers(codes[np.ix_(columns, rows)])
    _, first, same = np.unique(numbers, return_index=True, return_counts=True)
    commonest = int(np.argmax(same))
    missing = codes.shape[1] - len(rows)
    return Counts(
        len(same), len(rows) - len(same), missing, int(rows[first[commonest]]), int(same[commonest])
    )


def first_of_equal_rows(codes: np.ndarray) -> np.ndarray:
    """Return the rows that are equal to no earlier one in all columns, in order: int64 (m,)."""
    n = codes.shape[1]
    rows, groups = np.arange(n), np.zeros(n, np.int64)
    for column in codes:
        # Rows that differ from all others are done with.
        values = column[rows].astype(np.int64) + 1
        _, groups, sizes = np.unique(
            groups * (values.max(initial=0) + 1) + values, return_inverse=True, return_counts=True
        )
        rows, groups = rows[sizes[groups] > 1], groups[sizes[groups] > 1]
        if not len(rows):
            return np.arange(n)
    is_first = np.ones(n, bool)
    is_first[rows] = False
    is_first[rows[np.unique(groups, return_index=True)[1]]] = True
    return np.flatnonzero(is_first)


def width_of(size: int) -> int:
    if size == 1:
        return 16_384
    width = MAX_WIDTH
    while comb(width, size) > MAX_COMBINATIONS:
        width -= 1
    return width


class UniqueSearch:
    def __init__(self, codes: np.ndarray, needed: int) -> None:
        self._codes, self._needed = codes, needed
        self._values = codes.max(axis=1, initial=MISSING) + np.int64(1)
        # A column with too many gaps is in no combination.
        self._values[(codes == MISSING).sum(axis=1) > codes.shape[1] - needed] = 0
        # Pairs of rows, and the columns on which both have the same value.
        self._agree = np.zeros((0, len(codes)), bool)
        self._rows_left = MAX_ROWS_COMPARED
        self.keys: list[tuple[int, ...]] = []
        self.compared = 0
        self.is_whole = True

    @property
    def n_columns(self) -> int:
        return len(self._codes)

    def of_size(self, size: int, begin: int = 0) -> Iterator[tuple[int, ...]]:
        n, width = self._codes.shape[1], min(len(self._codes), width_of(size))
        if size == 1:
            for column in np.flatnonzero(self._values[:width] >= self._needed).tolist():
                if column >= begin and (column,) not in self.keys and self._tells((column,)):
                    self.keys.append((column,))
                    yield (column,)
            return
        for fixed in _ascending(width, size - 2):
            if fixed and fixed[-1] < begin:
                continue
            end = fixed[0] if fixed else width
            for candidates in self._candidates(fixed, end, 0 if fixed else begin):
                while len(candidates):
                    if self._rows_left < n:
                        self.is_whole = False
                        return
                    last, first = candidates[0].tolist()
                    columns, n_pairs = (first, last, *fixed), len(self._agree)
                    candidates = candidates[1:]
                    if self._tells(columns):
                        self.keys.append(columns)
                        yield columns
                    else:
                        new = self._agree[n_pairs:]
                        both = new[:, candidates[:, 0]] & new[:, candidates[:, 1]]
                        candidates = candidates[~both.any(axis=0)]

    def _candidates(self, fixed: tuple[int, ...], end: int, begin: int) -> Iterator[np.ndarray]:
        """Yield pairs of columns below `end` that may tell the rows apart with the fixed ones."""
        rest = [set(key) - set(fixed) for key in self.keys]
        if not all(rest):
            return
        values = self._values[:end].astype(np.float64)
        # Rounding does no harm: products that are rounded are far above the number of rows.
        possible = np.multiply.outer(
            values * self._values[list(fixed)].prod(dtype=np.float64), values
        )
        is_open = np.tril(possible >= self._needed, -1)
        is_open[:begin] = False
        for columns in rest:
            if max(columns) < end and len(columns) == 1:
                (column,) = columns
                is_open[column] = is_open[:, column] = False
            elif max(columns) < end and len(columns) == 2:
                is_open[max(columns), min(columns)] = False
        is_open &= ~self._ruled_out(fixed, end)
        pairs = np.argwhere(is_open)
        for at in range(0, len(pairs), _BLOCK):
            block = pairs[at : at + _BLOCK]
            agree = self._agree[self._agree[:, list(fixed)].all(axis=1)]
            yield block[~(agree[:, block[:, 0]] & agree[:, block[:, 1]]).any(axis=0)]

    def _ruled_out(self, fixed: tuple[int, ...], end: int) -> np.ndarray:
        """Return which pairs of columns some two rows agree on that agree on the fixed ones."""
        agree = self._agree[self._agree[:, list(fixed)].all(axis=1), :end].astype(np.float32)
        return agree.T @ agree > 0  # sums of zeros and ones, exact in any order

    def _tells(self, columns: tuple[int, ...]) -> bool:
        self.compared += 1
        lost = self._codes.shape[1] - self._needed
        for n in sorted({min(_FIRST_ROWS, self._codes.shape[1]), self._codes.shape[1]}):
            # More rows lose no fewer, so a part of them may do.
            self._rows_left -= n
            codes = self._codes[list(columns), :n]
            codes = codes[:, (codes != MISSING).all(axis=0)]
            numbers = _numbers(codes)
            in_order = np.sort(numbers)
            is_repeat = in_order[1:] == in_order[:-1]
            n_lost = n - len(numbers) + int(np.count_nonzero(is_repeat))
            if n_lost > lost:
                if not lost and len(self._agree) < _MAX_PAIRS_OF_ROWS:
                    self._learn(numbers, np.unique(in_order[1:][is_repeat]))
                return False
        return True

    def _learn(self, numbers: np.ndarray, repeated: np.ndarray) -> None:
        """Keep some pairs of equal rows. No row may be lost here, so that none has a gap."""
        step = -(-len(repeated) // _PAIRS_OF_A_FAILURE)
        rows = [np.flatnonzero(numbers == number)[:2] for number in repeated[::step]]
        first, second = np.array(rows).T
        agree = (self._codes[:, first] == self._codes[:, second]).T
        self._agree = np.concatenate([self._agree, np.unique(agree, axis=0)])


def _ascending(width: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the combinations of columns in the order of their last, then last but one."""
    if not size:
        yield ()
        return
    for last in range(size - 1, width):
        for rest in _ascending(last, size - 1):
            yield (*rest, last)


def _numbers(codes: np.ndarray) -> np.ndarray:
    """Return a number for each row, equal where all codes are, of which none is missing: int64."""
    numbers, bound = np.zeros(codes.shape[1], np.int64), 1
    for column in codes:
        n_values = int(column.max(initial=0)) + 1
        if bound * n_values > _LARGEST:
            distinct, numbers = np.unique(numbers, return_inverse=True)
            bound = len(distinct)
        numbers = numbers * n_values + column
        bound *= n_values
    return numbers
