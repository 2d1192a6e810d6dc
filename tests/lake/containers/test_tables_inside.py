import sqlite3

import pytest

from pexeso.lake.containers.tables_inside import inner_name
from pexeso.lake.files import find_tables
from pexeso.lake.rows import read_rows
from pexeso.results.query import read_query

NAMES = ["plain", "a:b", "x/y", "50 %", "..", "é#1", "new\nline", "q\"uo'te", "%2F"]


@pytest.fixture
def lake(tmp_path):
    base = sqlite3.connect(tmp_path / "odd.sqlite")
    for number, name in enumerate(NAMES):
        quoted = name.replace('"', '""')
        base.execute(f'CREATE TABLE "{quoted}" (city TEXT)')
        base.execute(f'INSERT INTO "{quoted}" VALUES (?)', [f"city {number}"])
    base.commit()
    base.close()
    return tmp_path


def test_a_file_that_is_called_a_database_and_is_none_says_why(tmp_path):
    (tmp_path / "a.db").write_bytes(b"")
    (tmp_path / "b.db").write_text("city,country\nOslo,Norway\n")
    (tmp_path / "c.duckdb").write_bytes(b"DUCK" * 2)
    tables, skipped = find_tables(tmp_path)
    reasons = {file.path: file.reason for file in skipped}
    assert (tables, list(reasons)) == ([], ["a.db", "b.db", "c.duckdb"])
    assert reasons["a.db"] == "a.db is empty: it has no bytes."
    for name in ("b.db", "c.duckdb"):
        assert reasons[name].startswith(f"{name} is no database of SQLite or DuckDB: it does not ")


def test_a_table_of_any_name_is_found_and_read_by_the_name_that_is_listed(lake):
    tables = find_tables(lake)[0]
    assert {file.table for file in tables} == {f"odd.sqlite#{inner_name(name)}" for name in NAMES}
    for number, name in enumerate(NAMES):
        table = f"odd.sqlite#{inner_name(name)}"
        assert read_rows(lake, table)["city"].to_pylist() == [f"city {number}"]
        assert read_query(f"{lake / table}:city").values.to_pylist() == [f"city {number}"]
        assert read_query(f"{lake / table}").values.to_pylist() == [f"city {number}"]
