"""Thresholds from labelled pairs.

Among the thresholds that are as good as the best one on the labels, within the uncertainty of the
labels, the one nearest to the advice without labels is chosen.

How sure the labels are is asked of them: they are drawn again and again, with replacement. An
option is as good as the best where its F1 falls behind by no more than a quarter of the spread of
that difference. With few labels many options are, and the advice without labels decides among them;
with many, few are. Each draw also leaves labels out; on these the choice made without them is
scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pexeso.semantic.thresholds.advice import Advice, percent
from pexeso.semantic.thresholds.labels import ColumnLabel, Labels, ValueLabel
from pexeso.semantic.thresholds.sample import SEED
from pexeso.semantic.thresholds.unrelated_neighbours import EQUAL

RESAMPLES = 200
AS_GOOD = 0.25
"""An option is as good as the best where its F1 falls behind by this share of the spread of the
difference, and no more. On 6 to 200 labels of fuzzy joins a quarter lost nothing where the advice
without labels was good, and little where it was poor; a whole spread clung to poor advice."""

FEW_LABELS = 10
"""With fewer of either answer the labels are said to be few."""

VALUE_DISTANCES = np.arange(501) * 2 / 1000
COLUMN_DISTANCES = np.arange(101) / 100
JOINABILITIES = np.arange(1, 21) / 20
"""The options that are tried: distances alone for values, distances with shares of values for
columns."""


@dataclass(frozen=True)
class Chosen:
    """One of the options, and how it does on the labels."""

    position: int
    f1: float
    precision: float
    recall: float
    interval: tuple[float, float]
    left_out_f1: float
    reached: bool


def tune_values(
    labels: Sequence[ValueLabel], distances: np.ndarray, prior: Advice, min_precision: float | None
) -> Advice:
    """Choose `max_distance` from pairs of values.

    Parameters
    ----------
    distances : numpy.ndarray, float64 (n,)
        Of the two values of each; infinite where they cannot match.

    Notes
    -----
    Takes 3 kB a label.
    """
    options = np.unique(np.append(VALUE_DISTANCES, prior.max_distance))
    is_found = distances[:, None] <= options
    chosen = choose(is_found, _answers(labels), np.abs(options - prior.max_distance), min_precision)
    return _advice(
        labels, chosen, float(options[chosen.position]), prior.min_joinability, prior, min_precision
    )


def tune_columns(
    labels: Sequence[ColumnLabel],
    joinabilities: np.ndarray,
    prior: Advice,
    min_precision: float | None,
) -> Advice:
    """Choose `max_distance` and `min_joinability` from pairs of columns.

    Parameters
    ----------
    joinabilities : numpy.ndarray, float64 (n, 101)
        The share of values of each query column that match within each of `COLUMN_DISTANCES`.

    Notes
    -----
    Takes 11 kB a label.
    """
    is_found = (joinabilities[:, :, None] >= JOINABILITIES - 1e-9).reshape(len(labels), -1)
    min_joinability = prior.min_joinability or 0.5
    away = np.abs(COLUMN_DISTANCES - prior.max_distance)[:, None] / max(prior.max_distance, 0.01)
    chosen = choose(
        is_found,
        _answers(labels),
        (away + np.abs(JOINABILITIES - min_joinability)).ravel(),
        min_precision,
    )
    distance, share = divmod(chosen.position, len(JOINABILITIES))
    return _advice(
        labels,
        chosen,
        float(COLUMN_DISTANCES[distance]),
        float(JOINABILITIES[share]),
        prior,
        min_precision,
    )


def choose(
    is_found: np.ndarray, same: np.ndarray, away: np.ndarray, min_precision: float | None
) -> Chosen:
    """Choose an option.

    Parameters
    ----------
    is_found : numpy.ndarray, bool (labels, options)
        Which pairs each option finds.
    same : numpy.ndarray, bool (labels,)
        Which of them are right.
    away : numpy.ndarray, float64 (options,)
        How far each option is from the one that is preferred where labels do not tell.
    """
    every = np.ones((1, len(same)), np.float32)
    f1, precision, recall = (rates[0] for rates in _rates(every, is_found, same))
    drawn = np.random.default_rng(SEED).multinomial(
        len(same), np.full(len(same), 1 / len(same)), size=RESAMPLES
    )
    drawn = drawn.astype(np.float32)
    f1s = _rates(drawn, is_found, same)[0]
    allowed = (
        np.ones(len(away), bool) if min_precision is None else precision >= min_precision - 1e-9
    )
    allowed &= recall > 0
    reached = bool(allowed.any())
    if not reached:
        allowed = (
            precision >= precision[recall > 0].max() - 1e-9
            if (recall > 0).any()
            else np.ones(len(away), bool)
        )
    best = int(np.argmax(np.where(allowed, f1, -1.0)))
    spread = (f1s[:, [best]] - f1s).std(0)
    as_good = allowed & (f1[best] - f1 <= AS_GOOD * spread + 1e-9)
    position = int(np.lexsort((-f1, away, ~as_good))[0])
    interval = f1_interval(*_counts(is_found[:, position], same))
    left_out = _left_out_f1(drawn, f1s, is_found, same, away, allowed)
    return Chosen(
        position,
        float(f1[position]),
        float(precision[position]),
        float(recall[position]),
        interval,
        left_out,
        reached,
    )


def f1_interval(right: int, wrong: int, missed: int) -> tuple[float, float]:
    """Return the interval in which the F1 lies with a probability of 90 %.

    The arguments are the numbers of pairs found correctly, found wrongly and missed.

    Drawing labels again would say nothing where a few of them are all told rightly; this is the
    posterior of F1 under a flat prior.

    Source: Goutte and Gaussier, "A probabilistic interpretation of precision, recall and F-score"
    (ECIR 2005), section 2.
    """
    # A ratio of two gamma variates, of scales 2 and 1.
    generator = np.random.default_rng(SEED)
    hits, errors = (
        generator.gamma(right + 1, 2, 10_000),
        generator.gamma(wrong + missed + 2, 1, 10_000),
    )
    low, high = np.quantile(hits / (hits + errors), [0.05, 0.95])
    return float(low), float(high)


def _counts(is_found: np.ndarray, same: np.ndarray) -> tuple[int, int, int]:
    return (
        int((is_found & same).sum()),
        int((is_found & ~same).sum()),
        int((~is_found & same).sum()),
    )


def _rates(
    weights: np.ndarray, is_found: np.ndarray, same: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return F1, precision and recall of every option under weighted labels.

    `weights` is float32 (draws, labels). The precision is 1 if nothing is found.
    """
    right, wrong = (
        weights[:, which] @ is_found[which].astype(np.float32) for which in (same, ~same)
    )
    positive = weights[:, same].sum(1, keepdims=True)
    n_found = right + wrong
    precision = np.where(n_found > 0, right / np.maximum(n_found, 1e-9), 1.0)
    return (
        2 * right / np.maximum(n_found + positive, 1e-9),
        precision,
        right / np.maximum(positive, 1e-9),
    )


