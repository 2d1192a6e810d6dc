"""pexeso itself: one partition, built and searched by `pexeso.engine`, no files in between."""

from __future__ import annotations

from benchmarks.declared import Algorithm, Arguments
from benchmarks.lake import Answer, BenchmarkLake, BenchmarkQuery
from pexeso.engine.lemmas import ALL_LEMMAS, lemma_set
from pexeso.engine.partition import GridOptions, Partition, build_partition
from pexeso.engine.search import Goal, search_partition
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError


class Pexeso(Algorithm):
    """Pivots, grid, blocking and verification.

    Build arguments are those of `GridOptions`; the query argument ``lemmas`` names the filters in use (all by default).
    """

    def build(self, lake: BenchmarkLake, arguments: Arguments) -> None:
        """Build the partition."""
        options = GridOptions(**arguments)
        arrays, _ = build_partition(lake.vectors, lake.column_offsets, lake.column_values, options)
        self.index_bytes = sum(array.nbytes for array in arrays.values())
        self._partition = Partition.from_arrays(arrays, options, self.device)
        self._lemmas = ALL_LEMMAS

    def set_query_arguments(self, arguments: Arguments) -> None:
        """Take ``lemmas``."""
        unknown = set(arguments) - {"lemmas"}
        if unknown:
            raise InputError(f"Query arguments of pexeso are: lemmas. Got {', '.join(sorted(unknown))} instead.")
        self._lemmas = lemma_set(arguments["lemmas"]) if "lemmas" in arguments else ALL_LEMMAS

    def query(self, query: BenchmarkQuery) -> Answer:
        """Search with exact counts."""
        goal = Goal(query.max_distance, query.needed, None, False, self._lemmas)
        stats = SearchStats()
        answer = search_partition(self._partition, query.vectors, query.weights, query.total, goal, stats)
        counters = stats.to_dict()
        seconds = counters.pop("seconds")
        self.work = {**counters, **{f"seconds_{phase}": value for phase, value in seconds.items()}}
        return answer
