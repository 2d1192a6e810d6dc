"""Thresholds chosen from labelled pairs, and from advice where these are too few."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.lake.readers.options import ReadingOptions
from pexeso.lake.rows import require_reading
from pexeso.options import DEFAULT_MIN_JOINABILITY
from pexeso.runtime.checks import require_flag
from pexeso.runtime.formatting import shown
from pexeso.semantic.explanation import locate_column
from pexeso.semantic.thresholds.advice import Advice, percent, require_min_precision
from pexeso.semantic.thresholds.advisor import Advisor, column_vectors
from pexeso.semantic.thresholds.calibration import Calibration, calibrate
from pexeso.semantic.thresholds.labels import (
    ColumnLabel,
    Labels,
    ValueLabel,
    read_labels,
    require_labels,
)
from pexeso.semantic.thresholds.sample import EQUAL, SEED, nearest_distances

if TYPE_CHECKING:
    from pexeso.semantic.open_index import OpenIndex


def tune(
    opened: OpenIndex,
    advisor: Advisor,
    labels: str | os.PathLike[str] | Iterable[ValueLabel] | Iterable[ColumnLabel] | None,
    min_precision: float | None,
    reading: ReadingOptions,
) -> Advice:
    if min_precision is not None:
        require_min_precision(min_precision)
    require_reading(reading)
    if labels is None:
        from pexeso.semantic.thresholds.judging import judged_labels

        reading.require_none("labels")
        judged, _ = judged_labels(opened, opened.judgements)
        return tune_judged(opened, judged, min_precision)
    if isinstance(labels, str | os.PathLike):
        read = read_labels(labels, reading=reading)
    else:
        reading.require_none("labels")
        read = _rows(labels)
    every = require_labels(read)
    prior = advisor.columns(min_precision)
    if isinstance(every[0], ValueLabel):
        return tune_values(every, _label_distances(opened, every), prior, min_precision)
    return tune_columns(
        every, np.stack([label_curve(opened, label) for label in every]), prior, min_precision
    )


def _rows(labels: Any) -> list[Any]:
    """Return labels that come from no file, each with a truth value."""
    if not isinstance(labels, Iterable):
        raise InputError(
            "labels must be the path of a table, or rows: all ValueLabel or all ColumnLabel. Got "
            f"{shown(labels)} instead."
        )
    rows = list(labels)
    for label in rows:
        if isinstance(label, ValueLabel | ColumnLabel):
            require_flag("same", label.same)
    return rows


def _label_distances(opened: OpenIndex, labels: Sequence[ValueLabel]) -> np.ndarray:
    """Return the distances of labelled values, float64: infinite if one of the two has no vector.

    The values of either side are normalised as those of a column: what is written out in a column
    of codes is found so by a search.
    """
    texts = [label.query for label in labels], [label.value for label in labels]
    sides = [opened.encode(side) for side in texts]
    rows = [pc.fill_null(side.value_of_row, -1).to_numpy(zero_copy_only=False) for side in sides]
    known = [np.append(side.known, False)[at] for side, at in zip(sides, rows, strict=True)]
    both = np.flatnonzero(known[0] & known[1])
    vectors = [side.vectors[at[both]] for side, at in zip(sides, rows, strict=True)]
    distances = np.full(len(labels), np.inf)
    distances[both] = opened.loader.space.pair_distances(*vectors)
    return distances


def calibration_of(opened: OpenIndex, labels: Sequence[ColumnLabel]) -> Calibration | None:
    """Return the probability of a join by its joinability, as judged; None of too few pairs."""
    return calibrate(_usual_shares(opened, labels), _answers(labels))


def _usual_shares(opened: OpenIndex, labels: Sequence[ColumnLabel]) -> np.ndarray:
    """Return the joinability of labelled columns at the usual distance, float64."""
    at = int(np.searchsorted(COLUMN_DISTANCES, opened.usual_max_distance - 1e-9))
    return np.array([label_curve(opened, label)[at] for label in labels], float)


CLEAR_GAIN = 0.1
"""By so much a share must raise the F1 of judged pairs that it was chosen without: with less a
search lost on parts of the Wikipedia lake, and with twice as much it gained nothing on the fuzzy
joins."""


def tune_judged(
    opened: OpenIndex, labels: Sequence[ColumnLabel], min_precision: float | None
) -> Advice:
    """Choose `min_joinability` from pairs that people judged.

    They were asked about pairs near the threshold, whose distances say nothing about others: so the
    usual one stays.
    """
    if not labels:
        raise InputError(
            f"No pair of columns of the lake is judged: 'pexeso judge {opened.whole.path}' asks "
            "about some, or give a table of labels."
        )
    require_labels(labels)
    prior = Advice(opened.usual_max_distance, DEFAULT_MIN_JOINABILITY, "", {})
    is_found = _usual_shares(opened, labels)[:, None] >= JOINABILITIES - 1e-9
    same, away = _answers(labels), np.abs(JOINABILITIES - DEFAULT_MIN_JOINABILITY)
    chosen, usual = choose(is_found, same, away, min_precision), int(away.argmin())
    share = float(JOINABILITIES[chosen.position])
    at_usual = choose(is_found[:, [usual]], same, away[[usual]], None)
    if min_precision is None and chosen.left_out_f1 <= at_usual.f1 + CLEAR_GAIN:
        chosen, share = at_usual, DEFAULT_MIN_JOINABILITY
    return _advice(labels, chosen, prior.max_distance, share, prior, min_precision)


def label_curve(opened: OpenIndex, label: ColumnLabel) -> np.ndarray:
    hit = locate_column(opened.store, label.table, label.column)
    query = opened.encode(label.query)
    others = column_vectors(opened.loader, hit)
    nearest = nearest_distances(opened.loader.space, query.vectors[query.known], others)
    return joinability_curve(nearest, len(query.values))


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
    """Choose both thresholds by the joinabilities within `COLUMN_DISTANCES`: float64 (n, 101)."""
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
    """Choose an option by the pairs that it finds (labels, options), of which some are the `same`.

    `away` says how far each option is from the one preferred where labels do not decide.
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
    chosen = is_found[:, position]
    interval = f1_interval(
        *(int(pairs.sum()) for pairs in (chosen & same, chosen & ~same, ~chosen & same))
    )
    left_out = _left_out_f1(drawn, f1s, is_found, same, away, allowed)
    rates = (float(rate[position]) for rate in (f1, precision, recall))
    return Chosen(position, *rates, interval, left_out, reached)


