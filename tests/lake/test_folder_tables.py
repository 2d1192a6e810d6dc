"""A folder with a log, or with partitions in its folders' names, is one table: its rows of now."""

import datetime
import json
import shutil

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import pexeso
from pexeso.errors import TableReadError
from pexeso.index import build_index
from pexeso.lake.containers import folders
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.rows import read_typed_rows
from pexeso.lake.typed.value_texts import value_texts
from pexeso.store.io.location import locate
from tests.lake.delta_log import TOWNS, iceberg, towns, vector_of

deltalake = pytest.importorskip("deltalake")


def rows_of(path):
    table = read_table(path)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def lake(tmp_path):
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


def names(lake):
    tables, skipped = find_tables(lake)
    return [(file.table, file.format) for file in tables], {
        file.path: file.reason for file in skipped
    }


def test_an_index_follows_the_log(lake, tmp_path):
    (lake / "deep").mkdir()
    (lake / "other.csv").write_text("fruit\n" + "apple\npear\nplum\nfig\nlime\n")
    deltalake.write_deltalake(lake / "deep" / "towns", towns())
    assert names(lake)[0] == [("deep/towns", "delta"), ("other.csv", "delimited")]
    index = build_index(lake, tmp_path / "ix")
    assert index.search(TOWNS)[0].matched == len(TOWNS)
    deltalake.DeltaTable(lake / "deep" / "towns").delete("n >= 5")
    update = index.append()
    assert (update.changed, update.new) == (1, 0)
    match = index.search(TOWNS)[0]
    assert (match.table, match.matched) == ("deep/towns", 5)
    assert match.join(pa.table({"town": TOWNS}), on="town")["n"].null_count == 2
    assert index.append().changed == 0
    shutil.rmtree(lake / "deep" / "towns")
    assert index.append(delete_missing=True).deleted == 1


def with_protocol(folder, **protocol):
    """Rewrite the protocol of a table's first commit."""
    log = folder / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] |= protocol
    log.write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 9, "minWriterVersion": 9},
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["fromTheFuture"],
            "writerFeatures": ["fromTheFuture"],
        },
    ],
)
def test_what_is_not_known_is_left_out_with_the_reason(lake, protocol):
    deltalake.write_deltalake(lake / "towns", towns())
    with_protocol(lake / "towns", **protocol)
    tables, reasons = names(lake)
    assert tables == []
    assert reasons["towns"].startswith("a folder that is one delta table, which cannot be read: ")
    with pytest.raises(TableReadError, match="cannot be read as a table"):
        read_table(lake / "towns")


def test_a_log_that_is_damaged_leaves_the_table_out(lake):
    deltalake.write_deltalake(lake / "towns", towns())
    for log in (lake / "towns" / "_delta_log").iterdir():
        log.write_text("{")
    tables, reasons = names(lake)
    assert tables == []
    assert "cannot be read" in reasons["towns"]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_damaged_file_that_is_put_back_is_read(lake, tmp_path, kind):
    (lake / "other.csv").write_text("fruit\n" + "apple\npear\nplum\nfig\nlime\n")
    if kind == "iceberg":
        iceberg(lake / "towns", towns())
    else:
        deltalake.write_deltalake(lake / "towns", towns())
    [path] = (lake / "towns").rglob("*.parquet")
    sound = path.read_bytes()
    path.write_bytes(b"#" * len(sound))
    index = build_index(lake, tmp_path / "ix")
    assert list(index.search(TOWNS)) == []
    path.write_bytes(sound)
    index.append()
    assert index.search(TOWNS)[0].matched == len(TOWNS)


def test_a_hive_table_has_the_columns_of_its_folders(lake, tmp_path):
    wanted = []
    for country, year, some in (("NO", "2020", TOWNS[:3]), ("I%20T", "2021", TOWNS[3:])):
        folder = lake / "towns" / f"country={country}" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(towns(some), folder / "part-0.parquet")
        (folder / "_SUCCESS").touch()
        wanted += [(town, str(n), country.replace("%20", " "), year) for n, town in enumerate(some)]
    assert names(lake)[0] == [("towns", "hive")]
    assert read_table(lake / "towns").names == ["town", "n", "country", "year"]
    assert rows_of(lake / "towns") == sorted(wanted)
    index = build_index(lake, tmp_path / "ix")
    assert index.search(["NO", "I T"], k=5)[0].column == "country"
    joined = index.search(TOWNS)[0].join(pa.table({"town": TOWNS}), on="town")
    assert joined["country"].to_pylist() == ["NO"] * 3 + ["I T"] * 4
    folder = lake / "towns" / "country=NO" / "year=2022"
    folder.mkdir()
    pq.write_table(towns(["Kiel"]), folder / "part-0.parquet")
    assert pexeso.open_index(tmp_path / "ix").append().changed == 1


