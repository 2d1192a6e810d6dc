"""Tuning an approximate method to a recall: on values of lake columns, with the right pairs known.

Recall is that of matching pairs of values. The columns are drawn by a seed of their own, from every
class of size alike; a method is tuned on half of them, and its recall is told for the other half.
In ``work`` a method says whether a measured query column is one it was tuned on (``tuned_on``).
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
COLUMNS = 200
VALUES = 1000
"""Of each half."""


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
    names: frozenset[str]

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

    def precision(self, pairs: Pairs) -> float:
        """Return the share of the found pairs that are right; 1 where none was found."""
        return float(self.is_right(pairs).mean()) if len(pairs[0]) else 1.0


def draw_samples(lake: BenchmarkLake, tau: float) -> tuple[Sample, Sample]:
    """Draw the half to tune on and the half to tell the recall on; no column is in both."""
    sizes = np.diff(lake.column_offsets)
    n_fit = int(((sizes >= SIZE_CLASSES[0][0]) & (sizes <= SIZE_CLASSES[-1][1])).sum())
    columns = draw_queries(
        lake, min(COLUMNS, n_fit), max_distance=0.0, min_joinability=1.0, seed=SEED
    )
    scan = ProductScan(as_tensor(lake.vectors))
    generator = torch.Generator().manual_seed(SEED)
    halves = []
    for half in (columns[0::2], columns[1::2]):
        vectors = torch.cat([column.vectors for column in half])
        vectors = vectors[torch.randperm(len(vectors), generator=generator)[:VALUES]]
        queries, values = scan.pairs(vectors, tau)
        keys = np.sort((queries * lake.n_values + values).numpy())
        halves.append(
            Sample(vectors, keys, lake.n_values, frozenset(column.name for column in half))
        )
    return halves[0], halves[1]