def f1_interval(right: int, wrong: int, missed: int) -> tuple[float, float]:
    """Return the interval in which the F1 lies with a probability of 90 %.

    Drawing labels again would say nothing where a few of them are all answered rightly; this is the
    posterior of F1 under a flat prior.

    Source: Goutte and Gaussier, "A probabilistic interpretation of precision, recall and F-score"
    (ECIR 2005), section 2.
    """
    # A ratio of two gamma variates, of scales 2 and 1.
    generator = np.random.default_rng(SEED)
    hits = generator.gamma(right + 1, 2, 10_000)
    errors = generator.gamma(wrong + missed + 2, 1, 10_000)
    low, high = np.quantile(hits / (hits + errors), [0.05, 0.95])
    return float(low), float(high)


def _rates(
    weights: np.ndarray, is_found: np.ndarray, same: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return F1, precision (1 if nothing is found) and recall of options, by weights of labels."""
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
    right, positive = (is_found_left_out & same).sum(), (left & same).sum()
    return float(2 * right / max(is_found_left_out.sum() + positive, 1))


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
    share = "" if prior.min_joinability is None else f" and {prior.min_joinability:g}"
    why = (
        f"on {len(labels):,} labelled pairs ({n_same:,} yes) precision is "
        f"{percent(chosen.precision)}, recall {percent(chosen.recall)}, F1 {chosen.f1:.2f} "
        f"(90 % interval {low:.2f} to {high:.2f}; {chosen.left_out_f1:.2f} on labels left out). "
        f"Without labels it would be {prior.max_distance:g}{share}."
    )
    if not chosen.reached and min_precision is not None:
        why += (
            f" No threshold reaches the precision of {percent(min_precision)} on these "
            "labels; this one comes nearest."
        )
    if min(n_same, len(labels) - n_same) < FEW_LABELS:
        why += (
            " These are few labels: where they leave a choice, it is the one nearest to "
            f"that; {FEW_LABELS} of either answer are more reliable."
        )
    return Advice(max_distance, min_joinability, why, evidence)


def joinability_curve(nearest: np.ndarray, total: int) -> np.ndarray:
    """Return the share of distinct values with one within each of `COLUMN_DISTANCES`, float64."""
    # Distances of equal vectors are off by rounding. At no other distance is anything added: a
    # search finds what lies within, and must find what it is advised for.
    within = nearest[:, None] <= np.maximum(COLUMN_DISTANCES, EQUAL)
    return within.sum(0) / max(total, 1)
