"""Choice of the numbers of bands and rows for a query.

It depends on the threshold and on how much larger than the query the sets of a partition are.

The source takes the setting with the least area of false positives and false negatives (E15). The
latter is taken over containments from the threshold to 1, so it vanishes as the threshold nears 1:
at 1.0 the choice returns nothing, and at 0.9 it gives up all answers in sets five times the query.
So the choice here is another: the setting with the least area of false positives among those that
find a set right at the threshold with at least a given probability, the floor of the recall. More
than the threshold contained only makes a set easier to find, and so does a smaller one.

Symbols of the source: t* the threshold, rho = u / q with the largest size u of the partition and
the size q of the query, m the hash functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pexeso.errors import InputError
from pexeso.sets.containment.conversion import candidate_probability, jaccard_of

RECALL = 0.95
"""The floor of the specification."""
USUAL_RECALL = 0.98
"""The floor of a search. Of sets that are each found with exactly 0.95 every other sample shows
less than that; with this about one in fifty samples of a hundred sets does."""

_STEPS_AN_OCTAVE = 4
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True)
class Setting:
    """What is asked of a partition.

    Attributes
    ----------
    bands, rows : int
        b and r; b * r is at most m.
    """

    bands: int
    rows: int
    recall: float


def tune_recall_floor(
    ratio: float, threshold: float, permutations: int, max_rows: int, recall: float = RECALL
) -> Setting:
    """Choose the least area of false positives among settings that keep the recall.

    Parameters
    ----------
    ratio, threshold, permutations, max_rows
        rho above 0, t* in (0, 1], m, and the most rows of a band.
    recall : float
        Theta, in (0, 1): the probability with which a set of the largest size right at the
        threshold must be found.

    Returns
    -------
    Setting
        ``(m, 1)``, the most that there is, with the recall that it reaches, where no setting keeps
        it.

    Examples
    --------
    >>> tune_recall_floor(100.0, 0.5, permutations=256, max_rows=8)  # doctest: +ELLIPSIS
    Setting(bands=256, rows=1, recall=0.721...)
    """
    rows = np.arange(1, min(max_rows, permutations) + 1)
    at_threshold = jaccard_of(threshold, ratio) ** rows
    with np.errstate(divide="ignore"):
        least_bands = np.ceil(np.log1p(-recall) / np.log1p(-at_threshold))
    bands = np.maximum(least_bands, 1)
    able = bands <= permutations // rows
    if not able.any():
        return setting_of(ratio, threshold, permutations, 1)
    bands, rows = bands[able].astype(np.int64), rows[able]
    positives = integral(0.0, min(threshold, ratio), ratio, bands, rows)
    best = int(np.argmin(positives))
    return setting_of(ratio, threshold, int(bands[best]), int(rows[best]))


@dataclass(frozen=True)
class Tuner:
    """Choice of bands and rows over a grid of ratios and thresholds.

    Each point of the grid is computed when it is first requested.
    """

    permutations: int = 256
    max_rows: int = 8
    recall: float = USUAL_RECALL

    def __post_init__(self) -> None:
        if not 0 < self.recall < 1:
            raise InputError(
                f"The recall to keep must be above 0 and below 1. Got {self.recall!r}."
            )

    def tune(self, ratio: float, threshold: float) -> Setting:
        """Return the setting of one point of the grid."""
        return tune_recall_floor(ratio, threshold, self.permutations, self.max_rows, self.recall)

    def choose(self, ratio: float, threshold: float) -> Setting:
        """Return the setting of the nearest point of the grid that asks for no less.

        Parameters
        ----------
        ratio : float
            rho, above 0; taken up to the next of 2**(k/4).
        threshold : float
            t*, in (0, 1]; taken down to the next hundredth, but not to 0.
        """
        step = math.ceil(_STEPS_AN_OCTAVE * math.log2(ratio) - 1e-9)
        return _chosen(self, step, _hundredth(threshold))

    def choose_all(
        self, ratios: np.ndarray, threshold: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Do what `choose` does for many ratios at once.

        Parameters
        ----------
        ratios : float64 (p,)
            Above 0.

        Returns
        -------
        bands, rows : int64 (p,)
        recalls : float64 (p,)

        Examples
        --------
        >>> bands, rows, recalls = Tuner().choose_all(np.array([1.0, 100.0]), 0.5)
        >>> bands.tolist(), rows.tolist(), recalls.round(2).tolist()
        ([34, 256], [2, 1], [0.98, 0.69])
        """
        threshold = _hundredth(threshold)
        steps = np.ceil(_STEPS_AN_OCTAVE * np.log2(ratios) - 1e-9).astype(np.int64).tolist()
        chosen = [_chosen(self, step, threshold) for step in steps] if len(steps) else []
        bands, rows, recalls = (
            zip(*((one.bands, one.rows, one.recall) for one in chosen), strict=True)
            if chosen
            else ((), (), ())
        )
        return np.array(bands, np.int64), np.array(rows, np.int64), np.array(recalls, np.float64)


def _hundredth(threshold: float) -> float:
    hundredths = math.floor(threshold * 100 + 1e-9)
    return hundredths / 100 if hundredths else threshold


@lru_cache(maxsize=1 << 16)
def _chosen(tuner: Tuner, step: int, threshold: float) -> Setting:
    ratio = 2.0 ** (step / _STEPS_AN_OCTAVE)
    return tuner.tune(ratio, threshold)


def integral(
    low: float, high: float, ratio: float, bands: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Integrate the probability of a candidate over containment, float64 (g,).

    Gauss-Legendre quadrature with 64 points is used.
    """
    half = (high - low) / 2
    containment = low + half * (_POINTS + 1)
    chances = candidate_probability(
        jaccard_of(containment, ratio), np.asarray(bands)[:, None], np.asarray(rows)[:, None]
    )
    return half * (chances @ _WEIGHTS)


def setting_of(ratio: float, threshold: float, bands: int, rows: int) -> Setting:
    """Return a setting with the recall that it has right at the threshold."""
    # A partition whose sets are all smaller than asked for is never looked into; here the most that
    # can be stands for it.
    similarity = jaccard_of(min(threshold, ratio), ratio)
    return Setting(bands, rows, float(candidate_probability(similarity, bands, rows)))