YEARS = [2019, 2019, 2020, 2020, 2021, 2021, None]
DAYS = [datetime.date(2020, 1, n + 1) for n in range(len(TOWNS))]


def typed_rows(lake):
    """Return the columns of the table `towns` by name; each typed cell has the text of its cell."""
    rows, typed = read_typed_rows(lake, "towns")
    for texts, column in zip(rows.columns, typed, strict=True):
        assert value_texts(column.combine_chunks()).to_pylist() == texts.to_pylist()
    return dict(zip(rows.column_names, typed, strict=True))


@pytest.mark.parametrize("kind", ["delta", "iceberg", "hive"])
def test_columns_have_the_types_of_their_files(lake, kind):
    table = towns().append_column("day", pa.array(DAYS)).append_column("year", pa.array(YEARS))
    if kind == "iceberg":
        iceberg(lake / "towns", table)
    elif kind == "delta":
        deltalake.write_deltalake(lake / "towns", table, partition_by=["day", "year"])
    else:
        options = {"partitioning": ["day", "year"], "partitioning_flavor": "hive"}
        pyarrow.dataset.write_dataset(table, lake / "towns", format="parquet", **options)
    columns = typed_rows(lake)
    assert columns["n"].type == columns["year"].type == pa.int64()
    assert columns["day"].type == pa.date32()
    assert columns["town"].type in (pa.string(), pa.large_string())
    assert sorted(columns["n"].to_pylist()) == list(range(len(TOWNS)))
    assert sorted(columns["day"].to_pylist()) == DAYS
    assert columns["year"].to_pylist().count(None) == 1


def test_types_that_differ_between_files_and_texts_that_look_like_numbers(lake):
    for month, some in (("01", {"n": [1], "m": [1]}), ("12", {"n": [2.5], "m": ["x"], "o": [3]})):
        folder = lake / "towns" / f"month={month}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(some), folder / "part-0.parquet")
    columns = {name: column.to_pylist() for name, column in typed_rows(lake).items()}
    assert columns == {"n": [1.0, 2.5], "m": ["1", "x"], "o": [None, 3], "month": ["01", "12"]}
    (folder / "part-1.csv").write_text("n\n4\n")
    assert read_typed_rows(lake, "towns")[1] is None


def test_partitions_of_csv_and_missing_columns(lake):
    for country, text in (("NO", "town,n\nOslo,1\n"), ("IT", "n,town,more\n2,Rome,x\n")):
        folder = lake / "towns" / f"country={country}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(text)
    assert read_table(lake / "towns").names == ["n", "town", "more", "country"]
    assert rows_of(lake / "towns")[1] == ("2", "Rome", "x", "IT")
    assert read_table(lake / "towns").notes == [
        "columns that some of its files lack were filled with empty cells: 'more'"
    ]


def test_files_without_a_column_in_common_are_no_table(lake):
    """Files of Spark have no header by default: their first rows would be names of columns."""
    for country, text in (("IT", "Rome,south\nMilan,north\n"), ("NO", "Oslo,east\nBergen,west\n")):
        folder = lake / "towns" / f"country={country}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(text)
    with pytest.raises(TableReadError, match="without a column in common: country=IT"):
        read_table(lake / "towns")


def test_folders_that_are_no_hive_table_are_searched(lake):
    (lake / "mixed" / "k=v").mkdir(parents=True)
    for path in ("mixed/a.csv", "mixed/k=v/b.csv"):
        (lake / path).write_text("town,n\nOslo,1\n")
    (lake / "k=v").mkdir()
    (lake / "k=v" / "c.csv").write_text("town,n\nOslo,1\n")
    assert [table for table, _ in names(lake)[0]] == ["k=v/c.csv", "mixed/a.csv", "mixed/k=v/b.csv"]


