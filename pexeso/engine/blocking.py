"""Blocking: which query values can match something in which leaf cells, found without a single distance.

Algorithm 1 of the paper walks the query's grid and the index's grid together. Here a level is one step: a frontier of (query cell, index cell)
pairs, each lemma a mask over it, children by range expansion. A frontier beyond its limit is cut and finished piece by piece,
so memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pexeso.engine.arrays import expand_ranges
from pexeso.engine.grid import Grid, Level, build_grid, leaf_codes
from pexeso.engine.lemmas import Lemma
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats

MAX_FRONTIER = 1 << 20


@dataclass(frozen=True)
class Blocks:
    """Pairs of a query value and a leaf cell that survive.

    Attributes
    ----------
    matching_query, matching_leaf : int64 (a,)
        Every value in the leaf matches the query value.
    candidate_query, candidate_leaf : int64 (b,)
        Some value in the leaf may match. No pair occurs twice, or in both lists.
    """

    matching_query: torch.Tensor
    matching_leaf: torch.Tensor
    candidate_query: torch.Tensor
    candidate_leaf: torch.Tensor


@dataclass(frozen=True)
class QueryGrid:
    """The grid over the mapped query values, with the same cell borders as the index.

    Attributes
    ----------
    grid : Grid
        Its leaves run over `order`.
    order : int64 (n,)
        Query values in cell order.
    mapped : float32 (n, P)
        In the query's own order.
    """

    grid: Grid
    order: torch.Tensor
    mapped: torch.Tensor


def query_grid(partition: Partition, mapped: torch.Tensor) -> QueryGrid:
    """Put mapped query values, float32 (n, P) with n >= 1, into the partition's grid."""
    n_levels = len(partition.grid.levels)
    codes = leaf_codes(mapped, partition.origin, partition.extent, n_levels)
    codes, order = torch.sort(codes, stable=True)
    return QueryGrid(build_grid(codes, mapped[order], n_levels), order, mapped)


def block(
    partition: Partition,
    query: QueryGrid,
    tau: float,
    slack: float,
    lemmas: frozenset[Lemma],
    stats: SearchStats,
    max_frontier: int = MAX_FRONTIER,
) -> Blocks:
    """Find the surviving pairs.

    Parameters
    ----------
    partition : Partition
    query : QueryGrid
    tau, slack : float
        Threshold, and the tolerance of mapped coordinates (`pexeso.engine.maps.slack`).
    lemmas : frozenset of Lemma
        L3 to L6 and quick browsing act here.
    stats : SearchStats
        Counters are added to it.
    max_frontier : int
        Cell pairs looked at together (a single pair may have more children); bounds memory to about
        ``max_frontier * P * 32`` bytes a level, besides the result.
    """
    walk = _Walk(partition, query, tau, slack, lemmas, stats)
    matching, candidates = [], []
    if Lemma.QUICK_BROWSING in lemmas:
        candidates.append(walk.same_leaves())
    levels = len(partition.grid.levels)
    todo = [(0, pairs) for pairs in _all_pairs(query.grid.levels[0], partition.grid.levels[0], max_frontier)]
    while todo:
        depth, pairs = todo.pop()
        if depth > 0:
            pairs = walk.children(depth - 1, *pairs)
        accepted, pairs = walk.filter_cells(depth, *pairs)
        matching += accepted
        # Cut by what the pairs will become, before they do.
        if depth + 1 < levels:
            todo += [(depth + 1, piece) for piece in _pieces(pairs, walk.n_children(depth, *pairs), max_frontier)]
            continue
        for piece in _pieces(pairs, query.grid.leaves.count[pairs[0]], max_frontier):
            whole, candidate = walk.filter_leaves(*piece)
            matching.append(whole)
            candidates.append(candidate)
    return Blocks(*_concatenate(matching, partition.device), *_concatenate(candidates, partition.device))


