"""Tests that a lake on other storage has the tables, rows and joins of the same local lake."""

import gzip
import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pytest
from read_tables import records_of

from pexeso.errors import InputError, LakeError, OutputError, PlaceError, TableReadError
from pexeso.joins.mapping import PairColumns, make_mapping
from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import JoinOptions
from pexeso.joins.tables import join_table
from pexeso.lake.choose import ColumnRules
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import TableFile, find_tables, list_folder, look_at_lake, path_from_text
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.readers.table import fingerprint_file, read_content
from pexeso.lake.rows import read_rows, table_path
from pexeso.results.matches import Pair
from pexeso.store.io.location import Location, locate
from pexeso.store.remote.publish import require_safe_commits


def copy_to(place: Location, folder: Path) -> Location:
    """Put every file of a folder below a place."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        place.joined(path.relative_to(folder).as_posix()).write(path.read_bytes())
    return place


@pytest.fixture
def storage(request):
    """Return an empty place on each storage that is tested, S3 first."""
    if request.param == "s3":
        yield request.getfixturevalue("bucket").joined("lake")
        return
    stored = pytest.importorskip("fsspec").filesystem("memory").store
    stored.clear()
    yield locate("memory://lake")
    stored.clear()


both = pytest.mark.parametrize("storage", ["s3", "memory"], indirect=True)


@pytest.fixture
def lake(bucket, small_lake) -> Location:
    return copy_to(bucket.joined("lake"), small_lake)


@both
def test_a_lake_elsewhere_lists_as_the_same_lake_here(storage, small_lake):
    place = copy_to(storage, small_lake)
    (here, skipped_here), (there, skipped_there) = find_tables(small_lake), find_tables(place)
    assert skipped_there == skipped_here
    assert [(file.table, file.format, file.n_bytes) for file in there] == [
        (file.table, file.format, file.n_bytes) for file in here
    ]
    assert [file.path for file in there] == [place.joined(file.table) for file in here]
    assert [path_from_text(place, str(file.path)) for file in there] == [
        file.path for file in there
    ]


@both
def test_its_tables_become_the_same_records(storage, small_lake):
    place = copy_to(storage, small_lake)
    for here, there in zip(find_tables(small_lake)[0], find_tables(place)[0], strict=True):
        records = [records_of([file], ColumnRules(min_rows=3)) for file in (here, there)]
        for table, *_ in records:
            del table["modified"], table["version"]
        assert records[0] == records[1]


def test_a_filesystem_of_pyarrow_reads_the_same_lake(lake, s3_server):
    options = {
        "scheme": "http",
        "endpoint_override": s3_server.address.removeprefix("http://"),
        "region": "us-east-1",
    }
    key, secret = s3_server.options["key"], s3_server.options["secret"]
    filesystem = pyarrow.fs.S3FileSystem(access_key=key, secret_key=secret, **options)
    place = locate(filesystem, lake.path)
    assert str(place) == str(lake)
    assert [(file.table, file.n_bytes) for file in find_tables(place)[0]] == [
        (file.table, file.n_bytes) for file in find_tables(lake)[0]
    ]
    assert read_rows(place, "cities.csv").equals(read_rows(lake, "cities.csv"))
    with pytest.raises(
        OutputError, match="was given as a filesystem that does not offer them, so give its URL"
    ):
        require_safe_commits(place.joined("lake.pexeso"))


def test_objects_tell_time_and_version_of_each_table(lake):
    before = {file.table: file for file in find_tables(lake)[0]}
    assert all(file.modified > 10**18 and file.version for file in before.values())
    lake.joined("cities.csv").write(b"city,country\nOslo,Norway\n")
    after = {file.table: file for file in find_tables(lake)[0]}
    assert {table for table in after if after[table] != before[table]} == {"cities.csv"}
    assert after["cities.csv"].version != before["cities.csv"].version


def test_one_object_is_a_lake_of_one_table(lake):
    lake.joined("notes.txt").write(b"a,b\n1,2\n")
    tables, skipped = find_tables(lake.joined("notes.txt"))
    assert [(file.table, file.format, file.n_bytes) for file in tables] == [
        ("notes.txt", "delimited", 8)
    ]
    assert tables[0].version == lake.joined("notes.txt").look().version
    assert skipped == []
    assert look_at_lake(lake) == (lake, None)


@both
def test_hidden_names_and_indexes_are_skipped(storage):
    for name in (
        *("a.csv", ".hidden.csv", ".git/a.csv", "old.pexeso/a.csv", "built/a.csv"),
        *("built/deep/b.csv", "app/a.csv"),
    ):
        storage.joined(name).write(b"a,b\n1,2\n")
    manifest = {"format_version": 4, "fingerprints": {}, "parts": {}, "checksum": ""}
    storage.joined("built/manifest.json").write(json.dumps(manifest).encode())
    storage.joined("app/manifest.json").write(b'{"name": "app"}')
    tables, skipped = find_tables(storage)
    assert [file.table for file in tables] == ["a.csv", "app/a.csv", "app/manifest.json"]
    reasons = {file.path: file.reason for file in skipped}
    assert reasons == {
        ".git": "hidden: its name starts with a dot",
        ".hidden.csv": "hidden: its name starts with a dot",
        "built": "a pexeso index",
        "old.pexeso": "a pexeso index",
    }
    for index in ("built", "old.pexeso"):
        with pytest.raises(LakeError, match="is a pexeso index, not a folder of tables"):
            find_tables(storage.joined(index))


def test_keys_that_are_no_paths_are_skipped_and_markers_of_folders_are_nothing(bucket):
    def put(key, body=b"a,b\n1,2\n"):
        bucket.filesystem.call_s3("put_object", Bucket=bucket.path, Key=key, Body=body)

    put("lake/", b"")
    put("lake/d/", b"")
    put("lake/d/a.csv")
    put("lake//b.csv")
    put("lake/../c.csv")
    put("lake/both.csv")
    put("lake/both.csv/d.csv")
    lake = bucket.joined("lake")
    assert [file.table for file in find_tables(lake)[0]] == [
        "both.csv",
        "both.csv/d.csv",
        "d/a.csv",
    ]
    assert {(file.path, file.reason) for file in find_tables(lake)[1]} == {
        ("", "its name is empty: two slashes follow each other"),
        ("..", "hidden: its name starts with a dot"),
    }
    assert sorted(list_folder(lake).folders) == ["both.csv", "d"]


def test_more_names_than_one_answer_holds_are_all_found(bucket, s3_server, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "7")
    lake = bucket.joined("lake")
    lake.filesystem.pipe({f"{lake.path}/{number:04d}.csv": b"a\n" for number in range(40)})
    s3_server.faults.clear()
    assert [file.table for file in find_tables(lake)[0]] == [
        f"{number:04d}.csv" for number in range(40)
    ]
    assert sum("continuation-token" in query for _, _, query in s3_server.faults.requests) >= 5
    assert set(lake.find()) == {f"{number:04d}.csv" for number in range(40)}


def test_a_lake_that_is_not_there_is_refused(bucket, s3_server):
    with pytest.raises(
        LakeError, match="nothing is neither a folder nor a file; give the folder that holds"
    ):
        find_tables(bucket.joined("nothing"))
    with pytest.raises(LakeError, match="is neither a folder nor a file"):
        find_tables(locate("s3://no-such-bucket-anywhere", **s3_server.options))


def failing(place: Location, error: Exception) -> Location:
    """Return the place on a storage that fails whatever it is asked."""

    class Failing(type(place.filesystem)):
        def info(self, *_, **__):
            raise error

        ls = open = info

    return Location(place.url, place.path, given=Failing(skip_instance_cache=True))


def test_a_storage_that_refuses_is_told_in_one_sentence(bucket):
    refused = failing(bucket, PermissionError("Access Denied"))
    with pytest.raises(
        LakeError,
        match=r"^'s3://test-\w+' cannot be looked at: there is no permission \(Access Denied\)\.$",
    ):
        find_tables(refused)
    assert "cannot be listed: 's3://" in list_folder(refused, "a").skipped[0].reason
    with pytest.raises(TableReadError, match="there is no permission"):
        read_content(refused.joined("a.csv"))
    assert fingerprint_file(refused.joined("a.csv")) is None
    [record] = records_of([table_at(refused)])
    assert "there is no permission" in record["reason"]


def table_at(place: Location) -> TableFile:
    return TableFile("a.csv", place.joined("a.csv"), "delimited", 1)


def test_a_storage_that_breaks_off_is_no_reason_to_leave_anything_out(bucket):
    broken = failing(bucket, ConnectionError("connection reset"))
    for attempt in (
        lambda: list_folder(broken, "a"),
        lambda: read_content(broken.joined("a.csv")),
        lambda: fingerprint_file(broken.joined("a.csv")),
        lambda: read_rows(broken, "a.csv"),
        lambda: records_of([table_at(broken)]),
    ):
        with pytest.raises(PlaceError, match="connection reset"):
            attempt()


def test_a_table_replaced_while_it_is_read_is_read_again(lake, monkeypatch):
    replaced, new = lake.joined("cities.csv"), b"city\n" + b"Oslo\n" * 1000
    opened, times = Location.open, []

    @contextmanager
    def replaced_once(self):
        with opened(self) as stream:
            if not times:
                times.append(1)
                replaced.write(new)
            yield stream

    monkeypatch.setattr(Location, "open", replaced_once)
    assert read_content(replaced).data == new


@both
def test_reading_stops_at_the_limit_before_and_after_unpacking(storage, s3_process):
    plain, packed = storage.joined("a.csv"), storage.joined("b.csv.gz")
    plain.write(b"x" * 100)
    packed.write(gzip.compress(b"x" * 100_000))
    assert read_content(plain, max_bytes=100).data == b"x" * 100
    with pytest.raises(TableReadError, match="holds more than 99 bytes"):
        read_content(plain, max_bytes=99)
    with pytest.raises(TableReadError, match="holds more than 1,000 bytes"):
        read_content(packed, max_bytes=1000)
    assert len(read_content(packed, max_bytes=100_000).data) == 100_000


def test_of_a_large_object_no_more_is_fetched_than_the_limit(bucket, s3_server):
    place = bucket.joined("large.csv")
    place.write(b"x" * 1_000_000)
    s3_server.faults.cut_from, s3_server.faults.n_cut = (
        2000,
        1000,
    )  # whatever is larger would break off
    with pytest.raises(TableReadError, match="holds more than 1,000 bytes"):
        read_content(place, max_bytes=1000)


@both
def test_a_fingerprint_is_that_of_the_content(storage):
    place = storage.joined("a.csv")
    place.write(b"a,b\n1,2\n")
    assert fingerprint_file(place) == read_content(place).fingerprint
    assert fingerprint_file(storage.joined("none.csv")) is None


@both
def test_an_empty_file_is_empty_and_a_missing_one_or_a_folder_is_none(storage):
    storage.joined("d/empty.csv").write(b"")
    assert read_content(storage.joined("d/empty.csv")).data == b""
    with pytest.raises(TableReadError, match="cannot be read: there is no such file"):
        read_content(storage.joined("none.csv"))
    with pytest.raises(TableReadError):
        read_content(storage.joined("d"))


def test_a_table_is_read_by_its_url(lake, s3_server, monkeypatch):
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    assert read_table(f"{lake}/cities.csv").names == ["city", "country", "people"]
    rows = read_rows(str(lake), "nested/companies.csv", ["place"])
    assert rows.column("place").to_pylist() == ["Oslo", "Rome", "Madrid", "Vienna", "Lisbon"]


def test_rows_are_those_of_the_same_lake_here(lake, small_lake):
    for table in ("cities.csv", "nested/capitals.tsv"):
        assert read_rows(lake, table).equals(read_rows(small_lake, table))
    assert read_rows(lake.joined("cities.csv"), "cities.csv").equals(
        read_rows(small_lake, "cities.csv")
    )


@both
def test_no_table_name_leads_out_of_the_lake(storage):
    storage.joined("a.csv").write(b"a\n")
    for name in ("../a.csv", "/a.csv", "", "a\0.csv", "deep/../../a.csv", "./a.csv", "a//b.csv"):
        with pytest.raises(InputError):
            table_path(storage, name)
    with pytest.raises(InputError, match="The lake is the one file"):
        table_path(storage.joined("a.csv"), "b.csv")
    assert table_path(storage.joined("a.csv"), "a.csv") == (storage.joined("a.csv"), None)


def test_a_join_with_a_table_elsewhere_is_the_join_with_the_same_table_here(lake, small_lake):
    mine = pd.DataFrame({"town": ["oslo", "Rome", "Paris"]})
    pairs = [Pair("oslo", "Oslo", 0.0, "oslo", "exact"), Pair("Rome", "Rome", 0.0, "rome", "exact")]
    texts, options = pa.array(["oslo", "Rome", "Paris"]), JoinOptions()
    mapping = make_mapping(
        texts, np.arange(3), pa.array(["oslo", "rome", "paris"]), PairColumns.of(pairs)
    )
    joined = []
    for where in (lake, small_lake):
        rows = read_rows(where, "cities.csv")
        found_rows = find_rows("cities.csv", "city", rows, mapping, Normaliser(), options)
        joined.append(join_table(mine, "town", found_rows, texts).table)
    pd.testing.assert_frame_equal(*joined)
    assert joined[0]["country"].tolist()[:2] == ["Norway", "Italy"]
