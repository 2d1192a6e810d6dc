"""Brute force by blocked matrix products, the speed of a machine without any index."""

from __future__ import annotations

import torch

from benchmarks.algorithms.brute_gemm.scan import PRECISIONS, ProductScan
from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs
from benchmarks.rivals import PairRival
from pexeso.engine.arrays import as_tensor


class BruteGemm(PairRival):
    """All inner products, block by block, and a comparison.

    Build arguments: ``block_products``, the number of products held at a time, so that a block
    stays in the cache until it is compared (by default 2^20 on the CPU, 2^26 on CUDA); and
    ``precision``, ``float32`` (default) or ``bfloat16``, of the products. Whatever they cannot
    decide is decided in float32, then by the defining distance.
    """

    def build(
        self, lake: BenchmarkLake, *, precision: str, block_products: int | None = None
    ) -> None:
        """Copy the vectors to the device; take their norms."""
        self.take_postings(lake)
        self._scan = ProductScan(
            as_tensor(lake.vectors, self.device),
            precision=PRECISIONS[precision],
            block_products=block_products,
        )
        self.index_bytes += self._scan.n_bytes

    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        pairs = self._scan.pairs(vectors, tau)
        self.work = {
            "distances": len(vectors) * self._scan.n_values,
            "vectors_touched": len(vectors) * self._scan.n_values,
            "bytes_read": self._scan.scanned_bytes,
            "decided_again": self._scan.decided_again,
        }
        return pairs
