"""Where the tasks of a build run: in this process where they are small, else on Spark.

Starting Spark takes longer than indexing a small lake. So a session is started by the first stage
that needs one, and as long as none is, tasks of little work run here, one after the other. What
they leave is the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa

from pexeso.build.report import Task, TaskMeter

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from pexeso.build.stages import Facts

READ_HERE_BYTES = 8 << 20
"""Most bytes of files, times the parts that are made of them, that are read in this process: about
what is read while Spark starts."""


def reads_here(n_bytes: int, n_parts: int) -> bool:
    """Return whether files are few and small enough to be read sooner than Spark is started.

    Parameters
    ----------
    n_bytes : int
        Of the files.
    n_parts : int
        Parts of an index that are made of them, 1 or more.
    """
    return n_bytes * n_parts <= READ_HERE_BYTES


class Workers(ExitStack):
    """What runs the tasks of a build or an update, to be used in a `with` block."""

    def __init__(
        self, session: Callable[[], AbstractContextManager[SparkSession]], *, only_spark: bool
    ) -> None:
        super().__init__()
        self._session, self._only_spark = session, only_spark
        self._spark: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The session, started where it was not."""
        if self._spark is None:
            self._spark = self.enter_context(self._session())
        return self._spark

    @property
    def has_spark(self) -> bool:
        """Whether a session was needed so far."""
        return self._spark is not None

    @property
    def may_work_here(self) -> bool:
        """Whether tasks of little work run in this process."""
        return not self._only_spark and not self.has_spark

    @property
    def facts(self) -> Facts:
        """What reports say of where the tasks ran: ``master`` and ``cores``."""
        if not self.has_spark:
            return {"master": "none", "cores": 1}
        context = self.spark.sparkContext
        return {"master": context.master, "cores": context.defaultParallelism}

    def meter(self) -> TaskMeter:
        """Return what measures the tasks of a stage."""
        return TaskMeter(lambda: self.spark.sparkContext)

    def run(self, task: Task, schema: pa.Schema, n_tasks: int, *, here: bool) -> pa.Table:
        """Run tasks, each of which is given its number in a batch, and return what they yield."""
        if here:
            numbers = pa.RecordBatch.from_pydict({"number": pa.array(range(n_tasks), pa.int64())})
            return pa.Table.from_batches(task(iter([numbers])), schema)
        from pyspark.sql.pandas.types import from_arrow_schema

        numbers = self.spark.range(0, n_tasks, 1, n_tasks)
        return numbers.mapInArrow(task, from_arrow_schema(schema)).toArrow()


def has_session() -> bool:
    """Return whether this process has a session of Spark already, or was started by Spark."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under `spark-submit`
        return True
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None
