"""Spark DataFrames joined by tasks: the rows, types and report of a local join."""

import datetime
import sqlite3
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_joined_tables import LINKS, OURS, THEIRS, joined, mapping_of

from pexeso.errors import InputError
from pexeso.index import build_index, open_index
from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import JoinOptions
from pexeso.joins.spark import FoundTable, join_frame, spark_columns, spark_type
from pexeso.joins.tables import join_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.rows import read_typed_rows

CITIES = ["Oslo", "rome", None, " MADRID ", "Xyzzyx", "Oslo", "--"]


@pytest.fixture(scope="module")
def match(small_index):
    return open_index(small_index).explain(CITIES, "cities.csv", "city", max_distance=1).match


@pytest.fixture(scope="module")
def mine():
    return pd.DataFrame({"place": [*CITIES, "Bern"], "People": range(len(CITIES) + 1)})


@pytest.fixture(scope="module")
def frame(spark, mine):
    return spark.createDataFrame(mine, "place string, People int")


def rows_of(table):
    """Return the rows of any kind of table in one order.

    Columns are named by their positions, since Spark takes People and people for one name.
    """
    table = table.toArrow() if hasattr(table, "toArrow") else table
    names = [f"c{place}" for place in range(table.num_columns)]
    return sorted(map(repr, table.rename_columns(names).to_pylist()))


@pytest.mark.parametrize(
    ("options", "with_report"),
    [
        (
            {
                "values": "one-to-one",
                "suffix": "_lake",
                "provenance": ("table", "column", "value", "distance"),
            },
            False,
        ),
        ({"values": "all", "how": "inner"}, False),
        ({"values": "all", "aggregate": {"people": "mean", "country": "list", "*": "count"}}, True),
    ],
)
def test_a_file_is_joined_in_tasks_as_in_memory(match, mine, frame, options, with_report):
    wanted = match.join_with_report(pa.Table.from_pandas(mine), "place", **options)
    result = match.join_with_report(frame, "place", **options)
    assert rows_of(result.table) == rows_of(wanted.table)
    if with_report:
        assert result.report.to_dict() == wanted.report.to_dict()
        assert result.report.conflicts.sort_by("kind").equals(
            wanted.report.conflicts.sort_by("kind")
        )


TIED = ["Anna Zorn", "Anna Born", "Anna Korn", "Berta Lorn", "Berta Dorn"]


@pytest.mark.parametrize("values", ["nearest", "one-to-one"])
def test_of_equally_near_values_the_first_row_wins_in_tasks_too(spark, tmp_path, values):
    folder = tmp_path / "lake"
    folder.mkdir()
    pd.DataFrame({"name": TIED, "n": range(5)}).to_csv(folder / "names.csv", index=False)
    index = build_index(folder, tmp_path / "names.pexeso")
    mine = pd.DataFrame({"first": ["Anna", "Berta"]})
    match = index.explain(mine["first"], "names.csv", "name", max_distance=1).match
    near = {pair.value: pair.distance for pair in match.pairs() if pair.query == "Anna"}
    assert near["Anna Zorn"] == near["Anna Born"] == near["Anna Korn"]
    joined = match.join(mine, "first", values=values)
    assert joined["name"].tolist() == ["Anna Zorn", "Berta Lorn"]
    in_tasks = match.join(spark.createDataFrame(mine, "first string"), "first", values=values)
    assert rows_of(in_tasks) == rows_of(pa.Table.from_pandas(joined))
    in_duckdb = duckdb.sql(match.sql("mine", on="first", values=values)).fetchall()
    assert sorted(row[1] for row in in_duckdb) == ["Anna Zorn", "Berta Lorn"]


def test_names_that_differ_in_case_alone_get_out_of_the_way(match, frame):
    assert match.join(frame, "place").columns[:4] == [
        "place",
        "People",
        "match_value",
        "match_distance",
    ]
    assert match.join(frame, "place").columns[4:] == ["city", "country", "cities.csv:people"]


def test_a_query_column_without_one_text_is_refused(match, spark, frame):
    when = spark.createDataFrame([(datetime.datetime(2020, 1, 2),)], "moment timestamp")
    with pytest.raises(
        InputError,
        match=r"'moment' is of type timestamp, which has more than one text\. Cast it to string",
    ):
        match.join(when, "moment")
    with pytest.raises(
        InputError,
        match=r"A Spark DataFrame is joined to a Spark DataFrame: leave out to='pandas'\.",
    ):
        match.join(frame, "place", to="pandas")


def asked_for(mapping, options, table="found_in_spark"):
    return FoundTable(
        Path("spark:" + table),
        table,
        "name",
        list(THEIRS[0]),
        Normaliser(),
        1 << 30,
        mapping,
        options,
    )


