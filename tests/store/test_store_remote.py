"""Tests of an index on other storage: opening, fetching, verification and bounded cache."""

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from s3_server import copied_to

from pexeso.errors import (
    IndexCorruptError,
    IndexNotFoundError,
    IndexVersionError,
    InputError,
    OutputError,
    PlaceError,
)
from pexeso.store.io.location import Location
from pexeso.store.local.reader import Store, open_store
from pexeso.store.remote import store as cache_module
from pexeso.store.remote.store import (
    Cache,
    current_remote_manifest,
    default_cache,
    open_remote_store,
    read_remote_manifest,
)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(cache_module, "_PAUSE_SECONDS", 0.0)


@pytest.fixture
def local(tmp_path, build_index) -> Path:
    path = tmp_path / "lake.pexeso"
    build_index(path, seed=3, n_partitions=3)
    return path


@pytest.fixture
def place(bucket, local) -> Location:
    """The index, copied there file by file, as any tool copies."""
    return copied_to(bucket.joined("lake.pexeso"), local)


def assert_same(store: Store, other: Store) -> None:
    assert store.manifest == other.manifest
    for number in range(other.n_partitions):
        arrays, expected = store.partition(number), other.partition(number)
        assert arrays.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(arrays[name], array)
            np.testing.assert_array_equal(store.array(number, name), array)
        assert (
            store.texts(number, "values").to_pylist() == other.texts(number, "values").to_pylist()
        )
        assert store.document(number) == other.document(number)
    for kind in ("tables", "columns"):
        assert [[path.read_bytes() for path in paths] for paths in store.catalog_files(kind)] == [
            [path.read_bytes() for path in paths] for paths in other.catalog_files(kind)
        ]
    folder, expected = store.embedder_folder, other.embedder_folder
    names = sorted(path.relative_to(expected) for path in expected.rglob("*") if path.is_file())
    assert sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()) == names
    assert all((folder / name).read_bytes() == (expected / name).read_bytes() for name in names)


def files_in(cache: Cache) -> list[Path]:
    return [path for path in (cache.root / "folders").rglob("*") if path.is_file()]


def test_what_is_read_elsewhere_is_what_is_read_here(place, local, cache):
    assert_same(open_remote_store(place, cache), open_store(local))
    assert open_remote_store(place, cache).path == place


def test_only_what_is_needed_is_fetched_and_it_is_fetched_once(place, cache, s3_server):
    store = open_remote_store(place, cache)
    assert not cache.root.exists()
    s3_server.faults.clear()
    store.partition(1)
    fetched = {
        path.split("partitions/")[1][:5]
        for _, path, _ in s3_server.faults.requests
        if "/partitions/" in path
    }
    assert fetched == {"00001"}
    assert not any(path.endswith(".arrow") for _, path, _ in s3_server.faults.requests)
    s3_server.faults.clear()
    store.partition(1)
    open_remote_store(place, cache).partition(1)
    assert [path for _, path, _ in s3_server.faults.requests if "/partitions/" in path] == []


def test_equal_folders_of_two_indexes_are_kept_once(place, bucket, local, cache):
    other = bucket.joined("copy.pexeso")
    bucket.filesystem.copy(place.path, other.path, recursive=True)
    open_remote_store(place, cache).partition(0)
    n_files = len(files_in(cache))
    open_remote_store(other, cache).partition(0)
    assert len(files_in(cache)) == n_files


def test_where_no_index_is_it_is_said(bucket, place, s3_server):
    with pytest.raises(
        IndexNotFoundError,
        match=r"^There is no index at 's3://test-\w+/nothing': it has no manifest",
    ):
        read_remote_manifest(bucket.joined("nothing"))
    assert current_remote_manifest(bucket.joined("nothing")) == (None, None)
    manifest, version = read_remote_manifest(place)
    assert version == place.joined("manifest.json").look().version
    assert manifest.generation == 1


