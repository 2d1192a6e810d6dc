"""Whether the keys of a sample carry an interval: how many, how heavy, and what they leave unseen.

Few keys, or few that have most of the rows, do not show how far the next sample would be from this
one. Cells of the counted distribution that were seen for one key alone tell how many others were
not seen (I. J. Good, "The population frequencies of species and the estimation of population
parameters", 1953).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pexeso.acquisition.key_hashes import KeyTest, hash_positions
from pexeso.acquisition.quality import Dependency, QualityOfCounts
from pexeso.joins.measures import (
    CorrelationOfCounts,
    exact_sum,
    log2,
    merged_rows,
    paired_codes,
    row_codes,
)

MIN_KEYS = 30  # Fewest sampled keys of an edge that carry an interval

MIN_EFFECTIVE_KEYS = 20  # Fewest equally heavy keys that the sampled ones must be worth

MAX_UNSEEN = 0.2  # Largest share of rows in cells that are probably not in the sample


@dataclass(frozen=True)
class Support:
    """What the keys of an edge in a sample say about an estimate by them."""

    keys: int
    effective_keys: float
    unseen: float = 0.0
    inflation: float = 1.0

    @property
    def reason(self) -> str:
        """Why these keys carry no interval; empty where they do."""
        if self.keys < MIN_KEYS:
            return f"{self.keys} keys in the sample, at least {MIN_KEYS} are needed"
        if self.effective_keys < MIN_EFFECTIVE_KEYS:
            return (
                f"few keys have most rows: the sample is worth {self.effective_keys:.1f} equally "
                f"heavy keys, at least {MIN_EFFECTIVE_KEYS} are needed"
            )
        if self.unseen > MAX_UNSEEN:
            return (
                f"about {self.unseen:.0%} of the rows have values that are not in the sample, at "
                f"most {MAX_UNSEEN:.0%} are allowed"
            )
        return ""


def support_of_keys(
    weights: np.ndarray, rate: float, *, unsampled_squares: float = 0.0, unseen: float = 0.0
) -> Support:
    weights = np.asarray(weights, np.float64)
    weights = weights[weights > 0]
    if not len(weights):
        return Support(0, 0.0, unseen)
    total, squares = exact_sum(weights), exact_sum(weights * weights)
    whole = max(squares / rate, squares + unsampled_squares)
    effective = total * total / (whole * rate)
    return Support(len(weights), effective, unseen, math.sqrt(whole * rate / squares))


def unseen_share(cells: np.ndarray, keys: np.ndarray, counts: np.ndarray, rate: float) -> float:
    """Return the estimated share of rows in cells that a sample of keys lacks.

    It is the share of rows in cells that one key alone has, times 1 - p.
    """
    mask = counts > 0
    cells, keys, counts = cells[mask], keys[mask], counts[mask]
    if not len(cells):
        return 0.0
    order = np.lexsort([keys, cells])
    cells, keys, counts = cells[order], keys[order], counts[order].astype(np.float64)
    first = np.flatnonzero(np.diff(cells, prepend=cells[0] - 1))
    n_keys = np.add.reduceat(np.r_[True, (np.diff(keys) != 0) | (np.diff(cells) != 0)], first)
    rows = np.add.reduceat(counts, first)
    return float((1 - rate) * rows[n_keys == 1].sum() / rows.sum())


N_GROUPS = 32  # Groups of keys that are left out in turn

_EXTREME = 0.5
_SLOW = 2.0
_RARE_KEYS = 30
_LN2 = 0.6931471805599453
# 97.5 % quantiles of Student's distribution for 1, 2, ... 31 degrees of freedom, rounded up.
_QUANTILES = (
    12.7063, 4.3027, 3.1825, 2.7765, 2.5706, 2.447, 2.3647, 2.3061,
    2.2622, 2.2282, 2.201, 2.1789, 2.1604, 2.1448, 2.1315, 2.12,
    2.1099, 2.101, 2.0931, 2.086, 2.0797, 2.0739, 2.0687, 2.0639,
    2.0596, 2.0556, 2.0519, 2.0485, 2.0453, 2.0423, 2.0396,
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """An estimate from a sample and what is known of its error."""

    value: float
    low: float
    high: float
    standard_error: float
    plug_in: float
    reliable: bool = True
    reason: str = ""


def with_rare_keys(
    estimate: Estimate, part: np.ndarray, rest: np.ndarray, support: Support, rate: float
) -> Estimate:
    """Return the estimate of a share, wider where few keys make up the smaller part.

    Of few keys, or none, the number in the whole is as uncertain as a Poisson variable, whose
    limits are not symmetric (N. Breslow and N. Day, "Statistical Methods in Cancer Research" II,
    1987, Byar's approximation). Leaving groups out does not show it: without such a key in the
    sample nothing changes.
    """
    if not estimate.reliable or rate == 1:
        return estimate
    left = math.sqrt(1 - rate)
    low, high = estimate.low, estimate.high
    for share, weights, sign in ((estimate.value, part, 1), (1 - estimate.value, rest, -1)):
        keys = support_of_keys(weights, 1.0).effective_keys
        if keys >= _RARE_KEYS or share > 0.5:
            continue
        ends = [0.0, 3.69 / support.effective_keys]  # e**-3.69 is 0.025
        if keys:
            ends = [share * (end / keys - 1) for end in _poisson_limits(keys)]
        ends = sorted(estimate.value + sign * left * end for end in ends)
        low, high = min(low, ends[0]), max(high, ends[1])
    return replace(estimate, low=_clipped(low, (0.0, 1.0)), high=_clipped(high, (0.0, 1.0)))


def _poisson_limits(count: float) -> tuple[float, float]:
    above = count + 1
    low = max(1 - 1 / (9 * count) - 1.96 / (3 * math.sqrt(count)), 0.0)
    high = 1 - 1 / (9 * above) + 1.96 / (3 * math.sqrt(above))
    return count * low * low * low, above * high * high * high


def key_groups(positions: np.ndarray) -> np.ndarray:
    distinct, inverse = np.unique(positions, return_inverse=True)
    return inverse.reshape(positions.shape) * N_GROUPS // max(len(distinct), 1)


def without_groups(
    statistic: Callable[[np.ndarray], float], counts: np.ndarray, groups: np.ndarray
) -> np.ndarray:
    """Return a statistic of how often each row is there, without each group of keys in turn.

    A row with several keys has the group of each, (k, n), and is left out with any of them.
    """
    groups = np.atleast_2d(groups)
    left_out = ((groups == g).any(axis=0) for g in range(N_GROUPS))
    return np.array([statistic(np.where(rows, 0, counts)) for rows in left_out])


def jackknife(
    whole: float,
    without: np.ndarray,
    rates: Sequence[float],
    *,
    bounds: tuple[float, float] = (0.0, math.inf),
    supports: Sequence[Support] = (),
) -> Estimate:
    """Return an estimate with its interval from statistics without groups of keys.

    `without` has a row for each edge with a test of its own, and `rates` the rate of each.
    """
    without = np.asarray(without, np.float64).reshape(len(rates), -1)
    edges = [i for i, rate in enumerate(rates) if rate < 1]
    reasons = [supports[i].reason for i in edges if supports and supports[i].reason]
    if math.isnan(whole):
        return Estimate(math.nan, *bounds, math.nan, whole, False, "no row in the sample")
    if not edges:
        return Estimate(whole, whole, whole, 0.0, whole)
    without = np.where(np.isnan(without), whole, without)
    parts = [_part(whole, without[i], rates[i]) for i in edges]
    linear, logarithmic = (math.fsum(part[i] for part in parts) for i in (0, 1))
    variance = math.fsum(part.variance for part in parts)
    inflation = max([supports[i].inflation for i in edges], default=1.0) if supports else 1.0
    error = math.sqrt(variance)
    extreme = math.sqrt(math.fsum(part.extreme**2 for part in parts))
    half = inflation * (_quantile(parts, variance) * error + _EXTREME * extreme)
    ends = [0.0, linear, _SLOW * logarithmic]
    value = _clipped(whole + linear, bounds)
    if reasons:
        return Estimate(value, *bounds, error, whole, False, reasons[0])
    low = _clipped(whole + min(ends) - half, bounds)
    high = _clipped(whole + max(ends) + half, bounds)
    return Estimate(value, low, high, error, whole)


class _Part(NamedTuple):
    """What one edge adds: two ways to go to the whole, a variance, its freedom, an extreme."""

    linear: float
    logarithmic: float
    variance: float
    freedom: float
    extreme: float


def _part(whole: float, without: np.ndarray, rate: float) -> _Part:
    n = len(without)
    mean = math.fsum(without.tolist()) / n
    squares = (without - mean) ** 2
    total, fourth = math.fsum(squares.tolist()), math.fsum((squares * squares).tolist())
    change = (n - 1) * (whole - mean)
    # The freedom that a sum of squares with this kurtosis has; n - 1 for normal deviations.
    freedom = min(n - 1.0, max(3 * total * total / fourth - 1, 1.0)) if fourth > 0 else n - 1.0
    extreme = math.sqrt((1 - rate) * float(squares.max()))
    variance = (1 - rate) * (n - 1) / n * total
    return _Part(
        (1 - rate) * change, -_LN2 * float(log2(rate)) * change, variance, freedom, extreme
    )


def _quantile(parts: Sequence[_Part], variance: float) -> float:
    """Return the quantile for a sum of variances (F. E. Satterthwaite, 1946)."""
    if variance == 0:
        return 0.0
    shares = math.fsum(part.variance**2 / part.freedom for part in parts)
    freedom = int(variance * variance / shares) if shares > 0 else 1
    return _QUANTILES[min(max(freedom, 1), len(_QUANTILES)) - 1]


def _clipped(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


MIN_JOIN_ROWS = 100  # Fewest rows of the join of samples that carry an interval

_KeyColumns = Mapping[tuple[str, ...], Sequence[Sequence[str]]]


def correlation_estimate(
    rows: pa.Table,
    counts: np.ndarray | None,
    edges: Sequence[KeyTest],
    x: Sequence[str],
    y: Sequence[str],
    *,
    numeric: Collection[str] = (),
    seed: int = 0,
    key_columns: _KeyColumns | None = None,
    unsampled: Sequence[float] = (),
) -> Estimate:
    """Return the correlation of a join with its interval, from the join of samples."""
    sample = _JoinSample(rows, counts, edges, [*x, *y], seed, key_columns or {}, unsampled)
    measure = CorrelationOfCounts(sample.rows, x, y, numeric=numeric)
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
    unsampled: Sequence[float] = (),
) -> Estimate:
    """Return the quality of a join with its interval, from the join of samples."""
    names = [name for one in dependencies for name in (*one.left, one.right)]
    sample = _JoinSample(rows, counts, edges, names, seed, key_columns or {}, unsampled)
    measure = QualityOfCounts(sample.rows, dependencies)

    def cells(key: Sequence[str]) -> list[np.ndarray]:
        # Rows with equal left sides that hold the key have one key: none of them is unseen.
        pairs = zip(dependencies, measure.left_codes, strict=True)
        return [codes for one, codes in pairs if not set(key) <= set(one.left)]

    estimate = sample.estimate(measure, cells, (0.0, 1.0))
    return sample.with_rare_keys(estimate, measure.correct(sample.counts))


class _JoinSample:
    """The join of samples as the distinct rows over some columns and groups of keys."""

    def __init__(
        self,
        rows: pa.Table,
        counts: np.ndarray | None,
        edges: Sequence[KeyTest],
        names: Sequence[str],
        seed: int,
        key_columns: _KeyColumns,
        unsampled: Sequence[float],
    ) -> None:
        self._tests: dict[tuple[str, ...], tuple[float, float]] = {}
        for edge, squares in zip(edges, unsampled or [0.0] * len(edges), strict=True):
            rate, largest = self._tests.get(edge.names, (1.0, squares))
            if min(rate, edge.rate) < 1:
                self._tests[edge.names] = min(rate, edge.rate), max(largest, squares)
        self._columns = {test: key_columns.get(test, [test]) for test in self._tests}
        keys = {name for of_test in self._columns.values() for key in of_test for name in key}
        rows, key_counts = merged_rows(rows, sorted({*names, *keys}), counts)
        rows, self._key_counts = rows.filter(pa.array(key_counts > 0)), key_counts[key_counts > 0]
        self._positions = [
            np.array([_positions(rows, key, test, seed) for key in self._columns[test]])
            for test in self._tests
        ]
        groups = [key_groups(positions) for positions in self._positions]
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
        without = [without_groups(measure, self.counts, groups) for groups in self._groups]
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


def _positions(
    rows: pa.Table, columns: Sequence[str], names: Sequence[str], seed: int
) -> np.ndarray:
    keys = pa.table([rows.column(column) for column in columns], names=list(names))
    return hash_positions(keys, names, seed=seed)
