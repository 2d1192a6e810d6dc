"""Tables of Delta Lake and Iceberg: their rows are those of the log, not of all files there."""

import builtins
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.redundancy.measuring import find_by_samples, find_containments
from pexeso.index import build_index
from pexeso.lake.containers.folders import (
    CannotRead,
    LoggedTable,
    live_files,
    log_in,
    logged_tables,
)
from pexeso.redundancy.search import find_redundancy


def rows(*numbers, year=1):
    return pa.table({"a": list(numbers), "year": [year] * len(numbers)})


def edges_of(containments):
    return {(edge.parent, edge.child) for edge in containments.edges}


def delta(folder, *versions, **options):
    from deltalake import write_deltalake

    for version in versions:
        write_deltalake(folder, version, mode="overwrite", **options)


def iceberg(folder, *versions):
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{folder.parent}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=versions[0].schema, location=f"file://{folder}")
    table.append(versions[0])
    for version in versions[1:]:
        table.overwrite(version)
    return table


@pytest.mark.parametrize("write", [delta, iceberg])
def test_rows_of_older_versions_are_not_rows_of_the_table(spark, tmp_path, write):
    write(tmp_path / "t", rows(1, 2, 3), rows(4, 5))
    pq.write_table(rows(1, 2), tmp_path / "old.parquet")
    pq.write_table(rows(5), tmp_path / "now.parquet")
    containments = find_containments(spark, tmp_path)
    assert edges_of(containments) == {("t", "now.parquet")}
    assert containments.left_out == ()
    assert [(table.name, table.n_rows) for table in containments.tables] == [
        ("now.parquet", 1),
        ("old.parquet", 2),
        ("t", 2),
    ]
    assert edges_of(find_by_samples(None, tmp_path)) == {("t", "now.parquet")}


def test_an_index_leaves_the_files_of_a_log_to_the_folder(tmp_path):
    lake = tmp_path / "lake"
    delta(lake / "t", rows(1, 2, 3), rows(4, 5))
    pq.write_table(rows(1, 2), lake / "old.parquet")
    pq.write_table(rows(5), lake / "now.parquet")
    (lake / "towns.csv").write_text("town\nOslo\nRome\nBern\nKyiv\nLima\n")
    build_index(lake, tmp_path / "i.pexeso", parts=["redundancy"])
    result = find_redundancy(tmp_path / "i.pexeso").containments
    assert edges_of(result) == set()
    assert {table.name for table in result.tables} == {"old.parquet", "now.parquet", "towns.csv"}
    reasons = {omission.table: omission.reason for omission in result.left_out}
    assert "it belongs to a table of Delta, " in reasons["t"], reasons


def test_partitions_of_a_log_are_columns(spark, tmp_path):
    whole = pa.concat_tables([rows(1, 2, year=2020), rows(3, year=2021)])
    delta(tmp_path / "t", rows(9, year=2020), whole, partition_by=["year"])
    pq.write_table(whole, tmp_path / "same.parquet")
    containments = find_containments(spark, tmp_path)
    assert edges_of(containments) == {("t", "same.parquet"), ("same.parquet", "t")}


@pytest.mark.parametrize("write", [delta, iceberg])
def test_a_table_with_a_log_stays_and_rebuilds_others(tmp_path, write):
    lake = tmp_path / "lake"
    lake.mkdir()
    write(lake / "t", rows(1, 7), rows(*range(20)))
    pq.write_table(rows(*range(20)), lake / "copy.parquet")
    costs = tmp_path / "costs.toml"
    costs.write_text("accesses = 0\n", encoding="utf-8")
    answer = find_redundancy(lake, costs=costs, verified=True)
    assert answer.refuted == {}
    assert [(entry.table, entry.parent) for entry in answer.plan.delete] == [("copy.parquet", "t")]
    assert answer.plan.delete[0].verified


def test_deleted_rows_and_renamed_columns_leave_a_table_out(spark, tmp_path):
    table = iceberg(tmp_path / "renamed", rows(1, 2))
    with table.update_schema() as change:
        change.rename_column("a", "b")
    pq.write_table(rows(1), tmp_path / "other.parquet")
    delta(tmp_path / "mapped", rows(1))
    log = tmp_path / "mapped" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    containments = find_containments(spark, tmp_path)
    assert edges_of(containments) == set()
    assert {omission.table: omission.reason for omission in containments.left_out} == {
        name: "its log gives its columns other names than its files have"
        for name in ("mapped", "renamed")
    }


def test_without_the_library_a_table_is_left_out_with_what_to_install(spark, tmp_path, monkeypatch):
    delta(tmp_path / "d", rows(1))
    (tmp_path / "i" / "metadata").mkdir(parents=True)
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text("{}")
    pq.write_table(rows(1), tmp_path / "other.parquet")
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("deltalake", "pyiceberg"):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    containments = find_containments(spark, tmp_path)
    assert {omission.table: omission.reason for omission in containments.left_out} == {
        "d": "it is a Delta table: install what reads its log with pip install 'pexeso[delta]'",
        "i": "it is an Iceberg table: install what reads its log with pip install "
        "'pexeso[iceberg]'",
    }


def test_broken_logs_and_missing_files_leave_a_table_out(tmp_path):
    delta(tmp_path / "d", rows(1))
    next((tmp_path / "d").glob("*.parquet")).unlink()
    pq.write_table(rows(1), tmp_path / "other.parquet")
    (tmp_path / "i" / "metadata").mkdir(parents=True)
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text("{")
    containments = find_by_samples(None, tmp_path)
    reasons = {omission.table: omission.reason for omission in containments.left_out}
    assert reasons["d"].startswith("its log names the file d/part-")
    assert reasons["d"].endswith("which is not there")
    assert reasons["i"].startswith("its log cannot be read: ")


def test_files_of_a_log_that_lie_elsewhere_are_not_read(tmp_path):
    iceberg(tmp_path / "t", rows(1))
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    assert len(live_files(tmp_path / "t", "iceberg")) == 1
    with pytest.raises(CannotRead, match=r"t/data/.*\.parquet, which lies elsewhere"):
        live_files(tmp_path / "copy", "iceberg")


def test_logs_are_told_by_their_names(tmp_path):
    names = [
        "_delta_log/0.json",
        "x/y/metadata/00001-ab.metadata.json",
        "x/metadata/a.json",
        "z.csv",
    ]
    assert logged_tables(names) == [LoggedTable(".", "delta"), LoggedTable("x/y", "iceberg")]
    assert log_in(tmp_path) is None
    (tmp_path / "_delta_log").mkdir()
    assert log_in(tmp_path) == LoggedTable(".", "delta")
