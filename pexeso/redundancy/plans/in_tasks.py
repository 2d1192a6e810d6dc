"""Units of work done in tasks of Spark, or in threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pexeso.build.lake_source.source import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_PER_CORE = 4

Work = Callable[[str], "list[dict[str, Any]]"]
"""From a unit, a text, to rows."""


def done_in_tasks(
    spark: SparkSession | None, units: Iterable[str], work: Work, schema: pa.Schema
) -> list[dict[str, Any]]:
    """Do all units, and return their rows in any order.

    Parameters
    ----------
    spark : SparkSession or None
        None for threads, as many as there are cores.
    """
    if spark is None:
        with ThreadPoolExecutor() as threads:
            return [row for rows in threads.map(work, units) for row in rows]
    listed = pa.table({"unit": pa.array(list(units), pa.string())})
    if not len(listed):
        return []
    n_tasks = min(len(listed), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    frame = spark.createDataFrame(listed).repartition(n_tasks)
    task = partial(_task, work=work, schema=schema)
    return frame.mapInArrow(task, spark_schema(schema)).toArrow().to_pylist()


def _task(
    batches: Iterator[pa.RecordBatch], *, work: Work, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for unit in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pylist(work(unit), schema=schema)
