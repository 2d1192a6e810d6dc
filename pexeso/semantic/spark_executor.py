"""Batch search in Spark's tasks, each for one partition and some of the queries.

The driver normalises and embeds the queries and sends their vectors to the tasks, opens no
partition of its own but to re-rank what was found and for the value pairs behind answers, and holds
the hits of one call. A task maps one partition into memory and reads what its queries need of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from embed.batches import task_device
from pexeso.build.spark.session import plain_task_errors
from pexeso.engine.stats import SearchStats
from pexeso.errors import InputError
from pexeso.options import SearchOptions
from pexeso.results.query import Hit, QueryColumn
from pexeso.runtime.threads import freeze_imports, take_one_thread
from pexeso.semantic.batch_file import MAX_CHUNK_QUERIES
from pexeso.semantic.encoded_query import EncodedQuery
from pexeso.semantic.executor import Answer, search_store
from pexeso.semantic.partition_loader import loader_of
from pexeso.store.local.reader import Store
from pexeso.store.manifest import SEMANTIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pexeso.index import Index
    from pexeso.semantic.partition_loader import PartitionLoader

TASKS_PER_CORE = 4
"""Tasks of a call for each core, where there are queries enough: one that takes longer than the
others then holds up less."""

MAX_PASSES = 16
"""Most passes over the index whose queries are sent to the tasks together: 16 times what a local
batch holds at a time."""

MIN_CHUNK_QUERIES = 8
"""Fewer queries are not divided: they share the work on what they have in common."""

_HIT_FIELDS = ("column_id", "matched", "position", "table", "label")
_SPARK_SCHEMA = (
    "query long, partition long, stats string, column_id array<long>, matched array<long>, "
    "position array<long>, table array<string>, label array<string>"
)
_SCHEMA = pa.schema(
    [
        ("query", pa.int64()),
        ("partition", pa.int64()),
        ("stats", pa.string()),
        *((name, pa.list_(pa.int64())) for name in _HIT_FIELDS[:3]),
        *((name, pa.list_(pa.string())) for name in _HIT_FIELDS[3:]),
    ]
)


@dataclass(frozen=True)
class _Chunk:
    positions: list[int]
    queries: list[EncodedQuery]
    options: list[SearchOptions]


def on_spark(
    index: Index,
    spark: SparkSession,
    *,
    device: str = "auto",
    kernel: str = "auto",
    memory_budget: int | None = None,
) -> Index:
    """Return an index whose searches run in Spark's tasks, one for each partition and chunk.

    Parameters
    ----------
    memory_budget : int, optional
        Most bytes that a task may take, as in `pexeso.open_index`.

    Returns
    -------
    Index
        Its answers are those of `index`; seconds and counters of the stats are those of all tasks
        together.
    """
    return index._with_executor(SparkExecutor(spark, device, kernel, memory_budget))


def passes_of(index: Index, spark: SparkSession) -> int:
    """Return how many passes over an index keep the cores of a session busy, to `MAX_PASSES`."""
    n_passes = math.ceil(
        TASKS_PER_CORE * spark.sparkContext.defaultParallelism / max(1, index.store.n_partitions)
    )
    return max(1, min(MAX_PASSES, n_passes))


class SparkExecutor:
    def __init__(
        self, spark: SparkSession, device: str, kernel: str, memory_budget: int | None
    ) -> None:
        self.spark = spark
        self._options = {"device": device, "kernel": kernel, "memory_budget": memory_budget}

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "An index whose searches run on Spark cannot be sent to another process, since its "
            "Spark session cannot. Send the index that on_spark was given."
        )

    def __call__(
        self,
        loader: PartitionLoader,
        queries: Sequence[EncodedQuery],
        options: Sequence[SearchOptions],
    ) -> list[Answer]:
        """Search all partitions of the loader's snapshot, each query with its options."""
        # The hold stays with the index here: while it is open, no file that tasks read is removed.
        store, n_partitions = loader.store, loader.n_partitions
        if not queries or not n_partitions:
            return [([], SearchStats()) for _ in queries]
        cores = self.spark.sparkContext.defaultParallelism
        chunks = divide(queries, options, math.ceil(TASKS_PER_CORE * cores / n_partitions))
        context = self.spark.sparkContext
        sent_store, sent = context.broadcast(store), [context.broadcast(chunk) for chunk in chunks]

        search = partial(search_partition_in_task, **self._options)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    partition, chunk = divmod(number, len(sent))
                    yield search(sent_store.value, partition, sent[chunk].value)
            freeze_imports()

        n_tasks = n_partitions * len(chunks)
        try:
            with plain_task_errors(f"searching '{store.path}'"):
                rows = (
                    self.spark.range(0, n_tasks, 1, n_tasks)
                    .mapInArrow(work, _SPARK_SCHEMA)
                    .toArrow()
                )
        finally:
            for broadcast in (sent_store, *sent):
                broadcast.destroy()
        return merge(rows, options)


