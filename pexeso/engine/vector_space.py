"""The space of an index: what its vectors are, and how partitions of them are searched.

There are two. In a dense space a value is a row of numbers, as a trained model gives it; in a
sparse one it is a bag of words, and a word a bag of n-grams. Whatever asks an index goes through
this interface, and need not know which it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import torch

    from pexeso.engine.fetching import Pages
    from pexeso.engine.goal import BatchColumn, Found, Goal
    from pexeso.engine.interface import KernelChoice
    from pexeso.engine.lists import Lists
    from pexeso.engine.stats import SearchStats


class Vectors(Protocol):
    """The vectors of n values: a float32 tensor (n, d), or sparse vectors."""

    def __len__(self) -> int:
        """Return n."""

    def __getitem__(self, rows: Any) -> Vectors:
        """Return some of them: by positions, by flags, or a slice."""


class SpacePartition(Protocol):
    """A partition of an index in memory.

    Attributes
    ----------
    column_lists : Lists
        The values of each column, rows of the partition.
    """

    n_values: int
    n_columns: int
    column_lists: Lists
    pages: Pages | None
    device: torch.device


class Probe(Protocol):
    """What can be said of a query column and a partition before it is searched.

    Attributes
    ----------
    most : int
        Rows of the query column that can match something in the partition, at most.
    n_near : int
        A number that grows with what there is near its values.
    """

    most: int
    n_near: int

    def reaching(self, n: int) -> np.ndarray:
        """Return which of the `n` values that were given may match something, bool (n,)."""


class VectorSpace(ABC):
    """What vectors are and how they are searched.

    Numbers go in and come out as arrays on the CPU: ``weights`` int64 (n,) are the rows of each
    query value, ``left_out`` bool (C,) the columns that must not be found. Distances are fractions
    of the largest one.
    """

    has_kernels: bool
    """Whether searches run on devices, by kernels that a user can choose; else on the CPU alone."""

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
        """Refuse a partition that was changed, by a glance at what every search reads or at rows.

        Parameters
        ----------
        where : str
            The partition, for the message.
        rows : bool
            Look at some rows; else at what is read before any row.
        """

    @abstractmethod
    def probe(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        weights: np.ndarray,
        total: int,
        goal: Goal,
        kernel: KernelChoice,
        stats: SearchStats,
    ) -> Probe:
        """Look at what a partition on the CPU tells of the values of a query column."""

    @abstractmethod
    def prefetch(
        self, partition: SpacePartition, probe: Probe, goal: Goal, kernel: KernelChoice,
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
        kernel: KernelChoice | None = None,
        max_pairs: int,
        probe: Probe | None = None,
    ) -> Found:
        """Find the joinable columns; see `pexeso.engine.search.search.search_partition`."""

    @abstractmethod
    def search_batch(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        queries: Sequence[BatchColumn],
        goal: Goal,
        stats: SearchStats,
        *,
        kernel: KernelChoice | None = None,
        max_pairs: int,
    ) -> list[Found]:
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
    ) -> Found:
        """Do as `search` by brute force: the oracle."""

    @abstractmethod
    def column_pairs(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        columns: np.ndarray,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Find the matching value pairs of columns; see `pexeso.engine.search.pairs`."""

    @abstractmethod
    def nearest(
        self, partition: SpacePartition, vectors: Vectors, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest of some stored rows to each vector.

        Returns
        -------
        position : numpy.ndarray, int64 (n,)
            In `rows`, the first of several that are equally near; there is at least one.
        distance : numpy.ndarray, float64 (n,)
        """
