"""Columns grouped by what they hold: k-means under a divergence, and the baselines it must beat.

The loop knows nothing of where the columns are. It asks for one pass over them (:class:`Partials`: sums a cluster) and,
where a cluster came out empty, for the columns farthest from their centres. :func:`cluster_columns` answers from
arrays, :mod:`partition.spark` from a cluster of machines. Sums are kept in fixed point, so that they are the same
whatever order they are added in: both give the same clusters.

Source: Dong et al., "Efficient Joinable Table Discovery in Data Lakes" (ICDE 2021), partitioning by column
distribution. Two differences: the paper's text redraws the centres in every round, here only assignment and update
repeat; and the paper draws the first centres evenly, here they are drawn by k-means++.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partition.divergence import jensen_shannon, normalise, row_chunks, squared_euclidean, symmetric_kl
from pexeso.errors import InputError

SCALE = float(1 << 30)
"""Fixed-point unit of the sums: steps of 1e-9, and room for eight thousand million columns in 64 bits."""

SAME = 1e-12
"""Divergences up to this are rounding: the two are equal."""

CANDIDATES_PER_EMPTY_CLUSTER = 4
"""Farthest columns asked for to re-seed one empty cluster: several, because some may be copies of each other."""


@dataclass(frozen=True)
class Method:
    """One way to group columns.

    Attributes
    ----------
    name : str
    features : {"histogram", "mean", "none"}
        What a column is to this method: its distribution over the regions, the mean of its vectors, or nothing.
    between : callable or None
        ``(rows (n, F), centres (k, F)) -> (n, k)``; None where columns are not compared.
    """

    name: str
    features: str
    between: Callable[[np.ndarray, np.ndarray], np.ndarray] | None


METHODS = {
    method.name: method
    for method in (
        Method("jensen-shannon", "histogram", jensen_shannon),
        Method("symmetric-kl", "histogram", symmetric_kl),
        Method("mean-vector", "mean", squared_euclidean),
        Method("random", "none", None),
    )
}
"""Every method by its name; the first is the default."""


def method_named(name: str) -> Method:
    """Look up a method.

    Raises
    ------
    InputError
        If there is none of that name.

    Examples
    --------
    >>> method_named("mean-vector").features
    'mean'
    """
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}. Got {name!r}.")
    return METHODS[name]


@dataclass(eq=False)
class Partials:
    """What one pass over some columns leaves behind: sums by cluster, to be added up in any order.

    Attributes
    ----------
    sums : ndarray, shape (k, F), int64
        Sum of the features of the cluster's columns, in units of 1 / SCALE.
    counts : ndarray, shape (k,), int64
        Number of columns.
    costs : ndarray, shape (k,), int64
        Sum of the divergences between the columns and the centre, in units of 1 / SCALE.
    """

    sums: np.ndarray
    counts: np.ndarray
    costs: np.ndarray

    @classmethod
    def zeros(cls, n_clusters: int, n_features: int) -> Partials:
        """Return the sums of no column at all."""
        empty = np.zeros(n_clusters, dtype=np.int64)
        return cls(np.zeros((n_clusters, n_features), dtype=np.int64), empty, empty.copy())

    def add(self, other: Partials) -> None:
        """Add another part's sums to these."""
        self.sums += other.sums
        self.counts += other.counts
        self.costs += other.costs


def nearest(features: np.ndarray, centres: np.ndarray, method: Method) -> tuple[np.ndarray, np.ndarray]:
    """Nearest centre of every column, the lowest number where two are equally near.

    Parameters
    ----------
    features : ndarray, shape (n, F), float64
    centres : ndarray, shape (k, F), float64
    method : Method
        One that compares columns.

    Returns
    -------
    clusters : ndarray, shape (n,), int32
    divergences : ndarray, shape (n,), float64
        To the centre chosen.

    Examples
    --------
    >>> points = np.array([[0.0], [9.0]])
    >>> nearest(points, np.array([[1.0], [10.0]]), METHODS["mean-vector"])[0].tolist()
    [0, 1]
    """
    clusters = np.empty(len(features), dtype=np.int32)
    divergences = np.empty(len(features))
    for rows in row_chunks(len(features), max(centres.shape)):
        table = method.between(features[rows], centres)
        clusters[rows] = np.argmin(table, axis=1)
        divergences[rows] = table[np.arange(len(table)), clusters[rows]]
    return clusters, divergences


