"""Clustering of columns by content: k-means under the Jensen-Shannon divergence of histograms.

The loop knows nothing of where the columns are. It asks for one pass over them (:class:`Partials`:
sums a cluster) and, where a cluster came out empty, for the columns farthest from their centres.
:func:`iterate_in_memory` answers from arrays, :mod:`partition.plan` from tasks over files.
Sums are kept in fixed point, so that they are the same whatever order they are added in, and a
row's divergences depend on that row alone, never on its batch: both give the same clusters.
Features are float64 (n, F), the histograms of n columns; centres float64 (k, F). Rows are taken in
chunks of at most about :data:`CHUNK_ELEMENTS` numbers.

Source: Dong et al., "Efficient Joinable Table Discovery in Data Lakes" (ICDE 2021), partitioning by
column distribution. Two differences: the paper's text redraws the centres in every round, here only
assignment and update repeat; and the paper draws the first centres evenly, here they are drawn by
k-means++.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pexeso.runtime.ranges import mixed

LN2 = float(np.log(2.0))  # upper bound of the Jensen-Shannon divergence, in nats

CHUNK_ELEMENTS = 1 << 20  # elements of one temporary array: 8 MiB in float64

# Divergences are whole multiples of 1 / STEPS_OF_ONE. Processors differ in the last bit of a
# logarithm; rounded, two divergences that are equal stay equal, and sums of thousands are exact.
STEPS_OF_ONE = float(1 << 36)


def normalise(counts: np.ndarray) -> np.ndarray:
    """Turn counts, not negative and not all zero in any row, into distributions."""
    counts = np.asarray(counts, dtype=np.float64)
    return counts / counts.sum(axis=1, keepdims=True)


def jensen_shannon(histograms: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence between each histogram and each centre.

    ``JSD(A, B) = KL(A || M) / 2 + KL(B || M) / 2`` with ``M = (A + B) / 2``, in nats: symmetric, 0
    only between equal distributions (rows that sum to 1), finite on empty regions, and at most ln 2
    (reached where A and B share no region). Its square root is a metric.

    Only regions where the histogram is not empty are visited: all the others together add
    ``ln 2 / 2`` times the centre's mass in them. A column of few values costs few logarithms,
    however many regions there are.

    The paper speaks of Jensen-Shannon divergence but prints the mean of the two Kullback-Leibler
    divergences. This is the true one.
    """
    result = np.empty((len(histograms), len(centres)))
    for part in row_chunks(len(histograms), histograms.shape[1]):
        some, table = histograms[part], result[part]
        rows, regions = np.nonzero(some)
        p = some[rows, regions]
        for index, centre in enumerate(centres):
            q = centre[regions]
            mean = 0.5 * (p + q)
            q_terms = np.log(q / mean, out=np.zeros_like(q), where=q > 0) * q
            terms = p * np.log(p / mean) + q_terms - q * LN2
            sums = np.bincount(rows, weights=terms, minlength=len(some))
            table[:, index] = 0.5 * (sums + LN2)
    return np.rint(np.clip(result, 0.0, LN2) * STEPS_OF_ONE) / STEPS_OF_ONE


def row_chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices that cover all rows, each of at most :data:`CHUNK_ELEMENTS` elements.

    A slice has at least one row.
    """
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


SCALE = float(1 << 30)

MAX_ITERATIONS = 20  # most passes over the columns

SAME = 1e-12  # divergences up to this are rounding: the two are equal

# Farthest columns asked for to re-seed one empty cluster. There are several, because some may be
# copies of each other.
CANDIDATES_PER_EMPTY_CLUSTER = 4


@dataclass(eq=False)
class Partials:
    """What one pass over some columns leaves behind: sums by cluster, to be added up in any order.

    All are int64; features and divergences are in units of 1 / SCALE.
    """

    sums: np.ndarray  # (k, F): of the features of the cluster's columns
    counts: np.ndarray  # (k,): columns
    costs: np.ndarray  # (k,): of the divergences between the columns and the centre

    @classmethod
    def zeros(cls, n_clusters: int, n_features: int) -> Partials:
        empty = np.zeros(n_clusters, dtype=np.int64)
        return cls(np.zeros((n_clusters, n_features), dtype=np.int64), empty, empty.copy())

    def add(self, other: Partials) -> None:
        self.sums += other.sums
        self.counts += other.counts
        self.costs += other.costs


def nearest(features: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest centre of every column, int32, and the divergence.

    Where two centres are equally near, it is the lowest.
    """
    clusters = np.empty(len(features), dtype=np.int32)
    divergences = np.empty(len(features))
    for rows in row_chunks(len(features), max(centres.shape)):
        table = jensen_shannon(features[rows], centres)
        clusters[rows] = np.argmin(table, axis=1)
        divergences[rows] = table[np.arange(len(table)), clusters[rows]]
    return clusters, divergences


