"""Partitions from clusters: cut clusters into pieces and place them under a size limit.

Clusters of a real lake are as uneven as the lake. Every cluster is cut, from its centre outwards,
into small pieces; every piece first goes to its own cluster's partition as long as that has room.
What is left over goes to further partitions of the same cluster (where one is empty; or where their
number is free and the rest fills half of one), else to the partition of the nearest centre with
room. A column is never cut. What is placed is a list of pieces, a few for each partition, so that
this step costs the same for a thousand columns and for a thousand million.

What is promised, with ``limit`` as in :class:`Limits`:

- no partition is larger than the limit, unless one column alone is (it then has a partition of its
  own);
- every partition holds a column;
- exactly the number of partitions asked for, where a number is asked for and there are so many
  columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Bytes of a distinct value beside its vector. These are its text, mapped coordinates, cell code and
# offsets, rounded up.
VALUE_OVERHEAD_BYTES = 128

POSTING_BYTES = 8  # bytes of one (value, column) pair

# Most clusters looked for: k-means holds a centre of each on the driver. More partitions than that
# share centres.
MAX_CLUSTERS = 1024


def partition_bytes(
    n_values: int | np.ndarray,
    n_postings: int | np.ndarray,
    dimensions: int,
    entry_bytes: int = 4,
) -> int | np.ndarray:
    """Bytes that values and postings take in a partition: int or ndarray of int.

    For a whole partition, the sum over its columns is an upper bound: a value that several of its
    columns hold is stored once. `entry_bytes` is the size of each entry of a vector as stored.
    """
    return n_values * (entry_bytes * dimensions + VALUE_OVERHEAD_BYTES) + n_postings * POSTING_BYTES


@dataclass(frozen=True)
class Limits:
    """How many partitions, and how large."""

    n_bins: int  # Partitions to begin with
    fixed: bool  # False where more are opened as needed, and empty ones are dropped
    limit_bytes: int  # Most of a partition
    large_bytes: int
    piece_bytes: int
    piece_columns: int  # Most of a piece: so few that there are at least `n_bins` pieces

    @property
    def n_clusters(self) -> int:
        """Number of clusters to look for."""
        return min(self.n_bins, MAX_CLUSTERS)


def fixed_limits(n_partitions: int, n_columns: int, total_bytes: int) -> Limits:
    """Return the limits for a given number of partitions, of at most twice the mean size.

    There are `n_columns` where that is less: no partition is empty.
    """
    n_bins = min(n_partitions, n_columns)
    mean = total_bytes / n_bins
    # The emptiest partition is never above the mean. What is smaller than that therefore always
    # finds room.
    large = math.floor(mean)
    return Limits(n_bins, True, math.floor(2 * mean), large, large // 2, n_columns // n_bins)


def size_limits(
    limit_bytes: int, n_columns: int, total_bytes: int, *, min_partitions: int = 1
) -> Limits:
    """Return the limits for a given size of a partition.

    The number of partitions starts with as few as could hold the lake, or with `min_partitions`
    where that is more. More are opened where needed.
    """
    n_bins = min(max(min_partitions, -(-total_bytes // limit_bytes)), n_columns, MAX_CLUSTERS)
    return Limits(
        n_bins, False, limit_bytes, limit_bytes // 4, limit_bytes // 8, max(1, n_columns // n_bins)
    )


@dataclass(frozen=True, eq=False)
class Pieces:
    """Runs of columns of one cluster that stay together.

    They are sorted by cluster and, within it, from the centre outwards. All arrays are int64 (p,).
    """

    cluster: np.ndarray
    column: np.ndarray  # Where it is a piece of its own, else -1
    # Which run of the cluster it is: multiples of `piece_bytes` and `piece_columns` before it
    size_step: np.ndarray
    column_step: np.ndarray
    n_bytes: np.ndarray
    n_columns: np.ndarray


def cut(
    column_ids: np.ndarray,
    clusters: np.ndarray,
    divergences: np.ndarray,
    ties: np.ndarray,
    n_bytes: np.ndarray,
    limits: Limits,
) -> tuple[Pieces, np.ndarray]:
    """Cut clusters that are held in memory into pieces, and return each column's piece too.

    Arrays have an entry for each column; `ties` orders those of equal divergence.
    """
    is_large = n_bytes > limits.piece_bytes
    order = np.lexsort((column_ids, ties, divergences, is_large, clusters))
    group = np.unique(
        np.column_stack([clusters[order], is_large[order]]), axis=0, return_inverse=True
    )[1].reshape(-1)
    first = np.searchsorted(group, group)
    cumulative = np.concatenate([[0], np.cumsum(n_bytes[order], dtype=np.int64)])
    bytes_before = cumulative[:-1] - cumulative[first]
    columns_before = np.arange(len(order)) - first
    keys = np.empty((len(order), 4), dtype=np.int64)
    keys[:, 0] = clusters[order]
    keys[:, 1] = np.where(is_large[order], column_ids[order], -1)
    keys[:, 2] = np.where(is_large[order], 0, bytes_before // max(1, limits.piece_bytes))
    keys[:, 3] = np.where(is_large[order], 0, columns_before // limits.piece_columns)
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    sizes = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sizes, inverse, n_bytes[order])
    piece_of = np.empty(len(order), dtype=np.int64)
    piece_of[order] = inverse
    return Pieces(*distinct.T, sizes, np.bincount(inverse, minlength=len(distinct))), piece_of


def place(
    pieces: Pieces, limits: Limits, divergence_from: Callable[[int], np.ndarray]
) -> np.ndarray:
    """Choose a partition for every piece; they are numbered from 0 without gaps.

    `divergence_from` a cluster is that between its centre and all k centres. Partitions beyond k
    have no centre; they count as infinitely far and are used when nothing nearer has room.
    """
    bins = _Bins(limits, divergence_from)
    partition = np.full(len(pieces.cluster), -1, dtype=np.int64)
    large = np.flatnonzero(pieces.n_bytes > limits.large_bytes)
    for piece in large[np.argsort(-pieces.n_bytes[large], kind="stable")]:
        partition[piece] = bins.put(int(pieces.cluster[piece]), int(pieces.n_bytes[piece]))
    for piece in np.flatnonzero(partition < 0):
        partition[piece] = bins.put_at_home(int(pieces.cluster[piece]), int(pieces.n_bytes[piece]))
    left_over = np.flatnonzero(partition < 0)
    bins.make_room(np.bincount(pieces.cluster[left_over], weights=pieces.n_bytes[left_over]))
    for piece in left_over:
        partition[piece] = bins.put(int(pieces.cluster[piece]), int(pieces.n_bytes[piece]))
    if limits.fixed:
        _fill_empty(partition, pieces.n_bytes, limits.n_bins)
    return np.unique(partition, return_inverse=True)[1].reshape(-1)


class _Bins:
    """Partitions being filled: bytes in each, and the cluster that each one is the home of."""

    def __init__(self, limits: Limits, divergence_from: Callable[[int], np.ndarray]) -> None:
        self._limits = limits
        self._divergence_from = divergence_from
        self._loads = np.zeros(limits.n_bins, dtype=np.int64)
        self._homes = np.arange(limits.n_bins)
        self._row_of: tuple[int, np.ndarray] | None = None

    def put_at_home(self, cluster: int, n_bytes: int) -> int:
        """Put a piece into its own cluster's partition; -1 where that has no room."""
        if self._loads[cluster] + n_bytes > self._limits.limit_bytes:
            return -1
        self._loads[cluster] += n_bytes
        return cluster

    def make_room(self, overflow: np.ndarray) -> None:
        """Assign more partitions to clusters with a large overflow (bytes, by cluster).

        They are empty partitions, or new ones if allowed.
        """
        limit = self._limits.limit_bytes
        if self._limits.fixed:
            for empty in np.flatnonzero(self._loads == 0):
                if not overflow.any():
                    return
                cluster = int(np.argmax(overflow))
                self._homes[empty] = cluster
                overflow[cluster] = max(0.0, overflow[cluster] - limit)
            return
        for cluster in np.flatnonzero(overflow >= limit / 2):
            self._open(int(cluster), int(overflow[cluster] / limit + 0.5))

    def _open(self, cluster: int, n_bins: int) -> None:
        self._loads = np.append(self._loads, np.zeros(n_bins, dtype=np.int64))
        self._homes = np.append(self._homes, np.full(n_bins, cluster))

    def put(self, cluster: int, n_bytes: int) -> int:
        """Put a piece into the partition of the nearest centre with room.

        Where none has room, a partition is opened or overfilled.
        """
        open_bins = np.flatnonzero(self._loads + n_bytes <= self._limits.limit_bytes)
        if len(open_bins):
            order = np.lexsort((self._loads[open_bins], self._distances(cluster)[open_bins]))
            chosen = int(open_bins[order[0]])
        elif self._limits.fixed:
            chosen = int(np.argmin(self._loads))
        elif not self._loads[cluster]:
            chosen = cluster
        else:
            chosen = len(self._loads)
            self._open(cluster, 1)
        self._loads[chosen] += n_bytes
        return chosen

    def _distances(self, cluster: int) -> np.ndarray:
        if self._row_of is None or self._row_of[0] != cluster:
            self._row_of = (cluster, self._divergence_from(cluster))
        row = self._row_of[1]
        known = self._homes < len(row)
        distances = np.full(len(self._homes), np.inf)
        distances[known] = row[self._homes[known]]
        # The home itself before any other partition that is equally near, such as one opened for
        # the same cluster.
        distances[cluster] = -1.0
        return distances


def _fill_empty(partition: np.ndarray, n_bytes: np.ndarray, n_bins: int) -> None:
    """Move one piece into each empty partition, in place.

    It is the outermost piece of the fullest partition that can spare one.
    """
    loads = np.bincount(partition, weights=n_bytes, minlength=n_bins)
    pieces_in = np.bincount(partition, minlength=n_bins)
    for empty in np.flatnonzero(pieces_in == 0):
        source = int(np.argmax(np.where(pieces_in > 1, loads, -1.0)))
        moved = np.flatnonzero(partition == source)[-1]
        partition[moved] = empty
        for index, sign in ((source, -1), (empty, 1)):
            loads[index] += sign * n_bytes[moved]
            pieces_in[index] += sign
