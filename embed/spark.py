"""Embedding of the distinct values of a lake on Spark.

One Arrow batch goes in, and one Arrow batch with vectors comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from embed.checking import require_unit_or_zero
from embed.protocol import Embedder
from embed.registry import load_embedder
from pexeso.errors import EmbedderError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

VALUE, VECTOR = "value", "vector"
SCHEMA = f"{VALUE} string, {VECTOR} array<float>"


def embed_values(
    frame: DataFrame, folder: str | Path, *, measured: Callable[[Task], Task] = lambda task: task
) -> DataFrame:
    """Add the vector of each value.

    Returns
    -------
    pyspark.sql.DataFrame
        `value` string, `vector` array of float of the model's length: a unit vector, or zeros. Rows
        keep their partition and order.

    Notes
    -----
    The model is opened once in each worker process, memory-mapped, so that the workers of a machine
    share its pages. Where Spark gives its tasks GPUs (``spark.task.resource.gpu.amount``), a model
    that can use one takes the one of its task.
    """
    folder = str(Path(folder).resolve())
    fingerprint = load_embedder(folder).fingerprint
    task = partial(_embed_batches, folder=folder, fingerprint=fingerprint)
    return frame.select(VALUE).mapInArrow(measured(task), SCHEMA)


def embed_batch(values: pa.Array, embedder: Embedder) -> pa.RecordBatch:
    """Return values and their vectors as an Arrow batch.

    Its columns are `value` and `vector` (list of float32). Vectors that cannot be used are refused.
    """
    vectors = embedder.embed(values)
    require_unit_or_zero(values, vectors)
    return pa.RecordBatch.from_arrays([values, as_lists(vectors)], [VALUE, VECTOR])


def as_lists(vectors: np.ndarray) -> pa.ListArray:
    """Return vectors, float32 (n, d), as an Arrow array of n lists."""
    offsets = np.arange(len(vectors) + 1, dtype=np.int32) * vectors.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(vectors.reshape(-1)))


def task_device() -> str:
    """Name the device that Spark gave the task that this is called in.

    Returns
    -------
    str
        ``"cuda:N"`` where Spark schedules GPUs (``spark.executor.resource.gpu.amount``,
        ``spark.task.resource.gpu.amount``) and gave the task the one of that number; else, and
        outside a task, ``"cpu"``.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    gpu = context.resources().get("gpu") if context is not None else None
    return f"cuda:{gpu.addresses[0]}" if gpu is not None and gpu.addresses else "cpu"


def _embed_batches(
    batches: Iterator[pa.RecordBatch], *, folder: str, fingerprint: str
) -> Iterator[pa.RecordBatch]:
    embedder = _open(folder, fingerprint, task_device())
    for batch in batches:
        yield embed_batch(batch.column(VALUE), embedder)


@lru_cache(maxsize=1)
def _open(folder: str, fingerprint: str, device: str) -> Embedder:
    """Open the model, once in a worker process, and leave the other cores to the other workers."""
    import torch

    torch.set_num_threads(1)
    if device != "cpu":
        torch.cuda.set_device(device)  # models that use a GPU use the current one
    embedder = load_embedder(folder)
    if embedder.fingerprint != fingerprint:
        raise EmbedderError(f"The model in {folder} is not the one that the job was started with.")
    return embedder
