"""The space of an index: what its vectors are, and how partitions of them are searched.

There are two. In a dense space a value is a row of numbers, as a trained model gives it; in a
sparse one it is a bag of words, and a word a bag of n-grams. Whatever asks an index goes through
this interface, and need not know which it is. Nothing here loads torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from pexeso.engine.lists import ranges
from pexeso.engine.stats import SearchStats
from pexeso.runtime.threads import FEW_PAIRS, require_memory_for_pairs

if TYPE_CHECKING:
    import torch

    from pexeso.engine.kernel import Kernel
    from pexeso.engine.lists import Lists
    from pexeso.engine.partition import Pages


class Lemma(StrEnum):
    """One filter of the paper (section 3)."""

    PIVOT_FILTERING = "L1"
    PIVOT_MATCHING = "L2"
    VECTOR_CELL_FILTERING = "L3"
    CELL_CELL_FILTERING = "L4"
    VECTOR_CELL_MATCHING = "L5"
    CELL_CELL_MATCHING = "L6"
    COLUMN_PRUNING = "L7"
    QUICK_BROWSING = "QB"


ALL_LEMMAS = frozenset(Lemma)
MATCHING_LEMMAS = {Lemma.PIVOT_MATCHING, Lemma.VECTOR_CELL_MATCHING, Lemma.CELL_CELL_MATCHING}


# Matching pairs that are sorted together, which takes a fraction of a second.
PAIRS_A_SORT = 1 << 20

# Most pairs of a query value and a stored value that a search holds at a time: 768 MiB.
MAX_PAIRS = 1 << 24

# What a search takes for each pair that it may hold, at most: 24 while pairs are gathered, and 8
# for each of three matches of a batch.
BYTES_A_PAIR = 48

# What a search takes whatever it holds, at most: pieces of boxes, codes and vectors.
WORKING_BYTES = 128 << 20

# Of the arrays of a partition: changes when an older version could not search them.
LAYOUT_VERSION = 3

_DECIMALS = 10**9

ColumnCounts = tuple[np.ndarray, np.ndarray]  # columns and their counts, int64 (r,) each


@dataclass(frozen=True)
class Goal:
    """What is searched for.

    min_count: int, matches a column needs, at least 1.
    """

    max_distance: float
    min_count: int = 1
    k: int | None = None
    decide: bool = False
    lemmas: frozenset[Lemma] = ALL_LEMMAS


@dataclass(frozen=True)
class BatchColumn:
    """One query column of a batch.

    members: int64 (m,), its distinct values, rows of the batch's vectors; weights: int64 (m,), how
    often each occurs; min_count: int, matches a column needs, at least 1.
    """

    members: np.ndarray
    weights: np.ndarray
    min_count: int


def best_columns(
    columns: np.ndarray, counts: np.ndarray, goal: Goal, left_out: np.ndarray | None
) -> ColumnCounts:
    """Keep the best columns, those that tie with the last of them too, sorted by column."""
    if left_out is not None:
        mask = ~left_out[columns]
        columns, counts = columns[mask], counts[mask]
    if goal.k is not None and len(counts) > goal.k:
        mask = counts >= np.partition(counts, -goal.k)[-goal.k]
        columns, counts = columns[mask], counts[mask]
    order = np.argsort(columns)
    return columns[order], counts[order]


Total = TypeVar("Total", int, np.ndarray)


def known_vectors(vectors: Vectors) -> np.ndarray:
    """Return which values the model knows anything about, bool (n,)."""
    known = getattr(vectors, "is_known", None)
    return (vectors != 0).any(1).numpy() if known is None else known


def count_needed(min_joinability: float, total: Total) -> Total:
    """Compute the smallest count c >= 1 with c / total >= min_joinability, of one or many totals.

    The result is free of floating-point surprises.

    Thresholds are taken to nine decimals: ``c * 10**9 >= round(T * 10**9) * |Q|``.

    Examples
    --------
    >>> count_needed(0.6, 10)
    6
    >>> count_needed(0.5, np.array([1, 5])).tolist()
    [1, 3]
    """
    scaled = round(min_joinability * _DECIMALS) * total
    needed = -(-scaled // _DECIMALS)
    return np.maximum(needed, 1) if isinstance(needed, np.ndarray) else max(1, needed)


class Vectors(Protocol):
    """The vectors of n values: a float32 tensor (n, d), or sparse vectors."""

    def __len__(self) -> int:
        """Return n."""

    def __getitem__(self, rows: Any) -> Vectors:
        """Return some of them: by positions, by flags, or a slice."""


class SpacePartition(Protocol):
    """A partition of an index in memory.

    column_lists: Lists, the values of each column, rows of the partition.
    """

    n_values: int
    n_columns: int
    column_lists: Lists
    pages: Pages | None
    device: torch.device


class Probe(Protocol):
    """What can be said of a query column and a partition before it is searched.

    max_count: int, rows of the query column that can match something in the partition, at most;
    n_near: int, a number that grows with what there is near its values.
    """

    max_count: int
    n_near: int

    def reaching(self, n: int) -> np.ndarray:
        """Return which of the `n` values that were given may match something, bool (n,)."""


# Query values whose pairs a `finder` of a dense space holds together.
VALUES_A_RUN = 64

Pairs = tuple[np.ndarray, ...]  # query values, positions, distances
Finder = Callable[["Vectors", float], Iterator[Pairs]]


class VectorSpace(ABC):
    """What vectors are and how they are searched.

    Numbers go in and come out as arrays on the CPU: ``weights`` int64 (n,) are the rows of each
    query value, ``left_out`` bool (C,) the columns that must not be found. Distances are fractions
    of the largest one.
    """

    has_kernels: bool
    """Whether searches run on devices, by kernels that a user can choose; else on the CPU alone."""
    holds_pairs: bool
    """Whether `nearest_in_columns` holds all pairs of its columns at once."""

    @abstractmethod
    def concatenate(self, parts: Sequence[Vectors]) -> Vectors:
        """Return the vectors of several sets one after the other, or of none an empty set."""

    def comparable(self, vectors: Vectors) -> Vectors:
        """Return vectors in the form in which `distances` takes them without further work."""
        return vectors

    @abstractmethod
    def distances(self, left: Vectors, right: Vectors) -> np.ndarray:
        """Return all distances of two sets, float32 (n, m), the same bits on every machine."""

    @abstractmethod
    def pair_distances(self, left: Vectors, right: Vectors) -> np.ndarray:
        """Return the distance of each vector to that of the same row, float64 (n,)."""

    @abstractmethod
    def stored(self, partition: SpacePartition, rows: np.ndarray) -> Vectors:
        """Return the vectors of stored rows, on the CPU."""

    @abstractmethod
    def open(
        self,
        arrays: Mapping[str, np.ndarray],
        device: torch.device | str = "cpu",
        pages: Pages | None = None,
    ) -> SpacePartition:
        """View the arrays of a partition, or copy them to a device."""

    @abstractmethod
    def require_plausible(self, partition: SpacePartition, where: str, *, rows: bool) -> None:
        """Refuse a partition that was changed, by what every search reads or by rows.

        where: str, the partition, for the message; rows: bool, look at some rows; else at what is
        read before any row.
        """

    @abstractmethod
    def probe(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        kernel: Kernel,
        stats: SearchStats,
    ) -> Probe:
        """Look at what a partition on the CPU tells of the values of a query column."""

    @abstractmethod
    def prefetch(
        self, partition: SpacePartition, probe: Probe, goal: Goal, kernel: Kernel,
        stats: SearchStats,
    ) -> None:  # fmt: skip
        """Ask for the parts of a partition that a search will read, where pages are missing."""

    @abstractmethod
    def search(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        stats: SearchStats,
        left_out: np.ndarray | None = None,
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
        probe: Probe | None = None,
    ) -> ColumnCounts:
        """Find the joinable columns; see `pexeso.engine.dense.search.search_partition`."""

    def search_all(
        self,
        partitions: Sequence[SpacePartition],
        vectors: Vectors,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        stats: SearchStats,
        left_out: Sequence[np.ndarray | None],
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        """Do as `search` for several partitions, which a device may search together.

        With `goal.k` each answer has the columns that tie with its own k-th.
        """
        return [
            self.search(
                partition, vectors, weights, total, goal, stats, flags,
                kernel=kernel, max_pairs=max_pairs,
            )
            for partition, flags in zip(partitions, left_out, strict=True)
        ]  # fmt: skip

    @abstractmethod
    def search_batch(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        queries: Sequence[BatchColumn],
        goal: Goal,
        stats: SearchStats,
        *,
        kernel: Kernel | None = None,
        max_pairs: int,
    ) -> list[ColumnCounts]:
        """Do as `search` for many query columns in one pass."""

    @abstractmethod
    def search_exhaustively(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        weights: np.ndarray,
        goal: Goal,
        stats: SearchStats,
        left_out: np.ndarray | None = None,
    ) -> ColumnCounts:
        """Do as `search` by brute force: the oracle."""

    @abstractmethod
    def pairs_within(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        rows: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the matching pairs of query values and some stored rows by brute force.

        Returns query, position: int64 (p,), position in `rows`, which are int64, ascending. Ordered
        by query value, then position; distance: float64 (p,).
        """

    def finder(self, partition: SpacePartition, rows: np.ndarray) -> Finder:
        """Return what does as `pairs_within` for the same stored rows, some query values at a time.

        It is for many calls of few query values, and may take memory for that.
        """

        def find(vectors: Vectors, max_distance: float) -> Iterator[Pairs]:
            for begin in range(0, len(vectors), VALUES_A_RUN):
                some = vectors[begin : begin + VALUES_A_RUN]
                query, *others = self.pairs_within(
                    partition, some, rows, max_distance, SearchStats()
                )
                yield query + begin, *others

        return find

    def column_pairs(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        columns: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Find all matching value pairs of some columns, by brute force over their values.

        Parameters
        ----------
        columns : numpy.ndarray, int64 (r,)
            Column numbers in the partition.

        Returns
        -------
        column : numpy.ndarray, int64 (p,)
            Position in `columns`.
        query : numpy.ndarray, int64 (p,)
            Row of `vectors`.
        posting : numpy.ndarray, int64 (p,)
            Position in ``partition.column_lists.members``: the value as it stands in that column.
        distance : numpy.ndarray, float64 (p,)
            As a fraction of the largest distance.
        cost : numpy.ndarray, float64 (p,)
            What a pair is worse than others; see `costs`. Ordered by column, query, cost, posting.
        """
        pairs = self._pairs_in(partition, vectors, columns, max_distance, stats)
        column, query, posting, distance, cost = pairs
        if len(query) > FEW_PAIRS:
            require_memory_for_pairs(len(query), max_distance)
        # The pairs come by query value. They are sorted some at a time, so that a sort of millions
        # can be stopped.
        cuts = np.unique(np.searchsorted(query, query[PAIRS_A_SORT::PAIRS_A_SORT]))
        order = np.concatenate(
            [
                some[np.lexsort((posting[some], cost[some], query[some], column[some]))]
                for some in np.split(np.arange(len(query)), cuts)
            ]
        )
        if len(columns) > 1:
            order = order[np.argsort(column[order], kind="stable")]
        return column[order], query[order], posting[order], distance[order], cost[order]

    def costs(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        query: np.ndarray,
        rows: np.ndarray,
        distances: np.ndarray,
    ) -> np.ndarray:
        """Return what pairs of vectors and stored rows are ranked by, float64 (p,)."""
        return distances

    def nearest_in_columns(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        columns: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> np.ndarray:
        """Return the distance of each vector to the nearest value of each column.

        Returns numpy.ndarray, float64 (r, n): `max_distance` where no value is nearer.
        """
        column, query, _, distance, _ = self._pairs_in(
            partition, vectors, columns, max_distance, stats
        )
        nearest = np.full((len(columns), len(vectors)), max_distance)
        np.minimum.at(nearest, (column, query), distance)
        return nearest

    def _pairs_in(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        columns: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Do as `column_pairs`, by query value alone."""
        lists = partition.column_lists
        owner, posting = lists.of(columns)
        rows, position = np.unique(lists.members[posting], return_inverse=True)
        query, value, distance = self.pairs_within(
            partition, vectors, rows.astype(np.int64), max_distance, stats
        )
        # Each found (query, value) pair belongs to every chosen column that holds the value.
        by_value = np.argsort(position, kind="stable")
        sizes = np.bincount(position, minlength=len(rows))
        starts = np.cumsum(sizes) - sizes
        pair = np.repeat(np.arange(len(value)), sizes[value])
        which = by_value[ranges(starts[value], sizes[value])]
        cost = self.costs(partition, vectors, query, rows[value], distance)
        return owner[which], query[pair], posting[which], distance[pair], cost[pair]

    @abstractmethod
    def nearest(
        self, partition: SpacePartition, vectors: Vectors, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest of some stored rows to each vector, whatever tells them apart.

        Returns position: int64 (n,), in `rows`, the first of several that are equally near; there
        is at least one; distance: float64 (n,).
        """
