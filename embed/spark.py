"""Embed the distinct values of a lake on Spark: one Arrow batch in, one Arrow batch with vectors out."""

from __future__ import annotations

from collections.abc import Iterator
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

VALUE, VECTOR = "value", "vector"
SCHEMA = f"{VALUE} string, {VECTOR} array<float>"


def embed_values(frame: DataFrame, folder: str | Path) -> DataFrame:
    """Add the vector of each value.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        With a string column `value`; equal values should have been dropped. Other columns are left out.
    folder : path
        A saved embedder, at the same path on every machine that runs tasks.

    Returns
    -------
    pyspark.sql.DataFrame
        `value` string, `vector` array of float of the model's length: a unit vector, or zeros. Rows keep their partition and order.

    Raises
    ------
    pexeso.errors.EmbedderError
        If there is no model in the folder. In a task: if the folder holds another model by then, or gives a value a vector with NaN or infinite
        entries.

    Notes
    -----
    The model is opened once in each worker process, memory-mapped, so that the workers of a machine share its pages.
    """
    folder = str(Path(folder).resolve())
    fingerprint = load_embedder(folder).fingerprint
    return frame.select(VALUE).mapInArrow(partial(_embed_batches, folder=folder, fingerprint=fingerprint), SCHEMA)


def embed_batch(values: pa.Array, embedder: Embedder) -> pa.RecordBatch:
    """Return values and their vectors as an Arrow batch with the columns `value` and `vector` (list of float32); refuse vectors that cannot be used."""
    vectors = embedder.embed(values)
    require_unit_or_zero(values, vectors)
    offsets = pa.array(np.arange(len(vectors) + 1, dtype=np.int32) * embedder.dimensions)
    lists = pa.ListArray.from_arrays(offsets, pa.array(vectors.reshape(-1)))
    return pa.RecordBatch.from_arrays([values, lists], [VALUE, VECTOR])


def _embed_batches(batches: Iterator[pa.RecordBatch], *, folder: str, fingerprint: str) -> Iterator[pa.RecordBatch]:
    embedder = _open(folder, fingerprint)
    for batch in batches:
        yield embed_batch(batch.column(VALUE), embedder)


@lru_cache(maxsize=1)
def _open(folder: str, fingerprint: str) -> Embedder:
    """Open the model, once in a worker process, and leave the other cores to the other workers."""
    import torch

    torch.set_num_threads(1)
    embedder = load_embedder(folder)
    if embedder.fingerprint != fingerprint:
        raise EmbedderError(f"The model in {folder} is not the one that the job was started with.")
    return embedder
