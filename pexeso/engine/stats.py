"""The counters of a search: how much work it did, and where the time went."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TypeVar

Item = TypeVar("Item")


@dataclass
class SearchStats:
    """Work counters and seconds; they add up over partitions.

    Attributes
    ----------
    box_pairs : int
        (query value, box) pairs looked at on the way down; (query cell, cell) pairs where cells are
        those of a grid.
    candidate_pairs, matching_pairs : int
        (query value, block) pairs that may match (Lemmas 3 and 4), and those that surely do (Lemmas
        5 and 6).
    vectors_touched : int
        (query value, stored value) pairs whose mapped coordinates were compared (Lemma 1).
    candidates : int
        (query value, stored value) pairs that were left.
    matched_by_map : int
        Pairs that match without a distance (Lemmas 2, 5 and 6).
    pairs_skipped : int
        Pairs whose columns no longer mattered when their turn came (Lemma 7).
    distances : int
        Distances computed in a quick precision.
    defining_distances : int
        Distances computed in float64, those in the band around the threshold.
    columns_dead : int
        Columns with a candidate that were given up before all their candidates were verified (Lemma
        7).
    bytes_read : int
        Bytes of boxes, mapped coordinates and vectors that were looked at: a box or block once for
        all query values together, a vector for each distance. The columns of candidates are not
        counted, nor what a system reads besides, since it reads whole pages.
    partitions : int
        Partitions searched.
    partitions_skipped : int
        Partitions of which no more than the summary was read, since no column of them could be
        found.
    times_out_of_memory : int
        How often a device ran out of memory, and a partition was searched again with a quarter of
        the pairs held at a time. The work up to then counts too.
    seconds : dict of str to float
        Wall time by phase: ``open``, ``embed``, ``map``, ``block``, ``verify``, ``explain``.
    """

    box_pairs: int = 0
    candidate_pairs: int = 0
    matching_pairs: int = 0
    vectors_touched: int = 0
    candidates: int = 0
    matched_by_map: int = 0
    pairs_skipped: int = 0
    distances: int = 0
    defining_distances: int = 0
    columns_dead: int = 0
    bytes_read: int = 0
    partitions: int = 0
    partitions_skipped: int = 0
    times_out_of_memory: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add_seconds(name, time.perf_counter() - started)

    def timed(self, name: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, and add the wall time of making each to a phase."""
        making = iter(items)
        while True:
            with self.phase(name):
                item = next(making, None)
            if item is None:
                return
            yield item

    def add_seconds(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def add(self, other: SearchStats) -> None:
        for name, count in vars(other).items():
            if name != "seconds" and count:
                setattr(self, name, getattr(self, name) + count)
        for phase, seconds in other.seconds.items():
            self.add_seconds(phase, seconds)

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers, seconds rounded to microseconds."""
        counters = {
            counter.name: getattr(self, counter.name)
            for counter in fields(self)
            if counter.name != "seconds"
        }
        return {
            **counters,
            "seconds": {phase: round(value, 6) for phase, value in self.seconds.items()},
        }
