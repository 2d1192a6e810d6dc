"""Indexes on S3 are built and updated in a local folder and put in place by one commit, or the way out is said."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pexeso.elsewhere import build_elsewhere, local_folder, publish_index, update_elsewhere
from pexeso.errors import IndexNotFoundError, OutputError
from pexeso.places import Place
from pexeso.store.arrays import write_arrays
from pexeso.store.reader import open_store
from pexeso.store.remote import open_remote_store, read_remote_manifest
from pexeso.store.remote_cache import Cache
from pexeso.store.texts import write_texts
from pexeso.store.writer import IndexWriter


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def cache(tmp_path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def place(bucket) -> Place:
    return bucket.joined("lake.pexeso")


def build(path: Path, seed: int = 0, overwrite: bool = True) -> None:
    with IndexWriter(path, overwrite=overwrite) as writer:
        (writer.catalog_folder / "tables.parquet").write_bytes(b"tables %d" % seed)
        write_arrays(writer.embedder_folder, {"weights": np.arange(5)})
        folder = writer.partition_folder(0)
        files = [
            *write_arrays(folder, {"vectors": np.full((3, 2), seed)}),
            write_texts(folder / "values.arrow", pa.array(["a"])),
        ]
        writer.commit(
            written_by="pexeso test",
            catalogs=[writer.seal_folder(writer.catalog_folder)],
            embedder=writer.seal_folder(writer.embedder_folder),
            partitions=[writer.seal_folder(folder, known=files)],
        )


def add_partition(path: Path) -> str:
    """Update an index as an append does: one more partition, the rest as it is."""
    store = open_store(path)
    with IndexWriter(path, update=True) as writer:
        folder = writer.partition_folder(0)
        files = write_arrays(folder, {"vectors": np.full((1, 2), 77)})
        (writer.catalog_folder / "tables-00000.parquet").write_bytes(b"more")
        writer.commit(
            written_by="pexeso test",
            catalogs=[*store.manifest.catalogs, writer.seal_folder(writer.catalog_folder)],
            embedder=store.manifest.embedder,
            partitions=[*store.manifest.partitions, writer.seal_folder(folder, known=files)],
        )
    return "added"


def vectors(place: Place, cache: Cache) -> list[int]:
    store = open_remote_store(place, cache)
    return [int(store.array(number, "vectors")[0, 0]) for number in range(store.n_partitions)]


def test_a_build_ends_at_the_place_and_leaves_no_local_folder(place, cache):
    manifest = build_elsewhere(place, lambda path: build(path, seed=4), cache=cache)
    assert read_remote_manifest(place)[0] == manifest
    assert vectors(place, cache) == [4]
    assert not local_folder(place, cache).exists()


def test_what_cannot_be_put_there_is_said_before_the_build(place, cache):
    build_elsewhere(place, build, cache=cache)
    with pytest.raises(OutputError, match="holds an index already"):
        build_elsewhere(place, lambda path: pytest.fail("it was built"), cache=cache)
    build_elsewhere(place, lambda path: build(path, seed=5), overwrite=True, cache=cache)
    assert vectors(place, cache) == [5]


def test_a_build_that_fails_leaves_the_place_as_it_was(place, cache):
    build_elsewhere(place, build, cache=cache)

    def fails(path: Path) -> None:
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        build_elsewhere(place, fails, overwrite=True, cache=cache)
    assert vectors(place, cache) == [0]


def test_a_finished_local_index_is_put_in_place_and_stays(place, cache, tmp_path):
    with pytest.raises(IndexNotFoundError):
        publish_index(tmp_path / "lake.pexeso", place)
    build(tmp_path / "lake.pexeso", seed=6)
    publish_index(tmp_path / "lake.pexeso", place)
    with pytest.raises(OutputError, match="holds an index already"):
        publish_index(tmp_path / "lake.pexeso", place)
    assert vectors(place, cache) == [6]
    open_store(tmp_path / "lake.pexeso")


def test_an_update_uploads_what_is_new_alone(place, cache, s3_server):
    first = build_elsewhere(place, lambda path: build(path, seed=4), cache=cache)
    s3_server.faults.clear()
    assert update_elsewhere(place, add_partition, cache=cache) == "added"
    second = read_remote_manifest(place)[0]
    assert (second.generation, len(second.catalogs)) == (2, 2)
    assert second.partitions[0] == first.partitions[0]
    uploaded = [
        name for method, name, _ in s3_server.faults.requests if method == "PUT" and name.endswith(("npy", "parquet"))
    ]
    assert sorted(name.rpartition("/")[2] for name in uploaded) == ["tables-00000.parquet", "vectors.npy"]
    assert vectors(place, cache) == [4, 77]
    assert list((cache.root / "builds").glob("*.pexeso")) == list((cache.root / "builds").glob("*.json")) == []


def test_an_update_with_nothing_to_do_commits_nothing(place, cache):
    build_elsewhere(place, build, cache=cache)
    version = read_remote_manifest(place)[1]
    assert update_elsewhere(place, lambda path: open_store(path).n_partitions, cache=cache) == 1
    assert read_remote_manifest(place)[1] == version
    assert not local_folder(place, cache).exists()


def test_an_update_of_nothing_is_refused(place, cache):
    with pytest.raises(IndexNotFoundError):
        update_elsewhere(place, add_partition, cache=cache)


def test_an_update_overtaken_by_another_is_refused_and_its_folder_named(place, cache, tmp_path):
    build_elsewhere(place, build, cache=cache)

    def overtaken(path: Path) -> None:
        add_partition(path)
        update_elsewhere(place, add_partition, cache=Cache(tmp_path / "other machine"))

    with pytest.raises(OutputError, match=r"Another build has committed .* What was built is in '.*\.pexeso'\.$"):
        update_elsewhere(place, overtaken, cache=cache)
    assert vectors(place, cache) == [0, 77]
    with pytest.raises(OutputError, match="holds an index that was built for this place and not put there"):
        update_elsewhere(place, add_partition, cache=cache)


def test_a_copy_that_an_update_left_is_no_reason_to_refuse_the_next(place, cache):
    build_elsewhere(place, lambda path: build(path, seed=1), cache=cache)

    def dies(path: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update_elsewhere(place, dies, cache=cache)
    assert local_folder(place, cache).exists()
    other = Cache(cache.root.parent / "other machine")
    build_elsewhere(place, lambda path: build(path, seed=2), overwrite=True, cache=other)
    update_elsewhere(place, add_partition, cache=cache)
    assert vectors(place, cache) == [2, 77]


def test_one_process_at_a_time_builds_for_a_place(place, cache):
    with pytest.raises(OutputError, match=r"Another build for 's3://.*' is under way on this machine"):
        build_elsewhere(place, lambda path: build_elsewhere(place, build, cache=cache), cache=cache)
