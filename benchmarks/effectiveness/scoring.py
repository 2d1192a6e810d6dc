"""Precision, recall and related scores over judged pairs.

Thresholds are chosen on query columns other than those that are scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.effectiveness.found_pairs import LEAST_JOINABILITY, FoundPairs
from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NOT_JUDGED, Judged

FOLDS = 5
JOINABILITIES = np.round(np.arange(LEAST_JOINABILITY, 1.001, 0.01), 3)
RESAMPLES = 1000
TOP = 10

Goal = Callable[[float, float, float], float]
"""From precision, recall and the recall of pairs by meaning to what is to be as high as can be.

It is below 0 where it must not be chosen.
"""


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean; 0 where both are."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def best_f1(precision: float, recall: float, by_meaning: float) -> float:
    return f1(precision, recall)


def by_meaning_at(min_precision: float) -> Goal:
    """Aim for the highest recall of pairs by meaning with at least this precision."""
    return lambda precision, recall, by_meaning: (
        by_meaning if precision >= min_precision else precision - 1.0
    )


@dataclass(frozen=True)
class Truth:
    """How many positive pairs query columns have."""

    queries: np.ndarray
    positive: int
    by_meaning: int


def truth_of(judged: Judged, queries: np.ndarray) -> Truth:
    """Count the positive pairs of query columns."""
    counts = {
        label: int(np.isin(judged.labels[label] // judged.n_columns, queries).sum())
        for label in (BY_TEXT, BY_MEANING)
    }
    return Truth(queries, sum(counts.values()), counts[BY_MEANING])


def rates(pairs: FoundPairs, truth: Truth) -> tuple[float, float, float]:
    """Return precision, recall, and recall of the semantic-only pairs."""
    true, false, by_meaning = pairs.counts()
    precision = true / (true + false) if true + false else 1.0
    return precision, true / max(truth.positive, 1), by_meaning / max(truth.by_meaning, 1)


def choose(founds: Sequence[FoundPairs], truth: Truth, goal: Goal) -> tuple[int, float]:
    """Choose the thresholds for values and for joinability that serve a goal best."""
    scored = []
    for position, pairs in enumerate(founds):
        query_pairs = pairs.of(truth.queries)
        for joinability in JOINABILITIES:
            precision, recall, by_meaning = rates(query_pairs.from_joinability(joinability), truth)
            scored.append((goal(precision, recall, by_meaning), precision, -position, joinability))
    _, _, position, joinability = max(scored)
    return -position, float(joinability)


def folds_of(judged: Judged) -> list[np.ndarray]:
    """Divide all columns into folds, with the columns of a table together."""
    groups = judged.groups()
    if judged.allowed_queries is not None:
        return [np.sort(fold) for fold in drawn_folds(judged.allowed_queries)]
    return [np.flatnonzero(np.isin(groups, fold)) for fold in drawn_folds(np.unique(groups))]


def drawn_folds(members: np.ndarray, seed: int = 0) -> list[np.ndarray]:
    """Divide distinct members into `FOLDS` parts as even as possible."""
    drawn = np.random.default_rng(seed).permutation(len(members)) % FOLDS
    return [members[drawn == number] for number in range(min(FOLDS, len(members)))]


def cross_validated(
    judged: Judged, founds: Sequence[FoundPairs], goal: Goal
) -> tuple[FoundPairs, list[tuple[float, float]]]:
    """Return the pairs found at thresholds chosen on other query columns, and the thresholds."""
    parts, chosen = [], []
    everything = np.arange(judged.n_columns)
    for fold in folds_of(judged):
        position, joinability = choose(
            founds, truth_of(judged, np.setdiff1d(everything, fold)), goal
        )
        parts.append(founds[position].of(fold).from_joinability(joinability))
        chosen.append((founds[position].threshold, joinability))
    names = ("query", "candidate", "joinability", "label")
    joined = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    return FoundPairs(float("nan"), *joined), chosen


def ranked(judged: Judged, pairs: FoundPairs, k: int = TOP) -> tuple[float, float]:
    """Return mean average precision and mean recall among the k best."""
    is_judged = pairs.label != NOT_JUDGED
    query, candidate, joinability, label = (
        getattr(pairs, name)[is_judged] for name in ("query", "candidate", "joinability", "label")
    )
    order = np.lexsort((candidate, -joinability, query))
    query, hit = query[order], np.isin(label[order], (BY_TEXT, BY_MEANING))
    starts = np.searchsorted(query, judged.queries, side="left")
    stops = np.searchsorted(query, judged.queries, side="right")
    precisions, recalls = [], []
    for number, start, stop in zip(judged.queries, starts, stops, strict=True):
        hits, n_positive = hit[start:stop], judged.positives_of(number)
        at_hits = np.cumsum(hits)[hits] / (np.flatnonzero(hits) + 1)
        precisions.append(at_hits.sum() / n_positive)
        recalls.append(hits[:k].sum() / min(k, n_positive))
    return float(np.mean(precisions)), float(np.mean(recalls))


def intervals(judged: Judged, pairs: FoundPairs, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Return 95 % intervals of precision, recall, F1 and the recall of semantic-only pairs."""
    n = judged.n_columns
    true, by_meaning, false = (
        np.bincount(pairs.query[np.isin(pairs.label, labels)], minlength=n)
        for labels in ((BY_TEXT, BY_MEANING), (BY_MEANING,), (0,))
    )
    all_meaning = np.bincount(judged.labels[BY_MEANING] // n, minlength=n)
    positive = all_meaning + np.bincount(judged.labels[BY_TEXT] // n, minlength=n)
    queries = np.flatnonzero(positive + true + false)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(
        len(queries), np.full(len(queries), 1 / len(queries)), size=RESAMPLES
    )
    sums = {
        name: drawn @ counts[queries]
        for name, counts in (("t", true), ("f", false), ("m", by_meaning))
    }
    precision = sums["t"] / np.maximum(sums["t"] + sums["f"], 1)
    recall = sums["t"] / np.maximum(drawn @ positive[queries], 1)
    scores = {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / np.maximum(precision + recall, 1e-12),
        "semantic_only_recall": sums["m"] / np.maximum(drawn @ all_meaning[queries], 1),
    }
    return {
        name: tuple(np.quantile(resamples, [0.025, 0.975]).round(4).tolist())
        for name, resamples in scores.items()
    }
