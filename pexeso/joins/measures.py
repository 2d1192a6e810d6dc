"""Rows as numbers, equal where the values of chosen columns are, and joins counted by them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.lake.frames.tables import take_cells
from pexeso.runtime.compiled import compiled

loops = compiled("pexeso.joins.loops")

# Sums of counts up to it are exact as doubles.
MAX_ROWS = 2**53


def plain_column(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the column of a name that a table has once, its values not as positions."""
    if table.column_names.count(name) != 1:
        raise ColumnNotFoundError(
            f"The column {name!r} must be in the table once, it is there "
            f"{table.column_names.count(name)} times. Columns: {table.column_names}."
        )
    column = table.column(name)
    is_coded = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_coded else column


def in_one_piece(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    if not isinstance(whole, pa.ChunkedArray):
        return whole
    return pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)


def column_of(table: pa.Table, name: str) -> pa.Array:
    """Return a column in one piece, of a plain type."""
    column = plain_column(table, name)
    kind = column.type
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_string(kind):
        column = column.cast(pa.large_string())
    elif pa.types.is_floating(kind):
        column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
        column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan")), column)
    return in_one_piece(column)


def encoded(column: pa.Array, name: str = "") -> pa.DictionaryArray:
    """Return a column as positions in its distinct values, a missing cell among these."""
    try:
        return pc.dictionary_encode(column, null_encoding="encode")
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"Values of the column {name!r} must be texts, numbers, times or truth values, got "
            f"{column.type}. Flatten it first."
        ) from error


def row_codes(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    """Return a number for each row, equal where all of the named columns are equal."""
    codes = np.zeros(table.num_rows, np.int64)
    for name in names:
        column = encoded(column_of(table, name), name)
        codes = paired_codes(codes, column.indices.to_numpy().astype(np.int64))
    return codes


def paired_codes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a number for each pair of numbers of two arrays, from 0 without gaps."""
    if not len(first):
        return np.zeros(0, np.int64)
    pairs = first * (int(second.max()) + 1) + second
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64)


def key_codes(
    left: pa.Table, right: pa.Table, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for the join key of each row of two tables, equal for equal keys."""
    if not names:
        raise InputError("A join needs at least one column, got none.")
    keys = [{name: column_of(table, name) for name in names} for table in (left, right)]
    for name in names:
        kinds = [key[name].type for key in keys]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"The column {name!r} must have the same type in both tables, got {kinds[0]} and "
                f"{kinds[1]}. Cast one of them."
            )
    both = pa.concat_tables([pa.table(key) for key in keys])
    codes = row_codes(both, names)
    for name in names:
        codes[both.column(name).is_null().to_numpy()] = -1
    return codes[: left.num_rows], codes[left.num_rows :]


def row_weights(n_rows: int, counts: ArrayLike | None) -> np.ndarray:
    return np.ones(n_rows, np.int64) if counts is None else np.asarray(counts, np.int64)


def merged_rows(
    table: pa.Table, names: Sequence[str], counts: np.ndarray | None = None
) -> tuple[pa.Table, np.ndarray]:
    """Return the distinct rows of a projection and how often each occurs."""
    weights = row_weights(table.num_rows, counts)
    codes = row_codes(table, names)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    sums = np.bincount(codes, weights, minlength=len(first)).astype(np.int64)
    order = np.argsort(first)
    return table.select(list(names)).take(pa.array(first[order])), sums[order]


