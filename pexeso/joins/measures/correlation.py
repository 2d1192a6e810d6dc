"""Correlation of attributes of a table, or of a join result, by entropies.

CORR(X,Y) = H(X) - H(X|Y) for categories, h(a) - h(a|Y) for each numerical attribute a of X. Numbers
of Y are cut into 16 bins of equally many rows, equal numbers in one bin. A missing category is a
value of its own, a missing number is left out of X.

A column with many values seems to explain anything: one with a value of its own for each key says
no more than the key. So the gain of a joined column is the share of the rows that have a cell,
times what it tells beyond chance: the correlation with the column shuffled among the keys that it
was joined on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.measures.codes import column_of, paired_codes, row_codes, row_weights
from pexeso.joins.measures.entropies import (
    conditional_cumulative_entropy,
    cumulative_entropy,
    mutual_information,
)

Y_BINS = 16
"""Bins that numbers of Y are cut into."""


def correlation(
    table: pa.Table,
    x: Sequence[str],
    y: Sequence[str],
    *,
    numeric: Collection[str] = (),
    counts: np.ndarray | None = None,
) -> float:
    """Return the correlation CORR(X,Y) of two sets of attributes."""
    return CorrelationOfCounts(table, x, y, numeric=numeric)(counts)


class CorrelationOfCounts:
    """The correlation CORR(X,Y) of a table as a function of how often each of its rows is there.

    Values are compared once, so it is quick for many counts of the same rows, as those of parts of
    a sample.
    """

    def __init__(
        self,
        table: pa.Table,
        x: Sequence[str],
        y: Sequence[str],
        *,
        numeric: Collection[str] = (),
    ) -> None:
        if not x or not y:
            raise InputError(
                f"A correlation needs columns on both sides, got {list(x)} and {list(y)}."
            )
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
        """Return the correlation."""
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
    """Return h(a) - h(a|Y) of rows in the order of their numbers."""
    whole = cumulative_entropy(numbers, weights)
    left = conditional_cumulative_entropy(numbers, y, weights)
    return max(whole - left, 0.0)


def _ascending(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that have a number, in the order of their numbers, and these."""
    order = np.argsort(numbers, kind="stable")  # NaN last
    order = order[: len(order) - np.isnan(numbers).sum()]
    return order, numbers[order]


def bins_of(numbers: np.ndarray, weights: np.ndarray, y_bins: int | None = None) -> np.ndarray:
    """Return the bin of each row of a numerical attribute of Y."""
    y_bins = Y_BINS if y_bins is None else y_bins
    known = ~np.isnan(numbers) & (weights > 0)
    values, codes = np.unique(numbers[known], return_inverse=True)
    bins = np.arange(len(values))
    if len(values) > y_bins:
        sizes = np.bincount(codes, weights[known]).astype(np.int64)
        bins = (np.cumsum(sizes) - sizes) * y_bins // sizes.sum()
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


N_SHUFFLES = 3
"""Chance is the mean of so many shuffles."""


def gain_of_column(
    target: pa.Array,
    column: pa.Array,
    keys: np.ndarray,
    *,
    numeric_target: bool,
    numeric_column: bool,
    seed: int = 0,
) -> float:
    """Return what a column that was joined on keys tells of a target beyond chance.

    Parameters
    ----------
    keys : numpy.ndarray of int64 (n,)
        A number for the key of each row: rows of one key have equal cells of the column.
    seed : int
        Of the shuffles, at least 0.
    """
    n_rows = len(target)
    if not n_rows == len(column) == len(keys):
        raise InputError(
            f"Target, column and keys must have one entry a row, got {n_rows}, {len(column)} and "
            f"{len(keys)}."
        )
    known = np.flatnonzero(
        target.is_valid().to_numpy(zero_copy_only=False)
        & column.is_valid().to_numpy(zero_copy_only=False)
    )
    if not len(known):
        return 0.0
    rows = pa.table({"target": target, "column": column}).take(pa.array(known))
    _, first, key_of_row = np.unique(keys[known], return_index=True, return_inverse=True)
    numeric = [
        *(["target"] if numeric_target else []),
        *(["column"] if numeric_column else []),
    ]

    def measured(table: pa.Table) -> float:
        return correlation(table, ["target"], ["column"], numeric=numeric)

    by_chance = []
    of_key = rows.column("column").take(pa.array(first))
    for number in range(N_SHUFFLES):
        random = np.random.Generator(np.random.Philox(key=[seed, number]))
        shuffled = of_key.take(pa.array(random.permutation(len(first))))
        cells = shuffled.take(pa.array(key_of_row))
        by_chance.append(measured(rows.set_column(1, "column", cells)))
    chance = math.fsum(by_chance) / N_SHUFFLES
    return len(known) / n_rows * (measured(rows) - chance)
