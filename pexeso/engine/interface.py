"""What a kernel is: the heavy steps of a search, for one device.

All kernels give the same answer to the last bit; they differ in what they need and how fast they
are:

- `compiled`: loops compiled for the processor (numba); the default on the CPU.
- `torch`: tensor operations, any device; the default on CUDA where Triton is absent, and what the
  others are held against.
- `triton`: CUDA kernels that skip, multiply, compare and compact in one launch.
- `faiss`: flat search by faiss over the blocks that survive, on the CPU or a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from pexeso.engine.arrays import expand_ranges, offsets_of
from pexeso.engine.lemmas import ALL_LEMMAS, Lemma
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import WORKING_BYTES

if TYPE_CHECKING:
    from pexeso.engine.layout.partition import Partition

_PAIRS_AT_ONCE = 1 << 18

_OFF = 1e15
"""Farther than anything, and finite when squared in float32."""


@dataclass(frozen=True)
class Query:
    """The distinct values of a query column in one partition's space.

    Attributes
    ----------
    vectors : float32 (n, d)
        Unit vectors, all different values.
    mapped : float32 (n, P)
    weights : int64 (n,)
        How often each value occurs in the column, at least 1.
    """

    vectors: torch.Tensor
    mapped: torch.Tensor
    weights: torch.Tensor
    total: int

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, members: torch.Tensor | slice) -> Query:
        """Keep some values; `total` stays."""
        return Query(self.vectors[members], self.mapped[members], self.weights[members], self.total)

    def real(self) -> Query:
        """Return the values that can match something: all of them."""
        return self


@dataclass(frozen=True)
class Threshold:
    """When a query value matches, and which filters are in use."""

    tau: float
    slack: float
    lemmas: frozenset[Lemma] = ALL_LEMMAS

    def reach(self, lemma: Lemma) -> float:
        """Return the distance beyond which a filter prunes; very large where it is switched off."""
        return self.tau + self.slack if lemma in self.lemmas else _OFF


@dataclass(frozen=True)
class Pairs:
    """Pairs of a query value and a stored value, by query value (CSR).

    Attributes
    ----------
    offsets : int64 (n + 1,)
    rows : int32 (p,)
        Stored rows; a pair that is known to match is given as the row's complement.
    """

    offsets: torch.Tensor
    rows: torch.Tensor

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sizes(self) -> torch.Tensor:
        """Pairs of each query value, int64 (n,)."""
        return self.offsets[1:] - self.offsets[:-1]


def pairs_by_query(queries: torch.Tensor, rows: torch.Tensor, n_queries: int) -> Pairs:
    """Convert pairs, int64 (p,) each, to CSR form by query value.

    The rows of each query value keep the order in which they come in.
    """
    order = torch.argsort(queries, stable=True)
    return Pairs(offsets_of(torch.bincount(queries, minlength=n_queries)), rows[order].int())


def merge_by_query(
    parts: list[tuple[torch.Tensor, torch.Tensor]], n_queries: int, device: torch.device
) -> Pairs:
    """Convert lists of pairs, int32 each, to CSR form as `pairs_by_query` does.

    A bounded number of pairs is handled at a time; `parts` may be emptied.

    Brought into order all at once, many would take four times the memory.
    """
    if sum(len(rows) for _, rows in parts) <= _PAIRS_AT_ONCE:
        nothing = torch.zeros(0, dtype=torch.int32, device=device)
        return pairs_by_query(
            *(torch.cat(part) for part in zip((nothing, nothing), *parts, strict=True)), n_queries
        )
    offsets = torch.zeros(n_queries + 1, dtype=torch.int64, device=device)
    for queries, _ in parts:
        offsets[1:] += torch.bincount(queries, minlength=n_queries)
    torch.cumsum(offsets, 0, out=offsets)
    merged = torch.empty(int(offsets[-1]), dtype=torch.int32, device=device)
    begin = offsets[:-1].clone()
    parts.reverse()
    while parts:
        some = [parts.pop()]
        while parts and sum(len(rows) for _, rows in some) + len(parts[-1][1]) <= _PAIRS_AT_ONCE:
            some.append(parts.pop())
        queries, rows = (torch.cat(part) for part in zip(*some, strict=True))
        pairs = pairs_by_query(queries, rows, n_queries)
        merged[expand_ranges(begin, pairs.sizes)[1]] = pairs.rows
        begin += pairs.sizes
    return Pairs(offsets, merged)


@dataclass
class Counts:
    """State of the counts of each column, in arrays over all columns.

    Only the entries of touched columns are ever examined.

    Attributes
    ----------
    possible : int64 (C,)
        Weight of the query values looked at so far that may still match: an upper bound that sinks
        to the exact count.
    matched : int64 (C,)
        Weight of the query values that are known to match.
    touched : int64 (t,)
        Columns with a candidate, each once.
    """

    possible: torch.Tensor
    matched: torch.Tensor
    touched: torch.Tensor


@dataclass(frozen=True)
class Limits:
    """What a column needs."""

    needed: int
    enough: int


class KernelChoice(ABC):
    """What gives the kernel for a search.

    Attributes
    ----------
    name : str
    working_bytes : int
        What a search takes of a device, or of the host's memory, besides the partition and the
        pairs.
    """

    name: str
    working_bytes: int = WORKING_BYTES

    @abstractmethod
    def for_work(self, n_pairs: int) -> Kernel:
        """Return the kernel for a search of that many (query value, stored value) pairs."""


class Kernel(KernelChoice):
    """The heavy steps of a search over one partition.

    Attributes
    ----------
    brings_threads : bool
        Whether the heavy steps run in threads of their own, so that what torch does between them
        needs none.
    max_queries : int or None
        Query values that are looked at together, where more gain nothing.
    """

    brings_threads: bool = False
    max_queries: int | None = None

    def for_work(self, n_pairs: int) -> Kernel:
        """Return this kernel, whatever the work."""
        return self

    def search(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        min_count: int,
        max_pairs: int,
        stats: SearchStats,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Do a whole search, where a kernel can do it better than step by step.

        Returns
        -------
        columns, counts : int64 (r,)
            All columns with `min_count` matching query values or more, in any order. Or None: the
            steps below are taken.
        """
        return None

    def search_all(
        self,
        searches: Sequence[tuple[Partition, Query, Threshold]],
        min_count: int,
        max_pairs: int,
        stats: SearchStats,
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Do the searches of several partitions, each as `search` does."""
        return [self.search(*parts, min_count, max_pairs, stats) for parts in searches]

    def blocks_reached(
        self, partition: Partition, query: Query, threshold: Threshold, stats: SearchStats
    ) -> torch.Tensor | None:
        """Estimate how many blocks each query value will probe, int64 (n,).

        The numbers need only grow with the blocks. None is returned where the estimate costs more
        than it helps.

        Where it is given it counts the boxes of the summary (`pexeso.engine.search.summary`) that
        each query value is near to.
        """
        return None

    def boxes_marked(
        self, partition: Partition, query: Query, threshold: Threshold, level: int
    ) -> torch.Tensor | None:
        """Return the boxes of a level that any query value will walk below, int64, ascending.

        None is returned where a kernel cannot determine them.
        """
        return None

    @abstractmethod
    def candidates(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        max_pairs: int,
        stats: SearchStats,
    ) -> Pairs | None:
        """Find the pairs that boxes and mapped coordinates do not rule out (Lemmas 1 to 6).

        None is returned when there are too many.
        """

    @abstractmethod
    def count(
        self,
        partition: Partition,
        pairs: Pairs,
        members: torch.Tensor,
        weights: torch.Tensor,
        counts: Counts | None,
    ) -> Counts:
        """Add to each column's possible count the weight of the members with a pair in it."""

    def release(self, counts: Counts) -> None:
        """Take back counts that are not needed any more, to be used again."""

    def forget(self) -> None:
        """Let go of memory that is kept for later searches: the device has run out of it."""

    @abstractmethod
    def verify(
        self,
        partition: Partition,
        query: Query,
        pairs: Pairs,
        members: torch.Tensor,
        threshold: Threshold,
        counts: Counts,
        limits: Limits,
        stats: SearchStats,
    ) -> None:
        """Decide the members' pairs in columns that still matter, and update the counts.

        Matched counts rise, and possible counts sink.
        """

    @abstractmethod
    def matches(
        self,
        partition: Partition,
        query: Query,
        pairs: Pairs,
        threshold: Threshold,
        stats: SearchStats,
    ) -> Pairs:
        """Keep the pairs that match."""

    @abstractmethod
    def count_batch(
        self, partition: Partition, matches: Pairs, groups: Groups
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Count matches for many query columns.

        The result is query column, column and count of those with as many as needed, int64 each.
        """


@dataclass(frozen=True)
class Groups:
    """Query columns over shared distinct values.

    Attributes
    ----------
    offsets : int64 (Q + 1,)
    members : int64 (offsets[-1],)
        The values of each query column.
    weights : int64 (offsets[-1],)
        At least 1.
    needed : int64 (Q,)
        Matching rows that a column needs, at least 1.
    """

    offsets: torch.Tensor
    members: torch.Tensor
    weights: torch.Tensor
    needed: torch.Tensor
