"""The fused kernel that multiplies two sets of vectors and writes only the pairs above a limit."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

FIRST_CAPACITY = 1 << 20
MOST_PAIRS = 1 << 26
"""Pairs that a launch may give, 16 bytes each; a wider search is cut into parts."""

FoundPairs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Rows of the queries, rows of the values, products: int64 (p,) twice, float32 (p,)."""


@triton.jit
def _pairs_above_kernel(
    values,
    queries,
    limits,
    found_queries,
    found_values,
    found_products,
    counter,
    n_values,
    n_queries,
    dimensions,
    capacity,
    query_tiles,
    BLOCK_VALUES: tl.constexpr,  # noqa: N803
    BLOCK_QUERIES: tl.constexpr,  # noqa: N803
    BLOCK_DIMENSIONS: tl.constexpr,  # noqa: N803
):
    """Multiply a tile of values with a tile of queries and append pairs that reach the limit.

    The limit is that of the query.

    Tiles of queries change fastest, so that a tile of values is read from memory once and for the
    other query tiles from the L2 cache. Slots come from one atomic addition a tile, and only where
    a tile has a pair; beyond `capacity` pairs are counted and not written.
    """
    program = tl.program_id(0)
    rows = (program // query_tiles).to(tl.int64) * BLOCK_VALUES + tl.arange(0, BLOCK_VALUES)
    members = (program % query_tiles) * BLOCK_QUERIES + tl.arange(0, BLOCK_QUERIES)
    row_there, member_there = rows < n_values, members < n_queries
    products = tl.zeros((BLOCK_VALUES, BLOCK_QUERIES), dtype=tl.float32)
    for begin in range(0, dimensions, BLOCK_DIMENSIONS):
        part = begin + tl.arange(0, BLOCK_DIMENSIONS)
        inside = part < dimensions
        left = tl.load(
            values + rows[:, None] * dimensions + part[None, :],
            mask=row_there[:, None] & inside[None, :],
            other=0.0,
        )
        right = tl.load(
            queries + members[None, :] * dimensions + part[:, None],
            mask=member_there[None, :] & inside[:, None],
            other=0.0,
        )
        # "ieee" matters for float32 operands alone: not rounded to TF32.
        products = tl.dot(left, right, products, input_precision="ieee")
    limit = tl.load(limits + members, mask=member_there, other=float("inf"))
    hit = (products >= limit[None, :]) & row_there[:, None] & member_there[None, :]
    hits = hit.to(tl.int32)
    per_row = tl.sum(hits, 1)
    count = tl.sum(per_row, 0)
    if count > 0:
        base = tl.atomic_add(counter, count.to(tl.int64))
        before_row = tl.cumsum(per_row, 0) - per_row
        slot = base + (before_row[:, None] + tl.cumsum(hits, 1) - hits).to(tl.int64)
        fits = hit & (slot < capacity)
        tl.store(found_queries + slot, tl.broadcast_to(members[None, :], hit.shape), mask=fits)
        tl.store(found_values + slot, tl.broadcast_to(rows[:, None], hit.shape), mask=fits)
        tl.store(found_products + slot, products, mask=fits)


INTERPRETED = not isinstance(_pairs_above_kernel, triton.JITFunction)
"""Whether Triton's interpreter runs the kernel, on any device."""


class PairFinder:
    """Finds pairs with a large inner product; its buffers grow with what is found and are kept.

    Parameters
    ----------
    values : float16 or float32 (N, d), contiguous
    """

    def __init__(self, values: torch.Tensor) -> None:
        self._values = values
        self._allocate(FIRST_CAPACITY)

    def find(self, queries: torch.Tensor, limits: torch.Tensor) -> FoundPairs:
        """Return the pairs with a product of at least the query's limit.

        Parameters
        ----------
        queries : as the values (n, d), contiguous
        limits : float32 (n,)
        """
        pairs = self._scan(queries, limits, 0, len(self._values))
        rows, members, products = (torch.cat(part) for part in zip(*pairs, strict=True))
        return rows, members, products

    def count(self, queries: torch.Tensor, limits: torch.Tensor) -> int:
        """Return how many pairs `find` would give: one launch, and nothing but the launch."""
        return self._launch(queries, limits, 0, len(self._values))

    def _scan(
        self, queries: torch.Tensor, limits: torch.Tensor, begin: int, end: int
    ) -> list[FoundPairs]:
        count = self._launch(queries, limits, begin, end)
        if count > MOST_PAIRS and end - begin > 1:
            middle = (begin + end) // 2
            return self._scan(queries, limits, begin, middle) + self._scan(
                queries, limits, middle, end
            )
        if count > self._capacity:
            self._allocate(triton.next_power_of_2(count))
            self._launch(queries, limits, begin, end)
        return [
            (
                self._queries[:count].long(),
                self._members[:count] + begin,
                self._products[:count].clone(),
            )
        ]

    def _launch(self, queries: torch.Tensor, limits: torch.Tensor, begin: int, end: int) -> int:
        values, (n_queries, dimensions) = self._values[begin:end], queries.shape
        if not len(values) or not n_queries:
            return 0
        block_queries = min(128, max(16, triton.next_power_of_2(n_queries)))
        # The fastest of a dozen on one H200, for 16, 32 and 128 query values at a time.
        block_values = 256 if block_queries == 32 else 128
        query_tiles = triton.cdiv(n_queries, block_queries)
        self._counter.zero_()
        _pairs_above_kernel[(triton.cdiv(len(values), block_values) * query_tiles,)](
            values,
            queries,
            limits,
            self._queries,
            self._members,
            self._products,
            self._counter,
            len(values),
            n_queries,
            dimensions,
            self._capacity,
            query_tiles,
            BLOCK_VALUES=block_values,
            BLOCK_QUERIES=block_queries,
            BLOCK_DIMENSIONS=64 if values.dtype == torch.float16 else 32,
            num_warps=2 if block_queries == 16 else 4,
            num_stages=3 if block_queries != 32 else 1,
        )
        return int(self._counter)

    def _allocate(self, capacity: int) -> None:
        device = self._values.device
        self._capacity = capacity
        self._queries = torch.empty(capacity, dtype=torch.int32, device=device)
        self._members = torch.empty(capacity, dtype=torch.int64, device=device)
        self._products = torch.empty(capacity, device=device)
        self._counter = torch.zeros(1, dtype=torch.int64, device=device)
