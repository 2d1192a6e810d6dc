"""A lake of one table in every format: none is lost, each is a query, and damage is told."""

import random

import pytest
from every_format import TABLE, every_file
from read_tables import records_of

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.files import find_tables
from pexeso.lake.left_out import grouped
from pexeso.lake.rows import read_rows, read_typed_rows
from pexeso.results.query import read_query

CITIES = TABLE["city"].to_pylist()
COUNTRIES = TABLE["country"].to_pylist()


@pytest.fixture(scope="module")
def files():
    return every_file()


@pytest.fixture(scope="module")
def lake(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("every")
    for name, (data, _) in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_every_table_is_read_and_none_is_lost(files, lake):
    assert len(files) >= 40
    listed, skipped = find_tables(lake)
    rows = records_of(listed)
    assert skipped == []
    tables = {row["table"]: row for row in rows if row["record"] == "table"}
    assert sorted(tables) == sorted(name for _, names in files.values() for name in names)
    assert {name: row["reason"] for name, row in tables.items() if row["reason"]} == {}
    assert {name: row["n_rows"] for name, row in tables.items() if row["n_rows"] != 7} == {}
    values = {}
    for row in rows:
        if row["record"] == "value":
            values.setdefault((row["table"], row["position"]), set()).add(row["text"])
    for name in tables:
        expected = {city.replace("ō", "o") if "latin" in name else city for city in CITIES}
        assert expected in [texts for (table, _), texts in values.items() if table == name], name


def test_each_is_a_query_by_its_name(files, lake):
    for _, names in files.values():
        for name in names:
            column = "at.country" if "nested" in name else "country"
            query = read_query(f"{lake / name}:{column}")
            assert query.values.to_pylist() == COUNTRIES, name
            assert read_rows(lake, name, [column]).column(0).to_pylist() == COUNTRIES, name


def test_typed_formats_keep_their_types(lake):
    for name in (
        *("ze.parquet", "zf.feather", "zk.orc", "zl.avro", "zm.xlsx#Cities", "zp.duckdb#cities"),
    ):
        rows, typed = read_typed_rows(lake, name)
        assert [column.type for column in typed][2:] == TABLE.schema.types[2:], name
        assert typed[3].to_pylist() == TABLE["founded"].to_pylist(), name
        assert rows["founded"].to_pylist() == [str(cell) for cell in TABLE["founded"].to_pylist()]
    assert read_typed_rows(lake, "a.csv")[1] is None


def damaged(data, how):
    if how == "cut":
        return data[: len(data) // 2]
    if how == "empty":
        return b""
    if how == "other":
        return b"%PDF-1.7\n" + bytes(random.Random(1).randbytes(2000))
    flipped = bytearray(data)
    for place in range(len(data) // 3, len(data) // 3 + 40):
        flipped[place % len(data)] ^= 0xFF
    return bytes(flipped)


@pytest.mark.parametrize("how", ["cut", "empty", "other", "flipped"])
def test_damaged_files_are_listed_with_a_sentence_and_stop_nothing(files, tmp_path, how):
    (tmp_path / "0.csv").write_bytes(files["a.csv"][0])
    for name, (data, _) in files.items():
        (tmp_path / name).write_bytes(damaged(data, how))
    listed, skipped = find_tables(tmp_path)
    rows = [row for row in records_of(listed) if row["record"] == "table"]
    tables = {row["table"]: row["reason"] for row in rows}
    assert tables.pop("0.csv") is None
    reasons = {file.path: file.reason for file in skipped}
    reasons |= {name: reason for name, reason in tables.items() if reason}
    for name in files:
        of_file = [reason for path, reason in reasons.items() if path.startswith(name)]
        if how in ("empty", "other"):
            assert of_file, name
        assert all("\n" not in reason and len(reason) < 400 for reason in of_file)
        assert all(grouped(reason, name).head for reason in of_file)
        if of_file and f"{name}" in reasons:
            with pytest.raises(TableReadError):
                read_table(tmp_path / name)
