"""Ball tree of scikit-learn: an exact metric index in the space of the vectors itself."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.neighbors import BallTree as SklearnBallTree

from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs, decide
from benchmarks.rivals import PairRival
from pexeso.engine.arrays import as_tensor

_WIDER = 1e-9


class BallTree(PairRival):
    """Radius search in float64, one query value after the other.

    Pairs within 1e-9 of tau are decided by the defining distance.

    Build argument: ``leaf_size``. Of 2 to 320, 2 is the fastest; the library has 40.
    """

    def build(self, lake: BenchmarkLake, *, leaf_size: int) -> None:
        """Build the tree, which holds the vectors in float64."""
        self.take_postings(lake)
        self._vectors = as_tensor(lake.vectors)
        self._tree = SklearnBallTree(lake.vectors, leaf_size=leaf_size)
        self.index_bytes += sum(np.asarray(part).nbytes for part in self._tree.get_arrays())

    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        self._tree.reset_n_calls()
        lists, distances = self._tree.query_radius(
            vectors.numpy(), tau + _WIDER, return_distance=True
        )
        n_distances = self._tree.get_n_calls()
        self.work = {"distances": n_distances, "bytes_read": n_distances * vectors.shape[1] * 8}
        sizes = torch.tensor([len(neighbours) for neighbours in lists])
        queries = torch.repeat_interleave(torch.arange(len(vectors)), sizes)
        values = torch.from_numpy(np.concatenate(lists).astype(np.int64))
        open_pairs = torch.from_numpy(np.concatenate(distances) > tau - _WIDER)
        return decide(queries, values, open_pairs, vectors, self._vectors, tau)
