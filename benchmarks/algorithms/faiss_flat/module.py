"""faiss flat range search (`IndexFlatIP.range_search` or `IndexFlatL2.range_search`)."""

from __future__ import annotations

import math

import faiss
import numpy as np
import torch

from benchmarks.approximate import faiss_pairs
from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs, decide, no_pairs, product_error, product_limits, square_error
from benchmarks.rivals import PairRival
from pexeso.engine.arrays import as_tensor


class FaissFlat(PairRival):
    """Range search with a radius widened by the rounding error of faiss."""

    def build(self, lake: BenchmarkLake, *, metric: str) -> None:
        self._metric = metric
        self.take_postings(lake)
        make = faiss.IndexFlatL2 if self._metric == "l2" else faiss.IndexFlatIP
        self._index = make(lake.dimensions)
        self._index.add(np.ascontiguousarray(lake.vectors))
        self._vectors = as_tensor(lake.vectors)
        squares = np.einsum("nd,nd->n", lake.vectors, lake.vectors, dtype=np.float64)
        self._smallest, self._largest = (
            float(squares.min(initial=1.0)),
            float(squares.max(initial=1.0)),
        )
        self.index_bytes += lake.vectors.nbytes

    def set_query_arguments(self, *, blas_threshold: int = 1, database_block: int = 4096) -> None:
        self._blas_threshold, self._database_block = blas_threshold, database_block

    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        n_values = len(self._vectors)
        self.work = {
            "distances": len(vectors) * n_values,
            "vectors_touched": len(vectors) * n_values,
            "bytes_read": self._vectors.nbytes,
        }
        if not len(vectors):
            return no_pairs(self.device)
        # One setting each for the whole process.
        faiss.cvar.distance_compute_blas_threshold = self._blas_threshold
        faiss.cvar.distance_compute_blas_database_bs = self._database_block
        queries, values, open_pairs = (
            self._by_squares(vectors, tau)
            if self._metric == "l2"
            else self._by_products(vectors, tau)
        )
        self.work["decided_again"] = int(open_pairs.sum())
        return decide(queries, values, open_pairs, vectors, self._vectors, tau)

    def _by_squares(
        self, vectors: torch.Tensor, tau: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        squares = vectors.double().square().sum(1)
        error = square_error(vectors.shape[1], math.sqrt(max(self._largest, float(squares.max()))))
        # The radius is one of squared distances, in float32, and not inclusive.
        radius = float(np.nextafter(np.float32(tau * tau + error), np.float32(np.inf)))
        queries, distances, values = self._search(vectors, radius)
        sure = np.nextafter(np.float32(tau * tau - error), np.float32(-np.inf))
        return queries, values, distances > sure

    def _by_products(
        self, vectors: torch.Tensor, tau: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        squares = vectors.double().square().sum(1)
        error = product_error(vectors.shape[1], math.sqrt(max(self._largest, float(squares.max()))))
        low, high = product_limits(squares, self._smallest, self._largest, tau, error)
        # The radius, one for all, is not inclusive either: products above it are found.
        radius = float(np.nextafter(np.float32(low.min()), np.float32(-np.inf)))
        queries, products, values = self._search(vectors, radius)
        return queries, values, products < high[queries]

    def _search(
        self, vectors: torch.Tensor, radius: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        result = self._index.range_search(vectors.numpy(), radius)
        queries, values = faiss_pairs(result)
        return queries, torch.from_numpy(result[1]), values
