"""Whether a column says what the target says: the leak that makes a model look good and be of no use."""

from __future__ import annotations

import numpy as np

from pexeso.enriching.columns import FEW_NUMBERS, NUMBER, Compared
from pexeso.enriching.rules import EnrichmentRules

LEAST_ROWS = 10
ROWS_A_VALUE = 5


def tells_target(column: Compared, targets: list[Compared], rules: EnrichmentRules) -> bool:
    """Tell whether a column gives the target away, as `EnrichmentRules` says.

    Parameters
    ----------
    column : Compared
    targets : list of Compared
        The target as it stands in each row, and as a join by the key would bring it back; empty where there is no target.
    rules : EnrichmentRules

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.enriching.columns import Column
    >>> target = Compared.of(Column("number", pa.array(np.arange(20.0))))
    >>> thousands = Compared.of(Column("number", pa.array(np.arange(20.0) * 1000)))
    >>> tells_target(thousands, [target], EnrichmentRules())
    True
    """
    return any(_tells(column, target, rules) for target in targets)


def _tells(column: Compared, target: Compared, rules: EnrichmentRules) -> bool:
    both = column.filled & target.filled
    if np.count_nonzero(both) < LEAST_ROWS:
        return False
    mine, theirs = target.values[both], column.values[both]
    if target.kind == NUMBER and len(np.unique(mine)) > FEW_NUMBERS:
        same = np.count_nonzero(column.same_in(target)[both])
        return column.kind == NUMBER and (
            same >= rules.min_target_fraction * len(mine)
            or abs(_rank_correlation(mine, theirs)) >= rules.min_target_correlation
        )
    return _tells_class(theirs, mine, rules.min_target_agreement)


def _rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Give Spearman's correlation, 0 where either is constant."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(one), rankdata(other)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / spread) if spread > 0 else 0.0


def _tells_class(values: np.ndarray, classes: np.ndarray, min_agreement: float) -> bool:
    value_names, value = np.unique(values, return_inverse=True)
    class_names, of_class = np.unique(classes, return_inverse=True)
    if len(class_names) < 2 or len(values) < ROWS_A_VALUE * len(value_names):
        return False
    counts = np.zeros((len(value_names), len(class_names)))
    np.add.at(counts, (value, of_class), 1)
    # A value goes with the class that most of its rows have. The share is of each class, so that a frequent class alone is no agreement.
    best = counts.argmax(axis=1)
    right = np.bincount(best, weights=counts.max(axis=1), minlength=len(class_names)) / counts.sum(axis=0)
    return bool(right.mean() >= min_agreement)
