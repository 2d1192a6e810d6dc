"""Verification: which columns the surviving pairs make joinable, with as few distances as possible.

Algorithm 2 of the paper keeps a match and a mismatch count per column. As printed it raises them per *vector*; a query value must count once
for a column however many of its vectors match, and as a mismatch only when all of them fail. Here a boolean matrix (query values of a round,
columns) holds the matches, so both are right by construction.

Query values are taken in rounds, those with the fewest candidates first. A column needs ``min_count`` of the |Q| query values, so it must match at least
one of *any* ``|Q| - min_count + 1``: after the first round most columns are dead, and the expensive query values are verified against the few that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from pexeso.engine.arrays import any_in_rows, expand_ranges, expand_ranges_in_chunks
from pexeso.engine.blocking import Blocks
from pexeso.engine.lemmas import Lemma
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats

PAIRS_AT_ONCE = 1 << 20
ELEMENTS_AT_ONCE = 1 << 17
"""Vector elements whose distances are computed together: few enough for a core's cache."""

MATRIX_CELLS = 1 << 26
LATER_ROUNDS = 3


Pairs = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Query:
    """The distinct values of a query column in one partition's space.

    Attributes
    ----------
    vectors : float32 (n, d)
        Unit vectors, all different values.
    mapped : float32 (n, P)
    weights : int64 (n,)
        How often each value occurs in the column.
    total : int
        |Q|: every row of the column that counts, those that can match nothing included.
    """

    vectors: torch.Tensor
    mapped: torch.Tensor
    weights: torch.Tensor
    total: int

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, members: torch.Tensor) -> Query:
        """Keep some values; `total` stays."""
        return Query(self.vectors[members], self.mapped[members], self.weights[members], self.total)


@dataclass(frozen=True)
class Threshold:
    """When a query value matches.

    Attributes
    ----------
    tau : float
        Largest distance of a match, inclusive, on the metric's comparison scale.
    slack : float
        Tolerance of mapped coordinates.
    """

    tau: float
    slack: float


