"""The published walk: which query values can match something in which leaf cells, and which rows.

Algorithm 1 of the paper walks the query's grid and the index's grid together. Here a level is one
step over a frontier of (query cell, index cell) pairs, by compiled loops. A frontier beyond its
limit is cut and finished piece by piece, so memory stays bounded. Pairs come cell by cell, in the
order of the cells, so that each query value meets rows in their order: what decides pairs then
reads a stored vector once for many values (`decide` of `pexeso/engine/kernels/count.pxi`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from pexeso.engine.kernel import Pairs, Query, Threshold
from pexeso.engine.lists import offsets_of, ranges
from pexeso.engine.maps import PivotMap, ProjectionMap, square_with_room
from pexeso.engine.published.grid import Grid, GridCells, Level, build_grid, leaf_codes
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import Lemma
from pexeso.runtime.compiled import compiled
from pexeso.runtime.ranges import runs_within

loops = compiled("pexeso.engine.published.loops")

MAX_FRONTIER = 1 << 20

# Rows are written where they stay, which takes less than half of what is allowed for a pair.
PAIRS_FOR_ONE = 2

_ROWS_CHUNK_SIZE = 1 << 20
_SAMPLED = 64  # of so many pairs of a query value and a leaf, one says how many rows will be left
_LEAST_SHARE = 1 / 16  # runs are cut as if this share were left, so that room for rows is bounded
_MARGIN = 0.9  # of the pairs that may be held, as a sample is not exact
_EVERYTHING = loops.Bounds(np.inf, False, 0.0, False)

CellPairs = tuple[np.ndarray, np.ndarray]  # (query cell or value, cell), int32 (p,) each


class LeafPairs(NamedTuple):
    """Pairs of a query value and a leaf cell that survive, int32 each; none occurs twice.

    Every value in a matching leaf matches the query value; some value in a candidate leaf may.
    """

    matching_query: np.ndarray
    matching_leaf: np.ndarray
    candidate_query: np.ndarray
    candidate_leaf: np.ndarray


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
    query: Query, max_pairs: int, stats: SearchStats
) -> Iterator[tuple[slice, Pairs]]:
    """Find candidate pairs in a grid: blocking, then Lemmas 1 and 2.

    Query values walk together, those with too many leaves in halves. They are cut into as few runs
    as hold their pairs, since a column is given up the sooner, the more values are known together.
    """
    partition, todo = query.partition, [slice(0, len(query))]
    while todo:
        some = todo.pop()
        grid = query_grid(partition.cells, query.mapped[some])
        walk = Walk(partition.cells, partition.map, grid, query.threshold, stats)
        leaf_pairs = block(walk, max_pairs=max_pairs if _is_many(some) else None)
        if leaf_pairs is None:
            todo += _halves(some)
            continue
        stats.candidate_pairs += len(leaf_pairs.candidate_leaf)
        stats.matching_pairs += len(leaf_pairs.matching_leaf)
        if partition.pages is not None and partition.pages.missing():
            distinct = np.unique(leaf_pairs.candidate_leaf)
            rows = ranges(walk.leaf_first[distinct], walk.leaf_count[distinct])
            for chunk in torch.split(torch.from_numpy(rows), _ROWS_CHUNK_SIZE):
                partition.pages.want("mapped", chunk)
        for run, pairs in _runs_of_pairs(walk, leaf_pairs, max_pairs * PAIRS_FOR_ONE):
            stats.candidates += len(pairs)
            yield slice(some.start + run.start, some.start + run.stop), pairs


def _runs_of_pairs(
    walk: Walk, leaf_pairs: LeafPairs, max_pairs: int
) -> Iterator[tuple[slice, Pairs]]:
    """Yield runs of query values whose pairs are about as many as may be held.

    A sample says how many of the rows in their leaves will be left. A run that turns out to have
    too many pairs is halved.
    """
    sizes = walk.rows_reached(leaf_pairs)
    limit = max_pairs
    if int(sizes.sum()) > max_pairs:
        some = LeafPairs(*(side[::_SAMPLED].copy() for side in leaf_pairs))
        trial = replace(walk, stats=SearchStats())
        reached = trial.rows_reached(some)
        n_left = len(trial.pairs(some, slice(0, len(reached)), reached))
        share = max(1, n_left) / max(1, int(reached.sum()))
        limit = int(_MARGIN * max_pairs / max(share, _LEAST_SHARE))
    todo = list(runs_within(sizes, limit))[::-1]
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


def block(
    walk: Walk, max_frontier: int = MAX_FRONTIER, max_pairs: int | None = None
) -> LeafPairs | None:
    """Find the surviving pairs of query values and leaf cells; None where they are too many.

    At most `max_frontier` cell pairs are examined together, though a single pair may have more
    children: that bounds memory to about ``max_frontier * P * 32`` bytes a level.
    """
    matching, candidates = [], []
    n_found = 0
    # Taken from the end, so that leaves come in their order.
    todo = [(0, pairs) for pairs in walk.top_pairs(max_frontier)][::-1]
    while todo:
        depth, pairs = todo.pop()
        accepted, pairs = walk.near_cells(depth, pairs)
        matching += accepted
        n_found += sum(len(leaves) for _, leaves in accepted)
        # Cut by what the pairs will become, before they do.
        if depth + 1 < len(walk.cells.grid.levels):
            parts = _pieces(pairs, walk.n_children(depth, pairs), max_frontier)
            todo += [(depth + 1, piece) for piece in parts[::-1]]
            continue
        n_members = walk.query.grid.leaves.count.numpy()[pairs[0]]
        for piece in _pieces(pairs, n_members, max_frontier):
            whole, candidate = walk.filter_leaves(piece)
            matching.append(whole)
            candidates.append(candidate)
            n_found += len(whole[1]) + len(candidate[1])
        if max_pairs is not None and n_found > max_pairs:
            return None
    near_pairs = _concatenate(candidates)
    if Lemma.QUICK_BROWSING in walk.threshold.lemmas:
        same = walk.same_leaves()
        merged = _room(len(near_pairs[1]) + len(same[1]))
        loops.merge_by_leaf(*near_pairs, *same, merged)
        near_pairs = (merged[0], merged[1])
    return LeafPairs(*_concatenate(matching), *near_pairs)


@dataclass(frozen=True)
class Walk:
    """One walk down both grids, and to the rows of the leaves, on the CPU, in one thread."""

    cells: GridCells
    map: PivotMap | ProjectionMap
    query: QueryGrid
    threshold: Threshold
    stats: SearchStats

    @cached_property
    def leaf_first(self) -> np.ndarray:
        return self.cells.grid.leaves.first.numpy()

    @cached_property
    def leaf_count(self) -> np.ndarray:
        return self.cells.grid.leaves.count.numpy()

    @cached_property
    def upper_points(self) -> np.ndarray:
        """Query values as the upper bound of distances takes them."""
        return self.map.upper_points(self.query.mapped, 0.0)[0].numpy()

    def bounds(self, filtering: Lemma, matching: Lemma) -> Any:
        reach, accept = self.threshold.reach(filtering), self.threshold.tau - self.threshold.slack
        projected = isinstance(self.map, ProjectionMap)
        if projected:
            reach = square_with_room(reach)
            accept = accept * accept * (1.0 - 2.0**-16) if accept >= 0 else -1.0
        matches = matching in self.threshold.lemmas
        return loops.Bounds(reach, matches, accept, projected)

    def top_pairs(self, limit: int) -> Iterator[CellPairs]:
        """Pair every cell with every cell of the query, about `limit` pairs at a time, by cell."""
        every = np.arange(len(self.query.grid.levels[0]), dtype=np.int32)
        step, n_cells = max(1, limit // max(1, len(every))), len(self.cells.grid.levels[0])
        for begin in range(0, n_cells, step):
            part = np.arange(begin, min(begin + step, n_cells), dtype=np.int32)
            yield np.tile(every, len(part)), np.repeat(part, len(every))

    def near_cells(self, depth: int, pairs: CellPairs) -> tuple[list[CellPairs], CellPairs]:
        """Apply L6, then L4, to the children of pairs of the level above.

        At the top the pairs themselves are examined. Those that L6 matches are returned as (query
        value, leaf) pairs. Axes are compared one by one, under a projection too, where nothing is
        matched.
        """
        reach = self.threshold.reach(Lemma.CELL_CELL_FILTERING)
        matches = Lemma.CELL_CELL_MATCHING in self.threshold.lemmas
        accept = self.threshold.tau - self.threshold.slack
        bounds = loops.Bounds(reach, matches and isinstance(self.map, PivotMap), accept, False)
        n_pairs, whole, near = self._children(depth, pairs, bounds)
        self.stats.box_pairs += n_pairs
        return [self._all_below(depth, whole)] if len(whole[0]) else [], near

    def n_children(self, depth: int, pairs: CellPairs) -> np.ndarray:
        query_level, level = self.query.grid.levels[depth], self.cells.grid.levels[depth]
        return query_level.count.numpy()[pairs[0]] * level.count.numpy()[pairs[1]]

    def _children(
        self, depth: int, pairs: CellPairs, bounds: Any
    ) -> tuple[int, CellPairs, CellPairs]:
        """Return how many children pairs have, those that match, and those that may."""
        query_level, level = self.query.grid.levels[depth], self.cells.grid.levels[depth]
        if depth > 0:
            parents = (self.query.grid.levels[depth - 1], self.cells.grid.levels[depth - 1])
            runs = [(parent.first.numpy(), parent.count.numpy()) for parent in parents]
            n_pairs = int(self.n_children(depth - 1, pairs).sum())
        else:  # every cell is the only child of itself
            runs = [
                (np.arange(len(side)), np.ones(len(side), np.int64))
                for side in (query_level, level)
            ]
            n_pairs = len(pairs[1])
        whole, near = _room(n_pairs), _room(n_pairs)
        n_whole, n_near = loops.cells_near(
            *pairs, *runs[0], *runs[1], _boxes(query_level), _boxes(level), bounds, whole, near
        )
        return n_pairs, _copied(whole, n_whole), _copied(near, n_near)

    def filter_leaves(self, pairs: CellPairs) -> tuple[CellPairs, CellPairs]:
        """Apply L5, then L3, for each query value of the leaf pairs that are left."""
        bounds = self.bounds(Lemma.VECTOR_CELL_FILTERING, Lemma.VECTOR_CELL_MATCHING)
        n_tests, whole, near = self._leaf_values(pairs, bounds)
        self.stats.box_pairs += n_tests
        return whole, near

    def _leaf_values(self, pairs: CellPairs, bounds: Any) -> tuple[int, CellPairs, CellPairs]:
        query_leaves, leaves = self.query.grid.leaves, self.cells.grid.leaves
        n_pairs = int(query_leaves.count.numpy()[pairs[0]].sum())
        whole, near = _room(n_pairs), _room(n_pairs)
        n_tests, n_whole, n_near = loops.leaves_near(
            *pairs, query_leaves.codes.numpy(), leaves.codes.numpy(),
            Lemma.QUICK_BROWSING in self.threshold.lemmas, query_leaves.first.numpy(),
            query_leaves.count.numpy(), self.query.order.numpy(), self.query.mapped.numpy(),
            self.upper_points, _boxes(leaves), bounds, whole, near,
        )  # fmt: skip
        return n_tests, _copied(whole, n_whole), _copied(near, n_near)

    def _all_below(self, depth: int, pairs: CellPairs) -> CellPairs:
        """Pair every query value below the query cells with every leaf below the cells."""
        for level in range(depth + 1, len(self.cells.grid.levels)):
            _, _, pairs = self._children(level, pairs, _EVERYTHING)
        return self._leaf_values(pairs, _EVERYTHING)[2]

    def same_leaves(self) -> CellPairs:
        """Pair the values of each query leaf with the index leaf of the same code (QB)."""
        query_leaves, codes = self.query.grid.leaves, self.cells.grid.leaves.codes.numpy()
        query_codes = query_leaves.codes.numpy()
        position = np.searchsorted(codes, query_codes).clip(max=len(codes) - 1)
        shared = np.flatnonzero(codes[position] == query_codes)
        count = query_leaves.count.numpy()[shared]
        members = ranges(query_leaves.first.numpy()[shared], count)
        leaves = np.repeat(position[shared], count)
        return self.query.order.numpy()[members].astype(np.int32), leaves.astype(np.int32)

    def rows_reached(self, leaf_pairs: LeafPairs) -> np.ndarray:
        """Return how many rows the leaves of each query value have, int64 (n,)."""
        reached = np.zeros(len(self.query.mapped), np.int64)
        for pairs in (leaf_pairs[:2], leaf_pairs[2:]):
            loops.add_rows_reached(*pairs, self.leaf_count, reached)
        return reached

    def pairs(self, leaf_pairs: LeafPairs, run: slice, sizes: np.ndarray) -> Pairs:
        """Apply L1, then L2, to the rows of the leaves of a run of query values.

        `sizes` are their rows, as `rows_reached` counts them.
        """
        offsets = offsets_of(sizes)
        rows = torch.empty(int(offsets[-1]), dtype=torch.int32).numpy()
        cursors = offsets[:-1].copy()
        places = (self.leaf_first, self.leaf_count, run.start, run.stop)
        n_sure = loops.rows_below(*leaf_pairs[:2], *places, cursors, rows)
        bounds = self.bounds(Lemma.PIVOT_FILTERING, Lemma.PIVOT_MATCHING)
        n_rows, n_near = loops.rows_near(
            *leaf_pairs[2:], *places, self.query.mapped.numpy(), self.upper_points,
            self.cells.mapped.numpy(), bounds, cursors, rows,
        )  # fmt: skip
        self.stats.vectors_touched += n_rows
        self.stats.bytes_read += n_rows * self.cells.mapped.shape[1] * 4
        self.stats.matched_by_map += n_sure + n_near
        n_pairs = loops.close_gaps(offsets, cursors, rows)
        return Pairs(torch.from_numpy(offsets), torch.from_numpy(rows[:n_pairs]))


def _boxes(level: Level) -> Any:
    return loops.Boxes(level.lower.numpy(), level.upper.numpy())


def _room(n_pairs: int) -> np.ndarray:
    """Return room for pairs, int32 (2, n), mostly pages that are never touched."""
    return torch.empty((2, n_pairs), dtype=torch.int32).numpy()


def _copied(room: np.ndarray, n_pairs: int) -> CellPairs:
    """Return copies of the pairs found, so that the room is let go of."""
    left, right = room[:, :n_pairs].copy()
    return left, right


def _pieces(pairs: CellPairs, sizes: np.ndarray, limit: int) -> list[CellPairs]:
    before = np.cumsum(sizes) - sizes
    cuts = np.flatnonzero(np.diff(before // limit)) + 1
    return list(zip(*(np.split(side, cuts) for side in pairs), strict=True))


def _concatenate(pairs: list[CellPairs]) -> CellPairs:
    nothing = np.zeros(0, np.int32)
    left, right = (np.concatenate(side) for side in zip((nothing, nothing), *pairs, strict=True))
    return left, right