def folders_of_towns(lake, *names):
    for name in names:
        (lake / "towns" / name).mkdir(parents=True)
        (lake / "towns" / name / "x.csv").write_text("town\nOslo\n")


def test_partitions_of_different_columns_are_left_out(lake):
    folders_of_towns(lake, "a=1", "b=2")
    assert "different partition columns" in names(lake)[1]["towns"]


def test_links_are_not_followed(lake, tmp_path):
    outside = tmp_path / "secret.csv"
    outside.write_text("town\nOslo\n")
    (lake / "towns" / "a=1").mkdir(parents=True)
    (lake / "towns" / "a=1" / "x.csv").symlink_to(outside)
    assert "not a regular file" in names(lake)[1]["towns"]


def test_files_are_bounded(lake, monkeypatch):
    monkeypatch.setattr(folders, "MAX_FILES", 1)
    folders_of_towns(lake, "a=1", "a=2")
    assert "at most 1 are read" in names(lake)[1]["towns"]


def test_a_lake_that_is_one_table_is_told(tmp_path):
    deltalake.write_deltalake(tmp_path / "towns", towns())
    tables, reasons = names(tmp_path / "towns")
    assert tables == []
    assert "the lake itself is one delta table" in reasons["towns"]


def test_an_index_follows_the_log_of_iceberg(lake, tmp_path):
    written = iceberg(lake / "towns", towns())
    (lake / "other.csv").write_text("fruit\n" + "apple\npear\nplum\nfig\nlime\n")
    assert names(lake)[0] == [("other.csv", "delimited"), ("towns", "iceberg")]
    index = build_index(lake, tmp_path / "ix")
    match = index.search(TOWNS)[0]
    assert (match.table, match.matched) == ("towns", len(TOWNS))
    written.delete("n >= 5")  # which writes the file of the others anew
    assert len(list((lake / "towns" / "data").glob("*.parquet"))) == 2
    assert [town for town, _ in rows_of(lake / "towns")] == sorted(TOWNS[:5])
    assert (index.append().changed, index.append().changed) == (1, 0)
    match = index.search(TOWNS)[0]
    assert (match.table, match.matched) == ("towns", 5)
    written.overwrite(towns(["Kiel", "Graz", "Metz", "Ulm", "Trier"]))
    index.append()
    assert all(match.table != "towns" for match in index.search(TOWNS))


BY_POSITION, BY_VALUES = 1, 2


def add_deletes(table, content):
    """Write, beside the snapshot of a table, a manifest of a file that deletes rows of it."""
    import fastavro

    def records_of(path):
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
            return list(reader), reader.writer_schema, metadata

    def write(path, records, schema, metadata):
        with open(path, "wb") as file:
            fastavro.writer(file, schema, records, metadata=metadata)

    listed = table.current_snapshot().manifest_list.removeprefix("file://")
    manifests, list_schema, list_metadata = records_of(listed)
    data_manifest = manifests[0]["manifest_path"].removeprefix("file://")
    entries, schema, metadata = records_of(data_manifest)
    folder = data_manifest.rpartition("/metadata/")[0]
    deletes = f"{folder}/data/deletes.parquet"
    rows = {"file_path": [entries[0]["data_file"]["file_path"]], "pos": [6]}
    pq.write_table(pa.table(rows if content == BY_POSITION else {"n": [6]}), deletes)
    [entry] = entries
    entry["data_file"] |= {"content": content, "file_path": f"file://{deletes}", "record_count": 1}
    for name in ("lower_bounds", "upper_bounds", "null_value_counts", "value_counts"):
        entry["data_file"][name] = None
    if content == BY_VALUES:
        entry["data_file"]["equality_ids"] = [2]
    path = f"{folder}/metadata/deletes.avro"
    write(path, [entry], schema, {**metadata, "content": "deletes"})
    added = {**manifests[0], "manifest_path": f"file://{path}", "content": 1}
    write(listed, [*manifests, added], list_schema, list_metadata)


def test_rows_that_the_log_of_iceberg_deletes_are_not_found(lake, tmp_path):
    written = iceberg(lake / "towns", towns())
    index = build_index(lake, tmp_path / "ix")
    assert index.search(TOWNS)[0].matched == len(TOWNS)
    add_deletes(written, BY_POSITION)
    assert index.append().changed == 1
    assert [town for town, _ in rows_of(lake / "towns")] == sorted(TOWNS[:-1])
    assert index.search(TOWNS)[0].matched == len(TOWNS) - 1


