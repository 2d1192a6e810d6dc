"""Models that turn measures into a probability, monotone in each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.optimize import minimize

Measures = Mapping[str, np.ndarray]
Probabilities = Callable[[Measures], np.ndarray]

_MEASURES = (
    "similarity",
    "similarity, mutually nearest",
    "similarity, by rarity",
    "similarity, lower bound",
    "share",
    "share of the other column",
    "log of matching values",
)

FEATURES: dict[str, tuple[str, ...]] = {
    "logistic of similarity": ("similarity",),
    "logistic of shares": (
        "share at .5 of the usual distance",
        "share at .75 of the usual distance",
        "share",
        "share at 1.25 of the usual distance",
    ),
    "logistic of measures": _MEASURES,
    "boosted trees of measures": _MEASURES,
}
"""What each model is learned from; never equal values as such."""

RIDGE, TREES, LEAVES, RATE = 1e-3, 60, 6, 0.1
MAX_WEIGHT = 500.0
"""Pairs of a data set that count fully: of a larger one each counts less."""


def features(measures: Measures, names: Sequence[str]) -> np.ndarray:
    """Return the features of pairs: float64 (n, features)."""
    values = {**measures, "log of matching values": np.log1p(measures["number of matching values"])}
    return np.stack([values[name] for name in names], axis=1)


def learn(name: str, sets: Sequence[tuple[Measures, np.ndarray]]) -> Probabilities:
    """Learn a model from measures and truth of data sets, each counting alike."""
    names = FEATURES[name]
    rows = np.concatenate([features(measures, names) for measures, _ in sets])
    right = np.concatenate([right for _, right in sets]).astype(float)
    weights = np.concatenate(
        [np.full(len(truth), min(1.0, MAX_WEIGHT / len(truth))) for _, truth in sets]
    )
    if name.startswith("boosted"):
        from sklearn.ensemble import HistGradientBoostingClassifier

        trees = HistGradientBoostingClassifier(
            max_iter=TREES,
            max_leaf_nodes=LEAVES,
            learning_rate=RATE,
            monotonic_cst=[1] * len(names),
            random_state=0,
        ).fit(rows, right, weights)
        return lambda measures: trees.predict_proba(features(measures, names))[:, 1]
    base, coefficients = logistic(rows, right, weights)
    return lambda measures: _probability(base + features(measures, names) @ coefficients)


def logistic(rows: np.ndarray, right: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Fit a logistic regression whose coefficients are not negative.

    Examples
    --------
    >>> rows = np.linspace(0, 1, 50)[:, None]
    >>> base, [slope] = logistic(rows, (rows[:, 0] > 0.5).astype(float), np.ones(50))
    >>> 0.49 < -base / slope < 0.51, logistic(rows, 1.0 * (rows[:, 0] < 0.5), np.ones(50))[1]
    (True, array([0.]))
    """
    means, spreads = np.average(rows, axis=0, weights=weights), rows.std(0) + 1e-9
    scaled, total = (rows - means) / spreads, weights.sum()

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        sums = point[0] + scaled @ point[1:]
        value = weights @ (np.logaddexp(0, sums) - right * sums) / total
        missed = weights * (_probability(sums) - right) / total
        gradient = np.append(missed.sum(), missed @ scaled + RIDGE * point[1:])
        return value + RIDGE / 2 * point[1:] @ point[1:], gradient

    start = np.append(0.0, np.full(rows.shape[1], 0.1))
    bounds = [(None, None), *[(0, None)] * rows.shape[1]]
    point = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    coefficients = point[1:] / spreads
    return float(point[0] - means @ coefficients), coefficients


def _probability(sums: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-sums))
