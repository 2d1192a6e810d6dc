"""Correlated samples: the rows whose join keys are at positions up to a rate.

Symbols of the paper: p the rate, h(t[J]) the position of the key of row t (`hashing`). The sample
of D at p has the rows with h(t[J]) <= p. The position depends on the key alone, so all rows of a
key are kept or none, in each table, and a sample is a part of that at any higher rate.

A table that joins along several edges keeps the rows that pass the test of each. Edges on the same
columns share one test. The join of such samples holds each row of the full join with the product of
the rates of its distinct tests, which falls quickly along a path; and a table of a hundred states
sampled at 0.1 is no table of states any more. So an edge with a side of few distinct keys is not
thinned: its rate is 1 (`edge_rate`).

Rows with a missing cell in a key join nothing. They are in no sample, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.acquisition.graph import join_informativeness
from pexeso.acquisition.intervals import (
    N_GROUPS,
    Estimate,
    correlation_estimate,
    jackknife,
    key_groups,
    quality_estimate,
    support_of_keys,
    with_rare_keys,
)
from pexeso.acquisition.key_hashes import KeyTest, hash_positions, key_tokens, with_key_tokens
from pexeso.acquisition.quality import Dependency
from pexeso.errors import ColumnNotFoundError, InputError
from pexeso.joins.measures.codes import join_counts, row_weights
from pexeso.joins.measures.entropies import exact_sum, information, log2


@dataclass(frozen=True)
class CorrelatedSample:
    """A sample of a table and what it was drawn from."""

    rows: pa.Table
    n_rows: int
    null_rows: int


def correlated_sample(
    table: pa.Table | pa.RecordBatch,
    tests: Sequence[KeyTest],
    *,
    seed: int = 0,
    bought: Sequence[KeyTest] = (),
) -> CorrelatedSample:
    """Return the rows of a table that pass the tests of all its edges.

    Each row is judged by itself, so a table can be read in parts, as in a Spark task. Memory: that
    of `hashing.hash_positions` for one test at a time, and the sample.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    rates, earlier = _lowest_rates(tests), _lowest_rates(bought)
    if bought and (
        set(rates) != set(earlier) or any(earlier[names] > rates[names] for names in rates)
    ):
        raise InputError(
            "A sample can be enlarged only at the same columns and rates that are not lower, got "
            f"{earlier} and then {rates}."
        )
    selected, known = np.ones((2, table.num_rows), bool)
    old = np.full(table.num_rows, bool(bought))
    for names, rate in rates.items():
        positions = _positions(table, names, seed=seed, rate=min(rate, earlier.get(names, rate)))
        known &= ~np.isnan(positions)
        selected &= positions <= rate
        if bought:
            old &= positions <= earlier[names]
    rows = table.filter(pa.array(selected & ~old))
    return CorrelatedSample(rows, table.num_rows, int((~known).sum()))


def distinct_keys(table: pa.Table, names: Sequence[str]) -> int:
    """Return the number of distinct join keys of a table, without those with a missing cell."""
    positions = hash_positions(table, names)
    return len(np.unique(positions[~np.isnan(positions)]))


def _lowest_rates(tests: Sequence[KeyTest]) -> dict[tuple[str, ...], float]:
    rates: dict[tuple[str, ...], float] = {}
    for test in tests:
        rates[test.names] = min(test.rate, rates.get(test.names, 1.0))
    return rates


def _positions(table: pa.Table, names: Sequence[str], *, seed: int, rate: float) -> np.ndarray:
    """Return the positions of keys, or 0 for all complete keys where each of them is kept."""
    if rate < 1:
        return hash_positions(table, names, seed=seed)
    missing = np.zeros(table.num_rows, bool)
    for column in key_tokens(table, names):
        missing |= column.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, np.nan, 0.0)


N_HEAVIEST = 1000
"""Keys that a summary lists, 16 bytes each."""


