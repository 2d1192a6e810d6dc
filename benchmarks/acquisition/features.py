"""Columns as what models take, and what columns are worth in validation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pexeso.enrichment.columns import TEXT, column_of_values
from pexeso.enrichment.features import REGRESSION, read_features
from pexeso.enrichment.models import ModelOptions, make_folds, make_forest, scores_of

MAX_TEXTS = 20
"""Columns with more different texts are no features."""

_NUMBER_SHARE = 0.95
_FOLDS, _TREES = 3, 30


@dataclass(frozen=True)
class Features:
    """Features of n rows: those of the base table first, then the candidates.

    Attributes
    ----------
    matrix : float64 (n, m)
        NaN where there is no cell; texts as numbers of their order.
    names : tuple of str
        The columns, m of them.
    texts : bool (m,)
        Which of them are texts.
    n_own : int
        How many are of the base table.
    values : (n,)
        The target: float64, or classes as text.
    """

    matrix: np.ndarray
    names: tuple[str, ...]
    texts: np.ndarray
    n_own: int
    values: np.ndarray

    @property
    def own(self) -> list[int]:
        """Return the positions of the columns of the base table."""
        return list(range(self.n_own))

    @property
    def candidates(self) -> list[int]:
        """Return the positions of the candidates."""
        return list(range(self.n_own, len(self.names)))


def features_of(
    base: pd.DataFrame, target: str, candidates: Mapping[str, Any], task: str
) -> Features:
    """Make features of a base table and of candidates.

    Columns that are the same in all rows or have more than `MAX_TEXTS` different texts, keys among
    them, are left out.

    Parameters
    ----------
    base : pandas.DataFrame
        With the target, which is there in each row.
    target : str
    candidates : mapping of str to column
        None of whose names is in the base table.
    task : {"regression", "classification"}
    """
    base_columns = {str(name): base[name] for name in base.columns if name != target}
    rows = np.arange(len(base))
    read = [
        read_features(columns, rows, max_texts=MAX_TEXTS, min_number_fraction=_NUMBER_SHARE)
        for columns in (base_columns, candidates)
    ]
    names = read[0].names + read[1].names
    columns = {**base_columns, **candidates}
    kinds = [column_of_values(columns[name], _NUMBER_SHARE).kind for name in names]
    values = base[target].to_numpy()
    return Features(
        np.column_stack([one.matrix for one in read]),
        names,
        np.array([kind == TEXT for kind in kinds], bool),
        len(read[0].names),
        values.astype(np.float64) if task == REGRESSION else values.astype(str).astype(object),
    )


class Validation:
    """Scores columns by cross-validation of a random forest, and counts its fits.

    Parameters
    ----------
    features : Features
    task : {"regression", "classification"}
    seed : int
        Of folds and forests.
    """

    def __init__(self, features: Features, task: str, seed: int):
        self.features, self.task = features, task
        self.options = ModelOptions(folds=_FOLDS, trees=_TREES, seed=seed)
        self.fits = 0
        self._known: dict[tuple[int, ...], float] = {}

    def score(self, columns: Iterable[int]) -> float:
        """Return R2 or accuracy of rows that a forest did not see; asked again, from memory.

        Without columns it is that of the mean or of the most frequent class, about.
        """
        chosen = tuple(sorted(columns))
        if chosen not in self._known:
            self._known[chosen] = self._scored(chosen)
        return self._known[chosen]

    def _scored(self, chosen: tuple[int, ...]) -> float:
        values = self.features.values
        # A column of ones: the forest then predicts what a model without features does.
        matrix = self.features.matrix[:, chosen] if chosen else np.ones((len(values), 1))
        predicted = np.empty_like(values)
        for train, test in make_folds(self.task, self.options).split(matrix, values):
            model = make_forest(self.task, self.options).fit(matrix[train], values[train])
            predicted[test] = model.predict(matrix[test])
            self.fits += 1
        return main_score(values, predicted, self.task)

    def importances(self, matrix: np.ndarray, seed: int) -> np.ndarray:
        """Return the importance of each column in a forest on all rows."""
        self.fits += 1
        options = ModelOptions(trees=_TREES, seed=seed)
        return (
            make_forest(self.task, options).fit(matrix, self.features.values).feature_importances_
        )


def main_score(values: np.ndarray, predicted: np.ndarray, task: str) -> float:
    """Return R2 of a regression, accuracy of a classification."""
    return scores_of(values, predicted, task)["r2" if task == REGRESSION else "accuracy"]
