"""The planner: JOSIE or MergeList, by what either is expected to take for a query.

Both are exact. Posting lists that are short, or few, are counted sooner than one can think about
which of them to read; where they are long JOSIE pays. The lengths of a query's lists, known before
any is read, tell what MergeList takes, and about what JOSIE does: that grows with the root of what
reading all lists would cost, since of longer lists a smaller part is read. The constants were
fitted to 1,080 searches of power-law lakes of 10,000 to a million sets in memory
(benchmarks/NOTES.md); what a disk adds is measured on the index itself, in a few reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from pexeso.runtime.jit import loops_are_loaded
from pexeso.sets.overlap.costs import MAPPED
from pexeso.sets.overlap.index.sets import OverlapIndex
from pexeso.sets.overlap.josie import ENTRY_BYTES, josie
from pexeso.sets.overlap.merge import DENSE, MEMBER_BYTES, merge_list
from pexeso.sets.overlap.query import OverlapQuery, Values, as_query
from pexeso.sets.overlap.topk import Overlaps, require_k
from pexeso.store.paging import FaultWatch

_MERGE_FIXED, _MERGE_PER_ENTRY, _MERGE_PER_SET = 70.0, 0.0056, 0.0062
_LOOPS_FIXED, _LOOPS_PER_ENTRY, _LOOPS_PER_FAR_ENTRY, _NEAR = 33.0, 0.0017, 0.0042, 1 << 18
"""MergeList by compiled loops; an entry takes longer where there are more than `_NEAR` counters,
too many for the processor's own memory."""

_JOSIE_FIXED, _JOSIE_PER_ROOT, _JOSIE_PER_COST, _JOSIE_PER_RESULT = 310.0, 14.0, 0.024, 4.0
_JOSIE_LISTS, _JOSIE_ENTRIES, _JOSIE_SETS = 0.25, 0.03, 60
"""Shares of lists and of entries, and sets beside the results, that JOSIE read at the median."""

_SAMPLES, _LONGEST = 16, 1 << 16
_TOGETHER = 0.1
"""What a read waits where many are asked for together, of what it waits alone."""


@dataclass(frozen=True)
class Planner:
    """What a disk adds, and what follows for a query.

    Attributes
    ----------
    wait : float
        Microseconds that a read waits, where many are asked for together; 0 in memory.
    per_byte : float
        Microseconds.
    """

    wait: float = 0.0
    per_byte: float = 0.0

    @classmethod
    def measured(
        cls, index: OverlapIndex, *, seed: int = 0, clock: Callable[[], float] = time.perf_counter
    ) -> Planner:
        """Read a few posting lists, and time that if the system has to fetch them from a disk.

        Some milliseconds at most, whatever the size of the index: `_SAMPLES` lists by chance, one
        after the other, and one run of `_LONGEST` entries.

        Parameters
        ----------
        clock
            Seconds.
        """
        if not index.n_tokens:
            return cls()
        rng, watch = np.random.default_rng(seed), FaultWatch()
        watch.restart()
        positions = rng.integers(0, len(index.list_sets), _SAMPLES)
        begin = clock()
        index.list_sets[positions].sum()
        seconds = clock() - begin
        if not watch.missing():
            return cls()
        first = int(rng.integers(0, max(1, len(index.list_sets) - _LONGEST)))
        index.begin_search()
        begin = clock()
        index.pages.want("list_sets", np.array([first]), np.array([first + _LONGEST]))
        index.list_sets[first : first + _LONGEST].sum()
        per_byte = 1e6 * (clock() - begin) / (MEMBER_BYTES * _LONGEST)
        return cls(_TOGETHER * 1e6 * seconds / _SAMPLES, per_byte)

    def expected(self, index: OverlapIndex, query: OverlapQuery, k: int) -> dict[str, float]:
        """Return the microseconds that each way is expected to take.

        The ways are ``"josie"`` and ``"merge_list"``.
        """
        entries, n_lists = float(query.frequencies.sum()), query.n_blocks
        if loops_are_loaded():
            merge = (
                _LOOPS_FIXED
                + (_LOOPS_PER_ENTRY if index.n_sets <= _NEAR else _LOOPS_PER_FAR_ENTRY) * entries
            )
        else:
            dense = index.n_sets if index.n_sets <= DENSE * entries else 0
            merge = _MERGE_FIXED + _MERGE_PER_ENTRY * entries + _MERGE_PER_SET * dense
        merge += self.wait * n_lists + self.per_byte * MEMBER_BYTES * entries
        all_lists = float(MAPPED.of_lists(query.frequencies).sum())
        by_josie = (
            _JOSIE_FIXED
            + _JOSIE_PER_ROOT * all_lists**0.5
            + _JOSIE_PER_COST * all_lists
            + _JOSIE_PER_RESULT * k
        )
        by_josie += self.wait * (_JOSIE_LISTS * n_lists + _JOSIE_SETS + k)
        by_josie += self.per_byte * ENTRY_BYTES * _JOSIE_ENTRIES * entries
        return {"josie": by_josie, "merge_list": merge}

    def choose(self, index: OverlapIndex, query: OverlapQuery, k: int) -> str:
        """Return what answers a query: ``"josie"`` or ``"merge_list"``."""
        expected = self.expected(index, query, k)
        return "josie" if expected["josie"] < expected["merge_list"] else "merge_list"

    def search(
        self,
        index: OverlapIndex,
        values: Values | OverlapQuery,
        k: int,
        *,
        exclude: Collection[int] = (),
        at_least: int = 1,
    ) -> Overlaps:
        """Find the k sets that share most tokens with a query, by the faster expected method.

        Parameters and errors are those of `pexeso.sets.overlap.josie.josie`.

        The answer does not hang on which way that is.
        """
        require_k(k)
        query = as_query(index, values)
        search = josie if self.choose(index, query, k) == "josie" else merge_list
        return search(index, query, k, exclude=exclude, at_least=at_least)
