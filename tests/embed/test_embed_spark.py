"""Embedding on Spark gives the same bits as embedding here."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from embed import spark as embed_spark
from embed.lexical import hashing
from embed.spark import embed_batch, embed_values
from pexeso.errors import EmbedderError

VALUES = ["oslo", "new york", None, "", "東京 paris", *(f"value {place}" for place in range(500))]


def test_a_batch_has_values_and_vectors() -> None:
    embedder = hashing.create(6, buckets=64)
    batch = embed_batch(pa.array(VALUES), embedder)
    assert batch.schema.names == ["value", "vector"]
    assert batch.column("value").to_pylist() == VALUES
    vectors = batch.column("vector").flatten().to_numpy().reshape(-1, 6)
    assert vectors.tobytes() == embedder.embed(VALUES).tobytes()
    assert embed_batch(pa.array([], pa.string()), embedder).num_rows == 0


@pytest.mark.spark
def test_spark_gives_the_same_bits(spark, tmp_path: Path) -> None:
    embedder = hashing.create(6, buckets=64)
    embedder.save(tmp_path / "model")
    frame = spark.createDataFrame(
        pa.table({"value": VALUES, "other": [1] * len(VALUES)})
    ).repartition(3)
    table = embed_values(frame, tmp_path / "model").toArrow()
    assert table.schema.names == ["value", "vector"]
    assert sorted(map(str, table["value"].to_pylist())) == sorted(map(str, VALUES))
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    assert vectors.tobytes() == embedder.embed(table["value"]).tobytes()


def test_a_folder_without_a_model_is_refused_before_any_job(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="holds no model"):
        embed_values(None, tmp_path)


@pytest.mark.spark
def test_a_worker_process_opens_the_model_once(spark, tmp_path: Path) -> None:
    embedder = hashing.create(6, buckets=64)
    embedder.save(tmp_path / "model")
    folder, fingerprint = str(tmp_path / "model"), embedder.fingerprint

    def embed_and_tell(batches):
        before = embed_spark._open.cache_info().misses
        list(embed_spark._embed_batches(batches, folder=folder, fingerprint=fingerprint))
        opened = embed_spark._open.cache_info().misses - before
        yield pa.RecordBatch.from_pydict({"process": [os.getpid()], "opened": [opened]})

    frame = spark.createDataFrame(pa.table({"value": VALUES})).repartition(12)
    rows = frame.mapInArrow(embed_and_tell, "process long, opened long").toArrow().to_pylist()
    opened: dict[int, int] = {}
    for row in rows:
        opened[row["process"]] = opened.get(row["process"], 0) + row["opened"]
    assert len(rows) == 12 > len(opened)
    assert set(opened.values()) == {1}


class _Context:
    """A task that Spark gave GPUs, or none."""

    def __init__(self, addresses: list[str] | None) -> None:
        self.given = {} if addresses is None else {"gpu": SimpleNamespace(addresses=addresses)}

    def resources(self) -> dict:
        return self.given


@pytest.mark.parametrize(
    ("addresses", "device"), [(["3", "1"], "cuda:3"), ([], "cpu"), (None, "cpu")]
)
def test_a_task_takes_the_gpu_that_spark_gave_it(monkeypatch, addresses, device) -> None:
    import pyspark

    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: _Context(addresses))
    assert embed_spark.task_device() == device


def test_outside_a_task_there_is_no_gpu() -> None:
    assert embed_spark.task_device() == "cpu"
