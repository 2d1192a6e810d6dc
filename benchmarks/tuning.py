"""Tuning an approximate method to a recall: on values of lake columns, with the right pairs known.

Recall is that of matching pairs of values. The columns are drawn by a seed of their own, from every
class of size alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.algorithms.brute_gemm.scan import ProductScan
from benchmarks.drawing import SIZE_CLASSES, draw_queries
from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs
from pexeso.engine.arrays import as_tensor

SEED = 1_000_003
"""Not one that query columns are drawn with."""
COLUMNS, VALUES = 200, 1000


@dataclass(frozen=True)
class Sample:
    """Values, and the pairs that match.

    Attributes
    ----------
    vectors : float32 (n, d)
    keys : int64 (p,), ascending
        ``query * n_values + value`` of each right pair.
    """

    vectors: torch.Tensor
    keys: np.ndarray
    n_values: int

    def is_right(self, pairs: Pairs) -> np.ndarray:
        """Return for found pairs, none of them twice, whether they match: bool (p,)."""
        queries, values = (part.numpy() for part in pairs)
        pair_keys = queries * self.n_values + values
        if not len(self.keys):
            return np.zeros(len(pair_keys), dtype=bool)
        positions = np.searchsorted(self.keys, pair_keys).clip(max=len(self.keys) - 1)
        return self.keys[positions] == pair_keys

    def recall(self, pairs: Pairs) -> float:
        """Return the share of the right pairs that were found; 1 where there is none."""
        return int(self.is_right(pairs).sum()) / len(self.keys) if len(self.keys) else 1.0


def draw_sample(lake: BenchmarkLake, tau: float) -> Sample:
    """Draw values of every second one of the columns drawn."""
    sizes = np.diff(lake.column_offsets)
    n_fit = int(((sizes >= SIZE_CLASSES[0][0]) & (sizes <= SIZE_CLASSES[-1][1])).sum())
    columns = draw_queries(
        lake, min(COLUMNS, n_fit), max_distance=0.0, min_joinability=1.0, seed=SEED
    )
    generator = torch.Generator().manual_seed(SEED)
    vectors = torch.cat([column.vectors for column in columns[0::2]])
    vectors = vectors[torch.randperm(len(vectors), generator=generator)[:VALUES]]
    queries, values = ProductScan(as_tensor(lake.vectors)).pairs(vectors, tau)
    return Sample(vectors, np.sort((queries * lake.n_values + values).numpy()), lake.n_values)
