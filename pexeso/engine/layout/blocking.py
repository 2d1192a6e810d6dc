"""Blocking: which query values can match something in which leaf cells.

No distance is computed.

Algorithm 1 of the paper walks the query's grid and the index's grid together. Here a level is one
step: a frontier of (query cell, index cell) pairs, each lemma a mask over it, children by range
expansion. A frontier beyond its limit is cut and finished piece by piece, so memory stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pexeso.engine.arrays import expand_ranges, expand_ranges_in_chunks, run_lengths
from pexeso.engine.fetching import fetch_coordinates
from pexeso.engine.interface import Pairs, Query, Threshold, merge_by_query
from pexeso.engine.layout.grid import Grid, Level, build_grid, leaf_codes
from pexeso.engine.layout.maps import PivotMap, ProjectionMap
from pexeso.engine.lemmas import Lemma
from pexeso.engine.stats import SearchStats

if TYPE_CHECKING:
    from pexeso.engine.layout.grid_cells import GridCells
    from pexeso.engine.layout.partition import Partition

MAX_FRONTIER = 1 << 20
ROWS_AT_ONCE = 1 << 20

CellPairs = tuple[torch.Tensor, torch.Tensor]
"""(Query cell or value, cell or row) pairs, int64 (p,) each."""


@dataclass(frozen=True)
class LeafPairs:
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


def query_grid(cells: GridCells, mapped: torch.Tensor) -> QueryGrid:
    """Put mapped query values, float32 (n, P) with n >= 1, into the grid of a partition."""
    n_levels = len(cells.grid.levels)
    codes = leaf_codes(mapped, cells.origin, cells.extent, n_levels)
    codes, order = torch.sort(codes, stable=True)
    return QueryGrid(build_grid(codes, mapped[order], n_levels), order, mapped)


def grid_candidates(
    partition: Partition, query: Query, threshold: Threshold, max_pairs: int, stats: SearchStats
) -> Pairs | None:
    """Find candidate pairs in a grid: blocking, then Lemmas 1 and 2.

    The interface is that of `pexeso.engine.interface.Kernel.candidates`.
    """
    cells: GridCells = partition.cells
    leaf_pairs = block(partition, query_grid(cells, query.mapped), threshold, stats)
    stats.candidate_pairs += len(leaf_pairs.candidate_leaf)
    stats.matching_pairs += len(leaf_pairs.matching_leaf)
    leaves = cells.grid.leaves
    found: list[CellPairs] = []
    starts, sizes = leaves.first[leaf_pairs.matching_leaf], leaves.count[leaf_pairs.matching_leaf]
    n_found = int(sizes.sum())
    if n_found > max_pairs:
        return None
    stats.matched_by_map += n_found
    for owner, rows in expand_ranges_in_chunks(starts, sizes, ROWS_AT_ONCE):
        found.append((leaf_pairs.matching_query[owner].int(), (~rows).int()))
    _fetch_leaves(partition, leaves, leaf_pairs.candidate_leaf)
    starts, sizes = leaves.first[leaf_pairs.candidate_leaf], leaves.count[leaf_pairs.candidate_leaf]
    for owner, rows in expand_ranges_in_chunks(starts, sizes, ROWS_AT_ONCE):
        queries, rows = _filter_rows(
            partition, cells, query, threshold, leaf_pairs.candidate_query[owner], rows, stats
        )
        found.append((queries.int(), rows.int()))
        n_found += len(rows)
        if n_found > max_pairs:
            return None
    stats.candidates += n_found
    return merge_by_query(found, len(query), partition.device)


def _fetch_leaves(partition: Partition, leaves: Level, reached: torch.Tensor) -> None:
    """Ask for the mapped coordinates of the leaves that some query value reaches."""
    if partition.pages is None or not partition.pages.missing():
        return
    distinct = torch.unique(reached)
    for _, rows in expand_ranges_in_chunks(
        leaves.first[distinct], leaves.count[distinct], ROWS_AT_ONCE
    ):
        fetch_coordinates(partition, rows)


def _filter_rows(
    partition: Partition,
    cells: GridCells,
    query: Query,
    threshold: Threshold,
    queries: torch.Tensor,
    rows: torch.Tensor,
    stats: SearchStats,
) -> CellPairs:
    """Apply L1, then L2; a row that surely matches comes back as its complement."""
    stats.vectors_touched += len(rows)
    stats.bytes_read += len(rows) * cells.mapped.shape[1] * 4
    if Lemma.PIVOT_FILTERING in threshold.lemmas:
        points = cells.mapped[rows]
        near = partition.map.near_box(
            query.mapped[queries], points, points, threshold.reach(Lemma.PIVOT_FILTERING)
        )
        queries, rows = queries[near], rows[near]
    if Lemma.PIVOT_MATCHING in threshold.lemmas:
        limit = threshold.tau - threshold.slack
        upper, possible = partition.map.upper_points(query.mapped, limit)
        if bool(possible.any()):
            points = cells.mapped[rows]
            sure = possible[queries] & partition.map.within_box(
                upper[queries], points, points, limit
            )
            stats.matched_by_map += int(sure.sum())
            rows = torch.where(sure, ~rows, rows)
    return queries, rows


def block(
    partition: Partition,
    query: QueryGrid,
    threshold: Threshold,
    stats: SearchStats,
    max_frontier: int = MAX_FRONTIER,
) -> LeafPairs:
    """Find the surviving pairs of query values and leaf cells.

    Parameters
    ----------
    partition : Partition
        Cut into a grid.
    threshold : Threshold
        Of its lemmas L3 to L6 and quick browsing act here; L6 for pivots only.
    stats : SearchStats
        Counters are added to it.
    max_frontier : int
        Cell pairs looked at together (a single pair may have more children); bounds memory to about
        ``max_frontier * P * 32`` bytes a level, besides the result.
    """
    cells: GridCells = partition.cells
    walk = _Walk(cells, partition.map, query, threshold, stats)
    matching, candidates = [], []
    if Lemma.QUICK_BROWSING in threshold.lemmas:
        candidates.append(walk.same_leaves())
    levels = len(cells.grid.levels)
    todo = [
        (0, pairs) for pairs in _all_pairs(query.grid.levels[0], cells.grid.levels[0], max_frontier)
    ]
    while todo:
        depth, pairs = todo.pop()
        if depth > 0:
            pairs = walk.children(depth - 1, *pairs)
        accepted, pairs = walk.filter_cells(depth, *pairs)
        matching += accepted
        # Cut by what the pairs will become, before they do.
        if depth + 1 < levels:
            todo += [
                (depth + 1, piece)
                for piece in _pieces(pairs, walk.n_children(depth, *pairs), max_frontier)
            ]
            continue
        for piece in _pieces(pairs, query.grid.leaves.count[pairs[0]], max_frontier):
            whole, candidate = walk.filter_leaves(*piece)
            matching.append(whole)
            candidates.append(candidate)
    return LeafPairs(
        *_concatenate(matching, partition.device), *_concatenate(candidates, partition.device)
    )


@dataclass(frozen=True)
class _Walk:
    """One walk down both grids; the lemmas as masks."""

    cells: GridCells
    map: PivotMap | ProjectionMap
    query: QueryGrid
    threshold: Threshold
    stats: SearchStats

    @property
    def accept(self) -> float:
        """Bounds from above at most this long are matches."""
        return self.threshold.tau - self.threshold.slack

    def filter_cells(
        self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor
    ) -> tuple[list[CellPairs], CellPairs]:
        """Apply L6, then L4, to pairs of one level.

        The pairs that L6 matches are returned as (query value, leaf) pairs.
        """
        query_level, level = self.query.grid.levels[depth], self.cells.grid.levels[depth]
        self.stats.box_pairs += len(cells)
        accepted: list[CellPairs] = []
        if Lemma.CELL_CELL_MATCHING in self.threshold.lemmas and isinstance(self.map, PivotMap):
            # The largest coordinate of the query cell stands for the smallest of its regions RQR
            # (intersection over its vectors).
            whole = (query_level.upper[query_cells] + level.upper[cells] <= self.accept).any(1)
            if bool(whole.any()):
                accepted.append(self._all_below(depth, query_cells[whole], cells[whole]))
                query_cells, cells = query_cells[~whole], cells[~whole]
        if Lemma.CELL_CELL_FILTERING in self.threshold.lemmas:
            reach = self.threshold.reach(Lemma.CELL_CELL_FILTERING)
            near = (level.lower[cells] <= query_level.upper[query_cells] + reach).all(1)
            near &= (level.upper[cells] >= query_level.lower[query_cells] - reach).all(1)
            query_cells, cells = query_cells[near], cells[near]
        return accepted, (query_cells, cells)

    def n_children(
        self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor
    ) -> torch.Tensor:
        """Return the number of pairs that each pair has on the next level."""
        return (
            self.query.grid.levels[depth].count[query_cells]
            * self.cells.grid.levels[depth].count[cells]
        )

    def children(self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor) -> CellPairs:
        """Pair every child of the query cell with every child of the cell."""
        return _products(
            self.query.grid.levels[depth], query_cells, self.cells.grid.levels[depth], cells
        )

    def filter_leaves(
        self, query_cells: torch.Tensor, cells: torch.Tensor
    ) -> tuple[CellPairs, CellPairs]:
        """Apply L5, then L3, for each query value of the leaf pairs that are left."""
        query_leaves, leaves = self.query.grid.leaves, self.cells.grid.leaves
        if Lemma.QUICK_BROWSING in self.threshold.lemmas:
            fresh = query_leaves.codes[query_cells] != leaves.codes[cells]
            query_cells, cells = query_cells[fresh], cells[fresh]
        owner, member = expand_ranges(
            query_leaves.first[query_cells], query_leaves.count[query_cells]
        )
        values, cells = self.query.order[member], cells[owner]
        self.stats.box_pairs += len(cells)
        points, lower, upper = self.query.mapped[values], leaves.lower[cells], leaves.upper[cells]
        whole = torch.zeros(len(cells), dtype=torch.bool, device=cells.device)
        if Lemma.VECTOR_CELL_MATCHING in self.threshold.lemmas:
            turned, possible = self.map.upper_points(self.query.mapped, self.accept)
            whole = possible[values] & self.map.within_box(
                turned[values], lower, upper, self.accept
            )
        keep = ~whole
        if Lemma.VECTOR_CELL_FILTERING in self.threshold.lemmas:
            keep &= self.map.near_box(
                points, lower, upper, self.threshold.reach(Lemma.VECTOR_CELL_FILTERING)
            )
        return (values[whole], cells[whole]), (values[keep], cells[keep])

    def same_leaves(self) -> CellPairs:
        """Pair each query leaf with the index leaf of the same code, if there is one.

        This is quick browsing.
        """
        query_leaves, leaves = self.query.grid.leaves, self.cells.grid.leaves
        position = torch.searchsorted(leaves.codes, query_leaves.codes).clamp(max=len(leaves) - 1)
        query_cells = torch.nonzero(leaves.codes[position] == query_leaves.codes)[:, 0]
        owner, member = expand_ranges(
            query_leaves.first[query_cells], query_leaves.count[query_cells]
        )
        return self.query.order[member], position[query_cells][owner]

    def _all_below(self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor) -> CellPairs:
        """Pair every query value below the query cells with every leaf below the cells."""
        for level in range(depth, len(self.cells.grid.levels) - 1):
            query_cells, cells = self.children(level, query_cells, cells)
        query_leaves, leaves = self.query.grid.leaves, self.cells.grid.leaves
        if Lemma.QUICK_BROWSING in self.threshold.lemmas:
            # Those pairs are candidates already, and a pair must not be in both lists.
            fresh = query_leaves.codes[query_cells] != leaves.codes[cells]
            query_cells, cells = query_cells[fresh], cells[fresh]
        owner, member = expand_ranges(
            query_leaves.first[query_cells], query_leaves.count[query_cells]
        )
        return self.query.order[member], cells[owner]


def _all_pairs(query_level: Level, level: Level, limit: int) -> list[CellPairs]:
    """Pair every cell of the query with every cell, about `limit` pairs at a time."""
    every = torch.arange(len(level), device=level.codes.device)
    parts = torch.split(
        torch.arange(len(query_level), device=level.codes.device),
        max(1, limit // max(1, len(level))),
    )
    return [(part.repeat_interleave(len(level)), every.repeat(len(part))) for part in parts]


def _pieces(pairs: CellPairs, sizes: torch.Tensor, limit: int) -> list[CellPairs]:
    """Cut pairs into runs whose sizes sum to at most `limit` and one pair's size."""
    if int(sizes.sum()) <= limit:
        return [pairs]
    lengths = run_lengths(sizes, limit)
    return list(zip(torch.split(pairs[0], lengths), torch.split(pairs[1], lengths), strict=True))


def _products(
    query_level: Level, query_cells: torch.Tensor, level: Level, cells: torch.Tensor
) -> CellPairs:
    """Pair the children of both sides of every pair."""
    n_children = level.count[cells]
    owner, position = expand_ranges(
        torch.zeros_like(n_children), query_level.count[query_cells] * n_children
    )
    query_child = query_level.first[query_cells][owner] + torch.div(
        position, n_children[owner], rounding_mode="floor"
    )
    return query_child, level.first[cells][owner] + position % n_children[owner]


def _concatenate(pairs: list[CellPairs], device: torch.device) -> CellPairs:
    if not pairs:
        nothing = torch.zeros(0, dtype=torch.int64, device=device)
        return nothing, nothing
    return torch.cat([left for left, _ in pairs]), torch.cat([right for _, right in pairs])
