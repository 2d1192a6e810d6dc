"""Verification: which columns the surviving pairs make joinable, with as few distances as possible.

Algorithm 2 of the paper keeps a match and a mismatch count per column. As printed it raises them
per *vector*; a query value must count once for a column however many of its vectors match, and as a
mismatch only when all of them fail. Here two counts of query values enclose the truth: those that
match for sure, and those that still may.

Before any distance the candidates say which columns can reach the count needed at all; the others
are dead (Lemma 7 in bulk). Query values are then verified in rounds, those with the fewest
candidates first: a column needs ``min_count`` of the |Q| query values, so it must match at least
one of *any* ``|Q| - min_count + 1``. After the first round most columns are dead, and the expensive
query values are verified against the few that are left.
"""

from __future__ import annotations

import sys

import torch

from pexeso.engine.kernel import Counts, Kernel, Limits, Pairs, Query
from pexeso.engine.partition import fetch_postings, fetch_vectors
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import Lemma

LATER_ROUNDS = 3
FEW_PAIRS = 1 << 12  # candidates that are verified in one round, which costs less than another

_NEVER = -(1 << 62)


class Verifier:
    """The counts of columns, as the values of a query are verified, some of them at a time."""

    def __init__(
        self,
        query: Query,
        kernel: Kernel,
        stats: SearchStats,
        *,
        min_count: int,
        k: int | None = None,
        decide: bool = False,
        left_out: torch.Tensor | None = None,
    ) -> None:
        self._partition, self._kernel, self._stats = query.partition, kernel, stats
        self._prunes = Lemma.COLUMN_PRUNING in query.threshold.lemmas
        self._weight_ahead = int(query.weights.sum())
        self._floor, self._k, self._decide = min_count, k, decide
        self._left_out = None if left_out is None else left_out.to(query.partition.device)
        self._counts: Counts | None = None
        self._n_dead = 0

    def add(self, query: Query, pairs: Pairs) -> None:
        """Verify some of the query's values against their candidates.

        Over all calls each value must be added once.
        """
        self._weight_ahead -= int(query.weights.sum())
        fetch_postings(self._partition, pairs)
        counts = self._counts = self._kernel.count(query, pairs, self._counts)
        if self._left_out is not None:
            # Columns without a candidate stay untouched: the arrays may be used again.
            counts.possible[counts.touched[self._left_out[counts.touched]]] = _NEVER
        n_dead = 0
        rounds = self._rounds(query, pairs)
        for members in rounds:
            if members is rounds[-1]:
                n_dead = self._count_dead()
            fetch_vectors(self._partition, pairs, members, counts.possible, self._limits().needed)
            self._kernel.verify(query, pairs, members, counts, self._limits(), self._stats)
            self._raise_floor()
        if self._prunes:
            # Dead columns stay dead, so that those of earlier calls are among them.
            self._stats.columns_dead += n_dead - self._n_dead
            self._n_dead = n_dead

    def alive(self) -> torch.Tensor:
        """Return the columns with a candidate that may still be found, int64 (c,).

        The values to come must not be able to reach the count needed by themselves.
        """
        if self._counts is None:
            return torch.zeros(0, dtype=torch.int64, device=self._partition.device)
        columns = self._real_columns()
        return columns[self._counts.possible[columns] >= self._limits().needed]

    def joinable_columns(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the columns with as many matches as needed, ascending, and their counts, int64."""
        if self._counts is None:
            nothing = torch.zeros(0, dtype=torch.int64, device=self._partition.device)
            return nothing, nothing
        columns = self._real_columns()
        matched = self._counts.matched[columns]
        columns, matched = columns[matched >= self._floor], matched[matched >= self._floor]
        order = torch.argsort(columns)
        return columns[order], matched[order]

    def close(self) -> None:
        if self._counts is not None:
            self._kernel.release(self._counts)
            self._counts = None

    def _rounds(self, query: Query, pairs: Pairs) -> list[torch.Tensor]:
        """Split the values, cheapest first: |Q| - min_count + 1 of them, then a few rounds."""
        every = torch.argsort(pairs.sizes, stable=True)
        if len(pairs) <= FEW_PAIRS and self._k is None:
            return [every]
        spare = query.total - self._floor + 1
        reached = torch.cumsum(query.weights[every], 0)
        prefix = int((reached < spare).sum()) + 1
        parts = [every[:prefix]]
        rest = every[prefix:]
        if len(rest):
            n_rounds = (
                min(LATER_ROUNDS, len(rest)) if int(pairs.sizes[rest].sum()) > FEW_PAIRS else 1
            )
            parts += list(torch.tensor_split(rest, n_rounds))
        return [part for part in parts if len(part)]

    def _limits(self) -> Limits:
        """Return what a column needs now, less what the values of later calls may add."""
        # Columns left out stand far below zero, so they are dead even where nothing prunes.
        needed = self._floor - self._weight_ahead if self._prunes else -self._weight_ahead - 1
        return Limits(max(needed, _NEVER // 2), self._floor if self._decide else sys.maxsize)

    def _raise_floor(self) -> None:
        """In top-k mode: nothing below the k-th largest count known can be among the k best."""
        if self._k is None or len(self._counts.touched) < self._k:
            return
        matched = self._counts.matched[self._real_columns()]
        if len(matched) >= self._k:
            self._floor = max(self._floor, int(torch.topk(matched, self._k).values[-1]))

    def _real_columns(self) -> torch.Tensor:
        touched = self._counts.touched
        return touched if self._left_out is None else touched[~self._left_out[touched]]

    def _count_dead(self) -> int:
        columns = self._real_columns()
        return int((self._counts.possible[columns] < self._limits().needed).sum())
