"""Whether the keys of a sample carry an interval: how many, how heavy, and what they leave unseen.

Few keys, or few that have most of the rows, do not show how far the next sample would be from this
one. Cells of the counted distribution that were seen for one key alone tell how many others were
not seen (I. J. Good, "The population frequencies of species and the estimation of population
parameters", 1953).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pexeso.acquisition.measures.sums import exact_sum

MIN_KEYS = 30
"""Fewest sampled keys of an edge that carry an interval."""

MIN_EFFECTIVE_KEYS = 20
"""Fewest equally heavy keys that the sampled ones must be worth."""

MAX_UNSEEN = 0.2
"""Largest share of rows in cells that are probably not in the sample."""

MIN_EFFECTIVE_KEYS_ALONE = 50
MIN_EFFECTIVE_SHARE_ALONE = 0.3
"""Fewest equally heavy keys, in number and as a share of those sampled, where the sample alone says
how heavy keys are."""


@dataclass(frozen=True)
class Support:
    """What the keys of an edge in a sample say about an estimate by them.

    Attributes
    ----------
    keys : int
        The sampled keys with rows.
    effective_keys : float
        The number of equally heavy keys that they are worth, (sum w)**2 / (sum w**2), with the
        heavy keys that are known not to be in the sample.
    unseen : float
        The estimated share of rows in cells that are not in the sample, from 0 to 1.
    inflation : float
        i, 1 or more: the factor of the standard error for these heavy keys.
    known : bool
        It is known how heavy the keys are that are not in the sample.
    """

    keys: int
    effective_keys: float
    unseen: float = 0.0
    inflation: float = 1.0
    known: bool = True

    @property
    def reason(self) -> str:
        """Why these keys carry no interval; empty where they do."""
        if self.keys < MIN_KEYS:
            return f"{self.keys} keys in the sample, at least {MIN_KEYS} are needed"
        if self.effective_keys < MIN_EFFECTIVE_KEYS:
            return (
                f"few keys have most rows: the sample is worth {self.effective_keys:.1f} equally "
                f"heavy keys, at least {MIN_EFFECTIVE_KEYS} are needed"
            )
        needed = max(MIN_EFFECTIVE_KEYS_ALONE, MIN_EFFECTIVE_SHARE_ALONE * self.keys)
        if not self.known and self.effective_keys < needed:
            return (
                "the heaviest keys of the whole tables are not known, and those sampled differ: "
                f"{self.keys} are worth {self.effective_keys:.1f} equally heavy keys, at least "
                f"{needed:.0f} are needed"
            )
        if self.unseen > MAX_UNSEEN:
            return (
                f"about {self.unseen:.0%} of the rows have values that are not in the sample, at "
                f"most {MAX_UNSEEN:.0%} are allowed"
            )
        return ""


def support_of_keys(
    weights: np.ndarray,
    rate: float,
    *,
    unsampled_squares: float | None = None,
    unseen: float = 0.0,
) -> Support:
    """Return what sampled keys say about an estimate.

    Parameters
    ----------
    weights : numpy.ndarray
        How many rows of the join each sampled key has; those with 0 do not count.
    rate : float
        p, the rate of the sample.
    unsampled_squares : float, optional
        The sum of the squares of such numbers for the heavy keys that are not in the sample; not
        known if not given.
    unseen : float
        See `Support`.

    Returns
    -------
    Support

    Examples
    --------
    >>> support_of_keys(np.full(50, 3), 0.1).effective_keys
    50.0
    >>> support_of_keys(np.array([100, 1, 1, 1]), 0.1).effective_keys < 1.1
    True
    """
    weights = np.asarray(weights, np.float64)
    weights = weights[weights > 0]
    if not len(weights):
        return Support(0, 0.0, unseen)
    known = unsampled_squares is not None
    total, squares = exact_sum(weights), exact_sum(weights * weights)
    whole = max(squares / rate, squares + (unsampled_squares or 0.0))
    effective = total * total / (whole * rate)
    return Support(len(weights), effective, unseen, math.sqrt(whole * rate / squares), known)


def unseen_share(cells: np.ndarray, keys: np.ndarray, counts: np.ndarray, rate: float) -> float:
    """Return the estimated share of rows in cells that a sample of keys lacks.

    It is the share of rows in cells that one key alone has, times 1 - p.

    Parameters
    ----------
    cells, keys : numpy.ndarray, shape (n,)
        Of each row of the join the number of its cell, and its key.
    counts : numpy.ndarray, shape (n,)
        How often each row is there.
    rate : float
        p, the rate of the sample.

    Returns
    -------
    float

    Examples
    --------
    >>> cells, keys = np.array([0, 0, 1, 2]), np.array([0.1, 0.2, 0.2, 0.3])
    >>> unseen_share(cells, keys, np.array([1, 1, 1, 1]), 0.5)
    0.25
    """
    mask = counts > 0
    cells, keys, counts = cells[mask], keys[mask], counts[mask]
    if not len(cells):
        return 0.0
    order = np.lexsort([keys, cells])
    cells, keys, counts = cells[order], keys[order], counts[order].astype(np.float64)
    first = np.flatnonzero(np.diff(cells, prepend=cells[0] - 1))
    n_keys = np.add.reduceat(np.r_[True, (np.diff(keys) != 0) | (np.diff(cells) != 0)], first)
    rows = np.add.reduceat(counts, first)
    return float((1 - rate) * rows[n_keys == 1].sum() / rows.sum())
