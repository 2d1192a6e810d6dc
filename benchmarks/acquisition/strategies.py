"""Three published ways to choose which joined columns a model gets, made anew.

`all_joins` joins everything and ranks the columns (the baseline of ARDA), `random_injection` keeps
what ranks ahead of noise (RIFS of ARDA), and `one_at_a_time` adds what helps most, by a limited
number of queries (as METAM does).

N. Chepurko and others, "ARDA: Automatic Relational Data Augmentation for Machine Learning", PVLDB
13 (9). S. Galhotra, Y. Gong and R. Castro Fernandez, "METAM: Goal-Oriented Data Discovery", ICDE
2023.

All of them get the same: a base table with its target, and candidates, which are columns joined to
its rows. Columns of the base table are always kept.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.acquisition.features import Features, Validation, features_of
from pexeso.enrichment.features import REGRESSION

QUERIES = 60
"""Of `one_at_a_time`: how many sets of columns it scores, with three fits each."""

_REPEATS, _NOISE_SHARE = 10, 0.2
_THRESHOLDS = (0.0, 0.2, 0.4, 0.6, 0.8)
_PENALTY = 0.1
_LEAST_GAIN = 1e-3


@dataclass(frozen=True)
class Choice:
    """What a strategy chose.

    Attributes
    ----------
    names : tuple of str
        Of candidates.
    seconds : float
    fits : int
        Models that were fitted.
    """

    names: tuple[str, ...]
    seconds: float
    fits: int


Strategy = Callable[[pd.DataFrame, str, Mapping[str, Any], str, int], Choice]
"""From a base table, the name of its target, candidates by name, "regression" or "classification",
and a seed."""


def all_joins(
    base: pd.DataFrame, target: str, candidates: Mapping[str, Any], task: str, seed: int
) -> Choice:
    """Join everything, rank the candidates by a forest, and keep the best number of them.

    Numbers are doubled from 1 until all are kept; then those halfway between the best one and its
    neighbours are tried, until there are none.

    Parameters
    ----------
    base : pandas.DataFrame
    target : str
    candidates : mapping of str to column
    task : {"regression", "classification"}
    seed : int
        Of forests and folds.
    """
    begin = time.perf_counter()
    features = features_of(base, target, candidates, task)
    validation = Validation(features, task, seed)
    ranked: list[int] = []
    if features.candidates:
        weights = validation.importances(features.matrix, seed)[features.n_own :]
        ranked = [features.n_own + int(at) for at in np.argsort(-weights, kind="stable")]
    scores: dict[int, float] = {}
    tried = {0, len(ranked), *(2**power for power in range(len(ranked).bit_length()))}
    while tried - scores.keys():
        for count in sorted(tried - scores.keys()):
            scores[count] = validation.score([*features.own, *ranked[:count]])
        best = max(sorted(scores), key=scores.__getitem__)
        below = max((count for count in scores if count < best), default=best)
        above = min((count for count in scores if count > best), default=best)
        tried = {(below + best) // 2, (best + above) // 2}
    return _chosen(features, ranked[:best], begin, validation.fits)


def random_injection(
    base: pd.DataFrame, target: str, candidates: Mapping[str, Any], task: str, seed: int
) -> Choice:
    """Inject noise, and keep the candidates that often rank ahead of all of it.

    Ten times, a fifth as many columns of noise are added, each drawn from the normal distribution
    with the means and covariances of rows, and columns are ranked by a forest and by a sparse
    regression, weighted alike. A candidate must be ahead of all noise in a share of them that is
    raised from 0 to .8, as long as the score in validation does not fall. As published, but that
    the noise is drawn anew each time, and that ranks are the same for all thresholds.

    Parameters
    ----------
    base : pandas.DataFrame
    target : str
    candidates : mapping of str to column
    task : {"regression", "classification"}
    seed : int
        Of noise, forests and folds.
    """
    begin = time.perf_counter()
    features = features_of(base, target, candidates, task)
    validation = Validation(features, task, seed)
    matrix = standardised(features.matrix)
    n_columns = matrix.shape[1]
    rng = np.random.default_rng(seed)
    ahead = np.zeros(n_columns)
    fits = 0
    for repeat in range(_REPEATS if features.candidates else 0):
        both = np.column_stack([matrix, noise_like(matrix, rng)])
        weights = sum(
            one / max(one.max(), np.finfo(float).tiny)
            for one in (
                validation.importances(both, seed + repeat),
                sparse_weights(both, features.values, task),
            )
        )
        fits += 1
        ahead += weights[:n_columns] > weights[n_columns:].max()
    best: list[int] = []
    best_score = -math.inf
    for threshold in _THRESHOLDS:
        chosen = [at for at in features.candidates if ahead[at] / _REPEATS > threshold]
        score = validation.score([*features.own, *chosen])
        if score < best_score:
            break
        best, best_score = chosen, score
    return _chosen(features, best, begin, validation.fits + fits)


def one_at_a_time(
    base: pd.DataFrame,
    target: str,
    candidates: Mapping[str, Any],
    task: str,
    seed: int,
    *,
    queries: int = QUERIES,
) -> Choice:
    """Add the candidate that raises the score in validation most, again and again.

    Candidates are profiled by what each alone tells of the target (mutual information); a round
    tries the next ones in this order, as many as the root of the queries and at least two. It ends
    when a round that tried all candidates brings nothing, or with the queries; of these, enough are
    spared to drop columns that are not needed.

    Parameters
    ----------
    base : pandas.DataFrame
    target : str
    candidates : mapping of str to column
    task : {"regression", "classification"}
    seed : int
        Of profiles, forests and folds.
    queries : int
        Sets of columns that are scored, the base table's own among them.
    """
    begin = time.perf_counter()
    features = features_of(base, target, candidates, task)
    validation = Validation(features, task, seed)
    waiting = _profiled(features, task, seed)
    width = max(2, math.isqrt(queries))
    chosen: list[int] = []
    left = queries - 1
    score = validation.score(features.own)
    passed: list[int] = []
    while waiting and left > len(chosen):
        tried = waiting[: min(width, left - len(chosen))]
        left -= len(tried)
        scores = {at: validation.score([*features.own, *chosen, at]) for at in tried}
        best = max(tried, key=scores.__getitem__)
        if scores[best] >= score + _LEAST_GAIN:
            chosen.append(best)
            score = scores[best]
            # Those that were passed over may help beside the new one.
            waiting = [at for at in (*tried, *waiting[len(tried) :], *passed) if at != best]
            passed = []
        else:
            passed += tried
            waiting = waiting[len(tried) :]
    for at in list(chosen):
        fewer = [other for other in chosen if other != at]
        if left and validation.score([*features.own, *fewer]) >= score:
            chosen = fewer
            score = validation.score([*features.own, *fewer])
        left -= left > 0
    return _chosen(features, chosen, begin, validation.fits)


PUBLISHED: dict[str, Strategy] = {
    "all joins": all_joins,
    "random injection": random_injection,
    "one at a time": one_at_a_time,
}
"""By name."""


def standardised(matrix: np.ndarray) -> np.ndarray:
    """Return columns of mean 0 and deviation 1; missing cells have the mean.

    Parameters
    ----------
    matrix : float64 (n, m)
        Each column has a cell.
    """
    centred = matrix - np.nanmean(matrix, axis=0)
    deviation = np.nanstd(centred, axis=0)
    return np.nan_to_num(centred / np.where(deviation > 0, deviation, 1.0))


def noise_like(matrix: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return columns of noise, with the means and covariances that rows have over the columns.

    Such a column is a random mixture of the columns, so no matrix of n by n is needed.

    Parameters
    ----------
    matrix : float64 (n, m)
        Standardised.
    rng : numpy.random.Generator

    Returns
    -------
    float64 (n, k)
        A fifth as many, at least one.
    """
    n_columns = matrix.shape[1]
    means = matrix.mean(axis=1, keepdims=True)
    mixture = rng.standard_normal((n_columns, math.ceil(_NOISE_SHARE * n_columns)))
    return means + (matrix - means) @ mixture / math.sqrt(max(1, n_columns - 1))


