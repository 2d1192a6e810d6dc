"""Embedding of the distinct values of a lake in tasks, a file of values in each."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embed.protocol import Embedder, require_unit_or_zero
from embed.registry import load_embedder
from embed.words import hash_strings
from pexeso.errors import EmbedderError

VALUE, VECTOR = "value", "vector"
SCHEMA = pa.schema([(VALUE, pa.string()), (VECTOR, pa.list_(pa.float32()))])
VECTORS = "vectors"
_BATCH_ROWS = 1 << 14


def embed_file(
    path: Path, attempt: Any, *, folder: str, fingerprint: str, share: float = 1.0
) -> None:
    """Write the vectors of a file of values, by the model in a folder; a task of a build.

    `share` of the values are chosen by their hashes.
    """
    embedder = _open(folder, fingerprint, task_device())
    with pq.ParquetWriter(attempt.path(VECTORS, "part.parquet"), SCHEMA) as writer:
        for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS, columns=[VALUE]):
            attempt.count(batch, "in")
            if share < 1.0:
                chosen = hash_strings(batch.column(VALUE).cast(pa.large_string())) < share * 2.0**64
                batch = batch.filter(pa.array(chosen))
            vectors = embed_batch(batch.column(VALUE), embedder)
            attempt.count(vectors, "out")
            writer.write_batch(vectors)


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
    """Name the device that Spark gave the task that this is called in; without Spark, ``cpu``."""
    if "pyspark" not in sys.modules:
        return "cpu"
    from pyspark import TaskContext

    context = TaskContext.get()
    gpu = context.resources().get("gpu") if context is not None else None
    return f"cuda:{gpu.addresses[0]}" if gpu is not None and gpu.addresses else "cpu"


@lru_cache(maxsize=1)
def _open(folder: str, fingerprint: str, device: str) -> Embedder:
    """Open the model, once in a worker process, and leave the other cores to the other workers."""
    if device != "cpu":
        import torch

        torch.cuda.set_device(device)  # models that use a GPU use the current one
    embedder = load_embedder(folder)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    if embedder.fingerprint != fingerprint:
        raise EmbedderError(f"The model in {folder} is not the one that the job was started with.")
    return embedder
