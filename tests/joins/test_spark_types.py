"""A join of a Spark DataFrame keeps the types of the found table's columns."""

import datetime
import sqlite3
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_joined_tables import mapping_of

from pexeso.joins.matched_rows import find_rows
from pexeso.joins.options import JoinOptions
from pexeso.joins.spark import FoundTable, join_frame, spark_columns, spark_type
from pexeso.joins.tables import join_table
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.lake.rows import read_typed_rows

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
