"""Tuning shared by the approximate methods: a target recall reached on a sample.

It is done before the first query is answered.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch

from benchmarks.lake import BenchmarkLake
from benchmarks.matching import Pairs
from benchmarks.rivals import PairRival
from benchmarks.tuning import Sample, draw_sample


class TunedRival(PairRival):
    """A method tuned to a recall of matching pairs, once for each tau."""

    target_recall = 0.85

    def take_lake(self, lake: BenchmarkLake) -> None:
        self.take_postings(lake)
        self._lake = lake
        self._tau: float | None = None

    def set_query_arguments(self, *, target_recall: float) -> None:
        self.target_recall, self._tau = target_recall, None

    @abstractmethod
    def tune(self, sample: Sample, tau: float) -> None:
        """Choose the cheapest setting with the target recall on the sample."""

    @abstractmethod
    def find(self, vectors: torch.Tensor, tau: float) -> Pairs:
        """Search as tuned."""

    def match(self, vectors: torch.Tensor, tau: float) -> Pairs:
        """Tune where that is not done yet, then search."""
        if tau != self._tau:
            self.tune(draw_sample(self._lake, tau), tau)
            self._tau = tau
        return self.find(vectors, tau)


def faiss_pairs(result: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Pairs:
    """Turn a result of faiss's range search into pairs."""
    limits, _, values = result
    sizes = torch.from_numpy(np.diff(limits.astype(np.int64)))
    return torch.repeat_interleave(torch.arange(len(sizes)), sizes), torch.from_numpy(values)


def squared_radius(distance: float) -> float:
    """Return the faiss radius for distances up to and including the given one."""
    return float(np.nextafter(np.float32(distance * distance), np.float32(np.inf)))
