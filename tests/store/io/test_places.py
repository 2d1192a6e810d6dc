"""Tests of local and remote places: paths stay inside, reads are ranged, no secret is shown."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pexeso.errors import InputError, MissingPackageError, PlaceError
from pexeso.store.io import location
from pexeso.store.io.location import Location, is_url, locate, read_up_to
from pexeso.store.io.parquet import n_rows_of, parquet_files, spark_path

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory():
    """An empty in-memory storage: one a process, so it is emptied before and after."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    yield locate("memory://lake")
    filesystem.store.clear()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("data/lake", Path("data/lake")),
        (Path("/data/lake"), Path("/data/lake")),
        ("file:///data/my%20lake", Path("/data/my lake")),
        ("file://localhost/data", Path("/data")),
        ("FILE:///data", Path("/data")),
        ("a:b//c", Path("a:b//c")),
    ],
)
def test_what_lies_on_this_machine_is_a_path(where, expected):
    assert locate(where) == expected
    assert not is_url(where)


def test_local_filesystems_of_pyarrow_and_fsspec_are_paths(tmp_path):
    assert locate(pyarrow.fs.LocalFileSystem(), str(tmp_path)) == tmp_path
    assert locate(fsspec.filesystem("file"), str(tmp_path)) == tmp_path


def test_a_local_path_loads_no_package_of_storages():
    program = (
        "import sys; from pexeso.store.io.location import locate; locate('a'); "
        "locate('file:///a'); print('fsspec' in sys.modules, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("memory://lake/", "memory://lake"),
        ("Memory://lake/a", "memory://lake/a"),
        ("memory://", "memory://"),
    ],
)
def test_an_url_is_a_place_that_reads_as_it_was_written(url, text):
    place = locate(url)
    assert isinstance(place, Location)
    assert is_url(url)
    assert str(place) == text
    assert locate(str(place)) == place
    assert locate(place) == place


def test_a_place_can_be_pickled_and_holds_no_connection(memory):
    memory.joined("a.csv").write(b"x")
    copy = pickle.loads(pickle.dumps(memory))
    assert copy == memory
    assert copy.joined("a.csv").read() == b"x"


@pytest.mark.parametrize("name", ["", "/a", "a//b", ".", "a/../b", "..", "a/", "a\0b", "./a"])
def test_no_name_leads_out_of_a_place(memory, name):
    with pytest.raises(InputError, match="does not name anything below 'memory://lake'"):
        memory.joined(name)


@given(st.text(alphabet="ab./\0", max_size=8))
def test_a_joined_path_lies_below_or_is_refused(name):
    place = locate("memory://lake/deep")
    try:
        joined = place.joined(name)
    except InputError:
        return
    assert joined.path == f"{place.path}/{name}"
    assert os.path.normpath(joined.path) == joined.path


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("nowhere://x", "protocol of 'nowhere://x' is not known"),
        ("memory://a/../b", "has '.' or '..' parts"),
        ("memory://a/./b", "has '.' or '..' parts"),
        ("zip://a.csv::memory://b.zip", "is a chain of filesystems"),
        ("file://elsewhere/a", "must name a path of this machine"),
        (17, "A place is a path, an URL .* Got int"),
        (b"memory", "Got bytes"),
    ],
)
def test_what_is_no_place_is_refused_in_one_sentence(where, reason):
    with pytest.raises(InputError, match=reason):
        locate(where)


def test_a_filesystem_needs_a_path():
    with pytest.raises(InputError, match="a filesystem of pyarrow or fsspec with a path"):
        locate(fsspec.filesystem("memory"))


def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch):
    def missing(protocol):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(MissingPackageError, match=r"^'s3://bucket/lake' .* 'pexeso\[s3\]'$"):
        locate("s3://bucket/lake")
    with pytest.raises(
        MissingPackageError, match=r"reach 'gs://bucket': Install s3fs to access S3\.$"
    ):
        locate("gs://bucket")


def test_bytes_can_be_put_looked_at_listed_and_removed(memory):
    memory.joined("a.csv").write(b"abcdef")
    memory.joined("deep/er/b.csv").write(b"xy")
    assert {(entry.name, entry.kind, entry.n_bytes) for entry in memory.entries()} == {
        ("a.csv", "file", 6),
        ("deep", "folder", 0),
    }
    assert {name: entry.n_bytes for name, entry in memory.find().items()} == {
        "a.csv": 6,
        "deep/er/b.csv": 2,
    }
    place = memory.joined("a.csv")
    assert place.read(2, 4) == b"cd"
    with place.open() as stream:
        stream.seek(3)
        assert stream.read() == b"def"
    assert place.look().kind == "file"
    assert memory.look().kind == "folder"
    place.remove()
    place.remove()
    assert place.look() is None


def test_what_is_not_there_is_said_in_one_sentence(memory):
    place = memory.joined("none.csv")
    assert memory.look() is None
    assert memory.find() == {}
    for attempt in (place.read, memory.entries):
        with pytest.raises(
            PlaceError,
            match=r"^'memory://lake.*' cannot be (read|listed): there is no such file or folder\.$",
        ):
            attempt()
    with pytest.raises(PlaceError, match="cannot be read: there is no such file"), place.open():
        pass


