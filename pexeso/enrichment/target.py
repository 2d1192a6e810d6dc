"""Whether a column says what the target says: the leak that makes a model look good and be of no use."""

from __future__ import annotations

import numpy as np

from pexeso.enrichment.columns import FEW_NUMBERS, NUMBER, Compared
from pexeso.enrichment.rules import EnrichmentRules

LEAST_KEYS = 10
KEYS_A_VALUE = 5


def tells_target(column: Compared, target: Compared, of_key: np.ndarray, rules: EnrichmentRules) -> bool:
    """Return whether a column gives the target away, as `EnrichmentRules` says.

    Each key counts once: all rows of one have the same cell, and among few keys any column would seem to tell a target that hangs on the key.

    Parameters
    ----------
    target : Compared
        The target, in each row the key's: what a join with the table itself would bring back.
    of_key : int64 (k,)
        A row of each key, among those compared.
    """
    rows = of_key[(column.filled & target.filled)[of_key]]
    if len(rows) < LEAST_KEYS:
        return False
    mine, theirs = target.values[rows], column.values[rows]
    if target.kind == NUMBER and len(np.unique(mine)) > FEW_NUMBERS:
        same = np.count_nonzero(column.same_in(target)[rows])
        return column.kind == NUMBER and (
            same >= rules.min_target_fraction * len(mine)
            or abs(_rank_correlation(mine, theirs)) >= rules.min_target_correlation
        )
    return _tells_class(theirs, mine, rules.min_target_agreement)


def _rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Return Spearman's correlation, 0 where either is constant."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(one), rankdata(other)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / spread) if spread > 0 else 0.0


def _tells_class(values: np.ndarray, classes: np.ndarray, min_agreement: float) -> bool:
    value_names, value = np.unique(values, return_inverse=True)
    class_names, of_class = np.unique(classes, return_inverse=True)
    if len(class_names) < 2 or len(values) < KEYS_A_VALUE * len(value_names):
        return False
    counts = np.zeros((len(value_names), len(class_names)))
    np.add.at(counts, (value, of_class), 1)
    # A value goes with the class that most of its rows have. The share is of each class, so that a frequent class alone is no agreement.
    best = counts.argmax(axis=1)
    right = np.bincount(best, weights=counts.max(axis=1), minlength=len(class_names)) / counts.sum(axis=0)
    return bool(right.mean() >= min_agreement)
