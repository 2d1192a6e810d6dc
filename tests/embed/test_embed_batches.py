"""Embedding in tasks gives the same bits as embedding here."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embed import batches as embed_batches
from embed import hashing
from embed.batches import VECTORS, embed_batch, embed_file
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


class _Attempt:
    """An attempt at a task, whose files come into one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, kind: str, name: str) -> Path:
        (self.folder / kind).mkdir(exist_ok=True)
        return self.folder / kind / name

    def count(self, rows: pa.RecordBatch, side: str) -> None:
        pass


def embedded(folder: Path, fingerprint: str) -> pa.Table:
    """Embed a file of all values in a task."""
    values = pa.array(VALUES, pa.string())
    pq.write_table(pa.table({"other": [1] * len(VALUES), "value": values}), folder / "v.parquet")
    model = str(folder / "model")
    embed_file(folder / "v.parquet", _Attempt(folder), folder=model, fingerprint=fingerprint)
    return pq.read_table(folder / VECTORS / "part.parquet")


def test_a_task_gives_the_same_bits(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(embed_batches, "_BATCH_ROWS", 100)
    embedder = hashing.create(6, buckets=64)
    embedder.save(tmp_path / "model")
    table = embedded(tmp_path, embedder.fingerprint)
    assert table["value"].to_pylist() == VALUES
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    assert vectors.tobytes() == embedder.embed(table["value"]).tobytes()


def test_another_model_than_that_of_the_build_is_refused(tmp_path: Path) -> None:
    hashing.create(6, buckets=64).save(tmp_path / "model")
    with pytest.raises(EmbedderError, match="is not the one that the job was started with"):
        embedded(tmp_path, "another")


def test_a_process_opens_the_model_once(tmp_path: Path) -> None:
    embedder = hashing.create(6, buckets=64)
    embedder.save(tmp_path / "model")
    before = embed_batches._open.cache_info().misses
    for _ in range(3):
        embedded(tmp_path, embedder.fingerprint)
    assert embed_batches._open.cache_info().misses == before + 1


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
    assert embed_batches.task_device() == device


def test_outside_a_task_there_is_no_gpu() -> None:
    assert embed_batches.task_device() == "cpu"
