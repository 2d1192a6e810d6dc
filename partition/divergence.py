"""How different two columns are: the Jensen-Shannon divergence between histograms.

It takes many rows and few centres and returns the whole table of divergences. Rows are taken in
chunks, centres one by one, so that beside the result at most about :data:`CHUNK_ELEMENTS` numbers a
temporary array are alive. A row's result depends on that row alone, never on the rows that happen
to stand in the same batch: a distributed run gives the numbers of a local one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pexeso.errors import InputError

LN2 = float(np.log(2.0))
"""Upper bound of the Jensen-Shannon divergence, in nats."""

CHUNK_ELEMENTS = 1 << 20
"""Elements of one temporary array: 8 MiB in float64."""

STEPS_OF_ONE = float(1 << 36)
"""Divergences are whole multiples of 1 / STEPS_OF_ONE. Processors differ in the last bit of a
logarithm; rounded, two divergences that are equal stay equal, and sums of thousands are exact."""


def normalise(counts: np.ndarray) -> np.ndarray:
    """Turn counts into distributions.

    Parameters
    ----------
    counts : ndarray, shape (n, n_regions)
        Finite, not negative, and not all zero in any row.
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim != 2:
        raise InputError(
            f"Histograms must be a matrix of shape (n, regions). Got {counts.ndim} dimension(s)."
        )
    totals = counts.sum(axis=1, keepdims=True)
    if not np.isfinite(totals).all() or (counts < 0).any():
        raise InputError("Counts of a histogram must be finite and not negative.")
    if (totals <= 0).any():
        row = int(np.flatnonzero(totals[:, 0] <= 0)[0])
        raise InputError(f"Every histogram must count at least one value. Row {row} counts none.")
    return counts / totals


def jensen_shannon(histograms: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence between each histogram and each centre.

    ``JSD(A, B) = KL(A || M) / 2 + KL(B || M) / 2`` with ``M = (A + B) / 2``, in nats: symmetric, 0
    only between equal distributions (rows that sum to 1), finite on empty regions, and at most ln 2
    (reached where A and B share no region). Its square root is a metric.

    Only regions where the histogram is not empty are visited: all the others together add
    ``ln 2 / 2`` times the centre's mass in them. A column of few values costs few logarithms,
    however many regions there are.

    Notes
    -----
    The paper (Dong et al., ICDE 2021, section on partitioning) speaks of Jensen-Shannon divergence
    but prints the mean of the two Kullback-Leibler divergences, which is
    `benchmarks.out_of_core.methods.symmetric_kl`. This is the true one.
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
    return np.rint(np.clip(result, 0.0, LN2) * STEPS_OF_ONE) / STEPS_OF_ONE


def row_chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices that cover all rows, each of at most :data:`CHUNK_ELEMENTS` elements.

    A slice has at least one row.
    """
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _distributions(histograms: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    histograms = np.ascontiguousarray(histograms, dtype=np.float64)
    centres = np.ascontiguousarray(centres, dtype=np.float64)
    if histograms.ndim != 2 or centres.ndim != 2 or histograms.shape[1] != centres.shape[1]:
        raise InputError(
            "Histograms and centres must be matrices of equal width. Got shapes "
            f"{histograms.shape} and {centres.shape}."
        )
    for name, matrix in (("histogram", histograms), ("centre", centres)):
        # A NaN fails the first comparison.
        if not ((np.abs(matrix.sum(axis=1) - 1.0) < 1e-6).all() and (matrix >= 0).all()):
            raise InputError(
                f"Every {name} must be not negative and sum to 1: pass counts through "
                "normalise() first."
            )
    return histograms, centres
