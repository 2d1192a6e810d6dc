"""The choice of bands and rows as the source makes it, for comparison (E13 to E15).

It minimises the sum of the areas of false positives and false negatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pexeso.containment.tuning import Setting, Tuner, integral, setting_of


@dataclass(frozen=True)
class SourceTuner(Tuner):
    """The source's choice over the grid of ratios and thresholds.

    No recall is guaranteed, so that a search never switches to posting lists for its sake.
    """

    recall: float = 1e-9

    def tune(self, ratio: float, threshold: float) -> Setting:
        """Return the setting of one point of the grid."""
        return tune_source(ratio, threshold, self.permutations, self.max_rows)


def false_areas(
    ratio: float, threshold: float, bands: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate the probabilities of false positives and false negatives (E13, E14).

    The integrals run over containment, by 64 points of Gauss and Legendre each.

    Parameters
    ----------
    ratio : float
        rho, above 0.
    threshold : float
        t*, in (0, 1].
    bands, rows : int (g,)

    Returns
    -------
    (float64 (g,), float64 (g,))
        Areas, within 1e-5 or better. Containments over min(1, ratio) do not occur and count for
        nothing.

    Examples
    --------
    >>> positives, negatives = false_areas(2.0, 0.5, np.array([256]), np.array([4]))
    >>> positives.round(5), negatives.round(5)
    (array([0.03252]), array([0.07984]))
    """
    upper = min(1.0, ratio)
    positives = integral(0.0, min(threshold, upper), ratio, bands, rows)
    if upper <= threshold:
        return positives, np.zeros(len(positives))
    return positives, (upper - threshold) - integral(threshold, upper, ratio, bands, rows)


def tune_source(ratio: float, threshold: float, permutations: int, max_rows: int) -> Setting:
    """Choose as the source does: the least sum of both areas (E15).

    Parameters
    ----------
    ratio : float
        rho, above 0.
    threshold : float
        t*, in (0, 1].
    permutations, max_rows : int
        m, and the most rows of a band.

    Returns
    -------
    Setting
        Of equal ones the one with fewest bands, then fewest rows.

    Examples
    --------
    >>> setting = tune_source(2.0, 0.5, permutations=256, max_rows=8)
    >>> setting.bands, setting.rows
    (85, 3)
    """
    bands, rows = _grid(permutations, max_rows)
    positives, negatives = false_areas(ratio, threshold, bands, rows)
    best = int(np.argmin(positives + negatives))
    return setting_of(ratio, threshold, int(bands[best]), int(rows[best]))


@lru_cache(maxsize=8)
def _grid(permutations: int, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all (b, r) that signatures serve, by b, then r."""
    pairs = [
        (bands, rows)
        for bands in range(1, permutations + 1)
        for rows in range(1, min(max_rows, permutations // bands) + 1)
    ]
    bands, rows = np.array(pairs).T
    return bands, rows