def join_counts(
    left: pa.Table,
    right: pa.Table,
    on: Sequence[str],
    *,
    left_names: Sequence[str] = (),
    right_names: Sequence[str] = (),
    left_counts: np.ndarray | None = None,
) -> tuple[pa.Table, np.ndarray]:
    """Return the inner join of two tables as distinct rows with counts.

    Memory grows with the distinct rows of the result over the chosen columns and the join key, not
    with its rows. For a join of several tables, pass a result and its counts on.
    """
    chosen = [*on, *left_names, *right_names]
    if len(set(chosen)) < len(chosen):
        raise InputError(f"Columns of a join must have different names, got {chosen}. Rename one.")
    left, left_weights = merged_rows(left, [*on, *left_names], left_counts)
    right, right_weights = merged_rows(right, [*on, *right_names])
    matches = KeyMatches(*key_codes(left, right, on))
    left_rows, right_rows = matches.pairs(0, left.num_rows)
    weights, factors = left_weights[left_rows], right_weights[right_rows]
    if (weights.astype(np.float64) * factors).sum() > MAX_ROWS:
        raise InputError(f"A join result must have {MAX_ROWS} rows at most. Join a sample.")
    result = take_cells(left, pa.array(left_rows))
    right_columns = take_cells(right.select(list(right_names)), pa.array(right_rows))
    for name in right_names:
        result = result.append_column(name, right_columns.column(name))
    return result, weights * factors


