"""The fused kernel that multiplies two sets of vectors and writes only the pairs above a limit."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial

import torch
import triton
import triton.language as tl
from triton.errors import TritonError
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.gpu.timing import device_seconds
from benchmarks.timing import wait_for

FIRST_CAPACITY = 1 << 20
MOST_PAIRS = 1 << 26
"""Pairs that a launch may give, 12 bytes each; a wider search is cut into parts."""

ALIGNMENT = 16
"""Bytes of which a row of vectors must be a multiple: what the copy engine of a GPU reads."""

FoundPairs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Rows of the queries, rows of the values, products: int64 (p,) twice, float32 (p,)."""


@triton.jit(do_not_specialize=["query_tiles", "tiles"])
def _tiles_above_kernel(
    values,
    queries,
    limits,
    found_tiles,
    n_found,
    query_tiles,
    tiles,
    CHUNKS: tl.constexpr,  # noqa: N803
    BLOCK_VALUES: tl.constexpr,  # noqa: N803
    BLOCK_QUERIES: tl.constexpr,  # noqa: N803
    BLOCK_DIMENSIONS: tl.constexpr,  # noqa: N803
):
    """Multiply tiles of values with tiles of queries, and list those where a pair is near."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    tile, chunk = program - programs, CHUNKS - 1
    first_value, first_query = 0, 0
    products = tl.zeros((BLOCK_VALUES, BLOCK_QUERIES), dtype=tl.float32)
    for _ in range(tl.cdiv(tiles - program, programs) * CHUNKS):
        chunk = tl.where(chunk == CHUNKS - 1, 0, chunk + 1)
        if chunk == 0:
            tile += programs
            first_value = (tile // query_tiles) * BLOCK_VALUES
            first_query = (tile % query_tiles) * BLOCK_QUERIES
        left = values.load([first_value, chunk * BLOCK_DIMENSIONS])
        right = queries.load([first_query, chunk * BLOCK_DIMENSIONS])
        # "ieee" matters for float32 operands alone: not rounded to TF32.
        products = tl.dot(left, right.T, products, input_precision="ieee")
        if chunk == CHUNKS - 1:
            limit = tl.load(limits + first_query + tl.arange(0, BLOCK_QUERIES))
            reached = (products >= limit[None, :]).to(tl.int32)
            if tl.max(tl.max(reached, 1), 0) > 0:
                tl.store(found_tiles + tl.atomic_add(n_found, 1), tile)
            products = tl.zeros((BLOCK_VALUES, BLOCK_QUERIES), dtype=tl.float32)


@triton.jit(do_not_specialize=["n_values", "capacity", "query_tiles"])
def _pairs_of_tiles_kernel(
    values,
    queries,
    limits,
    found_tiles,
    n_found,
    found_queries,
    found_values,
    found_products,
    counter,
    n_values,
    capacity,
    query_tiles,
    CHUNKS: tl.constexpr,  # noqa: N803
    BLOCK_VALUES: tl.constexpr,  # noqa: N803
    BLOCK_QUERIES: tl.constexpr,  # noqa: N803
    BLOCK_DIMENSIONS: tl.constexpr,  # noqa: N803
    PART_VALUES: tl.constexpr,  # noqa: N803
    PART_QUERIES: tl.constexpr,  # noqa: N803
):
    """Multiply the listed tiles again, in parts, and append the pairs that reach the limit."""
    parts_beside: tl.constexpr = BLOCK_QUERIES // PART_QUERIES
    parts: tl.constexpr = (BLOCK_VALUES // PART_VALUES) * parts_beside
    for item in range(tl.program_id(0), tl.load(n_found).to(tl.int32) * parts, tl.num_programs(0)):
        tile, part = tl.load(found_tiles + item // parts), item % parts
        first_value = (tile // query_tiles) * BLOCK_VALUES + (part // parts_beside) * PART_VALUES
        first_query = (tile % query_tiles) * BLOCK_QUERIES + (part % parts_beside) * PART_QUERIES
        products = tl.zeros((PART_VALUES, PART_QUERIES), dtype=tl.float32)
        for chunk in range(CHUNKS):
            left = values.load([first_value, chunk * BLOCK_DIMENSIONS])
            right = queries.load([first_query, chunk * BLOCK_DIMENSIONS])
            products = tl.dot(left, right.T, products, input_precision="ieee")
        rows = first_value + tl.arange(0, PART_VALUES)
        members = first_query + tl.arange(0, PART_QUERIES)
        limit = tl.load(limits + members)
        # Values behind the last are zeros, which a low limit would take for values.
        hit = (products >= limit[None, :]) & (rows < n_values)[:, None]
        hits = hit.to(tl.int32)
        per_row = tl.sum(hits, 1)
        count = tl.sum(per_row, 0)
        if count > 0:
            start = tl.atomic_add(counter, count.to(tl.int64))
            start = tl.minimum(start, capacity).to(tl.int32)
            before_row = tl.cumsum(per_row, 0) - per_row
            slot = start + before_row[:, None] + tl.cumsum(hits, 1) - hits
            fits = hit & (slot < capacity)
            tl.store(found_queries + slot, tl.broadcast_to(members[None, :], hit.shape), mask=fits)
            tl.store(found_values + slot, tl.broadcast_to(rows[:, None], hit.shape), mask=fits)
            tl.store(found_products + slot, products, mask=fits)


@dataclass(frozen=True)
class Configuration:
    """How the kernel cuts and schedules its work."""

    values: int
    queries: int
    dimensions: int
    warps: int
    stages: int
    programs: int


def configurations(n_queries: int, dtype: torch.dtype) -> list[Configuration]:
    """Return what suits a number of query values, the most likely first."""
    queries = min(128, max(16, triton.next_power_of_2(n_queries)))
    if dtype == torch.float32:
        return [Configuration(64, min(queries, 32), 32, 4, 2, 4)]
    if queries <= 64:
        # Reading the values is what takes time: many loads must be under way.
        cuts = ((128, 4, 4, 2), (128, 4, 3, 3), (64, 4, 6, 3), (256, 8, 4, 1), (128, 4, 6, 1))
        return [Configuration(rows, queries, 64, *rest) for rows, *rest in cuts]
    # Multiplying is: large tiles, which read less of the cache for each product.
    cuts = ((256, 128, 8, 4, 1), (128, 256, 8, 4, 1), (128, 128, 4, 3, 2), (256, 128, 8, 3, 1))
    cuts += ((128, 128, 8, 5, 1),)
    return [Configuration(rows, columns, 64, *rest) for rows, columns, *rest in cuts]


def aligned(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors whose rows are as long as the kernel needs, with zeros behind them."""
    step = ALIGNMENT // vectors.itemsize
    missing = -vectors.shape[1] % step
    if missing:
        return torch.nn.functional.pad(vectors, (0, missing))
    return vectors.contiguous()