def test_a_changed_manifest_is_refused(place):
    data = place.joined("manifest.json").read()
    place.joined("manifest.json").write(data.replace(b'"seed":3', b'"seed":4', 1))
    with pytest.raises(IndexCorruptError, match=r"^'s3://.*manifest\.json' cannot be trusted"):
        open_remote_store(place)
    place.joined("manifest.json").write(b"")
    with pytest.raises(IndexCorruptError, match="cannot be trusted"):
        open_remote_store(place)


def test_a_manifest_of_a_later_version_is_refused(place, monkeypatch):
    from pexeso.store import manifest

    monkeypatch.setattr(manifest, "FORMAT_VERSION", 1)
    with pytest.raises(
        IndexVersionError, match=r"^'s3://.*' cannot be read\. The index has format version"
    ):
        open_remote_store(place)


def test_missing_and_short_files_are_seen_when_it_is_opened(place, cache):
    file = place.joined("partitions/00001/vectors.npy")
    data = file.read()
    file.write(data[:-1])
    with pytest.raises(
        IndexCorruptError,
        match=rf"^'{file}' has {len(data) - 1} bytes, but {len(data)} were written",
    ):
        open_remote_store(place, cache)
    file.remove()
    with pytest.raises(IndexCorruptError, match=rf"^'{file}' is missing"):
        open_remote_store(place, cache)


def test_a_changed_object_is_found_when_it_is_fetched_and_is_not_kept(place, cache):
    store = open_remote_store(place, cache)
    file = place.joined("partitions/00001/vectors.npy")
    data = file.read()
    file.write(data[:-1] + bytes([data[-1] ^ 1]))
    store.partition(0)
    n_files = len(files_in(cache))
    with pytest.raises(
        IndexCorruptError, match=rf"^'{file}' is not as it was written, by its checksum"
    ):
        store.partition(1)
    assert all(
        "vectors.npy" not in path.name or path.parent == cache.folder(store.partition_entry(0))
        for path in files_in(cache)
    )
    assert len(files_in(cache)) < 2 * n_files
    file.write(data)
    assert_same(store, store)


def test_an_object_that_vanishes_is_told_with_the_way_out(place, cache):
    store = open_remote_store(place, cache)
    place.joined("partitions/00001/vectors.npy").remove()
    with pytest.raises(
        IndexCorruptError, match=r"vectors\.npy' is missing\. If the index has been written anew"
    ):
        store.partition(1)


def test_a_download_that_breaks_off_is_taken_up_again(place, local, cache, s3_server):
    store = open_remote_store(place, cache)
    s3_server.faults.cut_from, s3_server.faults.n_cut = 100, 2
    assert_same(store, open_store(local))
    assert s3_server.faults.n_cut == 0


def test_a_download_that_breaks_off_again_and_again_leaves_nothing(
    place, cache, s3_server, monkeypatch
):
    monkeypatch.setattr(cache_module, "_ATTEMPTS", 2)
    monkeypatch.setattr(place.filesystem, "retries", 1)
    store = open_remote_store(place, cache)
    s3_server.faults.cut_from, s3_server.faults.n_cut = 100, 10**6
    with pytest.raises(PlaceError, match="cannot be read"):
        store.partition(1)
    assert not any(path.suffix == ".part" for path in files_in(cache))
    s3_server.faults.clear()
    store.partition(1)


def test_a_file_in_the_cache_that_is_not_of_its_size_is_fetched_again(place, local, cache):
    open_remote_store(place, cache).partition(0)
    for path in files_in(cache):
        os.truncate(path, 1)
    assert_same(open_remote_store(place, cache), open_store(local))


def test_a_large_file_is_fetched_in_pieces(place, cache, monkeypatch, local, s3_server):
    monkeypatch.setattr(cache_module, "READ_BYTES", 64)
    store = open_remote_store(place, cache)
    s3_server.faults.clear()
    assert_same(store, open_store(local))
    assert sum(path.endswith("00001/vectors.npy") for _, path, _ in s3_server.faults.requests) >= 3


