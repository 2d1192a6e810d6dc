"""Partitioning of the columns of a synthetic lake, held in arrays, by several methods (Figure 7b).

It uses the divergences and limits of a build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.lake import BenchmarkLake
from partition.balance import Limits, cut, fixed_limits, partition_bytes, place
from partition.clustering import (
    hash64,
    iterate_in_memory,
    jensen_shannon,
    normalise,
    seed_centres,
)
from partition.codebook import assign, fit_codebook

SAMPLE_COLUMNS = 20_000
"""Columns that the centres are fitted on."""

SAMPLE_VALUES = 50_000
"""Vectors that the codebook is fitted on."""

_COLUMNS_AT_ONCE, _VALUES_AT_ONCE = 4096, 1 << 20
_SEEDING_COLUMNS = 10_000


@dataclass(frozen=True)
class Method:
    """One way to group columns: k-means under a divergence of region counts or of mean vectors."""

    of_histograms: bool
    between: Callable[[np.ndarray, np.ndarray], np.ndarray] | None

    def nearest(self, features: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest centre of every column, int64 (n,), and the divergence from it."""
        table = self.between(features, centres)
        clusters = np.argmin(table, axis=1)
        return clusters, table[np.arange(len(table)), clusters]


def squared_euclidean(features: np.ndarray, centres: np.ndarray) -> np.ndarray:
    from scipy.spatial.distance import cdist

    return cdist(features, centres, "sqeuclidean")


METHODS = {
    "jensen-shannon": Method(True, jensen_shannon),
    "mean-vector": Method(False, squared_euclidean),
    "random": Method(False, None),
}
"""Every method by its name; the first is what a build does."""


def fit_centres(method: Method, features: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Fit the centres of a method to columns, float64 (n, F)."""
    if method.between is jensen_shannon:
        ties = hash64(np.arange(len(features)), seed)
        sample = features[np.sort(np.argsort(ties, kind="stable")[:_SEEDING_COLUMNS])]
        return iterate_in_memory(features, ties, seed_centres(sample, n_clusters, seed=seed))
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=1, random_state=seed).fit(features).cluster_centers_


def group_columns(
    lake: BenchmarkLake, method: str, n_partitions: int, *, seed: int = 0
) -> np.ndarray:
    """Choose a partition for every column."""
    sizes = np.diff(lake.column_offsets)
    ids = np.arange(lake.n_columns)
    n_bytes = np.asarray(partition_bytes(sizes, sizes, lake.dimensions))
    limits = fixed_limits(n_partitions, lake.n_columns, int(n_bytes.sum()))
    ties = hash64(ids, seed)
    chosen = METHODS[method]
    if chosen.between is None:
        clusters, divergences, centres = (ties >> 1) % n_partitions, np.zeros(len(ids)), None
    else:
        clusters, divergences, centres = _clusters(lake, chosen, limits, seed)
    pieces, piece_of = cut(ids, clusters, divergences, ties, n_bytes, limits)

    def divergence_from(cluster: int) -> np.ndarray:
        return np.zeros(0) if centres is None else chosen.between(centres[[cluster]], centres)[0]

    return place(pieces, limits, divergence_from)[piece_of]


def _clusters(
    lake: BenchmarkLake, method: Method, limits: Limits, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit centres on a sample of the columns, and give every column its nearest."""
    generator = np.random.default_rng(seed)
    codes = _codes(lake, generator, seed) if method.of_histograms else None
    chosen = np.sort(
        generator.choice(lake.n_columns, min(lake.n_columns, SAMPLE_COLUMNS), replace=False)
    )
    sample = np.concatenate(
        [_features(lake, part, codes) for part in np.array_split(chosen, -(-len(chosen) // 4096))]
    )
    centres = fit_centres(method, sample, limits.n_clusters, seed)
    clusters, divergences = np.empty(lake.n_columns, np.int64), np.empty(lake.n_columns)
    for columns in _runs(lake.n_columns):
        features = _features(lake, columns, codes)
        clusters[columns], divergences[columns] = method.nearest(features, centres)
    return clusters, divergences, centres


def _runs(n_columns: int) -> Iterator[np.ndarray]:
    for begin in range(0, n_columns, _COLUMNS_AT_ONCE):
        yield np.arange(begin, min(begin + _COLUMNS_AT_ONCE, n_columns))


def _codes(lake: BenchmarkLake, generator: np.random.Generator, seed: int) -> np.ndarray:
    """Return the region of every value, int16 (N,)."""
    chosen = np.sort(
        generator.choice(lake.n_values, min(lake.n_values, SAMPLE_VALUES), replace=False)
    )
    codebook = fit_codebook(lake.vectors[chosen], seed=seed)
    codes = np.empty(lake.n_values, np.int16)
    for begin in range(0, lake.n_values, _VALUES_AT_ONCE):
        end = begin + _VALUES_AT_ONCE
        codes[begin:end] = assign(lake.vectors[begin:end], codebook)
    return codes


def _features(lake: BenchmarkLake, columns: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """Return the region distributions, or without codes the mean vectors, of some columns."""
    sizes = np.diff(lake.column_offsets)[columns]
    values = values_of(lake, columns)
    if codes is None:
        starts = np.cumsum(sizes) - sizes
        return (
            np.add.reduceat(lake.vectors[values].astype(np.float64), starts, axis=0)
            / sizes[:, None]
        )
    n_regions = 257
    keys = np.repeat(np.arange(len(columns)), sizes) * n_regions + codes[values]
    return normalise(np.bincount(keys, minlength=len(columns) * n_regions).reshape(-1, n_regions))


def values_of(lake: BenchmarkLake, columns: np.ndarray) -> np.ndarray:
    """Return the values of some columns, column by column, int64."""
    starts, sizes = lake.column_offsets[columns], np.diff(lake.column_offsets)[columns]
    first = np.cumsum(sizes) - sizes
    positions = np.arange(int(sizes.sum())) - np.repeat(first - starts, sizes)
    return lake.column_values[positions]
