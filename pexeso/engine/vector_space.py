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
    from pexeso.engine.interface import KernelChoice
    from pexeso.engine.postings import Csr
    from pexeso.engine.search.batch import BatchQuery
    from pexeso.engine.search.search import Found, Goal
    from pexeso.engine.stats import SearchStats


class Vectors(Protocol):
    """The vectors of n values: a float32 tensor (n, d), or sparse vectors."""

    def __len__(self) -> int:
        """Return n."""

    def __getitem__(self, rows: Any) -> Vectors:
        """Return some of them: by positions, by flags, or a slice."""


class SpacePartition(Protocol):
    """A partition of an index in memory."""

    n_values: int
    n_columns: int
    value_columns: Csr
    column_values: Csr
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

    def reaching(self, n: int) -> torch.Tensor:
        """Return which of the `n` values that were given may match something, bool (n,)."""


class VectorSpace(ABC):
    """What vectors are and how they are searched.

    Distances are fractions of the largest one.
    """

    @abstractmethod
    def concatenate(self, parts: Sequence[Vectors]) -> Vectors:
        """Return the vectors of several sets one after the other; there is at least one."""

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
        weights: torch.Tensor,
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
        weights: torch.Tensor,
        total: int,
        goal: Goal,
        stats: SearchStats,
        left_out: torch.Tensor | None = None,
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
        queries: Sequence[BatchQuery],
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
        weights: torch.Tensor,
        goal: Goal,
        stats: SearchStats,
        left_out: torch.Tensor | None = None,
    ) -> Found:
        """Do as `search` by brute force: the oracle."""

    @abstractmethod
    def column_pairs(
        self,
        partition: SpacePartition,
        vectors: Vectors,
        columns: torch.Tensor,
        max_distance: float,
        stats: SearchStats,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
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
