"""Blocking: which query values can match something in which leaf cells, without any distance.

Algorithm 1 of the paper walks the query's grid and the index's grid together. Here a level is one
step: a frontier of (query cell, index cell) pairs, each lemma a mask over it, children by range
expansion. A frontier beyond its limit is cut and finished piece by piece, so memory stays bounded.
`pexeso.engine.layout.grid_loops` takes the same steps by compiled loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

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

_SAMPLED = 64
"""Of so many pairs of a query value and a leaf, one tells how many rows will be left."""

_LEAST_SHARE = 1 / 16
"""Runs are cut as if at least this share were left, so that room for their rows stays bounded."""

_MARGIN = 0.9
"""Runs are cut for this share of the pairs that may be held, as a sample is not exact."""

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

    @property
    def both(self) -> tuple[CellPairs, CellPairs]:
        """Matching and candidate pairs."""
        return (
            (self.matching_query, self.matching_leaf),
            (self.candidate_query, self.candidate_leaf),
        )


@dataclass(frozen=True)
class QueryGrid:
    """The grid over the mapped query values, with the same cell borders as the index.

    Attributes
    ----------
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
    partition: Partition,
    query: Query,
    threshold: Threshold,
    max_pairs: int,
    stats: SearchStats,
    walk_type: type[Walk],
) -> Iterator[tuple[slice, Pairs]]:
    """Find candidate pairs in a grid: blocking, then Lemmas 1 and 2.

    The interface is that of `pexeso.engine.layout.partition.Cells.candidates`. Query values walk
    together, those with too many leaves in halves. They are cut into as few runs as hold their
    pairs, since a column is given up the sooner, the more values are known together.
    """
    todo = [slice(0, len(query))]
    while todo:
        some = todo.pop()
        grid = query_grid(partition.cells, query.mapped[some])
        walk = walk_type(partition.cells, partition.map, grid, threshold, stats)
        leaf_pairs = block(walk, max_pairs=max_pairs if _is_many(some) else None)
        if leaf_pairs is None:
            todo += _halves(some)
            continue
        stats.candidate_pairs += len(leaf_pairs.candidate_leaf)
        stats.matching_pairs += len(leaf_pairs.matching_leaf)
        _fetch_leaves(partition, walk.cells.grid.leaves, leaf_pairs.candidate_leaf)
        for run, pairs in _runs_of_pairs(walk, leaf_pairs, max_pairs * walk.pairs_for_one):
            stats.candidates += len(pairs)
            yield slice(some.start + run.start, some.start + run.stop), pairs


def _runs_of_pairs(
    walk: Walk, leaf_pairs: LeafPairs, max_pairs: int
) -> Iterator[tuple[slice, Pairs]]:
    """Yield runs of query values whose pairs are about as many as may be held.

    How many of the rows in their leaves will be left is told by a sample. A run that turns out to
    have too many pairs is halved.
    """
    sizes = walk.rows_reached(leaf_pairs)
    limit = max_pairs
    if int(sizes.sum()) > max_pairs:
        share = max(_share_left(walk, leaf_pairs), _LEAST_SHARE)
        limit = int(_MARGIN * max_pairs / share)
    todo = list(_runs_within(sizes, limit))[::-1]
    while todo:
        run = todo.pop()
        counted = SearchStats()
        pairs = replace(walk, stats=counted).pairs(leaf_pairs, run, sizes[run])
        if len(pairs) > max_pairs and _is_many(run):
            todo += _halves(run)
            continue
        walk.stats.add(counted)
        yield run, pairs


def _is_many(run: slice) -> bool:
    return run.stop - run.start > 1


def _halves(run: slice) -> list[slice]:
    """Return the second half, then the first, as runs are taken from the end of a list."""
    middle = (run.start + run.stop) // 2
    return [slice(middle, run.stop), slice(run.start, middle)]


def _share_left(walk: Walk, leaf_pairs: LeafPairs) -> float:
    """Return the share of the rows in leaves that L1 leaves, of an even sample of the leaves."""
    every = slice(None, None, _SAMPLED)
    some = LeafPairs(*(side[every] for pair in leaf_pairs.both for side in pair))
    trial = replace(walk, stats=SearchStats())
    sizes = trial.rows_reached(some)
    n_left = len(trial.pairs(some, slice(0, len(sizes)), sizes))
    return max(1, n_left) / max(1, int(sizes.sum()))


