"""faiss product quantisation with inverted lists, range search: approximate."""

from __future__ import annotations

import math

import faiss
import numpy as np
import torch

from benchmarks.approximate import TunedRival, faiss_pairs, squared_radius
from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs
from benchmarks.tuning import Sample

WIDEST = 8.0
"""Largest radius that is looked at while tuning, as a multiple of tau."""
TRAINING_POINTS = 39
"""faiss wants as many vectors for each centroid."""


class FaissPq(TunedRival):
    """`IndexIVFPQ.range_search`, with vectors kept as short codes in inverted lists."""

    def build(self, lake: BenchmarkLake, *, n_lists: int, component: int) -> None:
        """Train the lists and codes, and add the vectors."""
        self.take_lake(lake)
        vectors = np.ascontiguousarray(lake.vectors)
        limit = max(1, lake.n_values // TRAINING_POINTS)
        n_lists = min(n_lists, limit)
        self._codes = n_codes(lake.dimensions, component)
        bits = min(8, int(math.log2(limit))) if limit > 1 else 1
        self._quantiser = faiss.IndexFlatL2(lake.dimensions)
        self._index = faiss.IndexIVFPQ(self._quantiser, lake.dimensions, n_lists, self._codes, bits)
        self._index.train(vectors)
        self._index.add(vectors)
        per_value = self._index.code_size + 8
        self.index_bytes += (
            lake.n_values * per_value
            + n_lists * lake.dimensions * 4
            + (1 << bits) * lake.dimensions * 4
        )

    def tune(self, sample: Sample, tau: float) -> None:
        """Find the number of lists, then the radius."""
        probes, enough = 1, self.target_recall + (1.0 - self.target_recall) / 2.0
        while True:
            self._probes = min(probes, self._index.nlist)
            answer = self._search(sample.vectors, WIDEST * tau)
            distances = np.sort(answer[1][sample.is_right(faiss_pairs(answer))])
            if len(distances) >= enough * len(sample.keys) or self._probes == self._index.nlist:
                break
            probes *= 2
        rank = min(max(1, math.ceil(self.target_recall * len(sample.keys))), len(distances))
        # Distances come squared.
        self._radius = math.sqrt(float(distances[rank - 1])) if rank else tau

    def find(self, vectors: torch.Tensor, tau: float) -> Pairs:
        """Search; ``work`` is told: ``distances`` are those of codes."""
        faiss.cvar.indexIVF_stats.reset()
        pairs = faiss_pairs(self._search(vectors, self._radius))
        n_codes_compared = int(faiss.cvar.indexIVF_stats.ndis)
        self.work = {
            "distances": n_codes_compared,
            "vectors_touched": n_codes_compared,
            "bytes_read": n_codes_compared * self._codes,
        }
        return pairs

    def _search(
        self, vectors: torch.Tensor, radius: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parameters = faiss.SearchParametersIVF(nprobe=self._probes)
        return self._index.range_search(vectors.numpy(), squared_radius(radius), params=parameters)


def n_codes(dimensions: int, component: int) -> int:
    """Return the largest divisor of `dimensions` with at least `component` dimensions a code."""
    limit = max(1, dimensions // component)
    return next(number for number in range(limit, 0, -1) if dimensions % number == 0)
