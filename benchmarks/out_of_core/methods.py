"""Ways to group columns for comparison: k-means under several divergences, and at random.

See Figure 7b of the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partition.clustering import (
    hash64,
    iterate_in_memory,
    jensen_shannon,
    normalise,
    row_chunks,
    seed_centres,
)

_MAX_ITERATIONS, _SEEDING_COLUMNS = 20, 10_000


@dataclass(frozen=True)
class Method:
    """One way to group columns."""

    name: str
    of_histograms: bool
    between: Callable[[np.ndarray, np.ndarray], np.ndarray] | None

    def nearest(self, features: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest centre of every column, int64 (n,), and the divergence from it."""
        table = self.between(features, centres)
        clusters = np.argmin(table, axis=1)
        return clusters, table[np.arange(len(table)), clusters]


def fit_centres(method: Method, features: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Fit the centres of a method to columns, float64 (n, F)."""
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
    """Draw first centres by greedy k-means++, as a build does."""
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
    """Return a cluster for every column by a hash of its number, int64 (n,)."""
    return (hash64(np.arange(n_columns), seed) >> 1) % n_clusters


def squared_euclidean(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared Euclidean distance between each point and each centre."""
    result = np.empty((len(points), len(centres)))
    for rows in row_chunks(len(points), points.shape[1]):
        for index, centre in enumerate(centres):
            result[rows, index] = np.square(points[rows] - centre).sum(axis=1)
    return result


METHODS = {
    method.name: method
    for method in (
        Method("jensen-shannon", True, jensen_shannon),
        Method("mean-vector", False, squared_euclidean),
        Method("random", False, None),
    )
}
"""Every method by its name; the first is what a build does."""
