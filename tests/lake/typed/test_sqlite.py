"""SQLite files: types, names that are code, views that never end, and databases being written."""

import contextlib
import os
import sqlite3

import pytest

from pexeso.errors import TableReadError
from pexeso.lake.readers.table import FileSource
from pexeso.lake.typed import databases
from pexeso.lake.typed.databases import DATABASES
from pexeso.lake.typed.sandbox import InnerTable, bounds

HOSTILE = 'a"b; DROP TABLE "t"; --\n\'é`]'
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"


@pytest.fixture
def made(tmp_path):
    """A function that runs statements on a new database and returns what reads it."""

    def make(*statements, name="data.sqlite"):
        path = tmp_path / name
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(*([statement] if isinstance(statement, str) else statement))
            connection.commit()
        return FileSource(name, path)

    return make


def columns(source, name):
    table = DATABASES.read(source, name)
    return table, table.rows.to_pydict()


def read_all(source):
    for table in DATABASES.tables_in(source):
        DATABASES.read(source, table.name)


def test_a_column_has_the_type_of_its_values(made):
    source = made(
        "CREATE TABLE t (i INTEGER, r REAL, t TEXT, mixed, number, bytes BLOB, none TEXT, day)",
        "INSERT INTO t VALUES (1, 1.0, 'é', 1, 2, x'00', NULL, '2020-01-02')",
        "INSERT INTO t VALUES (NULL, 2.0, '', 'x', 2.5, x'01', NULL, '0000-00-00')",
    )
    table, cells = columns(source, "t")
    assert [str(kind) for kind in table.rows.schema.types] == [
        "int64", "double", "string", "string", "double", "null", "null", "string",
    ]  # fmt: skip
    assert cells == {
        "i": [1, None], "r": [1.0, 2.0], "t": ["é", ""], "mixed": ["1", "x"],
        "number": [2.0, 2.5], "bytes": [None, None], "none": [None, None],
        "day": ["2020-01-02", "0000-00-00"],
    }  # fmt: skip
    assert table.notes == ["column 'bytes' (#5) is not text everywhere: its bytes were left out"]


def test_tables_and_views_are_listed_and_not_what_sqlite_keeps_for_itself(made):
    source = made(
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a)",
        "CREATE VIEW v AS SELECT a FROM t",
        "CREATE VIEW broken AS SELECT a FROM nowhere",
        "CREATE TABLE words_other (a)",
        "CREATE VIRTUAL TABLE words USING fts4(body)",
    )
    listed = DATABASES.tables_in(source)
    assert [table.name for table in listed] == ["t", "v", "broken", "words_other"]
    assert listed[1] == InnerTable("v")
    assert listed[2].reason == "cannot be read as a database: no such table: main.nowhere"
    with pytest.raises(TableReadError, match=r"has no such table: 'words' .*\. It has 't', 'v'"):
        DATABASES.read(source, "words")


def test_hostile_names_are_names(made):
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    source = made(
        "CREATE TABLE t (a)",
        f"CREATE TABLE {quoted} ({quoted})",
        f"INSERT INTO {quoted} VALUES (7)",
    )
    assert DATABASES.tables_in(source) == [InnerTable("t"), InnerTable(HOSTILE)]
    assert columns(source, HOSTILE)[1] == {HOSTILE: [7]}


def test_views_that_do_not_end_are_given_up(made, monkeypatch):
    monkeypatch.setattr("pexeso.lake.readers.table.MIN_SECONDS", 1)
    monkeypatch.setattr(databases, "_FIRST_ROW_SECONDS", 0.1)
    source = made(
        "CREATE TABLE t (a)",
        f"CREATE VIEW rows AS {ENDLESS}",
        f"CREATE VIEW total AS SELECT sum(n) FROM ({ENDLESS})",
    )
    request = {"path": str(source.location), "bounds": bounds(source.budget())}
    reasons = dict(databases.answer(request)[0]["tables"])
    assert reasons["t"] is reasons["rows"] is None  # a first row comes
    assert reasons["total"] == "cannot be read: after 0.1 seconds there was no first row"
    with pytest.raises(TableReadError, match=r"^data\.sqlite .* after 1 seconds .*no end"):
        DATABASES.read(source, "rows")


def test_generated_columns_of_long_texts_take_no_memory_of_this_process(made):
    texts = ", ".join(f"c{n} AS (zeroblob(60000000))" for n in range(60))
    source = made(f"CREATE TABLE t (a, {texts})", "INSERT INTO t VALUES (1)")
    (listed,) = DATABASES.tables_in(source)
    assert "memory" in listed.reason


def test_views_may_neither_load_nor_write_nor_make_up_huge_texts(made):
    source = made(
        "CREATE TABLE t (a)",
        "CREATE VIEW loads AS SELECT load_extension('x')",
        "CREATE VIEW huge AS SELECT hex(zeroblob(100000000)) AS a",
        f"CREATE VIEW many AS SELECT hex(zeroblob(1000000)) AS a FROM ({ENDLESS} LIMIT 600)",
    )
    reasons = {table.name: table.reason for table in DATABASES.tables_in(source)}
    assert "load_extension" in reasons["loads"]
    assert "too big" in reasons["huge"]
    with pytest.raises(TableReadError, match=r"'many' of data\.sqlite holds more than 1,073,741"):
        DATABASES.read(source, "many")


