"""How much better models become by the columns that a strategy chose.

Rows are split by seed. A strategy sees those that models learn from, and nothing of those that are
held back.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.acquisition.features import Features, features_of, main_score
from benchmarks.acquisition.strategies import PUBLISHED, Strategy
from pexeso.enrichment.features import REGRESSION
from pexeso.errors import InputError

MODELS = ("trees", "linear")
HELD_BACK = 0.3


@dataclass(frozen=True)
class Problem:
    """A target to predict, and columns that could help.

    Attributes
    ----------
    name : str
    base : pandas.DataFrame
        With the target, which is there in each row.
    target : str
    task : {"regression", "classification"}
    candidates : mapping of str to column
        Each with a cell, or none, for each row of the base table.
    """

    name: str
    base: pd.DataFrame
    target: str
    task: str
    candidates: Mapping[str, Any]

    def of_rows(self, rows: np.ndarray) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the base table and the candidates of some rows."""
        return (
            self.base.iloc[rows].reset_index(drop=True),
            {name: pd.Series(column).iloc[rows] for name, column in self.candidates.items()},
        )


def judged(
    problem: Problem, strategies: Mapping[str, Strategy] = PUBLISHED, *, splits: int = 5
) -> dict[str, Any]:
    """Let strategies choose, and score models on rows that none of them saw.

    Parameters
    ----------
    problem : Problem
    strategies : mapping of str to Strategy
    splits : int
        So many, with the seeds from 0; 30 % of the rows are held back, classes in their shares.

    Returns
    -------
    dict
        Plain JSON. ``base``: the scores of each model without candidates, split by split (R2 or
        accuracy). ``strategies``: of each its ``names`` chosen, ``seconds``, ``fits`` and, by
        model, ``scores`` and ``gains`` over the base table, split by split; ``gain``, their means.

    Raises
    ------
    InputError
        There is no split, or a strategy chose what is no candidate.
    """
    if splits < 1:
        raise InputError(f"There must be at least one split, got {splits}.")
    runs = [_split(problem, strategies, seed) for seed in range(splits)]
    by_strategy: dict[str, Any] = {}
    for name in strategies:
        of_name = [run[1][name] for run in runs]
        gains = {
            model: [
                one["scores"][model] - run[0][model] for one, run in zip(of_name, runs, strict=True)
            ]
            for model in MODELS
        }
        by_strategy[name] = {
            "names": [one["names"] for one in of_name],
            "seconds": [one["seconds"] for one in of_name],
            "fits": [one["fits"] for one in of_name],
            "scores": {model: [one["scores"][model] for one in of_name] for model in MODELS},
            "gains": gains,
            "gain": {model: float(np.mean(gains[model])) for model in MODELS},
        }
    return {
        "problem": problem.name,
        "task": problem.task,
        "rows": len(problem.base),
        "candidates": len(problem.candidates),
        "base": {model: [run[0][model] for run in runs] for model in MODELS},
        "strategies": by_strategy,
    }


def against_published(result: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """Hold the mean gain of a strategy against the best of the published ones.

    Parameters
    ----------
    result : mapping
        Of `judged`.
    name : str
        One of its strategies, which is none of the published.

    Returns
    -------
    dict
        By model: ``best``, the published strategy with the largest mean gain, ``gain`` and
        ``best_gain``, ``wins``, the splits with at least the gain of the best, and ``at_least``,
        whether the mean gain is.

    Examples
    --------
    >>> gains = {"trees": [0.1, 0.3], "linear": [0.0, 0.0]}
    >>> mean = {"trees": 0.2, "linear": 0.0}
    >>> same = {"gains": gains, "gain": mean}
    >>> told = {"strategies": {"all joins": same, "plan": same}}
    >>> against_published(told, "plan")["trees"]["at_least"]
    True
    """
    strategies = result["strategies"]
    published = [other for other in PUBLISHED if other in strategies]
    if name not in strategies or name in published or not published:
        raise InputError(
            f"{name!r} must be a strategy beside published ones, got {', '.join(strategies)}."
        )
    comparisons = {}
    for model in MODELS:
        best = max(published, key=lambda other: strategies[other]["gain"][model])
        strategy, best_strategy = strategies[name], strategies[best]
        pairs = zip(strategy["gains"][model], best_strategy["gains"][model], strict=True)
        comparisons[model] = {
            "best": best,
            "gain": strategy["gain"][model],
            "best_gain": best_strategy["gain"][model],
            "wins": sum(one >= other for one, other in pairs),
            "at_least": strategy["gain"][model] >= best_strategy["gain"][model],
        }
    return comparisons


def held_back_rows(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and those held back: int64, in order.

    Parameters
    ----------
    problem : Problem
    seed : int
    """
    from sklearn.model_selection import train_test_split

    values = problem.base[problem.target]
    learn, test = train_test_split(
        np.arange(len(values)),
        test_size=HELD_BACK,
        random_state=seed,
        stratify=None if problem.task == REGRESSION else values.astype(str),
    )
    return np.sort(learn), np.sort(test)


def _split(
    problem: Problem, strategies: Mapping[str, Strategy], seed: int
) -> tuple[dict[str, float], dict[str, Any]]:
    learn, test = held_back_rows(problem, seed)
    base, candidates = problem.of_rows(learn)
    outcomes = {}
    for name, strategy in strategies.items():
        choice = strategy(base.copy(), problem.target, dict(candidates), problem.task, seed)
        unknown = sorted(set(choice.names) - problem.candidates.keys())
        if unknown:
            raise InputError(f"The strategy {name!r} chose {unknown}, which are no candidates.")
        outcomes[name] = {
            "names": list(choice.names),
            "seconds": choice.seconds,
            "fits": choice.fits,
            "scores": _scores(problem, choice.names, learn, test),
        }
    return _scores(problem, (), learn, test), outcomes


def _scores(
    problem: Problem, names: Sequence[str], learn: np.ndarray, test: np.ndarray
) -> dict[str, float]:
    candidates = {name: problem.candidates[name] for name in names}
    features = features_of(problem.base, problem.target, candidates, problem.task)
    return {
        model: main_score(
            features.values[test],
            _predicted(model, features, problem.task, learn, test),
            problem.task,
        )
        for model in MODELS
    }


def _predicted(
    kind: str, features: Features, task: str, learn: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Predict the rows held back; without features, by the mean or the most frequent class."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    matrix = features.matrix
    # What has no cell, or one value, in the rows to learn from teaches nothing.
    spread = np.array([len(np.unique(column[~np.isnan(column)])) for column in matrix[learn].T])
    telling = np.flatnonzero(spread > 1)
    matrix = matrix[:, telling]
    if len(telling):
        model = (
            _trees(task, len(learn)) if kind == "trees" else _linear(task, features.texts[telling])
        )
    else:
        matrix = np.zeros((len(matrix), 1))
        model = DummyRegressor() if task == REGRESSION else DummyClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stop before they have converged
        return model.fit(matrix[learn], features.values[learn]).predict(matrix[test])


def _trees(task: str, n_rows: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if task == REGRESSION else HistGradientBoostingClassifier
    # Of the default, 20, less than 40 rows cannot be split at all.
    leaf = min(20, max(3, n_rows // 20))
    return kind(random_state=0, early_stopping=False, min_samples_leaf=leaf)


def _linear(task: str, texts: np.ndarray) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), np.flatnonzero(~texts)),
        (OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(texts)),
    )
    return make_pipeline(columns, Ridge() if task == REGRESSION else LogisticRegression())
