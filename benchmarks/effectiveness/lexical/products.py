"""Products of unit vectors, row by row: of sparse ones in float64, of dense ones as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Combined:
    """Sparse and dense vectors, one after the other, as rows of one matrix.

    Their products are weighted, so that rows of unit length in both have unit length together.

    Attributes
    ----------
    sparse : scipy.sparse.csr_matrix
    dense : numpy.ndarray
    weight : float
        Of the dense ones, in [0, 1]; the sparse ones have the rest.
    """

    sparse: sp.csr_matrix
    dense: np.ndarray
    weight: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and coordinates of both."""
        return self.sparse.shape[0], self.sparse.shape[1] + self.dense.shape[1]

    def __getitem__(self, rows: np.ndarray) -> Combined:
        """Return some of the rows."""
        return Combined(self.sparse[rows], self.dense[rows], self.weight)


Vectors = sp.csr_matrix | np.ndarray | Combined

ROWS = 128
"""Rows of dense vectors that are multiplied together."""


def products(left: Vectors, right: Vectors) -> Iterator[np.ndarray]:
    """Return the products of each row of `left` with all rows of `right`, float64."""
    if isinstance(left, Combined):
        both = (products(left.sparse, right.sparse), products(left.dense, right.dense))
        for sparse, dense in zip(*both, strict=True):
            yield (1 - left.weight) * sparse + left.weight * dense
    elif sp.issparse(left):
        postings, product = right.T.tocsr(), np.empty(right.shape[0])
        for start, stop in zip(left.indptr[:-1], left.indptr[1:], strict=True):
            product[:] = 0
            entries = left.indices[start:stop], left.data[start:stop]
            _add_products(*entries, postings.indptr, postings.indices, postings.data, product)
            yield product
    else:
        for start in range(0, left.shape[0], ROWS):
            yield from (left[start : start + ROWS] @ right.T).astype(np.float64)


def all_products(left: Vectors, right: Vectors) -> np.ndarray:
    """Return the products of all rows of `left` with all rows of `right`, as one matrix."""
    if isinstance(left, Combined):
        sparse = all_products(left.sparse, right.sparse)
        return (1 - left.weight) * sparse + left.weight * all_products(left.dense, right.dense)
    product = left @ right.T
    return product.toarray() if sp.issparse(product) else product


def best_by_column(
    left: Vectors, right: Vectors, held: sp.csr_matrix, lowest: float
) -> sp.csr_matrix:
    """Return the highest product of each row with the values of each column, from `lowest` on.

    Parameters
    ----------
    left, right : sparse or dense matrix of (rows, d) and (values, d)
    held : scipy.sparse.csr_matrix of shape (columns, values)
        Which column holds which value.
    lowest : float
        Above 0.

    Returns
    -------
    scipy.sparse.csr_matrix of shape (rows, columns)
    """
    best = _Best(held, lowest)
    for product in products(left, right):
        best.add(product)
    return best.matrix()


def best_by_column_of_each(
    left: Combined, right: Combined, held: sp.csr_matrix, lowest: float, weights: Sequence[float]
) -> dict[float, sp.csr_matrix]:
    """Do as `best_by_column` for each of several weights, whose products are computed once."""
    by_weight = {weight: _Best(held, lowest) for weight in weights}
    both = (products(left.sparse, right.sparse), products(left.dense, right.dense))
    for sparse, dense in zip(*both, strict=True):
        for weight, best in by_weight.items():
            best.add((1 - weight) * sparse + weight * dense)
    return {weight: best.matrix() for weight, best in by_weight.items()}


class _Best:
    """The highest products of rows with the values of each column, row by row."""

    def __init__(self, held: sp.csr_matrix, lowest: float) -> None:
        self._columns, self._lowest = held.T.tocsr(), lowest
        self._lengths, self._best = np.diff(self._columns.indptr), np.zeros(held.shape[0])
        self._members: list[np.ndarray] = []
        self._data: list[np.ndarray] = []

    def add(self, product: np.ndarray) -> None:
        """Add a row, its products with all values."""
        near = np.flatnonzero(product >= self._lowest)
        starts, lengths = self._columns.indptr[near], self._lengths[near]
        ahead = np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        holding = self._columns.indices[ahead + np.arange(len(ahead))]
        self._best[:] = 0
        np.maximum.at(self._best, holding, np.repeat(product[near], lengths))
        self._members.append(np.flatnonzero(self._best))
        self._data.append(self._best[self._members[-1]])

    def matrix(self) -> sp.csr_matrix:
        """Return all rows, (rows, columns)."""
        offsets = np.cumsum([0, *map(len, self._members)])
        arrays = np.concatenate(self._data), np.concatenate(self._members), offsets
        return sp.csr_matrix(arrays, shape=(len(self._members), len(self._best)))


@numba.njit(cache=True)
def _add_products(
    indices: np.ndarray,
    factors: np.ndarray,
    indptr: np.ndarray,
    rows: np.ndarray,
    data: np.ndarray,
    product: np.ndarray,
) -> None:
    for at in range(len(indices)):
        for posting in range(indptr[indices[at]], indptr[indices[at] + 1]):
            product[rows[posting]] += factors[at] * data[posting]
