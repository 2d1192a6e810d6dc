"""What goes through the partitions of a store together, and what all such passes share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pexeso.engine.lemmas import lemma_set
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import Goal, Probe, SpacePartition, Vectors, count_needed
from pexeso.options import SearchOptions
from pexeso.results.ranking import Hit
from pexeso.semantic.partition_loader import PartitionLoader

KEPT_VALUES = 1 << 16
"""(Query value, partition) pairs whose summaries are looked at once where all partitions are ranked
before the first is searched; with more, twice."""


@dataclass(frozen=True)
class ProbeResult:
    """What a pass saw of a partition that it cannot skip.

    Attributes
    ----------
    outlook : Probe or None
        None where it did not look: an exhaustive search reads everything, and a lake of one
        partition is searched anyway.
    """

    outlook: Probe | None = None
    max_counts: tuple[int, ...] = ()


class Pass(ABC):
    """One pass over the partitions.

    `look` and `promise` may be called from another thread than the rest, one at a time.
    """

    def __init__(self, scan: PartitionLoader) -> None:
        self._scan = scan
        # What is done ahead is counted by itself: two threads must not add to one counter.
        self._ahead = SearchStats()
        self._kept: dict[int, Probe] = {}

    @property
    @abstractmethod
    def n_values(self) -> int:
        """Distinct query values."""

    @property
    @abstractmethod
    def ranks(self) -> bool:
        """Whether only the best columns of all partitions are wanted."""

    @abstractmethod
    def look(self, number: int) -> ProbeResult | None:
        """Look at the summary of a partition; None where no column of it can be found."""

    @abstractmethod
    def promise(self, number: int) -> tuple[int, int]:
        """Return the count that may match in a partition, and the number of near boxes.

        These numbers rank the partitions by promise.
        """

    @abstractmethod
    def search(self, number: int, partition: SpacePartition, probed: ProbeResult) -> None:
        """Search a partition, unless what was found since rules it out."""

    @abstractmethod
    def results(self) -> Iterator[tuple[int, tuple[list[Hit], SearchStats]]]:
        """Return the places of the query columns, and what was found for each."""

    def _outlook(
        self,
        number: int,
        vectors: Vectors,
        weights: np.ndarray,
        total: int,
        options: SearchOptions,
        *,
        keep: bool = False,
    ) -> Probe:
        """Probe a summary, or reuse the result of an earlier probe.

        With `keep` the result is kept for the next time if it takes little memory.
        """
        if number in self._kept:
            return self._kept.pop(number)
        outlook = self._scan.space.probe(
            self._scan.mapped(number),
            vectors,
            weights,
            total,
            goal_of(0, options, 0),
            self._scan.look_kernel,
            self._ahead,
        )
        if keep and len(vectors) * self._scan.store.n_partitions <= KEPT_VALUES:
            self._kept[number] = outlook
        return outlook


def goal_of(total: int, options: SearchOptions, floor: int) -> Goal:
    """Return what a column of the next partition needs."""
    needed = 1 if options.min_joinability is None else count_needed(options.min_joinability, total)
    decide = options.counts == "decide"
    return Goal(
        options.max_distance, max(needed, floor), options.k, decide, lemma_set(options.lemmas)
    )


def left_out_columns(
    scan: PartitionLoader, number: int, exclude_table: str | None
) -> np.ndarray | None:
    """Mark the columns of a partition that must not be found: of the table excluded, or deleted."""
    deleted = scan.store.deleted_mask(number)
    if exclude_table is None:
        return deleted
    same = pc.equal(scan.names(number).sound_tables, pa.scalar(exclude_table)).to_numpy(
        zero_copy_only=False
    )
    return same if deleted is None else same | deleted
