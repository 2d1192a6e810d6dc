"""A threshold for joining two given columns, without labels.

Each value of the query column is joined with the nearest one of the lake column. Of its rows, M(d)
have one within d. A value without a partner is joined with an unrelated neighbour as often as
values of one column have another one that near: W(d), known from within the two columns. The more
values a column has, the more of them lie near: a value of the query column meets as many in the
lake column as it does in its own, times the ratio of their sizes. W is the smaller of that and of
what is known from within the lake column. Where half of the index's values have an unrelated
neighbour nearby, hardly a partner is still to come; what is not joined there is the share p of
values without a partner. So p W are joined wrongly, and M - p W rightly.

The distance that is usual for the model stays unless what lies between it and another one speaks
for that. Of the rows that a wider distance adds, more than half must be right, since whatever the
F1 is, it is higher with them then. Of the rows that a narrower one drops, fewer than half the F1
must be right. Either way unrelated neighbours are doubted in favour of the usual distance, since
what they are here may differ from what they are within columns. How this was chosen: on tasks of
joins with known partners, also with most of the partners removed and with rows repeated, leaving
whole data sets out.

Where few values have a partner, p W is nearly all of M, and chance alone can make the difference.
The precision that is stated, and that must hold where one is asked for, is therefore that with a
standard error more of false matches.

Rows count as often as they occur; for chance, as many as equally frequent values would be.

Source: the share of true nulls from the tail of a mixture is that of Storey, "A direct approach to
false discovery rates" (2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pexeso.engine.vector_space import Vectors, VectorSpace
from pexeso.semantic.thresholds.advice import HALF, WIDEST, Advice, gain_of_wider, percent
from pexeso.semantic.thresholds.sample import (
    EQUAL,
    Learnt,
    distance_reaching,
    effective_size,
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
"""Where fewer of the asked values are joined, and less than half, nothing is estimated; nor do
fewer speak for another distance than the usual one."""

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
    weights: np.ndarray | None = None,
) -> Advice | None:
    """Choose the largest distance of values that are joined; None for columns that are too short.

    The distinct values of the two columns are in the order of `value_order`, so that the first are
    a sample, and none is zero. `learnt` is of the whole index, `usual` the distance of the model,
    and `weights` are the rows of each value of `query`.
    """
    if learnt is not None and len(learnt.sample) < ENOUGH_COLUMNS:
        learnt = None
    if min(len(query), len(others)) < (ENOUGH_VALUES if learnt is None else 2):
        return None
    nearest = nearest_distances(space, query[: _max_rows(len(others))], others)
    rows = np.ones(len(nearest)) if weights is None else weights[: len(nearest)].astype(float)
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
    matched = rows @ (nearest[:, None] <= np.maximum(limits, EQUAL)) / rows.sum()
    # Where the usual distance lies beyond, most values there have an unrelated neighbour.
    tail = int(np.searchsorted(limits, largest, side="right")) - 1
    estimate = _Estimate(limits, matched, unrelated_share, effective_size(rows), max(tail, 0))
    usual_at = int(np.searchsorted(limits, usual))
    return _chosen(estimate, usual_at, len(nearest), min_precision)


@dataclass(frozen=True)
class _Estimate:
    limits: np.ndarray
    matched: np.ndarray
    unrelated_share: np.ndarray
    n_rows: float
    tail: int

    @cached_property
    def alone(self) -> float:
        """The share of values without a partner, as it shows at the limit `tail`."""
        unrelated = 1 - self.unrelated_share[self.tail]
        return min(1.0, float((1 - self.matched[self.tail]) / max(unrelated, 1e-9)))

    @property
    def wrong(self) -> np.ndarray:
        return self.alone * self.unrelated_share

    @property
    def precision(self) -> np.ndarray:
        """The share of joined rows that are right, with a standard error more of wrong ones."""
        error = np.sqrt(self.wrong * (1 - self.wrong) / self.n_rows)
        return np.clip(1 - (self.wrong + error) / np.maximum(self.matched, 1e-9), 0, 1)

    @property
    def says_something(self) -> np.ndarray:
        return self.matched * self.n_rows >= min(MIN_JOINED, self.n_rows / 2) - 1e-9

    def gains(self, usual_at: int) -> np.ndarray:
        """Return by how many rows each distance is better than the usual one, doubt deducted."""
        right = np.clip(self.matched - self.wrong, 0, None)
        partners = max(1 - self.alone, float(right.max()))
        f1 = 2 * right[usual_at] / max(float(self.matched[usual_at]) + partners, 1e-9)
        between, wrong = (
            self.n_rows * np.abs(shares - shares[usual_at]) for shares in (self.matched, self.wrong)
        )
        narrower = f1 / 2 * between - (between - wrong) - 2 * np.sqrt(wrong + 0.25)
        gains = np.where(
            np.arange(len(self.limits)) > usual_at, gain_of_wider(between, wrong), narrower
        )
        few = between < MIN_JOINED - 1e-9
        gains[few] = -1e-9 * np.abs(self.limits - self.limits[usual_at])[few]
        gains[usual_at] = 0.0
        gains[self.limits > self.limits[usual_at] + WIDEST] = -np.inf
        return gains


def _chosen(
    estimate: _Estimate, usual_at: int, n_asked: int, min_precision: float | None
) -> Advice:
    says_something, gains = estimate.says_something, estimate.gains(usual_at)
    allowed = says_something | (np.arange(len(gains)) == usual_at)
    if min_precision is not None:
        allowed = says_something & (estimate.precision >= min_precision - 1e-9)
    position = int(np.argmax(np.where(allowed, gains, -np.inf)))
    is_estimated = bool(says_something[position])
    precision = float(estimate.precision[position])
    evidence = {
        "min_precision": min_precision,
        "estimated_precision": round(precision, 4) if is_estimated else None,
        "unrelated_neighbours": round(float(estimate.unrelated_share[position]), 4),
        "between_columns": round(float(estimate.matched[position]), 4),
        "without_partner": round(estimate.alone, 4),
        "asked_values": n_asked,
    }
    target = "" if min_precision is None else f" (target {percent(min_precision)})"
    beginning = (
        f"estimated precision of the join {percent(precision)}{target}"
        if is_estimated
        else f"too few values are joined to estimate the precision{target}"
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