def test_a_filesystem_of_pyarrow_is_read_as_well(tmp_path):
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "a.csv").write_bytes(b"abc")
    place = locate(
        pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem()), "lake"
    )
    copy = pickle.loads(pickle.dumps(place))
    assert [(entry.name, entry.n_bytes) for entry in copy.entries()] == [("a.csv", 3)]
    assert copy.entries()[0].modified > 10**18
    assert copy.joined("a.csv").read(1) == b"bc"


@pytest.mark.parametrize("limit", [0, 1, 9, 10, 11, 100])
def test_reading_stops_at_the_limit(limit, monkeypatch):
    monkeypatch.setattr(location, "READ_BYTES", 3)

    class Stream:
        def __init__(self):
            self.data, self.n_requested = b"0123456789", 0

        def read(self, n):
            self.n_requested += n
            piece, self.data = self.data[:n], self.data[n:]
            return piece

    stream = Stream()
    assert read_up_to(stream, limit) == b"0123456789"[:limit]
    assert stream.n_requested <= max(limit, 10 + 3)


def test_an_object_has_its_size_time_and_version(bucket):
    place = bucket.joined("lake/a.csv")
    place.write(b"abc")
    entry = place.look()
    assert (entry.name, entry.kind, entry.n_bytes) == ("a.csv", "file", 3)
    assert entry.modified > 10**18
    assert entry.modified % 10**9 == 0
    assert bucket.joined("lake").entries() == [entry]
    assert list(bucket.joined("lake").find().values()) == [entry]
    place.write(b"abd")
    assert place.look().version != entry.version
    assert pickle.loads(pickle.dumps(place)).read() == b"abd"


def test_what_others_changed_is_seen_at_once(bucket, s3_server):
    other = fsspec.filesystem("s3", skip_instance_cache=True, **s3_server.options)
    other.pipe_file(f"{bucket.path}/lake/a.csv", b"1")
    lake = bucket.joined("lake")
    assert len(lake.entries()) == 1
    other.pipe_file(f"{bucket.path}/lake/b.csv", b"22")
    other.pipe_file(f"{bucket.path}/lake/a.csv", b"333")
    assert {entry.name: entry.n_bytes for entry in lake.entries()} == {"a.csv": 3, "b.csv": 2}
    assert lake.joined("a.csv").look().n_bytes == 3
    with lake.joined("a.csv").open() as stream:
        assert stream.read() == b"333"


def test_a_file_replaced_while_it_is_read_is_not_mixed_with_the_new_one(bucket):
    place = bucket.joined("a.csv")
    place.write(b"a" * 100)

    def read_while_it_is_replaced():
        with place.open() as stream:
            stream.read(10)
            place.write(b"b" * 100)
            return stream.read(10)

    with pytest.raises(PlaceError, match="cannot be read"):
        read_while_it_is_replaced()


def test_only_the_range_asked_for_is_fetched(bucket, s3_server):
    place = bucket.joined("large.bin")
    place.write(bytes(1 << 20))
    s3_server.faults.cut_from, s3_server.faults.n_cut = (
        1000,
        100,
    )  # whatever is larger would break off
    assert place.read(500_000, 500_100) == bytes(100)
    with place.open() as stream:
        stream.seek(1 << 19)
        assert stream.read(100) == bytes(100)


def test_a_bucket_that_is_not_there_is_named(s3_server):
    place = locate("s3://no-such-bucket-anywhere/lake", **s3_server.options)
    assert place.look() is None
    with pytest.raises(
        PlaceError, match=r"^'s3://no-such-bucket-anywhere/lake' cannot be listed: .*bucket"
    ):
        place.entries()


def test_no_credentials_are_shown(bucket, s3_server):
    secret = s3_server.options["secret"]
    assert secret not in repr(bucket) + str(bucket)
    assert str(locate("ftp://user:hunter2@127.0.0.1/lake")) == "ftp://user@127.0.0.1/lake"
    assert "hunter2" not in repr(locate("ftp://user:hunter2@127.0.0.1/lake"))

    class Refusing(fsspec.AbstractFileSystem):
        protocol = "refusing"

        def info(self, path, **_):
            raise PermissionError(f"the secret {secret} at https://user:hunter2@host/ is wrong")

    for place in (
        Location(
            "refusing://x", "x", {"secret": secret, "nested": {"aws_secret_access_key": "hunter2"}}
        ),
        Location("refusing://x", "x", given=Refusing(client_kwargs={"secret": secret})),
    ):
        fsspec.register_implementation("refusing", Refusing, clobber=True)
        with pytest.raises(PlaceError) as raised:
            place.look()
        assert "there is no permission" in str(raised.value)
        assert secret not in str(raised.value)
        assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["plain", "[x]{y,z}*?", "a%20b ü#", "c:d", "[e]:f\\\\", "k=1"])
def test_spark_writes_each_row_once_whatever_the_name(spark, tmp_path, name):
    folder = tmp_path / name
    spark.range(3).write.parquet(spark_path(folder / "one"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]
    files = parquet_files(folder / "one")
    assert n_rows_of(files) == 3
    ids = [row for file in files for row in pq.ParquetFile(file).read()["id"].to_pylist()]
    assert sorted(ids) == [0, 1, 2]


def test_spark_goes_the_way_of_a_link(tmp_path):
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    assert spark_path(tmp_path / "link" / ".." / "x") == f"file://{tmp_path.resolve()}/far/x"


def test_a_name_that_java_cannot_have_is_refused():
    with pytest.raises(InputError, match="a name in it is not UTF-8"):
        spark_path(b"/data/\xfb.pexeso".decode("utf-8", "surrogateescape"))
