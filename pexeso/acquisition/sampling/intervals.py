"""Estimates with 95 % intervals from samples of keys, by leaving groups of keys out.

The paper has no intervals, and claims estimates without bias, which holds for counts alone: JI,
CORR and Q are not linear in them. Here the units of a sample are its keys, since all rows of a key
are kept or none. The sampled keys are cut by their positions into groups of equally many, and with
t the statistic of the sample, t_g that without group g, and G groups,

    B = (G - 1) (t - mean t_g)                 the change of t by the logarithm of the sample size
    V = (G - 1) / G sum (t_g - mean t_g)**2    the variance of t for a sample of a large whole

(delete-a-group jackknife; J. Shao and D. Tu, "The Jackknife and Bootstrap", 1995). A sample at the
rate p is a large part of a finite whole, so V counts 1 - p times, and what is left of t to go from
the sample to the whole is (1 - p) B if the bias falls like 1/n, and ln(1/p) B if t grows like log n
as an entropy of ever new values does. B itself is uncertain, most where t is a maximum of nearly
equal counts. So the interval spans t, t + (1 - p) B and t + 2 ln(1/p) B, and around them

    i (q sqrt((1 - p) V) + 1/2 sqrt(1 - p) max |t_g - mean t_g|)

with q the quantile of Student's distribution for as many degrees of freedom as the spread of the
groups allows, few where few groups decide, and i >= 1 where keys are known to be heavier than those
sampled. Rates of several edges with independent tests add their parts. At the rate 1 nothing is
left: the interval is the exact value.

Where the sample cannot carry this the interval is what is certain beforehand, and says so
(`Estimate.reliable`): with few keys, where few keys have most of the rows, where the sampled keys
differ much and nothing is known of those that the sample lacks, or where many cells of the counted
distribution were seen for one key alone, so that many others were not seen (I. J. Good, "The
population frequencies of species and the estimation of population parameters", 1953). The constants
were chosen by simulation over tables with keys from equally frequent to Zipf's law with the
exponent 1.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pexeso.acquisition.measures.logarithm import log2
from pexeso.acquisition.sampling.support import Support, support_of_keys
from pexeso.errors import InputError

N_GROUPS = 32
"""Groups of keys that are left out in turn."""

_EXTREME = 0.5
_SLOW = 2.0
_RARE_KEYS = 30
_LN2 = 0.6931471805599453
_QUANTILES = (
    12.7063, 4.3027, 3.1825, 2.7765, 2.5706, 2.447, 2.3647, 2.3061,
    2.2622, 2.2282, 2.201, 2.1789, 2.1604, 2.1448, 2.1315, 2.12,
    2.1099, 2.101, 2.0931, 2.086, 2.0797, 2.0739, 2.0687, 2.0639,
    2.0596, 2.0556, 2.0519, 2.0485, 2.0453, 2.0423, 2.0396,
)  # fmt: skip
"""97.5 % quantiles of Student's distribution for 1, 2, ... 31 degrees of freedom, rounded up."""


@dataclass(frozen=True)
class Estimate:
    """An estimate from a sample and what is known of its error.

    Attributes
    ----------
    value : float
        The estimate, corrected for bias; NaN without a row.
    low, high : float
        The interval that covers the value of the whole tables for at least 95 % of the seeds, where
        `reliable`; otherwise the values that are possible at all.
    standard_error : float
        The root of the estimated variance, NaN where there is none.
    plug_in : float
        The measure of the sample as it is, which is what the paper takes.
    reliable : bool
        The sample carries the interval.
    reason : str
        Why it does not; empty where it does.
    """

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

    Parameters
    ----------
    estimate : Estimate
        The estimate of a share, from 0 to 1.
    part, rest : numpy.ndarray of float64
        How much each sampled key adds to the share, and to what is left of 1.
    support : Support
        What all keys say.
    rate : float
        p.

    Returns
    -------
    Estimate
        The same where it is not reliable, or p is 1.

    Examples
    --------
    >>> none = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)
    >>> support = support_of_keys(np.ones(100), 0.19)
    >>> round(with_rare_keys(none, np.zeros(100), np.ones(100), support, 0.19).high, 4)
    0.0332
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
    """Return the 95 % limits of the mean of a Poisson variable."""
    above = count + 1
    low = max(1 - 1 / (9 * count) - 1.96 / (3 * math.sqrt(count)), 0.0)
    high = 1 - 1 / (9 * above) + 1.96 / (3 * math.sqrt(above))
    return count * low * low * low, above * high * high * high


def key_groups(positions: np.ndarray, n_groups: int = N_GROUPS) -> np.ndarray:
    """Return the group of each row, by the position of its key.

    Parameters
    ----------
    positions : numpy.ndarray of float64
        Of each row the position of its key, in any shape: rows of several tables, or several keys
        of a row, are cut together.
    n_groups : int
        G.

    Returns
    -------
    numpy.ndarray of int64
        In the same shape, from 0 to below G: groups of equally many distinct keys, one more or
        less.

    Examples
    --------
    >>> key_groups(np.array([0.4, 0.1, 0.4, 0.2, 0.3]), 2).tolist()
    [1, 0, 1, 0, 1]
    """
    distinct, inverse = np.unique(positions, return_inverse=True)
    return inverse.reshape(positions.shape) * n_groups // max(len(distinct), 1)


