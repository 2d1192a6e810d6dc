import sqlite3

import pytest

from pexeso.lake.containers.tables_inside import inner_name
from pexeso.lake.files import find_tables
from pexeso.lake.rows import read_rows
from pexeso.search.query import read_query

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


def test_a_table_of_any_name_is_found_and_read_by_the_name_that_is_listed(lake):
    tables = find_tables(lake)[0]
    assert {file.table for file in tables} == {f"odd.sqlite#{inner_name(each)}" for each in NAMES}
    for number, name in enumerate(NAMES):
        table = f"odd.sqlite#{inner_name(name)}"
        assert read_rows(lake, table)["city"].to_pylist() == [f"city {number}"]
        assert read_query(f"{lake / table}:city").values.to_pylist() == [f"city {number}"]
        assert read_query(f"{lake / table}").values.to_pylist() == [f"city {number}"]
