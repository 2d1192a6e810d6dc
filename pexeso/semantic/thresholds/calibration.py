"""The probability that two columns join, by their joinability, as people judged pairs of a lake.

A logistic curve of two parameters, fitted by Newton's method. Four pairs that nobody judged are
fitted with the others, so that few answers leave the curve at the usual threshold and separable
ones leave it finite. Its reliability is that of curves which were fitted without the pairs they are
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

PRIOR = ((0.2, 0.1, 2.0), (0.8, 0.9, 2.0))
"""Joinability, probability and weight of the pairs that nobody judged."""


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
        return _curve(self.intercept, self.slope, np.asarray(joinability, float))

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
    >>> calibrate(shares, shares > 0.5).probability(0.9).round(1)
    np.float64(1.0)
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
    known, answers, prior = (np.array(column) for column in zip(*PRIOR, strict=True))
    x, targets = np.append(x, known), np.append(joins.astype(float), answers)
    counted = np.append(np.ones(len(joins)), prior)
    design, weights = np.stack([np.ones_like(x), x], axis=1), np.zeros(2)
    for _ in range(50):
        p = _curve(*weights, x)
        gradient = design.T @ (counted * (p - targets))
        curvature = (design * (counted * p * (1 - p))[:, None]).T @ design + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, 3 / max(float(np.abs(step).max()), 1e-12))
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    if weights[1] < 0:
        mean = (counted * targets).sum() / counted.sum()
        return float(np.log(mean / (1 - mean))), 0.0
    return float(weights[0]), float(weights[1])