def test_a_table_of_spark_is_joined_as_a_file_with_the_same_rows_would_be(spark):
    options = {"values": "all", "aggregate": {"n": "sum", "note": "list"}}
    # Dates as well: the order of day and month is decided by the whole column, wherever its rows
    # are.
    theirs = [
        *THEIRS,
        *({"name": name, "n": "1", "note": None} for name in ("13/5/1953", "3/5/1953", "5/3/1953")),
    ]
    ours = [*OURS, {"id": 7, "key": "1953-05-03"}]
    links = LINKS | {("3 may 1953", "3 may 1953"): 0.0, ("a", "13 may 1953"): 0.25}
    schema = "name string, n string, note string"
    spark.createDataFrame([tuple(row.values()) for row in theirs], schema).repartition(
        3
    ).createOrReplaceTempView("found_in_spark")
    texts = [row["key"] for row in ours]
    mapping = mapping_of(texts, links, options["values"])
    frame = spark.createDataFrame([tuple(row.values()) for row in ours], "id long, key string")
    result = join_frame(
        frame, "key", asked_for(mapping, JoinOptions(**options)), pa.array(texts), from_spark=True
    )
    in_order = sorted(theirs, key=lambda row: [(cell is None, cell or "") for cell in row.values()])
    wanted = joined(ours, in_order, links, **options)
    assert rows_of(result.table) == rows_of(wanted.table)
    in_full = {"rows", "matched_rows", "joined_rows", "counts"}
    assert {name: getattr(result.report, name) for name in in_full} == {
        name: getattr(wanted.report, name) for name in in_full
    }


def test_a_table_that_spark_does_not_know_is_told_with_a_way_out(spark):
    mapping = mapping_of(["a"], LINKS, "nearest")
    frame = spark.createDataFrame([("a",)], "key string")
    with pytest.raises(
        InputError, match=r"no table or view 'nowhere'.*createOrReplaceTempView\('nowhere'\)"
    ):
        join_frame(
            frame,
            "key",
            asked_for(mapping, JoinOptions(), "nowhere"),
            pa.array(["a"]),
            from_spark=True,
        )


def test_a_found_column_of_floats_is_joined_by_the_texts_of_the_index(spark):
    spark.createDataFrame(
        [(49301234567.0, "a", "b"), (1.5, "c", "d")], "name double, n string, note string"
    ).createOrReplaceTempView("found_in_spark")
    texts = ["49301234567", "1.5", "7"]
    mapping = mapping_of(texts, {(text, text): 0.0 for text in texts[:2]}, "all")
    frame = spark.createDataFrame([(text,) for text in texts], "key string")
    result = join_frame(
        frame, "key", asked_for(mapping, JoinOptions()), pa.array(texts), from_spark=True
    )
    notes = result.table.select("key", "note").toArrow().to_pylist()
    assert {row["key"]: row["note"] for row in notes} == {"49301234567": "b", "1.5": "d", "7": None}


KEYS = ["oslo", "rome", "bern", "riga", "cork"]
DAY = datetime.date(2020, 2, 29)
MOMENT = datetime.datetime(2020, 2, 29, 23, 59, 58, 123456)

PRICES = [Decimal("1.10"), None, Decimal("-2.05"), Decimal(0), None]


def of_every_type():
    """Make a table with columns of many types, a null in each but the key."""
    return pa.table(
        {
            "key": KEYS,
            "whole": pa.array([1, -2, None, 4, 2**40], pa.int64()),
            "small": pa.array([1, 2, 3, None, 255], pa.uint8()),
            "large": pa.array([1, 2, 3, None, 2**64 - 1], pa.uint64()),
            "real": pa.array([0.5, None, -1e300, 3.0, 2.25]),
            "day": pa.array([DAY, None, DAY, DAY, datetime.date(1, 1, 1)]),
            "moment": pa.array([MOMENT, None, MOMENT, MOMENT, MOMENT], pa.timestamp("ms")),
            "instant": pa.array([MOMENT, None, MOMENT, MOMENT, MOMENT], pa.timestamp("us", "UTC")),
            "price": pa.array(PRICES, pa.decimal128(9, 2)),
            "truth": pa.array([True, False, None, True, False]),
            "nothing": pa.array([None] * 5, pa.string()),
            "hour": pa.array([datetime.time(1, 2), None, None, None, None], pa.time64("us")),
            "many": pa.array([[1, 2], None, [], [3], [4]], pa.list_(pa.int32())),
        }
    )