@dataclass(frozen=True)
class Prepared:
    """Query values as the kernel reads them, and their limits up to the end of the last tile."""

    queries: torch.Tensor
    limits: torch.Tensor


class PairFinder:
    """Finds pairs with a large inner product; its buffers grow with what is found and are kept."""

    def __init__(self, values: torch.Tensor, configuration: Configuration | None = None) -> None:
        self._values, self._configuration = aligned(values), configuration
        device = values.device
        self._counters = torch.zeros(2, dtype=torch.int64, device=device)
        self._tiles = torch.empty(0, dtype=torch.int32, device=device)
        self._multiprocessors = (
            torch.cuda.get_device_properties(device).multi_processor_count
            if device.type == "cuda"
            else 1
        )
        self._allocate(FIRST_CAPACITY)

    def prepare(self, queries: torch.Tensor, limits: torch.Tensor) -> Prepared:
        configuration = self._configuration_for(len(queries))
        missing = -len(limits) % configuration.queries
        return Prepared(
            aligned(queries), torch.nn.functional.pad(limits, (0, missing), value=torch.inf)
        )

    def find(self, queries: torch.Tensor, limits: torch.Tensor) -> FoundPairs:
        """Return the pairs with a product of at least the query's limit."""
        pairs = self._scan(self.prepare(queries, limits), 0, len(self._values))
        rows, members, products = (torch.cat(part) for part in zip(*pairs, strict=True))
        return rows, members, products

    def launch(self, prepared: Prepared, begin: int = 0, end: int | None = None) -> None:
        """Find the pairs of some rows, all by default, without waiting for them."""
        values, queries = self._values[begin:end], prepared.queries
        self._counters.zero_()
        if not len(values) or not len(queries):
            return
        configuration = self._configuration_for(len(queries))
        chunk, cut = configuration.dimensions, (configuration.values, configuration.queries)
        part = (min(64, cut[0]), min(64, cut[1]))
        query_tiles = triton.cdiv(len(queries), cut[1])
        tiles = triton.cdiv(len(values), cut[0]) * query_tiles
        if len(self._tiles) < tiles:
            self._tiles = torch.empty(tiles, dtype=torch.int32, device=values.device)
        shape = {
            "CHUNKS": triton.cdiv(values.shape[1], chunk),
            "BLOCK_VALUES": cut[0],
            "BLOCK_QUERIES": cut[1],
            "BLOCK_DIMENSIONS": chunk,
        }
        n_found, counter = self._counters[:1], self._counters[1:]
        _tiles_above_kernel[(min(tiles, configuration.programs * self._multiprocessors),)](
            TensorDescriptor.from_tensor(values, [cut[0], chunk]),
            TensorDescriptor.from_tensor(queries, [cut[1], chunk]),
            prepared.limits,
            self._tiles,
            n_found,
            query_tiles,
            tiles,
            **shape,
            num_warps=configuration.warps,
            num_stages=configuration.stages,
        )
        _pairs_of_tiles_kernel[(min(tiles, 4 * self._multiprocessors),)](
            TensorDescriptor.from_tensor(values, [part[0], chunk]),
            TensorDescriptor.from_tensor(queries, [part[1], chunk]),
            prepared.limits,
            self._tiles,
            n_found,
            self._queries,
            self._members,
            self._products,
            counter,
            len(values),
            self._capacity,
            query_tiles,
            **shape,
            PART_VALUES=part[0],
            PART_QUERIES=part[1],
            num_warps=4,
            num_stages=2,
        )

    def _configuration_for(self, n_queries: int) -> Configuration:
        return self._configuration or configurations(n_queries, self._values.dtype)[0]

    def _scan(self, prepared: Prepared, begin: int, end: int) -> list[FoundPairs]:
        self.launch(prepared, begin, end)
        count = int(self._counters[1])
        if count > MOST_PAIRS and end - begin > 1:
            middle = (begin + end) // 2
            return self._scan(prepared, begin, middle) + self._scan(prepared, middle, end)
        if count > self._capacity:
            self._allocate(triton.next_power_of_2(count))
            self.launch(prepared, begin, end)
        return [
            (
                self._queries[:count].long(),
                self._members[:count].long() + begin,
                self._products[:count].clone(),
            )
        ]

    def _allocate(self, capacity: int) -> None:
        device = self._values.device
        self._capacity = capacity
        self._queries, self._members = (
            torch.empty(capacity, dtype=torch.int32, device=device) for _ in range(2)
        )
        self._products = torch.empty(capacity, device=device)


