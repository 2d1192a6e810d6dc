"""Tests of writing indexes on S3 like local ones."""

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pexeso.errors import IndexNotFoundError, OutputError
from pexeso.store.arrays import write_arrays, write_texts
from pexeso.store.files import write_document
from pexeso.store.io.location import Location
from pexeso.store.local.writer import BuildWriter
from pexeso.store.manifest import FolderEntry, Manifest
from pexeso.store.remote import writer as remote_target
from pexeso.store.remote.publish import begin
from pexeso.store.remote.store import Cache, open_remote_store, read_remote_manifest
from pexeso.store.remote.writer import RemoteWriter, local_folder


def fill_with(seed: int):
    def fill(folder: Path):
        files = write_arrays(folder, {"vectors": np.full((3, 2), seed)})
        files.append(write_texts(folder / "values.arrow", pa.array(["a"])))
        files.append(write_document(folder / "meta.json", {"seed": seed}))
        return {"seed": seed}, files

    return fill


def put_partition(writer: BuildWriter, number: int, seed: int) -> FolderEntry:
    """Do what a task does, in which the target arrives pickled."""
    target = pickle.loads(pickle.dumps(writer.partition_target(number)))
    return target.written() or target.write(fill_with(seed))


def commit(
    writer: BuildWriter, partitions: list[FolderEntry], previous: Manifest | None = None
) -> Manifest:
    (writer.catalog_folder / "tables-00000.parquet").write_bytes(b"tables")
    if previous is None:
        write_arrays(writer.embedder_folder, {"weights": np.arange(5)})
    return writer.commit(
        written_by="pexeso test",
        catalogs=[
            *(previous.catalogs if previous else ()),
            writer.seal_folder(writer.catalog_folder),
        ],
        embedder=previous.embedder if previous else writer.seal_folder(writer.embedder_folder),
        parts={
            "semantic": [
                *(previous.partitions if previous else ()),
                *map(writer.seal_partition, partitions),
            ]
        },
    )


def build(place: Location, cache: Cache, *seeds: int, overwrite: bool = True) -> Manifest:
    with RemoteWriter(place, overwrite, cache=cache) as writer:
        return commit(
            writer, [put_partition(writer, number, seed) for number, seed in enumerate(seeds)]
        )


def update(place: Location, cache: Cache, seed: int) -> Manifest:
    with RemoteWriter(place, update=True, cache=cache) as writer:
        return commit(writer, [put_partition(writer, 0, seed)], writer.previous)


def vectors(place: Location, cache: Cache) -> list[int]:
    store = open_remote_store(place, cache)
    return [int(store.array(number, "vectors")[0, 0]) for number in range(store.n_partitions)]


def objects(place: Location) -> set[str]:
    return set(place.find())


def listed(manifest: Manifest) -> set[str]:
    return manifest.paths() | {"manifest.json"}


def test_a_build_ends_at_the_place_and_leaves_nothing_else_there_or_here(place, cache):
    manifest = build(place, cache, 4, 5)
    assert read_remote_manifest(place)[0] == manifest
    assert [entry.facts for entry in manifest.partitions] == [{"seed": 4}, {"seed": 5}]
    assert objects(place) == listed(manifest)
    assert vectors(place, cache) == [4, 5]
    assert not local_folder(place, cache).exists()


def test_a_partition_goes_to_the_place_from_the_task_and_stays_nowhere_else(
    place, cache, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "of the task"))
    (tmp_path / "of the task").mkdir()
    with RemoteWriter(place, cache=cache) as writer:
        entry = put_partition(writer, 0, 4)
        assert {f"{entry.folder}/{file.path}" for file in entry.files} <= objects(place)
        assert list((tmp_path / "of the task").iterdir()) == []
        assert not [
            path
            for path in local_folder(place, cache).rglob("*")
            if path.suffix in (".npy", ".arrow")
        ]
        commit(writer, [entry])
    assert vectors(place, cache) == [4]


def test_what_cannot_be_put_there_is_said_before_the_build(place, cache):
    build(place, cache, 1)
    with (
        pytest.raises(OutputError, match="holds an index already"),
        RemoteWriter(place, cache=cache),
    ):
        pytest.fail("it was built")
    build(place, cache, 5)
    assert vectors(place, cache) == [5]


def test_a_build_that_fails_leaves_the_place_as_it_was(place, cache):
    manifest = build(place, cache, 0)
    with RemoteWriter(place, True, cache=cache) as writer:
        put_partition(writer, 0, 7)
    assert objects(place) == listed(manifest)
    assert vectors(place, cache) == [0]
    assert not local_folder(place, cache).exists()


def test_an_update_uploads_what_is_new_alone_and_fetches_nothing(place, cache, s3_server, tmp_path):
    first = build(place, cache, 4)
    s3_server.faults.clear()
    second = update(place, Cache(tmp_path / "other machine"), 77)
    assert (second.generation, len(second.catalogs)) == (2, 2)
    assert second.partitions[0] == first.partitions[0]
    of_files = [
        (method, name.rpartition("/")[2])
        for method, name, _ in s3_server.faults.requests
        if method in ("GET", "PUT") and name.endswith(("npy", "parquet"))
    ]
    assert sorted(of_files) == [("PUT", "tables-00000.parquet"), ("PUT", "vectors.npy")]
    assert vectors(place, cache) == [4, 77]


