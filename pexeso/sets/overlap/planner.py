"""MergeList, which reads every posting list of a query, and the choice between it and JOSIE.

Both are exact. MergeList counts (thesis, chapter 3); where the index lies in memory, that
is hard to beat: posting lists that are short, or few, are counted sooner than one can think about
which of them to read. Where they are long JOSIE pays. The lengths of a query's lists, known before
any is read, say what MergeList takes, and about what JOSIE does: that grows with the root of what
reading all lists would cost, since of longer lists a smaller part is read. The constants were
fitted to searches of power-law lakes in memory (benchmarks/NOTES.md); what a disk adds is measured
on the index itself, in a few reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from pexeso.runtime.compiled import compiled
from pexeso.runtime.threads import borrow_counters, give_back
from pexeso.sets.overlap.index import (
    NO_SUCH_SET,
    OverlapIndex,
    OverlapQuery,
    Overlaps,
    Reads,
    cut_short,
)
from pexeso.sets.overlap.josie import ENTRY_BYTES, MAPPED, ReadCosts, josie
from pexeso.store.arrays import FaultWatch

MEMBER_BYTES = 4

loops = compiled("pexeso.sets.loops")


def merge_list(
    index: OverlapIndex,
    query: OverlapQuery,
    k: int,
    *,
    costs: ReadCosts = MAPPED,
    exclude: Collection[int] = (),
    at_least: int = 1,
) -> Overlaps:
    """Find the k sets that share most tokens with a query, ties by id; as `josie`.

    A step for each entry, and some for each set met; 4 bytes for each set of the index stay with
    the thread.
    """
    reads = Reads()
    index.pages.restart()
    if not query.n_blocks:
        return Overlaps(np.empty(0, np.int64), np.empty(0, np.int64), reads)
    entries, cost = int(query.frequencies.sum()), costs.of_lists(query.frequencies).sum()
    reads.add_lists(query.n_blocks, entries, MEMBER_BYTES * entries, float(cost))
    counts = borrow_counters(index.n_sets)
    best = loops.best_by_lists(
        index.list_sets,
        *index.list_runs(query.lists),
        query.weights,
        index.numbers_of(exclude),
        min(k, index.n_sets),
        at_least,
        counts,
    )
    if best is None:
        raise cut_short(NO_SUCH_SET)
    give_back(counts)
    numbers, overlaps = best
    return Overlaps(index.ids_of(numbers).astype(np.int64), overlaps, reads)


# MergeList; an entry takes longer where there are more than `_NEAR` counters, too many for the
# processor's own memory.
_MERGE_FIXED, _MERGE_PER_ENTRY, _MERGE_PER_FAR_ENTRY, _NEAR = 33.0, 0.0017, 0.0042, 1 << 18

_JOSIE_FIXED, _JOSIE_PER_ROOT, _JOSIE_PER_COST, _JOSIE_PER_RESULT = 310.0, 14.0, 0.024, 4.0
# Shares of lists and of entries, and sets beside the results, that JOSIE read at the median.
_JOSIE_LISTS, _JOSIE_ENTRIES, _JOSIE_SETS = 0.25, 0.03, 60

_SAMPLES, _LONGEST = 16, 1 << 16
_TOGETHER = 0.1  # What a read waits where many are requested together, of what it waits alone


@dataclass(frozen=True)
class Planner:
    """What a disk adds, and what follows for a query."""

    # Microseconds that a read waits, where many are requested together; 0 in memory
    wait: float = 0.0
    per_byte: float = 0.0  # Microseconds

    @classmethod
    def measured(
        cls, index: OverlapIndex, *, clock: Callable[[], float] = time.perf_counter
    ) -> Planner:
        """Read a few posting lists, and time that if the system has to fetch them from a disk.

        Some milliseconds at most, whatever the size of the index: `_SAMPLES` lists by chance, one
        after the other, and one run of `_LONGEST` entries.
        """
        if not index.n_tokens:
            return cls()
        rng, watch = np.random.default_rng(0), FaultWatch()
        watch.restart()
        positions = rng.integers(0, len(index.list_sets), _SAMPLES)
        begin = clock()
        index.list_sets[positions].sum()
        seconds = clock() - begin
        if not watch.missing():
            return cls()
        first = int(rng.integers(0, max(1, len(index.list_sets) - _LONGEST)))
        index.pages.restart()
        begin = clock()
        index.pages.want("list_sets", np.array([first]), np.array([first + _LONGEST]))
        index.list_sets[first : first + _LONGEST].sum()
        per_byte = 1e6 * (clock() - begin) / (MEMBER_BYTES * _LONGEST)
        return cls(_TOGETHER * 1e6 * seconds / _SAMPLES, per_byte)

    def choose(self, index: OverlapIndex, query: OverlapQuery, k: int) -> str:
        """Return what is expected to answer a query sooner: ``"josie"`` or ``"merge_list"``."""
        entries, n_lists = float(query.frequencies.sum()), query.n_blocks
        per_entry = _MERGE_PER_ENTRY if index.n_sets <= _NEAR else _MERGE_PER_FAR_ENTRY
        merge = _MERGE_FIXED + per_entry * entries
        merge += self.wait * n_lists + self.per_byte * MEMBER_BYTES * entries
        cost = float(MAPPED.of_lists(query.frequencies).sum())
        by_josie = _JOSIE_FIXED + _JOSIE_PER_ROOT * cost**0.5 + _JOSIE_PER_COST * cost
        by_josie += _JOSIE_PER_RESULT * k
        by_josie += self.wait * (_JOSIE_LISTS * n_lists + _JOSIE_SETS + k)
        by_josie += self.per_byte * ENTRY_BYTES * _JOSIE_ENTRIES * entries
        return "josie" if by_josie < merge else "merge_list"

    def search(
        self,
        index: OverlapIndex,
        query: OverlapQuery,
        k: int,
        *,
        exclude: Collection[int] = (),
        at_least: int = 1,
    ) -> Overlaps:
        """Find the k sets that share most tokens with a query, the sooner expected way."""
        search = josie if self.choose(index, query, k) == "josie" else merge_list
        return search(index, query, k, exclude=exclude, at_least=at_least)