def _runs_within(sizes: torch.Tensor, limit: int) -> Iterator[slice]:
    """Cut items into runs of one item, or of sizes that sum to at most `limit`."""
    reached, begin, before = torch.cumsum(sizes, 0), 0, 0
    while begin < len(sizes):
        end = int(torch.searchsorted(reached, before + limit, right=True))
        end = max(end, begin + 1)
        yield slice(begin, end)
        begin, before = end, int(reached[end - 1])


def _fetch_leaves(partition: Partition, leaves: Level, reached: torch.Tensor) -> None:
    """Ask for the mapped coordinates of the leaves that some query value reaches."""
    if partition.pages is None or not partition.pages.missing():
        return
    distinct = torch.unique(reached)
    for _, rows in expand_ranges_in_chunks(
        leaves.first[distinct], leaves.count[distinct], ROWS_AT_ONCE
    ):
        fetch_coordinates(partition, rows)


def block(
    walk: Walk, max_frontier: int = MAX_FRONTIER, max_pairs: int | None = None
) -> LeafPairs | None:
    """Find the surviving pairs of query values and leaf cells.

    Parameters
    ----------
    max_frontier : int
        Cell pairs looked at together (a single pair may have more children); bounds memory to about
        ``max_frontier * P * 32`` bytes a level, besides the result.
    """
    query, levels = walk.query.grid, walk.cells.grid.levels
    matching, candidates = [], []
    n_found = 0
    # Taken from the end, so that leaves come in their order.
    todo = [(0, pairs) for pairs in _all_pairs(query.levels[0], levels[0], max_frontier)][::-1]
    while todo:
        depth, pairs = todo.pop()
        accepted, pairs = walk.near_cells(depth, *pairs)
        matching += accepted
        n_found += sum(len(leaves) for _, leaves in accepted)
        # Cut by what the pairs will become, before they do.
        if depth + 1 < len(levels):
            todo += [
                (depth + 1, piece)
                for piece in pieces(pairs, walk.n_children(depth, *pairs), max_frontier)[::-1]
            ]
            continue
        for piece in pieces(pairs, query.leaves.count[pairs[0]], max_frontier):
            whole, candidate = walk.filter_leaves(*piece)
            matching.append(whole)
            candidates.append(candidate)
            n_found += len(whole[1]) + len(candidate[1])
        if max_pairs is not None and n_found > max_pairs:
            return None
    near_pairs = _concatenate(candidates, walk.device)
    if Lemma.QUICK_BROWSING in walk.threshold.lemmas:
        near_pairs = walk.merge(near_pairs, walk.same_leaves())
    return LeafPairs(*_concatenate(matching, walk.device), *near_pairs)


