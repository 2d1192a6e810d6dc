"""The launches that walk down the boxes of a partition."""

from __future__ import annotations

import torch

from pexeso.engine.interface import Threshold
from pexeso.engine.kernels.triton import boxes as boxes
from pexeso.engine.kernels.triton import grouped as grouped
from pexeso.engine.kernels.triton import lists as lists
from pexeso.engine.kernels.triton.workspace import Workspace
from pexeso.engine.layout.maps import ProjectionMap, square_with_room
from pexeso.engine.layout.partition import Partition
from pexeso.engine.lemmas import Lemma

TILES = (16, 32)
"""Query values that are looked at together: the fewest that a product takes, and as many as an
int32 has bits."""

DENSE_UNITS = 1 << 12
"""(tile of query values, group of boxes) pairs that are tested outright rather than reached from a
coarser level."""

WALKING_PROGRAMS = 32
"""Programs of walks for each multiprocessor: most of their time they wait for boxes."""

PAIRS_TOGETHER = 32
"""(query value, group) pairs that a program of `walk_pairs` tests together."""


class Walk:
    """Launches of a search, as far as the blocks.

    Parameters
    ----------
    n_queries : int
    """

    _points: torch.Tensor
    _point_rows: torch.Tensor
    _n_members: int
    _few: int

    def __init__(
        self, partition: Partition, n_queries: int, threshold: Threshold, space: Workspace
    ) -> None:
        self._partition, self._threshold, self._space = partition, threshold, space
        self._device, self._blocks = partition.device, partition.blocks
        self._projected = isinstance(partition.map, ProjectionMap)
        self._tile = TILES[n_queries > TILES[0]]
        self._starts = self._blocks.starts.tolist()

    def _first_level(self) -> int:
        """Return the finest level of which all boxes are tested outright."""
        starts, n_tiles = self._starts, -(-self._n_members // self._tile)
        fits = [
            level
            for level in range(len(starts) - 1)
            if n_tiles * (starts[level + 1] - starts[level]) <= DENSE_UNITS
        ]
        return max(fits, default=0)

    def _walk(self, lengths: list[torch.Tensor]) -> None:
        """Test boxes from the first level on that is worth it, down to the blocks."""
        lists, capacity = self._space.lists, self._space.room["units"]
        first, last = self._first_level(), len(self._starts) - 2
        for level in range(first, last + 1):
            source, target = (level - 1) % 2, 2 if level == last else level % 2
            self._walk_level(
                level,
                (lists.units[source], lists.bits[source], lengths[level - 1], capacity),
                (lists.units[target], lists.bits[target], lengths[level], capacity),
                (*lists.pairs, lengths[-2], self._space.room["pairs"]),
                self._few,
                DENSE=level == first,
                LAST=level == last,
            )

    def _walk_level(
        self,
        level: int,
        units: tuple[object, ...],
        next_units: tuple[object, ...],
        pairs: tuple[object, ...],
        few: int,
        **choices: bool,
    ) -> None:
        starts = self._starts
        self._launch(
            boxes.walk_level,
            self._points,
            self._blocks.boxes,
            *units,
            *next_units,
            *pairs,
            self._space.work,
            starts[level],
            starts[level + 1] - starts[level],
            self._n_below(level),
            -(-self._n_members // self._tile),
            self._n_members,
            few,
            self._box_limit(level),
            **choices,
            EUCLIDEAN=self._projected,
            TILE=self._tile,
            **self._axes(),
            num_warps=self._tile // 16,
            programs=lists.n_programs(self._device, WALKING_PROGRAMS),
        )

    def _walk_pairs(self, lengths: list[torch.Tensor]) -> None:
        """Test all boxes of one level, and from there on those below what each value is near to."""
        space, buffers = self._space, self._space.lists
        first, last = self._first_level(), len(self._starts) - 2

        def listed(level: int) -> tuple[object, ...]:
            if level == last:
                return (*buffers.pairs, lengths[-2], space.room["pairs"])
            return (*buffers.walks[level % 2], lengths[level], space.room["units"])

        # A tile never has more values than it has places, so that all go on as pairs.
        no_units = (space.counters, buffers.grouped, space.n_columns, 0)
        self._walk_level(
            first, no_units, no_units, listed(first), self._tile, DENSE=True, LAST=True
        )
        for level in range(first + 1, last + 1):
            self._launch(
                grouped.walk_pairs,
                self._point_rows,
                self._blocks.boxes,
                *listed(level - 1),
                *listed(level),
                space.work,
                self._starts[level],
                self._n_below(level),
                self._box_limit(level),
                EUCLIDEAN=self._projected,
                PAIRS=PAIRS_TOGETHER,
                **self._axes(),
                programs=lists.n_programs(self._device, WALKING_PROGRAMS),
            )

    def _n_below(self, level: int) -> int:
        """Return how many boxes a level has, those that pad its last group not counted."""
        starts = self._starts
        if level == len(starts) - 2:
            return len(self._blocks)
        return starts[level + 2] - starts[level + 1]

    def _box_limit(self, level: int) -> float:
        is_last = level == len(self._starts) - 2
        return self._limit(Lemma.VECTOR_CELL_FILTERING if is_last else Lemma.CELL_CELL_FILTERING)

    def _limit(self, lemma: Lemma) -> float:
        reach = self._threshold.reach(lemma)
        return square_with_room(reach) if self._projected and reach < 1e15 else reach

    def _axes(self) -> dict[str, int]:
        n_axes = self._blocks.codes.shape[1]
        return {"AXES": n_axes, "UNROLL": next(step for step in (16, 8, 4) if n_axes % step == 0)}

    def _launch(
        self, program: object, *arguments: object, programs: int | None = None, **options: object
    ) -> None:
        program[(programs or lists.n_programs(self._device),)](*arguments, **options)
