"""Compiled loops of the published walk, down the grids of a query and a partition.

They take the steps of `pexeso.engine.layout.blocking.Walk` and compare the same float32 numbers, so
that pairs and counters are the same. Where arrays hold every pair of children and every row of a
leaf before most are dropped, loops keep only what is left. Pairs come cell by cell, in the order of
the cells, so that each query value meets rows in their order: what decides pairs then reads a
stored vector once for many values (`pexeso.engine.kernels.numba.counts.decide`).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import torch

from pexeso.engine.interface import Pairs
from pexeso.engine.layout.blocking import CellPairs, LeafPairs, Walk
from pexeso.engine.lemmas import Lemma
from pexeso.runtime.jit import loop


class Boxes(NamedTuple):
    """Boxes float32 (c, P), or points as boxes."""

    lower: np.ndarray
    upper: np.ndarray


class Bounds(NamedTuple):
    """What loops compare with: boxes apart by more than `reach` do not match.

    Where `matches`, those with one pivot no further than `accept` from all vectors of both do.
    """

    reach: np.float32
    matches: bool
    accept: np.float32


class CompiledWalk(Walk):
    """The published walk over pivots by compiled loops, on the CPU, in one thread.

    Rows are written where they stay, which takes less than half of what is allowed for a pair.
    """

    pairs_for_one: ClassVar[int] = 2

    def near_cells(
        self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor
    ) -> tuple[list[CellPairs], CellPairs]:
        """Apply L6, then L4, to the children of pairs of the level above."""
        query_level, level = self.query.grid.levels[depth], self.cells.grid.levels[depth]
        if depth > 0:
            parents = (self.query.grid.levels[depth - 1], self.cells.grid.levels[depth - 1])
            runs = [(parent.first.numpy(), parent.count.numpy()) for parent in parents]
            n_pairs = int(self.n_children(depth - 1, query_cells, cells).sum())
        else:
            # Every cell is the only child of itself.
            runs = [
                (np.arange(len(side)), np.ones(len(side), np.int64))
                for side in (query_level, level)
            ]
            n_pairs = len(cells)
        self.stats.box_pairs += n_pairs
        whole, near = _room(n_pairs), _room(n_pairs)
        n_whole, n_near = cells_near(
            query_cells.numpy(),
            cells.numpy(),
            *runs[0],
            *runs[1],
            Boxes(query_level.lower.numpy(), query_level.upper.numpy()),
            Boxes(level.lower.numpy(), level.upper.numpy()),
            self._bounds(Lemma.CELL_CELL_FILTERING, Lemma.CELL_CELL_MATCHING),
            whole,
            near,
        )
        accepted = [self.all_below(depth, *_copied_pairs(whole, n_whole))] if n_whole else []
        return accepted, _copied_pairs(near, n_near)

    def filter_leaves(
        self, query_cells: torch.Tensor, cells: torch.Tensor
    ) -> tuple[CellPairs, CellPairs]:
        """Apply L5, then L3, for each query value of the leaf pairs that are left."""
        query_leaves, leaves = self.query.grid.leaves, self.cells.grid.leaves
        n_pairs = int(query_leaves.count[query_cells].sum())
        whole, near = _room(n_pairs), _room(n_pairs)
        n_tests, n_whole, n_near = leaves_near(
            query_cells.numpy(),
            cells.numpy(),
            query_leaves.codes.numpy(),
            leaves.codes.numpy(),
            Lemma.QUICK_BROWSING in self.threshold.lemmas,
            query_leaves.first.numpy(),
            query_leaves.count.numpy(),
            self.query.order.numpy(),
            self.query.mapped.numpy(),
            Boxes(leaves.lower.numpy(), leaves.upper.numpy()),
            self._bounds(Lemma.VECTOR_CELL_FILTERING, Lemma.VECTOR_CELL_MATCHING),
            whole,
            near,
        )
        self.stats.box_pairs += n_tests
        return _copied_pairs(whole, n_whole), _copied_pairs(near, n_near)

    def merge(self, pairs: CellPairs, others: CellPairs) -> CellPairs:
        """Merge pairs, both in the order of their leaves, or nearly so."""
        room = _room(len(pairs[1]) + len(others[1]))
        merge_by_leaf(*_arrays(pairs), *_arrays(others), room)
        left, right = torch.from_numpy(room)
        return left, right

    def rows_reached(self, leaf_pairs: LeafPairs) -> torch.Tensor:
        """Return how many rows the leaves of each query value have, int64 (n,)."""
        count = self.cells.grid.leaves.count.numpy()
        reached = np.zeros(len(self.query.mapped), np.int64)
        for pairs in leaf_pairs.both:
            add_rows_reached(*_arrays(pairs), count, reached)
        return torch.from_numpy(reached)

    def pairs(self, leaf_pairs: LeafPairs, run: slice, sizes: torch.Tensor) -> Pairs:
        """Apply L1, then L2, to the rows of the leaves of a run of query values."""
        level = self.cells.grid.leaves
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes.numpy(), out=offsets[1:])
        rows = torch.empty(int(offsets[-1]), dtype=torch.int32).numpy()
        cursors = offsets[:-1].copy()
        runs = (level.first.numpy(), level.count.numpy())
        span = (run.start, run.stop)
        matching, candidates = (_arrays(pairs) for pairs in leaf_pairs.both)
        n_sure = rows_below(*matching, *runs, *span, cursors, rows)
        n_rows, n_near = rows_near(
            *candidates,
            *runs,
            *span,
            self.query.mapped.numpy(),
            self.cells.mapped.numpy(),
            self._bounds(Lemma.PIVOT_FILTERING, Lemma.PIVOT_MATCHING),
            cursors,
            rows,
        )
        self.count_rows(n_rows)
        self.stats.matched_by_map += n_sure + n_near
        n_pairs = close_gaps(offsets, cursors, rows)
        return Pairs(torch.from_numpy(offsets), torch.from_numpy(rows[:n_pairs]))

    def _bounds(self, filtering: Lemma, matching: Lemma) -> Bounds:
        return Bounds(
            np.float32(self.threshold.reach(filtering)),
            matching in self.threshold.lemmas,
            np.float32(self.accept),
        )


def _room(n_pairs: int) -> np.ndarray:
    """Return room for pairs, int32 (2, n), mostly pages that are never touched."""
    return torch.empty((2, n_pairs), dtype=torch.int32).numpy()


def _copied_pairs(room: np.ndarray, n_pairs: int) -> CellPairs:
    """Return copies of the pairs found, so that the room is let go of."""
    left, right = torch.from_numpy(room[:, :n_pairs].copy())
    return left, right


def _arrays(pairs: CellPairs) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs as int32 arrays, which they are unless there are none."""
    return pairs[0].int().numpy(), pairs[1].int().numpy()