@dataclass(frozen=True)
class Walk:
    """One walk down both grids, and to the rows of the leaves; the lemmas as masks."""

    cells: GridCells
    map: PivotMap | ProjectionMap
    query: QueryGrid
    threshold: Threshold
    stats: SearchStats

    pairs_for_one: ClassVar[int] = 1

    @property
    def device(self) -> torch.device:
        """Where the cells are."""
        return self.cells.mapped.device

    @property
    def accept(self) -> float:
        """Bounds from above at most this long are matches."""
        return self.threshold.tau - self.threshold.slack

    def near_cells(
        self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor
    ) -> tuple[list[CellPairs], CellPairs]:
        """Apply L6, then L4, to the children of pairs of the level above.

        At the top the pairs themselves are examined. Those that L6 matches are returned as (query
        value, leaf) pairs.
        """
        if depth > 0:
            query_cells, cells = self.children(depth - 1, query_cells, cells)
        query_level, level = self.query.grid.levels[depth], self.cells.grid.levels[depth]
        self.stats.box_pairs += len(cells)
        accepted: list[CellPairs] = []
        if Lemma.CELL_CELL_MATCHING in self.threshold.lemmas and isinstance(self.map, PivotMap):
            # The largest coordinate of the query cell stands for the smallest of its regions RQR
            # (intersection over its vectors).
            whole = (query_level.upper[query_cells] + level.upper[cells] <= self.accept).any(1)
            if bool(whole.any()):
                accepted.append(self.all_below(depth, query_cells[whole], cells[whole]))
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

    def merge(self, pairs: CellPairs, others: CellPairs) -> CellPairs:
        """Put other pairs of a query value and a leaf among those that were found."""
        return _concatenate([pairs, others], self.device)

    def rows_reached(self, leaf_pairs: LeafPairs) -> torch.Tensor:
        """Return how many rows the leaves of each query value have, int64 (n,)."""
        count = self.cells.grid.leaves.count
        n_values = len(self.query.mapped)
        reached = torch.zeros(n_values, dtype=torch.float64, device=self.device)
        for values, leaves in leaf_pairs.both:
            reached += torch.bincount(values, count[leaves], minlength=n_values)
        return reached.long()

    def pairs(self, leaf_pairs: LeafPairs, run: slice, sizes: torch.Tensor) -> Pairs:
        """Apply L1, then L2, to the rows of the leaves of a run of query values.

        Parameters
        ----------
        sizes : int64 (n,)
            Their rows, as `rows_reached` counts them.
        """
        leaves = self.cells.grid.leaves
        matching, candidates = (_pairs_of(run, pairs) for pairs in leaf_pairs.both)
        parts: list[CellPairs] = []
        starts, counts = leaves.first[matching[1]], leaves.count[matching[1]]
        self.stats.matched_by_map += int(counts.sum())
        for owner, rows in expand_ranges_in_chunks(starts, counts, ROWS_AT_ONCE):
            parts.append((matching[0][owner].int(), (~rows).int()))
        parts += self._filter_rows(*candidates)
        parts = [(values - run.start, rows) for values, rows in parts]
        return merge_by_query(parts, run.stop - run.start, self.device)

    def _filter_rows(self, queries: torch.Tensor, leaves: torch.Tensor) -> Iterator[CellPairs]:
        """Apply L1, then L2, to the rows of leaves, about `ROWS_AT_ONCE` rows at a time.

        Pairs of a query value and a row are int32; a row that surely matches comes as its
        complement.
        """
        level, mapped = self.cells.grid.leaves, self.cells.mapped
        starts, sizes = level.first[leaves], level.count[leaves]
        for owner, rows in expand_ranges_in_chunks(starts, sizes, ROWS_AT_ONCE):
            values = queries[owner]
            self.count_rows(len(rows))
            if Lemma.PIVOT_FILTERING in self.threshold.lemmas:
                points, reach = mapped[rows], self.threshold.reach(Lemma.PIVOT_FILTERING)
                near = self.map.near_box(self.query.mapped[values], points, points, reach)
                values, rows = values[near], rows[near]
            if Lemma.PIVOT_MATCHING in self.threshold.lemmas:
                upper, possible = self.map.upper_points(self.query.mapped, self.accept)
                if bool(possible.any()):
                    points = mapped[rows]
                    sure = possible[values] & self.map.within_box(
                        upper[values], points, points, self.accept
                    )
                    self.stats.matched_by_map += int(sure.sum())
                    rows = torch.where(sure, ~rows, rows)
            yield values.int(), rows.int()

    def count_rows(self, n_rows: int) -> None:
        """Add rows whose mapped coordinates are read to the counters."""
        self.stats.vectors_touched += n_rows
        self.stats.bytes_read += n_rows * self.cells.mapped.shape[1] * 4

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

    def all_below(self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor) -> CellPairs:
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
    """Pair every cell with every cell of the query, about `limit` pairs at a time, by cell."""
    every = torch.arange(len(query_level), device=level.codes.device)
    parts = torch.split(
        torch.arange(len(level), device=level.codes.device),
        max(1, limit // max(1, len(query_level))),
    )
    return [(every.repeat(len(part)), part.repeat_interleave(len(every))) for part in parts]


def pieces(pairs: CellPairs, sizes: torch.Tensor, limit: int) -> list[CellPairs]:
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


def _pairs_of(run: slice, pairs: CellPairs) -> CellPairs:
    """Keep the pairs of a run of query values."""
    mask = (pairs[0] >= run.start) & (pairs[0] < run.stop)
    return pairs[0][mask], pairs[1][mask]


def _concatenate(pairs: list[CellPairs], device: torch.device) -> CellPairs:
    if not pairs:
        nothing = torch.zeros(0, dtype=torch.int64, device=device)
        return nothing, nothing
    return torch.cat([left for left, _ in pairs]), torch.cat([right for _, right in pairs])