class KeyMatches:
    """The pairs of rows of two tables with equal keys, to be taken in parts."""

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        order = np.argsort(right, kind="stable")
        self._order = order[right[order] >= 0]
        self._starts = np.searchsorted(right[self._order], left, side="left")
        ends = np.searchsorted(right[self._order], left, side="right")
        self.sizes = ends - self._starts

    def pairs(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        sizes, starts = self.sizes[first:last], self._starts[first:last]
        left_rows = np.repeat(np.arange(first, first + len(sizes)), sizes)
        steps = np.arange(len(left_rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return left_rows, self._order[np.repeat(starts, sizes) + steps]


# The first term left out is below 2**-60 of the sum.
_N_TERMS = 13


def log2(values: ArrayLike) -> np.ndarray:
    """Return the logarithms to base 2 of positive numbers, exact for powers of two.

    A number is 2**e * m with m between sqrt(1/2) and sqrt(2), and ln m = 2 artanh(s) with
    s = (m - 1) / (m + 1), a series in s**2 <= 0.03. Each step is one addition, multiplication or
    division, which IEEE 754 defines to the last bit.
    """
    mantissa, exponent = np.frexp(np.asarray(values, np.float64))
    low = mantissa < math.sqrt(0.5)
    mantissa = mantissa * (1 + low)
    s = (mantissa - 1) / (mantissa + 1)
    square = s * s
    series = 0.0
    for power in range(2 * _N_TERMS - 1, 0, -2):
        series = series * square + 1 / power
    return (exponent - low) + series * s * (2 / _LN2)


# The double nearest to ln 2.
_LN2 = 0.6931471805599453


def exact_sum(values: np.ndarray) -> float:
    values = np.ascontiguousarray(values, np.float64)
    parts = loops.partial_sums(values)
    return math.fsum(values.tolist() if parts is None else parts)


def information(counts: np.ndarray) -> float:
    """Return the entropy of counts times their total, sum of c log2(n / c)."""
    if not len(counts):
        return 0.0
    # As `np.unique`, whose layers take longer than sorting the few counts of most joins.
    ordered = np.array(counts, np.float64)
    ordered.sort()
    is_inner = np.zeros(len(ordered) + 1, bool)
    np.equal(ordered[1:], ordered[:-1], out=is_inner[1:-1])
    bounds = (~is_inner).nonzero()[0]
    values = ordered[bounds[:-1]]
    totals = values * (bounds[1:] - bounds[:-1])
    return exact_sum(totals * log2(exact_sum(totals) / values))


def entropy(counts: ArrayLike) -> float:
    present = np.asarray(counts, np.float64)
    present = present[present > 0]
    return information(present) / exact_sum(present) if len(present) else 0.0


def mutual_information(x: ArrayLike, y: ArrayLike, counts: ArrayLike | None = None) -> float:
    pairs, of_x, of_y, n = _joint(x, y, counts)
    if not n:
        return 0.0
    return max(exact_sum(pairs * log2(pairs * n / (of_x * of_y))) / n, 0.0)


def _joint(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    x, y = np.asarray(x, np.int64), np.asarray(y, np.int64)
    weights = np.ones(len(x)) if counts is None else np.asarray(counts, np.float64)
    x, y, weights = x[weights > 0], y[weights > 0], weights[weights > 0]
    if not len(x):
        return np.zeros(0), np.zeros(0), np.zeros(0), 0.0
    first = np.unique(paired_codes(x, y), return_index=True, return_inverse=True)
    pairs = np.bincount(first[2], weights)
    of_x, of_y = np.bincount(x, weights), np.bincount(y, weights)
    return pairs, of_x[x[first[1]]], of_y[y[first[1]]], exact_sum(pairs)


def cumulative_entropy(numbers: ArrayLike, counts: ArrayLike | None = None) -> float:
    return conditional_cumulative_entropy(numbers, np.zeros(np.shape(numbers), np.int64), counts)


def conditional_cumulative_entropy(
    numbers: ArrayLike, y: ArrayLike, counts: ArrayLike | None = None
) -> float:
    """Return the cumulative entropy h(X|Y) that is left of numbers where Y is known."""
    numbers, y = np.asarray(numbers, np.float64), np.asarray(y, np.int64)
    weights = np.ones(len(y), np.int64) if counts is None else np.asarray(counts, np.int64)
    # Plans are measured thousands of times: as numpy's shorter functions, without their layers.
    occurring = (weights > 0).nonzero()[0]
    if len(occurring) < len(weights):
        numbers, y, weights = numbers[occurring], y[occurring], weights[occurring]
    if not len(y):
        return 0.0
    falls = (y[1:] < y[:-1]) | ((y[1:] == y[:-1]) & (numbers[1:] < numbers[:-1]))
    if np.logical_or.reduce(falls):
        order = _by_y_and_number(numbers, y)
        numbers, y, weights = numbers[order], y[order], weights[order]
    is_start = np.zeros(len(y), bool)
    is_start[0] = True
    np.not_equal(y[1:], y[:-1], out=is_start[1:])
    sizes = np.add.reduceat(weights, is_start.nonzero()[0])
    segment = is_start.cumsum() - 1
    below = weights.cumsum() - (sizes.cumsum() - sizes)[segment]
    inner = (~is_start[1:]).nonzero()[0]
    gaps = numbers[inner + 1] - numbers[inner]
    terms = gaps * below[inner] * log2(sizes[segment[inner]] / below[inner])
    return exact_sum(terms) / int(np.add.reduce(weights))


def _by_y_and_number(numbers: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the order of rows by y and then by number, quickly where numbers ascend already."""
    if np.logical_or.reduce(numbers[1:] < numbers[:-1]):
        return np.lexsort([numbers, y])
    return y.argsort(kind="stable")


# Bins that numbers of Y are cut into.
Y_BINS = 16


def correlation(
    table: pa.Table,
    x: Sequence[str],
    y: Sequence[str],
    *,
    numeric: Collection[str] = (),
    counts: np.ndarray | None = None,
) -> float:
    return CorrelationOfCounts(table, x, y, numeric=numeric)(counts)


class CorrelationOfCounts:
    """The correlation CORR(X,Y) of a table as a function of how often each of its rows occurs.

    Values are compared once, so it is quick for many counts of the same rows, as those of parts of
    a sample.
    """

    def __init__(
        self, table: pa.Table, x: Sequence[str], y: Sequence[str], *, numeric: Collection[str] = ()
    ) -> None:
        self._n_rows = table.num_rows
        categorical = [name for name in x if name not in numeric]
        self._x = row_codes(table, categorical) if categorical else None
        self._x_numbers = [
            _ascending(numbers_of(column_of(table, name), name)) for name in x if name in numeric
        ]
        self._y = row_codes(table, [name for name in y if name not in numeric])
        self._y_numbers = [
            numbers_of(column_of(table, name), name) for name in y if name in numeric
        ]

    def __call__(self, counts: np.ndarray | None = None) -> float:
        weights = row_weights(self._n_rows, counts)
        mask = weights > 0
        weights = weights[mask]
        y = self._y_codes(mask, weights)
        positions = np.cumsum(mask) - 1
        terms = []
        for rows, numbers in self._x_numbers:
            row_mask = mask[rows]
            at = positions[rows[row_mask]]
            terms.append(_numeric_term(numbers[row_mask], y[at], weights[at]))
        if self._x is not None:
            terms.append(mutual_information(self._x[mask], y, weights))
        return math.fsum(terms)

    def cells(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Return the number of the cell of each row among those that the correlation counts.

        Rows of one cell have equal categorical attributes of X and the same Y, numbers of Y in the
        same bin.
        """
        weights = row_weights(self._n_rows, counts)
        mask = weights > 0
        cells = np.full(self._n_rows, -1)
        y = self._y_codes(mask, weights[mask])
        cells[mask] = y if self._x is None else paired_codes(self._x[mask], y)
        return cells

    def _y_codes(self, mask: np.ndarray, weights: np.ndarray) -> np.ndarray:
        codes = self._y[mask]
        for numbers in self._y_numbers:
            codes = paired_codes(codes, bins_of(numbers[mask], weights))
        return codes


def _numeric_term(numbers: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    whole = cumulative_entropy(numbers, weights)
    left = conditional_cumulative_entropy(numbers, y, weights)
    return max(whole - left, 0.0)


def _ascending(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have a number, in the order of their numbers, and these."""
    order = np.argsort(numbers, kind="stable")  # NaN last
    order = order[: len(order) - np.isnan(numbers).sum()]
    return order, numbers[order]


def bins_of(numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    known = ~np.isnan(numbers) & (weights > 0)
    values, codes = np.unique(numbers[known], return_inverse=True)
    bins = np.arange(len(values))
    if len(values) > Y_BINS:
        sizes = np.bincount(codes, weights[known]).astype(np.int64)
        bins = (np.cumsum(sizes) - sizes) * Y_BINS // sizes.sum()
    result = np.zeros(len(numbers), np.int64)
    result[known] = bins[codes] + 1
    return result


def numbers_of(column: pa.Array, name: str = "") -> np.ndarray:
    """Return a numerical column as doubles, NaN where a number is missing."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(
            f"The numerical column {name!r} must hold numbers, got {kind}. Cast it, or measure it "
            "as categorical."
        )
    column = pc.cast(column, pa.float64(), safe=False)
    numbers = column.fill_null(math.nan).to_numpy(zero_copy_only=False)
    if np.isinf(numbers).any():
        raise InputError(f"The numerical column {name!r} must hold finite numbers, got infinity.")
    return numbers


# Chance is the mean of so many shuffles.
N_SHUFFLES = 3


def gain_of_column(
    target: pa.Array,
    column: pa.Array,
    keys: np.ndarray,
    *,
    numeric_target: bool,
    numeric_column: bool,
) -> float:
    """Return what a column that was joined on keys says of a target beyond chance.

    `keys` has a number for the key of each row: rows of one key have equal cells of the column.
    """
    n_rows = len(target)
    known = np.flatnonzero(
        target.is_valid().to_numpy(zero_copy_only=False)
        & column.is_valid().to_numpy(zero_copy_only=False)
    )
    if not len(known):
        return 0.0
    rows = pa.table({"target": target, "column": column}).take(pa.array(known))
    _, first, key_of_row = np.unique(keys[known], return_index=True, return_inverse=True)
    numeric = [*(["target"] if numeric_target else []), *(["column"] if numeric_column else [])]

    def measured(table: pa.Table) -> float:
        return correlation(table, ["target"], ["column"], numeric=numeric)

    by_chance = []
    of_key = rows.column("column").take(pa.array(first))
    for number in range(N_SHUFFLES):
        random = np.random.Generator(np.random.Philox(key=[0, number]))
        shuffled = of_key.take(pa.array(random.permutation(len(first))))
        cells = shuffled.take(pa.array(key_of_row))
        by_chance.append(measured(rows.set_column(1, "column", cells)))
    chance = math.fsum(by_chance) / N_SHUFFLES
    return len(known) / n_rows * (measured(rows) - chance)