def _left_out_f1(
    drawn: np.ndarray,
    f1s: np.ndarray,
    is_found: np.ndarray,
    same: np.ndarray,
    away: np.ndarray,
    allowed: np.ndarray,
) -> float:
    """Score, on the labels that each draw leaves out, the option that is best on the draw."""
    positions = np.argmax(
        np.where(allowed, f1s, -1.0) - 1e-6 * away / max(float(away.max()), 1e-9), axis=1
    )
    left = drawn == 0
    is_found_left_out = is_found[:, positions].T & left
    right, wrong, positive = (
        (is_found_left_out & same).sum(),
        (is_found_left_out & ~same).sum(),
        (left & same).sum(),
    )
    return float(2 * right / max(right + wrong + positive, 1))


def _answers(labels: Labels) -> np.ndarray:
    return np.array([label.same for label in labels], bool)


def _advice(
    labels: Labels,
    chosen: Chosen,
    max_distance: float,
    min_joinability: float | None,
    prior: Advice,
    min_precision: float | None,
) -> Advice:
    n_same = sum(label.same for label in labels)
    evidence: dict[str, Any] = {
        "labels": len(labels),
        "labels_same": n_same,
        "f1": round(chosen.f1, 4),
        "precision": round(chosen.precision, 4),
        "recall": round(chosen.recall, 4),
        "f1_interval": [round(end, 4) for end in chosen.interval],
        "f1_on_labels_left_out": round(chosen.left_out_f1, 4),
        "min_precision": min_precision,
        "without_labels": prior.to_dict(),
    }
    low, high = chosen.interval
    why = (
        f"on {len(labels):,} labelled pairs ({n_same:,} yes) precision is "
        f"{percent(chosen.precision)}, recall {percent(chosen.recall)}, F1 {chosen.f1:.2f} "
        f"(90 % interval {low:.2f} to {high:.2f}; {chosen.left_out_f1:.2f} on labels left out). "
        f"Without labels it would be {_thresholds(prior)}."
    )
    if not chosen.reached and min_precision is not None:
        why += (
            f" No threshold reaches the precision of {percent(min_precision)} on these "
            "labels; this one comes nearest."
        )
    if min(n_same, len(labels) - n_same) < FEW_LABELS:
        why += (
            " These are few labels: where they leave a choice, it is the one nearest to "
            f"that; {FEW_LABELS} of either answer tell more."
        )
    return Advice(max_distance, min_joinability, why, evidence)


def _thresholds(advice: Advice) -> str:
    share = "" if advice.min_joinability is None else f" and {advice.min_joinability:g}"
    return f"{advice.max_distance:g}{share}"


def joinability_curve(nearest: np.ndarray, total: int) -> np.ndarray:
    """Return the share of distinct values whose nearest value lies within each distance.

    The distances are `COLUMN_DISTANCES`. The result is float64 (101,).
    """
    # Distances of equal vectors are off by rounding. At no other distance is anything added: a
    # search finds what lies within, and must find what it is advised for.
    within = nearest[:, None] <= np.maximum(COLUMN_DISTANCES, EQUAL)
    return within.sum(0) / max(total, 1)
