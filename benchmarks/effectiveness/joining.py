"""Scores of joined values: precision, recall and F1 of each task, and their means.

Thresholds are chosen on other query values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.effectiveness.nearest import TIE, Joined
from benchmarks.effectiveness.scoring import FOLDS, RESAMPLES, drawn_folds, f1

COLUMNS = ("precision", "recall", "f1", "recall_of_other_spellings")
"""What is measured in each task.

The last is the recall of asked cells whose partner has no equal folded text.
"""


def scores_of_values(joined: Sequence[Joined], thresholds: Sequence[float]) -> dict[str, Any]:
    """Score a method over tasks."""
    groups, few = _groups(joined)
    masks, chosen = _by_values(joined) if few else _by_groups(joined, groups)
    return {
        **_scores(
            joined,
            masks,
            [sorted({thresholds[position] for position in positions}) for positions in chosen],
        ),
        "chosen_on": "other values of the task" if few else "other tasks",
    }


def scores_at(
    joined: Sequence[Joined],
    similarities: Sequence[float],
    thresholds: Sequence[float],
) -> dict[str, Any]:
    """Score tasks that are each joined from one untuned similarity on."""
    masks = [
        join.similarity >= lowest - TIE for join, lowest in zip(joined, similarities, strict=True)
    ]
    return {
        **_scores(joined, masks, [[threshold] for threshold in thresholds]),
        "chosen_on": "the values, without labels",
    }


def _groups(joined: Sequence[Joined]) -> tuple[np.ndarray, bool]:
    """Return the group number of each task, and whether there are too few groups."""
    groups = np.unique([join.group for join in joined], return_inverse=True)[1]
    return groups, len(np.unique(groups)) < FOLDS


def _scores(
    joined: Sequence[Joined],
    masks: Sequence[np.ndarray],
    thresholds: Sequence[list[float]],
) -> dict[str, Any]:
    groups, few = _groups(joined)
    rates = np.array(
        [_rates(*_counts(join, mask)) for join, mask in zip(joined, masks, strict=True)]
    )
    means = _means_of_drawn_values(joined, masks) if few else _means_of_drawn_groups(rates, groups)
    low, high = np.quantile(means, [0.025, 0.975], axis=0).round(4)
    return {
        **_named(rates.mean(0)),
        "intervals": {
            name: [float(a), float(b)] for name, a, b in zip(COLUMNS, low, high, strict=True)
        },
        "tasks": {
            join.task: {**_named(task_rates), "thresholds": at}
            for join, task_rates, at in zip(joined, rates, thresholds, strict=True)
        },
    }


def best_threshold(f1s: np.ndarray) -> int:
    """Return the place of the highest mean F1, of (tasks, thresholds); of equal ones the middle."""
    means = f1s.mean(0).round(9)
    best = np.flatnonzero(means == means.max())
    return int(best[len(best) // 2])


def _by_groups(
    joined: Sequence[Joined], groups: np.ndarray
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Choose the joined values and the threshold position of each task on the other groups."""
    f1s = np.array([f1_at_thresholds(join) for join in joined])
    positions = np.zeros(len(joined), np.int64)
    for fold in drawn_folds(np.unique(groups)):
        held_out = np.isin(groups, fold)
        positions[held_out] = best_threshold(f1s[~held_out])
    return [join.at(position) for join, position in zip(joined, positions, strict=True)], [
        [int(position)] for position in positions
    ]


def _by_values(joined: Sequence[Joined]) -> tuple[list[np.ndarray], list[list[int]]]:
    """Choose for some cells of a task on its other cells."""
    masks, chosen = [], []
    for join in joined:
        mask, positions = np.zeros(len(join.similarity), bool), []
        for fold in drawn_folds(np.arange(len(mask))):
            rest = np.ones(len(mask), bool)
            rest[fold] = False
            position = best_threshold(f1_at_thresholds(join, rest)[None])
            mask[fold] = join.at(position)[fold]
            positions.append(position)
        masks.append(mask)
        chosen.append(positions)
    return masks, chosen


def f1_at_thresholds(joined: Joined, some: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Return the F1 of some of the asked cells at every threshold."""
    return np.array(
        [
            _rates(*_counts(joined, joined.at(position), some))[2]
            for position in range(len(joined.similarities))
        ]
    )


def _counts(
    joined: Joined, mask: np.ndarray, some: np.ndarray | slice = slice(None)
) -> tuple[float, ...]:
    """Sum up `_per_cell` over some of the asked cells."""
    return tuple(float(count) for count in _per_cell(joined, mask)[some].sum(0))


def _per_cell(joined: Joined, mask: np.ndarray) -> np.ndarray:
    """Return, for each query cell, the counts from which the rates are computed."""
    other = joined.has_partner & ~joined.has_equal_partner
    true = joined.credit * mask
    return np.stack([mask, true, joined.has_partner, true * other, other], axis=1).astype(float)


def _rates(
    joined: float, true: float, partners: float, true_other: float, other: float
) -> tuple[float, ...]:
    precision, recall = true / joined if joined else 1.0, true / partners if partners else 1.0
    return precision, recall, f1(precision, recall), true_other / other if other else 1.0


def _named(rates: np.ndarray) -> dict[str, float]:
    return {name: round(float(rate), 4) for name, rate in zip(COLUMNS, rates, strict=True)}


def _means_of_drawn_groups(rates: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Draw groups of tasks with replacement; the mean rates of each draw, (`RESAMPLES`, 4)."""
    sizes = np.bincount(groups)
    sums = np.stack([np.bincount(groups, weights=column) for column in rates.T], axis=1)
    drawn = _draws(len(sizes))
    return (drawn @ sums) / (drawn @ sizes)[:, None]


def _means_of_drawn_values(joined: Sequence[Joined], masks: Sequence[np.ndarray]) -> np.ndarray:
    """Draw the asked cells of each task with replacement; the mean rates of each draw."""
    totals = [
        _draws(len(mask)) @ _per_cell(join, mask) for join, mask in zip(joined, masks, strict=True)
    ]  # for each task: (RESAMPLES, counts)
    return np.mean([[_rates(*counts) for counts in draws] for draws in totals], axis=0)


def _draws(n: int) -> np.ndarray:
    """Return how often each of n is drawn, (`RESAMPLES`, n)."""
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