def test_batches_of_long_texts_have_fewer_rows(made, monkeypatch):
    monkeypatch.setattr(databases, "_BATCH_BYTES", 1000)
    source = made("CREATE TABLE t (a)", *[("INSERT INTO t VALUES (?)", ("x" * 300,))] * 10)
    request = {"path": str(source.location), "bounds": bounds(source.budget()), "table": "t"}
    _, table = databases.answer(request)
    assert [len(batch) for batch in table.to_batches()] == [3, 3, 3, 1]


def test_a_text_that_is_not_utf8_is_read_with_marks(made):
    source = made("CREATE TABLE t (a)", "INSERT INTO t VALUES (CAST(x'41ff42' AS TEXT))")
    table, cells = columns(source, "t")
    assert cells == {"a": ["A\ufffdB"]}
    assert table.notes == [
        "not all valid UTF-8: cells in which wrong bytes became the replacement character: 1"
    ]


def test_texts_that_are_utf8_need_no_note(made):
    table, cells = columns(made("CREATE TABLE t (a)", "INSERT INTO t VALUES ('\ufffd')"), "t")
    assert (cells, table.notes) == ({"a": ["\ufffd"]}, [])


@pytest.mark.parametrize("large", [2**53, -(2**53), 2**53 + 1, 2**63 - 1, -(2**63)])
def test_large_whole_numbers_beside_floats_keep_their_digits(made, large):
    source = made(
        "CREATE TABLE t (a, b)",
        f"INSERT INTO t VALUES ({large}, {large}), (1.5, NULL), (2.0, 7), (7, 7)",
    )
    _, cells = columns(source, "t")
    assert cells == {"a": [str(large), "1.5", "2", "7"], "b": [large, None, 7, 7]}


def test_whole_numbers_that_floats_hold_are_floats_beside_them(made):
    exact = 2**53 - 1
    source = made("CREATE TABLE t (a)", f"INSERT INTO t VALUES ({exact}), ({-exact}), (1.5)")
    assert columns(source, "t")[1] == {"a": [float(exact), float(-exact), 1.5]}


def test_more_columns_than_one_statement_asks_about(made):
    names = [f"c{number}" for number in range(700)]
    source = made(
        f"CREATE TABLE t ({', '.join(names)})",
        f"INSERT INTO t VALUES ({', '.join(str(number) for number in range(700))})",
    )
    assert columns(source, "t")[1] == {name: [int(name[1:])] for name in names}


def test_a_database_with_a_log_is_read_and_nothing_is_made_beside_it(tmp_path):
    path = tmp_path / "data.db"
    with contextlib.closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (a)")
        writer.execute("INSERT INTO t VALUES (1)")
        writer.commit()
        before = sorted(os.listdir(tmp_path))
        assert "data.db-wal" in before
        assert columns(FileSource("data.db", path), "t")[1] == {"a": [1]}
        assert sorted(os.listdir(tmp_path)) == before
    assert os.listdir(tmp_path) == ["data.db"]  # the last one to close it empties the log
    assert columns(FileSource("data.db", path), "t")[1] == {"a": [1]}
    assert os.listdir(tmp_path) == ["data.db"]


def test_a_change_that_was_cut_off_is_undone_in_a_copy(made, tmp_path):
    source = made("CREATE TABLE t (a)", *[("INSERT INTO t VALUES (?)", ("old" * 100,))] * 500)
    with contextlib.closing(sqlite3.connect(source.location)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("UPDATE t SET a = 'new'")
        for name in ("data.sqlite", "data.sqlite-journal"):
            (tmp_path / f"cut-{name}").write_bytes((tmp_path / name).read_bytes())
    cut = FileSource("cut", tmp_path / "cut-data.sqlite")
    contents = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert (tmp_path / "cut-data.sqlite-journal") in contents
    assert set(columns(cut, "t")[1]["a"]) == {"old" * 100}
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == contents


def test_a_database_that_is_being_written_says_so(made):
    source = made("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    message = r"^data\.sqlite is being written by another program; index it again when that is"
    with contextlib.closing(sqlite3.connect(source.location)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TableReadError, match=message):
            DATABASES.tables_in(source)


def test_a_database_that_is_written_while_it_is_read_says_so(made, monkeypatch):
    source = made("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    request = {"path": str(source.location), "bounds": bounds(source.budget()), "table": "t"}
    read = databases._read

    def write_meanwhile(connection, *given):
        answered = read(connection, *given)
        with contextlib.closing(sqlite3.connect(source.location)) as writer:
            writer.execute("INSERT INTO t VALUES ('x')")
            writer.commit()
        return answered

    monkeypatch.setattr(databases, "_read", write_meanwhile)
    with pytest.raises(TableReadError, match="is being written by another program"):
        databases.answer(request)


def test_damaged_databases_say_so_in_one_sentence(made):
    values = [("INSERT INTO t VALUES (?, ?)", (number, "text" * 50)) for number in range(500)]
    source = made("CREATE TABLE t (a, b)", "CREATE INDEX i ON t (a)", *values)
    data = source.location.read_bytes()
    page = bytearray(data)
    page[4096:8192] = bytes(range(256)) * 16
    for broken in (data[: len(data) // 2], data[:200], bytes(page), b"a,b\n1,2\n", data[:16]):
        damaged = FileSource("x.db", data=broken)
        with pytest.raises(TableReadError, match=r"^x\.db [^\n]*\.$"):
            read_all(damaged)


def test_a_database_in_memory_is_read(made):
    source = made("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    inside = FileSource("a.zip/x.db", data=source.location.read_bytes())
    assert columns(inside, "t")[1] == {"a": [1]}
