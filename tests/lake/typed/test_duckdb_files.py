"""DuckDB files: their tables, views that must not read elsewhere, and damaged ones."""

import datetime
import os
import subprocess
import sys
import time

import duckdb
import pyarrow as pa
import pytest

from pexeso.errors import TableReadError
from pexeso.lake.containers.reader import read_table
from pexeso.lake.readers.table import FileSource
from pexeso.lake.typed import databases, sandbox
from pexeso.lake.typed.databases import DATABASES
from pexeso.lake.typed.sandbox import InnerTable, bounds

HOSTILE = 'a"b; DROP TABLE "t"; --'


@pytest.fixture
def made(tmp_path):
    """A function that runs statements on a new database and returns what reads it."""

    def make(*statements):
        path = tmp_path / "data.duckdb"
        with duckdb.connect(str(path)) as connection:
            for statement in statements:
                connection.execute(statement)
        return FileSource("data.duckdb", path)

    return make


def columns(source, name):
    table = DATABASES.read(source, name)
    return table, table.rows.to_pydict()


def test_tables_and_views_are_read_with_their_types(made, tmp_path):
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    source = made(
        "CREATE TABLE t AS SELECT 1 AS n, 'x' AS s, DATE '1850-01-02' AS d, [1, 2] AS l",
        "CREATE SCHEMA other",
        f"CREATE TABLE other.{quoted} AS SELECT 7 AS {quoted}",
        "CREATE TABLE nothing (a INTEGER)",
        "CREATE VIEW v AS SELECT n + 1 AS m FROM t",
    )
    names = ["nothing", "t", f"other.{HOSTILE}", "v"]
    listed = DATABASES.tables_in(source)
    assert sorted(listed, key=lambda listed_table: listed_table.name) == sorted(
        map(InnerTable, names), key=lambda listed_table: listed_table.name
    )
    table, cells = columns(source, "t")
    assert cells == {"n": [1], "s": ["x"], "d": [datetime.date(1850, 1, 2)], "l": [[1, 2]]}
    assert table.rows.schema.types[0] == pa.int32()
    assert columns(source, names[2])[1] == {HOSTILE: [7]}
    assert columns(source, "nothing")[1] == {"a": []}
    assert columns(source, "v")[1] == {"m": [2]}
    assert os.listdir(tmp_path) == ["data.duckdb"]
    with pytest.raises(TableReadError, match=r"^data\.duckdb has no such table: 'x'\. It has "):
        DATABASES.read(source, "x")


def test_types_that_arrow_lacks_are_read_as_texts(made):
    """Arrow gives the first as -1, and the second without its time zone."""
    source = made(
        'CREATE TABLE t AS SELECT 340282366920938463463374607431768211455::UHUGEINT AS "a b", '
        "TIMETZ '10:00:00+02' AS t, '1000001'::BIT AS bits, INTERVAL 3 DAY AS i, 7 AS n"
    )
    assert columns(source, "t")[1] == {
        "a b": ["340282366920938463463374607431768211455"],
        "t": ["10:00:00+02"],
        "bits": ["1000001"],
        "i": ["3 days"],
        "n": [7],
    }


def test_views_may_neither_read_other_files_nor_be_endless(made, tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    source = made(
        f"CREATE VIEW elsewhere AS SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        "CREATE VIEW endless AS SELECT * FROM range(1000000000000)",
    )
    reasons = {table.name: table.reason for table in DATABASES.tables_in(source)}
    assert "disabled" in reasons["elsewhere"]
    assert reasons["endless"] is None
    small = FileSource("data.duckdb", source.location, max_bytes=1_000_000)
    with pytest.raises(TableReadError, match="unpacks to more than 1,000,000 bytes"):
        DATABASES.read(small, "endless")


WRITER = """
import sys, duckdb
with duckdb.connect(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_database_that_is_being_written_says_so(made):
    source = made("CREATE TABLE t AS SELECT 1 AS n")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", WRITER, source.location], **pipes) as writer:
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(TableReadError, match=r"^data\.duckdb is being written by another "):
            DATABASES.tables_in(source)
        writer.communicate()


def test_damaged_databases_say_so_in_one_sentence(made):
    source = made("CREATE TABLE t AS SELECT range AS n, 'text' || range AS s FROM range(5000)")
    data = source.location.read_bytes()
    garbage = data[:13000] + bytes(range(256)) * 200 + data[13000 + 256 * 200 :]
    other = data[:12] + (9999).to_bytes(8, "little") + data[20:]
    for broken in (data[:20000], data[:40], garbage, other, b"a,b\n1,2\n", b""):
        with pytest.raises(TableReadError, match=r"^x\.duckdb [^\n]*\.$") as caught:
            DATABASES.read(FileSource("x.duckdb", data=broken), "t")
        assert "being written" not in str(caught.value)
        assert "Error:" not in str(caught.value)
        assert str(source.location.parent) not in str(caught.value)


def test_without_the_package_the_way_to_it_is_said(made, monkeypatch):
    source = made("CREATE TABLE t AS SELECT 1 AS n")
    monkeypatch.setattr(sandbox, "find_spec", lambda name: None)
    request = {"path": str(source.location), "bounds": bounds(source.budget())}
    with pytest.raises(TableReadError, match=r"not installed: pip install 'pexeso\[duckdb\]'\.$"):
        databases.answer(request)


def test_points_of_time_are_the_same_in_every_time_zone(made, monkeypatch):
    source = made(
        "SET TimeZone = 'UTC'", "CREATE TABLE t AS SELECT TIMESTAMPTZ '2020-01-01 23:30:05Z' AS m"
    )
    for zone in ("UTC", "Asia/Tokyo"):
        sandbox._reader.end()  # the next process has this time zone
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert read_table(source.location).columns[0].to_pylist() == ["2020-01-01 23:30:05Z"]
    monkeypatch.undo()
    time.tzset()