def test_equality_deletes_of_iceberg_leave_the_table_out(lake, tmp_path):
    add_deletes(iceberg(lake / "towns", towns()), BY_VALUES)
    pq.write_table(towns(["Kiel", "Graz", "Metz", "Ulm", "Trier"]), lake / "more.parquet")
    tables, reasons = names(lake)
    assert tables == [("more.parquet", "parquet")]
    assert "equality deletes" in reasons["towns"]
    assert list(build_index(lake, tmp_path / "ix").search(TOWNS)) == []


@pytest.mark.parametrize("what", ["metadata", "list", "manifest", "cut"])
def test_a_log_of_iceberg_that_is_damaged_leaves_the_table_out(lake, what):
    written = iceberg(lake / "towns", towns())
    folder = lake / "towns" / "metadata"
    lists = list(folder.glob("snap-*.avro"))
    manifests = [path for path in folder.glob("*.avro") if path not in lists]
    chosen = {"metadata": folder.glob("*.metadata.json"), "list": lists}.get(what, manifests)
    for path in chosen:
        path.write_bytes(path.read_bytes()[:-20] if what == "cut" else b"{")
    assert written is not None
    tables, reasons = names(lake)
    assert tables == []
    assert "cannot be read: " in reasons["towns"]


@pytest.mark.parametrize("is_named", [True, False])
def test_deletion_vectors_of_delta_are_applied(lake, tmp_path, is_named):
    """The vector stands in the log, whether or not the protocol names such."""
    deltalake.write_deltalake(lake / "towns", towns())
    index = build_index(lake, tmp_path / "ix")
    assert index.search(TOWNS)[0].matched == len(TOWNS)
    log = lake / "towns" / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    features = ["deletionVectors"] if is_named else []
    for line in lines:
        if "protocol" in line:
            named = {"readerFeatures": features, "writerFeatures": features}
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **named}
        if "add" in line:
            line["add"]["deletionVector"] = vector_of(5, 6)
    log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert (index.append().changed, index.append().changed) == (1, 0)
    assert [town for town, _ in rows_of(lake / "towns")] == sorted(TOWNS[:5])
    match = index.search(TOWNS)[0]
    assert match.matched == 5
    assert match.join(pa.table({"town": TOWNS}), on="town")["n"].null_count == 2


@pytest.mark.parametrize("protocol", ["memory", "s3"])
def test_folders_elsewhere_are_read_as_here_or_left_out(lake, tmp_path, request, protocol):
    for country, some in (("NO", TOWNS[:3]), ("IT", TOWNS[3:])):
        folder = lake / "hive" / f"country={country}"
        folder.mkdir(parents=True)
        pq.write_table(towns(some), folder / "part-0.parquet")
        (folder / "_SUCCESS").touch()
    iceberg(lake / "ice", towns())
    deltalake.write_deltalake(lake / "delta", towns())
    if protocol == "s3":
        place = request.getfixturevalue("bucket").joined("lake")
    else:
        stored = pytest.importorskip("fsspec").filesystem("memory").store
        stored.clear()
        request.addfinalizer(stored.clear)
        place = locate("memory://lake")
    for path in sorted(path for path in lake.rglob("*") if path.is_file()):
        place.joined(path.relative_to(lake).as_posix()).write(path.read_bytes())
    tables, skipped = find_tables(place)
    assert [(file.table, file.format) for file in tables] == [("hive", "hive")]
    reasons = {file.path: file.reason for file in skipped}
    for kind, name in (("delta", "delta"), ("iceberg", "ice")):
        assert reasons[name] == (
            f"a folder that is one {kind} table, which cannot be read: its log is read on this "
            "machine alone"
        )
    assert rows_of(place.joined("hive")) == rows_of(lake / "hive")
    assert read_table(place.joined("hive")).names == ["town", "n", "country"]
    place.joined("hive/country=IT/part-1.parquet").write(
        (lake / "hive" / "country=IT" / "part-0.parquet").read_bytes()
    )
    assert find_tables(place)[0][0].version != tables[0].version