def array_bytes(store: Store) -> int:
    """Bytes of the arrays of the largest partition."""
    return max(
        sum(file.n_bytes for file in one.files if file.path.endswith(".npy"))
        for one in store.manifest.partitions
    )


def bytes_in(cache: Cache) -> int:
    return sum(path.stat().st_size for path in files_in(cache))


def test_the_cache_stays_within_its_bound_and_what_was_not_used_for_longest_goes(
    place, local, tmp_path
):
    cache = Cache(tmp_path / "cache", max_bytes=2 * array_bytes(open_store(local)))
    store = open_remote_store(place, cache)
    for moment, number in enumerate((0, 1, 0, 2)):
        store.partition(number)
        assert bytes_in(cache) <= cache.max_bytes
        os.utime(
            cache.root / "locks" / cache.folder(store.partition_entry(number)).name,
            (moment, moment),
        )
    assert [cache.folder(store.partition_entry(number)).exists() for number in range(3)] == [
        True,
        False,
        True,
    ]
    assert len(list((cache.root / "locks").iterdir())) == 2


def test_arrays_stay_readable_when_their_files_have_left_the_cache(place, local, tmp_path):
    cache = Cache(tmp_path / "cache", max_bytes=array_bytes(open_store(local)))
    store = open_remote_store(place, cache)
    arrays = [store.partition(number) for number in range(3)]
    assert not cache.folder(store.partition_entry(0)).exists()
    for number, expected in enumerate(map(open_store(local).partition, range(3))):
        for name, array in expected.items():
            np.testing.assert_array_equal(arrays[number][name], array)


def test_what_is_in_use_stays_and_a_cache_that_is_too_small_says_so(place, local, tmp_path):
    manifest = open_store(local).manifest
    cache = Cache(
        tmp_path / "cache", max_bytes=manifest.embedder.n_bytes + manifest.partitions[0].n_bytes
    )
    store = open_remote_store(place, cache)
    folder = store.embedder_folder
    for number in range(3):
        store.partition(number)
    assert (folder / "words" / "model.bin").exists()
    small = Cache(tmp_path / "small", max_bytes=10)
    with pytest.raises(
        OutputError,
        match=r"holds at most 10 bytes, of which 0 bytes are in use, and .* more are needed",
    ):
        open_remote_store(place, small).partition(0)
    assert files_in(small) == []


