"""faiss HNSW graph with range search: approximate."""

from __future__ import annotations

import faiss
import numpy as np
import torch

from benchmarks.approximate import TunedRival, faiss_pairs, squared_radius
from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs
from benchmarks.tuning import Sample

EF_SEARCH = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048)


class FaissHnsw(TunedRival):
    """`IndexHNSWFlat.range_search`, a graph walk that keeps the values it meets within tau.

    Distances are float32 distances of the vectors themselves.

    So no pair that is found is wrong, rounding at tau apart, and nothing is checked again; pairs
    are missed. ``efSearch`` is the smallest of `EF_SEARCH` that has the target recall.

    Build arguments: ``links`` (M) and ``ef_construction``. Query argument: ``target_recall``.

    Source: Malkov and Yashunin, *Efficient and robust approximate nearest neighbor search using
    hierarchical navigable small world graphs*, 2018.
    """

    def build(self, lake: BenchmarkLake, *, links: int, ef_construction: int) -> None:
        self.take_lake(lake)
        self._index = faiss.IndexHNSWFlat(lake.dimensions, links)
        self._index.hnsw.efConstruction = ef_construction
        self._index.add(np.ascontiguousarray(lake.vectors))
        # With an interrupt handler faiss 1.15 searches in runs, and its range search gives room for
        # the answers of one run alone: the second ends the process.
        faiss.InterruptCallback.clear_instance()
        # Twice `links` at the lowest level, which nearly all vectors have alone; 4 bytes each.
        self.index_bytes += lake.vectors.nbytes + self._index.hnsw.neighbors.size() * 4

    def tune(self, sample: Sample, tau: float) -> None:
        for ef_search in EF_SEARCH:
            self._ef_search = ef_search
            if sample.recall(self.find(sample.vectors, tau)) >= self.target_recall:
                break

    def find(self, vectors: torch.Tensor, tau: float) -> Pairs:
        faiss.cvar.hnsw_stats.reset()
        parameters = faiss.SearchParametersHNSW(efSearch=self._ef_search)
        pairs = faiss_pairs(
            self._index.range_search(vectors.numpy(), squared_radius(tau), params=parameters)
        )
        n_distances = int(faiss.cvar.hnsw_stats.ndis)
        self.work = {
            "distances": n_distances,
            "vectors_touched": n_distances,
            "bytes_read": n_distances * vectors.shape[1] * 4,
        }
        return pairs
