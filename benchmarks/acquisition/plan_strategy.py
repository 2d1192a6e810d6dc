"""Our way to choose joined columns for a model: what they tell of the target beyond chance.

The measure is that by which `pexeso.acquisition` ranks columns that could be bought,

    share of the rows that are joined * (CORR(target; column) - chance),

chance the mean of several shuffles of the column's cells. By chance alone, one of many columns
tells much; so a column must tell more than any shuffled column does. That a row finds a partner
tells of the target as well: where it tells more than chance, one column of that join is chosen for
it, one of texts if there is one, as models take a missing text as a value of its own.

No model is asked, so a choice is made in a part of a second, and it is the same for all models.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.acquisition.features import Features, features_of
from benchmarks.acquisition.strategies import PUBLISHED, Choice, Strategy
from pexeso.acquisition.correlation import bins_of
from pexeso.acquisition.entropies import (
    conditional_cumulative_entropy,
    cumulative_entropy,
    mutual_information,
)
from pexeso.enrichment.features import REGRESSION

SHUFFLES = 5
Y_BINS = 16
"""Those of requests for plans."""

LEAST_ROWS = 5
"""Rows with a cell, and rows without one, from which something can be said."""


def plan(
    base: pd.DataFrame, target: str, candidates: Mapping[str, Any], task: str, seed: int
) -> Choice:
    """Choose the columns that tell more of the target than any shuffled column.

    Parameters
    ----------
    base : pandas.DataFrame
    target : str
    candidates : mapping of str to column
    task : {"regression", "classification"}
    seed : int
        Of shuffles.
    """
    begin = time.perf_counter()
    features = features_of(base, target, candidates, task)
    tells = _correlation_with(features.values, task)
    rng = np.random.default_rng(seed)
    present = ~np.isnan(features.matrix)
    columns = _beyond_chance(
        {at: (_codes(features, at), present[:, at]) for at in features.candidates}, tells, rng
    )
    chosen = {at for at, gain in columns.items() if gain > 0}
    of_join: dict[bytes, list[int]] = {}
    for at in features.candidates:
        n_there = present[:, at].sum()
        if min(n_there, len(base) - n_there) >= LEAST_ROWS:
            of_join.setdefault(present[:, at].tobytes(), []).append(at)
    everywhere = np.ones(len(base), bool)
    joins = _beyond_chance(
        {
            number: (present[:, members[0]].astype(np.int64), everywhere)
            for number, members in enumerate(of_join.values())
        },
        tells,
        rng,
    )
    for number, members in enumerate(of_join.values()):
        if joins[number] > 0:
            texts = [at for at in members if features.texts[at]]
            if not chosen & set(texts or members):
                chosen.add(max(texts or members, key=columns.__getitem__))
    names = tuple(features.names[at] for at in sorted(chosen))
    return Choice(names, time.perf_counter() - begin, 0)


def _codes(features: Features, at: int) -> np.ndarray:
    """Return the values of a column as numbers of texts or of bins: int64 (n,)."""
    cells = features.matrix[:, at]
    if features.texts[at]:
        return np.nan_to_num(cells, nan=-1).astype(np.int64) + 1
    return bins_of(cells, np.ones(len(cells), np.int64), Y_BINS)


def _correlation_with(values: np.ndarray, task: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """Return CORR(target; codes) in some rows as a function of these rows and their codes."""
    if task == REGRESSION:
        order = np.argsort(values, kind="stable")

        def of_numbers(rows: np.ndarray, codes: np.ndarray) -> float:
            sorted_rows = order[rows[order]]
            of_row = np.zeros(len(values), np.int64)
            of_row[rows] = codes
            once = np.ones(len(sorted_rows), np.int64)
            left = conditional_cumulative_entropy(values[sorted_rows], of_row[sorted_rows], once)
            return max(cumulative_entropy(values[sorted_rows], once) - left, 0.0)

        return of_numbers
    classes = np.unique(values, return_inverse=True)[1].astype(np.int64)

    def of_classes(rows: np.ndarray, codes: np.ndarray) -> float:
        return mutual_information(classes[rows], codes, np.ones(len(codes), np.int64))

    return of_classes


def _beyond_chance(
    columns: Mapping[int, tuple[np.ndarray, np.ndarray]],
    tells: Callable[[np.ndarray, np.ndarray], float],
    rng: np.random.Generator,
) -> dict[int, float]:
    """Return how much more each column tells than the most that any shuffled one does.

    Parameters
    ----------
    columns : mapping of int to (int64 (n,), bool (n,))
        Codes, and the rows that have one.
    tells : callable
        As `_correlation_with` returns it.
    rng : numpy.random.Generator
    """
    gains, noise = {}, 0.0
    for at, (codes, rows) in columns.items():
        known = codes[rows]
        if len(known) < LEAST_ROWS:
            gains[at] = 0.0
            continue
        share = len(known) / len(rows)
        shuffled = [tells(rows, rng.permutation(known)) for _ in range(SHUFFLES)]
        chance = math.fsum(shuffled) / SHUFFLES
        gains[at] = share * (tells(rows, known) - chance)
        # A shuffled column against the mean of the others, as its own would draw it nearer.
        noise = max(noise, share * (max(shuffled) - chance) * SHUFFLES / (SHUFFLES - 1))
    return {at: gain - noise for at, gain in gains.items()}


def as_joined(
    base: pd.DataFrame, target: str, candidates: Mapping[str, Any], task: str, seed: int
) -> Choice:
    """Take all candidates: for real targets what `pexeso.enrich` adds, as it comes.

    Parameters
    ----------
    base : pandas.DataFrame
    target : str
    candidates : mapping of str to column
    task : {"regression", "classification"}
    seed : int
        Of nothing.
    """
    return Choice(tuple(candidates), 0.0, 0)


OURS: dict[str, Strategy] = {"plan": plan, "enrich": as_joined}
STRATEGIES: dict[str, Strategy] = {**PUBLISHED, **OURS}
"""By name."""
