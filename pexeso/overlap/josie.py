"""JOSIE: exact top-k overlap search that reads posting lists or candidates, whichever is expected to pay (thesis, chapter 3).

The pseudocode of the source skips the first posting list, does not say when a candidate that was read leaves, nor what happens when the lists are used up,
and compares costs before there is a threshold. Here: all lists are read in order; a set that was read never comes back; once every list is accounted for
counts are overlaps and nothing more is read; and while fewer than k overlaps are known the candidate with the largest estimate is read, as soon as there
are candidates enough for k results.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.overlap.candidates import Candidates
from pexeso.overlap.costs import DISK, ReadCosts
from pexeso.overlap.estimates import (
    benefit_of_lists,
    estimated_overlap,
    expected_after_lists,
    net_cost_of_sets,
    threshold_after,
)
from pexeso.overlap.filters import prefix_length, qualifies, require_ties, upper_bound
from pexeso.overlap.query import OverlapQuery, Values, as_query
from pexeso.overlap.reading import OverlapSource, Reads, excluded_numbers
from pexeso.overlap.topk import Overlaps, TopK, require_k

ENTRY_BYTES = 12
"""A set, a position and a size, of 4 bytes each."""


@dataclass(frozen=True)
class JosieOptions:
    """How a search goes about it; none of this changes an answer but `ties`.

    Attributes
    ----------
    ties : str
        ``"id"``: of sets that tie for the last place those with the smallest ids. ``"any"``: whichever are found first.
    batch : int
        Distinct posting lists read at a time (lambda).
    min_sample : int or None
        Query tokens that must be accounted for since a candidate's first match before its estimate counts; None: as many as `batch`.
    distinct_lists : bool
        False reads equal posting lists each on its own.
    easy_start : bool
        For k up to 2: a first batch of two lists, and a set that has matched every token so far may be read at once. For queries that are nearly a set of
        the lake.

    Raises
    ------
    InputError
        An option is not one of those.
    """

    ties: str = "id"
    batch: int = 20
    min_sample: int | None = None
    distinct_lists: bool = True
    easy_start: bool = False

    def __post_init__(self) -> None:
        require_ties(self.ties)
        for name in ("batch", "min_sample"):
            value = getattr(self, name)
            if value is None and name == "min_sample":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be an integer from 1 on. Got {value!r}.")


def josie(
    source: OverlapSource,
    values: Values | OverlapQuery,
    k: int,
    options: JosieOptions = JosieOptions(),
    *,
    costs: ReadCosts = DISK,
    exclude: Collection[int] = (),
) -> Overlaps:
    """Find the k sets that share most tokens with a query.

    Parameters
    ----------
    source
        The index, or one that was changed since.
    values
        Cells of the query column, as for `pexeso.overlap.query.prepare_query`; or what that gave, whose distinct lists then stand.
    k : int
        Sets wanted; more than there are gives all that share a token.
    options
    costs
        What reads cost on the storage at hand: `pexeso.overlap.costs.measure_costs`.
    exclude
        Ids of sets that are not to be found, such as the query's own.

    Returns
    -------
    Overlaps

    Raises
    ------
    InputError
        k is no integer from 1 on.
    QueryError
        The values are no column.
    IndexCorruptError
        The index leads out of its files.

    Notes
    -----
    At most all posting lists of the query are read. Beside reading, each step takes time linear in the unread candidates and in the query.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pexeso.overlap.index import build_index
    >>> index = build_index(np.array([4, 4, 9]), pa.array(["oslo", "rome", "rome"]))
    >>> josie(index, ["oslo", "rome", "lima"], 5).pairs()
    [(4, 2), (9, 1)]
    """
    require_k(k)
    query = as_query(source, values, distinct_lists=options.distinct_lists)
    run = JosieRun(source, query, k, options, costs, exclude)
    while run.step():
        pass
    return run.best.answer(query.n_asked, run.reads)


class JosieRun:
    """One search, a step at a time; see `josie`.

    Attributes
    ----------
    best : TopK
        Sets that were read, or whose overlap is known.
    candidates : Candidates
        Sets met and not read.
    n_read : int
        Distinct posting lists read (m).
    accounted : int
        Query tokens accounted for (i).
    reads : Reads
    """

    def __init__(
        self,
        source: OverlapSource,
        query: OverlapQuery,
        k: int,
        options: JosieOptions,
        costs: ReadCosts,
        exclude: Collection[int] = (),
    ) -> None:
        self.source, self.query, self.options, self.costs = source, query, options, costs
        self.n = len(query)
        self.best, self.reads = TopK(k), Reads()
        self.candidates = Candidates(source)
        self.candidates.forbid(excluded_numbers(source, exclude))
        self.n_read = self.accounted = 0
        self._list_costs = costs.of_lists(query.frequencies)
        # A list counts for the first token that it stands for: once that is in the prefix, the list must be read.
        at_token = np.zeros(self.n + 1)
        at_token[query.starts] = self._list_costs
        self._costs_up_to = np.cumsum(at_token)
        self._min_sample = options.batch if options.min_sample is None else options.min_sample
        self._easy = options.easy_start and k <= 2

    def step(self) -> bool:
        """Read some posting lists, or one candidate; False once the answer is complete."""
        prefix = prefix_length(self.n, self.best.threshold, self.options.ties)
        if self.n_read == self.query.n_blocks:
            self.best.push_all(self.candidates.count, self.candidates.ids)
            self.candidates.keep(np.zeros(len(self.candidates), bool))
            return False
        if not len(self.candidates) and self.accounted >= prefix:
            return False
        chosen = self._candidate_to_read(prefix)
        if chosen is None:
            self._read_lists()
        else:
            self._read_set(chosen)
        best, ids = self.best, self.candidates.ids
        self.candidates.keep(qualifies(self.bounds(), ids, best.threshold, best.last_id, self.options.ties))
        return True

    def bounds(self) -> np.ndarray:
        """Bound the overlaps of candidates (J2): int64 (w,)."""
        return upper_bound(self.candidates.count, self.n, self.accounted, self.candidates.size, self.candidates.end)

    def _candidate_to_read(self, prefix: int) -> int | None:
        """Choose a candidate; None where posting lists are to be read first."""
        candidates, best = self.candidates, self.best
        eligible = np.ones(len(candidates), bool)
        if self.accounted < prefix:
            eligible = self.accounted - candidates.first + 1 >= self._min_sample
            if self._easy:
                eligible |= candidates.count == self.accounted
        if not eligible.any():
            return None
        bounds = self.bounds()
        estimates = estimated_overlap(candidates, self.n, self.accounted, bounds)
        rest, ids = candidates.size - candidates.end, candidates.ids
        rows = np.flatnonzero(eligible)
        if not best.full:
            if len(candidates) + len(best) < best.k and self.accounted < prefix:
                return None
            return _least(rows, -estimates, rest, ids)
        after = threshold_after(estimates, best.overlaps, len(best), best.k)
        net = net_cost_of_sets(
            rest,
            bounds,
            after,
            best.threshold,
            self.n,
            self.accounted,
            self._costs_up_to,
            self.costs,
            self.options.ties,
        )
        row = _least(rows, net, -estimates, ids)
        return row if net[row] <= self._net_cost_of_lists(bounds, rest) else None

    def _next_block(self) -> int:
        """Give the number of distinct lists that are read once the next batch is."""
        batch = min(self.options.batch, 2) if self._easy and not self.n_read else self.options.batch
        return min(self.n_read + batch, self.query.n_blocks)

    def _net_cost_of_lists(self, bounds: np.ndarray, rest: np.ndarray) -> float:
        """Give the cost of the next batch of posting lists less what it spares (J11)."""
        last = self._next_block()
        then = int(self.query.ends[last - 1])
        ends, bounds_then = expected_after_lists(self.candidates, self.n, self.accounted, then, bounds)
        spared = benefit_of_lists(rest, self.candidates.size - ends, bounds_then, self.best.threshold, self.costs)
        return float(self._list_costs[self.n_read : last].sum()) - spared

    def _read_lists(self) -> None:
        last, lists = self._next_block(), []
        for block in range(self.n_read, last):
            found = self.source.posting_list(self.query.list_of(block))
            lists.append((found, int(self.query.starts[block]), self.query.weight_of(block)))
            self.reads.add_list(len(found.sets), ENTRY_BYTES * len(found.sets), float(self._list_costs[block]))
        self.n_read, self.accounted = last, int(self.query.ends[last - 1])
        self.candidates.add(lists)

    def _read_set(self, row: int) -> None:
        candidates = self.candidates
        overlap, set_id, end = int(candidates.count[row]), int(candidates.ids[row]), int(candidates.end[row])
        if end < candidates.size[row]:
            overlap += self._matches_behind(int(candidates.number[row]), end)
        kept = np.ones(len(candidates), bool)
        kept[row] = False
        candidates.keep(kept)
        self.best.push(overlap, set_id)

    def _matches_behind(self, number: int, end: int) -> int:
        """Read the last tokens of a set and count those that the rest of the query has."""
        suffix = self.source.suffix(number, end)
        self.reads.add_set(len(suffix), suffix.nbytes, float(self.costs.of_sets(np.array(len(suffix)))))
        return count_common(suffix, self.query.tokens[self.accounted :])


def _least(rows: np.ndarray, *keys: np.ndarray) -> int:
    """Give the row whose first key is least, of equal ones that with the least second, and so on."""
    for key in keys:
        rows = rows[key[rows] == key[rows].min()]
    return int(rows[0])


def count_common(left: np.ndarray, right: np.ndarray) -> int:
    """Count the numbers that two ascending arrays share.

    Examples
    --------
    >>> count_common(np.array([1, 4, 9]), np.array([4, 5, 9, 12]))
    2
    """
    if len(left) > len(right):
        left, right = right, left
    if not len(left):
        return 0
    places = np.minimum(np.searchsorted(right, left), len(right) - 1)
    return int((right[places] == left).sum())
