"""Extreme pivot table: exact, by the triangle inequality alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs, decide_candidates, no_pairs
from benchmarks.rivals import PairRival
from pexeso.engine.arrays import as_tensor, expand_ranges, expand_ranges_in_chunks, offsets_of
from pexeso.engine.maps import PivotMap, choose_pivots, slack

MEANS_OF = 20_000
ROWS_AT_ONCE = 1 << 14
PAIRS_AT_ONCE = 1 << 20


class ExtremePivotTable(PairRival):
    """Table of each value's most extreme pivot in every group, and its distance to that pivot."""

    def build(self, lake: BenchmarkLake, *, n_groups: int, group_size: int) -> None:
        """Compute the table, 6 bytes a value and group, in pieces of 16,384 values."""
        self.take_postings(lake)
        self._vectors = as_tensor(lake.vectors, self.device)
        pivots = choose_pivots(self._vectors, n_groups * group_size, choice="random", seed=0)
        # A small lake has fewer distinct vectors than were asked for.
        self._group_size = min(group_size, len(pivots))
        self._n_groups = len(pivots) // self._group_size
        self._map = PivotMap(pivots[: self._n_groups * self._group_size])
        self._fill()
        table = (self._codes, self._distances, self._order, self._map.pivots)
        self.index_bytes += self._vectors.nbytes + sum(part.nbytes for part in table)

    def _fill(self) -> None:
        n_values, shape = len(self._vectors), (self._n_groups, self._group_size)
        sampled = torch.randperm(n_values, generator=torch.Generator().manual_seed(0))[:MEANS_OF]
        means = self._map.map(self._vectors[sampled.to(self.device)]).mean(0)
        codes = torch.empty((self._n_groups, n_values), dtype=torch.int16, device=self.device)
        distances = torch.empty((self._n_groups, n_values), device=self.device)
        for begin in range(0, n_values, ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            mapped = self._map.map(self._vectors[rows])
            extreme = (mapped - means).abs().view(-1, *shape).argmax(2, keepdim=True)
            codes[:, rows] = extreme[:, :, 0].T.short()
            distances[:, rows] = mapped.view(-1, *shape).gather(2, extreme)[:, :, 0].T
        by_distance = torch.argsort(distances[0])
        self._order = by_distance[torch.argsort(codes[0, by_distance], stable=True)]
        self._codes, self._distances = (
            codes[:, self._order].contiguous(),
            distances[:, self._order].contiguous(),
        )
        self._segments = offsets_of(torch.bincount(codes[0].long(), minlength=self._group_size))
        self._slack = slack(distances, means)

    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        """Narrow the candidates group by group, then compare the remaining ones."""
        self.work = {
            "distances": len(vectors) * len(self._map.pivots),
            "vectors_touched": 0,
            "bytes_read": 0,
        }
        if not len(vectors) or not len(self._vectors):
            return no_pairs(self.device)
        mapped = self._map.map(vectors)
        # Both sides of a comparison are known to within half the slack; a query value may lie
        # farther out than any value.
        reach = tau + max(self._slack, slack(mapped))
        starts, sizes = self._ranges(mapped, reach)
        pairs = []
        for owner, position in _expand(starts, sizes):
            queries, position = self._narrow(mapped, owner, position, reach)
            values = self._order[position]
            self.work["vectors_touched"] += len(values)
            pairs.append(decide_candidates(queries, values, vectors, self._vectors, tau))
        self.work["distances"] += self.work["vectors_touched"]
        self.work["bytes_read"] += self.work["vectors_touched"] * vectors.shape[1] * 4
        if not pairs:
            return no_pairs(self.device)
        queries, values = (torch.cat(part) for part in zip(*pairs, strict=True))
        return queries, values

    def _ranges(self, mapped: torch.Tensor, reach: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Find the nearby rows of each first-group pivot for every query value."""
        starts = torch.empty((len(mapped), self._group_size), dtype=torch.int64, device=self.device)
        ends = torch.empty_like(starts)
        for pivot, (begin, end) in enumerate(
            np.lib.stride_tricks.sliding_window_view(self._segments.cpu().numpy(), 2)
        ):
            rows, middle = self._distances[0, begin:end], mapped[:, pivot].contiguous()
            starts[:, pivot] = begin + torch.searchsorted(rows, middle - reach)
            ends[:, pivot] = begin + torch.searchsorted(rows, middle + reach, right=True)
        return starts.view(-1), (ends - starts).view(-1)

    def _narrow(
        self, mapped: torch.Tensor, owner: torch.Tensor, position: torch.Tensor, reach: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep the candidates that every group after the first leaves too."""
        flat, width = mapped.view(-1), mapped.shape[1]
        # Where a query value's distances begin in `flat`.
        base = (torch.arange(len(mapped), device=self.device) * width).repeat_interleave(
            self._group_size
        )[owner]
        for group in range(1, self._n_groups):
            self.work["bytes_read"] += len(position) * 6
            offset = base + self._codes[group].index_select(0, position)
            near = flat[group * self._group_size :].index_select(0, offset)
            near -= self._distances[group].index_select(0, position)
            remaining = torch.nonzero(near.abs_() <= reach)[:, 0]
            base, position = base.index_select(0, remaining), position.index_select(0, remaining)
        return torch.div(base, width, rounding_mode="floor"), position


def _expand(
    starts: torch.Tensor, sizes: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """List the members of all ranges as `expand_ranges` does, in bounded pieces."""
    totals = offsets_of(sizes).cpu().numpy()
    first = 0
    while first < len(sizes):
        last = max(
            first + 1, int(np.searchsorted(totals, totals[first] + PAIRS_AT_ONCE, side="right")) - 1
        )
        run = slice(first, last)
        if totals[last] - totals[first] <= PAIRS_AT_ONCE:
            pieces = [expand_ranges(starts[run], sizes[run])]
        else:
            pieces = expand_ranges_in_chunks(starts[run], sizes[run], PAIRS_AT_ONCE)
        for owner, position in pieces:
            yield owner + first, position
        first = last
