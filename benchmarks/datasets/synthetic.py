"""A small seeded lake for tests of the harness.

It is no model of a real lake, and says nothing about speed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.lake import BenchmarkLake


@dataclass(frozen=True)
class RandomData:
    """Columns of values around topics, each value with near copies."""

    n_columns: int = 200
    n_values: int = 5_000
    dimensions: int = 32
    n_topics: int = 20
    seed: int = 0

    @property
    def variant(self) -> str:
        return f"{self.dimensions}d"

    def load(self) -> BenchmarkLake:
        """Make the lake, with values in families of four."""
        generator = np.random.default_rng(self.seed)
        n_families = -(-self.n_values // 4)
        centres = generator.standard_normal((n_families, self.dimensions))
        noise = generator.standard_normal((self.n_values, self.dimensions)) / np.sqrt(
            self.dimensions
        )
        rows = centres[np.arange(self.n_values) // 4] / np.sqrt(self.dimensions)
        rows += noise * (np.arange(self.n_values) % 4)[:, None] * 0.06
        vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        topics = np.array_split(generator.permutation(self.n_values), self.n_topics)
        columns = [self._column(generator, topics) for _ in range(self.n_columns)]
        sizes = [len(column) for column in columns]
        value_rows = generator.integers(1, 4, sum(sizes))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return BenchmarkLake(
            "random",
            vectors,
            offsets,
            np.concatenate(columns).astype(np.int64),
            value_rows,
            # One row more than have a vector: a value that nothing is known about.
            np.add.reduceat(value_rows, offsets[:-1]) + 1,
            [f"column {number}" for number in range(self.n_columns)],
            {"seed": self.seed, "topics": self.n_topics},
        )

    def _column(self, generator: np.random.Generator, topics: list[np.ndarray]) -> np.ndarray:
        topic = topics[generator.integers(len(topics))]
        size = min(len(topic), int(np.exp(generator.uniform(np.log(3), np.log(150)))))
        return np.sort(generator.choice(topic, size, replace=False))
