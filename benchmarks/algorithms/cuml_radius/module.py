"""RAPIDS: cuML's nearest neighbours on CUDA, asked for more of them until the radius is full."""

from __future__ import annotations

import math

import torch

from benchmarks.declared import Arguments
from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs, decide_candidates, no_pairs
from benchmarks.rivals import PairRival, only
from pexeso.engine.arrays import as_tensor
from pexeso.errors import InputError

PRODUCT_ROUNDOFF = 2.0**-10
"""Of the shortest format that float32 products are made in on a GPU:

TF32, 11 significant bits, the rest cut.
"""
QUERIES_AT_ONCE = 1 << 12
NEIGHBOURS_AT_ONCE = 1 << 24


class CumlRadius(PairRival):
    """`cuml.neighbors.NearestNeighbors` by brute force.

    cuML has no radius search (its documentation: "Currently, cuML supports k-NN queries"), so the
    nearest ``first_neighbours`` are asked for, and of the query values whose farthest still lies
    within the radius four times as many, and so on. The radius is wider by what TF32 products could
    cost, though cuML promises float32; whatever lies within it is decided in float32, then by the
    defining distance.

    Build argument: ``first_neighbours``.
    """

    def build(self, lake: BenchmarkLake, arguments: Arguments) -> None:
        """Hand the vectors to cuML."""
        from cuml.neighbors import NearestNeighbors

        only(arguments, ("first_neighbours",), "build", "cuml_radius")
        self._first = int(arguments.get("first_neighbours", 16))
        if self._first < 1:
            raise InputError(f"first_neighbours must be at least 1. Got {self._first} instead.")
        self.take_postings(lake)
        self._vectors = as_tensor(lake.vectors, self.device)
        self._largest = (
            float(torch.linalg.vector_norm(self._vectors, dim=1).max()) if lake.n_values else 1.0
        )
        # Arrays of torch are taken through `__cuda_array_interface__`, without a copy on the way.
        self._neighbours = NearestNeighbors(
            algorithm="brute", metric="euclidean", output_type="cupy"
        )
        if lake.n_values:
            self._neighbours.fit(self._vectors)
        self.index_bytes += self._vectors.nbytes

    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        """Ask, ask again for more, then decide."""
        self.work = {"distances": 0, "vectors_touched": 0, "bytes_read": 0}
        if not len(vectors) or not len(self._vectors):
            return no_pairs(self.device)
        pairs = [
            self._near(vectors, begin + torch.arange(len(part), device=self.device), tau)
            for begin, part in zip(
                range(0, len(vectors), QUERIES_AT_ONCE),
                torch.split(vectors, QUERIES_AT_ONCE),
                strict=True,
            )
        ]
        queries, values = (torch.cat(part) for part in zip(*pairs, strict=True))
        self.work["decided_again"] = len(queries)
        return decide_candidates(queries, values, vectors, self._vectors, tau)

    def _near(self, vectors: torch.Tensor, waiting: torch.Tensor, tau: float) -> Pairs:
        """Find all values within the wider radius of the query values with the given rows."""
        radius = self._radius(vectors, tau)
        count, pairs = min(self._first, len(self._vectors)), []
        while len(waiting):
            unfinished = []
            for part in torch.split(waiting, max(1, NEIGHBOURS_AT_ONCE // count)):
                distances, members = self._nearest(vectors[part], count)
                within = distances <= radius
                whole = (
                    ~within.all(1) if count < len(self._vectors) else torch.ones_like(within[:, 0])
                )
                row, rank = torch.nonzero(within & whole[:, None], as_tuple=True)
                pairs.append((part[row], members[row, rank]))
                unfinished.append(part[~whole])
            waiting, count = torch.cat(unfinished), min(4 * count, len(self._vectors))
        queries, values = (torch.cat(part) for part in zip(*pairs, strict=True))
        return queries, values

    def _nearest(self, vectors: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the distances, ascending, and rows of the nearest values: (n, count) both."""
        distances, members = self._neighbours.kneighbors(vectors.contiguous(), n_neighbors=count)
        n_pairs = len(vectors) * len(self._vectors)
        self.work["distances"] += n_pairs
        self.work["vectors_touched"] += n_pairs
        self.work["bytes_read"] += self._vectors.nbytes
        return torch.as_tensor(distances, device=self.device), torch.as_tensor(
            members, device=self.device
        ).long()

    def _radius(self, vectors: torch.Tensor, tau: float) -> float:
        """Widen tau by the error of squared distances from products in TF32.

        The margin is twice the error from rounding the operands, and a little more for the sums.
        """
        largest = max(self._largest, float(torch.linalg.vector_norm(vectors, dim=1).max()))
        error = 2.0 * (2.0 * PRODUCT_ROUNDOFF + 2.0**-18) * largest * largest * 1.01
        return math.sqrt(tau * tau + error)
