"""Searches over a lake on a device, timed from query values on the host to answers on the host."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch

from benchmarks.batching import QueryBatch
from benchmarks.gpu.ceilings import roofline
from benchmarks.gpu.lakes import ResidentLake
from benchmarks.gpu.timing import seconds_to_answer, spread
from benchmarks.lake import Answer, BenchmarkQuery
from pexeso.engine.kernel import Kernel
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MAX_PAIRS, BatchColumn, Goal

REPEATS = 3


class ColumnValuesNeededError(Exception):
    """A kernel cannot do a search by itself, and the lake has no values of columns."""


ColumnCounts = tuple[np.ndarray, np.ndarray]


def search(
    lake: ResidentLake, query: BenchmarkQuery, kernel: Kernel, stats: SearchStats
) -> list[ColumnCounts]:
    """Search all partitions; the answer of each has the numbers of its own columns."""
    goal, weights = Goal(query.max_distance, query.needed), query.weights.numpy()
    answers = lake.parts[0].space.search_all(
        [part.partition for part in lake.parts], query.vectors, weights, query.total, goal, stats,
        [None] * len(lake.parts), kernel=kernel, max_pairs=MAX_PAIRS,
    )  # fmt: skip
    if not lake.keeps_values_of_columns and "verify" in stats.seconds:
        raise ColumnValuesNeededError(
            f"{query.name} has more candidates than a search holds at a time, and there is no room "
            "for the values of each column, which searches in parts read"
        )
    return answers


def search_batch(
    lake: ResidentLake,
    vectors: torch.Tensor,
    queries: Sequence[BatchColumn],
    max_distance: float,
    kernel: Kernel,
    stats: SearchStats,
) -> list[list[ColumnCounts]]:
    """Search all partitions for a batch, one after the other; each has an answer to each query."""
    return [
        part.space.search_batch(
            part.partition, vectors, queries, Goal(max_distance), stats,
            kernel=kernel, max_pairs=MAX_PAIRS,
        )
        for part in lake.parts
    ]  # fmt: skip


def joined(lake: ResidentLake, answers: Sequence[ColumnCounts]) -> Answer:
    """Bring the answers of partitions together, with the numbers that columns have in the lake."""
    columns = [
        columns + part.first_column for (columns, _), part in zip(answers, lake.parts, strict=True)
    ]
    counts = [counts for _, counts in answers]
    return torch.from_numpy(np.concatenate(columns)), torch.from_numpy(np.concatenate(counts))


def measure_single(
    lake: ResidentLake,
    queries: Sequence[BenchmarkQuery],
    kernel: Kernel,
    ceilings: Mapping[str, float],
    seconds_left: float,
) -> tuple[dict[str, object], list[Answer]]:
    """Ask one query column at a time."""
    stats: list[SearchStats] = []
    answers: list[Answer] = []
    started = time.perf_counter()
    for query in queries:
        stats.append(SearchStats())
        answers.append(joined(lake, search(lake, query, kernel, stats[-1])))
        first = time.perf_counter() - started
        if first > seconds_left / 2:
            break
    queries = queries[: len(answers)]
    repeats = int(min(REPEATS, max(1.0, seconds_left / first - 1)))
    seconds = [
        statistics.median(
            seconds_to_answer(partial(search, lake, query, kernel, SearchStats()), lake.device)
            for _ in range(repeats)
        )
        for query in queries
    ]
    figures = {
        "queries": len(queries),
        "values": sum(map(len, queries)),
        **spread(seconds),
        "seconds": seconds,
        "first_pass_seconds": first,
        "repeats": repeats,
        "columns_found": sum(len(columns) for columns, _ in answers),
        **_rates(stats, sum(seconds), lake, ceilings),
    }
    return figures, answers


def measure_batch(
    lake: ResidentLake,
    queries: Sequence[BenchmarkQuery],
    batch: QueryBatch,
    kernel: Kernel,
    ceilings: Mapping[str, float],
    seconds_left: float,
) -> tuple[dict[str, object], list[Answer]]:
    """Ask all query columns in one call; distinct values are brought together before the clock."""
    members = torch.split(batch.rows, [len(query) for query in queries])
    columns = [
        BatchColumn(query_rows.numpy(), query.weights.numpy(), query.needed)
        for query_rows, query in zip(members, queries, strict=True)
    ]
    max_distance = queries[0].max_distance
    stats = SearchStats()
    started = time.perf_counter()
    of_parts = search_batch(lake, batch.vectors, columns, max_distance, kernel, stats)
    first = time.perf_counter() - started
    repeats = int(min(REPEATS, seconds_left // max(first, 1e-9) - 1))
    seconds = [
        seconds_to_answer(
            lambda: search_batch(lake, batch.vectors, columns, max_distance, kernel, SearchStats()),
            lake.device,
        )
        for _ in range(repeats)
    ] or [first]
    middle = statistics.median(seconds)
    figures = {
        "queries": len(queries),
        "values": len(batch.rows),
        "distinct_values": len(batch.vectors),
        "batch_seconds": middle,
        "median_seconds": middle / len(queries),
        "first_pass_seconds": first,
        "repeats": max(0, repeats),
        **_rates([stats], middle, lake, ceilings, len(queries)),
    }
    return figures, [joined(lake, answers) for answers in zip(*of_parts, strict=True)]


def _rates(
    stats: Sequence[SearchStats],
    seconds: float,
    lake: ResidentLake,
    ceilings: Mapping[str, float],
    n_queries: int | None = None,
) -> dict[str, object]:
    """Return the work of a query column, and what it comes to a second."""
    total = SearchStats()
    for query_stats in stats:
        total.add(query_stats)
    counters = total.to_dict()
    phases = counters.pop("seconds")
    n = n_queries or len(stats)
    flop = 2.0 * lake.model.dimensions * total.distances
    return {
        "work": {name: value / n for name, value in counters.items()},
        "phase_seconds": {name: value / n for name, value in phases.items()},
        **roofline(total.bytes_read, flop, seconds, ceilings),
    }