@pytest.fixture
def lake(tmp_path):
    pq.write_table(of_every_type(), tmp_path / "types.parquet")
    with sqlite3.connect(tmp_path / "data.sqlite") as database:
        database.execute(
            "CREATE TABLE sums (key TEXT, whole INTEGER, real REAL, day DATE, truth BOOLEAN, "
            "empty TEXT)"
        )
        rows = [
            (key, number or None, number / 2, DAY.isoformat(), number % 2, None)
            for number, key in enumerate(KEYS)
        ]
        database.executemany("INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?)", rows)
    database.close()
    (tmp_path / "texts.csv").write_text("key,whole\n" + "".join(f"{key},1\n" for key in KEYS))
    return tmp_path


@pytest.mark.parametrize("table", ["types.parquet", "data.sqlite#sums", "texts.csv"])
@pytest.mark.parametrize("aggregate", [None, {"whole": "sum"}], ids=["rows", "sums"])
def test_columns_keep_the_types_that_they_have_in_memory(spark, lake, table, aggregate):
    rows, typed = read_typed_rows(lake, table)
    options = JoinOptions(aggregate=aggregate)
    mapping = mapping_of(KEYS, {(key, key): 0.0 for key in KEYS}, "nearest")
    found_table = FoundTable(
        Path(lake), table, "key", rows.column_names, Normaliser(), 1 << 30, mapping, options
    )
    mine = pa.table({"name": KEYS})
    joined = join_frame(
        spark.createDataFrame(mine), "name", found_table, pa.array(KEYS), from_spark=False
    ).table.toArrow()
    found_rows = find_rows(table, "key", rows, mapping, Normaliser(), options, typed)
    wanted = join_table(mine, "name", found_rows, pa.array(KEYS)).table
    nearest = {
        pa.uint8(): pa.int16(),
        pa.uint64(): pa.decimal128(20),
        pa.time64("us"): pa.string(),
        pa.null(): pa.string(),
    }
    for name, column in zip(joined.column_names, wanted.columns, strict=True):
        kind = nearest.get(column.type, column.type)
        got = joined[name].type
        if pa.types.is_timestamp(kind):
            assert (got.unit, got.tz is None) == ("us", kind.tz is None), name
        elif pa.types.is_list(kind):
            assert got.value_type == kind.value_type
        else:
            assert got == kind, name
    cells = joined.sort_by("name").to_pylist()
    as_told = wanted.rename_columns(joined.column_names).sort_by("name").to_pylist()
    for got, expected in zip(cells, as_told, strict=True):
        if expected.get("hour") is not None:
            expected["hour"] = rows["hour"][0].as_py()
        assert got == expected
    if table != "texts.csv":
        assert any(column.type != pa.string() for column in joined.columns[5:])


def test_a_table_of_spark_keeps_its_types(spark):
    given = of_every_type().drop_columns(["small", "large", "hour", "many"])
    spark.createDataFrame(given).repartition(3).createOrReplaceTempView("typed_in_spark")
    mapping = mapping_of(KEYS, {(key, key): 0.0 for key in KEYS}, "nearest")
    found_table = FoundTable(
        Path("spark:typed_in_spark"),
        "typed_in_spark",
        "key",
        given.column_names,
        Normaliser(),
        1 << 30,
        mapping,
        JoinOptions(provenance=()),
    )
    frame = spark.createDataFrame(pa.table({"name": KEYS}))
    joined = join_frame(frame, "name", found_table, pa.array(KEYS), from_spark=True).table
    theirs = {field.name: field.dataType for field in spark.table("typed_in_spark").schema}
    assert {field.name: field.dataType for field in joined.schema[1:]} == theirs
    cells = joined.drop("name").toArrow().sort_by("key").to_pylist()
    assert cells == spark.table("typed_in_spark").toArrow().sort_by("key").to_pylist()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.timestamp("s", "Europe/Oslo"), pa.timestamp("us", "UTC")),
        (pa.decimal256(60, 2), None),
        (pa.decimal256(20, 2), pa.decimal128(20, 2)),
        (pa.large_string(), pa.string()),
        (pa.binary(4), pa.binary()),
        (pa.large_list(pa.uint32()), pa.list_(pa.int64())),
        (pa.struct([("a", pa.date64())]), pa.struct([("a", pa.date32())])),
        (pa.struct([("a", pa.time32("s"))]), None),
        (pa.list_(pa.duration("s")), None),
    ],
    ids=str,
)
def test_types_of_spark(given, wanted):
    assert spark_type(given) == wanted


def test_a_column_with_a_cell_that_does_not_fit_is_text():
    far = pa.chunked_array([np.array([2**62], "datetime64[s]").astype("int64")])
    seconds = far.cast(pa.timestamp("s"))
    texts = pa.table({"when": ["far away"]})
    assert spark_columns(texts, [seconds])[0].to_pylist() == ["far away"]
    near = pa.chunked_array([pa.array([1_234_567], pa.timestamp("ns"))])
    (cut,) = spark_columns(texts, [near])
    assert cut.cast(pa.int64()).to_pylist() == [1_234]
