"""Numerical columns and dependencies of tables as numbers, prepared once for many plans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class CodedNumbers:
    """A numerical column.

    Attributes
    ----------
    numbers : numpy.ndarray of float64
        One for each row, NaN where it is missing.
    distinct : numpy.ndarray of float64
        In order, NaN last.
    codes : numpy.ndarray of int64
        The position of each row's number among the distinct ones.
    order : numpy.ndarray of int64
        The rows that have a number, in the order of these.
    has_missing : bool
        NaN is among the distinct ones.
    """

    numbers: np.ndarray
    distinct: np.ndarray
    codes: np.ndarray
    order: np.ndarray
    has_missing: bool

    @classmethod
    def of(cls, numbers: np.ndarray) -> CodedNumbers:
        """Return a column of numbers, NaN where one is missing."""
        distinct, codes = np.unique(numbers, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        missing = int(np.isnan(numbers).sum())
        return cls(numbers, distinct, codes, order[: len(order) - missing], missing > 0)


@dataclass(frozen=True, eq=False)
class CodedDependency:
    """A dependency of a table as numbers: the pairs of X and Y that its rows have.

    Attributes
    ----------
    pair_of_row : numpy.ndarray of int64
        Pairs are in the order of X, then of the text of Y.
    starts : numpy.ndarray of int64
        The first pair of each X.
    holds : bool
        Each X has one Y, so that all rows are correct in any join result.
    """

    pair_of_row: np.ndarray
    starts: np.ndarray
    holds: bool

    @classmethod
    def of(cls, x: np.ndarray, y_ranks: np.ndarray) -> CodedDependency:
        """Return a dependency of rows with codes of X and ranks of Y by their texts."""
        pairs = x * (int(y_ranks.max(initial=0)) + 1) + y_ranks
        _, first, pair_of_row = np.unique(pairs, return_index=True, return_inverse=True)
        x_of_pair = x[first]
        starts = np.flatnonzero(np.diff(x_of_pair, prepend=-1))
        return cls(pair_of_row.astype(np.int64), starts, len(starts) == len(first))

    def correct(self, counts: np.ndarray) -> np.ndarray:
        """Return which rows have the most frequent Y of their X, of equal ones the first."""
        sizes = np.bincount(self.pair_of_row, counts)
        lengths = np.diff(self.starts, append=len(sizes))
        largest = np.repeat(np.maximum.reduceat(sizes, self.starts), lengths)
        winners = np.flatnonzero(sizes == largest)
        x_of_winner = np.repeat(np.arange(len(self.starts)), lengths)[winners]
        is_first = np.diff(x_of_winner, prepend=-1) > 0
        chosen = np.zeros(len(sizes), bool)
        chosen[winners[is_first]] = True
        return chosen[self.pair_of_row]
