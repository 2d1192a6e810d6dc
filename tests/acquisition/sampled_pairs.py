"""Pairs of tables of which correlated samples are there, and what is estimated of their joins.

The sample of a table at a rate p has the rows whose join key is at a position of at most p. The
position depends on the key alone, so all rows of a key are kept or none, in each table. A table
that joins along several edges keeps the rows that pass the test of each. Rows with a missing cell
in a key join nothing: they are in no sample.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pexeso.acquisition.intervals import (
    Estimate,
    correlation_estimate,
    quality_estimate,
)
from pexeso.acquisition.key_hashes import KeyTest, hash_positions, with_key_tokens
from pexeso.acquisition.quality import Dependency
from pexeso.joins.measures import exact_sum, join_counts


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


def unsampled_squares(left: KeySummary, right: KeySummary, rate: float) -> float:
    """Return a bound on the squares of the rows of heavy keys that samples of two tables lack."""
    heavy = np.union1d(left.positions, right.positions)
    heavy = heavy[heavy > rate]
    rows = _most_rows(left, heavy) * _most_rows(right, heavy)
    return exact_sum(rows * rows)


def _most_rows(summary: KeySummary, positions: np.ndarray) -> np.ndarray:
    """Return the most rows that keys can have, those of the listed ones."""
    at = np.searchsorted(summary.positions, positions)
    if not len(summary.positions):
        return np.full(len(at), float(summary.most_unlisted))
    at = np.minimum(at, len(summary.positions) - 1)
    is_listed = summary.positions[at] == positions
    counts = summary.counts[at].astype(np.float64)
    return np.where(is_listed, counts, summary.most_unlisted)


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
