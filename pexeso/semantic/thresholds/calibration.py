"""The probability that two columns join, by their joinability, as people judged pairs of a lake.

A logistic curve of two parameters, fitted by Newton's method with the smoothed targets of Platt,
"Probabilistic outputs for support vector machines" (1999), so that it stays finite where judgements
are separable. Its reliability is that of curves which were fitted without the pairs they are
asked about.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

MIN_JUDGED = 20
"""With fewer judged pairs of columns, or without both verdicts, there is no probability."""

FOLDS = 50
BINS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Calibration:
    """The curve, and how reliable it is.

    Attributes
    ----------
    intercept, slope : float
    n, n_yes : int
        Judged pairs, and those that join.
    brier, usual_brier : float
        Mean squared errors of the probabilities of left-out pairs, and of the share of those that
        join.
    bins : tuple of (float, float, int)
        Of quarters of the probability: its mean, the share of pairs that join, and their number.
    """

    intercept: float
    slope: float
    n: int
    n_yes: int
    brier: float
    usual_brier: float
    bins: tuple[tuple[float, float, int], ...]

    def probability(self, joinability: Any) -> Any:
        """Return the probability of a join, float64 of the shape of `joinability`."""
        return 1 / (1 + np.exp(-(self.intercept + self.slope * np.asarray(joinability, float))))

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON form."""
        return dict(vars(self))


def calibrate(joinability: np.ndarray, joins: np.ndarray) -> Calibration | None:
    """Fit the curve to judged pairs; None where they are too few.

    Parameters
    ----------
    joinability : numpy.ndarray of shape (n,), float64
    joins : numpy.ndarray of shape (n,), bool

    Examples
    --------
    >>> shares = np.linspace(0, 1, 40)
    >>> calibrate(shares, shares > 0.5).probability(0.9) > 0.9
    True
    >>> calibrate(shares[:10], shares[:10] > 0.1) is None
    True
    """
    n, n_yes = len(joins), int(joins.sum())
    if n < MIN_JUDGED or n_yes in (0, n):
        return None
    left_out = np.empty(n)
    fold = np.arange(n) % min(n, FOLDS)
    for number in range(fold.max() + 1):
        rest = fold != number
        left_out[~rest] = _curve(*_fit(joinability[rest], joins[rest]), joinability[~rest])
    rates = (n_yes - joins) / (n - 1)  # of the other pairs
    bins = []
    for low, high in pairwise(BINS):
        inside = (left_out >= low) & ((left_out < high) | (high == 1))
        if inside.any():
            means = float(left_out[inside].mean()), float(joins[inside].mean())
            bins.append((round(means[0], 4), round(means[1], 4), int(inside.sum())))
    errors = (float(((guess - joins) ** 2).mean()) for guess in (left_out, rates))
    return Calibration(*_fit(joinability, joins), n, n_yes, *errors, tuple(bins))


def _curve(intercept: float, slope: float, x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(intercept + slope * x)))


def _fit(x: np.ndarray, joins: np.ndarray) -> tuple[float, float]:
    """Return intercept and slope, which is at least 0: more values in common never say less."""
    n_yes = joins.sum()
    n_no = len(joins) - n_yes
    targets = np.where(joins, (n_yes + 1) / (n_yes + 2), 1 / (n_no + 2))
    design = np.stack([np.ones_like(x), x], axis=1)
    weights = np.zeros(2)
    for _ in range(50):
        p = _curve(*weights, x)
        gradient = design.T @ (p - targets) + _RIDGE * weights
        curvature = (design * (p * (1 - p))[:, None]).T @ design + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, 5 / max(float(np.abs(step).max()), 1e-12))
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    if weights[1] < 0:
        mean = targets.mean()
        return float(np.log(mean / (1 - mean))), 0.0
    return float(weights[0]), float(weights[1])


_RIDGE = 1e-3
