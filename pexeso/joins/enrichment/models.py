"""Random forests on features chosen by recursive elimination.

They predict rows that they have not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pexeso.joins.enrichment.features import REGRESSION


@dataclass(frozen=True)
class ModelOptions:
    """How models are made and judged.

    Attributes
    ----------
    folds : int
        Rows are split so often, by seed; classes in their shares.
    trees : int
        Of each forest.
    step : float
        Share of the features that elimination drops at a time.
    seed : int
        Of splits and forests.
    """

    folds: int = 4
    trees: int = 50
    step: float = 0.25
    seed: int = 0


def make_forest(task: str, options: ModelOptions) -> Any:
    """Make a random forest, in one thread; it takes missing cells as they are."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if task == REGRESSION else RandomForestClassifier
    return kind(n_estimators=options.trees, random_state=options.seed, n_jobs=1)


def make_folds(task: str, options: ModelOptions) -> Any:
    """Make the splits: by seed, for classification with each class in its share."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if task == REGRESSION else StratifiedKFold
    return kind(options.folds, shuffle=True, random_state=options.seed)


def choose_features(
    matrix: np.ndarray, values: np.ndarray, task: str, options: ModelOptions
) -> np.ndarray:
    """Choose features by recursive elimination, as many as do best in cross-validation: bool (m,).

    Parameters
    ----------
    matrix : float64 (n, m)
    """
    if matrix.shape[1] < 2:
        return np.ones(matrix.shape[1], dtype=bool)
    from sklearn.feature_selection import RFECV

    scoring = "neg_mean_squared_error" if task == REGRESSION else "accuracy"
    forest, folds = make_forest(task, options), make_folds(task, options)
    return RFECV(forest, step=options.step, cv=folds, scoring=scoring).fit(matrix, values).support_


def predict_unseen(
    matrix: np.ndarray, values: np.ndarray, task: str, options: ModelOptions
) -> np.ndarray:
    """Predict each row by a forest that is trained on the other folds.

    Features are chosen anew in each fold, so no row has a say in its own prediction.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor

    predicted = np.empty_like(values)
    for train, test in make_folds(task, options).split(matrix, values):
        if matrix.shape[1]:
            mask = choose_features(matrix[train], values[train], task, options)
            model = make_forest(task, options)
        else:
            mask = np.zeros(0, dtype=bool)
            model = DummyRegressor() if task == REGRESSION else DummyClassifier()
        model.fit(matrix[train][:, mask], values[train])
        predicted[test] = model.predict(matrix[test][:, mask])
    return predicted


def scores_of(values: np.ndarray, predicted: np.ndarray, task: str) -> dict[str, float]:
    """Score predictions of all rows together."""
    from sklearn.metrics import accuracy_score, f1_score, mean_squared_error, r2_score

    if task == REGRESSION:
        return {
            "mean_squared_error": float(mean_squared_error(values, predicted)),
            "r2": float(r2_score(values, predicted)),
        }
    macro = f1_score(values, predicted, average="macro", zero_division=0)
    return {"accuracy": float(accuracy_score(values, predicted)), "macro_f1": float(macro)}
