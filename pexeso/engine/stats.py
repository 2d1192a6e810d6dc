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
    defining_distances : int
        Distances computed in float64, those in the band around the threshold.
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
        """Add the wall time of what is done inside to a phase."""
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
        """Add wall time to a phase."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def add(self, other: SearchStats) -> None:
        """Add the counters and seconds of another search to these."""
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
