"""``pexeso_join`` in DuckDB makes the rows of `pexeso.fuzzy_join`."""

import random

import duckdb
import pyarrow as pa
import pytest

import pexeso
from pexeso.duckdb import register

JOIN = "FROM pexeso_join('mine', 'theirs', 'key', 'name')"


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        register(connection)
        yield connection


def put(connection, mine, theirs):
    for name, table in (("mine", mine), ("theirs", theirs)):
        connection.register(f"{name}_rows", table)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM {name}_rows")


@pytest.mark.parametrize("max_distance", [None, 0.2])
def test_rows_are_those_of_a_join_in_memory(connection, max_distance):
    draw = random.Random(3)
    names = ["Oslo", "Rome", "København", "New York City", "Lima", "OSLO", "Vienna", "Bern"]
    ours = [
        draw.choice([*names, "Kobenhavn", "Viena", "new york", "Xyzzy", None]) for _ in range(40)
    ]
    mine = pa.table({"key": ours, "n": range(40)})
    theirs = pa.table({"name": [*names, None, "Rome"], "code": range(10)})
    put(connection, mine, theirs)
    distance = "" if max_distance is None else f", max_distance := {max_distance}"
    rows = connection.sql(f"{JOIN[:-1]}{distance})")
    assert rows.columns == ["key", "n", "name", "code", "match_distance"]
    options = {} if max_distance is None else {"max_distance": max_distance}
    expected = pexeso.fuzzy_join(mine, theirs, left_on="key", right_on="name", **options)
    expected = expected.select(["key", "n", "name", "code", "match_distance"])
    assert sorted(rows.fetchall(), key=repr) == sorted(
        map(tuple, (row.values() for row in expected.to_pylist())), key=repr
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([], ["a"], []),
        (["a"], [], [None]),
        ([None], ["a"], [None]),
        (["a"], [None], [None]),
        (["", "?"], ["a", "?"], [None, None]),
    ],
)
def test_sides_may_be_empty(connection, ours, theirs, expected):
    put(
        connection,
        pa.table({"key": pa.array(ours, "str")}),
        pa.table({"name": pa.array(theirs, "str")}),
    )
    assert [name for _, name, _ in connection.sql(JOIN).fetchall()] == expected


def test_types_stay_and_dates_and_numbers_are_equal_or_not(connection):
    connection.execute(
        "CREATE TABLE mine AS SELECT DATE '2024-01-05' + i::INTEGER AS key FROM range(3) t(i)"
    )
    connection.execute("CREATE TABLE theirs AS SELECT DATE '2024-01-06' AS name, 7 AS n")
    assert connection.sql(JOIN).order("key").project("n").fetchall() == [(None,), (7,), (None,)]
    connection.execute("CREATE OR REPLACE TABLE mine AS SELECT i AS key FROM range(10, 30) t(i)")
    connection.execute("CREATE OR REPLACE TABLE theirs AS SELECT 20 AS name")
    assert connection.sql(JOIN).filter("name = 20").project("key").fetchall() == [(20,)]


def test_views_and_odd_names_are_joined_and_columns_that_are_not_there_refused(connection):
    connection.execute("""CREATE VIEW "it's; DROP" AS SELECT 'Oslo' AS "ke'y" """)
    connection.execute("CREATE TABLE theirs AS SELECT 'OSLO' AS name")
    odd = "FROM pexeso_join('\"it''s; DROP\"', 'theirs', 'ke''y', 'name')"
    assert connection.sql(odd).fetchall() == [("Oslo", "OSLO", 0.0)]
    with pytest.raises(duckdb.BinderException, match="nothing"):
        connection.sql(JOIN.replace("'key'", "'nothing'").replace("'mine'", "'theirs'"))
    with pytest.raises(duckdb.Error, match="max_distance must be"):
        connection.sql(
            "FROM pexeso_join('theirs', 'theirs', 'name', 'name', max_distance := 7)"
        ).fetchall()


def test_it_may_be_registered_twice(connection):
    register(connection)
    put(connection, pa.table({"key": ["Oslo"]}), pa.table({"name": ["OSLO"]}))
    assert connection.sql(JOIN).fetchall() == [("Oslo", "OSLO", 0.0)]