def block_by_boxes(
    partition: Partition,
    mapped: torch.Tensor,
    threshold_reach: float,
    lemmas: frozenset[Lemma],
    stats: SearchStats,
    max_frontier: int = MAX_FRONTIER,
) -> Blocks:
    """Find the surviving pairs under the projection: every query value walks down the boxes by itself.

    L4 acts on the coarser levels and L3 on the leaves, both by the distance to the box over all axes together. Without pivots there is nothing that
    L5, L6 or quick browsing could accept.

    Parameters
    ----------
    partition : Partition
    mapped : float32 (n, P)
        The mapped query values.
    threshold_reach : float
        ``tau + slack``.
    lemmas, stats, max_frontier
        As for `block`.
    """
    levels = partition.grid.levels
    candidates: list[Pairs] = []
    every = torch.arange(len(mapped), device=partition.device)
    parts = torch.split(every, max(1, max_frontier // max(1, len(levels[0]))))
    top = torch.arange(len(levels[0]), device=partition.device)
    todo = [(0, (part.repeat_interleave(len(top)), top.repeat(len(part)))) for part in parts]
    while todo:
        depth, (values, cells) = todo.pop()
        level, last = levels[depth], depth + 1 == len(levels)
        stats.cell_pairs += len(cells)
        stats.value_cell_pairs += len(cells) if last else 0
        if (Lemma.VECTOR_CELL_FILTERING if last else Lemma.CELL_CELL_FILTERING) in lemmas:
            near = partition.map.near_box(mapped[values], level.lower[cells], level.upper[cells], threshold_reach)
            values, cells = values[near], cells[near]
        if last:
            candidates.append((values, cells))
            continue
        for some_values, some_cells in _pieces((values, cells), level.count[cells], max_frontier):
            owner, child = expand_ranges(level.first[some_cells], level.count[some_cells])
            todo.append((depth + 1, (some_values[owner], child)))
    return Blocks(*_concatenate([], partition.device), *_concatenate(candidates, partition.device))


Pairs = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class _Walk:
    """One walk down both grids; the lemmas as masks."""

    partition: Partition
    query: QueryGrid
    tau: float
    slack: float
    lemmas: frozenset[Lemma]
    stats: SearchStats

    def filter_cells(self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor) -> tuple[list[Pairs], Pairs]:
        """Apply L6, then L4, to pairs of one level; L6's pairs come back as (query value, leaf) pairs."""
        query_level, level = self.query.grid.levels[depth], self.partition.grid.levels[depth]
        self.stats.cell_pairs += len(cells)
        accepted: list[Pairs] = []
        if Lemma.CELL_CELL_MATCHING in self.lemmas:
            # The largest coordinate of the query cell stands for the smallest of its regions RQR (intersection over its vectors).
            whole = (query_level.upper[query_cells] + level.upper[cells] <= self.tau - self.slack).any(1)
            if bool(whole.any()):
                accepted.append(self._all_below(depth, query_cells[whole], cells[whole]))
                query_cells, cells = query_cells[~whole], cells[~whole]
        if Lemma.CELL_CELL_FILTERING in self.lemmas:
            reach = self.tau + self.slack
            near = (level.lower[cells] <= query_level.upper[query_cells] + reach).all(1)
            near &= (level.upper[cells] >= query_level.lower[query_cells] - reach).all(1)
            query_cells, cells = query_cells[near], cells[near]
        return accepted, (query_cells, cells)

    def n_children(self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
        """Give the number of pairs that each pair has on the next level."""
        return self.query.grid.levels[depth].count[query_cells] * self.partition.grid.levels[depth].count[cells]

    def children(self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor) -> Pairs:
        """Pair every child of the query cell with every child of the cell."""
        return _products(self.query.grid.levels[depth], query_cells, self.partition.grid.levels[depth], cells)

    def filter_leaves(self, query_cells: torch.Tensor, cells: torch.Tensor) -> tuple[Pairs, Pairs]:
        """Apply L5, then L3, for each query value of the leaf pairs that are left."""
        query_leaves, leaves = self.query.grid.leaves, self.partition.grid.leaves
        if Lemma.QUICK_BROWSING in self.lemmas:
            fresh = query_leaves.codes[query_cells] != leaves.codes[cells]
            query_cells, cells = query_cells[fresh], cells[fresh]
        owner, member = expand_ranges(query_leaves.first[query_cells], query_leaves.count[query_cells])
        values, cells = self.query.order[member], cells[owner]
        self.stats.value_cell_pairs += len(cells)
        whole = torch.zeros(len(cells), dtype=torch.bool, device=cells.device)
        keep = ~whole
        if Lemma.VECTOR_CELL_MATCHING in self.lemmas:
            whole = (self.query.mapped[values] + leaves.upper[cells] <= self.tau - self.slack).any(1)
            keep = ~whole
        if Lemma.VECTOR_CELL_FILTERING in self.lemmas:
            reach = self.tau + self.slack
            keep &= (leaves.lower[cells] <= self.query.mapped[values] + reach).all(1)
            keep &= (leaves.upper[cells] >= self.query.mapped[values] - reach).all(1)
        return (values[whole], cells[whole]), (values[keep], cells[keep])

    def same_leaves(self) -> Pairs:
        """Quick browsing: pair each query leaf with the index leaf of the same code, if there is one."""
        query_leaves, leaves = self.query.grid.leaves, self.partition.grid.leaves
        place = torch.searchsorted(leaves.codes, query_leaves.codes).clamp(max=len(leaves) - 1)
        query_cells = torch.nonzero(leaves.codes[place] == query_leaves.codes)[:, 0]
        owner, member = expand_ranges(query_leaves.first[query_cells], query_leaves.count[query_cells])
        return self.query.order[member], place[query_cells][owner]

    def _all_below(self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor) -> Pairs:
        """Pair every query value below the query cells with every leaf below the cells."""
        for level in range(depth, len(self.partition.grid.levels) - 1):
            query_cells, cells = self.children(level, query_cells, cells)
        query_leaves, leaves = self.query.grid.leaves, self.partition.grid.leaves
        if Lemma.QUICK_BROWSING in self.lemmas:
            # Those pairs are candidates already, and a pair must not be in both lists.
            fresh = query_leaves.codes[query_cells] != leaves.codes[cells]
            query_cells, cells = query_cells[fresh], cells[fresh]
        owner, member = expand_ranges(query_leaves.first[query_cells], query_leaves.count[query_cells])
        return self.query.order[member], cells[owner]


def _all_pairs(query_level: Level, level: Level, limit: int) -> list[Pairs]:
    """Pair every cell of the query with every cell, about `limit` pairs at a time."""
    every = torch.arange(len(level), device=level.codes.device)
    parts = torch.split(torch.arange(len(query_level), device=level.codes.device), max(1, limit // max(1, len(level))))
    return [(part.repeat_interleave(len(level)), every.repeat(len(part))) for part in parts]


def _pieces(pairs: Pairs, sizes: torch.Tensor, limit: int) -> list[Pairs]:
    """Cut pairs into runs whose sizes sum to at most `limit` and one pair's size."""
    total = torch.cumsum(sizes, 0)
    if len(total) == 0 or int(total[-1]) <= limit:
        return [pairs]
    _, run = torch.unique_consecutive(torch.div(total - sizes, limit, rounding_mode="floor"), return_counts=True)
    lengths = run.tolist()
    return list(zip(torch.split(pairs[0], lengths), torch.split(pairs[1], lengths), strict=True))


def _products(query_level: Level, query_cells: torch.Tensor, level: Level, cells: torch.Tensor) -> Pairs:
    """Pair the children of both sides of every pair."""
    n_children = level.count[cells]
    owner, place = expand_ranges(torch.zeros_like(n_children), query_level.count[query_cells] * n_children)
    query_child = query_level.first[query_cells][owner] + torch.div(place, n_children[owner], rounding_mode="floor")
    return query_child, level.first[cells][owner] + place % n_children[owner]


def _concatenate(pairs: list[Pairs], device: torch.device) -> Pairs:
    if not pairs:
        nothing = torch.zeros(0, dtype=torch.int64, device=device)
        return nothing, nothing
    return torch.cat([left for left, _ in pairs]), torch.cat([right for _, right in pairs])