@loop
def is_near(boxes, i, others, j, reach):
    """Return whether no axis separates two boxes by more than `reach`."""
    near = True
    for axis in range(boxes.lower.shape[1]):
        # Both sides of every axis: what is known early saves less than a wrong guess costs.
        near &= (others.lower[j, axis] <= boxes.upper[i, axis] + reach) & (
            others.upper[j, axis] >= boxes.lower[i, axis] - reach
        )
    return near


@loop
def is_within(upper, i, other_upper, j, accept):
    """Return whether one pivot is so near to both boxes that all their vectors match."""
    for axis in range(upper.shape[1]):  # noqa: SIM110 - numba compiles no generator in `any`
        if upper[i, axis] + other_upper[j, axis] <= accept:
            return True
    return False


@loop
def cells_near(
    query_cells,
    cells,
    query_first,
    query_count,
    first,
    count,
    query_boxes,
    boxes,
    bounds,
    whole,
    near,
):
    """Keep the pairs of children that may match (L4), those apart that do (L6).

    Pairs, `whole` and `near`, are int32 (2, n); children are runs of the next level's cells. Pairs
    of the same cell follow each other, those in and those out.
    """
    n_whole, n_near, begin = 0, 0, 0
    while begin < len(cells):
        parent, end = cells[begin], begin + 1
        while end < len(cells) and cells[end] == parent:
            end += 1
        for cell in range(first[parent], first[parent] + count[parent]):
            for pair in range(begin, end):
                query_begin = query_first[query_cells[pair]]
                for query in range(query_begin, query_begin + query_count[query_cells[pair]]):
                    if bounds.matches and is_within(
                        query_boxes.upper, query, boxes.upper, cell, bounds.accept
                    ):
                        whole[0, n_whole], whole[1, n_whole] = query, cell
                        n_whole += 1
                    elif is_near(query_boxes, query, boxes, cell, bounds.reach):
                        near[0, n_near], near[1, n_near] = query, cell
                        n_near += 1
        begin = end
    return n_whole, n_near


