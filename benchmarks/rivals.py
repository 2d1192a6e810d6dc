"""Compared methods, which find matching pairs of values.

The columns are counted in the same way for all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch

from benchmarks.batching import make_batch
from benchmarks.counting import count_batch, count_columns
from benchmarks.declared import Algorithm
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from benchmarks.matching import Pairs
from pexeso.engine.arrays import Csr


class PairRival(Algorithm):
    """An algorithm that is told values and gives pairs."""

    def take_postings(self, lake: BenchmarkLake) -> None:
        """Keep what counting needs; ``index_bytes`` begins with its size."""
        csr = lake.value_columns
        self._postings = Csr(csr.offsets.to(self.device), csr.members.to(self.device))
        self._n_columns = lake.n_columns
        self.index_bytes = csr.offsets.nbytes + csr.members.nbytes

    @abstractmethod
    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        """Return the matching pairs of a row of `vectors` and a value of the lake.

        `vectors` is float32 (n, d) on the device. The counters go into ``work``.
        """

    def query(self, query: BenchmarkQuery) -> Answer:
        queries, values = self.match(query.vectors.to(self.device), query.tau)
        return count_columns(queries, values, query, self._postings, self._n_columns)

    def query_batch(self, queries: Sequence[BenchmarkQuery]) -> list[Answer]:
        """Match the distinct values of all query columns at once, then count for each."""
        batch = make_batch(queries)
        pairs = self.match(batch.vectors.to(self.device), batch.tau)
        self.work["distinct_values"] = len(batch.vectors)
        return count_batch(*pairs, batch, self._postings, self._n_columns)