def partial_sums(features: np.ndarray, centres: np.ndarray, method: Method) -> Partials:
    """Assign columns to centres and add them up by cluster: one step of k-means over a part of the lake.

    Parameters
    ----------
    features : ndarray, shape (n, F), float64
    centres : ndarray, shape (k, F), float64
    method : Method

    Returns
    -------
    Partials
    """
    result = Partials.zeros(*centres.shape)
    for rows in row_chunks(len(features), features.shape[1]):
        clusters, divergences = nearest(features[rows], centres, method)
        order = np.argsort(clusters, kind="stable")
        present, starts = np.unique(clusters[order], return_index=True)
        fixed = np.rint(features[rows][order] * SCALE).astype(np.int64)
        costs = np.rint(divergences[order] * SCALE).astype(np.int64)
        result.sums[present] += np.add.reduceat(fixed, starts, axis=0)
        result.costs[present] += np.add.reduceat(costs, starts)
        result.counts += np.bincount(clusters, minlength=len(centres))
    return result


def seed_centres(features: np.ndarray, n_clusters: int, method: Method, *, seed: int) -> np.ndarray:
    """Draw first centres by greedy k-means++.

    Each next centre is drawn with a probability in proportion to its divergence from those drawn before; of a few such
    draws the one is kept that lowers the sum of divergences most (Arthur and Vassilvitskii 2007, the variant that
    scikit-learn uses too). A single draw often lands on a column of one or two values, which is far from everything and
    near to nothing. Jensen-Shannon divergence and the squared Euclidean distance are squares of metrics, as k-means++
    wants them.

    Parameters
    ----------
    features : ndarray, shape (n, F), float64
        A sample of the columns; at least one.
    n_clusters : int
        Number of centres wanted.
    method : Method
    seed : int

    Returns
    -------
    ndarray, shape (k, F), float64
        k is `n_clusters`, or the number of distinct rows where that is smaller.

    Examples
    --------
    >>> seed_centres(np.array([[1.0], [1.0], [5.0]]), 3, METHODS["mean-vector"], seed=0).shape
    (2, 1)
    """
    generator = np.random.default_rng(seed)
    n_draws = 2 + int(np.log(n_clusters))
    chosen = [int(generator.integers(len(features)))]
    divergences = _without_rounding(method.between(features, features[chosen])[:, 0])
    while len(chosen) < n_clusters:
        cumulative = np.cumsum(divergences)
        if cumulative[-1] <= 0:
            break
        # side="right" never lands on a row of divergence 0; a draw rounded up to the end takes the last other row.
        draws = np.searchsorted(cumulative, generator.random(n_draws) * cumulative[-1], side="right")
        draws = np.minimum(draws, np.flatnonzero(divergences)[-1])
        lowered = np.minimum(divergences[:, None], _without_rounding(method.between(features, features[draws])))
        best = int(np.argmin(lowered.sum(axis=0)))
        chosen.append(int(draws[best]))
        divergences = lowered[:, best]
    return features[chosen]


def _without_rounding(divergences: np.ndarray) -> np.ndarray:
    return np.where(divergences <= SAME, 0.0, divergences)


@dataclass(frozen=True, eq=False)
class Centres:
    """Where k-means ended.

    Attributes
    ----------
    centres : ndarray, shape (k, F), float64
    iterations : int
        Passes made.
    converged : bool
        True where the last pass changed nothing; False where `max_iterations` ended it.
    """

    centres: np.ndarray
    iterations: int
    converged: bool


def iterate(
    measure: Callable[[np.ndarray], Partials],
    farthest: Callable[[np.ndarray, int], np.ndarray],
    centres: np.ndarray,
    method: Method,
    *,
    max_iterations: int,
) -> Centres:
    """Repeat assignment and update until nothing changes.

    Parameters
    ----------
    measure : callable
        ``centres -> Partials`` over all columns.
    farthest : callable
        ``(centres, n) -> features (<= n, F)`` of the columns farthest from their nearest centre, farthest first. Asked
        only when a cluster is empty.
    centres : ndarray, shape (k, F), float64
        The first centres.
    method : Method
    max_iterations : int
        Most passes; at least 1.

    Returns
    -------
    Centres
    """
    for iteration in range(1, max_iterations + 1):
        partials = measure(centres)
        filled = partials.counts > 0
        updated = centres.copy()
        updated[filled] = _centre(partials.sums[filled], partials.counts[filled], method)
        if not filled.all():
            _reseed(updated, np.flatnonzero(~filled), centres, farthest, method)
        if np.array_equal(updated, centres):
            return Centres(centres, iteration, True)
        centres = updated
    return Centres(centres, max_iterations, False)


def iterate_in_memory(
    features: np.ndarray, ties: np.ndarray, centres: np.ndarray, method: Method, *, max_iterations: int
) -> Centres:
    """Run :func:`iterate` over columns that are held in memory.

    Parameters
    ----------
    features : ndarray, shape (n, F), float64
    ties : ndarray, shape (n,), int64
        Orders columns that are equally far from their centres.
    centres : ndarray, shape (k, F), float64
        The first centres.
    method : Method
    max_iterations : int

    Returns
    -------
    Centres
    """

    def measure(centres: np.ndarray) -> Partials:
        return partial_sums(features, centres, method)

    def farthest(centres: np.ndarray, n: int) -> np.ndarray:
        divergences = nearest(features, centres, method)[1]
        return features[np.lexsort((ties, -divergences))[:n]]

    return iterate(measure, farthest, centres, method, max_iterations=max_iterations)


