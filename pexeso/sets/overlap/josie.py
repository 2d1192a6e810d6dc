"""JOSIE: exact top-k overlap search (thesis, chapter 3).

It reads posting lists or candidates, whichever is expected to pay.

The pseudocode of the source skips the first posting list, does not say when a candidate that was
read leaves, nor what happens when the lists are used up, and compares costs before there is a
threshold. Here: all lists are read in order; a set that was read never comes back; once every list
is accounted for counts are overlaps and nothing more is read; and while fewer than k overlaps are
known the candidates with the largest estimates are read, as soon as there are enough for k results.

By the net cost of the source a list seems to spare the reading of every candidate that it rules
out, though most of these fall anyway once a few good ones were read and the threshold has risen;
where thousands of candidates look alike nearly all lists are read. Here lists and candidates are
read in turn, so that neither costs much more than the other: whichever of the two was the way, a
search takes about twice the cost of that one. Candidates are read by the overlap that they are
expected to have by chance (`expected_matches`) or by their rate of
matches, whichever is more.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pexeso.sets.overlap.index import (
    OverlapIndex,
    OverlapQuery,
    Overlaps,
    PostingList,
    Reads,
)

Takes = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

_UNSEEN, _DONE = 0, -1


@dataclass(frozen=True)
class ReadCosts:
    """The cost of a read, in any one unit: linear in what is read (J3)."""

    set_fixed: float
    set_per_token: float
    list_fixed: float
    list_per_entry: float
    min_cost: float = 0.0
    step: float = 0.0

    def of_sets(self, tokens: np.ndarray) -> np.ndarray:
        """Return the costs of reading so many tokens of a set: float64."""
        costs = self.set_fixed + self.set_per_token * np.asarray(tokens, np.float64)
        return np.where(np.asarray(tokens) > 0, np.maximum(self.min_cost, costs), 0.0)

    def of_lists(self, entries: np.ndarray) -> np.ndarray:
        """Return the costs of reading posting lists of these lengths: float64."""
        costs = self.list_fixed + self.list_per_entry * np.asarray(entries, np.float64)
        return np.maximum(self.min_cost, costs)


# Microseconds of this code for mapped files on an SSD, requested together: an order of magnitude
# where nothing was measured.
MAPPED = ReadCosts(10, 0.03, 10, 0.045, step=600)


class TopK:
    """The k best sets whose overlaps are known."""

    def __init__(self, k: int, at_least: int = 1) -> None:
        self.k, self.at_least = k, at_least
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def full(self) -> bool:
        return len(self._heap) == self.k

    @property
    def threshold(self) -> int:
        """The k-th best overlap (t_k), or `at_least` - 1 while fewer are known."""
        return self._heap[0][0] if self.full else self.at_least - 1

    def prefix(self, n: int) -> int:
        """Return how many of n query tokens to account for before no unseen set can enter (J1)."""
        # While fewer than k sets are known, whichever exceeds the threshold is accepted: no id
        # decides.
        return prefix_length(n, self.threshold + (not self.full))

    def takes(self, bounds: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return which sets with these overlap bounds, int64 (w,), can still enter: bool (w,)."""
        exceeding = bounds > self.threshold
        if not self.full:
            return exceeding
        return exceeding | ((bounds == self.threshold) & (ids < -self._heap[0][1]))

    def push_all(self, overlaps: np.ndarray, ids: np.ndarray) -> None:
        """Add sets that are among the best, int64 (w,) each."""
        best = np.lexsort((ids, -overlaps))[: self.k]
        for overlap, set_id in zip(overlaps[best].tolist(), ids[best].tolist(), strict=True):
            entry = (overlap, -set_id)
            if overlap >= self.at_least and not self.full:
                heapq.heappush(self._heap, entry)
            elif overlap >= self.at_least and entry > self._heap[0]:
                heapq.heapreplace(self._heap, entry)

    def sorted(self) -> list[tuple[int, int]]:
        """Return (id, overlap), the best first."""
        return [(-negative, overlap) for overlap, negative in sorted(self._heap, reverse=True)]

    def answer(self, reads: Reads, index: OverlapIndex) -> Overlaps:
        """Create the answer from set numbers, which ascend as their ids do."""
        pairs = np.array(self.sorted(), np.int64).reshape(-1, 2)
        ids = index.ids_of(pairs[:, 0]).astype(np.int64)
        return Overlaps(ids, pairs[:, 1], reads)


