"""What a kernel is: the heavy steps of a search, for one device.

All kernels give the same answer to the last bit; they differ in what they need and how fast they
are:

- `compiled`: loops compiled for the processor; the default on the CPU.
- `torch`: tensor operations, any device; the default on CUDA where Triton is absent, and the
  reference for the others.
- `triton`: CUDA kernels that skip, multiply, compare and compact in one launch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch

from pexeso.engine.arrays import expand_ranges, offsets_of
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, WORKING_BYTES, Lemma

if TYPE_CHECKING:
    from pexeso.engine.partition import Partition


_CHUNK_SIZE = 1 << 18  # pairs
_OFF = 1e15  # farther than anything, and finite when squared in float32


@dataclass(frozen=True)
class Query:
    """The distinct values of a query column in one partition's space, and what is near to them.

    Attributes
    ----------
    vectors : float32 (n, d)
        Unit vectors, all different values.
    mapped : float32 (n, P)
    weights : int64 (n,)
        How often each value occurs in the column, at least 1.
    """

    partition: Partition
    threshold: Threshold
    vectors: torch.Tensor
    mapped: torch.Tensor
    weights: torch.Tensor
    total: int
    # Vectors and weights, where they have not gone to the device yet.
    on_host: ClassVar[tuple[np.ndarray, np.ndarray] | None] = None

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, members: torch.Tensor | slice) -> Query:
        return Query(
            self.partition, self.threshold, self.vectors[members], self.mapped[members],
            self.weights[members], self.total,
        )  # fmt: skip

    def real(self) -> Query:
        """Return the values that can match something: all of them."""
        return self


@dataclass(frozen=True)
class Threshold:
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
    """Convert lists of pairs, int32 each, to CSR form as `pairs_by_query` does; empties `parts`.

    Brought into order all at once, many would take four times the memory.
    """
    if sum(len(rows) for _, rows in parts) <= _CHUNK_SIZE:
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
        while parts and sum(len(rows) for _, rows in some) + len(parts[-1][1]) <= _CHUNK_SIZE:
            some.append(parts.pop())
        queries, rows = (torch.cat(part) for part in zip(*some, strict=True))
        pairs = pairs_by_query(queries, rows, n_queries)
        merged[expand_ranges(begin, pairs.sizes)[1]] = pairs.rows
        begin += pairs.sizes
    return Pairs(offsets, merged)


@dataclass
class Counts:
    """State of the counts of each column, of which only touched ones are ever examined.

    Attributes
    ----------
    possible : int64 (C,)
        Weight of the query values so far that may still match: an upper bound that sinks to the
        exact count.
    matched : int64 (C,)
        Weight of the query values that are known to match.
    touched : int64 (t,)
        Columns with a candidate, each once.
    """

    possible: torch.Tensor
    matched: torch.Tensor
    touched: torch.Tensor


class Limits(NamedTuple):
    needed: int
    enough: int


class Kernel(ABC):
    """The heavy steps of a search over one partition.

    Attributes
    ----------
    name : str
    working_bytes : int
        What a search takes of a device, or of the host's memory, besides the partition and the
        pairs.
    brings_threads : bool
        Whether the heavy steps run in threads of their own, so that what torch does between them
        needs none.
    max_queries : int or None
        Query values that are walked together, where more gain nothing.
    """

    name: str
    working_bytes: int = WORKING_BYTES
    brings_threads: bool = False
    max_queries: int | None = None

    def search_all(
        self,
        queries: Sequence[Query],
        min_count: int,
        max_pairs: int,
        stats: SearchStats,
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Do whole searches of several partitions, where a kernel does it better than step by step.

        Of each all columns with `min_count` matching query values or more are returned with their
        counts, int64 (r,) each, in any order. Or None: the steps below are taken.
        """
        return [None] * len(queries)

    def blocks_reached(self, query: Query, stats: SearchStats) -> torch.Tensor | None:
        """Count the summary's boxes near each query value, int64 (n,).

        None is returned where that costs more than it helps.
        """
        return None

    def boxes_marked(self, query: Query, level: int) -> torch.Tensor | None:
        """Return the boxes of a level that any query value will walk below, int64, ascending.

        None is returned where a kernel cannot determine them.
        """
        return None

    @abstractmethod
    def candidates(self, query: Query, max_pairs: int, stats: SearchStats) -> Pairs | None:
        """Find the pairs that boxes and mapped coordinates leave (L1 to L6); None if too many."""

    @abstractmethod
    def count(self, query: Query, pairs: Pairs, counts: Counts | None) -> Counts:
        """Add to each column's possible count the weight of the values with a pair in it."""

    def release(self, counts: Counts) -> None:  # noqa: B027  most keep nothing
        """Take back counts, to be used again."""

    def forget(self) -> None:  # noqa: B027
        """Free memory that is kept for later searches: the device has run out of it."""

    @abstractmethod
    def verify(
        self,
        query: Query,
        pairs: Pairs,
        members: torch.Tensor,
        counts: Counts,
        limits: Limits,
        stats: SearchStats,
    ) -> None:
        """Decide the members' pairs in columns that still matter, and update the counts.

        Matched counts rise, and possible counts sink.
        """

    @abstractmethod
    def matches(self, query: Query, pairs: Pairs, stats: SearchStats) -> Pairs:
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