def divide(
    queries: Sequence[EncodedQuery], options: Sequence[SearchOptions], n_wanted: int
) -> list[_Chunk]:
    """Divide queries into chunks of about the same number of values.

    As many as wanted, but none of more than `MAX_CHUNK_QUERIES`, and of fewer than
    `MIN_CHUNK_QUERIES` only where there are no more.
    """
    min_chunks = math.ceil(len(queries) / MAX_CHUNK_QUERIES)
    n_chunks = max(1, min_chunks, min(n_wanted, len(queries) // MIN_CHUNK_QUERIES))
    chunks: list[list[int]] = [[] for _ in range(n_chunks)]
    # The largest first, each to the next chunk in turn: so every chunk has as many queries, and
    # nearly as many values.
    order = sorted(range(len(queries)), key=lambda position: -len(queries[position].values))
    for rank, position in enumerate(order):
        chunks[rank % n_chunks].append(position)
    return [
        # Of the column as it was read, a search needs the number of rows alone.
        _Chunk(
            positions,
            [
                replace(query, column=QueryColumn(pa.nulls(1, pa.string()), counts=n_rows))
                for query, n_rows in (
                    (queries[position], np.array([queries[position].column.n_rows], np.int64))
                    for position in positions
                )
            ],
            [options[position] for position in positions],
        )
        for positions in map(sorted, chunks)
    ]


def search_partition_in_task(
    store: Store, number: int, chunk: _Chunk, *, device: str, kernel: str, memory_budget: int | None
) -> pa.RecordBatch:
    """Search one partition for the queries of a chunk; return a row for each, with its hits."""
    take_one_thread()  # tasks run side by side already
    parts = {SEMANTIC: (store.manifest.partitions[number],)}
    store = replace(store, manifest=replace(store.manifest, parts=parts))
    scan = loader_of(store, task_device() if device == "auto" else device, memory_budget, kernel)
    answers = search_store(scan, chunk.queries, chunk.options)
    rows = [
        {
            "query": position,
            "partition": number,
            "stats": json.dumps(vars(stats)),
            **{name: [getattr(hit, name) for hit in hits] for name in _HIT_FIELDS},
        }
        for position, (hits, stats) in zip(chunk.positions, answers, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


def merge(rows: pa.Table, options: Sequence[SearchOptions]) -> list[Answer]:
    answers: list[Answer] = [([], SearchStats()) for _ in options]
    # In the order of partitions, so that sums of seconds do not depend on which task was done
    # first.
    for row in rows.sort_by([("query", "ascending"), ("partition", "ascending")]).to_pylist():
        hits, stats = answers[row["query"]]
        stats.add(SearchStats(**json.loads(row["stats"])))
        fields = [row[name] for name in _HIT_FIELDS]
        hits += [
            Hit(column_id, matched, row["partition"], position, table, label)
            for column_id, matched, position, table, label in zip(*fields, strict=True)
        ]
    for (hits, _), chosen in zip(answers, options, strict=True):
        hits.sort(key=lambda hit: (-hit.matched, hit.table, hit.label, hit.column_id))
        if chosen.k is not None:
            del hits[chosen.k :]
    return answers
