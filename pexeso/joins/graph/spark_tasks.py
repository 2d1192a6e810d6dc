"""Edges by equal values, counted in tasks of Spark.

A task takes a run of columns and compares it with all. The driver sends it the names and sizes of
all columns once; token sets are read where the task runs, at the path that they have here. Runs go
to the tasks in waves, and the edges of one wave are held.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pexeso.build.spark.session import plain_task_errors
from pexeso.joins.graph.edges import Edges, EqualValues, LakeTokens, chunks, edges_between
from pexeso.runtime.threads import freeze_imports, take_one_thread
from pexeso.sets.lake_columns import LakeColumns

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import SparkSession

    from pexeso.joins.graph.graphs import EdgesOn

TASKS_PER_CORE = 4

_SCHEMA = pa.schema([(name, pa.int64()) for name in ("left", "right", "matched")])
_SPARK_SCHEMA = "left long, right long, matched long"

# What this process has read for the pass that its tasks belong to.
_READ: dict[str, LakeTokens] = {}


@dataclass(frozen=True)
class _EdgeJob:
    key: str
    columns: LakeColumns
    min_joinability: float
    limit: int | None


def edges_on_spark(spark: SparkSession) -> EdgesOn:

    def edges(compared: EqualValues, min_joinability: float, limit: int | None) -> Iterator[Edges]:
        # A copy has none of what was opened here.
        columns, context = replace(compared.columns), spark.sparkContext
        job = _EdgeJob(uuid.uuid4().hex, columns, min_joinability, limit)
        n_tasks = TASKS_PER_CORE * context.defaultParallelism
        sent = context.broadcast(job)

        try:
            for wave in _waves(columns.sizes, n_tasks):
                with plain_task_errors("comparing columns"):
                    rows = (
                        spark.range(0, len(wave), 1, len(wave))
                        .mapInArrow(partial(_work, sent=sent, wave=wave), _SPARK_SCHEMA)
                        .toArrow()
                    )
                arrays = (rows[name].to_numpy() for name in _SCHEMA.names)
                left, right, matched = arrays
                # Whatever order tasks end in, a column's edges come together, and in their order.
                order = np.argsort(left, kind="stable")
                yield left[order], right[order], matched[order], wave[-1][1]
        finally:
            sent.destroy()

    return edges


def _waves(sizes: np.ndarray, n_tasks: int) -> Iterator[list[tuple[int, int]]]:
    parts = [(part.start, part.stop) for part in chunks(sizes, -(-int(sizes.sum()) // n_tasks))]
    for first in range(0, len(parts), n_tasks):
        yield parts[first : first + n_tasks]


def _work(
    batches: Iterator[pa.RecordBatch], *, sent: Broadcast[_EdgeJob], wave: list[tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    take_one_thread()  # tasks run side by side already
    for batch in batches:
        for at in batch.column(0).to_pylist():
            yield from _edges_in_task(sent.value, *wave[at])
    freeze_imports()


def _edges_in_task(job: _EdgeJob, begin: int, end: int) -> Iterator[pa.RecordBatch]:
    if job.key not in _READ:
        _READ.clear()
        _READ[job.key] = LakeTokens.of(job.columns)
    tokens = _READ[job.key]
    for left, right, matched, _ in edges_between(
        tokens.columns, job.min_joinability, job.limit, begin, end, tokens
    ):
        yield pa.record_batch([left, right, matched], schema=_SCHEMA)
