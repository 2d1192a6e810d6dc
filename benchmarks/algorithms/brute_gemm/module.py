"""Brute force by blocked float32 matrix products: what a machine's own arithmetic gives without any index."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.declared import Algorithm, Arguments
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from benchmarks.matching import count_columns, decide, product_error
from pexeso.engine.arrays import as_tensor
from pexeso.engine.postings import Csr


class BruteGemm(Algorithm):
    """All inner products, block by block, and a comparison.

    ``|x - y|^2 <= tau^2`` exactly when ``x . y >= (|x|^2 + |y|^2 - tau^2) / 2``. The norms are taken in float64 once; the lake's shortest and longest
    give one lower and one upper limit for a query value, wider by the product's rounding error: below the first nothing matches, above
    the second everything does, and the few pairs in between are decided by the defining distance.

    The build argument ``block_products`` is the number of products held at a time, so that a block stays in the cache until it is compared.
    """

    def build(self, lake: BenchmarkLake, arguments: Arguments) -> None:
        """Copy the vectors to the device; take their norms."""
        self._vectors = as_tensor(lake.vectors, self.device)
        self._block_products = int(arguments["block_products"])
        squares = torch.from_numpy(np.einsum("nd,nd->n", lake.vectors, lake.vectors, dtype=np.float64))
        self._least, self._largest = (float(squares.min()), float(squares.max())) if len(squares) else (1.0, 1.0)
        csr = lake.value_columns
        self._postings = Csr(csr.offsets.to(self.device), csr.members.to(self.device))
        self._n_columns = lake.n_columns
        self.index_bytes = lake.vectors.nbytes + csr.offsets.nbytes + csr.members.nbytes

    def query(self, query: BenchmarkQuery) -> Answer:
        """Match by products, then count."""
        queries, values = self._match(query)
        n_values, dimensions = self._vectors.shape
        self.work = {
            "distances": len(query) * n_values,
            "vectors_touched": len(query) * n_values,
            "bytes_read": n_values * dimensions * 4,
        }
        return count_columns(queries, values, query, self._postings, self._n_columns)

    def _match(self, query: BenchmarkQuery) -> tuple[torch.Tensor, torch.Tensor]:
        ours = query.vectors.to(self.device)
        low, high = self._limits(ours, query.tau)
        found = [
            (begin + rows, members, products < high[members])
            for begin, rows, members, products in self._above(ours, low)
        ]
        if not found:
            nothing = torch.zeros(0, dtype=torch.int64, device=self.device)
            return nothing, nothing
        values, queries, open_pairs = (torch.cat(part) for part in zip(*found, strict=True))
        return decide(queries, values, open_pairs, query, self._vectors)

    def _limits(self, ours: torch.Tensor, tau: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Give the products, float32 (n,), below which no pair and from which on every pair matches."""
        squares = (ours.double() ** 2).sum(1)
        largest = math.sqrt(max(self._largest, float(squares.max()) if len(ours) else 1.0))
        error = product_error(ours.shape[1], largest)
        low = ((squares + self._least - tau * tau) / 2 - error).float()
        high = ((squares + self._largest - tau * tau) / 2 + error).float()
        # Rounding to float32 must not narrow the band.
        return torch.nextafter(low, torch.full_like(low, -math.inf)), torch.nextafter(
            high, torch.full_like(high, math.inf)
        )

    def _above(
        self, ours: torch.Tensor, low: torch.Tensor
    ) -> Iterator[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Yield for each block its first row, and row in it, query value and product of all pairs not below the limit."""
        if not len(ours):
            return
        rows = max(1, self._block_products // len(ours))
        turned = ours.T.contiguous()
        products = torch.empty((min(rows, len(self._vectors)), len(ours)), device=self.device)
        for begin in range(0, len(self._vectors), rows):
            block = self._vectors[begin : begin + rows]
            held = products[: len(block)]
            torch.mm(block, turned, out=held)
            row, member = _nonzero(held >= low)
            yield begin, row, member, held[row, member]


def _nonzero(mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the set cells, int64 (p,) twice; numpy's search skips empty stretches much faster than torch's on the CPU."""
    if mask.device.type != "cpu":
        return torch.nonzero(mask, as_tuple=True)
    flat = torch.from_numpy(np.flatnonzero(mask.numpy()))
    return torch.div(flat, mask.shape[1], rounding_mode="floor"), flat % mask.shape[1]