def without_groups(
    statistic: Callable[[np.ndarray], float],
    counts: np.ndarray,
    groups: np.ndarray,
    n_groups: int = N_GROUPS,
) -> np.ndarray:
    """Return a statistic of a sample without each group of keys in turn.

    Parameters
    ----------
    statistic : callable
        The statistic for an array of how often each row is there.
    counts : numpy.ndarray of int, shape (n,)
        How often each row is there.
    groups : numpy.ndarray of int, shape (n,) or (k, n)
        The group of each row, or the groups of its keys: it is left out with each of them.
    n_groups : int
        G.

    Returns
    -------
    numpy.ndarray of float64, shape (G,)

    Examples
    --------
    >>> without_groups(lambda counts: float(counts.sum()), np.array([1, 2, 3]), np.arange(3), 3)
    array([5., 4., 3.])
    """
    groups = np.atleast_2d(groups)
    left_out = ((groups == g).any(axis=0) for g in range(n_groups))
    return np.array([statistic(np.where(rows, 0, counts)) for rows in left_out])


def jackknife(
    whole: float,
    without: np.ndarray,
    rates: Sequence[float],
    *,
    bounds: tuple[float, float] = (0.0, math.inf),
    supports: Sequence[Support] = (),
    plug_in: float | None = None,
    scaled: bool = False,
) -> Estimate:
    """Return an estimate with its interval from statistics without groups of keys.

    Parameters
    ----------
    whole : float
        t, the statistic of the sample; NaN where it has no row.
    without : numpy.ndarray of float64, shape (edges, groups)
        t_g of each edge with a test of its own.
    rates : sequence of float
        p of each edge, above 0 and up to 1.
    bounds : tuple of float
        The least and the largest value that are possible.
    supports : sequence of Support
        What the keys of each edge say; without any, the interval is taken to be carried.
    plug_in : float, optional
        The measure of the sample as it is, if it is not `whole`.
    scaled : bool
        The statistic is one of totals divided by p, as debiased informativeness is: it needs no
        further correction, and the interval spans t and t + (1 - p) B alone.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If the numbers of edges differ, there is one group alone, or a rate is out of range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> keys = rng.normal(10, 1, 320).reshape(32, 10)  # a tenth of all keys
    >>> without = [np.delete(keys, g, axis=0).mean() for g in range(32)]
    >>> found = jackknife(keys.mean(), [without], [0.1])
    >>> bool(found.low < 10 < found.high), round(found.standard_error, 3)
    (True, 0.06)
    >>> exact = jackknife(2.5, [without], [1.0])
    >>> exact.low, exact.value, exact.high
    (2.5, 2.5, 2.5)
    """
    without = np.asarray(without, np.float64).reshape(len(rates), -1)
    _check(without, rates, supports)
    plug_in = whole if plug_in is None else plug_in
    edges = [i for i, rate in enumerate(rates) if rate < 1]
    reasons = [supports[i].reason for i in edges if supports and supports[i].reason]
    if math.isnan(whole):
        return Estimate(math.nan, *bounds, math.nan, plug_in, False, "no row in the sample")
    if not edges:
        return Estimate(whole, whole, whole, 0.0, plug_in)
    without = np.where(np.isnan(without), whole, without)
    parts = [_part(whole, without[i], rates[i]) for i in edges]
    linear, logarithmic = (math.fsum(part[i] for part in parts) for i in (0, 1))
    variance = math.fsum(part.variance for part in parts)
    inflation = max([supports[i].inflation for i in edges], default=1.0) if supports else 1.0
    error = math.sqrt(variance)
    extreme = math.sqrt(math.fsum(part.extreme**2 for part in parts))
    half = inflation * (_quantile(parts, variance) * error + _EXTREME * extreme)
    ends = [0.0, linear] if scaled else [0.0, linear, _SLOW * logarithmic]
    value = _clipped(whole if scaled else whole + linear, bounds)
    if reasons:
        return Estimate(value, *bounds, error, plug_in, False, reasons[0])
    low = _clipped(whole + min(ends) - half, bounds)
    high = _clipped(whole + max(ends) + half, bounds)
    return Estimate(value, low, high, error, plug_in)


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


def _check(without: np.ndarray, rates: Sequence[float], supports: Sequence[Support]) -> None:
    if without.shape[1] < 2 or (supports and len(supports) != len(rates)):
        raise InputError(
            f"{len(rates)} edges need statistics of shape (edges, groups) with two groups or more, "
            f"and as many supports or none, got {without.shape} and {len(supports)}."
        )
    for rate in rates:
        if not 0 < rate <= 1:
            raise InputError(f"The rate of a sample must be above 0 and up to 1, got {rate}.")
