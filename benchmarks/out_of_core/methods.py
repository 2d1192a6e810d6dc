"""Ways to group columns for comparison: k-means under several divergences, and at random.

See Figure 7b of the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partition.clustering import hash64, iterate_in_memory, seed_centres
from partition.divergence import jensen_shannon, normalise, row_chunks

SMOOTHING = 1e-4
"""Added to the probability of every region for the symmetric Kullback-Leibler divergence.

That is infinite on empty ones.
"""

_MAX_ITERATIONS, _SEEDING_COLUMNS = 20, 10_000


@dataclass(frozen=True)
class Method:
    """One way to group columns.

    Attributes
    ----------
    name : str
    of_histograms : bool
        Whether a column is its distribution over the regions; else it is the mean of its vectors.
    between : callable or None
        ``(rows (n, F), centres (k, F)) -> (n, k)``; None where columns are not compared.
    """

    name: str
    of_histograms: bool
    between: Callable[[np.ndarray, np.ndarray], np.ndarray] | None

    def nearest(self, features: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest centre of every column, int64 (n,), and the divergence from it."""
        table = self.between(features, centres)
        clusters = np.argmin(table, axis=1)
        return clusters, table[np.arange(len(table)), clusters]


def fit_centres(method: Method, features: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Fit the centres of a method to columns, float64 (n, F).

    The divergence of a build is fitted as in a build, the others by plain k-means.
    """
    ties = hash64(np.arange(len(features)), seed)
    sample = features[np.sort(np.argsort(ties, kind="stable")[:_SEEDING_COLUMNS])]
    if method.between is jensen_shannon:
        return iterate_in_memory(features, ties, seed_centres(sample, n_clusters, seed=seed))
    centres = _drawn_centres(method, sample, n_clusters, np.random.default_rng(seed))
    for _ in range(_MAX_ITERATIONS):
        clusters, _ = method.nearest(features, centres)
        sums = np.zeros_like(centres)
        np.add.at(sums, clusters, features)
        counts = np.bincount(clusters, minlength=len(centres))
        updated = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        updated = normalise(updated) if method.of_histograms else updated
        if np.array_equal(updated, centres):
            break
        centres = updated
    return centres


def _drawn_centres(
    method: Method, sample: np.ndarray, n_clusters: int, generator: np.random.Generator
) -> np.ndarray:
    """Draw first centres by greedy k-means++, as a build does.

    There are fewer centres where there are fewer distinct columns.
    """
    chosen = [int(generator.integers(len(sample)))]
    left = method.between(sample, sample[chosen])[:, 0]
    while len(chosen) < n_clusters and (left > 1e-12).any():
        shares = np.where(left > 1e-12, left, 0.0)
        draws = generator.choice(len(sample), 2 + int(np.log(n_clusters)), p=shares / shares.sum())
        lowered = np.minimum(left[:, None], method.between(sample, sample[draws]))
        best = int(np.argmin(lowered.sum(axis=0)))
        chosen.append(int(draws[best]))
        left = lowered[:, best]
    return sample[chosen]


def random_clusters(n_columns: int, n_clusters: int, seed: int) -> np.ndarray:
    """Return a cluster for every column by a hash of its number, int64 (n,).

    This is the baseline that uses no data.
    """
    return (hash64(np.arange(n_columns), seed) >> 1) % n_clusters


def symmetric_kl(
    histograms: np.ndarray, centres: np.ndarray, *, smoothing: float = SMOOTHING
) -> np.ndarray:
    """Return the mean of the two Kullback-Leibler divergences, with additive smoothing.

    It is half of Jeffreys' divergence.

    ``(KL(A || B) + KL(B || A)) / 2`` in nats, after `smoothing` has been added to every region and
    each row made to sum to 1 again. This is the formula that the paper prints under the name of
    Jensen-Shannon divergence; without smoothing it is infinite as soon as one of the two has an
    empty region that the other has not, which is the rule and not the exception.

    Examples
    --------
    >>> symmetric_kl(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]])).tolist()
    [[0.0]]
    """
    scale = 1.0 + smoothing * centres.shape[1]
    smooth_centres = (centres + smoothing) / scale
    log_centres = np.log(smooth_centres)
    result = np.empty((len(histograms), len(centres)))
    for rows in row_chunks(len(histograms), histograms.shape[1]):
        p = (histograms[rows] + smoothing) / scale
        log_p = np.log(p)
        for index in range(len(centres)):
            result[rows, index] = ((p - smooth_centres[index]) * (log_p - log_centres[index])).sum(
                axis=1
            )
    return 0.5 * result


def squared_euclidean(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared Euclidean distance between each point and each centre.

    Examples
    --------
    >>> squared_euclidean(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).tolist()
    [[25.0]]
    """
    result = np.empty((len(points), len(centres)))
    for rows in row_chunks(len(points), points.shape[1]):
        for index, centre in enumerate(centres):
            result[rows, index] = np.square(points[rows] - centre).sum(axis=1)
    return result


METHODS = {
    method.name: method
    for method in (
        Method("jensen-shannon", True, jensen_shannon),
        Method("symmetric-kl", True, symmetric_kl),
        Method("mean-vector", False, squared_euclidean),
        Method("random", False, None),
    )
}
"""Every method by its name; the first is what a build does."""
