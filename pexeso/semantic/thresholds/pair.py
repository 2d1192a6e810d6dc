"""A threshold for joining two given columns, without labels.

Expected matches of unrelated values are subtracted from the nearest matches. The threshold is the
best balance of precision and recall for the rest.

Each value of the query column is joined with the nearest one of the lake column. Of the values,
M(d) have one within d. A value without a partner is joined with an unrelated neighbour as often as
values of one column have another one that near: W(d), known from within the two columns. The more
values a column has, the more of them lie near: a value of the query column meets as many in the
lake column as it does in its own, times the ratio of their sizes. W is the smaller of that and of
what is known from within the lake column. Where half of the index's values have an unrelated
neighbour nearby, hardly a partner is still to come; what is not joined there is the share p of
values without a partner. So M - p W are joined rightly, 1 - p could be, and precision, recall and
F1 follow for each distance.

The values with a partner are 1 - p of all, and at least the M - p W that are joined rightly at some
distance. The distance with the best F1 is chosen where it is better than the F1 of the usual
distance of the model by more than a standard error; else the usual one is. A join of fewer than
`MIN_JOINED` values says nothing of either, so that it cannot win.

Where few values have a partner, p W is nearly all of M, and chance alone can make the difference.
The precision that is stated, and that must hold where one is asked for, is therefore that with a
standard error more of false matches.

Source: the share of true nulls from the tail of a mixture is that of Storey, "A direct approach to
false discovery rates" (2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pexeso.engine.vector_space import Vectors, VectorSpace
from pexeso.semantic.thresholds.advice import HALF, Advice, percent
from pexeso.semantic.thresholds.sample import (
    EQUAL,
    Learnt,
    distance_reaching,
    nearest_distances,
    shares_within,
    tried_distances,
    unrelated_distances,
)

MAX_PAIRS = 1 << 27
"""Pairs of values that are compared, for each of three purposes: of longer columns, fewer values
ask."""

MIN_ROWS, MAX_ROWS = 1 << 7, 1 << 11

ENOUGH_COLUMNS = 10
"""From so many columns on, what is known of the whole index says where unrelated neighbours abound;
else the two columns alone do."""

ENOUGH_VALUES = 30
"""Two columns alone say something from so many values each on: where none of 30 is joined wrongly,
one in ten of all may still be, at 95 % confidence."""

MIN_JOINED = 5
"""Where fewer of the asked values are joined, and less than half, nothing is estimated."""

PRIOR_VALUES = 30
"""The unrelated neighbours of a column are mixed with those of the index as if they came from so
many more values."""


def advise_pair(
    space: VectorSpace,
    query: Vectors,
    others: Vectors,
    learnt: Learnt | None,
    usual: float,
    min_precision: float | None = None,
) -> Advice | None:
    """Choose the largest distance of values that are joined; None for columns that are too short.

    Parameters
    ----------
    query, others : Vectors
        The distinct values of the two columns; none zero, in the order of `value_order`, so that
        the first are a sample.
    learnt : Learnt or None
        What is known of the whole index, for columns that are short themselves.
    usual : float
        The distance that is usual for the model: another one must be better as estimated.
    min_precision : float, optional
        In (0, 1]: only distances are chosen at which so many of the joined values are right, as
        estimated; 0 where there are none.
    """
    if learnt is not None and len(learnt.sample) < ENOUGH_COLUMNS:
        learnt = None
    if min(len(query), len(others)) < (ENOUGH_VALUES if learnt is None else 2):
        return None
    nearest = nearest_distances(space, query[: _max_rows(len(others))], others)
    unrelated = [
        np.sort(unrelated_distances(space, side, _max_rows(len(side)))) for side in (query, others)
    ]
    every = unrelated if learnt is None else learnt.unrelated
    largest = distance_reaching(every, HALF)
    limits = np.unique(np.append(tried_distances(largest), usual))
    within, pooled = shares_within(unrelated, limits), shares_within(every, limits).mean(0)
    sizes = np.array([[len(distances)] for distances in unrelated])
    query_share, lake_share = (within * sizes + PRIOR_VALUES * pooled) / (sizes + PRIOR_VALUES)
    unrelated_share = np.minimum(1 - (1 - query_share) ** (len(others) / len(query)), lake_share)
    # Distances of equal vectors are off by rounding.
    matched = (nearest[:, None] <= np.maximum(limits, EQUAL)).mean(0)
    # Where the usual distance lies beyond, most values there have an unrelated neighbour.
    tail = int(np.searchsorted(limits, largest, side="right")) - 1
    usual_at = int(np.searchsorted(limits, usual))
    estimate = _estimated(limits, matched, unrelated_share, len(nearest), max(tail, 0))
    return _chosen(estimate, usual_at, min_precision)


@dataclass(frozen=True)
class _Estimate:
    limits: np.ndarray
    matched: np.ndarray
    unrelated_share: np.ndarray
    precision: np.ndarray
    f1: np.ndarray
    alone: float
    n_rows: int

    @property
    def says_something(self) -> np.ndarray:
        return self.matched * self.n_rows >= min(MIN_JOINED, self.n_rows / 2) - 1e-9


def _estimated(
    limits: np.ndarray, matched: np.ndarray, unrelated_share: np.ndarray, n_rows: int, tail: int
) -> _Estimate:
    alone = min(1.0, float((1 - matched[tail]) / max(1 - unrelated_share[tail], 1e-9)))
    wrong = alone * unrelated_share
    right = np.clip(matched - wrong, 0, None)
    partners = max(1 - alone, float(right[: tail + 1].max()))
    error = np.sqrt(wrong * (1 - wrong) / n_rows)
    precision = np.clip(1 - (wrong + error) / np.maximum(matched, 1e-9), 0, 1)
    f1 = np.minimum(2 * right / np.maximum(matched + partners, 1e-9), 1.0)
    return _Estimate(limits, matched, unrelated_share, precision, f1, alone, n_rows)


def _chosen(estimate: _Estimate, usual_at: int, min_precision: float | None) -> Advice:
    allowed = estimate.says_something & (estimate.precision >= (min_precision or 0.0) - 1e-9)
    position = int(np.argmax(np.where(allowed, estimate.f1.round(6), -1.0)))
    usual_f1 = float(estimate.f1[usual_at])
    doubt = np.sqrt(max(usual_f1 * (1 - usual_f1), 0.0) / estimate.n_rows)
    is_usual_allowed = min_precision is None or allowed[usual_at]
    if is_usual_allowed and not (allowed.any() and estimate.f1[position] > usual_f1 + doubt):
        position = usual_at
    elif not allowed.any():
        position = 0
    is_estimated = bool(estimate.says_something[position])
    precision, f1 = float(estimate.precision[position]), float(estimate.f1[position])
    evidence = {
        "min_precision": min_precision,
        "estimated_precision": round(precision, 4) if is_estimated else None,
        "estimated_f1": round(f1, 4) if is_estimated else None,
        "unrelated_neighbours": round(float(estimate.unrelated_share[position]), 4),
        "between_columns": round(float(estimate.matched[position]), 4),
        "without_partner": round(estimate.alone, 4),
        "asked_values": estimate.n_rows,
    }
    aim = "best F1" if min_precision is None else f"target {percent(min_precision)}"
    beginning = (
        f"estimated precision of the join {percent(precision)} ({aim})"
        if is_estimated
        else f"too few values are joined to estimate the precision ({aim})"
    )
    if position == usual_at:
        beginning += ", at the distance that is usual for the model of the index"
    why = (
        f"{beginning}; {percent(estimate.matched[position])} of your values have a neighbour "
        f"in that column; at this distance {percent(estimate.unrelated_share[position])} of those "
        "without a partner have an unrelated one."
    )
    return Advice(float(estimate.limits[position]), None, why, evidence)


def _max_rows(n_others: int) -> int:
    """Return how many values may ask so many others, so that not too many pairs are compared."""
    return min(MAX_ROWS, max(MIN_ROWS, MAX_PAIRS // max(n_others, 1)))
