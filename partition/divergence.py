"""How different two columns are: divergences between histograms, and between mean vectors.

Every function takes many rows and few centres and returns the whole table of divergences. Rows are taken in chunks,
centres one by one, so that beside the result at most about :data:`CHUNK_ELEMENTS` numbers a temporary array are alive.
A row's result depends on that row alone, never on the rows that happen to stand in the same batch: a distributed run
gives the numbers of a local one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pexeso.errors import InputError

LN2 = float(np.log(2.0))
"""Upper bound of the Jensen-Shannon divergence, in nats."""

SMOOTHING = 1e-4
"""Added to the probability of every region for the symmetric Kullback-Leibler divergence, infinite on empty ones."""

CHUNK_ELEMENTS = 1 << 20
"""Elements of one temporary array: 8 MiB in float64."""


def normalise(counts: np.ndarray) -> np.ndarray:
    """Turn counts into distributions.

    Parameters
    ----------
    counts : ndarray, shape (n, n_regions)
        Finite, not negative, and not all zero in any row.

    Returns
    -------
    ndarray, shape (n, n_regions), float64
        Each row sums to 1.

    Raises
    ------
    InputError
        If a count is negative or not finite, or a row has no count at all.

    Examples
    --------
    >>> normalise(np.array([[1, 3]])).tolist()
    [[0.25, 0.75]]
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim != 2:
        raise InputError(f"Histograms must be a matrix of shape (n, regions). Got {counts.ndim} dimension(s).")
    totals = counts.sum(axis=1, keepdims=True)
    if not np.isfinite(totals).all() or (counts < 0).any():
        raise InputError("Counts of a histogram must be finite and not negative.")
    if (totals <= 0).any():
        row = int(np.flatnonzero(totals[:, 0] <= 0)[0])
        raise InputError(f"Every histogram must count at least one value. Row {row} counts none.")
    return counts / totals


def jensen_shannon(histograms: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence between each histogram and each centre.

    ``JSD(A, B) = KL(A || M) / 2 + KL(B || M) / 2`` with ``M = (A + B) / 2``, in nats: symmetric, 0 only between equal
    distributions, finite on empty regions, and at most ln 2 (reached where A and B share no region). Its square root is
    a metric.

    Only regions where the histogram is not empty are visited: all the others together add ``ln 2 / 2`` times the
    centre's mass in them. A column of few values costs few logarithms, however many regions there are.

    Parameters
    ----------
    histograms : ndarray, shape (n, n_regions), float64
        Rows that sum to 1.
    centres : ndarray, shape (k, n_regions), float64
        Rows that sum to 1.

    Returns
    -------
    ndarray, shape (n, k), float64
        In [0, ln 2].

    Raises
    ------
    InputError
        If the shapes do not fit or a row is not a distribution.

    Notes
    -----
    The paper (Dong et al., ICDE 2021, section on partitioning) speaks of Jensen-Shannon divergence but prints the mean
    of the two Kullback-Leibler divergences, which is :func:`symmetric_kl`. This is the true one.

    Examples
    --------
    >>> jensen_shannon(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).round(6).tolist()
    [[0.0, 0.693147]]
    """
    histograms, centres = _distributions(histograms, centres)
    result = np.empty((len(histograms), len(centres)))
    for rows in row_chunks(len(histograms), histograms.shape[1]):
        result[rows] = _jensen_shannon_chunk(histograms[rows], centres)
    return result


def _jensen_shannon_chunk(histograms: np.ndarray, centres: np.ndarray) -> np.ndarray:
    rows, regions = np.nonzero(histograms)
    p = histograms[rows, regions]
    result = np.empty((len(histograms), len(centres)))
    for index, centre in enumerate(centres):
        q = centre[regions]
        mean = 0.5 * (p + q)
        q_terms = np.log(q / mean, out=np.zeros_like(q), where=q > 0) * q
        terms = p * np.log(p / mean) + q_terms - q * LN2
        result[:, index] = 0.5 * (np.bincount(rows, weights=terms, minlength=len(histograms)) + LN2)
    return np.clip(result, 0.0, LN2)


def symmetric_kl(histograms: np.ndarray, centres: np.ndarray, *, smoothing: float = SMOOTHING) -> np.ndarray:
    """Mean of the two Kullback-Leibler divergences (half of Jeffreys' divergence), with additive smoothing.

    ``(KL(A || B) + KL(B || A)) / 2`` in nats, after `smoothing` has been added to every region and each row made to sum
    to 1 again. This is the formula that the paper prints under the name of Jensen-Shannon divergence; without smoothing
    it is infinite as soon as one of the two has an empty region that the other has not, which is the rule and not the
    exception.

    Parameters
    ----------
    histograms : ndarray, shape (n, n_regions), float64
        Rows that sum to 1.
    centres : ndarray, shape (k, n_regions), float64
        Rows that sum to 1.
    smoothing : float, default 1e-4
        Probability added to every region; above 0.

    Returns
    -------
    ndarray, shape (n, k), float64
        Finite and not negative.

    Raises
    ------
    InputError
        If the shapes do not fit, a row is not a distribution, or `smoothing` is not a number above 0.

    Examples
    --------
    >>> symmetric_kl(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])).tolist()
    [[0.0]]
    """
    if not (np.isfinite(smoothing) and smoothing > 0):
        raise InputError(f"smoothing must be a number above 0. Got {smoothing!r}.")
    histograms, centres = _distributions(histograms, centres)
    scale = 1.0 + smoothing * centres.shape[1]
    smooth_centres = (centres + smoothing) / scale
    log_centres = np.log(smooth_centres)
    result = np.empty((len(histograms), len(centres)))
    for rows in row_chunks(len(histograms), histograms.shape[1]):
        p = (histograms[rows] + smoothing) / scale
        log_p = np.log(p)
        for index in range(len(centres)):
            result[rows, index] = ((p - smooth_centres[index]) * (log_p - log_centres[index])).sum(axis=1)
    return 0.5 * result


def squared_euclidean(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared Euclidean distance between each point and each centre.

    Parameters
    ----------
    points : ndarray, shape (n, dimensions), float64
    centres : ndarray, shape (k, dimensions), float64

    Returns
    -------
    ndarray, shape (n, k), float64

    Raises
    ------
    InputError
        If the shapes do not fit.

    Examples
    --------
    >>> squared_euclidean(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).tolist()
    [[25.0]]
    """
    points, centres = _matrices(points, centres)
    result = np.empty((len(points), len(centres)))
    for rows in row_chunks(len(points), points.shape[1]):
        for index, centre in enumerate(centres):
            result[rows, index] = np.square(points[rows] - centre).sum(axis=1)
    return result


def row_chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Slices that cover all rows, each of at most :data:`CHUNK_ELEMENTS` elements, but of one row at least."""
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _matrices(rows: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    centres = np.ascontiguousarray(centres, dtype=np.float64)
    if rows.ndim != 2 or centres.ndim != 2 or rows.shape[1] != centres.shape[1]:
        raise InputError(
            f"Rows and centres must be matrices of equal width. Got shapes {rows.shape} and {centres.shape}."
        )
    return rows, centres


def _distributions(histograms: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    histograms, centres = _matrices(histograms, centres)
    for name, matrix in (("histogram", histograms), ("centre", centres)):
        # A NaN fails the first comparison.
        if not ((np.abs(matrix.sum(axis=1) - 1.0) < 1e-6).all() and (matrix >= 0).all()):
            raise InputError(f"Every {name} must be not negative and sum to 1: pass counts through normalise() first.")
    return histograms, centres
