"""The counters of a search: how much work it did, and where the time went."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass
class SearchStats:
    """Work counters and seconds; they add up over partitions.

    Attributes
    ----------
    cell_pairs : int
        (query cell, index cell) pairs looked at while blocking.
    value_cell_pairs : int
        (query value, leaf cell) pairs that L5 and L3 were tried on.
    matching_pairs, candidate_pairs : int
        (query value, leaf cell) pairs that blocking gave.
    vectors_touched : int
        (query value, stored value) pairs whose mapped coordinates were compared.
    pruned_by_pivots, matched_by_pivots : int
        Of these, decided by Lemma 1 and by Lemma 2.
    distances : int
        Distances computed in float64.
    columns_dead : int
        Columns given up before all their candidates were verified (Lemma 7).
    bytes_read : int
        Bytes of vectors and mapped coordinates that verification read.
    partitions : int
        Partitions searched.
    seconds : dict of str to float
        Wall time by phase: ``open``, ``embed``, ``map``, ``block``, ``verify``, ``explain``.
    """

    cell_pairs: int = 0
    value_cell_pairs: int = 0
    matching_pairs: int = 0
    candidate_pairs: int = 0
    vectors_touched: int = 0
    pruned_by_pivots: int = 0
    matched_by_pivots: int = 0
    distances: int = 0
    columns_dead: int = 0
    bytes_read: int = 0
    partitions: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def add_seconds(self, phase: str, seconds: float) -> None:
        """Add wall time to a phase."""
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def add(self, other: SearchStats) -> None:
        """Add the counters and seconds of another search to these."""
        for each in fields(self):
            if each.name != "seconds":
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        for phase, seconds in other.seconds.items():
            self.add_seconds(phase, seconds)

    def to_dict(self) -> dict[str, object]:
        """Give plain numbers, seconds rounded to microseconds."""
        counters = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "seconds"}
        return {**counters, "seconds": {phase: round(value, 6) for phase, value in self.seconds.items()}}
