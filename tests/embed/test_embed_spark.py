"""Embedding on Spark gives the same bits as embedding here."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from embed import hashing
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
    frame = spark.createDataFrame(pa.table({"value": VALUES, "other": [1] * len(VALUES)})).repartition(3)
    table = embed_values(frame, tmp_path / "model").toArrow()
    assert table.schema.names == ["value", "vector"]
    assert sorted(map(str, table["value"].to_pylist())) == sorted(map(str, VALUES))
    vectors = np.array(table["vector"].to_pylist(), np.float32)
    assert vectors.tobytes() == embedder.embed(table["value"]).tobytes()


def test_a_folder_without_a_model_is_refused_before_any_job(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="holds no model"):
        embed_values(None, tmp_path)
