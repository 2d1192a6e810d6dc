"""JOSIE: exact top-k overlap search that reads posting lists or candidates, whichever is expected to pay (thesis, chapter 3).

The pseudocode of the source skips the first posting list, does not say when a candidate that was read leaves, nor what happens when the lists are used up,
and compares costs before there is a threshold. Here: all lists are read in order; a set that was read never comes back; once every list is accounted for
counts are overlaps and nothing more is read; and while fewer than k overlaps are known the candidates with the largest estimates are read, as soon as there
are enough for k results.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from pexeso.errors import InputError
from pexeso.overlap.candidates import Candidates
from pexeso.overlap.costs import MAPPED, ReadCosts
from pexeso.overlap.estimates import (
    benefit_of_lists,
    estimated_overlap,
    expected_after_lists,
    expected_matches,
    net_cost_of_sets,
    rate_since_first,
    threshold_after,
)
from pexeso.overlap.filters import require_ties, upper_bound
from pexeso.overlap.query import OverlapQuery, Values, as_query
from pexeso.overlap.reading import OverlapSource, Reads, excluded_numbers
from pexeso.overlap.topk import Overlaps, TopK, require_at_least, require_k

POLICIES = ("balance", "net_cost")

_USUAL_SET, _STEPS, _EASY_BATCH = 100, 2, 2
_GROWTH, _WAVE = 0.3, 0.25
"""The next lists cost a share of all that was read; candidates read at a time a share of these lists."""

_TABLE = 1 << 16

ENTRY_BYTES = 12
"""A set, a position and a size, of 4 bytes each."""


@dataclass(frozen=True)
class JosieOptions:
    """How a search goes about it; none of this changes an answer but `ties`.

    Attributes
    ----------
    ties : str
        ``"id"``: of sets that tie for the last place those with the smallest ids. ``"any"``: whichever are found first.
    batch : int or None
        Distinct posting lists read at a time (lambda). None: as many as cost a share of what was read, and at first what k sets cost.
    min_sample : int or None
        Query tokens that must be accounted for since a candidate's first match before its estimate counts; None: as many as `batch`, or up to five where
        that is None.
    distinct_lists : bool
        False reads equal posting lists each on its own.
    easy_start : bool
        For k up to 2: a first batch of two lists, and a set that has matched every token so far may be read at once. For queries that are nearly a set of
        the lake.
    policy : str
        What is read next. ``"net_cost"``: lists, or the one candidate that costs less than they do after what each spares (J6 to J11), as published.
        ``"balance"``: lists and candidates in turn, so that neither costs much more than the other; see Notes.
    sets : int
        Candidates that ``"balance"`` reads at a time, at most.

    Raises
    ------
    InputError
        An option is not one of those.

    Notes
    -----
    By net cost a list seems to spare the reading of every candidate that it rules out, though most of these fall anyway once a few good ones were read and
    the threshold has risen; where thousands of candidates look alike nearly all lists are read. ``"balance"`` takes no estimate of that kind: whichever of
    the two was the way, it takes about twice the cost of that one. Candidates are read by the overlap that they are expected to have by chance
    (`pexeso.overlap.estimates.expected_matches`) or by their rate of matches, whichever is more.
    """

    ties: str = "id"
    batch: int | None = None
    min_sample: int | None = None
    distinct_lists: bool = True
    easy_start: bool = False
    policy: str = "balance"
    sets: int = 40

    def __post_init__(self) -> None:
        require_ties(self.ties)
        if self.policy not in POLICIES:
            raise InputError(f"policy must be 'balance' or 'net_cost'. Got {self.policy!r}.")
        for name in ("batch", "min_sample", "sets"):
            value = getattr(self, name)
            if value is None and name != "sets":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be an integer from 1 on. Got {value!r}.")


def josie(
    source: OverlapSource,
    values: Values | OverlapQuery,
    k: int,
    options: JosieOptions = JosieOptions(),
    *,
    costs: ReadCosts = MAPPED,
    exclude: Collection[int] = (),
    at_least: int = 1,
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
    at_least : int
        Sets with a smaller overlap are not wanted: of several indexes that are searched one after the other, the k-th overlap of those before.

    Returns
    -------
    Overlaps

    Raises
    ------
    InputError
        k or `at_least` is no integer from 1 on.
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
    require_at_least(at_least)
    query = as_query(source, values, distinct_lists=options.distinct_lists)
    run = JosieRun(source, query, k, options, costs, exclude, at_least)
    while run.step():
        pass
    return run.answer()


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
        at_least: int = 1,
    ) -> None:
        self.source, self.query, self.options, self.costs = source, query, options, costs
        self.n = len(query)
        self.best, self.reads = TopK(k, at_least), Reads()
        source.begin_search()
        self.candidates = Candidates(source)
        self.candidates.forbid(excluded_numbers(source, exclude))
        self.n_read = self.accounted = 0
        self._list_costs = costs.of_lists(query.frequencies)
        self._list_costs_up_to = np.concatenate([[0.0], np.cumsum(self._list_costs)])
        # A list counts for the first token that it stands for: once that is in the prefix, the list must be read.
        at_token = np.zeros(self.n + 1)
        at_token[query.starts] = self._list_costs
        self._costs_up_to = np.cumsum(at_token)
        self._min_sample = options.min_sample
        if self._min_sample is None:
            self._min_sample = options.batch or min(5, 1 + self.n // 16)
        self._least_batch = max(k * float(costs.of_sets(np.array(_USUAL_SET))), costs.step)
        self._productive = True
        self._easy = options.easy_start and k <= 2

    def step(self) -> bool:
        """Rule candidates out, and read some posting lists or some candidates; False once the answer is complete."""
        self.candidates.keep(self.best.takes(self.bounds(), self.candidates.ranks, self.options.ties))
        prefix = self.best.prefix(self.n, self.options.ties)
        if self.n_read == self.query.n_blocks:
            self.best.push_all(self.candidates.count, self.candidates.ranks)
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
        """Give what was found so far, which is the answer once there are no more steps."""
        return self.best.answer(self.query.n_asked, self.reads, self.source.ids_of_ranks)

    def bounds(self) -> np.ndarray:
        """Bound the overlaps of candidates (J2): int64 (w,)."""
        return upper_bound(self.candidates.count, self.n, self.accounted, self.candidates.size, self.candidates.end)

    def _candidates_to_read(self, prefix: int) -> np.ndarray:
        """Choose candidates; none where posting lists are to be read first."""
        candidates, best = self.candidates, self.best
        eligible = np.ones(len(candidates), bool)
        if self.accounted < prefix:
            eligible = self.accounted - candidates.first + 1 >= self._min_sample
            if self._easy:
                eligible |= candidates.count == self.accounted
        rows = np.flatnonzero(eligible)
        if not len(rows):
            return rows
        bounds = self.bounds()
        rest, ranks = candidates.size - candidates.end, candidates.ranks
        by_net_cost = self.options.policy == "net_cost"
        estimates = (
            estimated_overlap(candidates, self.n, self.accounted, bounds) if by_net_cost else self._expected(bounds)
        )
        if not best.full and best.at_least == 1:
            if len(candidates) + len(best) < best.k and self.accounted < prefix:
                return rows[:0]
            needed = best.k - len(best)
            rows = _first(rows, needed if by_net_cost else max(needed, self.options.sets), -estimates, rest, ranks)
            return rows[: max(needed, self._worth_a_step(rest[rows]))]
        if not by_net_cost:
            return self._affordable(rest, _first(rows, self.options.sets, -estimates, rest, ranks))
        after = np.maximum(threshold_after(estimates, best.overlaps, len(best), best.k), best.threshold)
        ties = self.options.ties if best.full else "any"
        net = net_cost_of_sets(
            rest, bounds, after, best.threshold, self.n, self.accounted, self._costs_up_to, self.costs, ties
        )
        row = _first(rows, 1, net, -estimates, ranks)
        return row if net[row[0]] <= self._net_cost_of_lists(bounds, rest) else row[:0]

    def _affordable(self, rest: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Give the first of some candidates, or none: what may be read before the next posting lists.

        As many as cost a part of these lists, provided that all candidates that are left cost no more than they; or else that sets take no more than a share
        of what lists take, and that lists were read since the last sets or these raised the threshold.
        """
        of_sets, of_lists = self.costs.of_sets(rest), self._cost_of_batch()
        spent_on_lists = float(self._list_costs_up_to[self.n_read])
        left = 2 * spent_on_lists + of_lists - self.reads.cost
        if float(of_sets.sum()) > of_lists and not (self._productive and of_sets[rows[0]] <= left):
            return rows[:0]
        return rows[: max(1, self._worth_a_step(rest[rows], _WAVE * of_lists))]

    def _worth_a_step(self, rest: np.ndarray, least: float = 0.0) -> int:
        """Say how many of some candidates are read at a time: those that cost no more than `least`, or than it takes to decide what is read next."""
        most = max(least, _STEPS * self.costs.step)
        return int(np.searchsorted(np.cumsum(self.costs.of_sets(rest)), most, side="right"))

    def _expected(self, bounds: np.ndarray) -> np.ndarray:
        """Expect matches by chance, or by the rate so far, whichever is more."""
        candidates, query, last = self.candidates, self.query, self.n_read
        weights = (query.ends - query.starts + 1)[last:]
        n_pairs = self.source.pairs_from(int(query.tokens[query.starts[last] - 1]))
        by_chance = expected_matches(candidates.size - candidates.end, query.frequencies[last:], weights, n_pairs)
        by_rate = rate_since_first(candidates, self.accounted) * (self.n - self.accounted)
        return np.minimum(candidates.count + np.maximum(by_chance, by_rate), bounds)

    def _cost_of_batch(self) -> float:
        return float(self._list_costs_up_to[self._next_block()] - self._list_costs_up_to[self.n_read])

    def _next_block(self) -> int:
        """Give the number of distinct lists that are read once the next batch is."""
        if self._easy and not self.n_read:
            return min(_EASY_BATCH, self.options.batch or _EASY_BATCH, self.query.n_blocks)
        if self.options.batch is None:
            most = self._list_costs_up_to[self.n_read] + max(self._least_batch, _GROWTH * self.reads.cost)
            by_cost = int(np.searchsorted(self._list_costs_up_to, most, side="right")) - 1
            return min(max(by_cost, self.n_read + 1), self.query.n_blocks)
        return min(self.n_read + self.options.batch, self.query.n_blocks)

    def _net_cost_of_lists(self, bounds: np.ndarray, rest: np.ndarray) -> float:
        """Give the cost of the next batch of posting lists less what it spares (J11)."""
        last, candidates = self._next_block(), self.candidates
        then = int(self.query.ends[last - 1])
        ends, bounds_then = expected_after_lists(candidates, self.n, self.accounted, then, bounds)
        spared = benefit_of_lists(rest, candidates.size - ends, bounds_then, self.best.threshold, self.costs)
        return self._cost_of_batch() - spared

    def _read_lists(self) -> None:
        last, query = self._next_block(), self.query
        blocks = slice(self.n_read, last)
        found, lengths = self.source.posting_lists(query.tokens[query.ends[blocks] - 1])
        n_entries = len(found.sets)
        cost = float(self._list_costs[blocks].sum())
        self.reads.add_lists(len(lengths), n_entries, ENTRY_BYTES * n_entries, cost)
        # What is first met behind the prefix cannot enter.
        takes = self._takes_new if query.starts[self.n_read] <= self.best.prefix(self.n, self.options.ties) else None
        self.candidates.add(found, lengths, query.starts[blocks], (query.ends - query.starts + 1)[blocks], takes)
        self.n_read, self.accounted, self._productive = last, int(query.ends[last - 1]), True
        if last < query.n_blocks:  # while these are looked at the next ones can be on their way
            self.source.expect_lists(query.tokens[query.ends[last : self._next_block()] - 1])

    def _takes_new(self, accounted: np.ndarray, rest: np.ndarray, ranks: np.ndarray, count: np.ndarray) -> np.ndarray:
        """Tell which sets can enter where they are first met."""
        return self.best.takes(count + np.minimum(self.n - accounted, rest), ranks, self.options.ties)

    def _read_sets(self, rows: np.ndarray) -> None:
        candidates = self.candidates
        overlaps, ranks = candidates.count[rows], candidates.ranks[rows]
        open_still = np.flatnonzero(candidates.end[rows] < candidates.size[rows])
        if len(open_still):
            some = rows[open_still]
            overlaps[open_still] += self._matches_behind(candidates.number[some], candidates.end[some])
        kept = np.ones(len(candidates), bool)
        kept[rows] = False
        candidates.keep(kept)
        before = self.best.threshold
        self.best.push_all(overlaps, ranks)
        self._productive = self.best.threshold > before

    def _matches_behind(self, numbers: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Read the last tokens of sets and count those that the rest of the query has."""
        tokens, lengths = self.source.suffixes(numbers, ends)
        self.reads.add_sets(len(numbers), len(tokens), tokens.nbytes, float(self.costs.of_sets(lengths).sum()))
        return count_common(tokens, lengths, self.query.tokens[self.accounted :])


def _first(rows: np.ndarray, most: int, *keys: np.ndarray) -> np.ndarray:
    """Give the rows whose first key is least, of equal ones those with the least second, and so on."""
    if len(rows) > 4 * most:
        border = np.partition(keys[0][rows], most - 1)[most - 1]
        rows = rows[keys[0][rows] <= border]
    return rows[np.lexsort([key[rows] for key in reversed(keys)])[:most]]


def count_common(tokens: np.ndarray, lengths: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Count the tokens of each of some sets that are wanted.

    Parameters
    ----------
    tokens : integers (t,)
        Of the sets, one after the other.
    lengths : int64 (s,)
        Of each set, 1 or more.
    wanted : int64 (q,)
        Ascending.

    Returns
    -------
    int64 (s,)

    Notes
    -----
    O(t), and memory for the numbers between the least and the largest wanted, where these are few; else O(t log q).

    Examples
    --------
    >>> count_common(np.array([1, 4, 9, 4]), np.array([3, 1]), np.array([4, 5, 9, 12])).tolist()
    [2, 1]
    """
    if not len(wanted):
        return np.zeros(len(lengths), np.int64)
    least, span = int(wanted[0]), int(wanted[-1] - wanted[0]) + 1
    if span <= max(_TABLE, 16 * len(tokens)):
        table = np.zeros(span + 1, np.int8)
        table[wanted - least] = 1
        places = tokens - least
        places[(places < 0) | (places > span)] = span
        found = table[places]
    else:
        places = np.minimum(np.searchsorted(wanted, tokens), len(wanted) - 1)
        found = wanted[places] == tokens
    return np.add.reduceat(found, np.cumsum(lengths) - lengths, dtype=np.int64)
