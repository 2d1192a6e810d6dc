"""Conversion between containment and Jaccard similarity, and the candidate probability.

Similarities are converted for sets of known sizes. The candidate probability is how likely banding
makes a set a candidate.

Symbols of the source: x and q are the sizes of an indexed set and of the query, rho = x / q, t the
containment of the query in the set, s their Jaccard similarity, b bands of r rows each.
"""

from __future__ import annotations

import math

import numpy as np


def jaccard_of(containment: np.ndarray | float, ratio: np.ndarray | float) -> np.ndarray | float:
    """Compute the Jaccard similarity of a query and a set with a given containment.

    This is equation E3, and E5 with the largest size of a partition.

    It sinks as the set grows. So the similarity for the largest set of a partition is no more than
    that of any other with the same containment: a filter at it loses nothing.

    Examples
    --------
    >>> round(jaccard_of(0.6, 1.1), 12), round(jaccard_of(0.5, 2.0), 12)
    (0.4, 0.2)
    """
    return containment / (ratio + 1 - containment)


def containment_of(jaccard: np.ndarray | float, ratio: np.ndarray | float) -> np.ndarray | float:
    """Compute the containment of a query in a set from their Jaccard similarity.

    This is the inverse of `jaccard_of` (equation E4).

    Examples
    --------
    >>> round(containment_of(0.2, 2.0), 12)
    0.5
    """
    return (ratio + 1) * jaccard / (1 + jaccard)


def candidate_probability(
    jaccard: np.ndarray | float, bands: np.ndarray | int, rows: np.ndarray | int
) -> np.ndarray:
    """Return how likely one of b bands of r rows agrees in full for two sets of this similarity.

    It is ``1 - (1 - s**r)**b`` (equation E1; with `jaccard_of`, E12).

    Examples
    --------
    >>> float(candidate_probability(1.0, 1, 8))
    1.0
    """
    with np.errstate(
        divide="ignore"
    ):  # of equal sets the logarithm is minus infinity, which is right
        return -np.expm1(bands * np.log1p(-(np.asarray(jaccard, np.float64) ** rows)))


def tokens_needed(size: int, threshold: float) -> int:
    """Return the least number of tokens that a set must share with a query; at least 1.

    Examples
    --------
    >>> tokens_needed(100, 0.55), tokens_needed(3, 0.5), tokens_needed(0, 1.0)
    (55, 2, 1)
    """
    # Rounded first: 0.55 * 100 is a little more than 55, which must not ask for 56.
    return max(1, math.ceil(threshold * size - 1e-9))
