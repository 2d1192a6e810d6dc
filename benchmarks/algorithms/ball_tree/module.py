"""Ball tree of scikit-learn: an exact metric index in the space of the vectors itself."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.neighbors import BallTree as SklearnBallTree

from benchmarks.declared import Algorithm, Arguments
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from benchmarks.matching import count_columns, decide
from pexeso.engine.arrays import as_tensor

_WIDER = 1e-9


class BallTree(Algorithm):
    """Radius search in float64, one query value after the other; pairs within 1e-9 of tau are decided by the defining distance.

    Build argument: ``leaf_size``.
    """

    def build(self, lake: BenchmarkLake, arguments: Arguments) -> None:
        """Build the tree, which holds the vectors in float64."""
        self._lake = lake
        self._vectors = as_tensor(lake.vectors)
        self._tree = SklearnBallTree(lake.vectors, **arguments)
        csr = lake.value_columns
        parts = [np.asarray(part).nbytes for part in self._tree.get_arrays()]
        self.index_bytes = sum(parts) + csr.offsets.nbytes + csr.members.nbytes

    def query(self, query: BenchmarkQuery) -> Answer:
        """Match by radius search, then count."""
        self._tree.reset_n_calls()
        lists, distances = self._tree.query_radius(query.vectors.numpy(), query.tau + _WIDER, return_distance=True)
        n_distances = self._tree.get_n_calls()
        self.work = {"distances": n_distances, "bytes_read": n_distances * self._lake.dimensions * 8}
        sizes = torch.tensor([len(found) for found in lists])
        queries = torch.repeat_interleave(torch.arange(len(query)), sizes)
        values = torch.from_numpy(np.concatenate(lists).astype(np.int64))
        open_pairs = torch.from_numpy(np.concatenate(distances) > query.tau - _WIDER)
        queries, values = decide(queries, values, open_pairs, query, self._vectors)
        return count_columns(queries, values, query, self._lake.value_columns, self._lake.n_columns)
