"""A folder with a log, or with partitions in its folders' names, is one table: its rows of now."""

import json
import shutil

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import pexeso
from pexeso.errors import TableReadError
from pexeso.index import build_index
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.folders import folder_tables

deltalake = pytest.importorskip("deltalake")

TOWNS = ["Oslo", "Rome", "Bern", "Bonn", "Lima", "Oldtown", "Oldham"]


def towns(names=TOWNS):
    return pa.table({"town": names, "n": list(range(len(names)))})


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


def test_a_delta_table_after_a_delete(lake):
    deltalake.write_deltalake(lake / "towns", towns())
    deltalake.DeltaTable(lake / "towns").delete("n >= 5")
    assert names(lake)[0] == [("towns", "delta")]
    assert [town for town, _ in rows_of(lake / "towns")] == sorted(TOWNS[:5])


def test_an_index_follows_the_log(lake, tmp_path):
    (lake / "deep").mkdir()
    (lake / "other.csv").write_text("fruit\n" + "apple\npear\nplum\nfig\nlime\n")
    deltalake.write_deltalake(lake / "deep" / "towns", towns())
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


def test_partitions_of_delta_are_columns(lake):
    table = towns().append_column("country", pa.array(["NO", "IT", "CH", "DE", "PE", "a b", None]))
    deltalake.write_deltalake(lake / "towns", table, partition_by=["country"])
    assert names(lake)[0] == [("towns", "delta")]
    read = read_table(lake / "towns")
    assert sorted(read.names) == ["country", "n", "town"]
    country = dict(zip(read.columns[0].to_pylist(), read.columns[2].to_pylist(), strict=True))
    assert country["Oslo"] == "NO"
    assert country["Oldtown"] == "a b"
    assert country["Oldham"] is None


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


def test_partitions_of_csv_and_missing_columns(lake):
    for country, text in (("NO", "town,n\nOslo,1\n"), ("IT", "n,town,more\n2,Rome,x\n")):
        folder = lake / "towns" / f"country={country}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(text)
    assert read_table(lake / "towns").names == ["n", "town", "more", "country"]
    assert rows_of(lake / "towns")[1] == ("2", "Rome", "x", "IT")


def test_folders_that_are_no_hive_table_are_searched(lake):
    (lake / "mixed" / "k=v").mkdir(parents=True)
    for path in ("mixed/a.csv", "mixed/k=v/b.csv"):
        (lake / path).write_text("town,n\nOslo,1\n")
    (lake / "k=v").mkdir()
    (lake / "k=v" / "c.csv").write_text("town,n\nOslo,1\n")
    assert [table for table, _ in names(lake)[0]] == ["k=v/c.csv", "mixed/a.csv", "mixed/k=v/b.csv"]


def test_partitions_of_different_columns_are_left_out(lake):
    for name in ("a=1", "b=2"):
        (lake / "towns" / name).mkdir(parents=True)
        (lake / "towns" / name / "x.csv").write_text("town\nOslo\n")
    assert "different partition columns" in names(lake)[1]["towns"]


def test_links_are_not_followed(lake, tmp_path):
    outside = tmp_path / "secret.csv"
    outside.write_text("town\nOslo\n")
    (lake / "towns" / "a=1").mkdir(parents=True)
    (lake / "towns" / "a=1" / "x.csv").symlink_to(outside)
    assert "not a regular file" in names(lake)[1]["towns"]


def test_files_are_bounded(lake, monkeypatch):
    monkeypatch.setattr(folder_tables, "MAX_FILES", 1)
    for name in ("a=1", "a=2"):
        (lake / "towns" / name).mkdir(parents=True)
        (lake / "towns" / name / "x.csv").write_text("town\nOslo\n")
    assert "at most 1 are read" in names(lake)[1]["towns"]


def test_a_lake_that_is_one_table_is_told(tmp_path):
    deltalake.write_deltalake(tmp_path / "towns", towns())
    tables, reasons = names(tmp_path / "towns")
    assert tables == []
    assert "the lake itself is one delta table" in reasons["towns"]
