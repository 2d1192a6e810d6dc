"""One pass over all vectors by matrix products, exact whatever their precision."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.matching import (
    TENSOR_CORE_TERMS,
    Pairs,
    decide,
    decide_candidates,
    no_pairs,
    product_error,
    product_limits,
    rounded_product_error,
    rounding_loss,
)

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
BLOCK_PRODUCTS = {"cpu": 1 << 20, "cuda": 1 << 26}
"""Products of one block at most.

On the CPU 2^18 to 2^22 products are about equally fast; on CUDA every block costs launches and a
wait, and its size was not measured.
"""

TILE_QUERIES = 4096
"""Query values of one product at most.

Blocks of 1,024 vectors by 256 query values and of 256 by 4,096 were equally fast.
"""

SETTLE_AT = 1 << 20
"""Candidates that wait for their decision, about."""

_ROUNDOFF = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}

Candidates = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Query value, value and product of pairs that may match: int64 (p,) twice, float32 (p,)."""


class ProductScan:
    """All pairs within tau of two sets of vectors, by products in blocks.

    The limits of `product_limits` decide by the product alone; the few pairs between them are
    decided by the defining distance. With short operands the band is wide
    (`rounded_product_error`), so the pairs in it are compared in float32 first. Every block is
    multiplied with all query values, up to 4,096 at a time, while it is in the cache: the vectors
    are read once.
    """

    def __init__(
        self,
        vectors: torch.Tensor,
        *,
        precision: torch.dtype = torch.float32,
        block_products: int | None = None,
    ) -> None:
        self._vectors, self._precision = vectors, precision
        self._block_products = block_products or BLOCK_PRODUCTS[vectors.device.type]
        if vectors.device.type == "cuda":
            # What the bounds rest on, for the whole process: no TF32, and sums of partial sums in
            # float32.
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        self._operand = vectors if precision == torch.float32 else vectors.to(precision)
        self._loss = 0.0 if precision == torch.float32 else rounding_loss(vectors, self._operand)
        squares = _squares(vectors)
        self._smallest, self._largest = (
            (float(squares.min()), float(squares.max())) if len(vectors) else (1.0, 1.0)
        )
        self.decided_again = 0

    @property
    def n_values(self) -> int:
        return len(self._vectors)

    @property
    def scanned_bytes(self) -> int:
        return self._operand.nbytes

    @property
    def n_bytes(self) -> int:
        return self._vectors.nbytes + (
            self._operand.nbytes if self._operand is not self._vectors else 0
        )

    def pairs(self, ours: torch.Tensor, tau: float) -> Pairs:
        self.decided_again = 0
        if not len(ours) or not self.n_values:
            return no_pairs(self._vectors.device)
        operand = ours.to(self._precision)
        low, high = self._limits(ours, operand, tau)
        pairs, waiting, n_waiting = [], [], 0
        for candidates in self._above(operand, low):
            waiting.append(candidates)
            n_waiting += len(candidates[0])
            if n_waiting > SETTLE_AT:
                pairs.append(self._settle(waiting, ours, high, tau))
                waiting, n_waiting = [], 0
        if waiting:
            pairs.append(self._settle(waiting, ours, high, tau))
        if not pairs:
            return no_pairs(self._vectors.device)
        queries, values = (torch.cat(part) for part in zip(*pairs, strict=True))
        return queries, values

    def _settle(
        self, waiting: list[Candidates], ours: torch.Tensor, high: torch.Tensor, tau: float
    ) -> Pairs:
        queries, values, products = (torch.cat(part) for part in zip(*waiting, strict=True))
        open_pairs = products < high[queries]
        self.decided_again += int(open_pairs.sum())
        if self._precision == torch.float32:
            return decide(queries, values, open_pairs, ours, self._vectors, tau)
        sure = ~open_pairs
        again = decide_candidates(queries[open_pairs], values[open_pairs], ours, self._vectors, tau)
        return torch.cat([queries[sure], again[0]]), torch.cat([values[sure], again[1]])

    def _limits(
        self, ours: torch.Tensor, operand: torch.Tensor, tau: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        squares = _squares(ours)
        largest = math.sqrt(max(self._largest, float(squares.max())))
        dimensions = ours.shape[1]
        if self._precision == torch.float32:
            error = product_error(dimensions, largest)
        else:
            # torch stores products of matrices of a short format in that format.
            error = rounded_product_error(
                TENSOR_CORE_TERMS * dimensions,
                largest,
                rounding_loss(ours, operand),
                self._loss,
                _ROUNDOFF[self._precision],
            )
        return product_limits(squares, self._smallest, self._largest, tau, error)

    def _above(self, operand: torch.Tensor, low: torch.Tensor) -> Iterator[Candidates]:
        """Yield the candidates of each block and each tile of query values that has any."""
        width = min(TILE_QUERIES, len(operand))
        rows = max(1, self._block_products // width)
        # The limits differ in the last digits only: the lowest of a tile serves for all of it.
        tiles = [
            (
                first,
                operand[first : first + width].T.contiguous(),
                float(low[first : first + width].min()),
            )
            for first in range(0, len(operand), width)
        ]
        held = torch.empty(
            min(rows, self.n_values) * width, dtype=self._precision, device=operand.device
        )
        for begin in range(0, self.n_values, rows):
            block = self._operand[begin : begin + rows]
            for first, right, limit in tiles:
                products = held[: len(block) * right.shape[1]].view(len(block), right.shape[1])
                torch.mm(block, right, out=products)
                row, member = _at_least(products, limit)
                if len(row):
                    yield first + member, begin + row, products[row, member].float()


def _squares(vectors: torch.Tensor) -> torch.Tensor:
    """Return the squared lengths, float64 (n,); in pieces of 65,536 rows."""
    pieces = [part.double().square().sum(1) for part in torch.split(vectors, 1 << 16)]
    return torch.cat(pieces) if pieces else vectors.double().sum(1)


def _at_least(products: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the products not below a limit that float32 holds: rows and columns, int64 (p,)."""
    if products.device.type != "cpu":
        return torch.nonzero(products >= limit, as_tuple=True)
    if products.dtype == torch.float32:
        flat = np.flatnonzero(products.numpy() >= np.float32(limit))
    elif products.dtype == torch.bfloat16 and limit > 0:
        bits = np.float32(limit).view(np.int32) >> 16
        flat = np.flatnonzero(products.view(torch.int16).numpy() >= np.int16(bits))
    else:
        flat = np.flatnonzero(products.float().numpy() >= np.float32(limit))
    positions = torch.from_numpy(flat)
    row = torch.div(positions, products.shape[1], rounding_mode="floor")
    return row, positions - row * products.shape[1]