def partial_sums(features: np.ndarray, centres: np.ndarray) -> Partials:
    """Assign columns to centres and sum them by cluster.

    This is one step of k-means over a part of the lake.
    """
    result = Partials.zeros(*centres.shape)
    for rows in row_chunks(len(features), features.shape[1]):
        clusters, divergences = nearest(features[rows], centres)
        order = np.argsort(clusters, kind="stable")
        present, starts = np.unique(clusters[order], return_index=True)
        fixed = np.rint(features[rows][order] * SCALE).astype(np.int64)
        costs = np.rint(divergences[order] * SCALE).astype(np.int64)
        result.sums[present] += np.add.reduceat(fixed, starts, axis=0)
        result.costs[present] += np.add.reduceat(costs, starts)
        result.counts += np.bincount(clusters, minlength=len(centres))
    return result


def seed_centres(features: np.ndarray, n_clusters: int, *, seed: int) -> np.ndarray:
    """Draw first centres by greedy k-means++.

    Each next centre is drawn with a probability in proportion to its divergence from those drawn
    before; of a few such draws the one is kept that lowers the sum of divergences most (Arthur and
    Vassilvitskii 2007, the variant that scikit-learn uses too). A single draw often lands on a
    column of one or two values, which is far from everything and near to nothing. The
    Jensen-Shannon divergence is the square of a metric, as k-means++ wants it. There are as many
    centres as distinct rows where these are fewer than `n_clusters`.
    """
    generator = np.random.default_rng(seed)
    n_draws = 2 + int(np.log(n_clusters))
    chosen = [int(generator.integers(len(features)))]
    divergences = _without_rounding(jensen_shannon(features, features[chosen])[:, 0])
    while len(chosen) < n_clusters:
        cumulative = np.cumsum(divergences)
        if cumulative[-1] <= 0:
            break
        # side="right" never lands on a row of divergence 0; a draw rounded up to the end takes the
        # last other row.
        draws = np.searchsorted(
            cumulative, generator.random(n_draws) * cumulative[-1], side="right"
        )
        draws = np.minimum(draws, np.flatnonzero(divergences)[-1])
        lowered = np.minimum(
            divergences[:, None], _without_rounding(jensen_shannon(features, features[draws]))
        )
        best = int(np.argmin(lowered.sum(axis=0)))
        chosen.append(int(draws[best]))
        divergences = lowered[:, best]
    return features[chosen]


def _without_rounding(divergences: np.ndarray) -> np.ndarray:
    return np.where(divergences <= SAME, 0.0, divergences)


def iterate(
    measure: Callable[[np.ndarray], Partials],
    farthest: Callable[[np.ndarray, int], np.ndarray],
    centres: np.ndarray,
    *,
    max_iterations: int = MAX_ITERATIONS,
) -> np.ndarray:
    """Repeat assignment and update until nothing changes.

    Where a cluster is empty, `farthest` returns the features of so many columns that are farthest
    from their nearest centre, farthest first.
    """
    for _ in range(max_iterations):
        partials = measure(centres)
        filled = partials.counts > 0
        updated = centres.copy()
        # The mean histogram; divided by its own mass, because fixed point may have left a row's sum
        # a little off 1.
        updated[filled] = normalise(partials.sums[filled])
        if not filled.all():
            _reseed(updated, np.flatnonzero(~filled), centres, farthest)
        if np.array_equal(updated, centres):
            break
        centres = updated
    return centres


def iterate_in_memory(
    features: np.ndarray,
    ties: np.ndarray,
    centres: np.ndarray,
    *,
    max_iterations: int = MAX_ITERATIONS,
) -> np.ndarray:
    """Run `iterate` over columns in memory; `ties` orders those equally far from their centres."""

    def measure(centres: np.ndarray) -> Partials:
        return partial_sums(features, centres)

    def farthest(centres: np.ndarray, n: int) -> np.ndarray:
        divergences = nearest(features, centres)[1]
        return features[np.lexsort((ties, -divergences))[:n]]

    return iterate(measure, farthest, centres, max_iterations=max_iterations)


def _reseed(
    updated: np.ndarray,
    empty: np.ndarray,
    centres: np.ndarray,
    farthest: Callable[[np.ndarray, int], np.ndarray],
) -> None:
    """Move empty clusters, in place, onto the columns farthest from all centres.

    Each is moved onto a column of different content.
    """
    all_centres = centres
    candidates = farthest(centres, CANDIDATES_PER_EMPTY_CLUSTER * len(empty))
    free = list(empty)
    for candidate in candidates:
        if not free:
            return
        if jensen_shannon(candidate[None], all_centres).min() > SAME:
            updated[free.pop(0)] = candidate
            all_centres = np.vstack([all_centres, candidate])


def hash64(column_ids: np.ndarray, seed: int) -> np.ndarray:
    """Return hashes of column numbers, which order columns that nothing else orders: int64.

    The finaliser of SplitMix64 (Steele, Lea, Flood 2014), top bit cleared.
    """
    offset = np.array([((seed + 1) * 0x9E3779B97F4A7C15) & (2**64 - 1)], dtype=np.uint64)
    state = (
        np.asarray(column_ids, dtype=np.int64).astype(np.uint64) * np.uint64(0xD1342543DE82EF95)
        + offset
    )
    return (mixed(state) >> np.uint64(1)).astype(np.int64)
