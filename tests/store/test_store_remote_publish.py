"""Tests of putting an index on S3: of two builds one wins, and no file in use is removed."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pexeso.errors import OutputError, PlaceError
from pexeso.store.io.location import Location, locate
from pexeso.store.local.reader import open_store
from pexeso.store.manifest import Manifest
from pexeso.store.remote import publish as publish_module
from pexeso.store.remote.publish import (
    begin,
    commit_manifest,
    publish,
    require_safe_commits,
    unique_folder_name,
)
from pexeso.store.remote.store import Cache, open_remote_store, read_remote_manifest


@pytest.fixture
def build(tmp_path, build_index):
    """Return a function that builds a local index and returns its folder and manifest."""

    def build_local(seed: int = 0, n_partitions: int = 1) -> tuple[Path, Manifest]:
        path = tmp_path / f"built-{seed}-{n_partitions}"
        return path, build_index(path, seed=seed, n_partitions=n_partitions)

    return build_local


def put(place: Location, built: tuple[Path, Manifest], **options) -> Manifest:
    return publish(*built, begin(place, overwrite=True), **options)


def listed(manifest: Manifest) -> set[str]:
    return manifest.paths()


def objects(place: Location) -> set[str]:
    return set(place.find())


def assert_same_arrays(place: Location, built: tuple[Path, Manifest], tmp_path: Path) -> None:
    store, expected = open_remote_store(place, Cache(tmp_path / "cache")), open_store(built[0])
    assert store.n_partitions == expected.n_partitions
    for number in range(expected.n_partitions):
        arrays = store.partition(number)
        for name, array in expected.partition(number).items():
            np.testing.assert_array_equal(arrays[name], array)


def test_what_was_built_here_is_read_there(place, build, tmp_path):
    built = build(seed=5)
    steps: list[tuple[int, int]] = []
    manifest = publish(
        *built, begin(place), progress=lambda done, total: steps.append((done, total))
    )
    assert read_remote_manifest(place)[0] == manifest
    assert objects(place) == listed(manifest) | {"manifest.json"}
    assert (manifest.generation, manifest.options) == (1, built[1].options)
    assert steps[-1] == (built[1].n_bytes, built[1].n_bytes)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert_same_arrays(place, built, tmp_path)


def test_names_are_given_to_no_two_builds():
    for folder in ("catalog", "embedder.3", "partitions/00012"):
        names = {unique_folder_name(folder) for _ in range(100)}
        assert len(names) == 100
        assert all(name.startswith(folder.split("/")[0].split(".")[0]) for name in names)


def test_an_index_is_replaced_only_when_asked_to_and_by_the_next_generation(place, build, tmp_path):
    first = put(place, build(seed=1))
    with pytest.raises(OutputError, match=r"^'s3://.*' holds an index already: .*overwrite=True"):
        begin(place)
    second_build = build(seed=2, n_partitions=2)
    second = put(place, second_build)
    assert (second.generation, read_remote_manifest(place)[0]) == (2, second)
    assert_same_arrays(place, second_build, tmp_path)
    assert not listed(first) & listed(second)


def test_folders_that_stay_are_not_uploaded_again(place, build, s3_server):
    first = put(place, build(seed=1))
    path, local = build(seed=2)
    mixed = Manifest(
        **{
            name: getattr(local, name)
            for name in ("written_by", "created", "generation", "options", "fingerprints", "facts")
        },
        catalogs=(*first.catalogs, local.catalogs[0]),
        embedder=first.embedder,
        parts={"semantic": (*first.partitions, local.partitions[0])},
    )
    s3_server.faults.clear()
    second = publish(path, mixed, begin(place, overwrite=True))
    assert second.catalogs[:1] == first.catalogs
    assert second.partitions[:1] == first.partitions
    assert second.embedder == first.embedder
    uploaded = [
        name.partition("lake.pexeso/")[2]
        for method, name, _ in s3_server.faults.requests
        if method == "PUT"
    ]
    assert {
        name for name in uploaded if name.startswith(("catalog", "embedder", "partitions"))
    } == listed(second) - listed(first)
    open_remote_store(place)


def test_of_two_builds_that_began_at_the_same_index_the_later_commit_is_refused(place, build):
    put(place, build(seed=1))
    mine, other = begin(place, overwrite=True), begin(place, overwrite=True)
    winner = publish(*build(seed=2), other)
    before = objects(place)
    with pytest.raises(
        OutputError, match=r"^Another build has committed to 's3://.*' since this one began"
    ):
        publish(*build(seed=3), mine)
    assert read_remote_manifest(place)[0] == winner
    assert objects(place) == before


def test_of_two_first_builds_the_later_commit_is_refused(place, build):
    mine, other = begin(place), begin(place)
    winner = publish(*build(seed=2), other)
    with pytest.raises(OutputError, match="Another build has committed"):
        publish(*build(seed=3), mine)
    assert read_remote_manifest(place)[0] == winner
    assert objects(place) == listed(winner) | {"manifest.json"}


def test_a_commit_that_slips_in_at_the_last_moment_wins(place, build, s3_server):
    put(place, build(seed=1))
    mine, other = begin(place, overwrite=True), begin(place, overwrite=True)
    late = build(seed=3)
    won: list[Manifest] = []
    s3_server.faults.before_write = lambda: won.append(publish(*late, other))
    with pytest.raises(OutputError, match="Another build has committed"):
        publish(*build(seed=2), mine)
    assert [read_remote_manifest(place)[0]] == won


def test_of_many_builds_that_commit_at_once_one_wins(place, build):
    put(place, build(seed=1))
    builds = [(build(seed=2 + number), begin(place, overwrite=True)) for number in range(3)]
    won: list[Manifest] = []
    lost: list[str] = []
    barrier = threading.Barrier(len(builds))

    def race(built, base) -> None:
        barrier.wait()
        try:
            won.append(publish(*built, base))
        except OutputError as error:
            lost.append(str(error))

    threads = [threading.Thread(target=race, args=arguments) for arguments in builds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, len(builds) - 1)
    assert all("Another build has committed" in message for message in lost)
    assert read_remote_manifest(place)[0] == won[0]
    open_remote_store(place)


def test_an_index_removed_meanwhile_is_not_written_over(place, build):
    put(place, build(seed=1))
    base = begin(place, overwrite=True)
    place.joined("manifest.json").remove()
    with pytest.raises(OutputError, match="Another build has committed"):
        publish(*build(seed=2), base)


@pytest.mark.parametrize("fault", ["ignores_conditions", "refuses_conditions"])
def test_a_server_without_conditional_writes_is_refused_before_anything_is_uploaded(
    place, s3_server, fault
):
    setattr(s3_server.faults, fault, True)
    with pytest.raises(
        OutputError,
        match=r"where conditional writes work; .* Build the index in a local folder, and copy",
    ):
        begin(place)
    assert objects(place) == set()


def test_a_server_that_stops_checking_is_noticed_when_another_build_was_overwritten_last(
    place, build, s3_server
):
    put(place, build(seed=1))
    version = read_remote_manifest(place)[1]
    data = build(seed=2)[1].to_bytes()
    s3_server.faults.ignores_conditions = True

    class Overwritten(Location):
        """A place where another build writes between the write of this one and its check."""

        def put_if(self, data, expected):
            put_there = super().put_if(data, expected)
            self.write(build(seed=3)[1].to_bytes())
            return put_there

        def joined(self, relative):
            return Overwritten(f"{self.url}/{relative}", f"{self.path}/{relative}", self.options)

    with pytest.raises(OutputError, match="Another build has committed"):
        commit_manifest(Overwritten(place.url, place.path, place.options), data, version)


@pytest.mark.parametrize("url", ["memory://lake.pexeso"])
def test_other_storages_are_refused_in_one_sentence(url):
    with pytest.raises(
        OutputError,
        match=rf"^An index can be written to a local folder, and to S3 .* '{url}' is neither\. "
        r"Build",
    ):
        begin(locate(url))


def test_a_place_that_cannot_be_written_is_refused(s3_server):
    with pytest.raises(
        OutputError, match=r"could not be tried out at 's3://no-such-bucket-anywhere/x' \(.*bucket"
    ):
        begin(locate("s3://no-such-bucket-anywhere/x", **s3_server.options))


def test_a_place_that_holds_something_else_is_refused(place):
    place.joined("notes.txt").write(b"mine")
    for overwrite in (False, True):
        with pytest.raises(OutputError, match=r"holds 'notes\.txt' and is no index of pexeso's"):
            begin(place, overwrite=overwrite)
    assert objects(place) == {"notes.txt"}


def test_an_unreadable_manifest_is_not_overwritten(place):
    place.joined("manifest.json").write(b"{}")
    with pytest.raises(OutputError, match="cannot be overwritten, as its manifest does not tell"):
        begin(place, overwrite=True)


def test_an_upload_that_fails_leaves_what_was_there(place, build, monkeypatch):
    first = put(place, build(seed=1))
    before = objects(place)
    write_file, n_written = Location.write_file, []

    def fails(self, local):
        if len(n_written) == 3:
            raise PlaceError(f"'{self}' cannot be written: the connection broke off.")
        n_written.append(1)
        write_file(self, local)

    monkeypatch.setattr(Location, "write_file", fails)
    with pytest.raises(
        OutputError,
        match=r"^The index cannot be written there: 's3://.*the connection broke off\.$",
    ):
        put(place, build(seed=2))
    assert read_remote_manifest(place)[0] == first
    assert objects(place) == before


def test_a_local_file_that_changed_is_not_uploaded(place, build):
    path, manifest = build(seed=1)
    (path / "embedder" / "words" / "model.bin").write_bytes(b"short")
    with pytest.raises(
        OutputError, match=r"model\.bin' is not there with the 256 bytes that were written"
    ):
        publish(path, manifest, begin(place))
    assert objects(place) == set()


def test_a_commit_that_broke_off_leaves_its_files_since_they_may_be_in_use(
    place, build, monkeypatch
):
    first = put(place, build(seed=1))
    put_if = Location.put_if

    def answer_lost(self, data, expected):
        version = put_if(self, data, expected)
        if self.name == "manifest.json":
            raise PlaceError("the connection broke off.")
        return version

    with monkeypatch.context() as lost:
        lost.setattr(Location, "put_if", answer_lost)
        with pytest.raises(PlaceError, match="It is not known whether the index was put in place"):
            put(place, build(seed=2))
    second = read_remote_manifest(place)[0]
    assert second.generation == first.generation + 1
    open_remote_store(place)
    third = put(place, build(seed=3), retention_seconds=-1)
    assert objects(place) == listed(third) | {"manifest.json"}


def test_an_answer_that_was_lost_and_asked_again_is_a_commit(place, build, monkeypatch):
    put_if = Location.put_if

    def done_twice(self, data, expected):
        version = put_if(self, data, expected)
        return put_if(self, data, expected) if self.name == "manifest.json" else version

    monkeypatch.setattr(Location, "put_if", done_twice)
    manifest = put(place, build(seed=2))
    assert read_remote_manifest(place)[0] == manifest


def test_what_readers_may_use_is_kept_for_a_time_and_removed_later(place, build, tmp_path):
    first_build = build(seed=1)
    first = put(place, first_build)
    reader = open_remote_store(place, Cache(tmp_path / "reader"))
    second = put(place, build(seed=2))
    assert objects(place) == listed(first) | listed(second) | {
        "manifest.json",
        "retired/manifest.1.json",
    }
    expected = open_store(first_build[0])
    np.testing.assert_array_equal(reader.array(0, "vectors"), expected.array(0, "vectors"))
    third = put(
        place, build(seed=3), retention_seconds=-1
    )  # whatever is older than the next second
    assert objects(place) == listed(third) | {"manifest.json"}


def test_a_sweep_removes_nothing_that_a_manifest_kept_for_readers_lists(place, build, monkeypatch):
    first = put(place, build(seed=1))
    path, local = build(seed=2)
    second = publish(path, replace(local, embedder=first.embedder), begin(place, overwrite=True))
    third = put(place, build(seed=3))
    ages = {
        "retired/manifest.1.json": 0,
        "retired/manifest.2.json": 10**30,
    }  # the first is old, the second is new
    find = Location.find

    def with_ages(self):
        folder = self.path.removeprefix(f"{place.path}/")
        return {
            name: replace(entry, modified=ages.get(f"{folder}/{name}", entry.modified))
            for name, entry in find(self).items()
        }

    monkeypatch.setattr(Location, "find", with_ages)
    publish_module.sweep(place, third)
    monkeypatch.undo()
    assert objects(place) == listed(second) | listed(third) | {
        "manifest.json",
        "retired/manifest.2.json",
    }
    assert listed(first) & objects(place) == {f"{first.embedder.folder}/words/model.bin"}


def test_what_a_build_that_died_uploaded_is_removed_by_a_later_commit_and_not_before(place, build):
    dead = {"partitions/123456789012345678/vectors.npy", "catalog.12345678901234567/tables.parquet"}
    for name in dead:
        place.joined(name).write(b"half")
    with pytest.raises(
        OutputError, match=r"holds 'catalog\.12345678901234567', 'partitions' and is no index"
    ):
        begin(place)
    publish_module.note_upload(place, dead)
    first = put(place, build(seed=1))
    assert dead <= objects(place)
    second = put(place, build(seed=2), retention_seconds=-1)
    assert objects(place) == listed(second) | {"manifest.json"}
    assert first.generation + 1 == second.generation


@pytest.mark.parametrize(
    "files",
    [
        ["../outside.csv"],
        ["manifest.json"],
        ["/a"],
        ["catalog"],
        "catalog/x",
        [1],
        {},
        ["partitions/00000/../../../x"],
    ],
)
def test_a_note_that_names_what_is_not_pexesos_own_removes_nothing(bucket, place, build, files):
    bucket.joined("outside.csv").write(b"mine")
    place.joined(".building/upload-1.json").write(json.dumps({"files": files}).encode())
    place.joined("retired/manifest.1.json").write(b"{}")
    place.joined("retired/other.txt").write(b"mine")
    manifest = put(place, build(seed=1), retention_seconds=-1)
    assert bucket.joined("outside.csv").read() == b"mine"
    kept = {".building/upload-1.json", "retired/manifest.1.json", "retired/other.txt"}
    assert objects(place) == listed(manifest) | {"manifest.json"} | kept


def test_the_probe_leaves_nothing(place):
    require_safe_commits(place)
    assert objects(place) == set()