def sparse_weights(matrix: np.ndarray, values: np.ndarray, task: str) -> np.ndarray:
    """Return the weight of each column in a sparse linear regression of the target: float64 (m,).

    Parameters
    ----------
    matrix : float64 (n, m)
    values : (n,)
        Numbers, or classes: these are one response each, and a column is of use to all or none.
    task : {"regression", "classification"}
    """
    from sklearn.linear_model import MultiTaskLasso

    responses = (
        values[:, None]
        if task == REGRESSION
        else (values[:, None] == np.unique(values)[None, :]).astype(np.float64)
    )
    responses = responses - responses.mean(axis=0)
    max_alpha = np.linalg.norm(matrix.T @ responses, axis=1).max() / len(values)
    if not max_alpha > 0:
        return np.zeros(matrix.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a solver that stops before it has converged
        model = MultiTaskLasso(alpha=_PENALTY * max_alpha).fit(matrix, responses)
    return np.linalg.norm(model.coef_, axis=0)


def _profiled(features: Features, task: str, seed: int) -> list[int]:
    """Return the candidates, those that tell most of the target first."""
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    if not features.candidates:
        return []
    measure = mutual_info_regression if task == REGRESSION else mutual_info_classif
    matrix = standardised(features.matrix[:, features.n_own :])
    information = measure(matrix, features.values, random_state=seed)
    return [features.n_own + int(at) for at in np.argsort(-information, kind="stable")]


def _chosen(features: Features, columns: list[int], begin: float, fits: int) -> Choice:
    names = tuple(features.names[at] for at in sorted(columns))
    return Choice(names, time.perf_counter() - begin, fits)