def prefix_length(n: int, threshold: int) -> int:
    """Return the number of query tokens to account for before unseen sets cannot enter (J1)."""
    return max(0, min(n, n - threshold + 1))


def upper_bound(
    count: np.ndarray, n: int, accounted: int, size: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Compute upper bounds of the overlaps of candidates (J2): int64 (w,).

    The bound uses what is left of the query and of the set behind the latest match: `count` matches
    among the first `accounted` query tokens, `end` tokens of the set up to the latest match.
    """
    return count + np.minimum(n - accounted, size - end)


class Candidates:
    """Candidates of one query as columns, in the order in which they were met.

    What was once read or dropped does not come back. Memory that is never touched is not taken:
    four bytes a set of the index are requested.

    Columns, int64 (w,) each, are the numbers of the sets, which ascend as their ids do; the query
    tokens matched so far (cnt); the position in the query, from 1, of the first match (i0); the
    number of the set's tokens up to the latest match (j); and its size.
    """

    def __init__(self, index: OverlapIndex) -> None:
        self._columns = np.empty((5, 0), np.int64)
        self._slots = np.zeros(index.n_sets, np.int32)

    def __len__(self) -> int:
        return self._columns.shape[1]

    number = property(lambda self: self._columns[0])
    count = property(lambda self: self._columns[1])
    first = property(lambda self: self._columns[2])
    end = property(lambda self: self._columns[3])
    size = property(lambda self: self._columns[4])

    def forbid(self, numbers: np.ndarray) -> None:
        self._slots[numbers] = _DONE

    def add(
        self,
        postings: PostingList,
        lengths: np.ndarray,
        starts: np.ndarray,
        weights: np.ndarray,
        takes: Takes | None,
    ) -> None:
        """Add the sets of posting lists.

        `takes` says of sets that were not met before whether they can still enter the answer, from
        the positions in the query up to which they were met, and the numbers of their tokens that
        are left. Those that cannot are done before they are candidates; without it none can.
        """
        ends = np.cumsum(lengths)
        slots = self._slots[postings.sets]
        if takes is not None:
            rows = np.flatnonzero(slots == _UNSEEN)
            if len(rows):
                block = np.searchsorted(ends, rows, side="right")
                self._meet(postings, rows, starts[block], weights[block], takes)
                slots[rows] = self._slots[postings.sets[rows]]
        live = np.flatnonzero(slots > 0)
        positions = slots[live] - 1
        np.add.at(self.count, positions, weights[np.searchsorted(ends, live, side="right")])
        # Positions ascend with the place in the query: of several the last one written is the
        # latest match.
        self.end[positions] = postings.positions[live] + 1

    def _meet(
        self,
        postings: PostingList,
        rows: np.ndarray,
        first: np.ndarray,
        weight: np.ndarray,
        takes: Takes,
    ) -> None:
        """Make candidates of sets in these rows, none of which was seen before."""
        sets, size = postings.sets[rows], postings.sizes[rows]
        begin = postings.positions[rows].astype(np.int64) + 1
        # Where a set is met again the bound is no higher: one that cannot enter where it is first
        # met cannot enter there either.
        indices = np.flatnonzero(takes(first + weight - 1, size - begin, sets, weight))
        self._slots[sets] = _DONE
        sets = sets[indices]
        turn = np.arange(len(sets), dtype=np.int32)
        self._slots[sets[::-1]] = turn[::-1]  # the first of equal ones is written last
        new = self._slots[sets] == turn
        indices, sets = indices[new], sets[new]
        size, first = size[indices], first[indices]
        zero = np.zeros(len(sets), np.int64)
        self._slots[sets] = np.arange(len(self) + 1, len(self) + len(sets) + 1)
        new_columns = np.stack([sets, zero, first, zero, size])
        self._columns = np.concatenate([self._columns, new_columns], axis=1)

    def keep(self, kept: np.ndarray) -> None:
        """Drop the candidates where a bool (w,) is False."""
        if kept.all():
            return
        self._slots[self.number[~kept]] = _DONE
        self._columns = self._columns.take(np.flatnonzero(kept), axis=1)
        self._slots[self.number] = np.arange(1, len(self) + 1)


_USUAL_SET, _STEPS = 100, 2
# The next lists cost a share of all that was read; candidates read at a time a share of these
# lists.
_GROWTH, _WAVE = 0.3, 0.25

_TABLE = 1 << 16

SETS = 40  # Candidates read at a time, at most

ENTRY_BYTES = 12  # A set, a position and a size, of 4 bytes each


def josie(
    index: OverlapIndex,
    query: OverlapQuery,
    k: int,
    *,
    costs: ReadCosts = MAPPED,
    exclude: Collection[int] = (),
    at_least: int = 1,
) -> Overlaps:
    """Find the k sets that share most tokens with a query.

    At most all posting lists of the query are read. Next to reading, each step takes time linear in
    the unread candidates and in the query.
    """
    run = JosieRun(index, query, k, costs, exclude, at_least)
    while run.step():
        pass
    return run.answer()


class JosieRun:
    """One search, a step at a time; see `josie`."""

    def __init__(
        self,
        index: OverlapIndex,
        query: OverlapQuery,
        k: int,
        costs: ReadCosts,
        exclude: Collection[int] = (),
        at_least: int = 1,
    ) -> None:
        self.index, self.query, self.costs = index, query, costs
        self.n = len(query)
        self.best, self.reads = TopK(k, at_least), Reads()
        index.pages.restart()
        self.candidates = Candidates(index)
        self.candidates.forbid(index.numbers_of(exclude))
        self.n_read = self.accounted = 0
        self._list_costs = costs.of_lists(query.frequencies)
        self._list_costs_up_to = np.concatenate([[0.0], np.cumsum(self._list_costs)])
        self.min_sample, self.sets = min(5, 1 + self.n // 16), SETS
        self._least_batch = max(k * float(costs.of_sets(np.array(_USUAL_SET))), costs.step)
        self._productive = True

    def step(self) -> bool:
        """Rule out candidates, then read posting lists or candidates; return False when done."""
        self.candidates.keep(self.best.takes(self.bounds(), self.candidates.number))
        prefix = self.best.prefix(self.n)
        if self.n_read == self.query.n_blocks:
            self.best.push_all(self.candidates.count, self.candidates.number)
            self.candidates.keep(np.zeros(len(self.candidates), bool))
            return False
        if not len(self.candidates) and self.accounted >= prefix:
            return False
        chosen = self._candidates_to_read(prefix)
        if len(chosen):
            self._read_sets(chosen)
        else:
            self._read_lists()
        return True

    def answer(self) -> Overlaps:
        """Return what was found so far, which is the answer once there are no more steps."""
        return self.best.answer(self.reads, self.index)

    def bounds(self) -> np.ndarray:
        """Bound the overlaps of candidates (J2): int64 (w,)."""
        return upper_bound(
            self.candidates.count, self.n, self.accounted, self.candidates.size, self.candidates.end
        )

    def _candidates_to_read(self, prefix: int) -> np.ndarray:
        """Choose candidates; none where posting lists are to be read first."""
        candidates, best = self.candidates, self.best
        eligible = np.ones(len(candidates), bool)
        if self.accounted < prefix:
            eligible = self.accounted - candidates.first + 1 >= self.min_sample
        rows = np.flatnonzero(eligible)
        if not len(rows):
            return rows
        rest, estimates = candidates.size - candidates.end, self._expected(self.bounds())
        if not best.full and best.at_least == 1:
            if len(candidates) + len(best) < best.k and self.accounted < prefix:
                return rows[:0]
            needed = best.k - len(best)
            rows = first_rows(rows, max(needed, self.sets), -estimates, rest, candidates.number)
            return rows[: max(needed, self._worth_a_step(rest[rows]))]
        return self._affordable(
            rest, first_rows(rows, self.sets, -estimates, rest, candidates.number)
        )

    def _affordable(self, rest: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the leading candidates that may be read before the next posting lists, if any.

        As many as cost a part of these lists, provided that all candidates that are left cost no
        more than they; or else that sets take no more than a share of what lists take, and that
        lists were read since the last sets or these raised the threshold.
        """
        of_sets, of_lists = self.costs.of_sets(rest), self._cost_of_batch()
        spent_on_lists = float(self._list_costs_up_to[self.n_read])
        left = 2 * spent_on_lists + of_lists - self.reads.cost
        if float(of_sets.sum()) > of_lists and not (self._productive and of_sets[rows[0]] <= left):
            return rows[:0]
        return rows[: max(1, self._worth_a_step(rest[rows], _WAVE * of_lists))]

    def _worth_a_step(self, rest: np.ndarray, budget: float = 0.0) -> int:
        """Return how many of some candidates to read at a time.

        Together they cost no more than `budget`, or than the decision about what is read next.
        """
        max_cost = max(budget, _STEPS * self.costs.step)
        return int(np.searchsorted(np.cumsum(self.costs.of_sets(rest)), max_cost, side="right"))

    def _expected(self, bounds: np.ndarray) -> np.ndarray:
        """Expect matches by chance, or by the rate so far, whichever is more."""
        candidates, query, last = self.candidates, self.query, self.n_read
        first_token = int(query.tokens[query.starts[last] - 1])
        n_pairs = len(self.index.list_sets) - int(self.index.token_offsets[first_token])
        rest = candidates.size - candidates.end
        by_chance = expected_matches(rest, query.frequencies[last:], query.weights[last:], n_pairs)
        by_rate = rate_since_first(candidates, self.accounted) * (self.n - self.accounted)
        return np.minimum(candidates.count + np.maximum(by_chance, by_rate), bounds)

    def _cost_of_batch(self) -> float:
        costs = self._list_costs_up_to
        return float(costs[self._next_block()] - costs[self.n_read])

    def _next_block(self) -> int:
        """Return the number of distinct lists that are read once the next batch is."""
        batch = max(self._least_batch, _GROWTH * self.reads.cost)
        max_cost = self._list_costs_up_to[self.n_read] + batch
        by_cost = int(np.searchsorted(self._list_costs_up_to, max_cost, side="right")) - 1
        return min(max(by_cost, self.n_read + 1), self.query.n_blocks)

    def _read_lists(self) -> None:
        last, query = self._next_block(), self.query
        blocks = slice(self.n_read, last)
        postings, lengths = self.index.posting_lists(query.lists[blocks])
        n_entries = len(postings.sets)
        cost = float(self._list_costs[blocks].sum())
        self.reads.add_lists(len(lengths), n_entries, ENTRY_BYTES * n_entries, cost)
        # What is first met behind the prefix cannot enter.
        takes = self._takes_new if query.starts[self.n_read] <= self.best.prefix(self.n) else None
        self.candidates.add(postings, lengths, query.starts[blocks], query.weights[blocks], takes)
        self.n_read, self.accounted, self._productive = last, int(query.ends[last - 1]), True
        if last < query.n_blocks:  # while these are looked at the next ones can be on their way
            self.index.expect_lists(query.lists[last : self._next_block()])

    def _takes_new(
        self, accounted: np.ndarray, rest: np.ndarray, sets: np.ndarray, count: np.ndarray
    ) -> np.ndarray:
        return self.best.takes(count + np.minimum(self.n - accounted, rest), sets)

    def _read_sets(self, rows: np.ndarray) -> None:
        candidates = self.candidates
        overlaps, numbers = candidates.count[rows], candidates.number[rows]
        open_still = np.flatnonzero(candidates.end[rows] < candidates.size[rows])
        if len(open_still):
            # Their last tokens are read, and those that the rest of the query has are counted.
            some = rows[open_still]
            tokens, lengths = self.index.suffixes(candidates.number[some], candidates.end[some])
            cost = float(self.costs.of_sets(lengths).sum())
            self.reads.add_sets(len(some), len(tokens), tokens.nbytes, cost)
            rest = self.query.tokens[self.accounted :]
            overlaps[open_still] += count_common(tokens, lengths, rest)
        remaining = np.ones(len(candidates), bool)
        remaining[rows] = False
        candidates.keep(remaining)
        before = self.best.threshold
        self.best.push_all(overlaps, numbers)
        self._productive = self.best.threshold > before


def first_rows(rows: np.ndarray, limit: int, *keys: np.ndarray) -> np.ndarray:
    """Return at most `limit` rows with the smallest keys, in lexicographic order of the keys."""
    if len(rows) > 4 * limit:
        border = np.partition(keys[0][rows], limit - 1)[limit - 1]
        rows = rows[keys[0][rows] <= border]
    return rows[np.lexsort([key[rows] for key in reversed(keys)])[:limit]]


def count_common(tokens: np.ndarray, lengths: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Count the tokens of each of some sets, none empty, that are wanted: int64 (s,).

    O(t), and memory for the numbers between the least and the largest of the q wanted ones, which
    ascend, where these are few; else O(t log q).
    """
    if not len(wanted):
        return np.zeros(len(lengths), np.int64)
    lowest, span = int(wanted[0]), int(wanted[-1] - wanted[0]) + 1
    if span <= max(_TABLE, 16 * len(tokens)):
        table = np.zeros(span + 1, np.int8)
        table[wanted - lowest] = 1
        positions = tokens - lowest
        positions[(positions < 0) | (positions > span)] = span
        is_wanted = table[positions]
    else:
        positions = np.minimum(np.searchsorted(wanted, tokens), len(wanted) - 1)
        is_wanted = wanted[positions] == tokens
    return np.add.reduceat(is_wanted, np.cumsum(lengths) - lengths, dtype=np.int64)


_SIZES, _SOME_LISTS, _TABLE_BITS = 24, 64, 12


def expected_matches(
    rest: np.ndarray, frequencies: np.ndarray, weights: np.ndarray, n_pairs: int
) -> np.ndarray:
    """Return the number of query tokens that each set is expected to hold by chance: float64 (w,).

    A set of which z tokens are left holds one with f entries with probability 1 - exp(-z f /
    n_pairs), as though they were drawn one by one. Computed for `_SIZES` sizes and at most
    `_SOME_LISTS` lists, and interpolated: O(w).
    """
    if not len(rest) or not len(frequencies):
        return np.zeros(len(rest))
    if len(frequencies) > _SOME_LISTS:
        # Lists ascend in length: of so many neighbours one stands for all.
        edges = np.linspace(0, len(frequencies), _SOME_LISTS + 1).astype(np.int64)
        frequencies = frequencies[(edges[:-1] + edges[1:]) // 2]
        weights = np.add.reduceat(weights, edges[:-1])
    largest = int(rest.max())
    shift = max(0, largest.bit_length() - _TABLE_BITS)
    sizes = _sizes_up_to(largest)
    held = -np.expm1(-np.outer(sizes, frequencies / max(n_pairs, 1))) @ weights
    grid = np.arange((largest >> shift) + 1) << shift
    table = np.interp(grid, np.append(0, sizes), np.append(0.0, held))
    return table[rest >> shift]


@lru_cache(maxsize=1024)
def _sizes_up_to(largest: int) -> np.ndarray:
    # Kept, since a search asks for the same few again and again, and making them takes longer than
    # the rest of an estimate.
    sizes = np.unique(np.geomspace(1, max(largest, 2), _SIZES).astype(np.int64))
    sizes.flags.writeable = False
    return sizes


def rate_since_first(candidates: Candidates, accounted: int) -> np.ndarray:
    """Return the matches per query token since the first match, which is not counted: float64 (w,).

    Two more tokens without a match are assumed, so that few say little.
    """
    return (candidates.count - 1) / (accounted - candidates.first + 2)