def _centre(sums: np.ndarray, counts: np.ndarray, method: Method) -> np.ndarray:
    if method.features == "histogram":
        # The mean histogram; divided by its own mass, because fixed point may have left a row's sum a little off 1.
        return normalise(sums)
    return sums / (counts[:, None] * SCALE)


def _reseed(
    updated: np.ndarray,
    empty: np.ndarray,
    centres: np.ndarray,
    farthest: Callable[[np.ndarray, int], np.ndarray],
    method: Method,
) -> None:
    """Move empty clusters, in place, onto the columns farthest from all centres, each onto another content."""
    taken = centres
    candidates = farthest(centres, CANDIDATES_PER_EMPTY_CLUSTER * len(empty))
    free = list(empty)
    for candidate in candidates:
        if not free:
            return
        if method.between(candidate[None], taken).min() > SAME:
            updated[free.pop(0)] = candidate
            taken = np.vstack([taken, candidate])


@dataclass(frozen=True, eq=False)
class Clustering:
    """Columns with their clusters.

    Attributes
    ----------
    clusters : ndarray, shape (n,), int32
    divergences : ndarray, shape (n,), float64
        Between each column and its centre; 0 under "random".
    centres : ndarray, shape (k, F), float64
        k may be below the number asked for, where there are not so many distinct columns. Shape (0, 0) under "random".
    iterations : int
    converged : bool
    """

    clusters: np.ndarray
    divergences: np.ndarray
    centres: np.ndarray
    iterations: int
    converged: bool


def cluster_columns(
    column_ids: np.ndarray,
    features: np.ndarray | None,
    n_clusters: int,
    *,
    method: str = "jensen-shannon",
    seed: int = 0,
    max_iterations: int = 20,
    seeding_columns: int = 10_000,
) -> Clustering:
    """Group columns that are held in memory.

    Parameters
    ----------
    column_ids : ndarray, shape (n,), int64
        In rising order.
    features : ndarray, shape (n, F), float64, or None
        Distributions for the histogram methods, mean vectors for "mean-vector"; not looked at under "random".
    n_clusters : int
    method : str, default "jensen-shannon"
        A name in :data:`METHODS`.
    seed : int, default 0
    max_iterations : int, default 20
    seeding_columns : int, default 10,000
        The first centres are drawn from so many columns, chosen by a hash of their number.

    Returns
    -------
    Clustering

    Raises
    ------
    InputError
        If the method is unknown, a number is out of range, or there is no column.

    Examples
    --------
    >>> histograms = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> clusters = cluster_columns(np.arange(3), histograms, 2).clusters
    >>> bool(clusters[0] == clusters[1] != clusters[2])
    True
    """
    chosen = method_named(method)
    if n_clusters < 1 or max_iterations < 1 or not len(column_ids):
        raise InputError(
            "Clustering needs at least one column, one cluster and one iteration. "
            f"Got {len(column_ids)}, {n_clusters} and {max_iterations}."
        )
    if chosen.between is None:
        clusters = random_clusters(column_ids, n_clusters, seed)
        return Clustering(clusters, np.zeros(len(clusters)), np.empty((0, 0)), 0, True)
    if features is None or len(features) != len(column_ids):
        raise InputError(f"method {method!r} needs one row of features a column ({len(column_ids)}).")

    ties = hash64(column_ids, seed)
    sample = np.sort(np.argsort(ties, kind="stable")[:seeding_columns])
    first = seed_centres(features[sample], n_clusters, chosen, seed=seed)
    found = iterate_in_memory(features, ties, first, chosen, max_iterations=max_iterations)
    clusters, divergences = nearest(features, found.centres, chosen)
    return Clustering(clusters, divergences, found.centres, found.iterations, found.converged)


def random_clusters(column_ids: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Cluster of every column by a hash of its number: the baseline that looks at no data.

    Returns
    -------
    ndarray, shape (n,), int32
    """
    return ((hash64(column_ids, seed) >> 1) % n_clusters).astype(np.int32)


def hash64(column_ids: np.ndarray, seed: int) -> np.ndarray:
    """Hash column numbers: the order of columns that nothing else orders, the same on every machine.

    Parameters
    ----------
    column_ids : ndarray, shape (n,), integers
    seed : int

    Returns
    -------
    ndarray, shape (n,), int64
        Not negative. The finaliser of SplitMix64 (Steele, Lea, Flood 2014), top bit cleared.
    """
    offset = np.array([((seed + 1) * 0x9E3779B97F4A7C15) & (2**64 - 1)], dtype=np.uint64)
    state = np.asarray(column_ids, dtype=np.int64).astype(np.uint64) * np.uint64(0xD1342543DE82EF95) + offset
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)