def test_an_update_of_nothing_is_refused(place, cache):
    with (
        pytest.raises(IndexNotFoundError, match="There is no index at 's3://"),
        RemoteWriter(place, update=True, cache=cache),
    ):
        pytest.fail("it was updated")


def test_an_update_overtaken_by_another_is_refused_and_the_next_begins_anew(place, cache, tmp_path):
    build(place, cache, 0)
    with RemoteWriter(place, update=True, purpose="append", cache=cache) as writer:
        writer.keep = True
        entry = put_partition(writer, 0, 1)
        update(place, Cache(tmp_path / "other machine"), 77)
        with pytest.raises(OutputError, match="Another build has committed"):
            commit(writer, [entry], writer.previous)
    assert vectors(place, cache) == [0, 77]
    with RemoteWriter(place, update=True, purpose="append", cache=cache) as writer:
        assert not writer.resumed
        commit(writer, [put_partition(writer, 0, 2)], writer.previous)
    assert vectors(place, cache) == [0, 77, 2]


def test_a_build_overtaken_by_another_loses_nothing(place, cache, tmp_path, s3_server):
    with RemoteWriter(place, purpose="build", cache=cache) as writer:
        writer.keep = True
        entry = put_partition(writer, 0, 1)
        build(place, Cache(tmp_path / "other machine"), 9)
        with pytest.raises(OutputError, match="Another build has committed"):
            commit(writer, [entry])
    assert vectors(place, cache) == [9]
    s3_server.faults.clear()
    with RemoteWriter(place, True, purpose="build", cache=cache) as writer:
        assert writer.resumed
        assert put_partition(writer, 0, 8) == entry
        manifest = writer.commit(
            written_by="pexeso test",
            catalogs=[writer.seal_folder(writer.catalog_folder)],
            embedder=writer.seal_folder(writer.embedder_folder),
            parts={"semantic": [writer.seal_partition(entry)]},
        )
    assert manifest.generation == 2
    assert vectors(place, cache) == [1]
    assert not [
        name
        for method, name, _ in s3_server.faults.requests
        if method == "PUT" and "partitions/" in name
    ]


def test_a_build_that_died_is_taken_up_with_the_partitions_that_it_uploaded(place, cache):
    with RemoteWriter(place, purpose="build", cache=cache) as writer:
        writer.keep = True
        entries = [put_partition(writer, number, number) for number in range(2)]
    place.joined(f"{entries[1].folder}/vectors.npy").remove()
    with RemoteWriter(place, purpose="build", cache=cache) as writer:
        assert writer.resumed
        assert writer.has_partitions(entries[:1])
        assert not writer.has_partitions(entries)
        again = [put_partition(writer, number, number) for number in range(2)]
        assert again[0] == entries[0]
        assert again[1].folder != entries[1].folder
        manifest = commit(writer, again)
    assert objects(place) == listed(manifest)
    assert vectors(place, cache) == [0, 1]


def test_what_another_build_left_is_cleared_away(place, cache):
    with RemoteWriter(place, purpose="build", cache=cache) as writer:
        writer.keep = True
        put_partition(writer, 0, 1)
    with RemoteWriter(place, purpose="another", cache=cache) as writer:
        assert not writer.resumed
        assert objects(place) == set()


def test_what_a_build_left_that_died_after_its_commit_is_not_taken_for_waste(
    place, cache, monkeypatch
):
    monkeypatch.setattr(RemoteWriter, "_settle", lambda writer: None)
    monkeypatch.setattr("pexeso.store.remote.writer.forget_notes", lambda place, entries: None)
    first = build(place, cache, 3)
    monkeypatch.undo()
    assert local_folder(place, cache).exists()
    with RemoteWriter(place, update=True, cache=cache) as writer:
        assert listed(first) <= objects(place)
        commit(writer, [], writer.previous)
    assert vectors(place, cache) == [3]


def test_a_server_that_fails_in_the_middle_of_a_partition_leaves_nothing_of_it(
    place, cache, monkeypatch
):
    real = Location.write_file

    def fails(self: Location, local: Path) -> None:
        if self.name == "values.arrow":
            raise remote_target.PlaceError("the line is down")
        real(self, local)

    with RemoteWriter(place, cache=cache) as writer:
        with monkeypatch.context() as patched:
            patched.setattr(Location, "write_file", fails)
            with pytest.raises(OutputError, match="cannot be written there: the line"):
                put_partition(writer, 0, 1)
        assert objects(place) == set()
        commit(writer, [put_partition(writer, 0, 2)])
    assert vectors(place, cache) == [2]


def test_restart_throws_away_what_was_uploaded(place, cache):
    with RemoteWriter(place, purpose="build", cache=cache) as writer:
        put_partition(writer, 0, 1)
        writer.restart()
        assert objects(place) == set()
        commit(writer, [put_partition(writer, 0, 2)])
    assert vectors(place, cache) == [2]


def test_one_process_at_a_time_builds_for_a_place(place, cache):
    with (
        RemoteWriter(place, cache=cache),
        pytest.raises(
            OutputError, match=r"Another build for 's3://.*' is under way on this machine"
        ),
        RemoteWriter(place, cache=cache),
    ):
        pytest.fail("both build")


def test_a_partition_that_is_not_there_is_not_committed(place, cache):
    with RemoteWriter(place, cache=cache) as writer:
        entry = put_partition(writer, 0, 1)
        place.joined(f"{entry.folder}/vectors.npy").remove()
        with pytest.raises(Exception, match=r"vectors.npy' is missing"):
            commit(writer, [entry])
    assert begin(place).previous is None
