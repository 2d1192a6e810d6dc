"""faiss flat range search (`IndexFlatL2.range_search`)."""

from __future__ import annotations

import math

import faiss
import numpy as np
import torch

from benchmarks.declared import Algorithm, Arguments
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from benchmarks.matching import count_columns, decide, square_error
from pexeso.engine.arrays import as_tensor
from pexeso.errors import InputError


class FaissFlat(Algorithm):
    """Range search with a radius wider by faiss's rounding error; pairs that near to tau are decided by the defining distance.

    The query argument ``blas_threshold`` is the number of query values from which on faiss multiplies matrices instead of
    comparing pair by pair. Its own default, 128,000 as of faiss 1.15, makes it up to ten times slower at this task; 1 is its best.
    """

    _blas_threshold = 1

    def build(self, lake: BenchmarkLake, arguments: Arguments) -> None:
        """Copy the vectors into the index."""
        if arguments:
            raise InputError(f"faiss_flat takes no build arguments. Got {', '.join(arguments)} instead.")
        self._lake = lake
        self._index = faiss.IndexFlatL2(lake.dimensions)
        self._index.add(np.ascontiguousarray(lake.vectors))
        self._vectors = as_tensor(lake.vectors)
        self._largest = math.sqrt(float(np.einsum("nd,nd->n", lake.vectors, lake.vectors).max(initial=1.0))) + 1e-6
        csr = lake.value_columns
        self.index_bytes = lake.vectors.nbytes + csr.offsets.nbytes + csr.members.nbytes

    def set_query_arguments(self, arguments: Arguments) -> None:
        """Take ``blas_threshold``."""
        unknown = set(arguments) - {"blas_threshold"}
        if unknown:
            raise InputError(
                f"Query arguments of faiss_flat are: blas_threshold. Got {', '.join(sorted(unknown))} instead."
            )
        self._blas_threshold = int(arguments.get("blas_threshold", 1))

    def query(self, query: BenchmarkQuery) -> Answer:
        """Match by range search, then count."""
        squared = query.tau**2
        error = square_error(self._lake.dimensions, self._largest)
        # The radius is one of squared distances, in float32, and not inclusive.
        radius = float(np.nextafter(np.float32(squared + error), np.float32(np.inf)))
        faiss.cvar.distance_compute_blas_threshold = self._blas_threshold  # one for the whole process
        limits, squares, values = self._index.range_search(query.vectors.numpy(), radius)
        sizes = torch.from_numpy(np.diff(limits.astype(np.int64)))
        queries = torch.repeat_interleave(torch.arange(len(query)), sizes)
        sure = np.nextafter(np.float32(squared - error), np.float32(-np.inf))
        open_pairs = torch.from_numpy(squares > sure)
        self.work = {
            "distances": len(query) * self._lake.n_values,
            "vectors_touched": len(query) * self._lake.n_values,
            "bytes_read": self._lake.n_values * self._lake.dimensions * 4,
        }
        queries, values = decide(queries, torch.from_numpy(values), open_pairs, query, self._vectors)
        return count_columns(queries, values, query, self._lake.value_columns, self._lake.n_columns)
