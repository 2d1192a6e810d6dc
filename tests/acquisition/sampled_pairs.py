"""Pairs of tables of which correlated samples are there, and what is estimated of their joins.

The sample of a table at a rate p has the rows whose join key is at a position of at most p. The
position depends on the key alone, so all rows of a key are kept or none, in each table. A table
that joins along several edges keeps the rows that pass the test of each. Rows with a missing cell
in a key join nothing: they are in no sample.
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
from pexeso.acquisition.key_hashes import KeyTest, hash_positions, with_key_tokens
from pexeso.acquisition.quality import Dependency
from pexeso.joins.measures import exact_sum, information, join_counts, log2, row_weights


@dataclass(frozen=True)
class CorrelatedSample:
    """A sample of a table."""

    rows: pa.Table


def correlated_sample(
    table: pa.Table, tests: Sequence[KeyTest], *, seed: int = 0
) -> CorrelatedSample:
    """Return the rows of a table that pass the tests of all its edges."""
    selected = np.ones(table.num_rows, bool)
    for test in tests:
        # A missing key has no position, and NaN is below no rate.
        selected &= hash_positions(table, test.names, seed=seed) <= test.rate
    return CorrelatedSample(table.filter(pa.array(selected)))


N_HEAVIEST = 1000
"""Keys that a summary lists, 16 bytes each."""


@dataclass(frozen=True, eq=False)
class KeySummary:
    """What a whole table tells of its heaviest keys, ascending by position."""

    keys: int
    rows: int
    null_rows: int
    positions: np.ndarray
    counts: np.ndarray
    most_unlisted: int


def key_summary(
    table: pa.Table, names: Sequence[str], *, seed: int = 0, n_heaviest: int = N_HEAVIEST
) -> KeySummary:
    """Return the summary of the keys of a table."""
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
    """Return the join informativeness of two tables with its interval, from rows of keys."""
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
        plug_in=join_informativeness(left, right),
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
