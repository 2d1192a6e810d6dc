"""Tests of local and remote indexes through the same calls, and of putting one on S3."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pexeso.errors import IndexNotFoundError, OutputError
from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store, open_store
from pexeso.store.local.writer import IndexWriter
from pexeso.store.opening import open_store_anywhere, open_writer, publish_index
from pexeso.store.remote.store import RemoteStore
from pexeso.store.remote.writer import RemoteWriter


@pytest.fixture
def place(bucket, tmp_path, monkeypatch) -> Location:
    monkeypatch.setenv("PEXESO_CACHE", str(tmp_path / "cache"))
    return bucket.joined("lake.pexeso")


def build(path: Path | Location, seed: int = 0) -> None:
    with open_writer(path) as writer:
        (writer.catalog_folder / "tables.parquet").write_bytes(b"tables")
        write_arrays(writer.embedder_folder, {"weights": np.arange(5)})

        def fill(folder: Path):
            texts = write_texts(folder / "values.arrow", pa.array(["a"]))
            return {}, [*write_arrays(folder, {"vectors": np.full((3, 2), seed)}), texts]

        writer.commit(
            written_by="pexeso test",
            catalogs=[writer.seal_folder(writer.catalog_folder)],
            embedder=writer.seal_folder(writer.embedder_folder),
            parts={"semantic": [writer.seal_partition(writer.partition_target(0).write(fill))]},
        )


def test_the_same_calls_write_and_open_an_index_here_and_there(place, tmp_path):
    for where, writer, store in (
        (tmp_path / "lake.pexeso", IndexWriter, Store),
        (place, RemoteWriter, RemoteStore),
        (str(tmp_path / "text"), IndexWriter, Store),
    ):
        assert type(open_writer(where)) is writer
        with pytest.raises(IndexNotFoundError):
            open_store_anywhere(where)
        build(where, seed=3)
        opened_store = open_store_anywhere(where)
        assert type(opened_store) is store
        assert opened_store.array(0, "vectors")[0, 0] == 3


def test_a_finished_local_index_is_put_in_place_and_stays(place, tmp_path):
    with pytest.raises(IndexNotFoundError):
        publish_index(tmp_path / "lake.pexeso", place)
    build(tmp_path / "lake.pexeso", seed=6)
    publish_index(tmp_path / "lake.pexeso", place)
    with pytest.raises(OutputError, match="holds an index already"):
        publish_index(tmp_path / "lake.pexeso", place)
    assert open_store_anywhere(place).array(0, "vectors")[0, 0] == 6
    open_store(tmp_path / "lake.pexeso")
