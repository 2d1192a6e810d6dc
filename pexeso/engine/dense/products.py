"""Products: every query value against every stored vector, tile by tile.

They are used where filters leave more pairs than can be examined one by one.

A filter prunes what a few coordinates tell apart. Vectors that spread over all their dimensions, at
a distance so wide that these say little, pass nearly all of it; and a pair that is verified by
itself costs what 20 pairs of a matrix product do. So before a walk the filters are tried on a
sample, what they would leave is weighed, and where products cost less they take the place of boxes
and mapped coordinates. Everything after them stays as it is: a product finds candidates, those that
surely match as complements, and pairs in the band that its rounding leaves open are verified like
any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from pexeso.engine.arrays import available_threads, expand_ranges, in_pieces, offsets_of
from pexeso.engine.blocks import pad_axes
from pexeso.engine.kernel import Kernel, Pairs, Query, merge_by_query
from pexeso.engine.metrics import LARGEST_NORM, product_band
from pexeso.engine.partition import fetch_columns
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import ALL_LEMMAS, Lemma

LEAST_LIMIT = 1 << 12  # candidates that are verified in less time than a second thought takes
QUERIES_CHUNK_SIZE = 1024

_SAMPLE_QUERIES = 32

# Products of a tile: few enough for a core's cache; on a device, many a launch.
_TILE = {"cpu": 1 << 19, "cuda": 1 << 23}
_LEAST_ROWS, _MOST_ROWS = 64, 1 << 14

# Entries of float16 vectors that are turned into float32 at a time on the CPU: 2 MiB, which stay in
# a core's cache, and in memory that the process has already.
_WIDENED = 1 << 19

# Nanoseconds on one core at 2.5 GHz: what a pair takes to be multiplied, what each dimension adds,
# and what one of a stored vector takes to be read.
_PRODUCT, _PRODUCT_AXIS = 1.0, 0.016
_READ_AXIS = 0.5

# Of the candidates that cost what the products do, those that a walk may find that was not weighed.
_SHORT_SHARE = 0.25

# Pairs of a tile that are put in their places in less time than they are sorted together with
# others.
_MANY_OF_A_TILE = 1 << 10

# Parts that query values with too many pairs are cut into, as a share of those that the pairs found
# so far ask for.
_MORE_PARTS = 1.25

Couples = tuple[torch.Tensor, torch.Tensor]


class WalkCosts(NamedTuple):
    """What a walk takes, in nanoseconds on one core at 2.5 GHz."""

    row: float
    row_axis: float
    candidate: float
    candidate_axis: float
    least_pairs: int


# By kernel; those that are not here multiply by themselves.
_WALKS = {
    "compiled": WalkCosts(0.5, 0.08, 50.0, 0.35, least_pairs=1 << 24),
    "torch": WalkCosts(20.0, 5.0, 600.0, 2.0, least_pairs=1 << 18),
}


def products_pay(query: Query, kernel: Kernel, *, begun: bool = False) -> bool:
    """Return whether products are cheaper than a walk and the verification of what it leaves.

    Counted are the pairs that boxes, and mapped coordinates, let through between 32 query values
    and one stored value in each of 64 blocks, all evenly spread: some 0.2 ms. The counts depend on
    the data alone, so the same search goes the same way on every machine. A search with some
    filters switched off shows what these do, and never multiplies.
    """
    partition, threshold, walk = query.partition, query.threshold, _walk_costs(query, kernel)
    if walk is None or not len(query) or not partition.n_values:
        return False
    if len(query) * partition.n_values <= walk.least_pairs:
        if not begun:
            return False
    elif begun and not (kernel.brings_threads and available_threads() > 1):
        return True
    product = _product_cost(query)
    candidate = walk.candidate + walk.candidate_axis * partition.dimensions
    reach = threshold.reach(Lemma.VECTOR_CELL_FILTERING)
    near = _near_some(query, partition.blocks.sample_boxes, reach)
    row = near * (walk.row + walk.row_axis * partition.blocks.codes.shape[1])
    if row + near * candidate <= product:
        return False
    reach = threshold.reach(Lemma.PIVOT_FILTERING)
    left = _near_some(query, partition.blocks.sample_rows, reach)
    return row + left * candidate > product


def walk_limit(query: Query, kernel: Kernel) -> int | None:
    """Return how many candidates a walk may find before it is given up; None without products.

    Where it was weighed before, as many as cost what the products do: a net below the sample. A
    short walk spares the sample where filters prune well, and is given up soon where they do not.
    """
    partition, walk = query.partition, _walk_costs(query, kernel)
    if walk is None:
        return None
    share = _product_cost(query) / (walk.candidate + walk.candidate_axis * partition.dimensions)
    n_pairs = len(query) * partition.n_values
    if n_pairs <= walk.least_pairs:
        share *= _SHORT_SHARE
    return max(LEAST_LIMIT, int(share * n_pairs))


def product_candidates(
    query: Query, max_pairs: int, stats: SearchStats
) -> Iterator[tuple[Query, Pairs]]:
    """Yield runs of query values with the pairs that products cannot rule out.

    Pairs that surely match are complements. Beside the pairs each thread holds a tile of at most
    2**19 products, 2**23 on a device, and no more than a quarter of `max_pairs`: 5 bytes each, and
    as much again for pairs on the way.
    """
    partition = query.partition
    everyone = torch.arange(len(query) if partition.n_values else 0)
    todo = [part for part in reversed(torch.split(everyone, QUERIES_CHUNK_SIZE)) if len(part)]
    while todo:
        members = todo.pop()
        part = query.take(slice(int(members[0]), int(members[-1]) + 1))
        room = max_pairs if len(part) > 1 else max(max_pairs, partition.n_values)
        with stats.phase("block"):
            couples, n_found, n_rows = _multiply(part, room)
        stats.distances += len(part) * n_rows
        stats.bytes_read += n_rows * partition.vector_bytes
        if couples is None:
            n_parts = int(_MORE_PARTS * n_found / room * partition.n_values / n_rows) + 1
            todo += torch.tensor_split(members, min(n_parts, len(members)))[::-1]
            continue
        stats.candidates += n_found
        with stats.phase("block"):
            pairs = _merge(couples, len(part), partition.device)
        yield part, pairs


def _walk_costs(query: Query, kernel: Kernel) -> WalkCosts | None:
    """Return the cost of a walk; None where a filter is off, or products are not exact enough."""
    can_multiply = (
        query.partition.cells.has_summary
        and query.threshold.lemmas == ALL_LEMMAS
        and torch.get_float32_matmul_precision() == "highest"
    )
    return _WALKS.get(kernel.name) if can_multiply else None


def _product_cost(query: Query) -> float:
    """Return what a (query value, stored value) pair takes to be multiplied, in nanoseconds."""
    axis = _PRODUCT_AXIS + _READ_AXIS / max(1, len(query))
    return _PRODUCT + axis * query.partition.dimensions


def _near_some(query: Query, boxes: tuple[torch.Tensor, torch.Tensor], reach: float) -> float:
    some = query.mapped[:: -(-len(query) // _SAMPLE_QUERIES)]
    near = query.partition.map.near_box(pad_axes(some)[:, None], *boxes, reach)
    return int(near.sum()) / near.numel()


def _multiply(query: Query, room: int) -> tuple[list[Couples] | None, int, int]:
    """Find the pairs that may match, tile by tile.

    Returns pairs: list of (query values, rows), int32 (p,) each, or None, none where there are more
    than there is room for; n_found, n_rows: int, pairs found, and stored vectors multiplied, till
    then.
    """
    partition, device = query.partition, query.partition.device
    tile = min(_TILE["cpu" if device.type == "cpu" else "cuda"], room // 4)
    chunk_size = min(_MOST_ROWS, max(_LEAST_ROWS, tile // len(query)))
    if partition.vectors.dtype != torch.float32 and device.type == "cpu":
        chunk_size = min(chunk_size, max(_LEAST_ROWS, _WIDENED // partition.dimensions))
    list_chunk_size = tile // 8
    possibly, surely = _product_bounds(query)
    tiles: dict[int, list[Couples]] = {}
    n_found = n_rows = 0

    def multiply_tile(begin: int, end: int) -> None:
        # What threads count at the same time may be lost: it only delays the end.
        nonlocal n_found, n_rows
        if n_found > room:
            return
        if partition.pages is not None:
            fetch_columns(partition, torch.arange(begin, end))
        products = query.vectors @ partition.vectors[begin:end].float().T
        near, n_near = _near(products, possibly)
        n_found, n_rows = n_found + n_near, n_rows + end - begin
        if n_near and n_found <= room:
            # Where nearly all match they are listed a part at a time: on the way a pair takes 40
            # bytes.
            at_a_time = (
                len(query)
                if n_near <= list_chunk_size
                else max(1, list_chunk_size // (end - begin))
            )
            parts = zip(
                *(torch.split(tensor, at_a_time) for tensor in (near, products, surely)),
                strict=True,
            )
            tiles[begin] = [
                _pairs_of(number * at_a_time, begin, *part) for number, part in enumerate(parts)
            ]

    in_pieces(partition.n_values, chunk_size, device, multiply_tile)
    couples = [couple for begin in sorted(tiles) for couple in tiles[begin]]
    n_found = max(n_found, sum(len(rows) for _, rows in couples))
    return (None if n_found > room else couples), n_found, n_rows


def _near(products: torch.Tensor, possibly: torch.Tensor) -> tuple[torch.Tensor, int]:
    if products.device.type == "cpu":
        # numpy compares and counts four times as fast: a tenth of what a tile takes.
        near = products.numpy() >= possibly.numpy()
        return torch.from_numpy(near), int(np.count_nonzero(near))
    near = products >= possibly
    return near, int(torch.count_nonzero(near))


def _pairs_of(
    first_query: int,
    first_row: int,
    near: torch.Tensor,
    products: torch.Tensor,
    surely: torch.Tensor,
) -> Couples:
    """List the pairs of some query values of a tile that may match, by query value.

    Rows that surely match are complements.
    """
    # numpy's is many times as fast where few are set.
    on_cpu = near.device.type == "cpu"
    flat = (
        torch.from_numpy(np.flatnonzero(near.numpy()))
        if on_cpu
        else torch.nonzero(near.flatten())[:, 0]
    )
    queries = torch.div(flat, near.shape[1], rounding_mode="floor")
    rows = flat - queries * near.shape[1] + first_row
    rows = torch.where(products.flatten()[flat] >= surely[queries, 0], ~rows, rows)
    return (queries + first_query).int(), rows.int()


def _merge(couples: list[Couples], n_queries: int, device: torch.device) -> Pairs:
    """Bring the pairs of tiles into CSR form; `couples` is emptied.

    Those of a tile are in order, so many of them are put in their places rather than sorted.
    """
    sizes = torch.zeros(n_queries, dtype=torch.int64, device=device)
    for queries, _ in couples:
        sizes += torch.bincount(queries, minlength=n_queries)
    offsets = offsets_of(sizes)
    if int(offsets[-1]) <= _MANY_OF_A_TILE * len(couples):
        return merge_by_query(couples, n_queries, device)
    merged = torch.empty(int(offsets[-1]), dtype=torch.int32, device=device)
    begin = offsets[:-1].clone()
    couples.reverse()
    while couples:
        queries, rows = couples.pop()
        sizes = torch.bincount(queries, minlength=n_queries)
        merged[expand_ranges(begin, sizes)[1]] = rows
        begin += sizes
    return Pairs(offsets, merged)


def _product_bounds(query: Query) -> Couples:
    """Return the products with which a pair may match, and surely does, float32 (n, 1) each.

    ``|x - y|**2 = |x|**2 + |y|**2 - 2 x . y``, and of a stored vector it is only known that its
    length is 1 to within a thousandth. Taking it for the least and the largest that it can be
    spares a pass over all vectors, and leaves hardly any pair more to be verified.
    """
    band = product_band(query.threshold.tau, query.partition.dimensions)
    squares = query.vectors.double().square_().sum(1)[:, None]
    smallest, largest = (2.0 - LARGEST_NORM) ** 2, LARGEST_NORM**2
    possibly = ((squares + smallest - band.possibly) / 2.0).float()
    surely = ((squares + largest - band.surely) / 2.0).float()
    beyond = torch.full_like(possibly, 9.0)
    return torch.nextafter(possibly, -beyond), torch.nextafter(surely, beyond)
