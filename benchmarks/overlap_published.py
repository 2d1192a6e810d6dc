"""JOSIE's published policy and ProbeSet, for comparison (thesis, chapter 3; J4 to J11).

The policy weighs the cost and the savings of reading a candidate, or the next posting lists.

Estimates decide what is read next, never what is found. Costs of the suffix of a set are those of
the tokens behind the latest match, |X[j+1:]|, throughout; the source writes |X[j:]| in one place.
Its rate of matches in J7 has the whole remaining query as its denominator, against that of J4: here
both are matches per token accounted for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pexeso.sets.overlap.index import (
    OverlapIndex,
    OverlapQuery,
    Overlaps,
    PostingList,
    Reads,
)
from pexeso.sets.overlap.josie import (
    ENTRY_BYTES,
    MAPPED,
    Candidates,
    JosieRun,
    ReadCosts,
    Takes,
    TopK,
    count_common,
    first_rows,
    upper_bound,
)


class PublishedCandidates(Candidates):
    """Candidates that also know where they were first met.

    Attributes
    ----------
    begin : int64 (w,)
        The number of the set's tokens up to the first match (j0). Where several tokens of a
        duplicate group are matched at once others may lie between them, so it may be too high; no
        bound uses it.
    """

    def __init__(self, index: OverlapIndex) -> None:
        super().__init__(index)
        self._begins = np.zeros(index.n_sets, np.int64)

    begin = property(lambda self: self._begins[self.number])

    def add(
        self,
        postings: PostingList,
        lengths: np.ndarray,
        starts: np.ndarray,
        weights: np.ndarray,
        takes: Takes | None,
    ) -> None:
        begins = np.maximum(
            1, postings.positions.astype(np.int64) + 2 - np.repeat(weights, lengths)
        )
        new = np.flatnonzero(self._begins[postings.sets] == 0)[
            ::-1
        ]  # the first of equal ones is written last
        self._begins[postings.sets[new]] = begins[new]
        super().add(postings, lengths, starts, weights, takes)


class PublishedRun(JosieRun):
    """A search that reads lists, or a candidate that costs less than they do, net of savings."""

    def __init__(
        self,
        index: OverlapIndex,
        query: OverlapQuery,
        k: int,
        costs: ReadCosts,
        exclude: Collection[int] = (),
        *,
        batch: int,
    ) -> None:
        super().__init__(index, query, k, costs, exclude)
        self.batch = self.min_sample = batch
        self.candidates = PublishedCandidates(index)
        self.candidates.forbid(index.numbers_of(exclude))
        # A list counts for the first token that it stands for: once that is in the prefix, the list
        # must be read.
        at_token = np.zeros(self.n + 1)
        at_token[query.starts] = self._list_costs
        self._costs_up_to = np.cumsum(at_token)

    def _next_block(self) -> int:
        return min(self.n_read + self.batch, self.query.n_blocks)

    def _candidates_to_read(self, prefix: int) -> np.ndarray:
        candidates, best = self.candidates, self.best
        eligible = np.ones(len(candidates), bool)
        if self.accounted < prefix:
            eligible = self.accounted - candidates.first + 1 >= self.min_sample
        rows, bounds, rest = (
            np.flatnonzero(eligible),
            self.bounds(),
            candidates.size - candidates.end,
        )
        if not len(rows):
            return rows
        estimates = estimated_overlap(candidates, self.n, self.accounted, bounds)
        if not best.full:
            if len(candidates) + len(best) < best.k and self.accounted < prefix:
                return rows[:0]
            return first_rows(rows, best.k - len(best), -estimates, rest, candidates.number)
        least_two = sorted(overlap for _, overlap in best.sorted())[:2]
        after = np.maximum(threshold_after(estimates, least_two, len(best), best.k), best.threshold)
        prefixes = prefix, np.clip(self.n - after + best.full, 0, self.n)
        net = net_cost_of_sets(
            rest,
            bounds,
            after,
            best.threshold,
            prefixes,
            self.accounted,
            self._costs_up_to,
            self.costs,
        )
        row = first_rows(rows, 1, net, -estimates, candidates.number)
        return row if net[row[0]] <= self._net_cost_of_lists(bounds, rest) else row[:0]

    def _net_cost_of_lists(self, bounds: np.ndarray, rest: np.ndarray) -> float:
        """Return the cost of the next batch of posting lists less what it spares (J11)."""
        last, candidates = self._next_block(), self.candidates
        then = int(self.query.ends[last - 1])
        ends, bounds_then = expected_after_lists(candidates, self.n, self.accounted, then, bounds)
        spared = benefit_of_lists(
            rest, candidates.size - ends, bounds_then, self.best.threshold, self.costs
        )
        return self._cost_of_batch() - spared


def published_josie(
    index: OverlapIndex,
    query: OverlapQuery,
    k: int,
    *,
    batch: int = 20,
    costs: ReadCosts = MAPPED,
    exclude: Collection[int] = (),
) -> Overlaps:
    """Find the k sets that share most tokens with a query by the published policy."""
    run = PublishedRun(index, query, k, costs, exclude, batch=batch)
    while run.step():
        pass
    return run.answer()


def estimated_overlap(
    candidates: PublishedCandidates, n: int, accounted: int, bound: np.ndarray
) -> np.ndarray:
    """Estimate overlaps by the rate of matches since the first one (J4)."""
    seen, whole = accounted - candidates.first + 1, n - candidates.first + 1
    return np.minimum(candidates.count * whole // seen, bound)


def threshold_after(
    estimate: np.ndarray, least_two: Sequence[int], n_known: int, k: int
) -> np.ndarray:
    """Return the k-th best overlap once a set with an estimated overlap has been read (J5)."""
    if n_known < k - 1:
        return np.zeros_like(estimate)
    if n_known == k - 1:
        return np.minimum(estimate, least_two[0]) if len(least_two) else estimate
    after = np.maximum(estimate, least_two[0])
    return np.minimum(after, least_two[1]) if k > 1 else after


def net_cost_of_sets(
    rest: np.ndarray,
    bound: np.ndarray,
    after: np.ndarray,
    threshold: int,
    prefixes: tuple[int, np.ndarray],
    accounted: int,
    list_costs: np.ndarray,
    costs: ReadCosts,
) -> np.ndarray:
    """Return the cost of reading each candidate less what that spares (J6, J11)."""
    set_costs = costs.of_sets(rest)
    up_to_bound = np.cumsum(np.bincount(np.maximum(bound, 0), set_costs, len(list_costs)))
    spared_sets = up_to_bound[np.minimum(after, len(up_to_bound) - 1)] - np.where(
        bound <= after, set_costs, 0.0
    )
    now, then = max(prefixes[0], accounted), np.maximum(prefixes[1], accounted)
    spared_lists = np.maximum(list_costs[now] - list_costs[then], 0.0)
    return set_costs - np.where(after > threshold, spared_lists + spared_sets, 0.0)


def expected_after_lists(
    candidates: PublishedCandidates, n: int, accounted: int, then: int, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Say where candidates are expected to be once more of the query is accounted for (J7, J8, J9).

    Parameters
    ----------
    bound : int64 (w,)
        Bounds now.

    Returns
    -------
    ends, bounds : int64 (w,)
        The number of the set's tokens up to the latest match, and the bound on the overlap.
    """
    step, size, end = then - accounted, candidates.size, candidates.end
    more = candidates.count * step // (accounted - candidates.first + 1)
    ends = np.minimum(
        end + step * (size - candidates.begin + 1) // (n - candidates.first + 1), size
    )
    return ends, np.minimum(bound, candidates.count + more + np.minimum(n - then, size - ends))