@dataclass(frozen=True, eq=False)
class KeySummary:
    """What a whole table tells of its keys on the columns of a join.

    Attributes
    ----------
    keys : int
        The number of distinct keys.
    rows : int
        The rows with a key.
    null_rows : int
        The rows with a missing cell in the key.
    positions : numpy.ndarray of float64, shape (k,)
        The positions of the heaviest keys, ascending.
    counts : numpy.ndarray of int64, shape (k,)
        Their numbers of rows.
    most_unlisted : int
        The most rows of a key that is not listed, 0 if all are.
    """

    keys: int
    rows: int
    null_rows: int
    positions: np.ndarray
    counts: np.ndarray
    most_unlisted: int


def key_summary(
    table: pa.Table, names: Sequence[str], *, seed: int = 0, n_heaviest: int = N_HEAVIEST
) -> KeySummary:
    """Return the summary of the keys of a table.

    Memory: that of `hashing.hash_positions`, and 16 bytes for each row.
    """
    if n_heaviest < 0:
        raise InputError(f"n_heaviest must be 0 or more, got {n_heaviest}.")
    positions = hash_positions(table, names, seed=seed)
    known = positions[~np.isnan(positions)]
    distinct, counts = np.unique(known, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    listed = np.sort(order[:n_heaviest])
    rest = counts[order[n_heaviest:]]
    max_rest = int(rest.max(initial=0))
    n_null = len(positions) - len(known)
    return KeySummary(len(distinct), len(known), n_null, distinct[listed], counts[listed], max_rest)


def unsampled_squares(
    left: KeySummary, right: KeySummary, rate: float, *, outer: bool = False
) -> float:
    """Return a bound on the squares of the rows of heavy keys that samples of two tables lack."""
    heavy = np.union1d(left.positions, right.positions)
    heavy = heavy[heavy > rate]
    listed, max_rows = zip(*(_most_rows(summary, heavy) for summary in (left, right)), strict=True)
    rows = max_rows[0] * max_rows[1]
    if outer:
        rows = np.maximum.reduce([rows, listed[0], listed[1]])
    return exact_sum(rows * rows)


def _most_rows(summary: KeySummary, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the listed rows of keys, 0 where they are not, and the most that they can have."""
    at = np.searchsorted(summary.positions, positions)
    if not len(summary.positions):
        return np.zeros(len(at)), np.full(len(at), float(summary.most_unlisted))
    at = np.minimum(at, len(summary.positions) - 1)
    is_listed = summary.positions[at] == positions
    counts = summary.counts[at].astype(np.float64)
    return np.where(is_listed, counts, 0.0), np.where(is_listed, counts, summary.most_unlisted)


_MATCHED, _LEFT, _RIGHT = range(3)


def informativeness_estimate(
    left_counts: np.ndarray,
    right_counts: np.ndarray,
    positions: np.ndarray,
    rate: float,
    *,
    summaries: tuple[KeySummary, KeySummary] | None = None,
) -> Estimate:
    """Return the join informativeness of two tables with its interval, from their samples.

    Parameters
    ----------
    left_counts, right_counts : numpy.ndarray of int, shape (n,)
        How many rows of S1 and of S2 have each sampled key, 0 where the side lacks it.
    positions : numpy.ndarray of float64, shape (n,)
        The position of each key.
    rate : float
        p.
    summaries : tuple of KeySummary, optional
        Those of the whole tables. Without them heavy keys that the samples lack are not known, and
        only sampled keys that are about equally heavy carry an interval.
    """
    n = len(positions)
    left, right = row_weights(n, left_counts), row_weights(n, right_counts)
    counts = np.where((left > 0) & (right > 0), left.astype(np.float64) * right, left + right)
    sides = np.where(left > 0, np.where(right > 0, _MATCHED, _LEFT), _RIGHT)

    def statistic(mask: np.ndarray) -> float:
        return _of_totals(counts[mask], sides[mask], rate)

    every, groups = counts > 0, key_groups(positions)
    without = np.array([statistic(every & (groups != g)) for g in range(N_GROUPS)])
    unsampled = unsampled_squares(*summaries, rate, outer=True) if summaries else None
    support = support_of_keys(counts, rate, unsampled_squares=unsampled)
    estimate = jackknife(
        statistic(every),
        [without],
        [rate],
        bounds=(0.0, 1.0),
        supports=[support],
        plug_in=join_informativeness(left, right).value,
        scaled=True,
    )
    dangling = sides != _MATCHED
    return with_rare_keys(
        estimate, np.where(dangling, counts, 0), np.where(dangling, 0, counts), support, rate
    )


def _of_totals(counts: np.ndarray, sides: np.ndarray, rate: float) -> float:
    """Return informativeness by totals divided by the rate, NaN without a pair."""
    if not len(counts):
        return math.nan
    short = float(log2(1 / rate))
    whole = information(counts) + short * exact_sum(counts)
    if whole == 0:
        return 0.0 if sides[0] == _MATCHED else 1.0
    dangling = [counts[sides == side] for side in (_LEFT, _RIGHT)]
    left = [information(side) + short * exact_sum(side) for side in dangling]
    return min(sum(left) / whole, 1.0)


class SampledPair:
    """Two tables of which correlated samples at one rate are there."""

    def __init__(
        self,
        left: pa.Table,
        right: pa.Table,
        names: Sequence[str],
        rate: float,
        *,
        seed: int = 0,
        summaries: tuple[KeySummary, KeySummary] | None = None,
    ) -> None:
        self._test, self._seed, self._summaries = KeyTest(tuple(names), rate), seed, summaries
        names = self._test.names
        self._left, self._right = with_key_tokens(left, names), with_key_tokens(right, names)

    def informativeness(self) -> Estimate:
        """Return the join informativeness JI(D1, D2)."""
        sides = [
            hash_positions(table, self._test.names, seed=self._seed)
            for table in (self._left, self._right)
        ]
        sides = [positions[~np.isnan(positions)] for positions in sides]
        keys, inverse = np.unique(np.concatenate(sides), return_inverse=True)
        parts = inverse[: len(sides[0])], inverse[len(sides[0]) :]
        counts = [np.bincount(part, minlength=len(keys)) for part in parts]
        return informativeness_estimate(*counts, keys, self._test.rate, summaries=self._summaries)

    def correlation(
        self,
        x: Sequence[str],
        y: Sequence[str],
        *,
        numeric: Collection[str] = (),
    ) -> Estimate:
        """Return the correlation CORR(X,Y) of the join of D1 and D2."""
        rows, counts = self.joined([*x, *y])
        return correlation_estimate(
            rows, counts, [self._test], x, y, numeric=numeric, **self._drawn
        )

    def quality(self, dependencies: Sequence[Dependency]) -> Estimate:
        """Return the quality Q of the join of D1 and D2."""
        names = [name for one in dependencies for name in (*one.left, one.right)]
        rows, counts = self.joined(names)
        return quality_estimate(rows, counts, [self._test], dependencies, **self._drawn)

    def joined(self, names: Sequence[str]) -> tuple[pa.Table, np.ndarray]:
        """Return the join of the samples over some columns, as distinct rows with counts."""
        others = [name for name in dict.fromkeys(names) if name not in self._test.names]
        sides = [
            [name for name in others if name in table.column_names]
            for table in (self._left, self._right)
        ]
        for name in others:
            if name not in sides[0] and name not in sides[1]:
                raise ColumnNotFoundError(
                    f"Neither table has the column {name!r}. Columns: {self._left.column_names} "
                    f"and {self._right.column_names}."
                )
        if both := set(sides[0]) & set(sides[1]):
            raise InputError(
                f"Columns that are not joined must be in one table alone, got {sorted(both)} in "
                "both. Rename them."
            )
        left_names, right_names = sides
        options = {"left_names": left_names, "right_names": right_names}
        return join_counts(self._left, self._right, self._test.names, **options)

    @property
    def _drawn(self) -> dict[str, object]:
        """Return how the samples were drawn."""
        squares = None
        if self._summaries is not None:
            squares = unsampled_squares(*self._summaries, self._test.rate)
        return {"seed": self._seed, "unsampled": [squares]}
