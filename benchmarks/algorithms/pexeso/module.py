"""pexeso itself: one partition, built and searched by `pexeso.engine`, no files in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from benchmarks.batching import distinct_rows
from benchmarks.declared import Algorithm
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from pexeso.engine.dense.building import build_partition, resolve_options
from pexeso.engine.dense.search import BatchQuery, Goal, search_batch_partition, search_partition
from pexeso.engine.kernels.choice import choose_kernel
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import Lemma


class Pexeso(Algorithm):
    """A contractive map, blocks, and verification."""

    def build(self, lake: BenchmarkLake, **arguments: Any) -> None:
        options, _ = resolve_options(
            lake.vectors,
            lake.column_offsets,
            lake.column_values,
            PartitionLayoutOptions(**arguments),
        )
        left_open = [name for name, value in arguments.items() if value in (None, "auto")]
        self.chosen = {name: getattr(options, name) for name in left_open}
        arrays, _ = build_partition(lake.vectors, lake.column_offsets, lake.column_values, options)
        self.index_bytes = sum(array.nbytes for array in arrays.values())
        self._partition = Partition.from_arrays(arrays, options, self.device)

    def set_query_arguments(
        self, *, lemmas: Iterable[str] = tuple(Lemma), kernel: str = "auto"
    ) -> None:
        self._lemmas = frozenset(map(Lemma, lemmas))
        self._kernel = choose_kernel(kernel, self.device)

    def query(self, query: BenchmarkQuery) -> Answer:
        goal = Goal(query.max_distance, query.needed, None, False, self._lemmas)
        stats = SearchStats()
        answer = search_partition(
            self._partition,
            query.vectors,
            query.weights,
            query.total,
            goal,
            stats,
            kernel=self._kernel,
        )
        self._tell(stats)
        return answer

    def query_batch(self, queries: Sequence[BenchmarkQuery]) -> list[Answer]:
        """Search for all query columns in one pass."""
        vectors, rows = distinct_rows(torch.cat([query.vectors for query in queries]))
        members = torch.split(rows, [len(query) for query in queries])
        batch = [
            BatchQuery(value_rows, query.weights, query.needed)
            for value_rows, query in zip(members, queries, strict=True)
        ]
        stats = SearchStats()
        answers = search_batch_partition(
            self._partition,
            vectors,
            batch,
            queries[0].max_distance,
            stats,
            lemmas=self._lemmas,
            kernel=self._kernel,
        )
        self._tell(stats)
        return answers

    def _tell(self, stats: SearchStats) -> None:
        counters = stats.to_dict()
        seconds = counters.pop("seconds")
        self.work = {**counters, **{f"seconds_{phase}": value for phase, value in seconds.items()}}
