"""Estimates of informativeness, correlation and quality of joins from correlated samples.

Symbols of the paper: S1 and S2 the samples of D1 and D2 at the rate p. It takes JI, CORR and Q of
the samples as they are. Here each comes with a correction for bias and an interval (`intervals`).

A sample keeps the counts of its keys and drops whole keys, so sums over keys are known up to the
factor p, while entropies over keys are short by the logarithm of 1/p. With L and R the pairs of the
outer join of each side alone, T all pairs, and H the entropies of their counts, all of the samples,

    JI = (L (H_L + log(1/p)) + R (H_R + log(1/p))) / (T (H_T + log(1/p))).

Correlation and quality of a join are measured on the join of the samples, as rows with counts, of
two tables or of a tree of them. Each edge that is sampled below the rate 1 has a test of its own,
and its keys are left out in groups. Intervals are of joins that were not thinned
(`thinned_join.SampledJoin.thinning`): leaving keys out does not show what thinning adds.

Time: the sample is measured once, and 32 times more for each test.
Memory: the distinct rows of the join over the columns asked for and the keys, and about 100 bytes a
row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pexeso.acquisition.measures.codes import paired_codes, row_codes, row_weights
from pexeso.acquisition.measures.correlation import CorrelationOfCounts
from pexeso.acquisition.measures.informativeness import join_informativeness, outer_join_counts
from pexeso.acquisition.measures.join_counts import merged_rows
from pexeso.acquisition.measures.logarithm import log2
from pexeso.acquisition.measures.quality import Dependency, QualityOfCounts
from pexeso.acquisition.measures.sums import exact_sum, information
from pexeso.acquisition.sampling.correlated import KeyTest
from pexeso.acquisition.sampling.hashing import hash_positions
from pexeso.acquisition.sampling.intervals import (
    N_GROUPS,
    Estimate,
    jackknife,
    key_groups,
    with_rare_keys,
    without_groups,
)
from pexeso.acquisition.sampling.key_summaries import KeySummary, unsampled_squares
from pexeso.acquisition.sampling.support import Support, support_of_keys, unseen_share
from pexeso.errors import InputError

MIN_JOIN_ROWS = 100
"""Fewest rows of the join of samples that carry an interval."""

_LN2 = 0.6931471805599453
_MATCHED, _LEFT, _RIGHT = range(3)
_KeyColumns = Mapping[tuple[str, ...], Sequence[Sequence[str]]]

MIN_DANGLING_KEYS = 30
"""Fewest sampled keys of a side without a partner for which informativeness is debiased."""


def debiased_informativeness(
    left_counts: np.ndarray,
    right_counts: np.ndarray,
    rate: float,
    *,
    min_dangling_keys: int = MIN_DANGLING_KEYS,
) -> float:
    """Return the join informativeness of two tables from the counts of sampled keys.

    Parameters
    ----------
    left_counts, right_counts : numpy.ndarray
        How many rows of S1 and of S2 have each sampled key, in the same order.
    rate : float
        p, above 0 and up to 1.
    min_dangling_keys : int
        Fewest sampled keys of a side without a partner, if it has any, for the correction.

    Returns
    -------
    float
        From 0 to 1, NaN without a row. Where a side has fewer keys without a partner, that of the
        samples as they are.

    Raises
    ------
    InputError
        If the counts differ in length, or one is below 0.

    Examples
    --------
    >>> left, right = np.repeat([1, 0], 512), np.repeat([0, 1], 512)  # half of 1024 keys each
    >>> round(join_informativeness(left, right).value, 4)
    0.9
    >>> round(debiased_informativeness(left, right, 0.5), 4)
    0.9091
    """
    pairs = outer_join_counts(left_counts, right_counts)
    if any(0 < len(dangling) < min_dangling_keys for dangling in pairs[1:]):
        return join_informativeness(left_counts, right_counts).value
    sides = np.repeat([_MATCHED, _LEFT, _RIGHT], [len(counts) for counts in pairs])
    return _of_totals(np.concatenate(pairs), sides, rate)


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

    Returns
    -------
    Estimate
        Its value is that of `debiased_informativeness`, however few keys have no partner: the
        interval says what it is worth.

    Raises
    ------
    InputError
        If the arrays differ in length, a count is below 0, or the rate is out of range.
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


def correlation_estimate(
    rows: pa.Table,
    counts: np.ndarray | None,
    edges: Sequence[KeyTest],
    x: Sequence[str],
    y: Sequence[str],
    *,
    numeric: Collection[str] = (),
    y_bins: int = 16,
    numeric_scale: str = "raw",
    seed: int = 0,
    key_columns: _KeyColumns | None = None,
    unsampled: Sequence[float | None] = (),
    n_groups: int = N_GROUPS,
) -> Estimate:
    """Return the correlation of a join with its interval, from the join of samples.

    Parameters
    ----------
    rows : pyarrow.Table
        The join of the samples, with the columns of X, Y and the keys of all edges that are sampled
        below the rate 1.
    counts : numpy.ndarray of int or None
        How often each row is there; None for once each.
    edges : sequence of KeyTest
        The edges of the join, with the columns and rates of their tests. Edges on the same columns
        share one test.
    x, y, numeric, y_bins, numeric_scale
        As those of `measures.correlation.correlation`.
    seed : int
        That of the samples.
    key_columns : mapping of tuple of str to sequence of sequence of str, optional
        For the columns of a test, in the order of `KeyTest.names`, those of `rows` that hold a key
        of it, as `thinned_join.SampledJoin.key_columns`; columns of the same names if not given.
    unsampled : sequence of float or None
        For each edge the squares of the rows of heavy keys that the samples lack
        (`key_summaries.unsampled_squares`), None where they are not known; without any, none are.
        Then only sampled keys that are about equally heavy carry an interval.
    n_groups : int
        Groups of keys that are left out in turn.

    Returns
    -------
    Estimate
        Its value is corrected for bias by the jackknife; an upper end that nothing bounds is
        infinite.

    Raises
    ------
    InputError
        If X or Y is empty, an option is not one of those allowed, or values or counts do not fit.
    ColumnNotFoundError
        If the join lacks a column.
    """
    options = {"numeric": numeric, "y_bins": y_bins, "numeric_scale": numeric_scale}
    drawn = seed, key_columns or {}, unsampled, n_groups
    sample = _JoinSample(rows, counts, edges, [*x, *y], *drawn)
    measure = CorrelationOfCounts(sample.rows, x, y, **options)
    cells = measure.cells(sample.counts)
    return sample.estimate(measure, lambda names: [cells], (0.0, math.inf))


def quality_estimate(
    rows: pa.Table,
    counts: np.ndarray | None,
    edges: Sequence[KeyTest],
    dependencies: Sequence[Dependency],
    *,
    seed: int = 0,
    key_columns: _KeyColumns | None = None,
    unsampled: Sequence[float | None] = (),
    n_groups: int = N_GROUPS,
) -> Estimate:
    """Return the quality of a join with its interval, from the join of samples.

    Parameters
    ----------
    rows : pyarrow.Table
        The join of the samples, with the columns of the dependencies and the keys of all edges that
        are sampled below the rate 1.
    dependencies : sequence of Dependency
        FS.
    counts, edges, seed, key_columns, unsampled, n_groups
        As those of `correlation_estimate`.

    Returns
    -------
    Estimate
        Its value is corrected for bias by the jackknife.

    Raises
    ------
    InputError
        If values or counts do not fit.
    ColumnNotFoundError
        If the join lacks a column.
    """
    names = [name for one in dependencies for name in (*one.left, one.right)]
    drawn = seed, key_columns or {}, unsampled, n_groups
    sample = _JoinSample(rows, counts, edges, names, *drawn)
    measure = QualityOfCounts(sample.rows, dependencies)

    def cells(key: Sequence[str]) -> list[np.ndarray]:
        # Rows with equal left sides that hold the key have one key: none of them is unseen.
        pairs = zip(dependencies, measure.left_codes, strict=True)
        return [codes for one, codes in pairs if not set(key) <= set(one.left)]

    estimate = sample.estimate(measure, cells, (0.0, 1.0))
    return sample.with_rare_keys(estimate, measure.correct(sample.counts))


def miller_madow(
    rows: pa.Table, x: Sequence[str], y: Sequence[str], counts: np.ndarray | None = None
) -> float:
    """Return the correlation of categorical attributes, corrected for the number of their values.

    With r values of X, c of Y and n rows it is the correlation less (r - 1)(c - 1) / (2 n ln 2), at
    least 0 (G. Miller, "Note on the bias of information estimates", 1955). It estimates the
    correlation of the distribution that rows are drawn from one by one, not that of the table.

    Parameters
    ----------
    rows : pyarrow.Table
        A table or a join result.
    x, y : sequence of str
        X and Y, at least one column each.
    counts : numpy.ndarray of int, optional
        How often each row is there, once if not given.

    Returns
    -------
    float
        0 without a row.

    Raises
    ------
    InputError
        If X or Y is empty, or values or counts do not fit.
    ColumnNotFoundError
        If the table lacks a column.

    Examples
    --------
    >>> table = pa.table({"a": ["x", "x", "y", "y"] * 25, "b": ["u", "v", "v", "v"] * 25})
    >>> round(miller_madow(table, ["a"], ["b"]), 4)
    0.3041
    """
    weights = row_weights(rows.num_rows, counts)
    plug_in = CorrelationOfCounts(rows, x, y)(weights)
    rows, n = rows.filter(pa.array(weights > 0)), int(weights.sum())
    if not n:
        return 0.0
    n_x, n_y = (len(np.unique(row_codes(rows, names))) for names in (x, y))
    return max(plug_in - (n_x - 1) * (n_y - 1) / (2 * n * _LN2), 0.0)


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


class _JoinSample:
    """The join of samples as the distinct rows over some columns and groups of keys.

    Attributes
    ----------
    rows, counts
        The distinct rows, and how often each is there.
    """

    def __init__(
        self,
        rows: pa.Table,
        counts: np.ndarray | None,
        edges: Sequence[KeyTest],
        names: Sequence[str],
        seed: int,
        key_columns: _KeyColumns,
        unsampled: Sequence[float | None],
        n_groups: int,
    ) -> None:
        if unsampled and len(unsampled) != len(edges):
            raise InputError(
                f"Each of {len(edges)} edges needs one number of unsampled squares, got "
                f"{len(unsampled)}."
            )
        self._tests: dict[tuple[str, ...], tuple[float, float | None]] = {}
        for edge, squares in zip(edges, unsampled or [None] * len(edges), strict=True):
            rate, largest = self._tests.get(edge.names, (1.0, squares))
            if min(rate, edge.rate) < 1:
                known = None if largest is None or squares is None else max(largest, squares)
                self._tests[edge.names] = min(rate, edge.rate), known
        self._columns = {test: key_columns.get(test, [test]) for test in self._tests}
        keys = {name for of_test in self._columns.values() for key in of_test for name in key}
        rows, key_counts = merged_rows(rows, sorted({*names, *keys}), counts)
        rows, self._key_counts = rows.filter(pa.array(key_counts > 0)), key_counts[key_counts > 0]
        self._positions = [
            np.array(
                [_checked_positions(rows, key, test, rate, seed) for key in self._columns[test]]
            )
            for test, rate in self._rates
        ]
        self._n_groups = n_groups
        groups = [key_groups(positions, n_groups) for positions in self._positions]
        codes = row_codes(rows, sorted(set(names)))
        for of_key in (of_key for of_test in groups for of_key in of_test):
            codes = paired_codes(codes, of_key)
        _, first, self._distinct = np.unique(codes, return_index=True, return_inverse=True)
        self.rows = rows.take(pa.array(first))
        sums = np.bincount(self._distinct, self._key_counts, minlength=len(first))
        self.counts = sums.astype(np.int64)
        self._groups = [of_test[:, first] for of_test in groups]

    @property
    def _rates(self) -> list[tuple[tuple[str, ...], float]]:
        return [(test, rate) for test, (rate, _) in self._tests.items()]

    def estimate(
        self,
        measure: Callable[[np.ndarray], float],
        cells: Callable[[Sequence[str]], list[np.ndarray]],
        bounds: tuple[float, float],
    ) -> Estimate:
        """Return the estimate of a measure; `cells` has what must be seen, by the edge's key."""
        whole = measure(self.counts)
        if not self._tests:
            return Estimate(whole, whole, whole, 0.0, whole)
        n_rows = int(self.counts.sum())
        if not n_rows:
            return Estimate(whole, *bounds, math.nan, whole, False, "no row in the sample")
        without = [
            without_groups(measure, self.counts, groups, self._n_groups) for groups in self._groups
        ]
        rates = [rate for _, rate in self._rates]
        supports = [
            self._support(i, {key: cells(key) for key in map(tuple, self._columns[test])})
            for i, test in enumerate(self._tests)
        ]
        estimate = jackknife(whole, np.array(without), rates, bounds=bounds, supports=supports)
        if n_rows < MIN_JOIN_ROWS and estimate.reliable:
            reason = (
                f"{n_rows} rows in the join of the samples, at least {MIN_JOIN_ROWS} are needed"
            )
            return replace(estimate, low=bounds[0], high=bounds[1], reliable=False, reason=reason)
        return estimate

    def with_rare_keys(self, estimate: Estimate, part: np.ndarray) -> Estimate:
        """Return the estimate of the share of some rows, wider where few keys have them."""
        inside = self._key_counts * part[self._distinct]
        for i, (_, rate) in enumerate(self._rates):
            for positions in self._positions[i]:
                keys = np.unique(positions, return_inverse=True)[1]
                weights = [np.bincount(keys, of) for of in (inside, self._key_counts - inside)]
                support = support_of_keys(weights[0] + weights[1], rate)
                estimate = with_rare_keys(estimate, *weights, support, rate)
        return estimate

    def _support(self, edge: int, cells: dict[tuple[str, ...], list[np.ndarray]]) -> Support:
        """Return what the keys of a test say, the least of its keys in the rows."""
        rate, squares = list(self._tests.values())[edge]
        supports = []
        for positions, codes in zip(self._positions[edge], cells.values(), strict=True):
            keys = np.unique(positions, return_inverse=True)[1]
            shares = [
                unseen_share(code[self._distinct], positions, self._key_counts, rate)
                for code in codes
            ]
            weights, unseen = np.bincount(keys, self._key_counts), max(shares, default=0.0)
            supports.append(
                support_of_keys(weights, rate, unsampled_squares=squares, unseen=unseen)
            )
        return min(supports, key=lambda one: (not one.reason, one.effective_keys))


def _checked_positions(
    rows: pa.Table, columns: Sequence[str], names: Sequence[str], rate: float, seed: int
) -> np.ndarray:
    keys = pa.table([rows.column(column) for column in columns], names=list(names))
    positions = hash_positions(keys, names, seed=seed)
    if not (positions <= rate).all():
        raise InputError(
            f"The join has keys on {list(columns)} that a sample at the rate {rate} with the seed "
            f"{seed} lacks. Give the rates and the seed of the samples that were joined."
        )
    return positions
