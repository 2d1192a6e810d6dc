"""Which columns of a lake join, counted on the whole numbers that its values stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa


def needed(min_joinability: float, n_values: int) -> int:
    """Return how many of the values of a query column must match, in whole numbers.

    Examples
    --------
    >>> needed(0.5, 5), needed(0.6, 5), needed(0.1, 3)
    (3, 3, 1)
    """
    return max(1, math.ceil(Fraction(str(min_joinability)) * n_values))


class Truth:
    """Counts the values of query columns in the columns of a lake.

    Parameters
    ----------
    queries : sequence of numpy.ndarray
        The distinct numbers of each query column.
    min_joinability : float
        Columns of fewer matches are not kept.

    Examples
    --------
    >>> truth = Truth([np.array([1, 2, 3]), np.array([3, 9])], 0.5)
    >>> truth.add(np.array([7, 7, 7, 8]), np.array([1, 3, 3, 9]))
    3
    >>> truth.table().to_pylist()[-1]
    {'query': 1, 'column': 8, 'matched': 1}
    """

    def __init__(self, queries: Sequence[np.ndarray], min_joinability: float) -> None:
        ids = np.concatenate(queries)
        owners = np.repeat(np.arange(len(queries)), [len(query) for query in queries])
        order = np.argsort(ids, kind="stable")
        self._ids, self._owners = ids[order], owners[order]
        self._needed = np.array([needed(min_joinability, len(query)) for query in queries])
        self._matches: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, columns: np.ndarray, ids: np.ndarray) -> int:
        """Count in some columns, each whole; return how many pairs of column and value there are.

        Parameters
        ----------
        columns, ids : numpy.ndarray
            Of each cell.
        """
        n_ids = int(ids.max()) + 1
        keys = np.unique(columns * n_ids + ids)
        columns, ids = np.divmod(keys, n_ids)
        first = np.searchsorted(self._ids, ids, "left")
        n_owners = np.searchsorted(self._ids, ids, "right") - first
        hits = np.flatnonzero(n_owners)
        repeats = n_owners[hits]
        within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        owners = self._owners[np.repeat(first[hits], repeats) + within]
        n_queries = len(self._needed)
        both, matched = np.unique(
            np.repeat(columns[hits], repeats) * n_queries + owners, return_counts=True
        )
        column, query = np.divmod(both, n_queries)
        joinable = matched >= self._needed[query]
        self._matches.append((query[joinable], column[joinable], matched[joinable]))
        return len(keys)

    def table(self) -> pa.Table:
        """Return all that join: ``query``, ``column``, ``matched``; by query and column."""
        parts = zip(*self._matches, strict=True)
        query, column, matched = (np.concatenate(part) for part in parts)
        order = np.lexsort((column, query))
        return pa.table({"query": query[order], "column": column[order], "matched": matched[order]})