class Verifier:
    """Counts matches per column over the rounds of one search in one partition.

    Attributes
    ----------
    matched : int64 (C,)
        Weight of the query values that are known to match each column.
    alive : bool (C,)
        Columns that are not given up.
    """

    def __init__(
        self,
        partition: Partition,
        query: Query,
        threshold: Threshold,
        lemmas: frozenset[Lemma],
        stats: SearchStats,
        needed: Callable[[torch.Tensor], int],
        decide: bool = False,
        left_out: torch.Tensor | None = None,
    ) -> None:
        """Prepare a search.

        Parameters
        ----------
        needed : callable
            Gives the count that a column needs, from the counts so far (int64 (C,)); never falls.
        decide : bool
            Stop verifying a column once it has the count needed (the paper's early acceptance): counts become lower bounds.
        left_out : bool (C,), optional
            Columns that must not be found; their counts stay 0.
        """
        self.partition, self.threshold, self.lemmas, self.stats = partition, threshold, lemmas, stats
        self._needed, self._decide = needed, decide
        self.matched = torch.zeros(partition.n_columns, dtype=torch.int64, device=partition.device)
        self.alive = torch.ones(partition.n_columns, dtype=torch.bool, device=partition.device)
        self._left_out = None if left_out is None else left_out.to(partition.device)
        if self._left_out is not None:
            self.alive &= ~self._left_out
        self._weight_ahead = int(query.weights.sum())

    def add(self, query: Query, blocks: Blocks) -> None:
        """Verify some of the query's values (each value once over all calls) against their blocks."""
        self._weight_ahead -= int(query.weights.sum())
        for members, possible_ahead in self._rounds(query, blocks):
            self._give_up(possible_ahead + self._weight_ahead)
            if not bool(self.alive.any()):
                return
            self._verify_round(query, blocks, members)
        if self._weight_ahead:
            self._give_up(torch.full_like(self.matched, self._weight_ahead))

    def _rounds(self, query: Query, blocks: Blocks) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Split the values into rounds; each with what every column may still match in it and in the later rounds."""
        sizes = self.partition.grid.leaves.count[blocks.candidate_leaf]
        work = torch.zeros(len(query), dtype=torch.int64, device=self.partition.device)
        work.index_add_(0, blocks.candidate_query, sizes)
        by_work = torch.argsort(work, stable=True)
        most = max(1, MATRIX_CELLS // max(1, self.partition.n_columns))
        pieces: list[torch.Tensor] = []
        for part in self._prefix_and_rest(query, by_work):
            pieces += list(torch.split(part, most))
        ahead = torch.zeros_like(self.matched)
        rounds = []
        for members in reversed(pieces):
            ahead = ahead + self._possible(query, blocks, members)
            rounds.append((members, ahead))
        return rounds[::-1]

    def _prefix_and_rest(self, query: Query, by_work: torch.Tensor) -> list[torch.Tensor]:
        """Cut the values, cheapest first, where the first |Q| - min_count + 1 are complete, and the rest in a few rounds."""
        spare = query.total - self._needed(self.matched) + 1
        reached = torch.cumsum(query.weights[by_work], 0)
        prefix = int((reached < spare).sum()) + 1
        parts = [by_work[:prefix]]
        rest = by_work[prefix:]
        if len(rest):
            parts += list(torch.tensor_split(rest, min(LATER_ROUNDS, len(rest))))
        return [part for part in parts if len(part)]

    def _possible(self, query: Query, blocks: Blocks, members: torch.Tensor) -> torch.Tensor:
        """Weight of the round's values that share a surviving leaf with each column, int64 (C,).

        This reads postings of cells only: columns short of the count needed are dead before any distance (Lemma 7 in bulk).
        """
        if Lemma.COLUMN_PRUNING not in self.lemmas:
            return torch.full_like(self.matched, int(query.weights[members].sum()))
        hit = self._empty_matrix(members)
        place = self._place(query, members)
        for queries, leaves in (
            (blocks.candidate_query, blocks.candidate_leaf),
            (blocks.matching_query, blocks.matching_leaf),
        ):
            self._mark_leaves(hit, place, queries, leaves)
        return self._weigh(hit, query.weights[members])

    def _give_up(self, ahead: torch.Tensor) -> None:
        """Lemma 7: drop the columns that cannot reach the count needed any more."""
        if Lemma.COLUMN_PRUNING in self.lemmas:
            dead = self.alive & (self.matched + ahead < self._needed(self.matched))
            self.stats.columns_dead += int(dead.sum())
            self.alive &= ~dead

    def _verify_round(self, query: Query, blocks: Blocks, members: torch.Tensor) -> None:
        hit = self._empty_matrix(members)
        place = self._place(query, members)
        self._mark_leaves(hit, place, blocks.matching_query, blocks.matching_leaf)
        wanted = self.alive
        if self._decide:
            wanted = wanted & (self.matched < self._needed(self.matched))
        queries, leaves = blocks.candidate_query, blocks.candidate_leaf
        inside = place[queries] >= 0
        for chunk_query, values in self._matches(query, queries[inside], leaves[inside], wanted):
            owner, posting = expand_ranges(
                self.partition.value_columns.offsets[values], self.partition.value_columns.sizes[values]
            )
            hit[place[chunk_query[owner]], self.partition.value_columns.members[posting].long()] = True
        self.matched += self._weigh(hit, query.weights[members])
        if self._left_out is not None:
            self.matched[self._left_out] = 0

    def _matches(
        self, query: Query, queries: torch.Tensor, leaves: torch.Tensor, wanted: torch.Tensor
    ) -> Iterator[Pairs]:
        """Yield (query value, stored value) pairs that match, from candidate leaves; only values of wanted columns."""
        cells = self.partition.grid.leaves
        keep = self._value_filter(wanted, int(cells.count[leaves].sum()))
        for owner, values in expand_ranges_in_chunks(cells.first[leaves], cells.count[leaves], PAIRS_AT_ONCE):
            kept = keep(values)
            chunk_query, values = queries[owner[kept]], values[kept]
            yield match_pairs(self.partition, query, chunk_query, values, self.threshold, self.lemmas, self.stats)

    def _value_filter(self, columns: torch.Tensor, n_pairs: int) -> Callable[[torch.Tensor], torch.Tensor]:
        """Give a function that tells which values stand in a column marked; `n_pairs` values will be asked about."""
        postings = self.partition.value_columns
        if n_pairs > len(postings.members):
            every = any_in_rows(columns[postings.members], postings.offsets)
            return lambda values: every[values]

        def look_up(values: torch.Tensor) -> torch.Tensor:
            owner, posting = expand_ranges(postings.offsets[values], postings.sizes[values])
            kept = torch.zeros(len(values), dtype=torch.bool, device=values.device)
            kept[owner[columns[postings.members[posting]]]] = True
            return kept

        return look_up

    def _mark_leaves(self, hit: torch.Tensor, place: torch.Tensor, queries: torch.Tensor, leaves: torch.Tensor) -> None:
        """Set the cells of `hit` for every column of every leaf paired with a query value of the round."""
        inside = place[queries] >= 0
        queries, leaves = queries[inside], leaves[inside]
        postings = self.partition.leaf_columns
        for owner, posting in expand_ranges_in_chunks(postings.offsets[leaves], postings.sizes[leaves], PAIRS_AT_ONCE):
            hit[place[queries[owner]], postings.members[posting].long()] = True

    def _empty_matrix(self, members: torch.Tensor) -> torch.Tensor:
        return torch.zeros((len(members), self.partition.n_columns), dtype=torch.bool, device=self.partition.device)

    def _place(self, query: Query, members: torch.Tensor) -> torch.Tensor:
        """Give each query value its row in the round's matrix, or -1."""
        place = torch.full((len(query),), -1, dtype=torch.int64, device=self.partition.device)
        place[members] = torch.arange(len(members), device=self.partition.device)
        return place

    @staticmethod
    def _weigh(hit: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Sum the weights of the rows that are set, per column; exact in integers."""
        rows, columns = torch.nonzero(hit, as_tuple=True)
        return torch.zeros(hit.shape[1], dtype=torch.int64, device=hit.device).index_add_(0, columns, weights[rows])


def match_pairs(
    partition: Partition,
    query: Query,
    queries: torch.Tensor,
    values: torch.Tensor,
    threshold: Threshold,
    lemmas: frozenset[Lemma],
    stats: SearchStats,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keep the pairs that match: Lemma 1 prunes, Lemma 2 accepts, the defining distance decides the rest.

    Parameters
    ----------
    queries, values : int64 (n,)
        Rows of `query` and of the partition's vectors.

    Returns
    -------
    tuple of int64 tensors
        The pairs that match, in no particular order.
    """
    stats.vectors_touched += len(values)
    stats.bytes_read += partition.mapped.shape[1] * 4 * len(values)
    accepted = torch.zeros(len(values), dtype=torch.bool, device=values.device)
    if Lemma.PIVOT_FILTERING in lemmas:
        near = partition.map.near(query.mapped[queries], partition.mapped[values], threshold.tau + threshold.slack)
        stats.pruned_by_pivots += len(near) - int(near.sum())
        queries, values, accepted = queries[near], values[near], accepted[near]
    if Lemma.PIVOT_MATCHING in lemmas and partition.axes is None:
        accepted = (query.mapped[queries] + partition.mapped[values] <= threshold.tau - threshold.slack).any(1)
        stats.matched_by_pivots += int(accepted.sum())
    open_query, open_value = queries[~accepted], values[~accepted]
    close = pair_distances(partition, query, open_query, open_value, stats) <= threshold.tau
    return torch.cat([queries[accepted], open_query[close]]), torch.cat([values[accepted], open_value[close]])


def pair_distances(
    partition: Partition, query: Query, queries: torch.Tensor, values: torch.Tensor, stats: SearchStats
) -> torch.Tensor:
    """Give the defining distances of pairs, float64 (n,), a bounded number of rows at a time."""
    stats.distances += len(values)
    stats.bytes_read += partition.dimensions * 4 * len(values)
    rows = max(1, ELEMENTS_AT_ONCE // partition.dimensions)
    pieces = [
        partition.metric.distances(
            query.vectors[queries[begin : begin + rows]], partition.vectors[values[begin : begin + rows]]
        )
        for begin in range(0, len(values), rows)
    ]
    return torch.cat(pieces) if pieces else torch.zeros(0, dtype=torch.float64, device=values.device)