SAMPLE = 1 << 21
"""Values that configurations are compared on: more than the cache of a GPU holds."""

REPEATS = 3


class Tuner:
    """Looks for configurations once for each length of a vector and each width of a tile."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._best: dict[tuple[int, int], Configuration | None] = {}
        self.tried: list[dict[str, object]] = []

    def best(
        self, values: torch.Tensor, queries: torch.Tensor, limits: torch.Tensor
    ) -> Configuration | None:
        """Return the fastest configuration on some of the values, or None where none runs."""
        choices = configurations(len(queries), values.dtype)
        key = values.shape[1], min(choice.queries for choice in choices)
        if key not in self._best:
            self._best[key] = self._compare(choices, values[:SAMPLE], queries, limits)
        return self._best[key]

    def _compare(
        self,
        choices: list[Configuration],
        values: torch.Tensor,
        queries: torch.Tensor,
        limits: torch.Tensor,
    ) -> Configuration | None:
        best: tuple[float, Configuration] | None = None
        times: list[dict[str, object]] = []
        started = time.perf_counter()
        for choice in choices:
            if times and time.perf_counter() - started > self._seconds:
                break
            try:
                seconds = _seconds(choice, values, queries, limits)
            except (TritonError, RuntimeError) as error:
                times.append({**asdict(choice), "failed": str(error).strip()[:200]})
                continue
            times.append({**asdict(choice), "seconds": seconds})
            if best is None or seconds < best[0]:
                best = seconds, choice
        self.tried.append(
            {
                "values": len(values),
                "width": values.shape[1],
                "queries": len(queries),
                "configurations": times,
                "best": best and asdict(best[1]),
                "took_seconds": time.perf_counter() - started,
            }
        )
        return best and best[1]


def _seconds(
    choice: Configuration, values: torch.Tensor, queries: torch.Tensor, limits: torch.Tensor
) -> float:
    """Return what a configuration takes; the first launch, which compiles, is not counted."""
    finder = PairFinder(values, choice)
    launch = partial(finder.launch, finder.prepare(queries, limits))
    launch()
    wait_for(values.device)
    return device_seconds(launch, values.device, REPEATS)