@loop
def leaves_near(
    query_cells,
    cells,
    query_codes,
    codes,
    quick,
    query_first,
    query_count,
    order,
    mapped,
    boxes,
    bounds,
    whole,
    near,
):
    """Keep pairs of a query value and a leaf that may match (L3), those apart that do (L5).

    Where `quick`, a query leaf and a leaf of the same code are passed over: they are pairs already.
    """
    points = Boxes(mapped, mapped)
    n_tests, n_whole, n_near = 0, 0, 0
    for pair in range(len(cells)):
        cell, query_cell = cells[pair], query_cells[pair]
        if quick and codes[cell] == query_codes[query_cell]:
            continue
        begin = query_first[query_cell]
        n_tests += query_count[query_cell]
        for position in range(begin, begin + query_count[query_cell]):
            value = order[position]
            if bounds.matches and is_within(mapped, value, boxes.upper, cell, bounds.accept):
                whole[0, n_whole], whole[1, n_whole] = value, cell
                n_whole += 1
            elif is_near(points, value, boxes, cell, bounds.reach):
                near[0, n_near], near[1, n_near] = value, cell
                n_near += 1
    return n_tests, n_whole, n_near


@loop
def merge_by_leaf(values, leaves, other_values, other_leaves, merged):
    """Merge two lists of pairs, each by leaf, into one, int32 (2, n)."""
    n_merged, other = 0, 0
    for pair in range(len(leaves) + 1):
        while other < len(other_leaves) and (
            pair == len(leaves) or other_leaves[other] <= leaves[pair]
        ):
            merged[0, n_merged], merged[1, n_merged] = other_values[other], other_leaves[other]
            n_merged += 1
            other += 1
        if pair < len(leaves):
            merged[0, n_merged], merged[1, n_merged] = values[pair], leaves[pair]
            n_merged += 1


@loop
def add_rows_reached(values, leaves, count, reached):
    """Add the rows of leaves to those that each query value reaches."""
    for pair in range(len(leaves)):
        reached[values[pair]] += count[leaves[pair]]


@loop
def rows_below(values, leaves, first, count, start, stop, cursors, rows):
    """Put complements of the rows of leaves that match into the lists of query values.

    Parameters
    ----------
    start, stop : int
        The run of query values; others are passed over.
    cursors : int64 (n,)
        Where the next row of each goes in `rows`, int32; moved on.

    Returns
    -------
    int
        Rows.
    """
    n_rows = 0
    for pair in range(len(leaves)):
        value = values[pair]
        if value < start or value >= stop:
            continue
        begin = first[leaves[pair]]
        for row in range(begin, begin + count[leaves[pair]]):
            rows[cursors[value - start]] = ~row
            cursors[value - start] += 1
        n_rows += count[leaves[pair]]
    return n_rows


@loop
def rows_near(values, leaves, first, count, start, stop, mapped, points, bounds, cursors, rows):
    """Put rows of leaves that may match a query value (L1) into its list, as `rows_below` does.

    Those that surely do are put as complements (L2).

    Returns
    -------
    n_rows, n_sure : int
        Rows looked at, and those that surely match.
    """
    query_points, stored = Boxes(mapped, mapped), Boxes(points, points)
    n_rows, n_sure = 0, 0
    for pair in range(len(leaves)):
        value = values[pair]
        if value < start or value >= stop:
            continue
        begin = first[leaves[pair]]
        n_rows += count[leaves[pair]]
        for row in range(begin, begin + count[leaves[pair]]):
            if is_near(query_points, value, stored, row, bounds.reach):
                sure = bounds.matches and is_within(mapped, value, points, row, bounds.accept)
                rows[cursors[value - start]] = ~row if sure else row
                cursors[value - start] += 1
                n_sure += sure
    return n_rows, n_sure


@loop
def close_gaps(offsets, cursors, rows):
    """Move lists together that end at `cursors`, set their `offsets`; return the rows of all."""
    n_rows = 0
    for value in range(len(cursors)):
        begin = offsets[value]
        offsets[value] = n_rows
        for position in range(begin, cursors[value]):
            rows[n_rows] = rows[position]
            n_rows += 1
    offsets[len(cursors)] = n_rows
    return n_rows