def test_what_another_process_uses_stays(place, local, tmp_path):
    manifest = open_store(local).manifest
    cache = Cache(tmp_path / "cache", max_bytes=array_bytes(open_store(local)))
    store = open_remote_store(place, cache)
    folder, lease = cache.fetch(
        place, manifest.partitions[0], [manifest.partitions[0].files[0].path]
    )
    lease.release()
    program = (
        "import fcntl, sys\nfile = open(sys.argv[1])\nfcntl.flock(file, "
        "fcntl.LOCK_SH)\nprint('locked', flush=True)\nsys.stdin.read()"
    )
    lock = cache.root / "locks" / folder.name
    with subprocess.Popen(
        [sys.executable, "-c", program, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(OutputError, match="are in use"):
            store.partition(1)
        assert folder.exists()
        other.stdin.close()
        other.wait(10)
    store.partition(1)
    assert not folder.exists()


def test_parts_of_a_process_that_died_are_removed_and_those_of_a_living_one_are_not(
    place, local, tmp_path
):
    entry = open_store(local).manifest.partitions[0]
    cache = Cache(tmp_path / "cache", max_bytes=2 * entry.n_bytes)
    folder, lease = cache.fetch(place, entry, ["vectors.npy"])
    dead = folder / f"codes.npy.{'0' * 16}.part"
    dead.write_bytes(bytes(entry.n_bytes))
    living, descriptor = cache_module._new_part(folder / "codes.npy", 10)
    cache.fetch(place, entry, ["seed.npy"])
    assert not dead.exists()
    assert living.exists()
    os.close(descriptor)
    lease.release()


def test_many_threads_fetch_the_same_and_other_partitions_at_once(place, local, tmp_path):
    expected = [open_store(local).partition(number) for number in range(3)]
    largest = max(entry.n_bytes for entry in open_store(local).manifest.partitions)
    store = open_remote_store(place, Cache(tmp_path / "cache", max_bytes=8 * largest))
    problems: list[BaseException] = []

    def read(start: int) -> None:
        try:
            for step in range(6):
                number = (start + step) % 3
                for name, array in store.partition(number).items():
                    np.testing.assert_array_equal(array, expected[number][name])
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=read, args=(start,)) for start in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_where_nothing_can_be_locked_what_was_used_lately_stays(
    place, local, tmp_path, monkeypatch
):
    def no_locks(descriptor, kind):
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", no_locks)
    cache = Cache(tmp_path / "cache", max_bytes=array_bytes(open_store(local)))
    store = open_remote_store(place, cache)
    store.partition(0)
    with pytest.raises(OutputError, match="are in use"):
        store.partition(1)
    for lock in (cache.root / "locks").iterdir():
        os.utime(lock, (0, 0))
    store.partition(1)


def test_the_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    for name in ("PEXESO_CACHE", "PEXESO_CACHE_GIB", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache() == Cache(tmp_path / ".cache" / "pexeso", 20 << 30)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache().root == tmp_path / "xdg" / "pexeso"
    monkeypatch.setenv("PEXESO_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("PEXESO_CACHE_GIB", "0.5")
    assert default_cache() == Cache(tmp_path / "own", 1 << 29)
    for wrong in ("0", "-1", "many", "nan", "inf", "1e-30"):
        monkeypatch.setenv("PEXESO_CACHE_GIB", wrong)
        with pytest.raises(InputError, match="must be a number of GiB above 0"):
            default_cache()
    with pytest.raises(InputError, match="must be a whole number of bytes"):
        Cache(tmp_path, 0)


def test_a_cache_that_cannot_be_written_says_so(place, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="file"):
        open_remote_store(place, Cache(tmp_path / "file")).partition(0)


def test_a_store_can_be_sent_to_another_process(place, local, cache):
    store = open_remote_store(place, cache)
    store.embedder_folder  # noqa: B018  takes a lease, which stays here
    assert_same(pickle.loads(pickle.dumps(store)), open_store(local))


def test_fewer_bytes_than_asked_for_are_asked_for_again(place, local, cache, monkeypatch):
    read, n_short = Location.read, []

    def short(self, start=0, stop=None):
        data = read(self, start, stop)
        if stop is None or len(n_short) == 2:
            return data
        n_short.append(1)
        return data[:-1]

    store = open_remote_store(place, cache)
    monkeypatch.setattr(Location, "read", short)
    assert_same(store, open_store(local))
    assert len(n_short) == 2


def test_a_manifest_replaced_while_it_is_read_comes_with_its_own_version(
    place, tmp_path, build_index, monkeypatch
):
    read, later = (
        Location.read,
        [build_index(tmp_path / f"later-{seed}", seed=seed).to_bytes() for seed in (1, 2)],
    )

    def then_replaced(self, start=0, stop=None):
        data = read(self, start, stop)
        if later:
            self.write(later.pop())
        return data

    monkeypatch.setattr(Location, "read", then_replaced)
    manifest, version = read_remote_manifest(place)
    assert version == place.joined("manifest.json").look().version
    assert manifest.options == {"seed": 1}


def test_a_cache_that_cannot_be_written_is_one_sentence(place, local, tmp_path):
    (tmp_path / "file").write_text("no folder")
    store = open_store(local)
    with pytest.raises(OutputError, match=r"^The cache .* Name another folder by PEXESO_CACHE\.$"):
        Cache(tmp_path / "file").fetch(place, store.manifest.embedder, [])
