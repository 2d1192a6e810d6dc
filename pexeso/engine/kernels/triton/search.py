"""The launches of one search for candidates on CUDA, and the lists they fill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from pexeso.engine.arrays import offsets_of
from pexeso.engine.blocks import pad_axes
from pexeso.engine.kernel import Pairs, Query, Threshold, pairs_by_query
from pexeso.engine.kernels.triton import boxes, distances, lists, values
from pexeso.engine.kernels.triton.lists import Workspace
from pexeso.engine.kernels.triton.values import QueryPlaces, order_values
from pexeso.engine.maps import ProjectionMap, square_with_room
from pexeso.engine.metrics import (
    FLOAT16_ROUNDOFF,
    Band,
    difference_band,
    largest_square,
    product_band,
)
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MATCHING_LEMMAS, Lemma

# Query values that are looked at together: the fewest that a product takes, and as many as an int32
# has bits.
TILES = (16, 32)

# (tile of query values, group of boxes) pairs that are tested outright rather than reached from a
# coarser level.
DENSE_UNITS = 1 << 12

# Programs of walks for each multiprocessor: most of their time they wait for boxes.
WALKING_PROGRAMS = 32

PAIRS_TOGETHER = 32  # (query value, group) pairs that a program of `walk_pairs` tests together

SLAB = 1 << 12  # query values of one run of launches; more go slab after slab into the same list

# Query values from which on pairs are grouped by block, which takes some launches more. Of a single
# tile few values reach the same block, and a product for each of its blocks takes twice as long as
# comparing pairs.
GROUPED_FROM = 33

GROUPED_TILE = 16  # query values of a block that are compared together

# A block that at most so many query values of a tile reach is compared value by value: `FEW`, or
# one for each `FEW_DIMENSIONS` dimensions.
FEW, FEW_DIMENSIONS = 4, 24

ORDERED_FROM = 1 << 10  # query values from which on bringing neighbours together pays

TESTING_PROGRAMS = 32  # programs of `test_blocks` for each multiprocessor, of a single warp each

# More, and tensor operations decide: the tree of the defining distance would not fit in registers.
MOST_DIMENSIONS = 1024

# Tensor cores cut aligned addends instead of rounding sums (Fasi, Higham, Mikaitis and Pranesh,
# *Numerical behavior of NVIDIA tensor cores*, 2021): each addition costs at most ``2**-23``, and so
# does each of its addends. The bound of a sum of four times as many terms, rounded to nearest,
# covers both.
TENSOR_CORE_TERMS = 4


def tree_places(dimensions: int) -> np.ndarray:
    """Order entries so that adding neighbours repeatedly sums them as `tree_sum` does.

    See `pexeso.engine.metrics.tree_sum`.

    Returns int32 (D,): the entry at each place, or -1; D is the power of two from `dimensions` on.
    """
    rest, positions = np.arange(dimensions), np.zeros(dimensions, np.int64)
    width, level = dimensions, 0
    while width > 1:
        half = (width + 1) // 2
        upper = rest >= half
        positions |= upper.astype(np.int64) << level
        rest -= half * upper
        width, level = half, level + 1
    tree = np.full(1 << level, -1, np.int32)
    tree[positions] = np.arange(dimensions)
    return tree


@cache
def tree_of(dimensions: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(tree_places(dimensions)).to(device)


@cache
def largest_square_on(tau: float, device: torch.device) -> torch.Tensor:
    return torch.full((1,), largest_square(tau), dtype=torch.float64, device=device)


@dataclass(frozen=True)
class DecidedPairs(Pairs):
    """Pairs that all match, so that every row stands as its complement.

    queries: int32 (p,), the query value of each pair.
    """

    queries: torch.Tensor


class CandidateSearch:
    """The launches of one search for candidates.

    space: Workspace, with `n_slabs` slabs.
    """

    def __init__(
        self,
        partition: Partition,
        query: Query | QueryPlaces,
        threshold: Threshold,
        space: Workspace,
        *,
        by_code: bool = True,
    ) -> None:
        self._partition, self._threshold, self._space = partition, threshold, space
        self._device, self._blocks = partition.device, partition.blocks
        self._projected = isinstance(partition.map, ProjectionMap)
        self._tile = TILES[len(query) > TILES[0]]
        self._starts = self._blocks.starts.tolist()
        self._query = query
        self._decides = decides(partition)
        accept = threshold.tau - threshold.slack
        self._accepts = bool(threshold.lemmas & MATCHING_LEMMAS) and partition.map.may_accept(
            partition.lower_corner, accept
        )
        self._order = None
        by_code = by_code and self._projected and self._decides and not self._accepts
        self._by_block = by_code and len(query) >= GROUPED_FROM
        self._few = self._tile
        if self._decides and not by_code:
            # Products of vectors decide, so that those of a tile are of use.
            self._few = max(FEW, partition.dimensions // FEW_DIMENSIONS)
        if isinstance(query, QueryPlaces):
            self._matches_of = query.matches_of
            return
        if is_ordered(len(query)) and not self._by_block:
            # Neighbours in one tile share most of their boxes.
            self._order = order_values(query.mapped, self._tile, partition.dimensions).int()
        self._matches_of = torch.zeros(len(query), dtype=torch.int64, device=self._device)

    def launch(self) -> None:
        """Launch everything up to the list of matches; nothing is read back."""
        self._space.counters.zero_()
        for slab, begin in enumerate(range(0, len(self._query), SLAB)):
            self._run_slab(self._space.lengths[slab], begin, min(begin + SLAB, len(self._query)))

    def run(self) -> tuple[Pairs, dict[str, int]]:
        """Launch everything; give what was found and how long each list would have to be."""
        self.launch()
        if not self._decides:
            return self._undecided()
        space = self._space
        offsets = offsets_of(self._matches_of)
        by_value = torch.empty(
            (2, len(space.lists.matches[0])), dtype=torch.int32, device=self._device
        )
        self._launch(
            distances.group_matches,
            *space.lists.matches,
            space.n_matches,
            space.room["matches"],
            offsets[:-1].clone(),
            *by_value,
            TILE=256,
        )
        needed = self._read()
        n_found = min(needed["matches"], space.room["matches"])
        return DecidedPairs(offsets, by_value[1, :n_found], by_value[0, :n_found]), needed

    def tell(self, stats: SearchStats) -> None:
        add_work(self._partition, self._space, self._counters, stats)

    def _run_slab(self, lengths: list[torch.Tensor], begin: int, end: int) -> None:
        self._prepare(begin, end)
        # Rows that are decided at once make room for those of the next slab.
        n_rows = lengths[-1] if self._decides else self._space.lengths[0][-1]
        if self._by_block:
            self._walk_pairs(lengths)
            self._test_blocks(lengths[-2], n_rows, begin)
            self._decide(n_rows)
            return
        self._walk(lengths)
        self._test_rows(lengths[-2], n_rows)
        if self._decides:
            if end - begin > self._few:
                self._multiply(lengths[len(self._starts) - 2], n_rows)
            self._decide(n_rows)

    def _prepare(self, begin: int, end: int) -> None:
        """Lay the query values of a slab out axis by axis."""
        query = self._query
        accept = self._threshold.tau - self._threshold.slack
        self._accept = max(accept, 0.0) ** 2 * (1.0 - 2.0**-16) if self._projected else accept
        if isinstance(query, QueryPlaces):
            self._prepare_places(query, accept)
            return
        self._members: torch.Tensor | slice = slice(begin, end)
        self._names = self._matches_of
        if self._order is not None:
            self._names = self._order[begin:end]
            self._members = self._names.long()
        self._n_members = end - begin
        mapped = (
            query.mapped
            if end - begin == len(query) and self._order is None
            else query.mapped[self._members]
        )
        self._point_rows = pad_axes(mapped)
        self._points = self._point_rows.t().contiguous()
        self._upper, self._able = self._points, self._names
        if self._accepts:
            upper, able = self._partition.map.upper_points(mapped, accept)
            self._upper = pad_axes(upper, self._partition.map.upper_fill).t().contiguous()
            self._able = able.to(torch.int8)
        if self._decides and not self._by_block:
            self._halves = query.vectors[self._members].half()
            self._squares = self._halves.float().square_().sum(1)

    def _prepare_places(self, query_places: QueryPlaces, accept: float) -> None:
        """Map and round the values of a query column, all of them, by a program."""
        chosen = self._partition.map
        axes = chosen.axes if isinstance(chosen, ProjectionMap) else chosen.pivots
        n_coordinates = self._blocks.codes.shape[1]
        width = next_power_of_2(n_coordinates)
        self._launch(
            values.prepare_values,
            query_places.header,
            query_places.vectors,
            axes,
            query_places.points,
            query_places.point_rows,
            query_places.upper_points,
            query_places.may_accept,
            query_places.halves,
            query_places.squares,
            self._space.n_not_unit,
            query_places.n_places,
            accept,
            DIMENSIONS=self._partition.dimensions,
            N_AXES=len(axes),
            AXES=n_coordinates,
            WIDTH=width,
            CHUNK=max(16, min(64, 2048 // width)),
            PROJECTED=self._projected,
            programs=query_places.n_places,
        )
        self._members, self._n_members = slice(0, query_places.n_places), query_places.n_places
        self._names, self._point_rows = self._matches_of, query_places.point_rows
        self._points, self._upper, self._able = (
            query_places.points,
            query_places.upper_points,
            query_places.may_accept,
        )
        self._halves, self._squares = query_places.halves, query_places.squares

    def _test_blocks(self, n_pairs: torch.Tensor, n_rows: torch.Tensor, first_query: int) -> None:
        """Group the pairs by block, and list the rows that codes do not rule out."""
        space, blocks = self._space, self._blocks
        counts = torch.zeros(len(blocks) + 1, dtype=torch.int32, device=self._device)
        pairs, capacity = space.lists.pairs, space.room["pairs"]
        self._launch(boxes.count_blocks, pairs[1], n_pairs, capacity, counts, TILE=256)
        offsets = torch.cumsum(counts, 0, dtype=torch.int32)
        self._launch(
            boxes.group_pairs,
            *pairs,
            n_pairs,
            capacity,
            counts,
            offsets,
            space.lists.grouped[0],
            TILE=256,
        )
        n_axes = blocks.codes.shape[1]
        self._launch(
            boxes.test_blocks,
            self._point_rows,
            blocks.boxes,
            blocks.codes,
            offsets,
            space.lists.grouped[0],
            *space.lists.rows,
            n_rows,
            space.room["rows"],
            space.work,
            self._starts[-2],
            len(blocks),
            blocks.n_rows,
            first_query,
            math.sqrt(self._limit(Lemma.PIVOT_FILTERING)),
            AXES=n_axes,
            WIDTH=max(16, next_power_of_2(n_axes)),
            SIZE=blocks.size,
            QUERIES=GROUPED_TILE,
            num_warps=1,
            programs=lists.n_programs(self._device, TESTING_PROGRAMS),
        )

    def _test_rows(self, n_pairs: torch.Tensor, n_rows: torch.Tensor) -> None:
        rows, space = _rows_at_once(self._blocks.size), self._space
        self._launch(
            boxes.test_rows,
            self._points,
            self._upper,
            self._able,
            self._names,
            self._blocks.boxes,
            self._blocks.codes,
            *space.lists.pairs,
            n_pairs,
            space.room["pairs"],
            *space.lists.rows,
            n_rows,
            space.room["rows"],
            *self._match_buffers(),
            self._starts[-2],
            self._blocks.n_rows,
            self._n_members,
            self._limit(Lemma.PIVOT_FILTERING),
            self._accept,
            EUCLIDEAN=self._projected,
            ACCEPTS=self._accepts,
            ORDERED=self._order is not None,
            SIZE=self._blocks.size,
            ROWS=rows,
            PAIRS=512 // rows,
            **self._axes(),
        )

    def _multiply(self, n_units: torch.Tensor, n_rows: torch.Tensor) -> None:
        partition, dimensions, space = self._partition, self._partition.dimensions, self._space
        band = tile_band(self._threshold.tau, dimensions)
        self._launch(
            distances.multiply_tiles,
            self._names,
            partition.vectors,
            self._halves,
            self._squares,
            space.lists.units[2],
            space.lists.bits[2],
            n_units,
            space.room["units"],
            *space.lists.rows,
            n_rows,
            space.room["rows"],
            *self._match_buffers(),
            self._blocks.n_rows,
            self._n_members,
            band.surely,
            band.possibly,
            ORDERED=self._order is not None,
            SIZE=self._blocks.size,
            ROWS=_rows_at_once(self._blocks.size),
            TILE=self._tile,
            DIMENSIONS=dimensions,
            CHUNK=min(64, max(16, next_power_of_2(dimensions))),
            num_warps=4,
        )

    def _decide(self, n_rows: torch.Tensor) -> None:
        partition, dimensions, space = self._partition, self._partition.dimensions, self._space
        tree = tree_of(dimensions, self._device)
        band = difference_band(self._threshold.tau, dimensions)
        self._launch(
            distances.decide_rows,
            *space.lists.rows,
            n_rows,
            space.room["rows"],
            self._query.vectors,
            partition.vectors,
            tree,
            largest_square_on(self._threshold.tau, self._device),
            *self._match_buffers(),
            band.surely,
            band.possibly,
            DIMENSIONS=dimensions,
            PADDED=len(tree),
            LEVELS=len(tree).bit_length() - 1,
            CHUNK=min(64, len(tree)),
            TILE=min(64, 2048 // min(64, len(tree))),
            enable_fp_fusion=False,
        )

    def _undecided(self) -> tuple[Pairs, dict[str, int]]:
        """Put rows that are known to match and those that are left open together."""
        needed, space, n = self._read(), self._space, len(self._query)
        listed = ((space.lists.matches, "matches"), (space.lists.rows, "rows"))
        parts = [
            torch.stack(tensors)[:, : min(needed[name], space.room[name])]
            for tensors, name in listed
        ]
        queries, rows = torch.cat(parts, 1)
        whole = needed | {"rows": needed["rows"] + needed["matches"]}
        if any(needed[name] > size for name, size in space.room.items()):
            return Pairs(self._matches_of[:1], rows[:0]), needed
        return pairs_by_query(queries.long(), rows, n), whole

    def _read(self) -> dict[str, int]:
        """Read the counters: the one time that the host waits."""
        self._counters = self._space.counters.tolist()
        return self._space.needed(self._counters)

    def _match_buffers(self) -> tuple[object, ...]:
        space = self._space
        return (
            *space.lists.matches,
            space.n_matches,
            space.room["matches"],
            self._matches_of,
            space.work,
        )

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
            return (*buffers.walks[2 * (level % 2) :][:2], lengths[level], space.room["units"])

        # A tile never has more values than it has places, so that all go on as pairs.
        no_units = (space.counters, buffers.grouped[0], space.n_columns, 0)
        self._walk_level(
            first, no_units, no_units, listed(first), self._tile, DENSE=True, LAST=True
        )
        for level in range(first + 1, last + 1):
            self._launch(
                boxes.walk_pairs,
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


def add_work(
    partition: Partition, space: Workspace, counters: list[int], stats: SearchStats
) -> None:
    """Add the work that a search did, by its counters as read back."""
    n_counters = lists.N_COUNTERS.value
    boxes_tested, rows_tested, left, accepted, products, in_band = counters[:n_counters]
    n_rows = space.n_rows(counters)
    stats.box_pairs += boxes_tested
    stats.candidate_pairs += left
    stats.vectors_touched += rows_tested + products
    stats.matched_by_map += accepted
    stats.candidates += n_rows + products + accepted
    # Each box, block and row once a pair: what the caches save is not known.
    n_bytes = (boxes_tested * 8 + rows_tested) * partition.blocks.codes.shape[1]
    if decides(partition):
        stats.distances += n_rows + products
        stats.defining_distances += in_band
        n_bytes += (n_rows + products) * partition.vector_bytes
    stats.bytes_read += n_bytes


def decides(partition: Partition) -> bool:
    return partition.dimensions <= MOST_DIMENSIONS


def is_ordered(n_queries: int) -> bool:
    return n_queries >= min(ORDERED_FROM, SLAB + 1)


def n_slabs(n_queries: int) -> int:
    return max(1, -(-n_queries // SLAB))


def tile_band(tau: float, dimensions: int) -> Band:
    """Return the band of products over float16 vectors, with squared lengths summed in float32.

    `product_band` allows ``2 g(n, u) L'**2`` for n products. Here the product may be off by
    ``2 g(4 d, u) L'**2`` (`TENSOR_CORE_TERMS`), and each of the two squared lengths by
    ``g(d, u) L'**2``: together less than ``2 g(5 d, u) L'**2``.
    """
    return product_band(tau, (TENSOR_CORE_TERMS + 1) * dimensions, FLOAT16_ROUNDOFF)


def _rows_at_once(block_size: int) -> int:
    return min(64, max(16, next_power_of_2(block_size)))


def next_power_of_2(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()
