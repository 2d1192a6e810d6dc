"""F1 of columns and of values at fixed distances, and recall of semantic-only pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.effectiveness.found_pairs import LEAST_JOINABILITY, found_pairs
from benchmarks.effectiveness.judged import BY_MEANING, BY_TEXT, NEGATIVE, Judged, incidence
from benchmarks.effectiveness.lexical.products import Vectors, all_products, best_by_column
from benchmarks.effectiveness.lexical.space import cosines_of
from benchmarks.effectiveness.nearest import TIE
from benchmarks.effectiveness.scoring import JOINABILITIES, folds_of
from benchmarks.effectiveness.tasks import Task

BestOf = Callable[[Vectors, Vectors, sp.csr_matrix, float], sp.csr_matrix]

DISTANCES = tuple(np.round(np.arange(0.2, 0.521, 0.01), 3).tolist())
"""Largest distances that are tried, as a share of the largest there is."""


@dataclass(frozen=True)
class ColumnScores:
    """What is found at each distance and joinability.

    Attributes
    ----------
    counts : numpy.ndarray of shape (folds, distances, joinabilities, 3), int64
        Negative, exact-value and semantic-only pairs that are found, by fold of the query column.
    positive : numpy.ndarray of shape (folds, 2), int64
        Exact-value and semantic-only pairs that there are.
    """

    counts: np.ndarray
    positive: np.ndarray

    def rates(self, folds: Sequence[int] | slice = slice(None)) -> tuple[np.ndarray, ...]:
        """Return precision, recall and semantic-only recall, each (distances, joinabilities)."""
        return rates_of(self.counts[folds].sum(0), self.positive[folds].sum(0))

    def f1(self) -> np.ndarray:
        """Return the F1 of all pairs, (distances, joinabilities)."""
        precision, recall, _ = self.rates()
        return 2 * precision * recall / np.maximum(precision + recall, 1e-12)

    def semantic_recall(self, min_precision: float) -> float:
        """Return the semantic-only recall where other folds choose for a precision."""
        members, counts = np.arange(len(self.counts)), np.zeros(3)
        for fold in members:
            precision, _, semantic = self.rates(members != fold)
            goal = np.where(precision >= min_precision, semantic, precision - 1)
            counts += self.counts[fold][np.unravel_index(np.argmax(goal), goal.shape)]
        return float(counts[2] / max(self.positive[:, 1].sum(), 1))


def rates_of(counts: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return precision, recall and semantic-only recall of counts (..., 3)."""
    true = counts[..., 1] + counts[..., 2]
    total = counts.sum(-1)
    precision = np.where(total > 0, true / np.maximum(total, 1), 1.0)
    return precision, true / max(positive.sum(), 1), counts[..., 2] / max(positive[1], 1)


def column_scores(
    judged: Judged,
    columns: Sequence[Sequence[str]],
    vectors: Vectors,
    number: dict[str, int],
    distances: Sequence[float] = DISTANCES,
    best_of: BestOf = best_by_column,
) -> ColumnScores:
    """Count the pairs of columns that are found at each distance and joinability.

    Parameters
    ----------
    judged : Judged
    columns : sequence of sequence of str
        The normalised values of each judged column.
    vectors : sparse or dense matrix of (values, d)
    number : dict of str to int
        The row of each value.
    distances : sequence of float
    best_of : callable
        Does as `best_by_column`.
    """
    values, held = incidence([[value for value in column if value] for column in columns])
    rows = vectors[np.array([number[value] for value in values], np.int64)]
    query = np.arange(held.shape[0]) if judged.allowed_queries is None else judged.allowed_queries
    used = np.flatnonzero(np.asarray(held[query].sum(0)).ravel())
    cosines = cosines_of(distances)
    best = best_of(rows[used], rows, held, float(cosines.min()))
    fold_of = np.zeros(judged.n_columns, np.int64)
    folds = folds_of(judged)
    for position, fold in enumerate(folds):
        fold_of[fold] = position
    counts = np.zeros((len(folds), len(cosines), len(JOINABILITIES), 4), np.int64)
    queries, sizes = held[query][:, used].tocsr(), np.asarray(held[query].sum(1)).ravel()
    for position, cosine in enumerate(cosines):
        reached = (best >= cosine).astype(np.float32)
        pairs = (queries @ reached).tocoo()
        hits = found_pairs(
            judged, cosine, query[pairs.row], pairs.col, pairs.data, pairs.data / sizes[pairs.row]
        )
        step = np.floor((hits.joinability - LEAST_JOINABILITY + 1e-9) * 100).astype(np.int64)
        np.add.at(counts, (fold_of[hits.query], position, step, hits.label), 1)
    counts = counts[:, :, ::-1].cumsum(2)[:, :, ::-1]
    positive = [
        np.bincount(fold_of[judged.labels[label] // judged.n_columns], minlength=len(folds))
        for label in (BY_TEXT, BY_MEANING)
    ]
    return ColumnScores(counts[..., [NEGATIVE, BY_TEXT, BY_MEANING]], np.stack(positive, axis=1))


def value_scores(
    tasks: Sequence[Task],
    prepared: Sequence[tuple[Sequence[str], Sequence[str]]],
    vectors: Vectors,
    number: dict[str, int],
    distances: Sequence[float] = DISTANCES,
) -> np.ndarray:
    """Return precision, recall and F1 of each task at each distance, (tasks, distances, 3).

    Each asked value is joined with its nearest one where that is near enough; of several nearest
    ones any may be taken, so each counts in part.
    """
    cosines = cosines_of(distances)
    return np.array(
        [
            _task_rates(task, *nearest(task, *sides, vectors, number), cosines)
            for task, sides in zip(tasks, prepared, strict=True)
        ]
    )


def nearest(
    task: Task,
    values: Sequence[str],
    others: Sequence[str],
    vectors: Vectors,
    number: dict[str, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosine of each asked value with its nearest one, and the share of right ones."""
    left, right = (
        vectors[np.array([number[value] for value in side], np.int64)] for side in (values, others)
    )
    product = all_products(left, right)
    best = product.max(1)
    ties = product >= best[:, None] - TIE
    right_ones = np.asarray(task.partners.multiply(ties).sum(1)).ravel()
    return best, right_ones / ties.sum(1)


def _task_rates(task: Task, best: np.ndarray, credit: np.ndarray, cosines: np.ndarray) -> list:
    partners, rates = max(int(task.has_partner().sum()), 1), []
    for cosine in cosines:
        mask = (best >= cosine - TIE) & (best > 0)
        true = float(credit[mask].sum())
        precision = true / mask.sum() if mask.any() else 1.0
        recall = true / partners
        rates.append((precision, recall, 2 * precision * recall / max(precision + recall, 1e-12)))
    return rates
