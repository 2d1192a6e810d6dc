"""Compiled loops of the published walk, down the grids of a query and a partition.

They take the steps of `pexeso.engine.layout.blocking.Walk` and compare the same float32 numbers, so
that pairs and counters are the same. Where arrays hold every pair of children and every row of a
leaf before most are dropped, loops keep only what is left.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from pexeso.engine.layout import blocking
from pexeso.engine.layout.blocking import CellPairs, Walk
from pexeso.engine.lemmas import Lemma
from pexeso.runtime.jit import loop


class CompiledWalk(Walk):
    """The published walk over pivots by compiled loops, on the CPU, in one thread."""

    def near_cells(
        self, depth: int, query_cells: torch.Tensor, cells: torch.Tensor
    ) -> tuple[list[CellPairs], CellPairs]:
        """Apply L6, then L4, to the children of pairs of the level above."""
        query_level, level = self.query.grid.levels[depth], self.cells.grid.levels[depth]
        if depth > 0:
            parents = (self.query.grid.levels[depth - 1], self.cells.grid.levels[depth - 1])
            runs = [(each.first.numpy(), each.count.numpy()) for each in parents]
            n_pairs = int(self.n_children(depth - 1, query_cells, cells).sum())
        else:
            # Every cell is the only child of itself.
            runs = [
                (np.arange(len(each)), np.ones(len(each), np.int64))
                for each in (query_level, level)
            ]
            n_pairs = len(cells)
        self.stats.box_pairs += n_pairs
        whole, near = _room(n_pairs), _room(n_pairs)
        n_whole, n_near = cells_near(
            query_cells.numpy(),
            cells.numpy(),
            *runs[0],
            *runs[1],
            query_level.lower.numpy(),
            query_level.upper.numpy(),
            level.lower.numpy(),
            level.upper.numpy(),
            np.float32(self.threshold.reach(Lemma.CELL_CELL_FILTERING)),
            Lemma.CELL_CELL_MATCHING in self.threshold.lemmas,
            np.float32(self.accept),
            whole,
            near,
        )
        accepted = [self.all_below(depth, *_taken(whole, n_whole))] if n_whole else []
        return accepted, _taken(near, n_near)

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
            leaves.lower.numpy(),
            leaves.upper.numpy(),
            np.float32(self.threshold.reach(Lemma.VECTOR_CELL_FILTERING)),
            Lemma.VECTOR_CELL_MATCHING in self.threshold.lemmas,
            np.float32(self.accept),
            whole,
            near,
        )
        self.stats.box_pairs += n_tests
        return _taken(whole, n_whole), _taken(near, n_near)

    def filter_rows(self, queries: torch.Tensor, leaves: torch.Tensor) -> Iterator[CellPairs]:
        """Apply L1, then L2, to the rows of leaves."""
        level = self.cells.grid.leaves
        for values, cells in blocking.pieces(
            (queries, leaves), level.count[leaves], blocking.ROWS_AT_ONCE
        ):
            n_rows = int(level.count[cells].sum())
            self.count_rows(n_rows)
            found = torch.empty((2, n_rows), dtype=torch.int32).numpy()
            n_found, n_sure = rows_near(
                values.numpy(),
                cells.numpy(),
                level.first.numpy(),
                level.count.numpy(),
                self.query.mapped.numpy(),
                self.cells.mapped.numpy(),
                np.float32(self.threshold.reach(Lemma.PIVOT_FILTERING)),
                Lemma.PIVOT_MATCHING in self.threshold.lemmas,
                np.float32(self.accept),
                found,
            )
            self.stats.matched_by_map += n_sure
            yield _taken(found, n_found)


def _room(n_pairs: int) -> np.ndarray:
    """Return room for pairs, int64 (2, n), mostly pages that are never touched."""
    return torch.empty((2, n_pairs), dtype=torch.int64).numpy()


def _taken(room: np.ndarray, n_pairs: int) -> CellPairs:
    """Return copies of the pairs found, so that the room is let go of."""
    left, right = torch.from_numpy(room[:, :n_pairs].copy())
    return left, right


@loop
def is_near(lower, upper, i, box_lower, box_upper, j, reach):
    """Return whether no axis separates two boxes by more than `reach`."""
    for axis in range(lower.shape[1]):
        if not (
            box_lower[j, axis] <= upper[i, axis] + reach
            and box_upper[j, axis] >= lower[i, axis] - reach
        ):
            return False
    return True


@loop
def is_within(upper, i, box_upper, j, accept):
    """Return whether one pivot is so near to both boxes that all their vectors match."""
    for axis in range(upper.shape[1]):  # noqa: SIM110 - numba compiles no generator in `any`
        if upper[i, axis] + box_upper[j, axis] <= accept:
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
    query_lower,
    query_upper,
    lower,
    upper,
    reach,
    matches,
    accept,
    whole,
    near,
):
    """Keep the pairs of children that may match (L4), those apart that do (L6, where `matches`).

    Pairs, `whole` and `near`, are int64 (2, n); children are runs of the next level's cells, whose
    boxes are float32 (c, P).
    """
    n_whole, n_near = 0, 0
    for pair in range(len(cells)):
        begin, end = first[cells[pair]], first[cells[pair]] + count[cells[pair]]
        query_begin = query_first[query_cells[pair]]
        for query in range(query_begin, query_begin + query_count[query_cells[pair]]):
            for cell in range(begin, end):
                if matches and is_within(query_upper, query, upper, cell, accept):
                    whole[0, n_whole], whole[1, n_whole] = query, cell
                    n_whole += 1
                elif is_near(query_lower, query_upper, query, lower, upper, cell, reach):
                    near[0, n_near], near[1, n_near] = query, cell
                    n_near += 1
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
    lower,
    upper,
    reach,
    matches,
    accept,
    whole,
    near,
):
    """Keep pairs of a query value and a leaf that may match (L3), those apart that do (L5).

    Where `quick`, a query leaf and a leaf of the same code are passed over: they are pairs already.
    """
    n_tests, n_whole, n_near = 0, 0, 0
    for pair in range(len(cells)):
        cell, query_cell = cells[pair], query_cells[pair]
        if quick and codes[cell] == query_codes[query_cell]:
            continue
        begin = query_first[query_cell]
        n_tests += query_count[query_cell]
        for place in range(begin, begin + query_count[query_cell]):
            value = order[place]
            if matches and is_within(mapped, value, upper, cell, accept):
                whole[0, n_whole], whole[1, n_whole] = value, cell
                n_whole += 1
            elif is_near(mapped, mapped, value, lower, upper, cell, reach):
                near[0, n_near], near[1, n_near] = value, cell
                n_near += 1
    return n_tests, n_whole, n_near


@loop
def rows_near(values, leaves, first, count, mapped, points, reach, matches, accept, found):
    """Keep the rows of leaves that may match a query value (L1), complemented where they do (L2).

    Pairs found are int32 (2, n).
    """
    n_found, n_sure = 0, 0
    for pair in range(len(leaves)):
        value, begin = values[pair], first[leaves[pair]]
        for row in range(begin, begin + count[leaves[pair]]):
            if is_near(mapped, mapped, value, points, points, row, reach):
                sure = matches and is_within(mapped, value, points, row, accept)
                found[0, n_found], found[1, n_found] = value, ~row if sure else row
                n_found += 1
                n_sure += sure
    return n_found, n_sure