def benefit_of_lists(
    rest: np.ndarray,
    rest_then: np.ndarray,
    bound_then: np.ndarray,
    threshold: int,
    costs: ReadCosts,
) -> float:
    """Return the savings from reading the next posting lists (J10)."""
    costs_then = np.where(bound_then <= threshold, 0.0, costs.of_sets(rest_then))
    return float((costs.of_sets(rest) - costs_then).sum())


def probe_set(
    index: OverlapIndex,
    query: OverlapQuery,
    k: int,
    *,
    costs: ReadCosts = MAPPED,
    exclude: Collection[int] = (),
) -> Overlaps:
    """Find the k sets that share most tokens with a query by ProbeSet."""
    n, reads, best = len(query), Reads(), TopK(k)
    index.pages.restart()
    seen = np.zeros(index.n_sets, bool)
    seen[index.numbers_of(exclude)] = True
    for block, cost in enumerate(costs.of_lists(query.frequencies).tolist()):
        if query.starts[block] - 1 >= best.prefix(n):
            break
        lists, _ = index.posting_lists(query.tokens[query.ends[block : block + 1] - 1])
        weight, end = int(query.ends[block] - query.starts[block] + 1), int(query.ends[block])
        reads.add_lists(1, len(lists.sets), ENTRY_BYTES * len(lists.sets), cost)
        rows = np.flatnonzero(~seen[lists.sets])
        seen[lists.sets] = True
        matched, sizes, numbers = lists.positions[rows] + 1, lists.sizes[rows], lists.sets[rows]
        bounds = upper_bound(np.full(len(rows), weight), n, end, sizes, matched)
        for position in range(len(rows)):
            one = slice(position, position + 1)
            if not best.takes(bounds[one], numbers[one])[0]:
                continue
            overlap = weight
            if end < n and matched[position] < sizes[position]:
                suffix, lengths = index.suffixes(numbers[one], matched[one])
                reads.add_sets(1, len(suffix), suffix.nbytes, float(costs.of_sets(lengths)[0]))
                overlap += int(count_common(suffix, lengths, query.tokens[end:])[0])
            best.push_all(np.array([overlap]), numbers[one])
    return best.answer(reads, index)
